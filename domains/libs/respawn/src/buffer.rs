//! A buffer that a call takes with it when it is lost in a crash.

use interfaces::{RVec, RpcResult};

/// A buffer for a question that may have to be asked again: the first time the client's own.
pub struct Buffer {
    given: Option<RVec<u8>>,
    length: usize,
}

impl Buffer {
    /// The client's.
    pub fn new(given: RVec<u8>) -> Self {
        Buffer {
            length: given.len(),
            given: Some(given),
        }
    }

    /// One for the next attempt, as long as the client's was.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn take(&mut self) -> RpcResult<RVec<u8>> {
        match self.given.take() {
            Some(buffer) => Ok(buffer),
            None => RVec::filled(0, self.length),
        }
    }
}
