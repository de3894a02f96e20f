//! The places of a line: the jobs that it has, each in a place of its own for all its way.

use alloc::vec::Vec;

use interfaces::{BlockOutcome, RpcError};

use crate::job::Job;

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

    /// The place of a job that was just taken, in their order.
    pub fn next_new(&mut self) -> Option<u16> {
        let place = *self.new.get(self.seen)?;
        self.seen += 1;
        Some(place)
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

    /// The device has a job no more. Its pages are released here, for that is not for under the
    /// lock of the lanes.
    pub fn end(&mut self, place: u16, outcome: BlockOutcome) {
        if let Some(job) = self.job(place) {
            job.let_go();
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
