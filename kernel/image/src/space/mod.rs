//! Address spaces as interface objects: which pages of memory objects are mapped where, and which
//! are the space's own.
//!
//! An area is a run of pages of one object, or of zeros, at one address (`lib/system/areas`). Pages
//! are entered one by one, when they are touched ([`fault`]). What the object takes away or cleans
//! it has unmapped or protected here, through [`Mapped`].
//!
//! # Locks
//! The list of areas has a lock. Entries are changed under the locks of the page tables
//! (`framework::user`), and never both are held. So whoever changes areas counts `changes` up, and
//! then changes the entries; whoever enters a page looks, with its table locked, whether that count
//! is still what it was when he looked the area up. Either he sees the change, or his entry is
//! found by who made it.

mod backing;
pub mod clock;
mod fault;
mod purse;
pub mod thread;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use areas::{Area, Areas, Refused};
use backing::{Backing, Mapping, Source, object_error};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use framework::mem::PAGE_SIZE;
use framework::user::{USER_END, VmError, VmSpace};
use interfaces::{
    AddressSpace, AddressSpaces, Handle, Protection, RVec, RpcError, SpaceError, SpaceUsage,
    UserBuf, UserThread, VmoRights, VmoView,
};
use isolation::call::handle::kernel_object;
use isolation::call::handle::{kernel_object_at, kernel_object_of};
use isolation::lock::Lock;
use isolation::platform::platform;
use purse::Purse;
use services::vmo::object::Mapped;

/// The most areas of one space.
const MOST_AREAS: usize = 16384;
/// Room that a list begins with.
const LEAST_AREAS: usize = 8;
/// Pages of one table, as many as one step changes.
const WINDOW: u64 = 512;
/// Steps of one call.
const STEPS: usize = 64;

const PAGE: u64 = PAGE_SIZE as u64;

/// The maker of address spaces.
pub struct Spaces;

impl AddressSpaces for Spaces {
    fn create(&self) -> Result<Handle<dyn AddressSpace>, SpaceError> {
        // The space lies in the kernel's heap, its tables in its memory.
        if !platform().can_note() || !platform().can_spare(8) {
            return Err(RpcError::NoMemory.into());
        }
        let space = Space {
            vm: VmSpace::new().map_err(|_| RpcError::NoMemory)?,
            areas: Lock::new(Areas::new()),
            changes: AtomicU64::new(0),
            purse: Purse::of_caller(),
        };
        space.pay(0)?;
        Ok(Handle::<dyn AddressSpace>::new(SpaceObject(Arc::new(
            space,
        )))?)
    }

    fn clock_page(&self) -> Result<Handle<dyn VmoView>, SpaceError> {
        clock::view()
    }
}

/// An address space.
struct Space {
    vm: VmSpace,
    areas: Lock<Areas<Backing>>,
    /// How often something was taken out of the areas, or may be done less with it.
    changes: AtomicU64,
    purse: Purse,
}

struct SpaceObject(Arc<Space>);

/// The pages from address `at` on.
fn pages(at: u64, count: u64) -> Result<Range<u64>, SpaceError> {
    let first = at / PAGE;
    let end = first.checked_add(count);
    let end = end.filter(|end| *end <= USER_END as u64 / PAGE);
    let is_right = at.is_multiple_of(PAGE) && first > 0 && count > 0;
    let end = end.filter(|_| is_right).ok_or(SpaceError::BadAddress)?;
    Ok(first..end)
}

fn vm_error(error: VmError) -> SpaceError {
    match error {
        VmError::NoMemory => RpcError::NoMemory.into(),
        VmError::Occupied => SpaceError::Occupied,
        VmError::NotMapped | VmError::Denied => SpaceError::NotMapped,
        VmError::BadAddress | VmError::NotUntyped => SpaceError::BadAddress,
    }
}

/// The address of a page.
fn address(page: u64) -> usize {
    (page * PAGE) as usize
}

/// The pages of `range` from its start on that lie in one page table.
fn window(range: &Range<u64>) -> Range<u64> {
    range.start..range.end.min((range.start / WINDOW + 1) * WINDOW)
}

impl Space {
    /// Has `step` change pages, as many as lie in one table at a time.
    fn each_window(
        &self,
        pages: Range<u64>,
        step: impl Fn(usize, usize) -> Result<usize, VmError>,
    ) {
        let mut next = pages.start;
        while next < pages.end {
            let done = step(address(next), (pages.end - next) as usize);
            debug_assert!(done.is_ok(), "areas lie in user space");
            next += done.unwrap_or(1) as u64;
        }
    }

    /// Adds an area, for which there is room or is made.
    fn add(&self, mut area: Area<Backing>) -> Result<(), SpaceError> {
        loop {
            let added = self.areas.lock().insert(area);
            match added {
                Ok(()) => return Ok(()),
                Err((Refused::Occupied, _)) => return Err(SpaceError::Occupied),
                Err((Refused::Full, back)) => {
                    self.make_room()?;
                    area = back;
                }
            }
        }
    }

    /// Makes the list of areas longer, without its lock.
    fn make_room(&self) -> Result<(), SpaceError> {
        let areas = self.areas.lock();
        let (has_room, length) = (areas.has_room(), areas.capacity());
        drop(areas);
        if has_room {
            return Ok(());
        }
        if length >= MOST_AREAS {
            return Err(RpcError::Busy.into());
        }
        let room = (2 * length).max(LEAST_AREAS);
        self.purse
            .cover(self.bytes() + room * size_of::<Area<Backing>>())?;
        let mut longer = Vec::new();
        longer
            .try_reserve_exact(room)
            .map_err(|_| RpcError::NoMemory)?;
        let before = self.areas.lock().lengthen(longer);
        drop(before);
        Ok(())
    }

    /// What it takes: page tables, pages of its own, and the list.
    fn bytes(&self) -> usize {
        let list = self.areas.lock().capacity() * size_of::<Area<Backing>>();
        self.page_bytes() + list
    }

    fn page_bytes(&self) -> usize {
        (self.vm.tables() + self.vm.own_pages()) * PAGE_SIZE
    }

    /// Charges what it has grown by, and what `more` pages and their tables may take.
    fn pay(&self, more: usize) -> Result<(), SpaceError> {
        self.purse
            .cover(self.bytes() + (more + purse::TABLES_AT_ONCE) * PAGE_SIZE)
    }

    /// Makes the charge what it takes, after it has grown or shrunk.
    fn settle(&self) {
        self.purse.settle(self.bytes());
    }

    /// Notes that less is mapped now than somebody may have seen.
    fn has_changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes what lies in one table out of the areas, and its entries away. Room, and memory for
    /// it, is needed only where two areas are left of one.
    fn unmap_window(&self, window: &Range<u64>) -> Result<(), SpaceError> {
        loop {
            let taken = self.areas.lock().take(window);
            let taken = match taken {
                Ok(Some(taken)) => taken,
                Ok(None) => return Ok(()),
                Err(_) => {
                    self.make_room()?;
                    continue;
                }
            };
            self.has_changed();
            self.each_window(taken.first..taken.end(), |at, count| {
                self.vm.unmap(at, count)
            });
        }
    }

    /// Changes what may be done with pages that lie in one table.
    fn protect_window(&self, window: &Range<u64>, to: Protection) -> Result<(), SpaceError> {
        let mut rest = window.clone();
        while rest.start < rest.end {
            self.make_room()?;
            let changed = self
                .areas
                .lock()
                .change(&rest, |backing| backing.protect(to));
            let changed = match changed {
                Ok(Some(changed)) => changed,
                Ok(None) => return Ok(()),
                Err(backing::NotChanged::Room) => continue,
                Err(backing::NotChanged::Denied) => return Err(SpaceError::Denied),
            };
            self.has_changed();
            let prot = backing::prot(to);
            rest.start = changed.end;
            self.each_window(changed, |at, count| self.vm.protect(at, count, prot));
        }
        Ok(())
    }

    /// Gives back the space's own pages of a window, and leaves its areas as they are. A fault that
    /// enters a page meanwhile is as one that comes before, or after.
    fn discard_window(&self, window: &Range<u64>) {
        let mut next = window.start;
        while next < window.end {
            let Some(area) = self.areas.lock().from(next).cloned() else {
                return;
            };
            next = area.end();
            let pages = area.first.max(window.start)..next.min(window.end);
            if area.backing.has_own_pages() {
                self.each_window(pages, |at, count| self.vm.unmap(at, count));
            }
        }
    }

    /// The pages of `range`, which begins in an area that ends with page `end`, that are changed in
    /// one step: as many as one table has, or, where there is no table, as many as the area has
    /// there. Tables that are made meanwhile are met one by one.
    fn step(&self, range: &Range<u64>, end: u64) -> Range<u64> {
        match self.vm.hole(address(range.start)) as u64 {
            0 => window(range),
            hole => range.start..range.end.min(end).min(range.start.saturating_add(hole)),
        }
    }

    /// Has `step` do a range window by window; how many pages are done.
    fn in_windows(
        &self,
        all: Range<u64>,
        step: impl Fn(&Range<u64>) -> Result<(), SpaceError>,
    ) -> Result<u64, SpaceError> {
        let mut rest = all.clone();
        for _ in 0..STEPS {
            // Where there is no area, there is nothing to do.
            let next = self
                .areas
                .lock()
                .from(rest.start)
                .map(|it| (it.first, it.end()));
            let (first, end) = next.unwrap_or((u64::MAX, u64::MAX));
            rest.start = first.clamp(rest.start, rest.end);
            if rest.is_empty() {
                break;
            }
            let window = self.step(&rest, end);
            let done = step(&window);
            if done.is_err() && rest.start == all.start {
                self.settle();
                return done.map(|()| 0);
            }
            if done.is_err() {
                break;
            }
            rest.start = window.end;
        }
        self.settle();
        Ok(rest.start - all.start)
    }

    /// Maps a part of an object.
    fn map(
        self: &Arc<Self>,
        pages: Range<u64>,
        (view, first): (&Handle<dyn VmoView>, u64),
        protection: Protection,
        is_private: bool,
    ) -> Result<(), SpaceError> {
        let (object, rights) = services::vmo::viewed(view).ok_or(SpaceError::Denied)?;
        let most = most(rights, is_private);
        let mut backing = Backing {
            source: Source::Zero,
            protection,
            most,
        };
        if !rights.map || !rights.read || backing.protect(protection).is_err() {
            return Err(SpaceError::Denied);
        }
        self.pay(0)?;
        let count = pages.end - pages.start;
        let mapping = self.mapping(object, pages.start, first..first.saturating_add(count))?;
        backing.source = Source::Object {
            mapping,
            page: first,
            is_private,
        };
        self.add(Area {
            first: pages.start,
            count,
            backing,
        })
    }

    /// Has an object know that pages of it are mapped from page `at` of the space on.
    fn mapping(
        self: &Arc<Self>,
        object: Arc<backing::Object>,
        at: u64,
        pages: Range<u64>,
    ) -> Result<Arc<Mapping>, SpaceError> {
        let weak: Weak<Space> = Arc::downgrade(self);
        let number = object.add_mapping(weak, at, pages).map_err(object_error)?;
        Ok(Arc::new(Mapping { object, number }))
    }

    /// Gives `child` what is mapped in `area`, but none of its pages yet.
    fn pass_on(&self, mut area: Area<Backing>, child: &Arc<Space>) -> Result<(), SpaceError> {
        child.pay(0)?;
        if let Source::Object { mapping, page, .. } = &mut area.backing.source {
            let pages = *page..*page + area.count;
            *mapping = child.mapping(mapping.object.clone(), area.first, pages)?;
        }
        child.add(area)
    }

    /// Gives `child` the space's own pages of a window; how many pages are done.
    fn copy_window(&self, window: &Range<u64>, child: &Space) -> Result<u64, SpaceError> {
        let count = (window.end - window.start) as usize;
        child.pay(count.min(WINDOW as usize).min(self.vm.own_pages()))?;
        let done = self.vm.fork(address(window.start), count, &child.vm);
        child.settle();
        done.map(|done| (done as u64).min(window.end - window.start))
            .map_err(vm_error)
    }
}

impl Mapped for Space {
    fn unmap(&self, pages: Range<u64>) {
        self.each_window(pages, |at, count| self.vm.unmap_tracked(at, count));
    }

    fn protect(&self, pages: Range<u64>) {
        self.each_window(pages, |at, count| self.vm.write_protect(at, count));
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // Behind the lock: mappings end here, and with them perhaps objects.
        let areas = self.areas.lock().take_all();
        drop(areas);
    }
}

/// What may be done at most with pages of a view. What is written to a copy needs no right.
fn most(rights: VmoRights, is_private: bool) -> Protection {
    Protection {
        read: rights.read,
        write: rights.write || is_private,
        execute: rights.execute,
    }
}

impl AddressSpace for SpaceObject {
    fn map(
        &self,
        at: u64,
        view: Handle<dyn VmoView>,
        page: u64,
        count: u64,
        protection: Protection,
    ) -> Result<(), SpaceError> {
        let pages = pages(at, count)?;
        self.0.map(pages, (&view, page), protection, false)
    }

    fn map_private(
        &self,
        at: u64,
        view: Handle<dyn VmoView>,
        page: u64,
        count: u64,
        protection: Protection,
    ) -> Result<(), SpaceError> {
        let pages = pages(at, count)?;
        self.0.map(pages, (&view, page), protection, true)
    }

    fn map_zero(&self, at: u64, count: u64, protection: Protection) -> Result<(), SpaceError> {
        let pages = pages(at, count)?;
        self.0.pay(0)?;
        self.0.add(Area {
            first: pages.start,
            count,
            backing: Backing {
                source: Source::Zero,
                protection,
                most: backing::ALL,
            },
        })
    }

    fn unmap(&self, at: u64, count: u64) -> Result<u64, SpaceError> {
        let space = &self.0;
        space.in_windows(pages(at, count)?, |window| space.unmap_window(window))
    }

    fn protect(&self, at: u64, count: u64, protection: Protection) -> Result<u64, SpaceError> {
        let space = &self.0;
        let step = |window: &Range<u64>| space.protect_window(window, protection);
        space.in_windows(pages(at, count)?, step)
    }

    fn discard(&self, at: u64, count: u64) -> Result<u64, SpaceError> {
        let space = &self.0;
        space.in_windows(pages(at, count)?, |window| {
            space.discard_window(window);
            Ok(())
        })
    }

    fn usage(&self) -> Result<SpaceUsage, SpaceError> {
        Ok(SpaceUsage {
            own: self.0.vm.own_pages() as u64,
            tables: self.0.vm.tables() as u64,
        })
    }

    fn fork(&self, child: Handle<dyn AddressSpace>, from: u64) -> Result<Option<u64>, SpaceError> {
        if !from.is_multiple_of(PAGE) {
            return Err(SpaceError::BadAddress);
        }
        let SpaceObject(child) = kernel_object(&child).ok_or(SpaceError::Denied)?;
        let mut page = from / PAGE;
        for _ in 0..STEPS {
            let area = self.0.areas.lock().from(page).cloned();
            let Some(area) = area else {
                return Ok(None);
            };
            if area.first >= page {
                page = area.first;
                self.0.pass_on(area.clone(), child)?;
            }
            page = match area.backing.has_own_pages() {
                true => {
                    let step = self.0.step(&(page..area.end()), area.end());
                    page + self.0.copy_window(&step, child)?
                }
                false => area.end(),
            };
        }
        Ok(Some(page * PAGE))
    }

    fn thread(&self) -> Result<Handle<dyn UserThread>, SpaceError> {
        thread::create(&self.0)
    }

    fn touch(&self, at: u64, write: bool) -> Result<(), SpaceError> {
        let pages = pages(at / PAGE * PAGE, 1)?;
        self.0.touch(pages.start, write)
    }

    fn read(&self, at: u64, mut buffer: RVec<u8>) -> Result<(RVec<u8>, u64), SpaceError> {
        let count = self.0.read(at, &mut buffer)?;
        Ok((buffer, count))
    }

    fn write(&self, at: u64, data: &RVec<u8>) -> Result<u64, SpaceError> {
        self.0.write(at, data)
    }
}

/// Copies from the program whose space is behind a handle; how many bytes, up to the first page
/// that it may not read now.
///
/// # Safety
/// `handle` is the data pointer of a handle that is live until this returns.
#[inline]
pub unsafe fn read(handle: *const u8, at: u64, bytes: &mut [u8]) -> usize {
    // SAFETY: by the caller's duty.
    let space = unsafe { kernel_object_at::<SpaceObject>(handle) };
    space.map_or(0, |SpaceObject(space)| {
        space.vm.read_some(at as usize, bytes).0
    })
}

/// Copies to the program whose space is behind a handle; how many bytes, up to the first page that
/// it may not write to now.
///
/// # Safety
/// As of [`read`].
#[inline]
pub unsafe fn write(handle: *const u8, at: u64, bytes: &[u8]) -> usize {
    // SAFETY: by the caller's duty.
    let space = unsafe { kernel_object_at::<SpaceObject>(handle) };
    space.map_or(0, |SpaceObject(space)| {
        space.vm.write_some(at as usize, bytes).0
    })
}

/// The memory of the program that is lent.
pub fn lent<'a>(memory: &'a UserBuf<'_>) -> Option<&'a VmSpace> {
    kernel_object_of(memory).map(|SpaceObject(space)| &space.vm)
}

/// Puts `new` into a word of the program whose space is behind a handle, if it holds `old`; what it
/// held. `None`: it may not write there now, or it is no word.
///
/// # Safety
/// As of [`read`].
pub unsafe fn exchange(handle: *const u8, at: u64, old: u32, new: u32) -> Option<u32> {
    // SAFETY: by the caller's duty.
    let SpaceObject(space) = unsafe { kernel_object_at(handle) }?;
    space.vm.exchange(at as usize, old, new).ok()
}

/// What a word of the program whose space is behind a handle holds. `None`: it may not read there
/// now, or it is no word.
///
/// # Safety
/// As of [`read`].
pub unsafe fn load(handle: *const u8, at: u64) -> Option<u32> {
    // SAFETY: by the caller's duty.
    let SpaceObject(space) = unsafe { kernel_object_at(handle) }?;
    space.vm.word(at as usize).ok()
}

impl Space {
    /// Copies from the program; how many bytes before the first page that is not ready.
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<u64, SpaceError> {
        let at = range(at, bytes.len())?;
        some(self.vm.read_some(at, bytes))
    }

    /// Copies to the program, likewise.
    fn write(&self, at: u64, bytes: &[u8]) -> Result<u64, SpaceError> {
        let at = range(at, bytes.len())?;
        some(self.vm.write_some(at, bytes))
    }
}

/// The address of a range, all of which is a program's.
fn range(at: u64, length: usize) -> Result<usize, SpaceError> {
    let end = at.checked_add(length as u64);
    match end {
        Some(end) if end <= USER_END as u64 => Ok(at as usize),
        _ => Err(SpaceError::BadAddress),
    }
}

/// How many bytes were copied; an error if that is none, for a reason.
fn some((done, why): (usize, Result<(), VmError>)) -> Result<u64, SpaceError> {
    match why {
        Err(why) if done == 0 => Err(vm_error(why)),
        _ => Ok(done as u64),
    }
}
