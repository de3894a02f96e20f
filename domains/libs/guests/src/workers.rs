//! Threads of a domain that run programs' threads, and wait a while for the next one when one
//! has ended: to begin one takes less than to make one.

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{thread, time};
use interfaces::RpcResult;

/// The most that wait, each with a stack, and how long, in nanoseconds.
const MOST_IDLE: usize = 16;
const PATIENCE: u64 = 1_000_000_000;

/// What such a thread runs.
pub trait Work: Send + 'static {
    /// Does it, to its end.
    fn work(self);
}

/// Those that wait.
pub struct Workers<W>(Mutex<Vec<Arc<Seat<W>>>>);

/// Where one of them waits.
struct Seat<W> {
    next: Mutex<Option<W>>,
    bell: Condvar,
}

impl<W: Work> Workers<W> {
    /// None yet.
    ///
    /// # Errors
    /// No memory.
    pub fn new() -> RpcResult<Self> {
        let mut idle = Vec::new();
        idle.try_reserve_exact(MOST_IDLE)
            .map_err(|_| interfaces::RpcError::NoMemory)?;
        Ok(Workers(Mutex::new(idle)))
    }

    /// Has somebody do `work`.
    ///
    /// # Errors
    /// There is no memory for a thread.
    pub fn run(self: &Arc<Self>, work: W) -> RpcResult<()> {
        let idle = self.0.lock().pop();
        if let Some(seat) = idle {
            *seat.next.lock() = Some(work);
            seat.bell.notify_one();
            return Ok(());
        }
        let workers = self.clone();
        thread::spawn("process", move || workers.serve(work))
    }

    /// Runs this thread, and then others as long as some come.
    fn serve(&self, mut work: W) {
        let seat = Arc::new(Seat {
            next: Mutex::new(None),
            bell: Condvar::new(),
        });
        loop {
            work.work();
            let mut idle = self.0.lock();
            if idle.len() == MOST_IDLE {
                return;
            }
            idle.push(seat.clone());
            drop(idle);
            match self.next(&seat) {
                Some(next) => work = next,
                None => return,
            }
        }
    }

    /// Waits for the next one, for a while.
    fn next(&self, seat: &Arc<Seat<W>>) -> Option<W> {
        let deadline = time::now() + PATIENCE;
        let mut next = seat.next.lock();
        loop {
            if let Some(work) = next.take() {
                return Some(work);
            }
            let (again, why) = seat.bell.wait_until(next, deadline);
            next = again;
            if why != Wait::Woken && next.is_none() && self.leaves(seat) {
                return None;
            }
        }
    }

    /// Takes the seat away, unless somebody has taken it to bring something.
    fn leaves(&self, seat: &Arc<Seat<W>>) -> bool {
        let mut idle = self.0.lock();
        let place = idle.iter().position(|it| Arc::ptr_eq(it, seat));
        place.map(|place| idle.remove(place)).is_some()
    }
}
