//! The calls by which the device holds pages of jobs and releases them: of a batch of jobs at once.

use alloc::sync::Arc;

use domain_rt::log;
use interfaces::{
    BlockOutcome, DmaDirection, DmaRun, DmaWindow, Handle, MemoryError, RVec, RpcError,
};

use crate::job::Job;

/// Jobs whose pages are held or released by one call.
pub(crate) const AT_ONCE: usize = 64;
const NO_RUN: DmaRun = DmaRun {
    first: 0,
    pages: 0,
    direction: DmaDirection::ToDevice,
    hold: 0,
};

/// A window, for as long as somebody has it.
pub(crate) type Window = Arc<Handle<dyn DmaWindow>>;

/// The calls, and room for what goes with them. Tests have other ones.
pub(crate) trait Calls {
    /// Room for the runs of pages that are to be held, and how many pages that may be.
    ///
    /// # Errors
    /// There is none.
    fn runs(&mut self) -> Result<(&mut [DmaRun], u64), BlockOutcome>;
    /// Holds the first `count` of them.
    ///
    /// # Errors
    /// The answer to the first.
    fn hold(&mut self, window: &Window, count: u32) -> Result<Held<'_>, BlockOutcome>;
    /// Room for the numbers of what is to be released.
    fn holds(&mut self) -> &mut [u64];
    /// Releases the first `count` of them.
    fn release(&mut self, window: &Window, count: u32);
}

/// Has the pages of jobs ready to be held by one call: of those that are of the window of the
/// first, and as there is room. That window, and of how many jobs.
///
/// # Errors
/// The answer to the first.
pub(crate) fn gather<'a>(
    calls: &mut impl Calls,
    jobs: impl Iterator<Item = &'a Job>,
) -> Result<(&'a Window, u32), BlockOutcome> {
    let (runs, most) = calls.runs()?;
    let (mut window, mut count, mut pages) = (None::<&Window>, 0, 0);
    for (job, place) in jobs.zip(runs) {
        let Some(own) = &job.window else { break };
        let run = job.run();
        pages += run.pages;
        let is_same = window.is_none_or(|window| Arc::ptr_eq(window, own));
        if !is_same || pages > most {
            break;
        }
        (*place, window, count) = (run, Some(own), count + 1);
    }
    let window = window.ok_or(BlockOutcome::BadSlot)?;
    Ok((window, count))
}

/// What is held: of each run the number, and the addresses of all their pages.
pub(crate) struct Held<'a> {
    pub(crate) runs: &'a [DmaRun],
    pub(crate) addresses: &'a [u64],
}

impl<'a> Held<'a> {
    /// The next run: its number, and the addresses of its pages.
    pub(crate) fn next(&mut self) -> Option<(u64, &'a [u64])> {
        let (run, runs) = self.runs.split_first()?;
        let (pages, addresses) = self.addresses.split_at_checked(run.pages as usize)?;
        (self.runs, self.addresses) = (runs, addresses);
        Some((run.hold, pages))
    }
}

/// Releases what jobs hold, as many of them by one call as can be.
pub(crate) struct Release<'c, C: Calls> {
    calls: &'c mut C,
    count: usize,
    /// A window of the device, if there is something to be released. Any of them does.
    window: Option<Window>,
}

impl<'c, C: Calls> Release<'c, C> {
    pub(crate) fn new(calls: &'c mut C) -> Self {
        let (count, window) = (0, None);
        Release {
            calls,
            count,
            window,
        }
    }

    /// The device does not use the memory of this job any more.
    pub(crate) fn add(&mut self, job: &mut Job) {
        let window = job.window.take();
        let Some((window, hold)) = window.zip(job.hold.take()) else {
            return;
        };
        let holds = self.calls.holds();
        holds[self.count] = hold;
        let is_full = self.count + 1 == holds.len();
        self.count += 1;
        self.window = Some(window);
        if is_full {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Some(window) = self.window.take() {
            self.calls.release(&window, self.count as u32);
        }
        self.count = 0;
    }
}

impl<C: Calls> Drop for Release<'_, C> {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The calls of a driver.
pub struct Room {
    asked: Option<Asked>,
    /// Pages of a request.
    most: usize,
    /// It is there from the start: a release must not fail for want of memory.
    holds: RVec<u64>,
}

struct Asked {
    runs: RVec<DmaRun>,
    addresses: RVec<u64>,
}

impl Asked {
    fn new(most: usize) -> Result<Self, RpcError> {
        Ok(Asked {
            runs: RVec::filled(NO_RUN, AT_ONCE)?,
            addresses: RVec::filled(0, most.max(AT_ONCE))?,
        })
    }
}

impl Room {
    /// For requests of so many pages. Some of its memory it takes when it is used first.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub fn new(most: usize) -> Result<Self, RpcError> {
        Ok(Room {
            asked: None,
            most,
            holds: RVec::filled(0, AT_ONCE)?,
        })
    }
}

impl Calls for Room {
    fn runs(&mut self) -> Result<(&mut [DmaRun], u64), BlockOutcome> {
        if self.asked.is_none() {
            let asked = Asked::new(self.most).map_err(|_| BlockOutcome::NoMemory)?;
            self.asked = Some(asked);
        }
        let asked = self.asked.as_mut().ok_or(BlockOutcome::NoMemory)?;
        Ok((&mut asked.runs, asked.addresses.len() as u64))
    }

    fn hold(&mut self, window: &Window, count: u32) -> Result<Held<'_>, BlockOutcome> {
        let asked = self.asked.take().ok_or(BlockOutcome::NoMemory)?;
        match window.hold(asked.runs, count, asked.addresses) {
            Ok((runs, addresses, held)) => {
                let asked = self.asked.insert(Asked { runs, addresses });
                Ok(Held {
                    runs: asked.runs.get(..held as usize).unwrap_or_default(),
                    addresses: &asked.addresses,
                })
            }
            Err(error) => {
                // It has kept the room: another one is made now, so that it is there when memory is
                // short.
                self.asked = Asked::new(self.most).ok();
                Err(outcome(error))
            }
        }
    }

    fn holds(&mut self) -> &mut [u64] {
        &mut self.holds
    }

    fn release(&mut self, window: &Window, count: u32) {
        if let Err(error) = window.release(&self.holds, count) {
            log!("pages were not released: {error:?}");
        }
    }
}

fn outcome(error: MemoryError) -> BlockOutcome {
    match error {
        MemoryError::Rpc(RpcError::NoMemory | RpcError::Busy) => BlockOutcome::NoMemory,
        _ => BlockOutcome::Memory,
    }
}
