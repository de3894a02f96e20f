//! The lane without locks: what is entered, taken and ended. On the host.

mod batches;
mod holds;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

use interfaces::{
    BlockCompletion, BlockOperation, BlockOutcome, BlockRequest, DmaWindow, Handle, QueueError,
    QueueLimits, Raiser, RpcResult,
};

use crate::check::{check, is_plain};
use crate::desk::Desk;
use crate::lane::{Lane, REQUESTS, SLOTS};
use crate::state::{Batch, State, Told};
use holds::{Paper, Window};

const LIMITS: QueueLimits = QueueLimits {
    sectors: 1000,
    read_only: false,
    requests: REQUESTS as u32,
    request_sectors: 64,
    slots: SLOTS as u32,
    discard_sectors: 0,
    zeroes_sectors: 100,
};

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
    let limits = QueueLimits {
        request_sectors: 320,
        ..LIMITS
    };
    let lane = Lane::new(limits, raiser).expect("the host has memory");
    let id = state.open(lane);
    let window = Handle::<dyn DmaWindow>::new(Window).expect("the host has memory");
    let lane = state.lane(id).expect("it is open");
    assert_eq!(lane.register(3, &mut Some(window)), Ok(()));
    id
}

/// Enters requests that all wait.
fn enter(state: &mut State, id: u64, requests: &[BlockRequest]) {
    let mut none = Desk::new(0).expect("the host has memory");
    assert_eq!(
        submit(state, id, requests, &mut none, 0),
        Ok(requests.len() as u32)
    );
}

/// Submits requests, of which a line takes as many as it can.
fn submit(
    state: &mut State,
    id: u64,
    requests: &[BlockRequest],
    desk: &mut Desk,
    room: usize,
) -> Result<u32, QueueError> {
    let mut batch = Batch::new(id, requests);
    state.exchange(desk, room, &mut batch);
    batch.entered
}

/// An exchange without requests.
fn exchange(state: &mut State, desk: &mut Desk, room: usize) -> Told {
    state.exchange(desk, room, &mut Batch::empty())
}

/// A line that has taken what it could, of which it has looked at all.
fn take(state: &mut State, room: usize) -> Desk {
    let mut desk = Desk::new(8).expect("the host has memory");
    exchange(state, &mut desk, room);
    begin(&mut desk);
    desk
}

/// Shows all new jobs to a device that takes them; their places.
fn begin(desk: &mut Desk) -> Vec<u16> {
    let mut places = Vec::new();
    desk.begin_by(&mut Paper::default(), |place, _, _, _| {
        places.push(place);
        Ok(())
    });
    places
}

fn tags(desk: &mut Desk) -> Vec<u64> {
    desk.jobs().map(|(_, job)| job.request.tag).collect()
}

/// All jobs of a line are done; whether that was the last, and no lane is open.
fn done(state: &mut State, desk: &mut Desk) -> bool {
    let places: Vec<u16> = desk.jobs().map(|(place, _)| place).collect();
    places
        .iter()
        .for_each(|&place| desk.end(place, BlockOutcome::Done));
    exchange(state, desk, 0).is_last
}

fn answers(state: &mut State, id: u64) -> Vec<(u64, BlockOutcome)> {
    let nothing = BlockCompletion {
        tag: 0,
        outcome: BlockOutcome::Done,
    };
    let mut room = vec![nothing; REQUESTS];
    let lane = state.lane(id).expect("it is open");
    let count = lane.take(&mut room) as usize;
    let answers = room[..count].iter();
    answers.map(|answer| (answer.tag, answer.outcome)).collect()
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
fn what_is_plain_has_nothing_wrong() {
    let edges = [
        0,
        1,
        8,
        63,
        64,
        65,
        992,
        993,
        1000,
        1 << 63,
        u64::MAX - 8,
        u64::MAX,
    ];
    let operations = [
        BlockOperation::Read,
        BlockOperation::Write,
        BlockOperation::Flush,
        BlockOperation::Discard,
        BlockOperation::WriteZeroes,
    ];
    let mut plain = 0;
    for operation in operations {
        for (sector, sectors, at) in edges.iter().flat_map(|sector| {
            let all = edges.iter().map(|it| *it as u32);
            all.flat_map(move |sectors| edges.map(|at| (*sector, sectors, at)))
        }) {
            let asked = BlockRequest {
                sector,
                sectors,
                at,
                ..request(1, operation)
            };
            for read_only in [false, true] {
                let limits = QueueLimits {
                    read_only,
                    ..LIMITS
                };
                let is_plain = is_plain(&limits, &asked);
                plain += u32::from(is_plain);
                assert!(!is_plain || check(&limits, &asked) == Ok(()), "{asked:?}");
            }
        }
    }
    assert!(plain > 100, "{plain} are too few");
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
    let mut desk = take(&mut state, 8);
    for place in 0..2 {
        let lane = state.lane(id).expect("it is open");
        assert_eq!(lane.unregister(3).err(), Some(QueueError::InUse));
        desk.end(place, BlockOutcome::Done);
        exchange(&mut state, &mut desk, 0);
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
    state.looks = 7;
    let id = open(&mut state, None);
    let all: Vec<_> = (1..=12).map(read).collect();
    enter(&mut state, id, &all);
    let mut desk = take(&mut state, 2);
    assert_eq!(tags(&mut desk), [1, 2]);
    assert!(desk.jobs().all(|(_, job)| job.since == 7 && !job.mark));
    assert!(tags(&mut take(&mut state, 0)).is_empty());
    // There are eight places, though the device had room for more.
    exchange(&mut state, &mut desk, 100);
    assert_eq!(tags(&mut desk), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(!desk.has_room());
    desk.end(2, BlockOutcome::Done);
    exchange(&mut state, &mut desk, 100);
    assert_eq!(tags(&mut desk), [1, 2, 9, 4, 5, 6, 7, 8]);
}

#[test]
fn what_is_new_is_shown_once_and_in_order() {
    let mut state = State::default();
    let id = open(&mut state, None);
    enter(&mut state, id, &[read(1), read(2), read(3)]);
    let mut desk = Desk::new(8).expect("the host has memory");
    exchange(&mut state, &mut desk, 2);
    // Who has not looked at all of them loses none.
    exchange(&mut state, &mut desk, 8);
    assert_eq!(begin(&mut desk), [0, 1, 2]);
    assert!(begin(&mut desk).is_empty());
    exchange(&mut state, &mut desk, 8);
    assert!(begin(&mut desk).is_empty());
}

/// What a device answers may be the number of a place that has no job, or not any more.
#[test]
fn a_wild_answer_ends_nothing() {
    let mut state = State::default();
    let id = open(&mut state, None);
    enter(&mut state, id, &[read(1), read(2)]);
    let mut desk = take(&mut state, 8);
    for place in [2, 7, 8, u16::MAX] {
        assert!(desk.job(place).is_none());
        desk.end(place, BlockOutcome::Done);
        desk.bar(place);
        desk.unbar();
    }
    assert!(!desk.has_ended());
    assert_eq!(desk.free.len(), 6, "each free place is so once");
    desk.end(1, BlockOutcome::Device);
    desk.end(1, BlockOutcome::Done);
    exchange(&mut state, &mut desk, 8);
    desk.end(1, BlockOutcome::Done);
    exchange(&mut state, &mut desk, 8);
    assert_eq!(state.taken, 1);
    assert_eq!(answers(&mut state, id), [(2, BlockOutcome::Device)]);
}

#[test]
fn a_barred_place_gets_no_other_job_until_it_is_free_again() {
    let mut state = State::default();
    let id = open(&mut state, None);
    enter(&mut state, id, &[read(1), read(2)]);
    let mut desk = take(&mut state, 1);
    desk.bar(0);
    desk.end(0, BlockOutcome::Device);
    exchange(&mut state, &mut desk, 8);
    assert!(desk.job(0).is_none());
    assert_eq!(desk.jobs().map(|(place, _)| place).collect::<Vec<_>>(), [1]);
    desk.unbar();
    let places = desk.free.len();
    assert_eq!(places, 7, "each place is free, but that of the job");
    desk.bar(1);
    desk.unbar();
    assert_eq!(desk.free.len(), places, "one with a job is not");
    // Nor is one whose job has ended, until that is told.
    desk.bar(1);
    desk.end(1, BlockOutcome::Device);
    desk.unbar();
    assert_eq!(desk.free.len(), places);
    exchange(&mut state, &mut desk, 8);
    assert_eq!(desk.free.len(), 8);
}

#[test]
fn a_barrier_waits_for_the_jobs_of_all_lines() {
    let mut state = State::default();
    let id = open(&mut state, None);
    enter(&mut state, id, &[read(1), read(2), barrier(3), read(4)]);
    let (mut one, mut other) = (take(&mut state, 1), take(&mut state, 8));
    assert_eq!((tags(&mut one), tags(&mut other)), (vec![1], vec![2]));
    done(&mut state, &mut other);
    let first_has_one = "the first line has one";
    assert!(tags(&mut take(&mut state, 8)).is_empty(), "{first_has_one}");
    done(&mut state, &mut one);
    let mut alone = take(&mut state, 8);
    assert_eq!(tags(&mut alone), [3]);
    let passes = "nothing passes a barrier";
    assert!(tags(&mut take(&mut state, 8)).is_empty(), "{passes}");
    done(&mut state, &mut alone);
    assert_eq!(tags(&mut take(&mut state, 8)), [4]);
}

#[test]
fn a_closed_lane_ends_with_its_last_job_and_is_not_answered() {
    let mut state = State::default();
    let first = open(&mut state, None);
    enter(&mut state, first, &[read(1), read(2), read(3)]);
    let (mut one, mut other) = (take(&mut state, 1), take(&mut state, 1));
    assert!(state.close_if(|id| id != first).is_none());
    assert!(state.close_if(|id| id == first).is_some());
    assert_eq!(state.lane(first).err(), Some(QueueError::Fenced));
    let waits = tags(&mut take(&mut state, 8));
    assert!(waits.is_empty(), "what waits is forgotten");
    assert!(!done(&mut state, &mut one));
    assert_eq!(state.taken, 1);
    assert!(done(&mut state, &mut other), "that was the last");
    let second = open(&mut state, None);
    assert_eq!(state.lane(first).err(), Some(QueueError::Fenced));
    assert!(answers(&mut state, second).is_empty());
}

#[test]
fn a_job_of_a_former_lane_is_no_answer_to_the_next() {
    let mut state = State::default();
    let first = open(&mut state, None);
    enter(&mut state, first, &[read(1)]);
    let mut old = take(&mut state, 1);
    state.close_if(|_| true);
    let second = open(&mut state, None);
    enter(&mut state, second, &[read(2)]);
    let mut new = take(&mut state, 1);
    done(&mut state, &mut old);
    assert!(answers(&mut state, second).is_empty());
    done(&mut state, &mut new);
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
    assert!(tags(&mut take(&mut state, 8)).is_empty());
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
        let mut desk = take(state, 1);
        done(state, &mut desk);
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
fn the_submitter_is_told_again_if_that_was_of_no_use() {
    let bell = Arc::new(AtomicU32::new(0));
    let mut state = State::default();
    let raiser = Handle::<dyn Raiser>::new(Bell(bell));
    let id = open(&mut state, Some(raiser.expect("the host has memory")));
    enter(&mut state, id, &[read(1)]);
    let mut desk = take(&mut state, 1);
    done(&mut state, &mut desk);
    assert!(state.whom_to_raise().is_some());
    assert!(state.whom_to_raise().is_none(), "he was told");
    state.not_raised();
    assert!(state.whom_to_raise().is_some());
}

#[test]
fn who_watches_is_told_of_the_first_job_alone() {
    let mut state = State::default();
    let id = open(&mut state, None);
    state.unwatched = true;
    let mut desk = take(&mut state, 8);
    assert!(state.unwatched, "there is none");
    enter(&mut state, id, &[read(1), read(2)]);
    assert!(exchange(&mut state, &mut desk, 1).is_watched);
    assert!(!exchange(&mut state, &mut desk, 2).is_watched);
    assert_eq!(tags(&mut desk), [1, 2]);
}
