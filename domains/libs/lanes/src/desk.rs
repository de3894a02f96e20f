//! The places of a line: the jobs that it has, each in a place of its own for all its way.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::{mem, slice};

use interfaces::{BlockOutcome, BlockRequest, RpcError};

use crate::job::Job;
use crate::room::{Calls, Held, NO_RUN, Room, Window, gather, release};

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
    pub(crate) lane: u64,
    /// Places of jobs that came by the last exchange, and how many of them were looked at.
    pub(crate) new: Vec<u16>,
    seen: usize,
    /// From which of the new jobs on which window has their pages.
    windows: VecDeque<(usize, Window)>,
    /// The window by which pages were held last.
    pub(crate) window: Option<Window>,
    /// Places of jobs that have ended since the last exchange.
    ended: Vec<u16>,
    barred: Option<u16>,
}

/// A place, whose job counts as long as it is taken.
struct Place {
    is_taken: bool,
    /// How the job has ended, if it has: that is there until the next exchange tells so.
    outcome: BlockOutcome,
    job: Job,
}

impl Place {
    #[inline]
    fn job(&mut self) -> Option<&mut Job> {
        self.is_taken.then_some(&mut self.job)
    }

    #[inline]
    fn put(&mut self, request: &BlockRequest, since: u64) {
        self.is_taken = true;
        // Each by itself: a whole job would be put together somewhere else and moved here. What a
        // job held it has given back.
        self.job.request = *request;
        self.job.since = since;
        self.job.mark = false;
    }

    /// Ends the job, if there is one; whether there was.
    #[inline]
    fn end(&mut self, outcome: BlockOutcome) -> bool {
        let is_taken = mem::take(&mut self.is_taken);
        if is_taken {
            self.outcome = outcome;
        }
        is_taken
    }
}

/// Where the requests of a batch are being put.
pub(crate) struct Putting<'d> {
    windows: &'d mut VecDeque<(usize, Window)>,
    /// How many jobs are new.
    count: usize,
}

impl Putting<'_> {
    /// The pages of the next job, and of those behind it, are in another memory object.
    #[cold]
    pub(crate) fn next_window(&mut self, window: Window) {
        self.windows.push_back((self.count, window));
    }
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
            outcome: BlockOutcome::Done,
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
            barred: None,
        })
    }

    /// Whether another job can come.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// The pages of the next job that is put, and of those behind it, are in another memory object
    /// than those of the one before.
    pub(crate) fn next_window(&mut self, window: Window) {
        self.windows.push_back((self.new.len(), window));
    }

    /// Makes a request of a lane a job in a place that is free.
    pub(crate) fn put(&mut self, lane: u64, request: &BlockRequest, since: u64) {
        self.put_while(lane, slice::from_ref(request), since, |_, _| true);
    }

    /// Makes requests of a lane jobs, each in a place that is free, as long as there are such and
    /// `admit` lets it; how many.
    // Inlined, as `end`, since these are much of what a request takes.
    #[inline(always)]
    pub(crate) fn put_while(
        &mut self,
        lane: u64,
        requests: &[BlockRequest],
        since: u64,
        mut admit: impl FnMut(&BlockRequest, &mut Putting) -> bool,
    ) -> usize {
        // Another lane is opened only when no line has a job.
        debug_assert!(self.lane == lane || self.count == 0);
        self.lane = lane;
        let before = self.new.len();
        let mut putting = Putting {
            windows: &mut self.windows,
            count: before,
        };
        for (request, &number) in requests.iter().zip(self.free.iter().rev()) {
            let Some(place) = self.places.get_mut(usize::from(number)) else {
                break;
            };
            if !admit(request, &mut putting) {
                break;
            }
            place.put(request, since);
            self.new.push(number);
            putting.count += 1;
        }
        let count = putting.count - before;
        self.count += count;
        self.free.truncate(self.free.len() - count);
        count
    }

    /// Forgets which jobs were new, once all of them were looked at.
    pub(crate) fn forget_seen(&mut self) {
        if self.seen == self.new.len() {
            self.new.clear();
            self.seen = 0;
        }
    }

    /// The jobs that have ended since the last exchange, and how. Their places are to be
    /// [freed](Self::free_ended) then.
    #[inline(always)]
    pub(crate) fn ended(&self) -> impl ExactSizeIterator<Item = (&Job, BlockOutcome)> {
        // The numbers are those of places.
        let place = |&number: &u16| &self.places[usize::from(number)];
        self.ended
            .iter()
            .map(place)
            .map(|place| (&place.job, place.outcome))
    }

    /// The places of those are free; how many they are.
    #[inline]
    pub(crate) fn free_ended(&mut self) -> usize {
        let count = self.ended.len();
        if let Some(barred) = self.barred {
            self.ended.retain(|number| *number != barred);
        }
        self.free.append(&mut self.ended);
        count
    }

    /// Shows the jobs that were just taken, each with its place, to `begin`, in their order: it
    /// gives them to the device. Of those with data the pages are held: it has the addresses of all
    /// of them, and the offset in the first where the bytes begin. What is refused ends so.
    #[inline]
    pub fn begin_new(
        &mut self,
        room: &mut Room,
        begin: impl FnMut(u16, &mut Job, &[u64], u64) -> Result<(), BlockOutcome>,
    ) {
        self.begin_by(room, begin);
    }

    #[inline]
    pub(crate) fn begin_by(
        &mut self,
        calls: &mut impl Calls,
        mut begin: impl FnMut(u16, &mut Job, &[u64], u64) -> Result<(), BlockOutcome>,
    ) {
        while let Some(&number) = self.new.get(self.seen) {
            let held = match self.job(number).is_some_and(|job| job.has_data()) {
                true => self.hold(calls),
                false => Held::new(&[NO_RUN], &[]),
            };
            if held.runs.is_empty() {
                self.seen += 1;
                self.end(number, held.refused);
            }
            self.begin_held(held, &mut begin);
        }
    }

    /// Begins as many of the next jobs as there are runs held for them.
    #[inline(always)]
    fn begin_held(
        &mut self,
        held: Held<'_>,
        begin: &mut impl FnMut(u16, &mut Job, &[u64], u64) -> Result<(), BlockOutcome>,
    ) {
        let (mut addresses, from) = (held.addresses, self.seen);
        self.seen += held.runs.len();
        for (run, &number) in held.runs.iter().zip(&self.new[from..]) {
            let Some(place) = self.places.get_mut(usize::from(number)) else {
                continue;
            };
            place.job.hold = run.hold;
            let pages = addresses.split_off(..run.pages as usize);
            let pages = pages.ok_or(BlockOutcome::Memory);
            let inside = place.job.inside();
            let begun = pages.and_then(|pages| begin(number, &mut place.job, pages, inside));
            if let Err(outcome) = begun
                && place.end(outcome)
            {
                self.count -= 1;
                self.ended.push(number);
            }
        }
    }

    /// Holds the pages of the next job and of those behind it that are in the same memory object.
    #[inline]
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
        let jobs = jobs.map_while(|&place| Some(&self.places.get(usize::from(place))?.job));
        let held = gather(calls, jobs).and_then(|count| calls.hold(window, count));
        held.unwrap_or_else(Held::refused)
    }

    /// The device uses the memory of no job any more.
    pub fn release_all(&mut self, room: &mut Room) {
        self.release_all_by(room);
    }

    pub(crate) fn release_all_by(&mut self, calls: &mut impl Calls) {
        if let Some(window) = &self.window {
            let holds = self.places.iter_mut();
            release(calls, window, holds.filter_map(|it| it.job.take_hold()));
        }
        self.let_go(calls);
    }

    /// It does not use that of jobs that have ended. This is not for under the lock of the lanes.
    pub(crate) fn let_go(&mut self, calls: &mut impl Calls) {
        let Some(window) = &self.window else { return };
        let places = &mut self.places;
        let hold = |&number: &u16| places.get_mut(usize::from(number))?.job.take_hold();
        release(calls, window, self.ended.iter().filter_map(hold));
        // Without a job nothing is held.
        if self.count == 0 && calls.late().is_empty() {
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

    /// The device has a job no more. Its pages are released by the next exchange, and then its
    /// place is free.
    #[inline(always)]
    pub fn end(&mut self, place: u16, outcome: BlockOutcome) {
        let slot = self.places.get_mut(usize::from(place));
        if slot.is_some_and(|slot| slot.end(outcome)) {
            self.count -= 1;
            self.ended.push(place);
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
        let Some(number) = self.barred.take() else {
            return;
        };
        // Where a job has ended the next exchange frees the place.
        if self.job(number).is_none() && !self.ended.contains(&number) {
            self.free.push(number);
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
