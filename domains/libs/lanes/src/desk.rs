//! The places of a line: the jobs that it has, each in a place of its own for all its way.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use interfaces::{BlockOutcome, BlockRequest, RpcError};

use crate::job::Job;
use crate::lane::NO_SLOT;
use crate::room::{Calls, Held, Room, Window, gather, release};

/// Places of jobs. A job comes into one and leaves it by [`Lanes::exchange`]; it is not moved
/// meanwhile. The number of its place is what a device may be told: whatever that answers, a job is
/// ended once.
///
/// [`Lanes::exchange`]: crate::Lanes::exchange
pub struct Desk {
    places: Vec<Place>,
    /// Places without a job, but for the one that is barred.
    pub(crate) free: Vec<u16>,
    /// How many jobs it has, and of which lane.
    count: usize,
    lane: u64,
    /// Places of jobs that came by the last exchange, and how many of them were looked at.
    pub(crate) new: Vec<u16>,
    seen: usize,
    /// From which of the new jobs on which window has their pages.
    windows: VecDeque<(usize, Window)>,
    /// The window by which pages were held last.
    pub(crate) window: Option<Window>,
    /// How jobs have ended since the last exchange, and what they held.
    ended: Vec<Ended>,
    holds: Vec<u64>,
    barred: Option<u16>,
}

/// A place, whose job counts as long as it is taken.
struct Place {
    is_taken: bool,
    job: Job,
}

impl Place {
    #[inline]
    fn job(&mut self) -> Option<&mut Job> {
        self.is_taken.then_some(&mut self.job)
    }
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
        let mut all = room(places)?;
        all.resize_with(places.into(), || Place {
            is_taken: false,
            job: Job::NONE,
        });
        let mut free = room(places)?;
        free.extend((0..places).rev());
        Ok(Desk {
            places: all,
            free,
            count: 0,
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

    /// Makes a request of a lane a job in a place that is free. If its pages are in another memory
    /// object than those of the one before, it comes with the window of that.
    // Inlined, as `end`, since these are much of what a request takes.
    #[inline(always)]
    pub(crate) fn put(
        &mut self,
        lane: u64,
        window: Option<Window>,
        request: &BlockRequest,
        since: u64,
    ) {
        let Some(number) = self.free.pop() else {
            return;
        };
        let Some(place) = self.places.get_mut(usize::from(number)) else {
            return;
        };
        // Another lane is opened only when no line has a job.
        debug_assert!(self.lane == lane || self.count == 0);
        self.lane = lane;
        self.count += 1;
        place.is_taken = true;
        // Each by itself: a whole job would be put together somewhere else and moved here.
        place.job.request = *request;
        place.job.since = since;
        place.job.mark = false;
        place.job.hold = None;
        if let Some(window) = window {
            self.windows.push_back((self.new.len(), window));
        }
        self.new.push(number);
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
        let place = |&place: &u16| self.places.get(usize::from(place));
        let jobs = jobs.map_while(place).take_while(|place| place.is_taken);
        let jobs = jobs.map(|place| &place.job);
        let held = gather(calls, jobs).and_then(|count| calls.hold(window, count));
        held.unwrap_or_else(Held::refused)
    }

    /// The device uses the memory of no job any more.
    pub fn release_all(&mut self, room: &mut Room) {
        self.release_all_by(room);
    }

    pub(crate) fn release_all_by(&mut self, calls: &mut impl Calls) {
        let jobs = self.places.iter_mut().filter_map(Place::job);
        self.holds.extend(jobs.filter_map(|job| job.hold.take()));
        self.let_go(calls);
    }

    /// It does not use that of jobs that have ended. This is not for under the lock of the lanes.
    pub(crate) fn let_go(&mut self, calls: &mut impl Calls) {
        let Some(window) = &self.window else { return };
        release(calls, window, &self.holds);
        self.holds.clear();
        // Without a job nothing is held.
        if self.count == 0 {
            self.window = None;
        }
    }

    /// The job in a place, if there is one that has not ended.
    #[inline]
    pub fn job(&mut self, place: u16) -> Option<&mut Job> {
        self.places.get_mut(usize::from(place))?.job()
    }

    /// All jobs that have not ended, each with its place.
    pub fn jobs(&mut self) -> impl Iterator<Item = (u16, &mut Job)> {
        let places = (0..).zip(&mut self.places);
        places.filter_map(|(number, place)| Some((number, place.job()?)))
    }

    /// The device has a job no more. Its pages are released by the next exchange.
    #[inline(always)]
    pub fn end(&mut self, place: u16, outcome: BlockOutcome) {
        let slot = self.places.get_mut(usize::from(place));
        let Some(slot) = slot.filter(|slot| slot.is_taken) else {
            return;
        };
        slot.is_taken = false;
        self.count -= 1;
        let Job { request, hold, .. } = &slot.job;
        self.ended.push(Ended {
            tag: request.tag,
            outcome,
            slot: match slot.job.has_data() {
                true => request.slot,
                false => NO_SLOT,
            },
        });
        self.holds.extend(*hold);
        if self.barred != Some(place) {
            self.free.push(place);
        }
    }

    /// Whether jobs have ended since the last exchange.
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// No other job comes into the place of this one until [`unbar`](Self::unbar). One place can be
    /// barred.
    pub fn bar(&mut self, place: u16) {
        if self.job(place).is_some() {
            self.barred = Some(place);
        }
    }

    /// No place is barred any more.
    pub fn unbar(&mut self) {
        if let Some(place) = self.barred.take()
            && self.job(place).is_none()
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
