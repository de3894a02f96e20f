//! What has died and is to be restarted: a list that never grows. The threads that work on it are
//! in [`supervise`](crate::supervise).
//!
//! When a domain dies there may be no memory for a thread, or for anything else; so list and
//! threads are made when `init` starts. Each supervised domain has a place in the list for the
//! number of the instance that died. A number that is overwritten by a later one was of an instance
//! before it, which is replaced by then.

use alloc::vec;
use domain_rt::sync::{Condvar, Mutex};
use manifest::{ByDomain, DomainIndex};

struct State {
    /// The instance of each domain that has died; 0: none.
    dead: ByDomain<u32>,
    /// Deaths were missed: all are to be looked at.
    all: bool,
    /// Nothing is done before.
    open: bool,
}

/// What there is to be done.
pub enum Work {
    /// The domain with this number, an instance of which has died.
    One(DomainIndex),
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
            state: Mutex::new(State {
                dead,
                all: false,
                open: false,
            }),
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

    /// From now on there is something to be done: before that a former life is taken over.
    pub fn open(&self) {
        self.state.lock().open = true;
        self.more.notify_all();
    }

    /// What is to be done next; waits until there is something.
    pub fn next(&self) -> Work {
        let mut state = self.state.lock();
        loop {
            if !state.open {
                (state, _) = self.more.wait(state);
                continue;
            }
            if core::mem::take(&mut state.all) {
                return Work::All;
            }
            let dead = state.dead.iter().find(|(_, id)| **id != 0);
            let dead = dead.map(|(index, _)| index);
            if let Some(index) = dead {
                state.dead[index] = 0;
                return Work::One(index);
            }
            (state, _) = self.more.wait(state);
        }
    }
}
