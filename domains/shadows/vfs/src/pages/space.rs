//! Room on the disk for pages that have no place there yet: who writes is told that there is none,
//! not who stores.
//!
//! Every operation that may take blocks takes them from a credit, which comes from what the file
//! system says is free, less what was promised. When it does not suffice, everything is stored, and
//! writes go the old way, so that the file system itself says how much there is.

use core::sync::atomic::Ordering;

use interfaces::FsError;

use super::{PAGE, Pages};
use crate::shadow::Shadow;

/// Pages that are kept free, for what the file system needs besides; and a part of all.
const SLACK: i64 = 256;
const PART: i64 = 16;
/// The most pages of a credit.
const MOST: i64 = 4096;

impl Pages {
    /// Whether `pages` more may be promised, which they are then.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn may_take(&self, shadow: &Shadow, pages: u64) -> Result<bool, FsError> {
        let pages = pages as i64;
        if self.credit.fetch_sub(pages, Ordering::Relaxed) >= pages {
            return Ok(true);
        }
        let of = shadow.ask(shadow.root(), |instance, _| instance.fs().statistics())?;
        if of.read_only {
            return Ok(false);
        }
        let bytes = of.free_blocks.saturating_mul(of.block_size.into());
        let free = i64::try_from(bytes / PAGE).unwrap_or(i64::MAX);
        let promised = self.dirty.load(Ordering::Relaxed) as i64;
        let left = (free - free / PART - SLACK - promised).min(MOST);
        self.credit.store(left - pages, Ordering::Relaxed);
        Ok(left >= pages)
    }

    /// Something takes up to `pages` pages of the disk: then what is promised has its place before,
    /// if there is not room for both.
    ///
    /// # Errors
    /// The file system's.
    pub fn keep_room(&self, shadow: &Shadow, pages: u64) -> Result<(), FsError> {
        if self.dirty.load(Ordering::Relaxed) == 0 {
            self.credit.fetch_sub(pages as i64, Ordering::Relaxed);
            return Ok(());
        }
        match self.may_take(shadow, pages)? {
            true => Ok(()),
            false => self.commit(shadow),
        }
    }

    /// Bytes of the disk that are promised.
    pub fn promised(&self) -> u64 {
        self.dirty.load(Ordering::Relaxed) * PAGE
    }
}
