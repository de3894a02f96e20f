//! Who restarts what has died: threads that are there from the start, with a list that never grows.
//!
//! When a domain dies there may be no memory for a thread, or for anything else; so both are made
//! when `init` starts. Each supervised domain has a place in the list for the number of the
//! instance that died. A number that is overwritten by a later one was of an instance before it,
//! which is replaced by then.

use crate::supervise::revive;
use crate::system::System;
use alloc::sync::Arc;
use alloc::vec;
use domain_rt::sync::{Condvar, Mutex};
use domain_rt::{thread, time};
use interfaces::RpcResult;
use manifest::{ByDomain, DomainIndex};

/// Threads that restart domains. A start may take long, and another domain is not to wait for it;
/// but one that needs the former has to, whoever starts it.
const WORKERS: usize = 4;

/// When there was no memory, how long until all domains are looked at again, in nanoseconds.
const RETRY_AFTER: u64 = 1_000_000_000;

struct State {
    /// The instance of each domain that has died; 0: none.
    dead: ByDomain<u32>,
    /// Deaths were missed: all are to be looked at.
    all: bool,
}

/// What there is to be done.
enum Work {
    /// The domain with this number; the instance that died.
    One(DomainIndex, u32),
    /// All.
    All,
}

/// The list.
pub struct Restarts {
    state: Mutex<State>,
    more: Condvar,
}

impl Restarts {
    /// An empty list for so many domains.
    pub fn new(count: usize) -> Self {
        let dead = ByDomain::new(vec![0; count]);
        Restarts {
            state: Mutex::new(State { dead, all: false }),
            more: Condvar::new(),
        }
    }

    /// Has the domain `index` restarted whose instance `id` has died.
    pub fn died(&self, index: DomainIndex, id: u32) {
        let mut state = self.state.lock();
        let place = &mut state.dead[index];
        *place = id.max(*place);
        drop(state);
        self.more.notify_one();
    }

    /// Has all domains looked at.
    pub fn look_at_all(&self) {
        self.state.lock().all = true;
        self.more.notify_one();
    }

    fn next(&self) -> Work {
        let mut state = self.state.lock();
        loop {
            if core::mem::take(&mut state.all) {
                return Work::All;
            }
            let dead = state.dead.iter().find(|(_, id)| **id != 0);
            let dead = dead.map(|(index, _)| index);
            if let Some(index) = dead {
                return Work::One(index, core::mem::take(&mut state.dead[index]));
            }
            (state, _) = self.more.wait(state);
        }
    }
}

/// Starts the threads.
///
/// # Errors
/// No memory.
pub fn start(system: &Arc<System>) -> RpcResult<()> {
    for _ in 0..WORKERS {
        let system = system.clone();
        thread::spawn("restart", move || work(&system))?;
    }
    Ok(())
}

fn work(system: &Arc<System>) {
    loop {
        let done = match system.restarts.next() {
            Work::One(index, id) => revive(system, Some((index, id))),
            Work::All => revive(system, None),
        };
        // Nobody may call the domain that there was no memory for.
        if !done {
            time::sleep(RETRY_AFTER);
            system.restarts.look_at_all();
        }
    }
}
