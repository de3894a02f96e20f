//! Reads and writes of a block device one after the other, by its queue: for tests and campaigns,
//! whose threads each want one thing at a time. Who has many requests at once, as a file system
//! has, uses the queue itself.
//!
//! A device has one queue, so a [`Line`] is shared: each of its users has room of its own in one
//! memory object, and a place for the answer to its request. Whoever looks for answers takes those
//! of the others along.
#![no_std]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use interfaces::{
    Block, BlockCompletion, BlockError, BlockOperation, BlockOutcome, BlockQueue, BlockRequest,
    Handle, MemoryError, MemoryObjects, QueueError, RVec, RpcError, VmoFill, VmoOwner, VmoRights,
    VmoView,
};

/// Bytes of a sector, and of a page.
const SECTOR: usize = 512;
const PAGE: usize = 4096;
/// The slot of the memory object.
const SLOT: u32 = 0;
/// Answers that are taken at once.
const ROOM: usize = 16;

/// Why something was not done.
#[derive(Clone, Copy, Debug)]
pub enum LineError {
    /// There is no queue to be had.
    Device(BlockError),
    /// The queue says so.
    Queue(QueueError),
    /// The answer to the request.
    Outcome(BlockOutcome),
    /// The memory object says so.
    Memory(MemoryError),
    /// More bytes than a user has room for, no whole number of sectors, or no such user.
    BadLength,
}

impl From<RpcError> for LineError {
    fn from(error: RpcError) -> Self {
        LineError::Queue(QueueError::Rpc(error))
    }
}

/// What the place of a user holds, besides the tag of his last request: that its answer is waited
/// for, or this and the number of its outcome.
const WAITED_FOR: u64 = 1;
const ANSWERED: u64 = 2;
/// Tags count in steps of so many, so that there is room for that.
const STEP: u64 = 16;

/// The queue of a device, for `USERS` users.
pub struct Line<const USERS: usize> {
    queue: Handle<dyn BlockQueue>,
    view: Handle<dyn VmoView>,
    /// It lives as long as its owner.
    _owner: Handle<dyn VmoOwner>,
    /// Bytes of a user's room.
    room: usize,
    places: [AtomicU64; USERS],
    /// The queue is of no use any more. What was submitted may still be under way, so nobody's room
    /// may be written to.
    is_lost: AtomicBool,
    pause: fn(),
}

impl<const USERS: usize> Line<USERS> {
    /// Opens the queue of `device` with room for `room` bytes of each user, which is rounded up to
    /// pages. `pause` is called while an answer is waited for.
    ///
    /// # Errors
    /// Those of the calls.
    pub fn open(
        device: &Handle<dyn Block>,
        objects: &Handle<dyn MemoryObjects>,
        room: usize,
        pause: fn(),
    ) -> Result<Self, LineError> {
        let pages = room.div_ceil(PAGE);
        let all = (pages * USERS) as u64;
        let owner = objects.create(all, VmoFill::Zero);
        let owner = owner.map_err(LineError::Memory)?;
        let rights = VmoRights {
            read: true,
            write: true,
            map: false,
            execute: false,
        };
        let view = owner.view(rights).map_err(LineError::Memory)?;
        let queue = device.open(None).map_err(LineError::Device)?;
        let registered = queue.register(SLOT, view.duplicate()?);
        registered.map_err(LineError::Queue)?;
        Ok(Line {
            queue,
            view,
            _owner: owner,
            room: pages * PAGE,
            places: [const { AtomicU64::new(0) }; USERS],
            is_lost: AtomicBool::new(false),
            pause,
        })
    }

    /// Fills `buffer` from `sector` on, on behalf of this user, who has no other request.
    ///
    /// # Errors
    /// See [`LineError`].
    pub fn read(&self, user: usize, sector: u64, buffer: &mut [u8]) -> Result<(), LineError> {
        self.transfer(user, BlockOperation::Read, sector, buffer.len())?;
        let room = RVec::zeroed(buffer.len())?;
        let read = self.view.read(self.offset(user), room);
        let (bytes, count) = read.map_err(LineError::Memory)?;
        match bytes.get(..buffer.len()) {
            Some(bytes) if count == buffer.len() as u64 => buffer.copy_from_slice(bytes),
            _ => return Err(LineError::Memory(MemoryError::Absent)),
        }
        Ok(())
    }

    /// Writes `data` from `sector` on, on behalf of this user, who has no other request. After an
    /// error any part of it may be written.
    ///
    /// # Errors
    /// See [`LineError`].
    pub fn write(&self, user: usize, sector: u64, data: &[u8]) -> Result<(), LineError> {
        if data.len() > self.room {
            return Err(LineError::BadLength);
        }
        if self.is_lost.load(Ordering::Acquire) {
            return Err(LineError::Queue(QueueError::Gone));
        }
        let written = self.view.write(self.offset(user), &RVec::from_slice(data)?);
        match written.map_err(LineError::Memory)? {
            count if count == data.len() as u64 => {}
            _ => return Err(LineError::Memory(MemoryError::Absent)),
        }
        self.transfer(user, BlockOperation::Write, sector, data.len())
    }

    /// Returns when what was written before is on stable storage.
    ///
    /// # Errors
    /// See [`LineError`].
    pub fn flush(&self, user: usize) -> Result<(), LineError> {
        self.transfer(user, BlockOperation::Flush, 0, 0)
    }

    /// Whether the queue is of use: neither fenced, nor without a device for good.
    pub fn is_alive(&self) -> bool {
        !self.is_lost.load(Ordering::Acquire) && self.queue.limits().is_ok()
    }

    fn offset(&self, user: usize) -> u64 {
        (user * self.room) as u64
    }

    /// Has one request carried out.
    fn transfer(
        &self,
        user: usize,
        operation: BlockOperation,
        sector: u64,
        bytes: usize,
    ) -> Result<(), LineError> {
        if bytes > self.room || !bytes.is_multiple_of(SECTOR) {
            return Err(LineError::BadLength);
        }
        let place = self.places.get(user).ok_or(LineError::BadLength)?;
        let tag = place.load(Ordering::Relaxed) / STEP * STEP + STEP;
        place.store(tag + WAITED_FOR, Ordering::Relaxed);
        let request = BlockRequest {
            // The tag says whose place it is, too.
            tag: tag * USERS as u64 + user as u64,
            operation,
            sector,
            sectors: (bytes / SECTOR) as u32,
            slot: SLOT,
            at: self.offset(user) / SECTOR as u64,
            durable: false,
            barrier: false,
        };
        let batch = RVec::from_slice(&[request])?;
        while self.submit(&batch)? == 0 {
            self.look()?;
            (self.pause)();
        }
        loop {
            self.look()?;
            match place.load(Ordering::Acquire) % STEP {
                WAITED_FOR => (self.pause)(),
                answer => return outcome(answer).map_or(Ok(()), |it| Err(LineError::Outcome(it))),
            }
        }
    }

    /// Takes all answers that there are. For want of memory it is none: the request is under way,
    /// so nothing else may be done with the user's room.
    fn look(&self) -> Result<(), LineError> {
        match self.take_answers() {
            Err(LineError::Queue(QueueError::Rpc(RpcError::NoMemory | RpcError::Busy))) => Ok(()),
            Err(error) => Err(self.lose(error)),
            Ok(()) => Ok(()),
        }
    }

    fn submit(&self, batch: &RVec<BlockRequest>) -> Result<u32, LineError> {
        match self.queue.submit(batch, 1) {
            // Nothing was taken.
            Err(QueueError::Rpc(error @ (RpcError::NoMemory | RpcError::Busy))) => {
                Err(error.into())
            }
            Err(error) => Err(self.lose(LineError::Queue(error))),
            Ok(taken) => Ok(taken),
        }
    }

    fn lose(&self, error: LineError) -> LineError {
        self.is_lost.store(true, Ordering::Release);
        error
    }

    fn take_answers(&self) -> Result<(), LineError> {
        let nothing = BlockCompletion {
            tag: 0,
            outcome: BlockOutcome::Done,
        };
        let mut room = RVec::filled(nothing, ROOM)?;
        loop {
            let count;
            let taken = self.queue.completions(room);
            (room, count) = taken.map_err(LineError::Queue)?;
            for answer in room.iter().take(count as usize) {
                let users = USERS as u64;
                let (tag, user) = (answer.tag / users, answer.tag % users);
                let answered = tag + ANSWERED + answer.outcome as u64;
                let _ = self.places[user as usize].compare_exchange(
                    tag + WAITED_FOR,
                    answered,
                    Ordering::Release,
                    Ordering::Relaxed,
                );
            }
            if (count as usize) < ROOM {
                return Ok(());
            }
        }
    }
}

/// What a place holds, if it was not done as asked.
fn outcome(answer: u64) -> Option<BlockOutcome> {
    let failures = [
        BlockOutcome::OutOfRange,
        BlockOutcome::Device,
        BlockOutcome::ReadOnly,
        BlockOutcome::Unsupported,
        BlockOutcome::BadSlot,
        BlockOutcome::Memory,
        BlockOutcome::NoMemory,
    ];
    let number = answer.wrapping_sub(ANSWERED);
    failures
        .into_iter()
        .find(|failure| *failure as u64 == number)
}
