//! The places of a line: the jobs that it has, each in a place of its own for all its way.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use interfaces::{BlockOutcome, RpcError};

use crate::job::Job;
use crate::lane::NO_SLOT;
use crate::room::{Calls, Held, Room, Window, gather, release};

/// Places of jobs. A job comes into one and leaves it by [`Lanes::exchange`]; it is not moved
/// meanwhile. The number of its place is what a device may be told: whatever that answers, a job is
/// ended once.
///
/// [`Lanes::exchange`]: crate::Lanes::exchange
pub struct Desk {
    jobs: Vec<Option<Job>>,
    /// Places without a job, but for the one that is barred.
    pub(crate) free: Vec<u16>,
    /// The lane whose jobs it has.
    lane: u64,
    /// Places of jobs that came by the last exchange, and how many of them were looked at.
    pub(crate) new: Vec<u16>,
    seen: usize,
    /// From which of the new jobs on which window has their pages.
    windows: VecDeque<(usize, Window)>,
    /// The window by which pages were held last.
    window: Option<Window>,
    /// How jobs have ended since the last exchange, and what they held.
    ended: Vec<Ended>,
    holds: Vec<u64>,
    barred: Option<u16>,
}

/// How a job has ended.
#[derive(Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) tag: u64,
    pub(crate) outcome: BlockOutcome,
    /// The slot that it named, or [`NO_SLOT`].
    pub(crate) slot: u32,
}

impl Desk {
    /// So many places, all of them free.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub fn new(places: u16) -> Result<Self, RpcError> {
        let mut jobs = room(places)?;
        jobs.resize_with(places.into(), || None);
        let mut free = room(places)?;
        free.extend((0..places).rev());
        Ok(Desk {
            jobs,
            free,
            lane: 0,
            new: room(places)?,
            seen: 0,
            windows: room(places)?.into(),
            window: None,
            ended: room(places)?,
            holds: room(places)?,
            barred: None,
        })
    }

    /// Whether another job can come.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Puts a job of a lane into a place that is free. If its pages are in another memory object
    /// than those of the one before, it comes with the window of that.
    // Inlined, as `end`, since these are much of what a request takes.
    #[inline(always)]
    pub(crate) fn put(&mut self, lane: u64, window: Option<Window>, job: impl FnOnce() -> Job) {
        let Some(place) = self.free.pop() else { return };
        if let Some(window) = window {
            self.windows.push_back((self.new.len(), window));
        }
        // Another lane is opened only when no line has a job.
        debug_assert!(self.lane == lane || self.jobs.iter().all(Option::is_none));
        self.lane = lane;
        if let Some(slot) = self.jobs.get_mut(usize::from(place)) {
            *slot = Some(job());
            self.new.push(place);
        }
    }

    /// Forgets which jobs were new, once all of them were looked at.
    pub(crate) fn forget_seen(&mut self) {
        if self.seen == self.new.len() {
            self.new.clear();
            self.seen = 0;
        }
    }

    /// Tells how jobs have ended, and whose they were, and forgets it; how many.
    #[inline]
    pub(crate) fn tell_ended(&mut self, tell: impl FnOnce(u64, &[Ended])) -> usize {
        let count = self.ended.len();
        tell(self.lane, &self.ended);
        self.ended.clear();
        count
    }

    /// Shows the jobs that were just taken, each with its place, to `begin`, in their order: it
    /// gives them to the device. Of those with data the pages are held: it has the addresses of all
    /// of them, and the offset in the first where the bytes begin. What is refused ends so.
    pub fn begin_new(
        &mut self,
        room: &mut Room,
        begin: impl FnMut(u16, &mut Job, &[u64], u64) -> Result<(), BlockOutcome>,
    ) {
        self.begin_by(room, begin);
    }

    pub(crate) fn begin_by(
        &mut self,
        calls: &mut impl Calls,
        mut begin: impl FnMut(u16, &mut Job, &[u64], u64) -> Result<(), BlockOutcome>,
    ) {
        let mut held = Held::default();
        while let Some(&place) = self.new.get(self.seen) {
            if held.runs.is_empty() && self.job(place).is_some_and(|job| job.has_data()) {
                held = self.hold(calls);
            }
            self.seen += 1;
            let Some(job) = self.job(place) else { continue };
            let inside = job.inside();
            let begun = match job.has_data() {
                true => held.give_to(job),
                false => Ok(&[][..]),
            };
            let begun = begun.and_then(|pages| begin(place, job, pages, inside));
            if let Err(outcome) = begun {
                self.end(place, outcome);
            }
        }
    }

    /// Holds the pages of the next job and of those behind it that are in the same memory object.
    fn hold<'c>(&mut self, calls: &'c mut impl Calls) -> Held<'c> {
        while let Some((from, _)) = self.windows.front()
            && *from <= self.seen
        {
            self.window = self.windows.pop_front().map(|(_, window)| window);
        }
        let Some(window) = &self.window else {
            return Held::refused(BlockOutcome::BadSlot);
        };
        let end = self.windows.front().map_or(self.new.len(), |next| next.0);
        let jobs = self.new[self.seen..end].iter();
        let jobs = jobs.map_while(|&place| self.jobs.get(usize::from(place))?.as_ref());
        let held = gather(calls, jobs).and_then(|count| calls.hold(window, count));
        held.unwrap_or_else(Held::refused)
    }

    /// The device uses the memory of no job any more.
    pub fn release_all(&mut self, room: &mut Room) {
        self.release_all_by(room);
    }

    pub(crate) fn release_all_by(&mut self, calls: &mut impl Calls) {
        let jobs = self.jobs.iter_mut().flatten();
        self.holds.extend(jobs.filter_map(|job| job.hold.take()));
        self.let_go(calls);
    }

    /// It does not use that of jobs that have ended. This is not for under the lock of the lanes.
    pub(crate) fn let_go(&mut self, calls: &mut impl Calls) {
        let Some(window) = &self.window else { return };
        release(calls, window, &self.holds);
        self.holds.clear();
        // Without a job nothing is held.
        if self.free.len() == self.jobs.len() {
            self.window = None;
        }
    }

    /// The job in a place, if there is one that has not ended.
    #[inline]
    pub fn job(&mut self, place: u16) -> Option<&mut Job> {
        self.jobs.get_mut(usize::from(place))?.as_mut()
    }

    /// All jobs that have not ended, each with its place.
    pub fn jobs(&mut self) -> impl Iterator<Item = (u16, &mut Job)> {
        let jobs = (0..).zip(&mut self.jobs);
        jobs.filter_map(|(place, job)| Some((place, job.as_mut()?)))
    }

    /// The device has a job no more. Its pages are released by the next exchange.
    #[inline(always)]
    pub fn end(&mut self, place: u16, outcome: BlockOutcome) {
        let Some(slot) = self.jobs.get_mut(usize::from(place)) else {
            return;
        };
        let Some(job) = slot else { return };
        let request = &job.request;
        self.ended.push(Ended {
            tag: request.tag,
            outcome,
            slot: match job.has_data() {
                true => request.slot,
                false => NO_SLOT,
            },
        });
        self.holds.extend(job.hold);
        *slot = None;
        if self.barred != Some(place) {
            self.free.push(place);
        }
    }

    /// Whether jobs have ended since the last exchange.
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// No other job comes into this place until [`unbar`](Self::unbar). One place can be barred.
    pub fn bar(&mut self, place: u16) {
        self.barred = Some(place);
    }

    /// No place is barred any more.
    pub fn unbar(&mut self) {
        if let Some(place) = self.barred.take()
            && self
                .jobs
                .get(usize::from(place))
                .is_some_and(Option::is_none)
        {
            self.free.push(place);
        }
    }
}

/// An empty list with room for so many.
fn room<T>(count: u16) -> Result<Vec<T>, RpcError> {
    let mut list = Vec::new();
    let reserved = list.try_reserve_exact(count.into());
    reserved.map_err(|_| RpcError::NoMemory)?;
    Ok(list)
}
