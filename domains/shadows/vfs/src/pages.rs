//! Pages of files, in memory objects: they outlive the file system behind the shadow, are mapped by
//! whoever has a file open, and the device reads and writes them as they lie.
//!
//! A file is *known* from the first time that somebody asks for its pages or writes much to it,
//! until others need the room while nobody holds it, or its inode is given to another. What is read
//! of a known file, and what is written to it, is in its pages. It is *live* while there may be
//! pages that are not on the disk; then it counts as held, and its size and time are those that are
//! known here.
//!
//! # States of a page
//! | state | marks | the disk has |
//! | --- | --- | --- |
//! | clean | | the same |
//! | dirty | dirty | something older |
//! | stored | written back | the same, unless the file system dies before it commits |
//!
//! A page that is stored may be written to and is dirty as well then; it is stored again after the
//! commit. What a dead instance had stored is dirty again.
//!
//! # Order
//! What changes a file's content without its pages, a truncation or a write of the old way, is in
//! the log of changes, and done again after a crash *before* pages are stored again. So a page must
//! not count as committed while such a change that came before it stays in the log. Both go at the
//! same moment: a commit ends those stores that had ended before it began, if the same instance
//! serves when the log is cut ([`Pages::commit`]).
//!
//! # Mappings that are written to
//! A file that is *shared* may become dirty by programs, at any moment after a page was prepared
//! for it. It is live until nobody but this domain holds it ([`sharing`]).
//!
//! # The old way
//! Writes to files that are not known and stay small, and all where there is hardly room on the
//! disk, go to the file system, into the log, and take pages away that they concern. Nothing of
//! such a file is live then. What small means depends on who writes: the memory of a program is
//! copied straight into pages, so that pages pay from the first on ([`Pages::has_place`]).
//!
//! # Locks
//! A file's lock is held by who writes, cuts or stores its pages; `old` by who changes a file that
//! is not known, and for a moment by who makes one known. Both before the engine's, never both. The
//! lock of `files`, of a [`Record`](file::Record) and of a file's claims only for moments. Who
//! loads pages holds none of these while the device works, see [`loading`].

mod adopting;
mod asking;
mod changing;
mod data;
mod file;
mod flushing;
mod giving;
mod holes;
mod living;
mod loading;
mod parting;
mod reading;
mod sharing;
mod space;
mod storing;
mod writing;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use domain_rt::sync::{Condvar, Mutex};
use domain_rt::time;
use interfaces::{FsError, Handle, MemoryObjects, RpcError, VmoView};
use redo::Host;

use crate::kept::Kept;
use crate::options::Settings;
use crate::shadow::Shadow;
pub use asking::BRINGERS;
pub use data::{Data, copied};
use file::{CLIENTS, File};
pub use file::{OWN, Record, memory_error};
use storing::Who;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Pages that are loaded in one call, and taken away in one.
const LOAD: u64 = 256;
const CUT: u64 = 512;
/// The most files that are known.
pub const MOST_FILES: usize = 2048;

/// The most files that are live, for a small one to become known because a program writes to it.
const MOST_SMALL: usize = 256;
/// How often, and for how many nanoseconds, who needs a place waits where there is none.
const PATIENCE: u32 = 8;
const MOMENT: u64 = 4_000_000;
/// Files that are forgotten at once where there are many.
const FORGOTTEN: usize = MOST_FILES / 16;

/// The pages of all files.
pub struct Pages {
    objects: Option<Handle<dyn MemoryObjects>>,
    kept: Option<Arc<Kept>>,
    files: Mutex<BTreeMap<u64, Arc<File>>>,
    /// See the module's text.
    old: Mutex<()>,
    /// The most pages, and how many there are at most.
    most: u64,
    there: AtomicU64,
    /// Bytes of files that are written the old way.
    small: u64,
    uses: AtomicU64,
    /// Dirty pages of all files that have no place on the disk yet.
    dirty: AtomicU64,
    /// Pages that may be promised before the file system is asked for its room again.
    credit: AtomicI64,
    /// Stores that have ended.
    stores: AtomicU64,
    /// How often a file has ended to be live; counted before it does.
    ends: AtomicU64,
    /// Content is lost, and who asked for everything was not told yet.
    is_lost: AtomicBool,
    keeper: Mutex<living::Keeper>,
    /// There is something for the keeper.
    called: Condvar,
    /// Pages that somebody will want, and those whose loads have begun for somebody.
    wishes: asking::Wishes,
    jobs: asking::Jobs,
}

impl Pages {
    /// None yet.
    pub fn new(
        objects: Option<Handle<dyn MemoryObjects>>,
        kept: Option<Arc<Kept>>,
        settings: &Settings,
    ) -> Self {
        Pages {
            objects,
            kept,
            files: Mutex::new(BTreeMap::new()),
            old: Mutex::new(()),
            most: (settings.pages as u64 / PAGE).max(LOAD),
            small: settings.small as u64,
            there: AtomicU64::new(0),
            uses: AtomicU64::new(0),
            dirty: AtomicU64::new(0),
            credit: AtomicI64::new(0),
            stores: AtomicU64::new(0),
            ends: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            keeper: Mutex::default(),
            called: Condvar::new(),
            wishes: asking::Wishes::default(),
            jobs: asking::Jobs::default(),
        }
    }

    fn known(&self, inode: u64) -> Option<Arc<File>> {
        self.files.lock().get(&inode).cloned()
    }

    /// What is known of a file, if more than the file system knows; and the bytes that may not be
    /// on the disk, one page of them while somebody changes it.
    pub fn record(&self, inode: u64) -> Option<(Record, u64)> {
        let file = self.known(inode)?;
        let record = *file.record.lock();
        if !record.is_live {
            return None;
        }
        let state = file.state.try_lock();
        Some((record, state.map_or(1, |state| state.uncommitted()) * PAGE))
    }

    /// How often a file has ended to be live. Of one that is not, and did not end between two
    /// answers that are the same, nobody knew more in between than the file system.
    pub fn ends(&self) -> u64 {
        self.ends.load(Ordering::Acquire)
    }

    /// A file, which is known from now on.
    fn file(&self, shadow: &Shadow, inode: u64) -> Result<Arc<File>, FsError> {
        let objects = self.objects.as_ref().ok_or(FsError::Unsupported)?;
        let known = self.known(inode);
        let file = match known {
            Some(file) => file,
            None => {
                let new = self.new_file(shadow, objects, inode)?;
                let _old = self.old.lock();
                let mut files = self.files.lock();
                // What is dropped in place of an older one is dropped outside of the locks.
                files.entry(inode).or_insert_with(|| new.clone()).clone()
            }
        };
        self.note_use(&file);
        Ok(file)
    }

    /// Notes that somebody uses the file now. Memory comes from those that were used longest ago.
    fn note_use(&self, file: &File) {
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        file.used.store(now, Ordering::Relaxed);
    }

    /// A file that is not known yet. Who looks at all of them may have one still that was
    /// forgotten: then its place with `keep` is not free for a moment.
    fn new_file(
        &self,
        shadow: &Shadow,
        objects: &Handle<dyn MemoryObjects>,
        inode: u64,
    ) -> Result<Arc<File>, FsError> {
        let mut patience = PATIENCE;
        loop {
            self.make_room(shadow)?;
            match File::new(objects, self.kept.as_ref(), inode) {
                Err(FsError::Rpc(RpcError::NoMemory)) if patience > 0 => patience -= 1,
                new => return new.map(Arc::new),
            }
            time::sleep(MOMENT);
        }
    }

    /// Sees to it that there is room for one more file. Where all are held some may be held only
    /// until they are stored, or by who has let them go a moment ago.
    fn make_room(&self, shadow: &Shadow) -> Result<(), FsError> {
        for _ in 0..PATIENCE {
            if self.files.lock().len() < MOST_FILES || self.forget_unused(shadow)? > 0 {
                return Ok(());
            }
            if !self.is_at_rest() {
                // If it fails, that is told to who wants them stored.
                let _ = self.bring_to_disk(shadow, Who::Writer);
            } else {
                time::sleep(MOMENT);
            }
        }
        Err(RpcError::NoMemory.into())
    }

    /// Whether a small file may become known because a program writes to it. Each that is live is
    /// stored by itself, and those are not to be so many that large ones wait for them.
    fn has_place(&self) -> bool {
        self.keeper.lock().live.len() < MOST_SMALL
    }

    /// Forgets files that were used longest ago of those that nobody holds; how many.
    ///
    /// # Errors
    /// No memory.
    fn forget_unused(&self, shadow: &Shadow) -> Result<usize, FsError> {
        let (mut unused, mut forgotten) = (Vec::new(), Vec::new());
        let reserved = unused.try_reserve_exact(MOST_FILES);
        reserved.map_err(|_| RpcError::NoMemory)?;
        let reserved = forgotten.try_reserve_exact(FORGOTTEN);
        reserved.map_err(|_| RpcError::NoMemory)?;
        let mut files = self.files.lock();
        shadow.front(|front| {
            let free = files.iter().filter(|(inode, _)| !front.is_held(**inode));
            let used = free.map(|(inode, file)| (file.used.load(Ordering::Relaxed), *inode));
            unused.extend(used.take(MOST_FILES));
        });
        unused.sort_unstable();
        let oldest = unused.iter().take(FORGOTTEN);
        forgotten.extend(oldest.filter_map(|(_, inode)| files.remove(inode)));
        // They are dropped without the lock.
        drop(files);
        Ok(forgotten.len())
    }

    /// A way to a file could not be had; where that is since it is no file, it is not known. Else
    /// others may have it open, whose ways lead to these pages.
    pub(super) fn forget_no_file(&self, shadow: &Shadow, inode: u64, error: &FsError) {
        let is_none = matches!(
            error,
            FsError::NotFound | FsError::IsDirectory | FsError::Invalid
        );
        if is_none {
            self.forget(shadow, inode);
        }
    }

    /// The number of an inode may be another's soon: what is known of it goes, unless somebody has
    /// hold of it, whose ways lead to these pages.
    pub fn forget_unheld(&self, shadow: &Shadow, inode: u64) {
        if let Some(file) = self.take_unheld(shadow, inode) {
            self.end_forgotten(shadow, &file);
        }
    }

    /// As [`forget_unheld`](Self::forget_unheld); what is known is to be dropped without a lock.
    fn take_unheld(&self, shadow: &Shadow, inode: u64) -> Option<Arc<File>> {
        let mut files = self.files.lock();
        let is_held = shadow.front(|front| front.is_held(inode));
        if is_held { None } else { files.remove(&inode) }
    }

    /// The inode is no file.
    fn forget(&self, shadow: &Shadow, inode: u64) {
        let forgotten = self.files.lock().remove(&inode);
        if let Some(file) = forgotten {
            self.end_forgotten(shadow, &file);
        }
    }

    /// A way to the pages of a file.
    pub fn view(&self, shadow: &Shadow, inode: u64) -> Result<Handle<dyn VmoView>, FsError> {
        let file = self.file(shadow, inode)?;
        match file.lock(shadow) {
            Ok(_) => file.owner.view(CLIENTS).map_err(memory_error),
            Err(error) => {
                self.forget_no_file(shadow, inode, &error);
                Err(error)
            }
        }
    }

    /// All files that are known.
    fn all(&self) -> Result<Vec<Arc<File>>, FsError> {
        let files = self.files.lock();
        let mut all = Vec::new();
        all.try_reserve_exact(files.len())
            .map_err(|_| RpcError::NoMemory)?;
        all.extend(files.values().cloned());
        Ok(all)
    }
}
