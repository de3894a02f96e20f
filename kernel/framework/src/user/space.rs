//! User address spaces: page tables whose lower half maps untyped frames only.
//!
//! There is no lock for a space. Each page table, of 2 MiB, has one ([`Table`]); tables are made
//! without a lock and freed with the space. What is done to a range is done in pieces: a function
//! does what lies in the table of the first page, and says how many pages that was. On an error
//! nothing was done. So no call runs long, nothing is allocated while interrupts are off, and two
//! ranges do not wait for each other, nor for a flush of the other.
//!
//! ```text
//!   less rights:  lock the table -> entries -> flush where the space is loaded -> unlock -> give up frames
//!   fork:         ... -> own pages, a count for the child each -> flush -> unlock -> the child's table, locked by itself
//!   first write:  lock -> alone? writable : a count -> unlock -> copy -> lock -> still that frame? the copy -> flush -> unlock
//! ```
//!
//! Nobody copies what a program may still write to: a page that is copied on write is found by who
//! has the table's lock, and until the flush the one who forked has it.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::USER_END;
use super::entry::{Entry, Mapped, Sharing, UserProt};
use super::table::{Batch, TABLE_PAGES, Table, new_page, new_table};
use crate::arch::untyped;
use crate::mem::frames::{FrameKind, Frames};
use crate::mem::paging::{self, MapError};
use crate::mem::{NoMemory, PAGE_SIZE, kernel_table, phys_to_virt, spaces, tlb};
use crate::smp;

/// Why an address space was not changed or memory not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmError {
    /// The address is not page-aligned or not a user address, or there are no pages.
    BadAddress,
    /// The frame is not a single untyped one.
    NotUntyped,
    /// Something is mapped there already.
    Occupied,
    /// Nothing is mapped there.
    NotMapped,
    /// The page may not be accessed so, or not yet: see [`VmSpace::resolve_write`].
    Denied,
    /// No memory for page tables or pages, or too many owners of a frame.
    NoMemory,
}

/// A user address space.
pub struct VmSpace {
    /// Physical address of the top-level table.
    pub(super) root: u64,
    /// Page tables that it has, the top one included. It never has fewer than before.
    tables: AtomicUsize,
    /// Pages that are its own.
    own: AtomicUsize,
}

impl VmSpace {
    /// An empty address space.
    pub fn new() -> Result<Self, NoMemory> {
        let root = new_table().ok_or(NoMemory)?;
        paging::share_upper_half(kernel_table(), root);
        Ok(Self {
            root,
            tables: AtomicUsize::new(1),
            own: AtomicUsize::new(0),
        })
    }

    /// Maps a frame at `at`. The address space becomes an owner of it; on an error it is given up.
    pub fn map(
        &self,
        at: usize,
        frame: Frames,
        prot: UserProt,
        sharing: Sharing,
    ) -> Result<(), VmError> {
        self.map_if(at, frame, prot, sharing, || true).map(drop)
    }

    /// Maps a frame at `at`, if `may` says so, which is called with the table locked and interrupts
    /// off; whether it did. The address space becomes an owner of it; else it is given up. Whoever
    /// makes `may` say no and then unmaps `at` either finds the page, or it is never mapped.
    pub fn map_if(
        &self,
        at: usize,
        frame: Frames,
        prot: UserProt,
        sharing: Sharing,
        may: impl FnOnce() -> bool,
    ) -> Result<bool, VmError> {
        if frame.kind() != FrameKind::Untyped || frame.count() != 1 {
            return Err(VmError::NotUntyped);
        }
        piece(at, 1)?;
        let mut table = self.make_table(at)?;
        if !table.get(at).is_empty() {
            return Err(VmError::Occupied);
        }
        let may = may();
        if may {
            table.put(at, Entry::new(frame.into_raw(), prot, sharing));
        }
        Ok(may)
    }

    /// Maps a new page of zeros, of the space's own, if `may` says so, as [`map_if`](Self::map_if)
    /// does.
    pub fn map_zero_if(
        &self,
        at: usize,
        prot: UserProt,
        may: impl FnOnce() -> bool,
    ) -> Result<bool, VmError> {
        piece(at, 1)?;
        let frame = new_page(true).ok_or(VmError::NoMemory)?;
        self.map_if(at, frame, prot, Sharing::Plain, may)
    }

    /// Maps new pages of zeros. Does a piece; returns how many pages are mapped.
    pub fn map_zero(&self, at: usize, pages: usize, prot: UserProt) -> Result<usize, VmError> {
        each(at, piece(at, pages)?, |page| {
            self.map_zero_if(page, prot, || true).map(drop)
        })
    }

    /// Unmaps what is mapped, and gives the frames up once no processor has the translations. Does
    /// a piece; returns how many pages that was, those included where nothing was mapped.
    pub fn unmap(&self, at: usize, pages: usize) -> Result<usize, VmError> {
        self.take_away(at, pages, |_| true)
    }

    /// Unmaps pages of memory objects alone, likewise.
    pub fn unmap_tracked(&self, at: usize, pages: usize) -> Result<usize, VmError> {
        self.take_away(at, pages, Entry::is_tracked)
    }

    /// Unmaps the page at `at` if it is a memory object's, or, if it is the space's own, if `may`
    /// says so, which is called with the table locked.
    pub fn unmap_lost(&self, at: usize, may: impl Fn() -> bool) -> Result<(), VmError> {
        self.take_away(at, 1, |old| old.is_tracked() || may())
            .map(drop)
    }

    /// Unmaps the pages that are `meant`.
    fn take_away(
        &self,
        at: usize,
        pages: usize,
        meant: impl Fn(Entry) -> bool,
    ) -> Result<usize, VmError> {
        let count = piece(at, pages)?;
        let table = match self.table(at) {
            Ok(table) => table,
            Err(hole) => return Ok(pages.min(hole)),
        };
        // Often few of them were ever touched.
        let Some((first, last)) = table.used(at, count) else {
            return Ok(count);
        };
        let (at, used) = (at + first * PAGE_SIZE, last - first + 1);
        match used {
            ..=FEW => clear::<FEW>(table, at, used, meant),
            _ => clear::<TABLE_PAGES>(table, at, used, meant),
        }
        Ok(count)
    }

    /// Changes what the program may do with the pages that are mapped. Does a piece, as
    /// [`unmap`](Self::unmap) does.
    pub fn protect(&self, at: usize, pages: usize, prot: UserProt) -> Result<usize, VmError> {
        self.change(at, pages, |old| old.with(prot))
    }

    /// Makes the next write to each tracked page a fault; others are left as they are. When it
    /// returns, no program writes any more. Does a piece likewise.
    pub fn write_protect(&self, at: usize, pages: usize) -> Result<usize, VmError> {
        self.change(at, pages, Entry::write_protected)
    }

    /// Replaces entries by others of the same frames.
    fn change(
        &self,
        at: usize,
        pages: usize,
        new: impl Fn(Entry) -> Entry,
    ) -> Result<usize, VmError> {
        let count = piece(at, pages)?;
        match self.table(at) {
            Ok(mut table) => table.change(at, count, new),
            Err(hole) => return Ok(pages.min(hole)),
        }
        Ok(count)
    }

    /// Maps the space's own pages at the same addresses of `child` as well; neither sees what the
    /// other writes from now on. Pages of memory objects are left out. Does a piece, up to the
    /// first page that cannot be: where `child` has something, or no further owner fits. Returns
    /// how many pages that was, those included that are not mapped there. Pages that were not
    /// mapped in `child` for an error may be copied on write here, which nobody notices.
    pub fn fork(&self, at: usize, pages: usize, child: &VmSpace) -> Result<usize, VmError> {
        let count = piece(at, pages)?;
        let directory = match paging::directory(self.root, at) {
            Ok(directory) => directory,
            Err(hole) => return Ok(pages.min(hole / PAGE_SIZE)),
        };
        // What comes between the look and the lock is as if it had come after the fork.
        let Some((first, last)) = paging::used_below(directory, at, count) else {
            return Ok(count);
        };
        child.make_directory(at)?;
        let (start, used) = (at + first * PAGE_SIZE, last - first + 1);
        let done = match used {
            ..=SOME => self.fork_piece::<SOME>(start, used, child),
            _ => self.fork_piece::<TABLE_PAGES>(start, used, child),
        };
        match done {
            Ok(done) if done == used => Ok(count),
            Ok(done) => Ok(first + done),
            Err(_) if first > 0 => Ok(first),
            Err(why) => Err(why),
        }
    }

    /// Does [`fork`](Self::fork) with at most `N` pages of one table.
    fn fork_piece<const N: usize>(
        &self,
        at: usize,
        count: usize,
        child: &VmSpace,
    ) -> Result<usize, VmError> {
        let mut shared = Batch::<N>::new();
        let (found, why) = self.share_into(&mut shared, at, count);
        let mut table = child.make_table(at)?;
        let result = each(at, found, |page| {
            let index = (page - at) / PAGE_SIZE;
            if shared.is_empty(index) {
                return Ok(());
            }
            if !table.get(page).is_empty() {
                return Err(VmError::Occupied);
            }
            table.put(page, shared.take(index));
            Ok(())
        });
        match (result, why) {
            (Ok(0), Err(why)) => Err(why),
            (result, _) => result,
        }
    }

    /// Fills `shared` with entries for a child, and makes those here what they are to be from now
    /// on. When it returns, no program writes to what is copied on write. Says how many pages were
    /// done, and why not all.
    fn share_into<const N: usize>(
        &self,
        shared: &mut Batch<N>,
        at: usize,
        count: usize,
    ) -> (usize, Result<(), VmError>) {
        let Ok(mut table) = self.table(at) else {
            return (count, Ok(()));
        };
        for (index, page) in addresses(at, count).enumerate() {
            let old = table.get(page);
            if !old.is_own() {
                continue;
            }
            // SAFETY: the entry is not empty and stays while the table is locked.
            let Ok(frame) = (unsafe { old.share() }) else {
                return (index, Err(VmError::NoMemory));
            };
            let new = old.copied_on_write();
            shared.keep(index, new);
            frame.into_raw();
            table.put(page, new);
        }
        (count, Ok(()))
    }

    /// Makes a page that the program may write writable now: in place if nobody else has the frame,
    /// else by a copy. To be called at a fault; `Ok` means that the program shall try again. Pages
    /// that are tracked, or may not be written, are `Denied`.
    pub fn resolve_write(&self, at: usize) -> Result<(), VmError> {
        let at = at - at % PAGE_SIZE;
        piece(at, 1)?;
        let Some(old) = self.shared_page(at)? else {
            return Ok(());
        };
        let new = new_page(false).ok_or(VmError::NoMemory)?;
        let (from, to) = (phys_to_virt(old.physical()), phys_to_virt(new.physical()));
        // SAFETY: both are untyped frames, in the direct map, and owned here.
        unsafe { untyped::copy(from, to, PAGE_SIZE) };
        let mut table = self.table(at).map_err(|_| VmError::NotMapped)?;
        let now = table.get(at);
        let is_same = now.frame() == old.physical() && now.is_copied();
        if is_same && now.prot().write {
            let copy = Entry::new(new.into_raw(), now.prot(), Sharing::Plain);
            let gone = table.put(at, copy);
            drop(table);
            // SAFETY: it was taken out of the table, and the drop has flushed.
            drop(unsafe { gone.into_frame() });
        }
        Ok(())
    }

    /// Makes the page at `at` writable if nothing has to be copied; else gives a count of the frame
    /// to copy. Nobody writes to the frame as long as that is held: whoever has it finds another
    /// owner.
    fn shared_page(&self, at: usize) -> Result<Option<Frames>, VmError> {
        let mut table = self.table(at).map_err(|_| VmError::NotMapped)?;
        let old = mapped(&table, at)?;
        if !old.prot().write {
            return Err(VmError::Denied);
        }
        if old.is_writable() {
            // Another thread was faster, and this processor may not know yet.
            tlb::flush_local(at, 1);
            return Ok(None);
        }
        if old.sharing() == Sharing::Tracked {
            return Err(VmError::Denied);
        }
        // SAFETY: the entry is not empty and stays while the table is locked. Alone it has also
        // what was a memory object's.
        if unsafe { old.lent() }.owners() == 1 {
            table.put(at, Entry::new(old.frame(), old.prot(), Sharing::Plain));
            return Ok(None);
        }
        // SAFETY: as above.
        let shared = unsafe { old.share() };
        shared.map(Some).map_err(|_| VmError::NoMemory)
    }

    /// Makes a tracked page writable if it is still the one of the frame at physical address
    /// `frame`, and may be written, and `mark` says so. `mark` is called with the table locked and
    /// interrupts off, and is where the object marks the page as dirty: whoever takes that mark
    /// and then calls [`write_protect`](Self::write_protect) either finds it, or it is set again.
    /// Says whether the program can write now.
    pub fn make_writable_if(&self, at: usize, frame: u64, mark: impl FnOnce() -> bool) -> bool {
        let Some(mut table) = self.table_if(at) else {
            return false;
        };
        let old = table.get(at);
        let is_it = old.frame() == frame && old.sharing() == Sharing::Tracked;
        if old.is_empty() || !is_it || !old.prot().write || !mark() {
            return false;
        }
        table.put(at, old.known_as_written());
        true
    }

    /// Pages of memory that its tables take.
    pub fn tables(&self) -> usize {
        self.tables.load(Ordering::Relaxed)
    }

    /// Pages of memory that are its own, each counted here whoever else has it.
    pub fn own_pages(&self) -> usize {
        self.own.load(Ordering::Relaxed)
    }

    /// How many pages from `at` on lie in no page table, at this moment; 0: that of `at` is there.
    pub fn hole(&self, at: usize) -> usize {
        match paging::directory(self.root, at) {
            Ok(_) => 0,
            Err(bytes) => bytes / PAGE_SIZE,
        }
    }

    /// What is mapped at `at`, at this moment.
    pub fn query(&self, at: usize) -> Option<Mapped> {
        if at >= USER_END {
            return None;
        }
        let directory = paging::directory(self.root, at).ok()?;
        let entry = Table::peek(directory, at);
        (!entry.is_empty()).then(|| entry.view())
    }

    /// The table of `at`, locked; or, if there is none, how many pages from `at` on have none.
    pub(super) fn table(&self, at: usize) -> Result<Table<'_>, usize> {
        match paging::directory(self.root, at) {
            Ok(directory) => Ok(Table::lock(self.root, directory, &self.own)),
            Err(bytes) => Err(bytes / PAGE_SIZE),
        }
    }

    /// The table of the page `at`, locked, if it is a user page and there is one.
    fn table_if(&self, at: usize) -> Option<Table<'_>> {
        piece(at, 1).ok()?;
        self.table(at).ok()
    }

    /// The table of `at`, made if there is none, and locked.
    fn make_table(&self, at: usize) -> Result<Table<'_>, VmError> {
        Ok(Table::lock(self.root, self.make_directory(at)?, &self.own))
    }

    /// The entry that leads to the table of `at`, which is made if there is none.
    fn make_directory(&self, at: usize) -> Result<&AtomicU64, VmError> {
        let made = paging::make_directory(self.root, at, &mut new_table, &self.tables);
        made.map_err(|why| match why {
            MapError::NoMemory => VmError::NoMemory,
            MapError::Occupied => VmError::Occupied,
        })
    }

    /// Makes this the address space of the calling processor, which may keep it for as long as it
    /// likes: dropping it makes every processor leave it first.
    ///
    /// # Safety
    /// Interrupts are off.
    #[inline]
    pub(super) unsafe fn load(&self) {
        // SAFETY: the table shares the kernel half since `new`; `drop` frees it after
        // `leave_table`.
        unsafe { spaces::load(self.root) };
    }

    /// Physical address of the top-level table.
    #[cfg(feature = "selftest")]
    pub(crate) fn table_address(&self) -> u64 {
        self.root
    }
}

impl Drop for VmSpace {
    fn drop(&mut self) {
        smp::leave_table(self.root);
        paging::visit_lower_half(self.root, &mut |physical, is_table| {
            let kind = if is_table {
                FrameKind::PageTable
            } else {
                FrameKind::Untyped
            };
            // SAFETY: tables came from `new_table`, and an entry of the lowest level that is not 0
            // owns a count of its frame; nobody can reach them any more: no processor has the table
            // loaded, and whoever could load it would have had to borrow what is dropped here.
            drop(unsafe { Frames::from_raw(physical, 1, kind) });
        });
        // SAFETY: the top-level table came from `new_table` and no processor uses it any more.
        drop(unsafe { Frames::from_raw(self.root, 1, FrameKind::PageTable) });
    }
}

/// So many pages are unmapped, and forked, without an array for a whole table.
const FEW: usize = 16;
const SOME: usize = 64;

/// Clears those entries of `count` pages, at most `N`, that are `meant`, and gives the frames up
/// after the flush.
fn clear<const N: usize>(mut table: Table, at: usize, count: usize, meant: impl Fn(Entry) -> bool) {
    let mut gone = Batch::<N>::new();
    for (index, page) in addresses(at, count).enumerate() {
        let old = table.get(page);
        if !old.is_empty() && meant(old) {
            gone.keep(index, table.put(page, Entry::EMPTY));
        }
    }
    drop(table);
}

/// What is mapped at a page of a table.
pub(super) fn mapped(table: &Table, at: usize) -> Result<Entry, VmError> {
    let entry = table.get(at);
    if entry.is_empty() {
        return Err(VmError::NotMapped);
    }
    Ok(entry)
}

/// The addresses of `count` pages.
fn addresses(at: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |index| at + index * PAGE_SIZE)
}

/// Does something with each of `count` pages, up to the first for which it fails: an error if that
/// is the very first, else how many were done.
fn each(
    at: usize,
    count: usize,
    mut act: impl FnMut(usize) -> Result<(), VmError>,
) -> Result<usize, VmError> {
    for (done, page) in addresses(at, count).enumerate() {
        match act(page) {
            Ok(()) => {}
            Err(why) if done == 0 => return Err(why),
            Err(_) => return Ok(done),
        }
    }
    Ok(count)
}

/// Checks that whole pages in user space are meant. Returns how many of them are in the table of
/// the first.
fn piece(at: usize, pages: usize) -> Result<usize, VmError> {
    let bytes = pages.checked_mul(PAGE_SIZE).ok_or(VmError::BadAddress)?;
    let end = at.checked_add(bytes).ok_or(VmError::BadAddress)?;
    if pages == 0 || !at.is_multiple_of(PAGE_SIZE) || at == 0 || end > USER_END {
        return Err(VmError::BadAddress);
    }
    Ok(pages.min(TABLE_PAGES - at / PAGE_SIZE % TABLE_PAGES))
}
