//! Pages of files, in memory objects: they outlive the file system behind the shadow, are mapped by
//! whoever has a file open, and the device writes straight into them.
//!
//! What a page has comes from the file system alone, by `load`. A change goes there first, and then
//! takes away the pages that it concerns: whoever needs one has it loaded again. So nothing is in
//! these pages that is not somewhere else, and any of them may go at any time.
//!
//! A file is *known* from the first time that somebody asks for its pages, until others need the
//! room while nobody holds it, or its inode is given to another. Its lock is held by who loads or
//! takes away; so a page that was loaded before a change had ended does not stay after it.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use domain_rt::log;
use domain_rt::sync::{Mutex, MutexGuard};
use interfaces::{
    FileKind, FsError, Handle, MemoryError, MemoryObjects, PageKind, RpcError, VmoFill, VmoOwner,
    VmoRights, VmoView,
};

use redo::Host;

use crate::shadow::Shadow;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Pages that are loaded in one call, and taken away in one.
const LOAD: u64 = 256;
const CUT: u64 = 512;
/// The most files that are known.
const MOST_FILES: usize = 512;

/// What this domain does with an object itself: it clears what lies behind the end.
const OWN: VmoRights = VmoRights {
    read: true,
    write: true,
    map: false,
    execute: false,
};

/// What clients may.
const CLIENTS: VmoRights = VmoRights {
    read: true,
    write: false,
    map: true,
    execute: true,
};

/// The pages of one file.
pub struct File {
    owner: Handle<dyn VmoOwner>,
    view: Handle<dyn VmoView>,
    state: Mutex<State>,
    /// When it was used last.
    used: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Pages that the object may have: as many as the file had when somebody asked last.
    pages: u64,
    /// It has as many still.
    is_current: bool,
}

/// The pages of all files.
pub struct Pages {
    objects: Option<Handle<dyn MemoryObjects>>,
    files: Mutex<BTreeMap<u64, Arc<File>>>,
    /// The most pages, and how many there are at most.
    most: u64,
    there: AtomicU64,
    uses: AtomicU64,
}

fn memory_error(error: MemoryError) -> FsError {
    match error {
        MemoryError::Rpc(error) => error.into(),
        error => {
            log!("a memory object says {error:?}");
            FsError::Device
        }
    }
}

/// Pages that are being loaded, unless they have been.
struct Loading<'a> {
    file: &'a File,
    first: u64,
    count: u64,
}

impl Loading<'_> {
    /// They have their content.
    fn end(mut self) -> Result<(), FsError> {
        let count = core::mem::take(&mut self.count);
        let ended = self.file.owner.loaded(self.first, count);
        match ended.map_err(memory_error)? {
            ended if ended == count => Ok(()),
            // A device has some still; it was to be done with them.
            _ => {
                self.count = count;
                Err(FsError::Device)
            }
        }
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if self.count > 0 {
            // It fails only where there is nothing to be broken off.
            let _ = self.file.owner.break_off(self.first, self.count);
        }
    }
}

impl File {
    fn new(objects: &Handle<dyn MemoryObjects>) -> Result<Self, FsError> {
        let owner = objects.create(0, VmoFill::Load).map_err(memory_error)?;
        let view = owner.view(OWN).map_err(memory_error)?;
        Ok(File {
            owner,
            view,
            state: Mutex::default(),
            used: AtomicU64::new(0),
        })
    }

    /// Its lock, when it is known how many pages the file has.
    fn lock(&self, shadow: &Shadow, inode: u64) -> Result<MutexGuard<'_, State>, FsError> {
        let mut state = self.state.lock();
        if state.is_current {
            return Ok(state);
        }
        let of = shadow.ask(inode, |instance, real| instance.fs().metadata(real))?;
        match of.kind {
            FileKind::Regular => {}
            FileKind::Directory => return Err(FsError::IsDirectory),
            FileKind::Symlink | FileKind::Other => return Err(FsError::Invalid),
        }
        let pages = of.size.div_ceil(PAGE);
        self.set_pages(pages)?;
        *state = State {
            pages,
            is_current: true,
        };
        Ok(state)
    }

    fn set_pages(&self, pages: u64) -> Result<(), FsError> {
        match self.owner.set_limit(pages) {
            Err(MemoryError::Beyond) => Err(FsError::TooLarge),
            set => set.map_err(memory_error),
        }
    }

    /// Takes pages away, with the lock.
    fn cut(&self, mut first: u64, end: u64) -> Result<(), FsError> {
        while first < end {
            let count = CUT.min(end - first);
            first += self.owner.cut(first, count).map_err(memory_error)?;
        }
        Ok(())
    }

    /// Gives memory back that nobody uses, `most` pages at most; how many.
    fn give_back(&self, most: u64) -> Result<u64, FsError> {
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
            let count = CUT.min(pages - first);
            given += self.owner.evict(first, count).map_err(memory_error)?;
            from = first + count;
        }
        Ok(given)
    }
}

impl Pages {
    /// None yet, and at most `budget` bytes of them.
    pub fn new(objects: Option<Handle<dyn MemoryObjects>>, budget: usize) -> Self {
        Pages {
            objects,
            files: Mutex::new(BTreeMap::new()),
            most: (budget as u64 / PAGE).max(LOAD),
            there: AtomicU64::new(0),
            uses: AtomicU64::new(0),
        }
    }

    fn known(&self, inode: u64) -> Option<Arc<File>> {
        self.files.lock().get(&inode).cloned()
    }

    /// A file, which is known from now on.
    fn file(&self, shadow: &Shadow, inode: u64) -> Result<Arc<File>, FsError> {
        let objects = self.objects.as_ref().ok_or(FsError::Unsupported)?;
        let known = self.known(inode);
        let file = match known {
            Some(file) => file,
            None => {
                self.make_room(shadow)?;
                let new = Arc::new(File::new(objects)?);
                self.files.lock().entry(inode).or_insert(new).clone()
            }
        };
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        file.used.store(now, Ordering::Relaxed);
        Ok(file)
    }

    /// Forgets the file that was used longest ago of those that nobody holds, if there are many.
    fn make_room(&self, shadow: &Shadow) -> Result<(), FsError> {
        let mut files = self.files.lock();
        if files.len() < MOST_FILES {
            return Ok(());
        }
        let is_held = |inode: u64| shadow.front(|front| front.is_held(inode));
        let free = files.iter().filter(|(inode, _)| !is_held(**inode));
        let oldest = free.min_by_key(|(_, file)| file.used.load(Ordering::Relaxed));
        let oldest = *oldest.ok_or(RpcError::NoMemory)?.0;
        let forgotten = files.remove(&oldest);
        drop(files);
        drop(forgotten);
        Ok(())
    }

    /// The inode is another file's now, or none's.
    pub fn forget(&self, inode: u64) {
        let forgotten = self.files.lock().remove(&inode);
        drop(forgotten);
    }

    /// A way to the pages of a file.
    pub fn view(&self, shadow: &Shadow, inode: u64) -> Result<Handle<dyn VmoView>, FsError> {
        let file = self.file(shadow, inode)?;
        match file.lock(shadow, inode) {
            Ok(_) => file.owner.view(CLIENTS).map_err(memory_error),
            Err(error) => {
                self.forget(inode);
                Err(error)
            }
        }
    }

    /// Sees to it that pages are there; how many from `first` on are.
    pub fn populate(
        &self,
        shadow: &Shadow,
        inode: u64,
        first: u64,
        count: u64,
    ) -> Result<u64, FsError> {
        let file = self.file(shadow, inode)?;
        self.stay_within(count.min(LOAD))?;
        let state = file.lock(shadow, inode)?;
        let end = first.saturating_add(count.min(LOAD)).min(state.pages);
        let mut next = first;
        while next < end {
            let there = match file.owner.load(next, end - next) {
                Ok(begun) => self.load(shadow, inode, &file, next, begun),
                Err(MemoryError::Present) => Ok(1),
                Err(error) => Err(memory_error(error)),
            };
            match there {
                Ok(there) => next += there,
                Err(error) if next == first => return Err(error),
                Err(_) => break,
            }
        }
        Ok(next.saturating_sub(first))
    }

    /// Has the content of pages brought whose loads have begun; how many have it. If the device
    /// fails for some, the first is tried alone.
    fn load(
        &self,
        shadow: &Shadow,
        inode: u64,
        file: &File,
        first: u64,
        begun: u64,
    ) -> Result<u64, FsError> {
        self.there.fetch_add(begun, Ordering::Relaxed);
        let loading = Loading {
            file,
            first,
            count: begun,
        };
        let loaded = shadow.ask(inode, |instance, real| {
            let view = file.view.duplicate()?;
            instance.fs().load(real, first, begun, view)
        });
        match loaded {
            Ok(loaded) if loaded == begun => loading.end().map(|()| begun),
            // The file system says that the file is shorter than it said.
            Ok(_) => Err(FsError::Device),
            Err(FsError::Device) if begun > 1 => {
                drop(loading);
                let begun = file.owner.load(first, 1).map_err(memory_error)?;
                self.load(shadow, inode, file, first, begun)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives memory back if there is not room for `more` pages: of files that were not used for
    /// long first.
    fn stay_within(&self, more: u64) -> Result<(), FsError> {
        if self.there.load(Ordering::Relaxed) + more <= self.most {
            return Ok(());
        }
        let files = self.files.lock();
        let mut all = Vec::new();
        all.try_reserve_exact(files.len())
            .map_err(|_| RpcError::NoMemory)?;
        all.extend(files.values().cloned());
        drop(files);
        all.sort_unstable_by_key(|file| file.used.load(Ordering::Relaxed));
        let mut there = 0;
        for file in &all {
            there += file.owner.info()?.pages;
        }
        let wanted = (there + more).saturating_sub(self.most * 3 / 4);
        let mut given = 0;
        for file in all.iter().filter(|_| there + more > self.most) {
            if given >= wanted {
                break;
            }
            given += file.give_back(wanted - given)?;
        }
        self.there
            .store(there.saturating_sub(given), Ordering::Relaxed);
        Ok(())
    }

    /// The bytes of a file may have changed, from `offset` on: the pages that they are in go.
    pub fn written(&self, inode: u64, offset: u64, count: u64) -> Result<(), FsError> {
        let Some(file) = self.known(inode) else {
            return Ok(());
        };
        let mut state = file.state.lock();
        let end = offset.saturating_add(count).div_ceil(PAGE);
        file.cut(offset / PAGE, end.min(state.pages))?;
        if end > state.pages {
            state.is_current = false;
        }
        Ok(())
    }

    /// A file may have another size.
    pub fn resized(&self, inode: u64, size: u64) -> Result<(), FsError> {
        let Some(file) = self.known(inode) else {
            return Ok(());
        };
        let mut state = file.state.lock();
        // In what is the last page now there are other bytes behind the end.
        file.cut(size / PAGE, state.pages)?;
        state.is_current = false;
        Ok(())
    }
}
