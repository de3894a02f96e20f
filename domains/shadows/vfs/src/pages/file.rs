//! The pages of one file: its memory object, and what is known of it.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use domain_rt::sync::{Condvar, Mutex, MutexGuard};
use domain_rt::{log, time};
use interfaces::{
    FileKind, FsError, Handle, MemoryError, MemoryObjects, PageKind, VmoFill, VmoOwner, VmoRights,
    VmoView,
};
use vfs::claims::Claims;

use super::storing::Who;
use super::{CUT, PAGE};
use crate::kept::{Kept, Note};
use crate::shadow::Shadow;

/// What this domain does with an object itself: it clears what lies behind the end.
pub const OWN: VmoRights = VmoRights {
    read: true,
    write: true,
    map: false,
    execute: false,
};

/// What clients may.
pub const CLIENTS: VmoRights = VmoRights {
    read: true,
    write: false,
    map: true,
    execute: true,
};

/// What those clients may do that write to it through mappings. Bytes behind the end can be
/// written so, which this domain clears.
pub const SHARED: VmoRights = VmoRights {
    write: true,
    ..CLIENTS
};

/// How often, and after how many nanoseconds, it is looked whether a device lets go of a page. One
/// that does not answer is reset after some ten seconds.
const LOOKS: u32 = 15_000;
const LOOK: u64 = 1_000_000;

/// The pages of one file.
pub struct File {
    /// Its number, as clients have it.
    pub inode: u64,
    pub owner: Handle<dyn VmoOwner>,
    pub view: Handle<dyn VmoView>,
    pub state: Mutex<State>,
    pub claims: Mutex<Claimants>,
    /// A claim has ended, or nobody has pages alone any more.
    pub freed: Condvar,
    /// Changed with `state` locked, read without.
    pub record: Mutex<Record>,
    /// When it was used last.
    pub used: AtomicU64,
    /// The file system may have a length of it that it never had, until all of it is stored.
    pub is_torn: AtomicBool,
    /// Content is lost, and who asked for this file was not told yet.
    pub is_lost: AtomicBool,
    /// Where it is kept for the next instance of this domain.
    pub kept: Option<(Arc<Kept>, usize)>,
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some((kept, place)) = &self.kept
            && kept.is_serving()
        {
            kept.leave(*place);
        }
    }
}

/// What the file is, where the file system does not know yet.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Record {
    /// Its length in bytes.
    pub size: u64,
    /// Last change of the content, in nanoseconds since 1970, if it is live.
    pub modified: u64,
    /// Pages of it may not be on the disk. Then it counts as held.
    pub is_live: bool,
    /// Somebody may write to it through mappings.
    pub is_shared: bool,
}

/// Pages that the file system has stored and may not have committed.
pub struct Stored {
    pub first: u64,
    pub count: u64,
    /// Which store it was.
    pub serial: u64,
    /// By which instance.
    pub by: u32,
}

/// Who has which pages, see [`loading`](super::loading).
#[derive(Default)]
pub struct Claimants {
    pub of: Claims,
    /// How many wait for `freed`.
    pub waiting: u32,
}

#[derive(Default)]
pub struct State {
    /// Pages that the object may have: as many as the file has.
    pub pages: u64,
    /// Length and pages are known. Then the claims know them, too: see [`File::set_current`].
    pub is_current: bool,
    /// Being written back, until a commit.
    pub stored: Vec<Stored>,
    /// Pages that are dirty, and not counted among those.
    pub dirty: u64,
    /// It counts as held for those who have it mapped since a former instance of this domain, and
    /// of whom none has come back.
    pub is_left_over: bool,
    /// Who asked for this file was told that it could not be stored, and who asked for everything.
    pub told: bool,
    pub told_all: bool,
}

impl State {
    /// How many pages may not be on the disk, or not for good.
    pub fn uncommitted(&self) -> u64 {
        let stored: u64 = self.stored.iter().map(|run| run.count).sum();
        self.dirty.saturating_add(stored)
    }

    /// Somebody is told that it could not be stored, who may be one of those whose business it is.
    pub fn note_told(&mut self, who: Who) {
        self.told |= matches!(who, Who::Inode(_));
        self.told_all |= who == Who::Everything;
    }
}

/// What stands in an error of a memory object.
pub fn memory_error(error: MemoryError) -> FsError {
    match error {
        MemoryError::Rpc(error) => error.into(),
        error => {
            log!("a memory object says {error:?}");
            FsError::Device
        }
    }
}

/// Pages that are being loaded, unless they have been.
pub struct Loading<'a> {
    pub file: &'a File,
    pub first: u64,
    pub count: u64,
}

impl Loading<'_> {
    /// They have their content.
    pub fn end(self) -> Result<(), FsError> {
        self.end_by(|owner, first, count| owner.loaded(first, count))
    }

    /// Only the first `count` get their content.
    pub fn keep(&mut self, count: u64) -> Result<(), FsError> {
        let (first, rest) = (self.first + count, self.count - count);
        if rest > 0 {
            self.file
                .owner
                .break_off(first, rest)
                .map_err(memory_error)?;
            self.count = count;
        }
        Ok(())
    }

    /// They have content that is nowhere else.
    pub fn end_dirty(self) -> Result<(), FsError> {
        self.end_by(|owner, first, count| owner.loaded_dirty(first, count))
    }

    fn end_by(
        mut self,
        end: impl Fn(&Handle<dyn VmoOwner>, u64, u64) -> Result<u64, MemoryError>,
    ) -> Result<(), FsError> {
        let (file, first, count) = (self.file, self.first, self.count);
        file.end_loads(count, || end(&file.owner, first, count))?;
        self.count = 0;
        Ok(())
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if self.count > 0 {
            // If it fails, for want of stack say, who claims the page next breaks it off.
            let _ = self.file.owner.break_off(self.first, self.count);
        }
    }
}

impl File {
    /// None yet.
    ///
    /// # Errors
    /// No memory.
    pub fn new(
        objects: &Handle<dyn MemoryObjects>,
        kept: Option<&Arc<Kept>>,
        inode: u64,
    ) -> Result<Self, FsError> {
        let owner = objects.create(0, VmoFill::Load).map_err(memory_error)?;
        let mut file = File::of(owner, inode)?;
        if let Some(kept) = kept {
            let place = kept.enter(&file.owner, inode)?;
            file.kept = Some((kept.clone(), place));
        }
        Ok(file)
    }

    /// The one whose pages are in an object, of which nothing is known.
    ///
    /// # Errors
    /// No memory.
    pub fn of(owner: Handle<dyn VmoOwner>, inode: u64) -> Result<Self, FsError> {
        let view = owner.view(OWN).map_err(memory_error)?;
        Ok(File {
            inode,
            owner,
            view,
            state: Mutex::default(),
            claims: Mutex::default(),
            freed: Condvar::new(),
            record: Mutex::default(),
            used: AtomicU64::new(0),
            is_torn: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            kept: None,
        })
    }

    /// Ends `count` loads by `end`, which says how many it has ended. The device is done with what
    /// was asked for here, but it may have a page still for an instance before that has died in a
    /// load of its own: that is waited for.
    ///
    /// # Errors
    /// That of the call; a device does not let go.
    pub fn end_loads(
        &self,
        count: u64,
        end: impl Fn() -> Result<u64, MemoryError>,
    ) -> Result<(), FsError> {
        let mut ended = 0;
        for look in 0..LOOKS {
            if look > 0 {
                time::sleep(LOOK);
            }
            ended += end().map_err(memory_error)?;
            if ended >= count {
                return Ok(());
            }
        }
        Err(FsError::Device)
    }

    /// Has the next instance of this domain know `record`.
    ///
    /// # Errors
    /// No memory.
    pub fn note(&self, record: &Record) -> Result<(), FsError> {
        let Some((kept, place)) = &self.kept else {
            return Ok(());
        };
        let note = Note {
            inode: self.inode,
            size: record.size,
            modified: record.modified,
            is_live: record.is_live,
            is_lost: self.is_lost.load(Ordering::Relaxed),
            is_shared: record.is_shared,
        };
        kept.note(*place, &note)
    }

    /// Has the next instance know it again, as far as that goes.
    pub fn note_again(&self) {
        let record = *self.record.lock();
        if let Err(error) = self.note(&record) {
            log!("inode {} is not noted: {error:?}", self.inode);
        }
    }

    /// Changes what is known of the file, and has the next instance of this domain know it. The
    /// file's lock is held.
    ///
    /// # Errors
    /// No memory: then nothing is changed.
    pub fn set_record(&self, change: impl FnOnce(&mut Record)) -> Result<(), FsError> {
        let before = *self.record.lock();
        let mut record = before;
        change(&mut record);
        if record != before {
            self.note(&record)?;
            *self.record.lock() = record;
        }
        Ok(())
    }

    /// The file is gone, and nobody has it mapped: the next instance of this domain is not to find
    /// it. Its lock is held.
    pub fn note_gone(&self) {
        let mut record = self.record.lock();
        (record.is_live, record.is_shared) = (false, false);
        let gone = *record;
        drop(record);
        if let Some((kept, _)) = &self.kept
            && self.note(&gone).is_err()
        {
            kept.give_up();
        }
    }

    /// Its lock, when it is known how many pages the file has.
    ///
    /// # Errors
    /// The file system's; it is no file.
    pub fn lock(&self, shadow: &Shadow) -> Result<MutexGuard<'_, State>, FsError> {
        let mut state = self.state.lock();
        if state.is_current {
            return Ok(state);
        }
        let of = shadow.ask(self.inode, |instance, real| instance.fs().metadata(real))?;
        match of.kind {
            FileKind::Regular => {}
            FileKind::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid),
        }
        self.set_pages(&mut state, of.size.div_ceil(PAGE))?;
        self.record.lock().size = of.size;
        self.set_current(&mut state, true);
        Ok(state)
    }

    /// Whether length and pages are known, from now on. Who says that they are not has all pages
    /// alone.
    pub fn set_current(&self, state: &mut State, is_current: bool) {
        state.is_current = is_current;
        let pages = is_current.then_some(state.pages);
        self.claims.lock().of.set_pages(pages);
    }

    /// Says how many pages there may be. Those that come or go are the caller's alone, where the
    /// file is current.
    ///
    /// # Errors
    /// Too many; no memory.
    pub fn set_pages(&self, state: &mut State, pages: u64) -> Result<(), FsError> {
        match self.owner.set_limit(pages) {
            Err(MemoryError::Beyond) => Err(FsError::TooLarge),
            Err(error) => Err(memory_error(error)),
            Ok(()) => {
                state.pages = pages;
                if state.is_current {
                    self.claims.lock().of.set_pages(Some(pages));
                }
                Ok(())
            }
        }
    }

    /// Takes pages away, which are the caller's alone.
    ///
    /// # Errors
    /// Those of the object.
    pub fn cut(&self, mut first: u64, end: u64) -> Result<(), FsError> {
        while first < end {
            let count = CUT.min(end - first);
            first += self.owner.cut(first, count).map_err(memory_error)?;
        }
        Ok(())
    }

    /// Gives memory back that nobody uses, `most` pages at most; how many.
    ///
    /// # Errors
    /// Those of the object.
    pub fn give_back(&self, most: u64) -> Result<u64, FsError> {
        // Who loads is not waited for.
        let Some(state) = self.state.try_lock() else {
            return Ok(0);
        };
        let pages = state.pages;
        let (mut given, mut from) = (0, 0);
        while given < most {
            let next = self.owner.next(from, PageKind::Present);
            let Some(first) = next.map_err(memory_error)?.filter(|first| *first < pages) else {
                break;
            };
            let count = CUT.min(pages - first).min(most - given);
            given += self.owner.evict(first, count).map_err(memory_error)?;
            from = first + count;
        }
        Ok(given)
    }
}
