//! A lock that is given in the order in which it was asked for.
//!
//! The runtime's `Mutex` goes to whoever comes first when it is free, so a thread that does one
//! operation after the other can keep all others out. Here each asks for a turn, and turns come in
//! their order. A thread that is interrupted while it waits (somebody it works for was ended) gives
//! its turn up and goes the `Mutex`'s way, so that dead callers hold nobody up.
//!
//! Whose turn comes is woken, and nobody else but those whose turns share a seat with it.

use alloc::collections::BTreeSet;
use core::ops::{Deref, DerefMut};
use domain_rt::sync::{Condvar, Mutex, MutexGuard, Wait};
use meter::Meter;

/// Where threads wait.
const SEATS: usize = 16;

/// Turns: guarded by the lock of [`FairMutex::turns`].
#[derive(Default)]
struct Turns {
    /// The next one that is given out.
    next: u64,
    /// Whose turn it is.
    present: u64,
    /// Those that were given up.
    given_up: BTreeSet<u64>,
}

impl Turns {
    fn go_on(&mut self) {
        self.present += 1;
        while self.given_up.remove(&self.present) {
            self.present += 1;
        }
    }
}

fn seat(seats: &[Condvar; SEATS], turn: u64) -> &Condvar {
    &seats[turn as usize % SEATS]
}

/// Data behind a fair lock.
pub struct FairMutex<T> {
    turns: Mutex<Turns>,
    /// Who has turn `n` waits at seat `n % SEATS`.
    came: [Condvar; SEATS],
    data: Mutex<T>,
    /// Somebody who had no turn has given the data back. Notified with the turns locked.
    left: Condvar,
    /// How long the lock is held.
    pub meter: Meter,
}

impl<T> FairMutex<T> {
    /// A free lock.
    pub fn new(data: T, meter: Meter) -> Self {
        FairMutex {
            turns: Mutex::new(Turns::default()),
            came: [const { Condvar::new() }; SEATS],
            data: Mutex::new(data),
            left: Condvar::new(),
            meter,
        }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> FairGuard<'_, T> {
        let has_turn = self.wait_for_turn(None) == Wait::Woken;
        let data = self.data.lock();
        self.guard(has_turn, data)
    }

    /// Waits for the lock, until `deadline` at most.
    ///
    /// # Errors
    /// How the wait ended otherwise.
    pub fn lock_until(&self, deadline: u64) -> Result<FairGuard<'_, T>, Wait> {
        match self.wait_for_turn(Some(deadline)) {
            Wait::Woken => {}
            other => return Err(other),
        }
        // Nobody else has a turn now, but who has given his up may have the data.
        let mut turns = self.turns.lock();
        loop {
            if let Some(data) = self.data.try_lock() {
                drop(turns);
                return Ok(self.guard(true, data));
            }
            let wait;
            (turns, wait) = self.left.wait_until(turns, deadline);
            if wait != Wait::Woken {
                self.end_turn(turns);
                return Err(wait);
            }
        }
    }

    fn guard<'a>(&'a self, has_turn: bool, data: MutexGuard<'a, T>) -> FairGuard<'a, T> {
        self.meter.begin();
        FairGuard {
            lock: self,
            has_turn,
            data: Some(data),
        }
    }

    /// `Woken`: the turn has come. It was given up if not.
    fn wait_for_turn(&self, deadline: Option<u64>) -> Wait {
        let mut turns = self.turns.lock();
        let own = turns.next;
        turns.next += 1;
        while turns.present != own {
            let wait;
            let seat = seat(&self.came, own);
            (turns, wait) = match deadline {
                None => seat.wait(turns),
                Some(deadline) => seat.wait_until(turns, deadline),
            };
            if wait != Wait::Woken && turns.present != own {
                turns.given_up.insert(own);
                return wait;
            }
        }
        Wait::Woken
    }

    /// It is the next one's turn.
    fn end_turn(&self, mut turns: MutexGuard<'_, Turns>) {
        turns.go_on();
        let next = (turns.present != turns.next).then_some(turns.present);
        drop(turns);
        if let Some(next) = next {
            seat(&self.came, next).notify_all();
        }
    }
}

/// The right to use the data. Dropping it unlocks.
pub struct FairGuard<'a, T> {
    lock: &'a FairMutex<T>,
    has_turn: bool,
    data: Option<MutexGuard<'a, T>>,
}

impl<T> Deref for FairGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.data.as_ref().expect("it is held until it is dropped")
    }
}

impl<T> DerefMut for FairGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.data.as_mut().expect("it is held until it is dropped")
    }
}

impl<T> Drop for FairGuard<'_, T> {
    fn drop(&mut self) {
        let lock = self.lock;
        lock.meter.end();
        // First the data, so that whose turn comes finds it free.
        drop(self.data.take());
        let turns = lock.turns.lock();
        match self.has_turn {
            true => lock.end_turn(turns),
            false => lock.left.notify_all(),
        }
    }
}
