//! A request that the device gets: its pages are held.

use alloc::sync::Arc;

use domain_rt::log;
use interfaces::{
    BlockOperation, BlockOutcome, BlockRequest, DmaDirection, DmaWindow, Handle, MemoryError, RVec,
    RpcError,
};

use crate::check::has_data;

/// Bytes of a sector, and sectors of a page.
const SECTOR: u64 = 512;
const SECTORS_OF_PAGE: u64 = 8;

/// Room for the addresses of a request's pages.
pub struct Room {
    room: Option<RVec<u64>>,
    most: usize,
}

impl Room {
    /// For so many pages. It takes its memory when it is used first.
    pub fn new(most: usize) -> Self {
        Room { room: None, most }
    }

    fn take(&mut self) -> Result<RVec<u64>, BlockOutcome> {
        match self.room.take() {
            Some(room) => Ok(room),
            None => RVec::filled(0, self.most).map_err(|_| BlockOutcome::NoMemory),
        }
    }

    /// A hold that was refused has kept the room: another one is made now, so that it is there when
    /// memory is short.
    fn mend(&mut self) {
        self.room = RVec::filled(0, self.most).ok();
    }
}

/// A request between the book and the device. It has to come back by [`Lanes::exchange`].
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
    pub(crate) lane: u64,
    pub(crate) number: u64,
    pub(crate) window: Option<Arc<Handle<dyn DmaWindow>>>,
    pub(crate) hold: Option<u64>,
    /// How it has ended.
    pub(crate) outcome: Option<BlockOutcome>,
}

impl Job {
    /// Has the device hold the pages of a request with data, and shows them to `describe`, which
    /// has the addresses of all of them and the offset in the first where the bytes begin. If that
    /// fails they are released.
    ///
    /// # Errors
    /// The answer to the request.
    pub fn hold(
        &mut self,
        room: &mut Room,
        describe: impl FnOnce(&[u64], u64) -> Result<(), BlockOutcome>,
    ) -> Result<(), BlockOutcome> {
        let request = &self.request;
        let window = self.window.as_ref().ok_or(BlockOutcome::BadSlot)?;
        let direction = match request.operation {
            BlockOperation::Read => DmaDirection::FromDevice,
            _ => DmaDirection::ToDevice,
        };
        let inside = request.at % SECTORS_OF_PAGE;
        let pages = (inside + u64::from(request.sectors)).div_ceil(SECTORS_OF_PAGE);
        let first = request.at / SECTORS_OF_PAGE;
        let held = window.hold(first, pages, direction, room.take()?);
        let (addresses, hold) = match held {
            Ok(held) => held,
            Err(error) => {
                room.mend();
                return Err(outcome(error));
            }
        };
        self.hold = Some(hold);
        let described = match addresses.get(..pages as usize) {
            Some(addresses) => describe(addresses, inside * SECTOR),
            None => Err(BlockOutcome::Memory),
        };
        room.room = Some(addresses);
        described.inspect_err(|_| self.release())
    }

    /// The device does not use its memory any more.
    pub fn release(&mut self) {
        if let Some((window, hold)) = self.window.as_ref().zip(self.hold.take())
            && let Err(error) = window.release(hold)
        {
            log!("pages were not released: {error:?}");
        }
    }

    /// Its window is not needed any more either.
    pub(crate) fn let_go(&mut self) {
        self.release();
        self.window = None;
    }

    /// Whether the bytes of the request are in a memory object.
    pub fn has_data(&self) -> bool {
        has_data(self.request.operation)
    }
}

fn outcome(error: MemoryError) -> BlockOutcome {
    match error {
        MemoryError::Rpc(RpcError::NoMemory | RpcError::Busy) => BlockOutcome::NoMemory,
        _ => BlockOutcome::Memory,
    }
}
