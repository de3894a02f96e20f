//! How a domain dies: [`kill`] ends it and waits until nobody is inside, and [`undertaker`] frees
//! what it had.

pub mod kill;
pub(crate) mod undertaker;

use crate::call::{drops, end};
use crate::domain::Reason;
use crate::platform::Chain;

/// Who says what a wait has to know of calls.
pub(crate) struct Waits;

impl Chain for Waits {
    fn note_wait(&self) -> Option<u64> {
        drops::note_wait()
    }

    fn end_late(&self) {
        end_late();
    }

    fn has_dead(&self) -> bool {
        end::chain_has_dead()
    }
}

/// Ends the domain in whose drop, the innermost, the running thread has waited for too long.
pub(crate) fn end_late() {
    if let Some(block) = drops::late() {
        kill::kill(&block, Reason::Hang);
    }
}
