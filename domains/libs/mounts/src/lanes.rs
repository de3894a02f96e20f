//! Changes that must not be made twice: of names, and writes at the end of a file.
//!
//! Each goes through a *lane* of its file system, one at a time, and by a ticket of its own. If the
//! instance dies, the next one says what came of it, if it goes on (`FileSystem::lineage`). So it
//! is made once, however often that happens.

use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use domain_rt::time;
use interfaces::{FileSystem, FsError, Handle, LaneOutcome};

use crate::known::Known;
use crate::mount::Live;

/// The most lanes of a domain. Changes beyond that are not made again.
const MOST: u32 = 126;

/// The lanes of one file system that this domain may use.
#[derive(Default)]
pub struct Lanes {
    state: Mutex<State>,
    /// They have the numbers behind this one.
    base: u32,
}

#[derive(Default)]
struct State {
    free: Vec<Lane>,
    made: u32,
    last_ticket: u64,
}

/// A lane that one thread uses.
pub(crate) struct Lane {
    number: u32,
    /// The way through it, and of which instance.
    way: Option<(u32, Handle<dyn FileSystem>)>,
}

/// A change under way.
pub(crate) struct Change {
    ticket: u64,
    lineage: Option<u64>,
    was_tried: bool,
}

impl Lanes {
    /// Those of the other domain.
    pub(crate) fn others() -> Self {
        Lanes {
            base: MOST + 1,
            ..Lanes::default()
        }
    }

    /// The number of the lane through which this domain takes holds, so that it is known whose they
    /// are.
    pub(crate) fn of_holds(&self) -> u32 {
        self.base + MOST + 1
    }

    /// A lane, and a change that goes through it first with `live`; `None`: all are taken.
    pub(crate) fn take(&self, live: &Live) -> Option<(Lane, Change)> {
        let mut state = self.state.lock();
        // No two are the same, also of two lives of this domain.
        state.last_ticket = time::now().max(state.last_ticket + 1);
        let change = Change {
            ticket: state.last_ticket,
            lineage: live.lineage,
            was_tried: false,
        };
        if let Some(lane) = state.free.pop() {
            return Some((lane, change));
        }
        if state.made >= MOST {
            return None;
        }
        state.made += 1;
        let lane = Lane {
            number: self.base + state.made,
            way: None,
        };
        Some((lane, change))
    }

    /// Gives a lane back.
    pub(crate) fn give(&self, lane: Lane) {
        let mut state = self.state.lock();
        match state.free.try_reserve(1) {
            Ok(()) => state.free.push(lane),
            // Its number is lost with it.
            Err(_) => drop(state),
        }
    }
}

impl Lane {
    fn way(&mut self, live: &Live) -> Result<&Handle<dyn FileSystem>, FsError> {
        if self.way.as_ref().is_none_or(|(id, _)| *id != live.id) {
            self.way = Some((live.id, live.fs.lane(self.number)?));
        }
        self.way
            .as_ref()
            .map(|(_, way)| way)
            .ok_or(FsError::Unsupported)
    }

    /// Makes a change with `live`, unless it was made by an instance that this one goes on for:
    /// then `found` says what its outcome is.
    ///
    /// # Errors
    /// The file system's, also that what it is about is stale; `Restarted` if nobody knows;
    /// `Device` if instances died of it.
    pub(crate) fn attempt<T>(
        &mut self,
        live: &Live,
        (change, on): (&mut Change, [Option<Known>; 2]),
        operation: impl FnOnce(&Handle<dyn FileSystem>) -> Result<T, FsError>,
        found: impl FnOnce(&LaneOutcome) -> T,
    ) -> Result<T, FsError> {
        if !live.goes_on(change.lineage) {
            return Err(FsError::Restarted);
        }
        let way = self.way(live)?;
        if change.was_tried
            && let Some(outcome) = way.outcome(change.ticket)?
        {
            return match outcome.given_up {
                true => Err(FsError::Device),
                false => Ok(found(&outcome)),
            };
        }
        change.was_tried = true;
        let [first, second] = on.map(|known| known.and_then(|known| known.life));
        way.begin(change.ticket, first, second)?;
        operation(way)
    }
}
