//! Pages that are asked for by who does not wait for them: a thread of this domain has them loaded,
//! a piece at a time, while who asked goes on. It is advice: what cannot be had is forgotten.

use alloc::collections::VecDeque;

use domain_rt::sync::{Condvar, Mutex};
use gate::Passage;
use interfaces::FsError;

use super::file::File;
use super::{LOAD, Pages, memory_error};
use crate::shadow::Shadow;

/// The most that is remembered; what was asked for first goes first.
const MOST: usize = 64;
/// Pages that are loaded at once: who needs others of the file at that time waits no longer.
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

/// How many pages from `first` on have content, of `count`.
fn there(file: &File, first: u64, count: u64) -> Result<u64, FsError> {
    for at in 0..count {
        let tags = file.owner.tags(first.saturating_add(at));
        let tags = tags.map_err(memory_error)?;
        if !tags.present || tags.loading {
            return Ok(at);
        }
    }
    Ok(count)
}

impl Pages {
    /// Asks for pages, and waits for nothing: how many there are from the first on, [`LOAD`] at
    /// most.
    ///
    /// # Errors
    /// `Unsupported`: no pages are kept.
    pub fn request(&self, inode: u64, first: u64, count: u64) -> Result<u64, FsError> {
        if self.objects.is_none() {
            return Err(FsError::Unsupported);
        }
        let found = self.known(inode);
        let there = found.map_or(Ok(0), |file| there(&file, first, count.min(LOAD)))?;
        if there < count {
            self.wishes.add(Wish {
                inode,
                first: first.saturating_add(there),
                // No more than there could be beside what others have.
                count: (count - there).min(self.most / 4),
            });
        }
        Ok(there)
    }

    /// The body of the thread that has them loaded.
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
