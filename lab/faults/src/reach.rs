//! How clients reach the files: a shadow that lives through all runs, or one that dies itself, and
//! whose next instance goes on where it was (`FileSystem::lineage`). Of that one they ask again
//! what they had no answer to, as a personality does: reads and writes at a place as they are,
//! changes that must not be made twice through a lane.

use crate::parts::Parts;
use abi::{Handle, RpcError};
use core::sync::atomic::{AtomicU64, Ordering};
use interfaces::{Failure, FileSystem, FsError, LaneOutcome};

/// Instances that are tried for one call.
const ATTEMPTS: u32 = 8;

/// Where the files are.
pub enum Reach {
    /// Behind this one, in all runs.
    Lasting(Handle<dyn FileSystem>),
    /// Behind whatever instance of this part serves.
    Dying(&'static Parts, &'static str),
}

/// One instance, as one client has it.
struct Live {
    id: u32,
    files: Handle<dyn FileSystem>,
    /// What it has in common with those that it goes on for, and the client's way to changes.
    lineage: u64,
    lane: Handle<dyn FileSystem>,
}

/// One client's way to the files, in one run.
pub struct Way<'a> {
    reach: &'a Reach,
    /// The number of its lane.
    number: u32,
    live: Option<Live>,
}

/// The last ticket of a change; no two are the same.
static TICKETS: AtomicU64 = AtomicU64::new(0);

impl Reach {
    /// Has all be started that the files are on. What a call says that meets the end of something
    /// is not of interest.
    pub fn begin(&self) {
        match self {
            Reach::Lasting(files) => {
                let _ = files.statistics();
            }
            Reach::Dying(parts, name) => {
                let _ = parts.service(name);
            }
        }
    }

    /// Has all be brought to the disk that a shadow which lives would do again: it takes memory.
    pub fn end(&self) {
        if let Reach::Lasting(files) = self {
            let _ = files.sync();
        }
    }
}

impl<'a> Way<'a> {
    /// The way of the client with this number.
    pub fn new(reach: &'a Reach, client: usize) -> Self {
        Way {
            reach,
            number: client as u32 + 1,
            live: None,
        }
    }

    /// Has a call made that may be made twice.
    ///
    /// # Errors
    /// The file system's; `Restarted` if an instance did not go on.
    pub fn ask<T>(
        &mut self,
        call: impl Fn(&Handle<dyn FileSystem>) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        if let Reach::Lasting(files) = self.reach {
            return call(files);
        }
        self.until_answered(|live, _| call(&live.files))
    }

    /// Has a change made once.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn change<T>(
        &mut self,
        call: impl Fn(&Handle<dyn FileSystem>) -> Result<T, FsError>,
        found: impl Fn(&LaneOutcome) -> T,
    ) -> Result<T, FsError> {
        if let Reach::Lasting(files) = self.reach {
            return call(files);
        }
        let ticket = TICKETS.fetch_add(1, Ordering::Relaxed) + 1;
        self.until_answered(|live, was_tried| {
            if was_tried && let Some(outcome) = live.lane.outcome(ticket)? {
                return match outcome.given_up {
                    true => Err(FsError::Device),
                    false => Ok(found(&outcome)),
                };
            }
            live.lane.begin(ticket, None, None)?;
            call(&live.lane)
        })
    }

    /// `call` is told whether it was made before.
    fn until_answered<T>(
        &mut self,
        call: impl Fn(&Live, bool) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        let mut was_tried = false;
        for _ in 0..ATTEMPTS {
            let answer = match &self.live {
                Some(live) => call(live, core::mem::replace(&mut was_tried, true)),
                None => Err(Failure::gone()),
            };
            match answer {
                Err(error) if error.is_gone() => self.go_on()?,
                answer => return answer,
            }
        }
        Err(FsError::Down)
    }

    /// Goes on with the next instance.
    fn go_on(&mut self) -> Result<(), FsError> {
        let (mut failed, lineage) = match &self.live {
            Some(live) => (live.id, Some(live.lineage)),
            None => (0, None),
        };
        for _ in 0..ATTEMPTS {
            let (id, found) = self.fetch(failed)?;
            match found {
                Ok(live) if lineage.is_some_and(|lineage| live.lineage != lineage) => {
                    return Err(FsError::Restarted);
                }
                Ok(live) => {
                    self.live = Some(live);
                    return Ok(());
                }
                Err(error) if error.is_gone() => failed = id,
                Err(error) => return Err(error),
            }
        }
        Err(FsError::Down)
    }

    /// An instance other than `failed`: its number, and what it answered.
    fn fetch(&self, failed: u32) -> Result<(u32, Result<Live, FsError>), FsError> {
        let Reach::Dying(parts, name) = self.reach else {
            return Err(FsError::Down);
        };
        let part = parts.named(name).ok_or(FsError::Down)?;
        let found = part.instance(parts, failed).map_err(|_| FsError::Down)?;
        let files = found.service.downcast::<dyn FileSystem>();
        let files = files.map_err(|_| RpcError::Refused)?;
        let greet = |files: Handle<dyn FileSystem>| {
            Ok(Live {
                id: found.id,
                lineage: files.lineage()?,
                lane: files.lane(self.number)?,
                files,
            })
        };
        Ok((found.id, greet(files)))
    }
}
