//! Changes that must not be made twice: of names, and writes at the end of a file.
//!
//! Each goes through a *lane* of its file system, one at a time, and by a ticket of its own. If the
//! instance dies, the next one says what came of it, if it goes on (`FileSystem::lineage`). So it
//! is made once, however often that happens.
//!
//! There are few lanes, and there may be many threads. A change that finds none waits for its turn,
//! in the order of asking, before it has a pass or any handle of an instance. So nobody who has a
//! lane ever waits for somebody who waits for one, and an instance is replaced meanwhile as at any
//! other time.

use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::time;
use interfaces::{FileSystem, FsError, Handle, LaneOutcome, RpcError};
use turns::Turns;

use crate::known::Known;
use crate::mount::Live;

/// The most lanes of a domain: as many of its changes are under way at once on one file system.
const MOST: usize = 126;

/// Places to wait at, by turn, so that few are woken who need not be.
const PLACES: usize = 32;

/// The lanes of one file system that this domain may use.
#[derive(Default)]
pub struct Lanes {
    state: Mutex<State>,
    places: [Condvar; PLACES],
    /// They have the numbers behind this one.
    base: u32,
}

#[derive(Default)]
struct State {
    turns: Turns<Lane>,
    last_ticket: u64,
}

/// A lane that is lent to one thread. Dropping it gives it back.
pub(crate) struct Lent<'a> {
    lanes: &'a Lanes,
    /// `None` only while it is dropped.
    lane: Option<Lane>,
}

/// A lane.
struct Lane {
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
            base: MOST as u32 + 1,
            ..Lanes::default()
        }
    }

    /// The number of the lane through which this domain takes holds, so that it is known whose they
    /// are.
    pub(crate) fn of_holds(&self) -> u32 {
        self.base + MOST as u32 + 1
    }

    /// A lane; waits until one is free. The caller has no [pass](crate::Mount::enter): a lane comes
    /// back only if who has it gets one.
    ///
    /// # Errors
    /// The caller is ended meanwhile; no memory.
    pub(crate) fn take(&self) -> Result<Lent<'_>, FsError> {
        let mut state = self.state.lock();
        let taken = state.turns.take();
        if taken.is_none() && state.turns.all() < MOST {
            state.turns.add().map_err(|_| RpcError::NoMemory)?;
            let number = self.base + state.turns.all() as u32;
            return Ok(self.lent(Lane { number, way: None }));
        }
        if let Some(lane) = taken {
            return Ok(self.lent(lane));
        }
        let turn = state.turns.wait().map_err(|_| RpcError::NoMemory)?;
        loop {
            let wait;
            (state, wait) = self.place(turn).wait(state);
            if wait == Wait::Interrupted {
                let next = state.turns.leave(turn);
                drop(state);
                self.wake(next);
                return Err(RpcError::Interrupted.into());
            }
            if let Some(lane) = state.turns.collect(turn) {
                return Ok(self.lent(lane));
            }
        }
    }

    fn lent(&self, lane: Lane) -> Lent<'_> {
        Lent {
            lanes: self,
            lane: Some(lane),
        }
    }

    fn place(&self, turn: u64) -> &Condvar {
        &self.places[turn as usize % PLACES]
    }

    /// A turn has come, if one has.
    fn wake(&self, turn: Option<u64>) {
        if let Some(turn) = turn {
            self.place(turn).notify_all();
        }
    }

    /// A change that goes first to an instance of `lineage`.
    pub(crate) fn change(&self, lineage: Option<u64>) -> Change {
        let mut state = self.state.lock();
        // No two are the same, also of two lives of this domain.
        state.last_ticket = time::now().max(state.last_ticket + 1);
        Change {
            ticket: state.last_ticket,
            lineage,
            was_tried: false,
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(lane) = self.lane.take() {
            let turn = self.lanes.state.lock().turns.give(lane);
            self.lanes.wake(turn);
        }
    }
}

impl Lent<'_> {
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
        let lane = self.lane.as_mut().ok_or(FsError::Unsupported)?;
        let way = lane.way(live)?;
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
}
