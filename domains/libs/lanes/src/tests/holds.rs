//! Pages of jobs are held by one call for many of them, and released so.

use interfaces::{DmaDirection, DmaRun, MemoryError, RVec};

use super::*;
use crate::job::Job;
use crate::room::{AT_ONCE, Calls, Held};

const PAGE: u64 = 4096;

/// A window that is never called: on the host there is no memory for what goes with it.
pub struct Window;

impl DmaWindow for Window {
    fn hold(
        &self,
        _: RVec<DmaRun>,
        _: u32,
        _: RVec<u64>,
    ) -> Result<(RVec<DmaRun>, RVec<u64>, u32), MemoryError> {
        Err(MemoryError::Denied)
    }

    fn release(&self, _: &RVec<u64>, _: u32) -> Result<(), MemoryError> {
        Err(MemoryError::Invalid)
    }
}

/// Calls that are noted and not made. Pages lie where their numbers say.
pub struct Paper {
    runs: Vec<DmaRun>,
    addresses: Vec<u64>,
    holds: Vec<u64>,
    /// Runs from this page on are refused.
    end: u64,
    next: u64,
    /// Runs of each call that held some.
    held: Vec<usize>,
    /// Numbers of each call that released some.
    released: Vec<Vec<u64>>,
    late: Vec<u64>,
    /// How many calls that release are not made, for want of stack say.
    failing: u32,
}

impl Default for Paper {
    fn default() -> Self {
        let nothing = DmaRun {
            first: 0,
            pages: 0,
            direction: DmaDirection::ToDevice,
            hold: 0,
        };
        Paper {
            runs: vec![nothing; AT_ONCE],
            addresses: vec![0; AT_ONCE],
            holds: vec![0; AT_ONCE],
            end: u64::MAX,
            next: 300,
            held: Vec::new(),
            released: Vec::new(),
            late: Vec::with_capacity(100),
            failing: 0,
        }
    }
}

impl Calls for Paper {
    fn runs(&mut self) -> Result<(&mut [DmaRun], u64), BlockOutcome> {
        Ok((&mut self.runs, self.addresses.len() as u64))
    }

    fn hold(
        &mut self,
        _: &Arc<Handle<dyn DmaWindow>>,
        count: u32,
    ) -> Result<Held<'_>, BlockOutcome> {
        let (mut room, mut held) = (self.addresses.iter_mut(), 0);
        for run in &mut self.runs[..count as usize] {
            if run.first + run.pages > self.end {
                break;
            }
            for page in run.first..run.first + run.pages {
                *room.next().expect("there is room") = page * PAGE;
            }
            run.hold = self.next;
            self.next += 1;
            held += 1;
        }
        if held == 0 {
            return Err(BlockOutcome::Memory);
        }
        self.held.push(held);
        Ok(Held::new(&self.runs[..held], &self.addresses))
    }

    fn holds(&mut self) -> &mut [u64] {
        &mut self.holds
    }

    fn release(&mut self, _: &Arc<Handle<dyn DmaWindow>>, count: u32) -> bool {
        if self.failing > 0 {
            self.failing -= 1;
            return false;
        }
        self.released.push(self.holds[..count as usize].to_vec());
        true
    }

    fn late(&mut self) -> &mut Vec<u64> {
        &mut self.late
    }
}

/// A lane with windows in slots 3 and 4.
fn open_both(state: &mut State) -> u64 {
    let id = open(state, None);
    let window = Handle::<dyn DmaWindow>::new(Window).expect("the host has memory");
    let lane = state.lane(id).expect("it is open");
    assert_eq!(lane.register(4, &mut Some(window)), Ok(()));
    id
}

/// A request for as many sectors, from that one of the memory object on.
fn at(tag: u64, at: u64, sectors: u32) -> BlockRequest {
    BlockRequest {
        at,
        sectors,
        ..read(tag)
    }
}

fn desk_with(state: &mut State, id: u64, requests: &[BlockRequest]) -> Desk {
    enter(state, id, requests);
    let mut desk = Desk::new(100).expect("the host has memory");
    exchange(state, &mut desk, 100);
    desk
}

/// Tag, pages and offset of each job, in the order in which a device gets them.
fn shown(desk: &mut Desk, paper: &mut Paper) -> Vec<(u64, Vec<u64>, u64)> {
    let mut all = Vec::new();
    let show = |_, job: &mut Job, pages: &[u64], inside| {
        let pages = pages.iter().map(|page| page / PAGE).collect();
        all.push((job.request.tag, pages, inside));
        Ok(())
    };
    desk.begin_by(paper, show);
    all
}

fn end_all(state: &mut State, desk: &mut Desk, paper: &mut Paper) {
    let places: Vec<u16> = desk.jobs().map(|(place, _)| place).collect();
    places
        .iter()
        .for_each(|&place| desk.end(place, BlockOutcome::Done));
    desk.let_go(paper);
    exchange(state, desk, 0);
}

#[test]
fn a_batch_is_held_by_one_call_and_released_by_one() {
    let mut state = State::default();
    let (id, mut paper) = (open_both(&mut state), Paper::default());
    let requests = [at(1, 8, 8), at(2, 17, 8), at(3, 0, 24), at(4, 15, 1)];
    let mut desk = desk_with(&mut state, id, &requests);
    let wanted = [
        (1, vec![1], 0),
        (2, vec![2, 3], 512),
        (3, vec![0, 1, 2], 0),
        (4, vec![1], 7 * 512),
    ];
    assert_eq!(shown(&mut desk, &mut paper), wanted);
    assert_eq!(paper.held, [4]);
    end_all(&mut state, &mut desk, &mut paper);
    assert_eq!(paper.released, [[300, 301, 302, 303]]);
    assert_eq!(answers(&mut state, id).len(), 4);
}

#[test]
fn a_call_ends_where_the_window_or_the_room_does() {
    let mut state = State::default();
    let (id, mut paper) = (open_both(&mut state), Paper::default());
    let other = |tag| BlockRequest {
        slot: 4,
        ..read(tag)
    };
    let zeroes = request(4, BlockOperation::WriteZeroes);
    let requests = [read(1), read(2), other(3), zeroes, other(5), read(6)];
    let mut desk = desk_with(&mut state, id, &requests);
    let tags: Vec<u64> = shown(&mut desk, &mut paper).iter().map(|it| it.0).collect();
    assert_eq!(tags, [1, 2, 3, 4, 5, 6]);
    assert_eq!(paper.held, [2, 1, 1, 1]);
    end_all(&mut state, &mut desk, &mut paper);
    assert_eq!(paper.released.len(), 1);
    // 40 pages each, and room for 64, or for one request.
    let long: Vec<_> = (7..10).map(|tag| at(tag, 0, 320)).collect();
    enter(&mut state, id, &long);
    exchange(&mut state, &mut desk, 100);
    assert_eq!(shown(&mut desk, &mut paper).len(), 3);
    assert_eq!(paper.held, [2, 1, 1, 1, 1, 1, 1]);
}

/// A line counts a window once for jobs that follow each other, and lets go of it with the last.
#[test]
fn a_window_is_kept_as_long_as_there_are_jobs() {
    let mut state = State::default();
    let (id, mut paper) = (open_both(&mut state), Paper::default());
    let uses = |desk: &Desk| desk.window.as_ref().map(Arc::strong_count);
    let mut desk = desk_with(&mut state, id, &[read(1), read(2), read(3)]);
    assert_eq!(shown(&mut desk, &mut paper).len(), 3);
    assert_eq!(uses(&desk), Some(2), "the slot has it, and the line once");
    desk.end(0, BlockOutcome::Done);
    desk.let_go(&mut paper);
    assert_eq!(uses(&desk), Some(2));
    // A later exchange says again whose window is meant.
    let other = BlockRequest { slot: 4, ..read(4) };
    for request in [other, read(5)] {
        assert_eq!(submit(&mut state, id, &[request], &mut desk, 100), Ok(1));
    }
    assert_eq!(shown(&mut desk, &mut paper).len(), 2);
    assert_eq!(paper.held, [3, 1, 1]);
    end_all(&mut state, &mut desk, &mut paper);
    assert_eq!(uses(&desk), None);
}

#[test]
fn who_is_refused_is_answered_and_those_behind_go_on() {
    let mut state = State::default();
    let (id, mut paper) = (open_both(&mut state), Paper::default());
    paper.end = 10;
    let requests = [at(1, 0, 8), at(2, 80, 8), at(3, 76, 8), at(4, 8, 8)];
    let mut desk = desk_with(&mut state, id, &requests);
    let tags: Vec<u64> = shown(&mut desk, &mut paper).iter().map(|it| it.0).collect();
    assert_eq!(tags, [1, 4]);
    assert!(desk.has_ended());
    desk.let_go(&mut paper);
    exchange(&mut state, &mut desk, 0);
    let memory = BlockOutcome::Memory;
    assert_eq!(answers(&mut state, id), [(2, memory), (3, memory)]);
    end_all(&mut state, &mut desk, &mut paper);
    assert_eq!(paper.held, [1, 1]);
    assert_eq!(paper.released, [[300, 301]]);
}

/// More than one call releases, and what the device had when it was reset.
#[test]
fn everything_is_released_once() {
    let mut state = State::default();
    let (id, mut paper) = (open_both(&mut state), Paper::default());
    let requests: Vec<_> = (0..100).map(read).collect();
    let mut desk = desk_with(&mut state, id, &requests);
    // What a device does not take is released, too.
    desk.begin_by(&mut paper, |place, _, _, _| match place % 2 {
        0 => Ok(()),
        _ => Err(BlockOutcome::Device),
    });
    desk.let_go(&mut paper);
    desk.let_go(&mut paper);
    exchange(&mut state, &mut desk, 0);
    desk.release_all_by(&mut paper);
    desk.release_all_by(&mut paper);
    end_all(&mut state, &mut desk, &mut paper);
    assert_eq!(paper.held, [64, 36]);
    let mut released = paper.released.concat();
    assert!(paper.released.iter().all(|call| call.len() <= 64));
    released.sort_unstable();
    assert_eq!(released, (300..400).collect::<Vec<u64>>());
    assert_eq!(answers(&mut state, id).len(), 100);
}

/// Who takes the answers has no stack left for the calls that release. Somebody else comes, who has
/// nothing to release himself.
#[test]
fn what_could_not_be_released_is_released_later() {
    let mut state = State::default();
    let (id, mut paper) = (open_both(&mut state), Paper::default());
    let requests: Vec<_> = (0..100).map(read).collect();
    let mut desk = desk_with(&mut state, id, &requests);
    desk.begin_by(&mut paper, |_, _, _, _| Ok(()));
    paper.failing = 2;
    end_all(&mut state, &mut desk, &mut paper);
    assert_eq!(answers(&mut state, id).len(), 100);
    assert_eq!((paper.released.len(), paper.late.len()), (0, 100));
    paper.failing = 1;
    desk.let_go(&mut paper);
    assert_eq!((paper.released.len(), paper.late.len()), (0, 100));
    desk.let_go(&mut paper);
    let mut released = paper.released.concat();
    released.sort_unstable();
    assert_eq!(released, (300..400).collect::<Vec<u64>>());
    assert!(paper.late.is_empty());
    desk.let_go(&mut paper);
    assert!(desk.window.is_none() && paper.released.len() == 2);
}

#[test]
fn the_device_reads_for_a_write_and_writes_for_a_read() {
    let job = |operation| {
        let mut state = State::default();
        let id = open_both(&mut state);
        let mut desk = desk_with(&mut state, id, &[request(1, operation)]);
        desk.job(0).expect("it was taken").run().direction
    };
    assert_eq!(job(BlockOperation::Read), DmaDirection::FromDevice);
    assert_eq!(job(BlockOperation::Write), DmaDirection::ToDevice);
}
