//! Received bytes, and who waits for them.

use domain_rt::sync::{Condvar, Mutex, Wait};
use interfaces::{RVec, RpcError, RpcResult};
use uart::Ring;

/// Received bytes that nobody has read yet.
pub struct Input {
    ring: Mutex<Ring<4096>>,
    arrived: Condvar,
}

impl Input {
    /// Nothing yet.
    pub fn new() -> Self {
        Input {
            ring: Mutex::new(Ring::new()),
            arrived: Condvar::new(),
        }
    }

    /// Adds bytes; what does not fit is lost.
    pub fn push(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.ring.lock().push(bytes);
            self.arrived.notify_all();
        }
    }

    /// Waits for bytes; as many as there are and fit. An empty buffer is given back at once.
    ///
    /// # Errors
    /// [`RpcError::Interrupted`]; nothing was taken.
    pub fn read(&self, mut buffer: RVec<u8>) -> RpcResult<RVec<u8>> {
        let mut ring = self.ring.lock();
        while ring.is_empty() && !buffer.is_empty() {
            let wait;
            (ring, wait) = self.arrived.wait(ring);
            if wait == Wait::Interrupted {
                return Err(RpcError::Interrupted);
            }
        }
        let count = ring.pop(&mut buffer);
        drop(ring);
        Ok(buffer.truncated(count))
    }
}
