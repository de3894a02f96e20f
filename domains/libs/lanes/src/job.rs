//! A request that the device gets.

use core::mem;

use interfaces::{BlockOperation, BlockRequest, DmaDirection, DmaRun};

use crate::check::has_data;

/// Bytes of a sector, and sectors of a page.
const SECTOR: u64 = 512;
const SECTORS_OF_PAGE: u64 = 8;
/// Nothing that is held has this number: the kernel's are small in their lower half.
pub(crate) const NO_HOLD: u64 = u64::MAX;

/// A request between the lane and the device. It has to come back by [`Lanes::exchange`].
///
/// [`Lanes::exchange`]: crate::Lanes::exchange
pub struct Job {
    /// What is asked.
    pub request: BlockRequest,
    /// When it was taken: how often [`Lanes::watch`] had looked.
    ///
    /// [`Lanes::watch`]: crate::Lanes::watch
    pub since: u64,
    /// What the driver likes to note. At first it is false.
    pub mark: bool,
    /// The number of what it holds, or [`NO_HOLD`].
    pub(crate) hold: u64,
}

impl Job {
    /// What a place has that was never used.
    pub(crate) const NONE: Job = Job {
        request: BlockRequest {
            tag: 0,
            operation: BlockOperation::Flush,
            sector: 0,
            sectors: 0,
            slot: 0,
            at: 0,
            durable: false,
            barrier: false,
        },
        since: 0,
        mark: false,
        hold: NO_HOLD,
    };

    /// The pages of a request with data, for the device to hold.
    #[inline]
    pub(crate) fn run(&self) -> DmaRun {
        let request = &self.request;
        let inside = request.at % SECTORS_OF_PAGE + u64::from(request.sectors);
        DmaRun {
            first: request.at / SECTORS_OF_PAGE,
            pages: inside.div_ceil(SECTORS_OF_PAGE),
            direction: match request.operation {
                BlockOperation::Read => DmaDirection::FromDevice,
                _ => DmaDirection::ToDevice,
            },
            hold: 0,
        }
    }

    /// Where in the first page its bytes begin.
    #[inline]
    pub(crate) fn inside(&self) -> u64 {
        self.request.at % SECTORS_OF_PAGE * SECTOR
    }

    /// What it holds, which it does not any more.
    #[inline]
    pub(crate) fn take_hold(&mut self) -> Option<u64> {
        let hold = mem::replace(&mut self.hold, NO_HOLD);
        (hold != NO_HOLD).then_some(hold)
    }

    /// Whether the bytes of the request are in a memory object.
    #[inline]
    pub fn has_data(&self) -> bool {
        has_data(self.request.operation)
    }
}
