//! The places of a line: the jobs that it has, each in a place of its own for all its way.

use alloc::vec::Vec;

use interfaces::{BlockOutcome, RpcError};

use crate::job::Job;
use crate::room::{Calls, Release, Room, gather};

/// Places of jobs. A job comes into one and leaves it by [`Lanes::exchange`]; it is not moved
/// meanwhile. The number of its place is what a device may be told: whatever that answers, a job is
/// ended once.
///
/// [`Lanes::exchange`]: crate::Lanes::exchange
pub struct Desk {
    pub(crate) jobs: Vec<Option<Job>>,
    /// Places without a job, but for the one that is barred.
    pub(crate) free: Vec<u16>,
    /// Places of jobs that came by the last exchange, and how many of them were looked at.
    pub(crate) new: Vec<u16>,
    pub(crate) seen: usize,
    /// Places of jobs that have ended.
    pub(crate) ended: Vec<u16>,
    pub(crate) barred: Option<u16>,
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
            new: room(places)?,
            seen: 0,
            ended: room(places)?,
            barred: None,
        })
    }

    /// Whether another job can come.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
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
        while let Some(&place) = self.new.get(self.seen) {
            if self.job(place).is_some_and(|job| job.has_data()) {
                self.begin_held(place, calls, &mut begin);
            } else {
                self.begin_next(None, &[], &mut begin);
            }
        }
    }

    /// As [`begin_new`](Self::begin_new), for the next job, which has data and is in `place`, and
    /// those behind it whose pages are held by the same call.
    fn begin_held(
        &mut self,
        place: u16,
        calls: &mut impl Calls,
        mut begin: impl FnMut(u16, &mut Job, &[u64], u64) -> Result<(), BlockOutcome>,
    ) {
        let jobs = self.new[self.seen..].iter();
        let jobs = jobs.map_while(|&place| self.jobs.get(usize::from(place))?.as_ref());
        let first = self.seen;
        let ready = gather(calls, jobs.take_while(|job| job.has_data()));
        let refused = match ready.and_then(|(window, count)| calls.hold(window, count)) {
            Ok(mut held) => {
                while let Some((hold, pages)) = held.next() {
                    self.begin_next(Some(hold), pages, &mut begin);
                }
                BlockOutcome::Memory
            }
            Err(outcome) => outcome,
        };
        // So it comes further in any case.
        if self.seen == first {
            self.seen += 1;
            self.end(place, refused);
        }
    }

    /// Shows the next job to `begin`.
    fn begin_next(
        &mut self,
        hold: Option<u64>,
        pages: &[u64],
        begin: impl FnOnce(u16, &mut Job, &[u64], u64) -> Result<(), BlockOutcome>,
    ) {
        let Some(&place) = self.new.get(self.seen) else {
            return;
        };
        self.seen += 1;
        let Some(job) = self.job(place) else { return };
        job.hold = hold;
        let inside = job.inside();
        if let Err(outcome) = begin(place, job, pages, inside) {
            self.end(place, outcome);
        }
    }

    /// The device uses the memory of no job any more.
    pub fn release_all(&mut self, room: &mut Room) {
        self.release_all_by(room);
    }

    pub(crate) fn release_all_by(&mut self, calls: &mut impl Calls) {
        let mut release = Release::new(calls);
        let jobs = self.jobs.iter_mut().flatten();
        jobs.for_each(|job| release.add(job));
    }

    /// It does not use that of jobs that have ended. This is not for under the lock of the lanes.
    pub(crate) fn let_go(&mut self, calls: &mut impl Calls) {
        let mut release = Release::new(calls);
        for &place in &self.ended {
            if let Some(Some(job)) = self.jobs.get_mut(usize::from(place)) {
                release.add(job);
            }
        }
    }

    /// The job in a place, if there is one that has not ended.
    pub fn job(&mut self, place: u16) -> Option<&mut Job> {
        let job = self.jobs.get_mut(usize::from(place))?.as_mut();
        job.filter(|job| job.outcome.is_none())
    }

    /// All jobs that have not ended, each with its place.
    pub fn jobs(&mut self) -> impl Iterator<Item = (u16, &mut Job)> {
        let jobs = (0..).zip(&mut self.jobs);
        let jobs = jobs.filter_map(|(place, job)| Some((place, job.as_mut()?)));
        jobs.filter(|(_, job)| job.outcome.is_none())
    }

    /// The device has a job no more. Its pages are released by the next exchange.
    pub fn end(&mut self, place: u16, outcome: BlockOutcome) {
        if let Some(job) = self.job(place) {
            job.outcome = Some(outcome);
            self.ended.push(place);
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
