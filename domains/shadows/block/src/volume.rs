//! The block queue that is open, and the driver's queue behind it.
//!
//! A *front* is what a submitter has opened: its requests by tag, and the views of its slots. A
//! *back* is a queue of one instance of the driver. Requests go to the back in their order under
//! numbers of the book ([`requests`]), with their barriers, which the driver keeps. When the back
//! is lost all that have no answer wait again, the next instance gets the views, and then these
//! requests in the same order. That is right since each of them done twice is as if done once, as
//! long as its submitter has no answer.
//!
//! # The fence
//! There is one front. [`Volume::open`] puts another one in its place, which ends all that the old
//! one has here, and then opens a queue of the driver, which ends all that the old one has there. A
//! driver that dies meanwhile leaves nothing: the next one resets its device.
//!
//! # Who does what
//! Submitting and taking answers is done by the submitter's threads alone, and never waits for a
//! driver to start: while there is no back, requests wait in the book. The *keeper*, a thread of
//! this domain, finds the next driver. It is told by whoever meets an error, and by the drop of the
//! [`Forward`] that the lost driver had. The lock of [`Volume::state`] is held over calls of the
//! back, which do not wait. What the driver calls, and what drops with it, does not take it.

use alloc::sync::Arc;

use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{is_kernel_object, log, time};
use gate::Pass;
use interfaces::{
    Block, BlockCompletion, BlockError, BlockOperation, BlockOutcome, BlockQueue, BlockRequest,
    Failure, Handle, QueueError, QueueLimits, RVec, Raiser, RpcError, RpcResult, VmoView,
};
use requests::Book;
use respawn::ATTEMPTS;

use crate::Way;

/// Requests without an answer.
pub const REQUESTS: usize = 512;
/// Slots for memory objects.
pub const SLOTS: usize = 64;
/// Requests in one call.
pub const BATCH: usize = 256;

/// How long it takes until what failed for want of memory is tried again, in nanoseconds.
const PAUSE: u64 = 10_000_000;

const NO_LIMITS: QueueLimits = QueueLimits {
    sectors: 0,
    read_only: true,
    requests: 0,
    request_sectors: 0,
    slots: 0,
    discard_sectors: 0,
    zeroes_sectors: 0,
};

const NO_REQUEST: BlockRequest = BlockRequest {
    tag: 0,
    operation: BlockOperation::Flush,
    sector: 0,
    sectors: 0,
    slot: 0,
    at: 0,
    durable: false,
    barrier: false,
};

/// A view in its slot, and how many requests without an answer name it.
pub struct Slot {
    pub view: Handle<dyn VmoView>,
    pub uses: u32,
}

/// A queue of one instance of the driver.
pub struct Back {
    /// The instance.
    instance: u32,
    /// Which of all backs it is.
    number: u64,
    queue: Handle<dyn BlockQueue>,
}

/// A request of the submitter.
#[derive(Clone, Copy)]
struct Asked {
    request: BlockRequest,
    /// Its slot counts it.
    is_counted: bool,
}

/// What a submitter has opened.
pub struct Front {
    pub id: u64,
    book: Book<Asked, BlockOutcome>,
    pub slots: [Option<Slot>; SLOTS],
    raiser: Option<Arc<Handle<dyn Raiser>>>,
    back: Option<Back>,
    /// The instance of the driver that was lost last.
    failed: u32,
    /// Its submitter has it. Until then it is the affair of who opens it.
    is_open: bool,
    /// There is no driver to be had.
    pub is_dead: bool,
    pub limits: QueueLimits,
    /// What requests are handed on in.
    batch: RVec<BlockRequest>,
}

/// What the lock guards.
#[derive(Default)]
pub struct State {
    pub front: Option<Front>,
    fronts: u64,
    backs: u64,
}

/// What the keeper is told.
#[derive(Default)]
struct Alarm {
    /// The last back whose driver let go of it.
    lost: u64,
    is_due: bool,
}

/// See the module.
#[derive(Default)]
pub struct Volume {
    pub state: Mutex<State>,
    alarm: Arc<(Mutex<Alarm>, Condvar)>,
}

/// What the driver raises: passes it on to the submitter, and tells the keeper when it is dropped.
struct Forward {
    to: Arc<Handle<dyn Raiser>>,
    back: u64,
    alarm: Arc<(Mutex<Alarm>, Condvar)>,
}

impl Raiser for Forward {
    fn raise(&self) -> RpcResult<()> {
        self.to.raise()
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        ring(&self.alarm, self.back);
    }
}

fn ring(alarm: &(Mutex<Alarm>, Condvar), lost: u64) {
    let mut state = alarm.0.lock();
    state.lost = state.lost.max(lost);
    state.is_due = true;
    drop(state);
    alarm.1.notify_all();
}

/// Whether an error says that this queue is of no use any more. Until all threads have left a dead
/// driver one of them may come back with an error of its own.
fn is_lost(queue: &Handle<dyn BlockQueue>, error: &QueueError) -> bool {
    error.is_gone() || matches!(error, QueueError::Fenced) || is_dead(queue)
}

fn is_dead(queue: &Handle<dyn BlockQueue>) -> bool {
    queue.limits().is_err_and(|error| error.is_gone())
}

impl Front {
    fn new(raiser: Option<Arc<Handle<dyn Raiser>>>) -> RpcResult<Self> {
        let book = Book::passing_barriers_on(REQUESTS).map_err(|_| RpcError::NoMemory)?;
        Ok(Front {
            id: 0,
            book,
            slots: [const { None }; SLOTS],
            raiser,
            back: None,
            failed: 0,
            is_open: false,
            is_dead: false,
            limits: NO_LIMITS,
            batch: RVec::filled(NO_REQUEST, BATCH)?,
        })
    }

    /// The driver's queue is of no use any more; the keeper has to be told.
    pub fn lose(&mut self) -> Option<Back> {
        let back = self.back.take()?;
        self.failed = back.instance;
        self.book.again();
        Some(back)
    }

    /// Hands on what waits. Whether the back lives.
    pub fn pump(&mut self) -> bool {
        let Some(back) = &self.back else { return true };
        loop {
            let mut count = 0;
            for (place, (number, asked)) in self.batch.iter_mut().zip(self.book.waiting()) {
                *place = BlockRequest {
                    tag: number,
                    ..asked.request
                };
                count += 1;
            }
            if count == 0 {
                return true;
            }
            match back.queue.submit(&self.batch, count) {
                Ok(taken) if taken > count => return false,
                Ok(taken) => {
                    (0..taken).for_each(|_| self.book.give());
                    if taken < count || count < BATCH as u32 {
                        return true;
                    }
                }
                Err(error) if is_lost(&back.queue, &error) => return false,
                // For want of memory, perhaps: it is tried again with the next call.
                Err(_) => return true,
            }
        }
    }

    /// Puts a view into a slot of the driver's queue, if there is one. Whether that is lost.
    pub fn register_back(&self, slot: u32, view: &Handle<dyn VmoView>) -> Result<bool, QueueError> {
        let Some(back) = &self.back else {
            return Ok(false);
        };
        match back.queue.register(slot, view.duplicate()?) {
            Ok(()) => Ok(false),
            Err(error) if is_lost(&back.queue, &error) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Empties a slot of the driver's queue, if there is one. Whether that is lost: it is also if
    /// it does not do so, for then the slot would be another's there.
    pub fn unregister_back(&self, slot: u32) -> bool {
        let back = self.back.as_ref();
        back.is_some_and(|back| back.queue.unregister(slot).is_err())
    }

    /// Takes the driver's answers into `room`, which comes back with the submitter's tags.
    pub fn take_answers(&mut self, room: RVec<BlockCompletion>) -> Result<Collected, QueueError> {
        let Some(back) = &self.back else {
            return Ok(Collected::nothing(Some(room), false));
        };
        let length = room.len();
        let (room, count) = match back.queue.completions(room) {
            Ok(answer) => answer,
            Err(error) if is_lost(&back.queue, &error) => {
                return Ok(Collected::nothing(None, true));
            }
            Err(error) => return Err(error),
        };
        if room.len() != length || count as usize > length {
            log!("the driver gives {count} answers in room for {length}");
            return Ok(Collected::nothing(None, true));
        }
        let answers = &room[..count as usize];
        let failed = |answer: &BlockCompletion| answer.outcome != BlockOutcome::Done;
        let is_lost = answers.iter().any(failed) && is_dead(&back.queue);
        Ok(self.translate(room, count as usize, is_lost))
    }

    /// Puts the submitter's tags into the first `count` answers. Of a driver that is lost only
    /// those count that say that something was done.
    fn translate(
        &mut self,
        mut room: RVec<BlockCompletion>,
        count: usize,
        mut is_lost: bool,
    ) -> Collected {
        let mut told = 0;
        for index in 0..count {
            let BlockCompletion { tag, outcome } = room[index];
            if is_lost && outcome != BlockOutcome::Done {
                continue;
            }
            match self.answer(tag, outcome) {
                Some(tag) => {
                    room[told] = BlockCompletion { tag, outcome };
                    told += 1;
                }
                None => {
                    log!("the driver answers request {tag}, which it does not have");
                    is_lost = true;
                }
            }
        }
        Collected {
            room: Some(room),
            count: told as u32,
            is_lost,
        }
    }

    /// The submitter's tag of a request that has its answer now.
    fn answer(&mut self, number: u64, outcome: BlockOutcome) -> Option<u64> {
        let asked = *self.book.with_carrier(number)?;
        self.book.complete(number, outcome).ok()?;
        if let Some(Some(slot)) = self.slots.get_mut(asked.request.slot as usize)
            && asked.is_counted
        {
            slot.uses -= 1;
        }
        self.book.take().map(|(tag, _)| tag)
    }

    /// Enters a request. Its slot, if it names one that has something, stays as it is.
    pub fn enter(&mut self, request: &BlockRequest) -> bool {
        let asks = matches!(
            request.operation,
            BlockOperation::Read | BlockOperation::Write
        );
        let is_full = self.book.room() == 0;
        let slot = self.slots.get_mut(request.slot as usize);
        let slot = slot.and_then(Option::as_mut).filter(|_| asks && !is_full);
        let is_counted = slot.map(|slot| slot.uses += 1).is_some();
        let asked = Asked {
            request: *request,
            is_counted,
        };
        self.book.enter(request.tag, request.barrier, asked).is_ok()
    }
}

/// What came of looking for answers.
pub struct Collected {
    /// None if it was lost with the driver.
    pub room: Option<RVec<BlockCompletion>>,
    pub count: u32,
    pub is_lost: bool,
}

impl Collected {
    fn nothing(room: Option<RVec<BlockCompletion>>, is_lost: bool) -> Self {
        Collected {
            room,
            count: 0,
            is_lost,
        }
    }
}

impl Volume {
    /// Opens a front in place of the one before, when nothing of that happens any more; its number.
    ///
    /// # Errors
    /// Those of the driver; [`BlockError::Rpc`] with `Refused` if the raiser is not the kernel's.
    pub fn open(&self, way: &Way, raiser: Option<Handle<dyn Raiser>>) -> Result<u64, BlockError> {
        // A raiser of a domain could keep the driver's thread that raises it.
        if raiser.as_ref().is_some_and(|it| !is_kernel_object(it)) {
            return Err(BlockError::Rpc(RpcError::Refused));
        }
        let mut front = Front::new(raiser.map(Arc::new))?;
        let mut state = self.state.lock();
        state.fronts += 1;
        front.id = state.fronts;
        let (id, old) = (front.id, state.front.replace(front));
        drop(state);
        // With it goes the old queue of the driver, which carries nothing more out from then on.
        drop(old);
        match self.connect(way, id) {
            Ok(()) => self.begin(id),
            Err(error) => {
                self.close(id);
                return Err(error);
            }
        }
        Ok(id)
    }

    /// From now on the keeper looks after this front.
    fn begin(&self, id: u64) {
        let mut state = self.state.lock();
        let front = state.front.as_mut().filter(|front| front.id == id);
        let is_due = front.is_some_and(|front| {
            front.is_open = true;
            front.back.is_none()
        });
        drop(state);
        if is_due {
            ring(&self.alarm, 0);
        }
    }

    /// The driver is about to be replaced: the next one gets what has no answer.
    pub fn forget(&self) {
        let mut state = self.state.lock();
        let old = state.front.as_mut().and_then(|front| {
            let old = front.lose();
            // It has not failed: if it is not replaced after all, it goes on.
            front.failed = 0;
            old
        });
        drop(state);
        drop(old);
        ring(&self.alarm, 0);
    }

    /// The front goes, with all that it has.
    pub fn close(&self, id: u64) {
        let mut state = self.state.lock();
        let front = state.front.take_if(|front| front.id == id);
        drop(state);
        drop(front);
    }

    /// Finds a driver for a front that has none, and has it go on with what waits.
    fn connect(&self, way: &Way, id: u64) -> Result<(), BlockError> {
        let mut failed = match &self.state.lock().front {
            Some(front) if front.id == id => front.failed,
            _ => return Ok(()),
        };
        for _ in 0..ATTEMPTS {
            let pass = way.passage.enter()?;
            let live = way.driver.live::<BlockError>(failed)?;
            let number = {
                let mut state = self.state.lock();
                state.backs += 1;
                state.backs
            };
            match self.open_back(&live.service, id, number) {
                Ok(queue) => {
                    let back = Back {
                        instance: live.id,
                        number,
                        queue,
                    };
                    if self.attach(id, back, &pass) {
                        return Ok(());
                    }
                    failed = live.id;
                }
                Err(error) if error.is_gone() || crate::is_dead(&live.service) => failed = live.id,
                Err(error) => return Err(error),
            }
        }
        log!("gave up to find a driver after {ATTEMPTS} instances");
        Err(BlockError::Gone)
    }

    fn open_back(
        &self,
        driver: &Handle<dyn Block>,
        id: u64,
        number: u64,
    ) -> Result<Handle<dyn BlockQueue>, BlockError> {
        let state = self.state.lock();
        let front = state.front.as_ref().filter(|front| front.id == id);
        let to = front.and_then(|front| front.raiser.clone());
        drop(state);
        let alarm = self.alarm.clone();
        let forward = to.map(|to| {
            Handle::<dyn Raiser>::new(Forward {
                to,
                back: number,
                alarm,
            })
        });
        driver.open(forward.transpose()?)
    }

    /// Puts a new back behind the front, which gets the views and what waits. False: it is lost
    /// already.
    fn attach(&self, id: u64, back: Back, _pass: &Pass<'_>) -> bool {
        let limits = back.queue.limits();
        let mut state = self.state.lock();
        let Some(front) = state.front.as_mut().filter(|front| front.id == id) else {
            // Somebody else has opened one meanwhile.
            return true;
        };
        for (slot, number) in front.slots.iter().zip(0..) {
            let Some(Slot { view, .. }) = slot else {
                continue;
            };
            // It was registered before; for want of memory the next driver may do better.
            let registered = view.duplicate().map_err(QueueError::Rpc);
            let registered = registered.and_then(|view| back.queue.register(number, view));
            if let Err(error) = registered {
                log!("slot {number} is not to be had with the next driver: {error:?}");
                front.failed = back.instance;
                return false;
            }
        }
        let Ok(limits) = limits else {
            return false;
        };
        front.limits = QueueLimits {
            requests: limits.requests.min(REQUESTS as u32),
            slots: limits.slots.min(SLOTS as u32),
            ..limits
        };
        front.back = Some(back);
        front.is_dead = false;
        let lives = front.pump();
        let lost = if lives { None } else { front.lose() };
        drop(state);
        drop(lost);
        lives
    }

    /// Has the keeper look whether there is a driver.
    pub fn ring(&self) {
        ring(&self.alarm, 0);
    }

    /// The body of the thread that finds the next driver.
    pub fn keep(&self, way: &Way) {
        loop {
            let mut alarm = self.alarm.0.lock();
            while !alarm.is_due {
                let wait;
                (alarm, wait) = self.alarm.1.wait(alarm);
                if wait == Wait::Interrupted {
                    return;
                }
            }
            alarm.is_due = false;
            let lost = alarm.lost;
            drop(alarm);
            self.mend(way, lost);
        }
    }

    /// Finds a driver, if the front has none or its back is `lost`.
    fn mend(&self, way: &Way, lost: u64) {
        let mut state = self.state.lock();
        let Some(front) = &mut state.front else {
            return;
        };
        let is_lost = front.back.as_ref().is_some_and(|it| it.number <= lost);
        let old = if is_lost { front.lose() } else { None };
        // Before its first back a front is its opener's affair.
        let (id, is_due) = (front.id, front.back.is_none() && front.is_open);
        drop(state);
        drop(old);
        if !is_due {
            return;
        }
        match self.connect(way, id) {
            Ok(()) | Err(BlockError::Rpc(RpcError::Interrupted)) => {}
            Err(BlockError::Rpc(RpcError::NoMemory | RpcError::Busy)) => {
                time::sleep(PAUSE);
                ring(&self.alarm, 0);
            }
            Err(error) => {
                log!("there is no driver for the queue: {error:?}");
                self.tell_dead(id);
            }
        }
    }

    fn tell_dead(&self, id: u64) {
        let mut state = self.state.lock();
        let Some(front) = state.front.as_mut().filter(|front| front.id == id) else {
            return;
        };
        front.is_dead = true;
        let raiser = front.raiser.clone();
        drop(state);
        if let Some(raiser) = raiser {
            // Its submitter may be dead by now.
            let _ = raiser.raise();
        }
    }
}
