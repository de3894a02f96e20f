//! Giving memory back: of files that were not used for long first, and clean pages alone.
//!
//! Each volume has a shadow of its own, and all are told of a shortage. None gives more than a part
//! of what it has for one, so the volume with the most pages gives the most; whoever needs memory
//! rings again until there is enough, or nobody gives anything any more.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use domain_rt::log;
use interfaces::{FsError, Handle, MemoryWatch};

use super::file::File;
use super::{PAGE, Pages};

/// The part of its pages that a volume gives for one shortage, and the least that is looked for.
const PART: u64 = 4;
const LEAST: u64 = 64;

impl Pages {
    /// Gives memory back if there is not room for `more` pages.
    pub(super) fn stay_within(&self, more: u64) -> Result<(), FsError> {
        if self.there.load(Ordering::Relaxed) + more <= self.most {
            return Ok(());
        }
        let all = self.by_age()?;
        let there = count(&all)?;
        let mut given = 0;
        if there + more > self.most {
            given = give_back(&all, (there + more).saturating_sub(self.most * 3 / 4))?;
        }
        self.there
            .store(there.saturating_sub(given), Ordering::Relaxed);
        Ok(())
    }

    /// All files, that first which was used longest ago.
    fn by_age(&self) -> Result<Vec<Arc<File>>, FsError> {
        let mut all = self.all()?;
        all.sort_unstable_by_key(|file| file.used.load(Ordering::Relaxed));
        Ok(all)
    }

    /// The body of the thread that gives memory back when others need it.
    pub fn give_back_for_ever(&self, watch: &Handle<dyn MemoryWatch>) {
        let (mut answered, mut given) = (0, 0);
        loop {
            match watch.shortage(answered, given) {
                Ok(shortage) => {
                    given = self.give_part(shortage.bytes).unwrap_or(0) * PAGE;
                    answered = shortage.number;
                }
                Err(error) => {
                    log!("not told of shortages of memory any more: {error}");
                    return;
                }
            }
        }
    }

    /// Gives a part of the pages for somebody who needs so many bytes; how many pages.
    fn give_part(&self, bytes: u64) -> Result<u64, FsError> {
        let all = self.by_age()?;
        let there = count(&all)?;
        let part = (there / PART).max(LEAST);
        let given = give_back(&all, bytes.div_ceil(PAGE).min(part))?;
        self.there
            .store(there.saturating_sub(given), Ordering::Relaxed);
        // What is not on the disk yet may help the next one.
        if self.dirty.load(Ordering::Relaxed) > 0 {
            self.call_keeper();
        }
        Ok(given)
    }
}

/// How many pages files have.
fn count(files: &[Arc<File>]) -> Result<u64, FsError> {
    let mut there = 0;
    for file in files {
        there += file.owner.info()?.pages;
    }
    Ok(there)
}

/// Has files give back what is clean, up to `wanted` pages; how many.
fn give_back(files: &[Arc<File>], wanted: u64) -> Result<u64, FsError> {
    let mut given = 0;
    for file in files {
        if given >= wanted {
            break;
        }
        given += file.give_back(wanted - given)?;
    }
    Ok(given)
}
