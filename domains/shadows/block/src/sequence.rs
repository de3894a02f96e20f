//! Sequences of writes that come to their end although whoever asked for them dies.
//!
//! What is added belongs to this domain from then on. One thread of its own carries sequences out,
//! one at a time, so it is not touched by the death of a caller; the caller only waits for it.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::log;
use domain_rt::sync::{Condvar, Mutex, Wait};
use interfaces::{BlockError, Extent, RVec, RpcError, RpcResult, WriteSequence, extents};

use crate::Way;

/// Most requests in one sequence, and most bytes: so much that a file system should have brought it
/// to the disk long before.
const MOST: usize = 4096;
const MOST_BYTES: usize = 64 << 20;

/// One request.
struct Part {
    extents: RVec<Extent>,
    data: RVec<u8>,
    flush: bool,
}

impl Part {
    fn write(&self, way: &Way) -> Result<(), BlockError> {
        if !self.extents.is_empty() {
            way.run(|device| device.write_extents(&self.extents, &self.data))?;
        }
        match self.flush {
            true => way.run(|device| device.flush()),
            false => Ok(()),
        }
    }
}

/// A sequence that is being carried out, or waits for that.
struct Job {
    parts: Vec<Part>,
    outcome: Mutex<Option<Result<(), BlockError>>>,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Arc<Job>>,
    /// One is being carried out.
    busy: bool,
}

/// The sequences that were begun.
#[derive(Default)]
pub struct Writer {
    jobs: Mutex<Jobs>,
    begun: Condvar,
    ended: Condvar,
}

impl Writer {
    /// The body of the thread that carries sequences out.
    pub fn work(&self, way: &Way) {
        loop {
            let Some(job) = self.next() else { return };
            let outcome = job.parts.iter().try_for_each(|part| part.write(way));
            if let Err(error) = &outcome {
                log!("a sequence of {} writes failed: {error:?}", job.parts.len());
            }
            *job.outcome.lock() = Some(outcome);
            self.jobs.lock().busy = false;
            self.ended.notify_all();
        }
    }

    /// The next sequence. None if the thread is to end.
    fn next(&self) -> Option<Arc<Job>> {
        let mut jobs = self.jobs.lock();
        loop {
            if let Some(job) = jobs.waiting.pop_front() {
                jobs.busy = true;
                return Some(job);
            }
            let wait;
            (jobs, wait) = self.begun.wait(jobs);
            if wait == Wait::Interrupted {
                return None;
            }
        }
    }

    /// Returns when nothing is being carried out.
    ///
    /// # Errors
    /// [`RpcError::Interrupted`] if the caller is ended.
    pub fn quiet(&self) -> RpcResult<()> {
        self.wait_until(|jobs| !jobs.busy && jobs.waiting.is_empty())
    }

    /// Has `parts` written. If the caller is ended meanwhile, that goes on.
    fn carry_out(&self, parts: Vec<Part>) -> Result<(), BlockError> {
        let job = Arc::new(Job {
            parts,
            outcome: Mutex::new(None),
        });
        self.jobs.lock().waiting.push_back(job.clone());
        self.begun.notify_one();
        self.wait_until(|_| job.outcome.lock().is_some())?;
        let outcome = job.outcome.lock().take();
        outcome.expect("it was there, and nobody else takes it")
    }

    fn wait_until(&self, mut done: impl FnMut(&Jobs) -> bool) -> RpcResult<()> {
        let mut jobs = self.jobs.lock();
        while !done(&jobs) {
            let wait;
            (jobs, wait) = self.ended.wait(jobs);
            if wait == Wait::Interrupted {
                return Err(RpcError::Interrupted);
            }
        }
        Ok(())
    }
}

/// A sequence that is being put together. If its owner dies, it is forgotten.
pub struct Sequence {
    writer: Arc<Writer>,
    parts: Mutex<Vec<Part>>,
}

impl Sequence {
    /// An empty one.
    pub fn new(writer: Arc<Writer>) -> Self {
        Sequence {
            writer,
            parts: Mutex::default(),
        }
    }
}

impl WriteSequence for Sequence {
    fn add(&self, extents: RVec<Extent>, data: RVec<u8>, flush: bool) -> Result<(), BlockError> {
        // Nothing is written yet, but whoever asks for nonsense should hear it.
        extents::parts(&extents, &data).map(|_| ())?;
        let mut parts = self.parts.lock();
        let bytes: usize = parts.iter().map(|part| part.data.len()).sum();
        if parts.len() >= MOST || bytes + data.len() > MOST_BYTES {
            return Err(BlockError::OutOfRange);
        }
        parts.push(Part {
            extents,
            data,
            flush,
        });
        Ok(())
    }

    fn carry_out(&self) -> Result<(), BlockError> {
        let parts = core::mem::take(&mut *self.parts.lock());
        self.writer.carry_out(parts)
    }
}
