//! The lane without locks: what is entered, taken and ended. On the host.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

use interfaces::{
    BlockOperation, BlockOutcome, BlockRequest, DmaDirection, DmaWindow, Handle, MemoryError,
    QueueError, QueueLimits, RVec, Raiser, RpcResult,
};

use crate::Job;
use crate::check::check;
use crate::lane::{REQUESTS, SLOTS, State, new_book};

const LIMITS: QueueLimits = QueueLimits {
    sectors: 1000,
    read_only: false,
    requests: REQUESTS as u32,
    request_sectors: 64,
    slots: SLOTS as u32,
    discard_sectors: 0,
    zeroes_sectors: 100,
};

struct Window;

impl DmaWindow for Window {
    fn hold(
        &self,
        _: u64,
        _: u64,
        _: DmaDirection,
        _: RVec<u64>,
    ) -> Result<(RVec<u64>, u64), MemoryError> {
        Err(MemoryError::Denied)
    }

    fn release(&self, _: u64) -> Result<(), MemoryError> {
        Err(MemoryError::Invalid)
    }
}

struct Bell(Arc<AtomicU32>);

impl Raiser for Bell {
    fn raise(&self) -> RpcResult<()> {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }
}

fn request(tag: u64, operation: BlockOperation) -> BlockRequest {
    BlockRequest {
        tag,
        operation,
        sector: 8,
        sectors: 8,
        slot: 3,
        at: 0,
        durable: false,
        barrier: false,
    }
}

fn read(tag: u64) -> BlockRequest {
    request(tag, BlockOperation::Read)
}

fn barrier(tag: u64) -> BlockRequest {
    BlockRequest {
        barrier: true,
        ..read(tag)
    }
}

/// A lane that is open, with a window in slot 3; its number.
fn open(state: &mut State, raiser: Option<Handle<dyn Raiser>>) -> u64 {
    let id = state.open(new_book().expect("the host has memory"), raiser);
    let window = Handle::<dyn DmaWindow>::new(Window).expect("the host has memory");
    let lane = state.lane(id).expect("it is open");
    assert_eq!(lane.register(3, &mut Some(window)), Ok(()));
    id
}

fn enter(state: &mut State, id: u64, requests: &[BlockRequest]) {
    let lane = state.lane(id).expect("it is open");
    let mut all = requests.iter();
    assert_eq!(all.try_for_each(|it| lane.enter(&LIMITS, it)), Ok(()));
}

fn take(state: &mut State, room: usize) -> Vec<Job> {
    let mut jobs = Vec::with_capacity(room);
    state.take(room, &mut jobs, || 7);
    jobs
}

fn tags(jobs: &[Job]) -> Vec<u64> {
    jobs.iter().map(|job| job.request.tag).collect()
}

fn done(jobs: Vec<Job>) -> Vec<(Job, BlockOutcome)> {
    let done = |job| (job, BlockOutcome::Done);
    jobs.into_iter().map(done).collect()
}

fn answers(state: &mut State, id: u64) -> Vec<(u64, BlockOutcome)> {
    let lane = state.lane(id).expect("it is open");
    core::iter::from_fn(|| lane.take()).collect()
}

#[test]
fn what_is_wrong_with_a_request_is_its_answer() {
    let with = |change: fn(&mut BlockRequest)| {
        let mut changed = read(1);
        change(&mut changed);
        check(&LIMITS, &changed)
    };
    assert_eq!(with(|_| ()), Ok(()));
    let out = Err(BlockOutcome::OutOfRange);
    assert_eq!(with(|it| it.sector = 993), out);
    assert_eq!(with(|it| it.sector = u64::MAX), out);
    assert_eq!(with(|it| it.sectors = 0), out);
    assert_eq!(with(|it| it.sectors = 65), out);
    assert_eq!(with(|it| it.at = u64::MAX - 7), Err(BlockOutcome::Memory));
    // What has no data names no memory.
    assert_eq!(
        with(|it| (it.operation, it.at) = (BlockOperation::WriteZeroes, u64::MAX)),
        Ok(())
    );
    assert_eq!(
        with(|it| it.operation = BlockOperation::Discard),
        Err(BlockOutcome::Unsupported)
    );
    let read_only = QueueLimits {
        read_only: true,
        ..LIMITS
    };
    let write = request(1, BlockOperation::Write);
    assert_eq!(check(&read_only, &write), Err(BlockOutcome::ReadOnly));
    assert_eq!(
        check(&read_only, &request(1, BlockOperation::Flush)),
        Ok(())
    );
}

#[test]
fn an_empty_slot_is_told_and_one_in_use_stays() {
    let mut state = State::default();
    let id = open(&mut state, None);
    for slot in [2, SLOTS as u32, u32::MAX] {
        let bad = BlockRequest { slot, ..read(1) };
        enter(&mut state, id, &[bad]);
        assert_eq!(answers(&mut state, id), [(1, BlockOutcome::BadSlot)]);
        let lane = state.lane(id).expect("it is open");
        assert_eq!(lane.unregister(slot).err(), Some(QueueError::BadSlot));
    }
    enter(&mut state, id, &[read(1), read(2)]);
    let mut jobs = take(&mut state, 8);
    for left in (0..2).rev() {
        let lane = state.lane(id).expect("it is open");
        assert_eq!(lane.unregister(3).err(), Some(QueueError::InUse));
        state.end(&mut done(vec![jobs.remove(0)]));
        assert_eq!(jobs.len(), left);
    }
    let lane = state.lane(id).expect("it is open");
    assert!(lane.unregister(3).is_ok());
    let window = Handle::<dyn DmaWindow>::new(Window).expect("the host has memory");
    let mut window = Some(window);
    assert_eq!(lane.register(3, &mut window), Ok(()));
    assert!(window.is_none());
    window = Some(Handle::<dyn DmaWindow>::new(Window).expect("the host has memory"));
    assert_eq!(lane.register(3, &mut window), Err(QueueError::BadSlot));
    assert!(window.is_some(), "it is dropped without the lock");
}

#[test]
fn no_more_is_taken_than_there_is_room_for() {
    let mut state = State::default();
    let id = open(&mut state, None);
    enter(&mut state, id, &[read(1), read(2), read(3)]);
    let mut jobs = take(&mut state, 2);
    assert_eq!(tags(&jobs), [1, 2]);
    assert!(jobs.iter().all(|job| job.since == 7));
    assert!(take(&mut state, 0).is_empty());
    // What is there already counts, as it does for who has two lists in one.
    state.take(2, &mut jobs, || 8);
    assert_eq!(jobs.len(), 2);
    state.take(3, &mut jobs, || 8);
    assert_eq!(tags(&jobs), [1, 2, 3]);
}

#[test]
fn a_barrier_waits_for_the_jobs_of_all_lines() {
    let mut state = State::default();
    let id = open(&mut state, None);
    enter(&mut state, id, &[read(1), read(2), barrier(3), read(4)]);
    let (one, other) = (take(&mut state, 1), take(&mut state, 8));
    assert_eq!((tags(&one), tags(&other)), (vec![1], vec![2]));
    state.end(&mut done(other));
    assert!(take(&mut state, 8).is_empty(), "the first line has one");
    state.end(&mut done(one));
    let alone = take(&mut state, 8);
    assert_eq!(tags(&alone), [3]);
    assert!(take(&mut state, 8).is_empty(), "nothing passes a barrier");
    state.end(&mut done(alone));
    assert_eq!(tags(&take(&mut state, 8)), [4]);
}

#[test]
fn a_closed_lane_ends_with_its_last_job_and_is_not_answered() {
    let mut state = State::default();
    let first = open(&mut state, None);
    enter(&mut state, first, &[read(1), read(2), read(3)]);
    let (one, other) = (take(&mut state, 1), take(&mut state, 1));
    assert!(state.close_if(|id| id != first).is_none());
    assert!(state.close_if(|id| id == first).is_some());
    assert_eq!(state.lane(first).err(), Some(QueueError::Fenced));
    assert!(take(&mut state, 8).is_empty(), "what waits is forgotten");
    assert!(!state.end(&mut done(one)));
    assert_eq!(state.taken, 1);
    assert!(state.end(&mut done(other)), "that was the last");
    let second = open(&mut state, None);
    assert_eq!(state.lane(first).err(), Some(QueueError::Fenced));
    assert!(answers(&mut state, second).is_empty());
}

#[test]
fn a_job_of_a_former_lane_is_no_answer_to_the_next() {
    let mut state = State::default();
    let first = open(&mut state, None);
    enter(&mut state, first, &[read(1)]);
    let old = take(&mut state, 1);
    state.close_if(|_| true);
    let second = open(&mut state, None);
    enter(&mut state, second, &[read(2)]);
    let new = take(&mut state, 1);
    state.end(&mut done(old));
    assert!(answers(&mut state, second).is_empty());
    state.end(&mut done(new));
    assert_eq!(answers(&mut state, second), [(2, BlockOutcome::Done)]);
}

#[test]
fn nothing_is_taken_for_a_device_that_was_given_up() {
    let bell = Arc::new(AtomicU32::new(0));
    let mut state = State::default();
    let raiser = Handle::<dyn Raiser>::new(Bell(bell.clone()));
    let id = open(&mut state, Some(raiser.expect("the host has memory")));
    enter(&mut state, id, &[read(1)]);
    state.is_gone = true;
    assert!(take(&mut state, 8).is_empty());
    assert_eq!(state.lane(id).err(), Some(QueueError::Gone));
    assert!(state.whom_to_raise().is_some(), "the submitter is told");
}

#[test]
fn the_submitter_is_told_once_until_he_has_taken_all() {
    let bell = Arc::new(AtomicU32::new(0));
    let mut state = State::default();
    let raiser = Handle::<dyn Raiser>::new(Bell(bell.clone()));
    let id = open(&mut state, Some(raiser.expect("the host has memory")));
    assert!(state.whom_to_raise().is_none());
    let end_one = |state: &mut State, tag| {
        enter(state, id, &[read(tag)]);
        let jobs = take(state, 1);
        state.end(&mut done(jobs));
        if let Some(raiser) = state.whom_to_raise() {
            assert_eq!(raiser.raise(), Ok(()));
        }
    };
    (1..=3).for_each(|tag| end_one(&mut state, tag));
    assert_eq!(bell.load(SeqCst), 1);
    assert_eq!(answers(&mut state, id).len(), 3);
    end_one(&mut state, 4);
    assert_eq!(bell.load(SeqCst), 2);
}

#[test]
fn who_watches_is_told_of_the_first_job_alone() {
    let mut state = State::default();
    let id = open(&mut state, None);
    state.unwatched = true;
    let mut jobs = Vec::with_capacity(8);
    assert!(!state.take(8, &mut jobs, || 7), "there is none");
    enter(&mut state, id, &[read(1), read(2)]);
    assert!(state.take(1, &mut jobs, || 7));
    assert!(!state.take(2, &mut jobs, || 7));
    assert_eq!(jobs.len(), 2);
}
