//! Pipes: the pure state of `lib/unix/pipe` with a lock and waits, and the two ends as
//! descriptions.

use alloc::sync::Arc;
use domain_rt::memory;
use domain_rt::sync::{Condvar, Mutex, Wait};
use interfaces::{Errno, RVec, RpcError};
use pipe::{Blocked, End, Pipe};

use crate::errors;
use crate::ledger::{Charge, Ledger, PIPE};

struct Shared {
    pipe: Mutex<Charged>,
    /// Notified when bytes come or go and when an end is closed.
    changed: Condvar,
}

/// A pipe, and what its maker's job is charged for it.
struct Charged {
    pipe: Pipe,
    charge: Charge,
}

impl Charged {
    fn write(&mut self, data: &[u8]) -> Result<usize, Blocked> {
        let Charged { pipe, charge } = self;
        // Writing is let in when memory is short, but the reserve is not for what is written.
        let may_have = |bytes| !memory::is_short() && charge.set(PIPE + bytes);
        pipe.write_charged(data, may_have)
    }

    fn close(&mut self, end: End) {
        self.pipe.close(end);
        self.charge.set(PIPE + self.pipe.memory());
    }
}

/// One end of a pipe. Dropping it closes it.
pub struct PipeEnd {
    shared: Arc<Shared>,
    end: End,
}

/// A new pipe: the end to read from, the end to write to.
///
/// # Errors
/// `NoMemory` if the job has so much already.
pub fn new(ledger: &Arc<Ledger>) -> Result<(PipeEnd, PipeEnd), Errno> {
    let charge = Charge::new(ledger, PIPE)?;
    let shared = Arc::new(Shared {
        pipe: Mutex::new(Charged {
            pipe: Pipe::new(),
            charge,
        }),
        changed: Condvar::new(),
    });
    let reader = PipeEnd {
        shared: shared.clone(),
        end: End::Read,
    };
    let writer = PipeEnd {
        shared,
        end: End::Write,
    };
    Ok((reader, writer))
}

impl PipeEnd {
    /// Reads what there is, and waits for it if there is nothing; an empty buffer at the end.
    ///
    /// # Errors
    /// `BadDescriptor` at the wrong end; `Interrupted` if the process is ended while it waits.
    pub fn read(&self, mut buffer: RVec<u8>) -> Result<RVec<u8>, Errno> {
        if self.end != End::Read {
            return Err(Errno::BadDescriptor);
        }
        let count = self.retry(|pipe| pipe.pipe.read(&mut buffer))?;
        Ok(buffer.truncated(count))
    }

    /// Writes all of `data`, and waits for room.
    ///
    /// # Errors
    /// `BrokenPipe`; as [`read`](Self::read). Part of it may have been written.
    pub fn write(&self, data: &[u8]) -> Result<u64, Errno> {
        if self.end != End::Write {
            return Err(Errno::BadDescriptor);
        }
        let mut written = 0;
        loop {
            written += self.retry(|pipe| pipe.write(&data[written..]))?;
            if written == data.len() {
                return Ok(written as u64);
            }
        }
    }

    /// Does something with the pipe as soon as it can be done.
    fn retry(
        &self,
        mut attempt: impl FnMut(&mut Charged) -> Result<usize, Blocked>,
    ) -> Result<usize, Errno> {
        let mut pipe = self.shared.pipe.lock();
        loop {
            match attempt(&mut pipe) {
                Ok(count) => {
                    drop(pipe);
                    self.shared.changed.notify_all();
                    return Ok(count);
                }
                Err(Blocked::Broken) => return Err(Errno::BrokenPipe),
                Err(Blocked::NoMemory) => return Err(Errno::Rpc(RpcError::NoMemory)),
                Err(Blocked::Wait) => {}
            }
            let (guard, wait) = self.shared.changed.wait(pipe);
            if wait == Wait::Interrupted {
                return Err(errors::INTERRUPTED);
            }
            pipe = guard;
        }
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.shared.pipe.lock().close(self.end);
        self.shared.changed.notify_all();
    }
}
