//! The calls by which the device holds pages of jobs and releases them: of a batch of jobs at once.

use alloc::sync::Arc;
use alloc::vec::Vec;

use domain_rt::log;
use interfaces::{
    BlockOutcome, DmaDirection, DmaRun, DmaWindow, Handle, MemoryError, RVec, RpcError,
};

use crate::job::{Job, NO_HOLD};

/// Jobs whose pages are held or released by one call.
pub(crate) const AT_ONCE: usize = 64;
/// What the devices of a driver hold at most: the kernel bounds it.
const MOST_HOLDS: usize = 1024;
/// What a job without data has.
pub(crate) const NO_RUN: DmaRun = DmaRun {
    first: 0,
    pages: 0,
    direction: DmaDirection::ToDevice,
    hold: NO_HOLD,
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
    /// Releases the first `count` of them. False: nothing was released; it is to be tried again.
    fn release(&mut self, window: &Window, count: u32) -> bool;
    /// Numbers that are to be tried again. There are no more of them than it has room for.
    fn late(&mut self) -> &mut Vec<u64>;
}

/// Has the pages of jobs ready to be held by one call: of those that have data, and as there is
/// room; of how many.
///
/// # Errors
/// The answer to the first.
#[inline]
pub(crate) fn gather<'a>(
    calls: &mut impl Calls,
    jobs: impl Iterator<Item = &'a Job>,
) -> Result<u32, BlockOutcome> {
    let (runs, most) = calls.runs()?;
    let (mut count, mut pages) = (0, 0);
    for (job, place) in jobs.zip(runs) {
        let run = job.run();
        pages += run.pages;
        if pages > most || !job.has_data() {
            break;
        }
        *place = run;
        count += 1;
    }
    Ok(count)
}

/// What is held: of each run the number, and the addresses of all their pages.
pub(crate) struct Held<'a> {
    pub(crate) runs: &'a [DmaRun],
    pub(crate) addresses: &'a [u64],
    /// The answer to the first request for which there is none.
    pub(crate) refused: BlockOutcome,
}

impl Default for Held<'_> {
    fn default() -> Self {
        Self::new(&[], &[])
    }
}

impl<'a> Held<'a> {
    pub(crate) fn new(runs: &'a [DmaRun], addresses: &'a [u64]) -> Self {
        let refused = BlockOutcome::Memory;
        Held {
            runs,
            addresses,
            refused,
        }
    }

    /// Nothing, and why.
    pub(crate) fn refused(refused: BlockOutcome) -> Self {
        let nothing = Held::default();
        Held { refused, ..nothing }
    }
}

/// Releases what is held, as much of it by one call as can be. Any window of the device does. Who
/// calls may have too little stack left for that: then it is done by who comes next.
#[inline]
pub(crate) fn release(
    calls: &mut impl Calls,
    window: &Window,
    mut held: impl Iterator<Item = u64>,
) {
    let mut is_late = false;
    loop {
        let mut count = 0;
        for (place, hold) in calls.holds().iter_mut().zip(&mut held) {
            *place = hold;
            count += 1;
        }
        if count > 0 && !calls.release(window, count) {
            is_late = true;
            keep(calls, count as usize);
        }
        if count < AT_ONCE as u32 {
            break;
        }
    }
    if !is_late && !calls.late().is_empty() {
        release_late(calls, window);
    }
}

/// Keeps the numbers of what was not released.
#[cold]
fn keep(calls: &mut impl Calls, count: usize) {
    for index in 0..count {
        let hold = calls.holds()[index];
        let late = calls.late();
        if late.len() == late.capacity() {
            // The kernel lends no driver so much.
            log!("pages stay held: there is no room for their number");
            return;
        }
        late.push(hold);
    }
}

#[cold]
fn release_late(calls: &mut impl Calls, window: &Window) {
    loop {
        let mut count = 0;
        for index in (0..calls.late().len()).rev().take(AT_ONCE) {
            calls.holds()[count] = calls.late()[index];
            count += 1;
        }
        if count == 0 || !calls.release(window, count as u32) {
            return;
        }
        let rest = calls.late().len() - count;
        calls.late().truncate(rest);
    }
}

/// The calls of a driver.
pub struct Room {
    asked: Option<Asked>,
    /// Pages of a request.
    most: usize,
    /// It is there from the start: a release must not fail for want of memory.
    holds: RVec<u64>,
    late: Vec<u64>,
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
        let mut late = Vec::new();
        let reserved = late.try_reserve_exact(MOST_HOLDS);
        reserved.map_err(|_| RpcError::NoMemory)?;
        Ok(Room {
            asked: None,
            most,
            holds: RVec::filled(0, AT_ONCE)?,
            late,
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
                let runs = asked.runs.get(..held as usize);
                Ok(Held::new(runs.unwrap_or_default(), &asked.addresses))
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

    fn release(&mut self, window: &Window, count: u32) -> bool {
        let Err(error) = window.release(&self.holds, count) else {
            return true;
        };
        log!("pages were not released: {error:?}");
        // Of a call that was not made nothing was done.
        !matches!(error, MemoryError::Rpc(_))
    }

    fn late(&mut self) -> &mut Vec<u64> {
        &mut self.late
    }
}

fn outcome(error: MemoryError) -> BlockOutcome {
    match error {
        MemoryError::Rpc(RpcError::NoMemory | RpcError::Busy | RpcError::StackLow) => {
            BlockOutcome::NoMemory
        }
        _ => BlockOutcome::Memory,
    }
}
