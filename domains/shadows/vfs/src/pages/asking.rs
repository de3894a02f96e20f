//! Pages that are asked for by who does not wait for them here.
//!
//! The load of the first ones has begun when he has his answer, so he can wait for it at the memory
//! object; threads of this domain bring them, a few loads at a time ([`Jobs`]). What is asked for
//! beyond that is advice: another thread has it loaded, a piece at a time ([`Wishes`]). What cannot
//! be had is forgotten.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use domain_rt::sync::{Condvar, Mutex};
use gate::{OwnPass, Passage};
use interfaces::{FsError, MemoryError};
use vfs::claims::Chance;

use super::file::File;
use super::loading::{Begun, Claim};
use super::{LOAD, Pages, memory_error};
use crate::shadow::Shadow;

/// The most that is remembered; what was asked for first goes first.
const MOST: usize = 64;
/// Threads that bring what has begun, and the most that may have begun and waits for one. Who asks
/// for more than that brings it himself.
pub const BRINGERS: usize = 4;
const MOST_BEGUN: usize = 16;
/// Pages that are loaded at once: who needs one of them waits no longer.
const PIECE: u64 = 32;

/// Pages of a file that follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Wish {
    inode: u64,
    first: u64,
    count: u64,
}

/// What is asked for and has not been seen to.
#[derive(Default)]
pub struct Wishes {
    list: Mutex<VecDeque<Wish>>,
    /// There is something.
    called: Condvar,
}

impl Wishes {
    /// One more; not where there is no memory for it.
    fn add(&self, wish: Wish) {
        let mut list = self.list.lock();
        if list.back() == Some(&wish) {
            return;
        }
        if list.len() >= MOST {
            list.pop_front();
        }
        if list.try_reserve(1).is_ok() {
            list.push_back(wish);
            self.called.notify_one();
        }
    }

    /// The next one; waits for it.
    fn next(&self) -> Wish {
        let mut list = self.list.lock();
        loop {
            if let Some(wish) = list.pop_front() {
                return wish;
            }
            (list, _) = self.called.wait(list);
        }
    }
}

/// A load that has begun. The file system is not replaced before it has ended.
struct Job {
    claim: Claim,
    /// Given back last.
    _pass: OwnPass,
}

/// Loads that have begun, and that nobody brings yet.
#[derive(Default)]
pub struct Jobs {
    list: Mutex<VecDeque<Job>>,
    /// There is one.
    called: Condvar,
}

impl Jobs {
    fn has_room(&self) -> bool {
        self.list.lock().len() < MOST_BEGUN
    }

    /// One more; whether there is memory for it. If not, it is broken off.
    fn add(&self, job: Job) -> bool {
        let mut list = self.list.lock();
        if list.try_reserve(1).is_err() {
            drop(list);
            return false;
        }
        list.push_back(job);
        drop(list);
        self.called.notify_one();
        true
    }

    /// The next one; waits for it.
    fn next(&self) -> Job {
        let mut list = self.list.lock();
        loop {
            if let Some(job) = list.pop_front() {
                return job;
            }
            (list, _) = self.called.wait(list);
        }
    }
}

/// How many pages from `first` on have content, of `count`.
fn there(file: &File, first: u64, count: u64) -> Result<u64, FsError> {
    for at in 0..count {
        match file.owner.tags(first.saturating_add(at)) {
            Ok(tags) if tags.present && !tags.loading => {}
            Ok(_) | Err(MemoryError::Beyond) => return Ok(at),
            Err(error) => return Err(memory_error(error)),
        }
    }
    Ok(count)
}

impl Pages {
    /// Asks for pages, and waits for nothing: how many there are, or are on their way, from the
    /// first on.
    ///
    /// # Errors
    /// `Unsupported`: no pages are kept.
    pub fn request(
        &self,
        passage: &Arc<Passage>,
        inode: u64,
        first: u64,
        mut count: u64,
    ) -> Result<u64, FsError> {
        if self.objects.is_none() {
            return Err(FsError::Unsupported);
        }
        let mut coming = 0;
        if let Some(file) = self.known(inode) {
            // Who asks by a fault makes use of the file, too.
            self.note_use(&file);
            count = file.up_to_end(first, count);
            coming = there(&file, first, count.min(LOAD))?;
            if coming < count {
                let (next, left) = (first.saturating_add(coming), count - coming);
                coming += self.begin_for(passage, &file, next, left.min(PIECE));
            }
        }
        if coming < count {
            self.wishes.add(Wish {
                inode,
                first: first.saturating_add(coming),
                // No more than there could be beside what others have.
                count: (count - coming).min(self.most / 4),
            });
        }
        Ok(coming)
    }

    /// Begins to load pages, which another thread brings; how many are on their way from `first`
    /// on. None where that would have to be waited for, or cannot be.
    fn begin_for(&self, passage: &Arc<Passage>, file: &Arc<File>, first: u64, count: u64) -> u64 {
        let Some(pass) = passage.try_enter_for_another() else {
            return 0;
        };
        if !self.jobs.has_room() || self.stay_within(count).is_err() {
            return 0;
        }
        match self.begin(file, first, count) {
            Ok(Begun::Claim(claim)) => {
                let count = claim.count();
                let job = Job { claim, _pass: pass };
                if self.jobs.add(job) { count } else { 0 }
            }
            Ok(Begun::There | Begun::Not(Chance::Claimed)) => 1,
            _ => 0,
        }
    }

    /// The body of a thread that brings what has begun.
    pub fn bring_for_ever(&self, shadow: &Shadow) {
        loop {
            let Job { claim, _pass } = self.jobs.next();
            // Who waits for one of the pages finds that it is not there, and asks why.
            let _ = self.bring_known(shadow, claim);
        }
    }

    /// The body of the thread that has loaded what nobody waits for.
    pub fn fulfil_for_ever(&self, shadow: &Shadow, passage: &Passage) {
        loop {
            let Wish {
                inode,
                mut first,
                count,
            } = self.wishes.next();
            let end = first.saturating_add(count);
            while first < end {
                let Ok(_pass) = passage.enter() else {
                    break;
                };
                match self.populate(shadow, inode, first, PIECE.min(end - first)) {
                    Ok(brought) if brought > 0 => first += brought,
                    // The end of the file, or it cannot be had: who needs it is told.
                    _ => break,
                }
            }
        }
    }
}
