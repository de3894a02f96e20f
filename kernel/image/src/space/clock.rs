//! The clock page: a memory object of one page, which says how the time comes of the processor's
//! counter (`lib/system/clockpage`).
//!
//! It is sealed, so nobody can change what others go by, and neither can two of them talk by it;
//! and it can be mapped any number of times.

use super::backing::{Object, object_error};
use alloc::sync::Arc;
use clockpage::Clock;
use framework::mem::untyped::POOL;
use framework::sync::Once;
use framework::time;
use interfaces::{Handle, MemoryError, SpaceError, VmoFill, VmoRights, VmoView};
use services::vmo;
use services::vmo::payer::Domain;

static PAGE: Once<Arc<Object>> = Once::new();

/// What those get who may make address spaces.
const RIGHTS: VmoRights = VmoRights {
    read: true,
    write: false,
    map: true,
    execute: false,
};

/// Makes the page. Called once at boot.
///
/// # Panics
/// If there is no memory for it.
pub fn init() {
    PAGE.call_once(|| Arc::new(make().expect("memory for a page at boot")));
}

fn make() -> Result<Object, MemoryError> {
    let object = Object::new(POOL, Domain(None), 1, VmoFill::Zero)?;
    let scale = time::scale().map(|scale| Clock {
        base: scale.start,
        multiplier: scale.multiplier,
        shift: 32,
        monotonic: 0,
        wall: scale.wall_seconds.saturating_mul(1_000_000_000),
        is_steady: scale.is_steady,
    });
    let mut written = Ok(0);
    clockpage::write(0, scale.as_ref(), |index, word| {
        let next = object.write(8 * index as u64, &word.to_le_bytes());
        written = written.and(next);
    });
    written?;
    object.seal()?;
    Ok(object)
}

/// A view of it.
pub(super) fn view() -> Result<Handle<dyn VmoView>, SpaceError> {
    let page = PAGE.get().ok_or(SpaceError::NotMapped)?;
    vmo::view(page, RIGHTS).map_err(object_error)
}
