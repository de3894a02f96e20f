//! What could not cross in a call, as its record knows it.

use super::Record;
use super::thread::top;
use abi::bounds::MOST_NESTED;
use abi::{Exchangeable, RpcError};

/// Notes that something could not cross in the call of the top record.
pub(crate) fn note_failure(error: RpcError) {
    let top = top();
    // SAFETY: values cross only while the record of their call is linked; only its own thread uses
    // the field.
    unsafe { (*top).failure = u32::from(error.number()) };
}

/// Forgets what [`note_failure`] noted in the top record.
pub(crate) fn clear_failure() {
    // SAFETY: as in `note_failure`.
    unsafe { (*top()).failure = 0 };
}

/// What [`note_failure`] noted in `record`, if anything.
///
/// # Safety
/// `record` is linked.
pub unsafe fn failure(record: *const Record) -> Option<RpcError> {
    // SAFETY: see above. Only `note_failure` writes the field, and 0 is no error's number.
    RpcError::from_number(u64::from(unsafe { (*record).failure }))
}

/// Whether values of this type can hold handles, so that not all of one may be able to cross. Asked
/// of all that is moved, so a type that is nested too deep for the stack of a call is met here,
/// when the proxy is compiled.
#[inline(always)]
pub const fn has_handles<T: Exchangeable>(_: &T) -> bool {
    const { assert!(T::DEPTH <= MOST_NESTED, "a type is nested too deep") };
    T::HANDLES
}

/// Whether [`note_failure`] noted something in `record`.
///
/// # Safety
/// `record` is linked.
#[inline(always)]
pub unsafe fn has_failed(record: *const Record) -> bool {
    // SAFETY: see above.
    unsafe { (*record).failure != 0 }
}
