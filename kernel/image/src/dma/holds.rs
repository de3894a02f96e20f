//! Pages of memory objects that a device may use, each run of them by a number.
//!
//! The number has the place of the hold below, and above it how often the place was used, so that a
//! number that was released means nothing any more.

use alloc::vec::Vec;
use framework::mem::untyped::Untyped;
use interfaces::{RpcError, RpcResult};
use isolation::domain::account::Charge;
use services::vmo::object::Loan;
use services::vmo::payer::Domain;

/// The most holds of one pool.
const MOST_HOLDS: usize = 1024;
/// The most pages in all of them.
const MOST_PAGES: usize = 16384;

/// What the places of a pool's holds are charged with, in bytes.
pub(super) const PLACES_BYTES: usize = MOST_HOLDS * size_of::<Place>();

/// Pages that a device may use, and what its driver is charged with for them.
pub(super) struct Hold {
    pub(super) loan: Loan<Untyped, Domain>,
    pub(super) charge: Option<Charge>,
}

impl Hold {
    pub(super) fn pages(&self) -> usize {
        self.loan.frames().len()
    }
}

#[derive(Default)]
struct Place {
    hold: Option<Hold>,
    uses: u32,
    /// While it has no hold: the next such place, plus one; 0: there is none.
    next: u32,
}

/// All holds of a pool.
#[derive(Default)]
pub(super) struct Holds {
    places: Vec<Place>,
    /// The first place that has no hold any more, plus one; 0: there is none.
    free: u32,
    pages: usize,
    /// For the places.
    _charge: Option<Charge>,
}

impl Holds {
    /// Room for all holds that there can be, paid for with `charge`.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub(super) fn with_room(charge: Option<Charge>) -> RpcResult<Self> {
        let mut holds = Holds {
            _charge: charge,
            ..Holds::default()
        };
        let room = holds.places.try_reserve_exact(MOST_HOLDS);
        room.map_err(|_| RpcError::NoMemory)?;
        Ok(holds)
    }

    pub(super) fn has_room(&self) -> bool {
        self.places.capacity() > 0
    }

    /// Notes a hold; its number.
    ///
    /// # Errors
    /// There are too many, or of too many pages: it comes back.
    pub(super) fn put(&mut self, hold: Hold) -> Result<u64, Hold> {
        let pages = self.pages + hold.pages();
        let is_full = self.free == 0 && self.places.len() == MOST_HOLDS;
        if is_full || pages > MOST_PAGES || !self.has_room() {
            return Err(hold);
        }
        if self.free == 0 {
            self.places.push(Place::default());
            self.free = self.places.len() as u32;
        }
        let at = self.free - 1;
        let place = &mut self.places[at as usize];
        self.free = place.next;
        place.hold = Some(hold);
        self.pages = pages;
        Ok(u64::from(place.uses) << 32 | u64::from(at))
    }

    /// The hold with this number, which is none any more.
    pub(super) fn take(&mut self, number: u64) -> Option<Hold> {
        let at = number as u32;
        let place = self.places.get_mut(at as usize)?;
        if u64::from(place.uses) != number >> 32 {
            return None;
        }
        let hold = place.hold.take()?;
        place.uses = place.uses.wrapping_add(1);
        place.next = self.free;
        self.free = at + 1;
        self.pages -= hold.pages();
        Some(hold)
    }

    /// All holds, for who pays for them.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Hold> {
        self.places.iter_mut().filter_map(|it| it.hold.as_mut())
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.pages == 0
    }
}
