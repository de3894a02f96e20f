//! Commands that take too long: the controller is asked to abort one, and is reset if that is of no
//! use.

use domain_rt::sync::{MutexGuard, Wait};
use domain_rt::{log, time};
use nvme_queues::{command, registers};

use crate::bring_up::pause;
use crate::disk::{Disk, Given, PATIENCE, State};

/// How often it is looked for them, in nanoseconds.
const LOOK: u64 = 1_000_000_000;
/// After so long a command is aborted.
const ABORT: u64 = PATIENCE / 2;

impl Disk {
    /// The body of the thread that looks for commands that take too long. It sleeps while there are
    /// none, and ends with the controller.
    pub fn watch(&self) {
        let mut state = self.state.lock();
        while !state.gone {
            let wait;
            if state.is_idle() {
                state.unwatched = true;
                (state, wait) = self.watched.wait(state);
            } else {
                (state, wait) = self.watched.wait_until(state, time::now() + LOOK);
            }
            if wait == Wait::Interrupted {
                return;
            }
            state = self.look(state);
        }
        drop(state);
        match registers::end_reset(&self.registers, &self.capabilities, pause) {
            Ok(()) => self.state.lock().release_all(),
            Err(error) => log!("{error}"),
        }
    }

    /// Looks once.
    fn look<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if state.gone || state.is_idle() {
            return state;
        }
        if !registers::is_healthy(&self.registers) {
            log!("the controller is in a fatal state, or is gone");
            self.give_up(&mut state);
        } else if late(&state, ABORT).or(late(&state, PATIENCE)).is_some() {
            // It may have been done, and nobody looked.
            self.settle(&mut state);
            if late(&state, PATIENCE).is_some() {
                log!("the controller does not answer");
                self.give_up(&mut state);
            } else if let Some(place) = late(&state, ABORT) {
                state = self.abort(state, place);
            }
        } else if state.lane.is_none() {
            // Nobody looks for what a queue without interrupts has left.
            self.settle(&mut state);
        } else {
            return state;
        }
        Self::raise(state);
        self.state.lock()
    }

    /// Asks the controller to end a command early, if it was not asked before.
    fn abort<'a>(&'a self, mut state: MutexGuard<'a, State>, place: u16) -> MutexGuard<'a, State> {
        let Some(mut given) = state.given[usize::from(place)].take() else {
            return state;
        };
        let pair = state.pair_of(&given);
        given.is_aborted = true;
        state.given[usize::from(place)] = Some(given);
        state.aborting = Some(place);
        drop(state);
        log!("a command takes long: the controller is asked to abort it");
        let asked = self.admin.lock().run(&command::abort(pair, place), pause);
        let mut state = self.state.lock();
        state.aborting = None;
        if state.given[usize::from(place)].is_none() {
            state.free.push(place);
        }
        match asked {
            // Bit 0 says that it was too late, or not possible.
            Ok(result) if result & 1 == 1 => log!("it does not abort it"),
            Ok(_) => {}
            Err(error) if !state.gone => {
                log!("that was of no use: {error}");
                self.give_up(&mut state);
            }
            Err(_) => {}
        }
        state
    }
}

/// The place of a command that is there for longer than `limit`; of those that were not aborted, if
/// that is [`ABORT`].
fn late(state: &State, limit: u64) -> Option<u16> {
    let now = time::now();
    let is_late = |given: &Given| {
        now.saturating_sub(given.since) > limit && !(limit == ABORT && given.is_aborted)
    };
    let mut places = state.given.iter().zip(0..);
    let found = places.find(|(given, _)| given.as_ref().is_some_and(is_late));
    found.map(|(_, place)| place)
}
