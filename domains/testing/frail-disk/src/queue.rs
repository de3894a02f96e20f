//! The block queue that is open, and the thread that carries its requests out.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::mem;

use domain_rt::sync::{Condvar, Mutex, MutexGuard, Wait};
use domain_rt::{is_kernel_object, time};
use interfaces::{
    BlockCompletion, BlockError, BlockOperation, BlockOutcome, BlockQueue, BlockRequest, Handle,
    Medium, MediumError, MemoryError, QueueError, QueueLimits, RVec, Raiser, RpcError, VmoView,
};

use crate::cache::{Cache, SECTOR};

/// Requests without an answer, and answers that were not taken.
const REQUESTS: usize = 64;
/// Slots for memory objects.
const SLOTS: usize = 4;
/// Sectors of a request.
const MOST: u32 = 64;

type View = Arc<Handle<dyn VmoView>>;

struct Job {
    request: BlockRequest,
    view: Option<View>,
    since: u64,
}

/// What the lock guards.
#[derive(Default)]
struct State {
    /// How many queues were opened; the last one is open.
    queues: u64,
    views: [Option<View>; SLOTS],
    raiser: Option<Arc<Handle<dyn Raiser>>>,
    jobs: VecDeque<Job>,
    /// When the thread began with the job that it is at.
    busy: Option<u64>,
    answers: VecDeque<BlockCompletion>,
    /// The medium is gone.
    is_gone: bool,
}

/// What the queue and the thread share.
pub struct Jobs {
    state: Mutex<State>,
    asked: Condvar,
    /// The thread is done with a job.
    ended: Condvar,
    /// How long a request may take, in nanoseconds; then the device is gone.
    patience: u64,
}

impl Jobs {
    /// Without a queue. A request may take `patience` milliseconds.
    pub fn new(patience: u64) -> Self {
        Jobs {
            state: Mutex::default(),
            asked: Condvar::new(),
            ended: Condvar::new(),
            patience: patience.saturating_mul(1_000_000),
        }
    }

    /// Opens a queue in place of the one before, when nothing of that happens any more; its number.
    ///
    /// # Errors
    /// The device does not end what it is at.
    pub fn open(&self, raiser: Option<Handle<dyn Raiser>>) -> Result<u64, BlockError> {
        let deadline = time::now().saturating_add(self.patience);
        let mut state = self.state.lock();
        state.jobs.clear();
        while state.busy.is_some() {
            let wait;
            (state, wait) = self.ended.wait_until(state, deadline);
            match wait {
                Wait::Interrupted => return Err(BlockError::Rpc(RpcError::Interrupted)),
                Wait::TimedOut if state.busy.is_some() => return Err(BlockError::Gone),
                Wait::TimedOut | Wait::Woken => {}
            }
        }
        let queues = state.queues + 1;
        let new = State {
            queues,
            raiser: raiser.map(Arc::new),
            ..State::default()
        };
        let old = mem::replace(&mut *state, new);
        drop(state);
        drop(old);
        Ok(queues)
    }

    /// The work of the driver's thread, without end.
    pub fn work(&self, medium: &Handle<dyn Medium>) {
        let mut cache = Cache::new();
        let mut state = self.state.lock();
        loop {
            let Some(job) = state.jobs.pop_front() else {
                (state, _) = self.asked.wait(state);
                continue;
            };
            state.busy = Some(job.since);
            drop(state);
            let outcome = carry_out(medium, &mut cache, &job);
            let tag = job.request.tag;
            drop(job);
            state = self.state.lock();
            state.busy = None;
            let outcome = match outcome {
                Ok(()) => BlockOutcome::Done,
                Err(Failure::Request(outcome)) => outcome,
                // Whoever looks for answers hears of it; there is none.
                Err(Failure::Gone) => {
                    state.is_gone = true;
                    continue;
                }
            };
            state.answers.push_back(BlockCompletion { tag, outcome });
            let raiser = state.raiser.clone().filter(|_| state.answers.len() == 1);
            self.ended.notify_all();
            if let Some(raiser) = raiser {
                drop(state);
                // Who is told may be dead by now.
                let _ = raiser.raise();
                state = self.state.lock();
            }
        }
    }
}

/// Why a job is not done.
enum Failure {
    /// This is its answer.
    Request(BlockOutcome),
    /// The medium is gone.
    Gone,
}

impl From<BlockOutcome> for Failure {
    fn from(outcome: BlockOutcome) -> Self {
        Failure::Request(outcome)
    }
}

/// Does what a job asks for.
fn carry_out(medium: &Handle<dyn Medium>, cache: &mut Cache, job: &Job) -> Result<(), Failure> {
    let BlockRequest {
        operation,
        sector,
        sectors,
        at,
        ..
    } = job.request;
    if operation == BlockOperation::Flush {
        return medium.flush().map_err(|error| of_medium(&error));
    }
    let length = sectors as usize * SECTOR;
    let offset = at.checked_mul(SECTOR as u64).ok_or(BlockOutcome::Memory)?;
    let view = job.view.as_ref().ok_or(BlockOutcome::BadSlot)?;
    let mut data = RVec::filled(0, length).map_err(|_| BlockOutcome::NoMemory)?;
    if operation == BlockOperation::Read {
        if !cache.read(sector, &mut data) {
            data = medium
                .read(sector, data)
                .map_err(|error| of_medium(&error))?;
            cache.keep(sector, &data);
        }
        let written = view.write(offset, &data).map_err(|error| of_view(&error))?;
        return Ok(whole(written, length)?);
    }
    let (data, read) = view.read(offset, data).map_err(|error| of_view(&error))?;
    whole(read, length)?;
    // What is there is not known until it is written.
    cache.forget(sector, sectors as usize);
    medium
        .write(sector, &data)
        .map_err(|error| of_medium(&error))?;
    cache.keep(sector, &data);
    Ok(())
}

fn whole(count: u64, length: usize) -> Result<(), BlockOutcome> {
    match count == length as u64 {
        true => Ok(()),
        false => Err(BlockOutcome::Memory),
    }
}

fn of_medium(error: &MediumError) -> Failure {
    Failure::Request(match error {
        MediumError::Gone => return Failure::Gone,
        MediumError::OutOfRange => BlockOutcome::OutOfRange,
        MediumError::Rpc(RpcError::NoMemory) => BlockOutcome::NoMemory,
        _ => BlockOutcome::Device,
    })
}

fn of_view(error: &MemoryError) -> BlockOutcome {
    match error {
        MemoryError::Rpc(RpcError::NoMemory) => BlockOutcome::NoMemory,
        _ => BlockOutcome::Memory,
    }
}

/// The queue with a number, as an object that its submitter calls.
pub struct Queue {
    pub jobs: Arc<Jobs>,
    pub id: u64,
    pub sectors: u64,
}

impl Queue {
    /// The lock, if this is the queue that is open.
    fn state(&self) -> Result<MutexGuard<'_, State>, QueueError> {
        let state = self.jobs.state.lock();
        match state.queues == self.id {
            true => Ok(state),
            false => Err(QueueError::Fenced),
        }
    }

    /// What is wrong with a request, as far as that can be said at once.
    fn check(&self, request: &BlockRequest) -> Result<(), BlockOutcome> {
        match request.operation {
            BlockOperation::Flush => return Ok(()),
            BlockOperation::Read | BlockOperation::Write => {}
            _ => return Err(BlockOutcome::Unsupported),
        }
        let end = request.sector.checked_add(request.sectors.into());
        let fits = end.is_some_and(|end| end <= self.sectors);
        match fits && (1..=MOST).contains(&request.sectors) {
            true => Ok(()),
            false => Err(BlockOutcome::OutOfRange),
        }
    }
}

impl BlockQueue for Queue {
    fn limits(&self) -> Result<QueueLimits, QueueError> {
        Ok(QueueLimits {
            sectors: self.sectors,
            read_only: false,
            requests: REQUESTS as u32,
            request_sectors: MOST,
            slots: SLOTS as u32,
            discard_sectors: 0,
            zeroes_sectors: 0,
        })
    }

    fn register(&self, slot: u32, view: Handle<dyn VmoView>) -> Result<(), QueueError> {
        // A view of a domain could keep the thread that uses it.
        if !is_kernel_object(&view) {
            return Err(QueueError::Memory(MemoryError::Denied));
        }
        match self.state()?.views.get_mut(slot as usize) {
            Some(empty @ None) => {
                *empty = Some(Arc::new(view));
                Ok(())
            }
            _ => Err(QueueError::BadSlot),
        }
    }

    fn unregister(&self, slot: u32) -> Result<(), QueueError> {
        let mut state = self.state()?;
        let view = state.views.get_mut(slot as usize);
        let old = view.and_then(Option::take).ok_or(QueueError::BadSlot)?;
        drop(state);
        drop(old);
        Ok(())
    }

    /// Requests are carried out in their order, so barriers are kept and what is written is on the
    /// medium.
    fn submit(&self, requests: &RVec<BlockRequest>, count: u32) -> Result<u32, QueueError> {
        let batch = requests.get(..count as usize).filter(|it| !it.is_empty());
        let batch = batch.ok_or(QueueError::BadCount)?;
        let since = time::now();
        let mut state = self.state()?;
        let under_way = state.jobs.len() + state.answers.len() + usize::from(state.busy.is_some());
        let batch = batch.iter().take(REQUESTS.saturating_sub(under_way));
        let mut taken = 0;
        for request in batch {
            taken += 1;
            if let Err(outcome) = self.check(request) {
                let tag = request.tag;
                state.answers.push_back(BlockCompletion { tag, outcome });
                continue;
            }
            let view = state.views.get(request.slot as usize).cloned().flatten();
            state.jobs.push_back(Job {
                request: *request,
                view,
                since,
            });
        }
        self.jobs.asked.notify_one();
        Ok(taken)
    }

    fn submit_group(&self, _: u64, _: &RVec<BlockRequest>, _: u32) -> Result<(), QueueError> {
        Err(QueueError::Unsupported)
    }

    fn completions(
        &self,
        mut room: RVec<BlockCompletion>,
    ) -> Result<(RVec<BlockCompletion>, u32), QueueError> {
        let mut state = self.state()?;
        let mut count = 0;
        for place in room.iter_mut() {
            let Some(answer) = state.answers.pop_front() else {
                break;
            };
            *place = answer;
            count += 1;
        }
        let oldest = state.busy.or(state.jobs.front().map(|job| job.since));
        let late =
            oldest.is_some_and(|since| time::now() > since.saturating_add(self.jobs.patience));
        match (late || state.is_gone) && count == 0 {
            true => Err(QueueError::Gone),
            false => Ok((room, count)),
        }
    }
}
