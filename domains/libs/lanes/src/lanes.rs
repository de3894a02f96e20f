//! What the lines of a driver share: the lane under a lock, and the fence.

use core::sync::atomic::{AtomicBool, Ordering};

use domain_rt::sync::{Condvar, Mutex, MutexGuard, Wait};
use domain_rt::{log, time};
use interfaces::{
    BlockError, DmaAllocator, Failure, Handle, QueueError, QueueLimits, Raiser, RpcError, RpcResult,
};

use crate::desk::Desk;
use crate::lane::{Lane, REQUESTS, SLOTS};
use crate::room::Room;
use crate::state::{Batch, State};

/// The longest that a request may take, in looks of the thread that [watches](Lanes::watch). So a
/// machine that was stopped for a while takes no device for dead.
pub const PATIENCE: u64 = 10;
/// How often it is looked for requests that take too long, in nanoseconds.
const LOOK: u64 = 1_000_000_000;
/// The longest that the fence waits, in nanoseconds.
const FENCE: u64 = PATIENCE * LOOK;
/// How often the fence looks for answers, which need not interrupt, in nanoseconds.
const FENCE_LOOK: u64 = 1_000_000;

/// See the crate.
pub struct Lanes {
    state: Mutex<State>,
    /// Nothing is with the device, or that is gone.
    ended: Condvar,
    /// There is something to be watched.
    watched: Condvar,
    /// Nobody is told of answers: the submitter looks for them.
    is_polled: AtomicBool,
    /// There may be somebody to be told of answers.
    is_due: AtomicBool,
    pub(crate) allocator: Handle<dyn DmaAllocator>,
    limits: QueueLimits,
}

impl Lanes {
    /// No queue is open. `limits` are the device's; those of a lane are put in.
    pub fn new(allocator: Handle<dyn DmaAllocator>, limits: QueueLimits) -> Self {
        Lanes {
            state: Mutex::default(),
            ended: Condvar::new(),
            watched: Condvar::new(),
            is_polled: AtomicBool::new(false),
            is_due: AtomicBool::new(false),
            allocator,
            limits: QueueLimits {
                requests: REQUESTS as u32,
                slots: SLOTS as u32,
                ..limits
            },
        }
    }

    /// What the queue takes.
    pub fn limits(&self) -> &QueueLimits {
        &self.limits
    }

    /// Whether a queue is open whose submitter looks for answers himself.
    #[inline]
    pub fn is_polled(&self) -> bool {
        self.is_polled.load(Ordering::Acquire)
    }

    /// Whether a queue is open.
    pub fn is_open(&self) -> bool {
        self.state.lock().lane.is_some()
    }

    /// Releases what jobs of a line held that have ended, notes how they have, takes a batch in,
    /// and gives the line what can be given now, as far as there are places and the device can
    /// take, `most` at most. With the lock of the line.
    pub fn exchange(&self, desk: &mut Desk, room: &mut Room, most: usize, batch: &mut Batch) {
        desk.let_go(room);
        let told = self.state.lock().exchange(desk, most, batch);
        if told.is_due {
            self.is_due.store(true, Ordering::Release);
        }
        if told.is_last {
            self.ended.notify_all();
        }
        if told.is_watched {
            self.watched.notify_one();
        }
    }

    /// The device is of no use any more: no request is taken.
    pub fn give_up(&self) {
        let mut state = self.state.lock();
        state.is_gone = true;
        state.unwatched = false;
        drop(state);
        self.is_due.store(true, Ordering::Release);
        self.ended.notify_all();
        self.watched.notify_all();
    }

    /// Whether the device was given up.
    pub fn is_gone(&self) -> bool {
        self.state.lock().is_gone
    }

    /// Tells who waits for answers that there are some, once until they are taken.
    pub fn raise(&self) {
        // A thread sees what it has noted itself, or whoever has taken that looks after it.
        if !self.is_due.load(Ordering::Relaxed) || !self.is_due.swap(false, Ordering::AcqRel) {
            return;
        }
        let raiser = self.state.lock().whom_to_raise();
        // Who is told may be dead by now. For want of memory or stack it is tried again with what
        // comes next.
        if let Some(raiser) = raiser
            && let Err(error) = raiser.raise()
            && !error.is_gone()
        {
            self.state.lock().not_raised();
            self.is_due.store(true, Ordering::Release);
        }
    }

    /// For the thread that looks for requests that take too long: waits until there are some, and
    /// it is time to look, once a second; which look it is. `None`: the thread is to end.
    pub fn watch(&self) -> Option<u64> {
        let mut state = self.state.lock();
        let wait;
        if state.is_gone {
            return None;
        } else if state.taken == 0 {
            state.unwatched = true;
            (state, wait) = self.watched.wait(state);
        } else {
            (state, wait) = self.watched.wait_until(state, time::now() + LOOK);
        }
        state.looks += 1;
        (wait != Wait::Interrupted && !state.is_gone).then_some(state.looks)
    }

    /// How many requests of a batch were taken in. Where no line did so, the device is being
    /// stopped or another queue was opened.
    pub(crate) fn entered(&self, batch: Batch) -> Result<u32, QueueError> {
        match batch.requests {
            [] => batch.entered,
            _ => self.with(batch.id, |_| Ok(0)),
        }
    }

    /// Does `work` with queue `id`, if that is the one that is open.
    pub(crate) fn with<T>(
        &self,
        id: u64,
        work: impl FnOnce(&mut Lane) -> Result<T, QueueError>,
    ) -> Result<T, QueueError> {
        work(self.state.lock().lane(id)?)
    }

    /// Puts an empty queue in the place of the one that is open, when nothing of that is with the
    /// device any more; its number. `settle` looks for answers, `give_up` is called when the device
    /// keeps them for too long.
    pub(crate) fn replace(
        &self,
        raiser: Option<Handle<dyn Raiser>>,
        settle: impl Fn(),
        give_up: impl Fn(),
    ) -> Result<u64, BlockError> {
        let is_polled = raiser.is_none();
        let lane = Lane::new(self.limits, raiser).map_err(|_| RpcError::NoMemory)?;
        let mut state = self.fence(settle, give_up)?;
        self.is_polled.store(is_polled, Ordering::Release);
        Ok(state.open(lane))
    }

    /// The lock, when no queue is open and nothing is with the device.
    fn fence(
        &self,
        settle: impl Fn(),
        give_up: impl Fn(),
    ) -> Result<MutexGuard<'_, State>, BlockError> {
        let deadline = time::now() + FENCE;
        loop {
            self.close_if(|_| true);
            // A queue without interrupts was looked after by its submitter.
            settle();
            let state = self.state.lock();
            if state.is_gone {
                return Err(BlockError::Gone);
            }
            // Somebody else may have opened one meanwhile.
            if state.lane.is_some() {
                continue;
            }
            if state.taken == 0 {
                return Ok(state);
            }
            self.wait_for_end(state, deadline)?;
            if time::now() >= deadline {
                log!("the device does not end what it was asked by a former submitter");
                give_up();
            }
        }
    }

    fn wait_for_end(&self, state: MutexGuard<'_, State>, deadline: u64) -> RpcResult<()> {
        let look = deadline.min(time::now() + FENCE_LOOK);
        let (state, wait) = self.ended.wait_until(state, look);
        drop(state);
        match wait {
            Wait::Interrupted => Err(RpcError::Interrupted),
            _ => Ok(()),
        }
    }

    /// Closes the queue that is open, if that is meant. What it held is dropped without the lock.
    pub(crate) fn close_if(&self, is_meant: impl FnOnce(u64) -> bool) {
        let mut state = self.state.lock();
        let lane = state.close_if(is_meant);
        if lane.is_some() {
            self.is_polled.store(false, Ordering::Release);
        }
        drop(state);
        drop(lane);
    }
}
