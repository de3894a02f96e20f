//! Content that is on its way to the device from pages of others.
//!
//! Who writes it has given it a place under the volume's lock, and waits without. Who has that lock
//! and wants to write what names the place waits here; so nobody takes it while he is on the way.

use domain_rt::sync::{Condvar, Mutex, Wait};
use ext2::DeviceError;

#[derive(Default)]
struct State {
    under_way: u32,
    /// Did not arrive, and what is in its place is still anything.
    failed: u32,
    /// Some has arrived, and may not be on the medium.
    unflushed: bool,
}

/// What is on its way.
#[derive(Default)]
pub struct Arrivals {
    state: Mutex<State>,
    changed: Condvar,
}

/// Some content, until it has arrived.
pub struct Arriving<'a> {
    arrivals: &'a Arrivals,
    has_failed: bool,
}

impl Arriving<'_> {
    /// It did not arrive. Nothing is written that names its place before
    /// [`cleared`](Arrivals::cleared).
    pub fn fail(mut self) {
        self.has_failed = true;
    }
}

impl Drop for Arriving<'_> {
    fn drop(&mut self) {
        let mut state = self.arrivals.state.lock();
        state.under_way -= 1;
        state.failed += u32::from(self.has_failed);
        state.unflushed = true;
        drop(state);
        self.arrivals.changed.notify_all();
    }
}

impl Arrivals {
    /// Something is on its way from now on.
    pub fn begin(&self) -> Arriving<'_> {
        self.state.lock().under_way += 1;
        Arriving {
            arrivals: self,
            has_failed: false,
        }
    }

    /// What failed is of no harm any more.
    pub fn cleared(&self) {
        self.state.lock().failed -= 1;
    }

    /// Waits until nothing is on its way; whether some may not be on the medium.
    ///
    /// # Errors
    /// Some has failed; this thread is ended.
    pub fn wait(&self) -> Result<bool, DeviceError> {
        let mut state = self.state.lock();
        while state.under_way > 0 {
            let wait;
            (state, wait) = self.changed.wait(state);
            if wait == Wait::Interrupted {
                return Err(DeviceError::Interrupted);
            }
        }
        match state.failed {
            0 => Ok(state.unflushed),
            _ => Err(DeviceError::Io),
        }
    }

    /// Has `flush` bring what has arrived to the medium.
    ///
    /// # Errors
    /// Those of `flush`.
    pub fn flush(
        &self,
        flush: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let had = core::mem::take(&mut self.state.lock().unflushed);
        let flushed = flush();
        if flushed.is_err() && had {
            self.state.lock().unflushed = true;
        }
        flushed
    }
}
