//! Address spaces as interface objects: which pages of memory objects are mapped where.
//!
//! An area is a run of pages of one object at one address. The object knows of it by a mapping's
//! number, and has pages unmapped or protected through [`Mapped`] before it takes them away or
//! cleans them. Pages are entered one by one, when they are touched: the object holds the frame,
//! the entry is made, and the object looks once more whether the page still has that frame. So
//! whoever takes a page away finds the entry, or who makes it finds the page gone.
//!
//! # Locks
//! `pages` is held while entries are changed, over the flush; who waits for it answers to flushes.
//! Below it is `areas`. No lock of an object is taken under them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use framework::mem::PAGE_SIZE;
use framework::mem::untyped::{self, POOL, Untyped};
use framework::sync::SpinLock;
use framework::user::{Sharing, USER_END, UserProt, VmError, VmSpace};
use interfaces::{
    AddressSpace, AddressSpaces, Handle, MemoryError, Protection, RVec, RpcError, SpaceError,
    VmoView,
};
use isolation::call::thread::caller;
use isolation::domain::account::{Charge, Kind};
use isolation::lock::Lock;
use isolation::platform::platform;
use pages::Held;
use services::vmo::Object;
use services::vmo::object::Mapped;
use services::{KernelObjects, Registry};

/// The most that is done for a range in one call, in pages.
const AT_ONCE: u64 = 512;
/// Entries that are changed under one hold of the lock.
const PIECE: u64 = 32;
/// Page tables that one page may need besides those that are there.
const TABLES_AT_ONCE: usize = 3;
/// Room that a list begins with.
const LEAST_AREAS: usize = 4;
/// Areas of one space.
const MOST_AREAS: usize = 16384;

const PAGE: u64 = PAGE_SIZE as u64;

/// All memory objects.
static OBJECTS: Registry<Untyped> = Registry::new();

/// The maker of memory objects.
pub fn objects() -> KernelObjects<Untyped> {
    KernelObjects {
        pool: POOL,
        registry: &OBJECTS,
    }
}

/// The maker of address spaces.
pub struct Spaces;

impl AddressSpaces for Spaces {
    fn create(&self) -> Result<Handle<dyn AddressSpace>, SpaceError> {
        // The space lies in the kernel's heap, its tables in its memory.
        if !platform().can_note() || !platform().can_spare(8) {
            return Err(RpcError::NoMemory.into());
        }
        let vm = VmSpace::new().map_err(|_| RpcError::NoMemory)?;
        let charge = caller().map(|block| Charge::new(block, Kind::Notes, 0));
        let space = Arc::new(Space {
            vm,
            pages: SpinLock::new(()),
            areas: Lock::new(Vec::new()),
            charge: Lock::new(charge.flatten()),
        });
        space.pay()?;
        Ok(Handle::<dyn AddressSpace>::new(SpaceObject(space))?)
    }
}

/// A run of pages of one object.
struct Area {
    at: u64,
    count: u64,
    /// The object's first page.
    page: u64,
    protection: Protection,
    object: Arc<Object<Untyped>>,
    /// The object's number for the mapping. Areas that were one have the same.
    mapping: u64,
}

impl Area {
    fn end(&self) -> u64 {
        self.at + self.count * PAGE
    }

    /// The addresses of these pages of the object, as far as the area has them.
    fn addresses(&self, pages: &Range<u64>) -> Range<u64> {
        let at = |page: u64| {
            self.at + (page.clamp(self.page, self.page + self.count) - self.page) * PAGE
        };
        at(pages.start)..at(pages.end)
    }

    /// The part of it in a range of addresses.
    fn part(&self, range: &Range<u64>) -> Option<Area> {
        let at = self.at.max(range.start);
        let end = self.end().min(range.end);
        (at < end).then(|| Area {
            at,
            count: (end - at) / PAGE,
            page: self.page + (at - self.at) / PAGE,
            protection: self.protection,
            object: self.object.clone(),
            mapping: self.mapping,
        })
    }
}

/// An address space.
struct Space {
    vm: VmSpace,
    pages: SpinLock<()>,
    /// In the order of their addresses, none over another.
    areas: Lock<Vec<Area>>,
    /// For the page tables; the kernel pays for nothing.
    charge: Lock<Option<Charge>>,
}

struct SpaceObject(Arc<Space>);

/// The address of a page of a program.
fn page_at(at: u64) -> Result<u64, SpaceError> {
    let is_page = at.is_multiple_of(PAGE) && at != 0 && at < USER_END as u64;
    is_page.then_some(at).ok_or(SpaceError::BadAddress)
}

/// The addresses of `count` pages from `at` on.
fn range(at: u64, count: u64) -> Result<Range<u64>, SpaceError> {
    let start = page_at(at)?;
    let end = count
        .checked_mul(PAGE)
        .and_then(|bytes| start.checked_add(bytes));
    let end = end.filter(|end| count > 0 && *end <= USER_END as u64);
    Ok(start..end.ok_or(SpaceError::BadAddress)?)
}

fn vm_error(error: VmError) -> SpaceError {
    match error {
        VmError::NoMemory => RpcError::NoMemory.into(),
        VmError::Occupied => SpaceError::Occupied,
        VmError::NotMapped | VmError::Denied => SpaceError::NotMapped,
        VmError::BadAddress | VmError::NotUntyped => SpaceError::BadAddress,
    }
}

/// An error on the way of a page from its object to its place.
struct Broken(SpaceError);

impl From<MemoryError> for Broken {
    fn from(error: MemoryError) -> Self {
        Broken(match error {
            MemoryError::Rpc(error) => error.into(),
            error => SpaceError::Object(error),
        })
    }
}

impl Space {
    /// Charges what its tables and the list of its areas have grown by, and what one more page, or
    /// area, may take: they stay as long as the space, so nobody gets them who could not pay.
    fn pay(&self) -> Result<(), SpaceError> {
        let has = self
            .charge
            .lock()
            .as_ref()
            .map(|it| (it.block().clone(), it.bytes()));
        let Some((block, has)) = has else {
            return Ok(());
        };
        let tables = self.vm.tables() + TABLES_AT_ONCE;
        let areas = 2 * self.areas.lock().capacity() + LEAST_AREAS;
        let bytes = tables * PAGE_SIZE + areas * size_of::<Area>();
        let more = bytes.saturating_sub(has);
        if more == 0 {
            return Ok(());
        }
        if !block.may_take(TABLES_AT_ONCE) {
            return Err(RpcError::NoMemory.into());
        }
        let charge = Charge::new(block, Kind::Notes, more).ok_or(RpcError::NoMemory)?;
        let left = match &mut *self.charge.lock() {
            Some(own) => own.absorb(charge).err(),
            None => Some(charge),
        };
        drop(left);
        Ok(())
    }

    /// The physical address of the frame that is entered at `at`, and whether it can be written.
    fn mapped(&self, at: u64) -> Option<(u64, bool)> {
        let mapped = self.vm.query(at as usize)?;
        Some((mapped.frame, mapped.writable))
    }

    /// What is at address `at`: the object, its page, the mapping's number, and what is allowed.
    fn area(&self, at: u64) -> Option<(Arc<Object<Untyped>>, u64, u64, Protection)> {
        let areas = self.areas.lock();
        let next = areas.partition_point(|area| area.at <= at);
        let area = areas[..next].last().filter(|area| at < area.end())?;
        let page = area.page + (at - area.at) / PAGE;
        Some((area.object.clone(), page, area.mapping, area.protection))
    }

    /// Enters the frame at `at`, as long as that is a page of this mapping.
    fn enter(
        &self,
        at: u64,
        mapping: u64,
        held: &Held<Untyped>,
        prot: UserProt,
    ) -> Result<(), SpaceError> {
        self.pay()?;
        let guard = self.pages.lock();
        let is_there = self
            .area(at)
            .is_some_and(|(_, _, number, _)| number == mapping);
        if !is_there {
            return Err(SpaceError::NotMapped);
        }
        let physical = held.frame() * PAGE;
        let result = match self.mapped(at) {
            Some((there, writable)) if there == physical => match prot.write && !writable {
                true => self.vm.protect(at as usize, 1, prot).map(|_| ()),
                false => Ok(()),
            },
            // What is there is a frame that the page has lost, and that somebody is about to unmap.
            Some(_) => self.vm.unmap(at as usize, 1).map(|_| ()),
            None => Ok(()),
        };
        let result = result.and_then(|()| match self.mapped(at) {
            Some(_) => Ok(()),
            None => {
                let frame = untyped::share(held).ok_or(VmError::NoMemory)?;
                self.vm.map(at as usize, frame, prot, Sharing::Plain)
            }
        });
        drop(guard);
        result.map_err(vm_error)
    }

    /// Unmaps the page at `at`, if there is one.
    fn drop_page(&self, at: u64) {
        let _guard = self.pages.lock();
        self.clear(at);
    }

    /// Unmaps the page at `at`, with `pages` locked.
    fn clear(&self, at: u64) {
        let done = self.vm.unmap(at as usize, 1);
        debug_assert!(done.is_ok(), "areas lie in user space");
    }

    /// Changes the entries of a range of addresses, some at a time.
    fn each(&self, range: Range<u64>, change: impl Fn(u64)) {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at + PIECE * PAGE);
            let guard = self.pages.lock();
            while at < end {
                change(at);
                at += PAGE;
            }
            drop(guard);
        }
    }

    /// Changes the entries of those pages of the object that `mapping` has.
    fn each_of(&self, mapping: u64, pages: &Range<u64>, change: impl Fn(u64)) {
        let mut from = 0;
        loop {
            let areas = self.areas.lock();
            let first = areas.partition_point(|area| area.at < from);
            let found = areas[first..].iter().find(|area| area.mapping == mapping);
            let Some(area) = found else {
                return;
            };
            let addresses = area.addresses(pages);
            from = area.end();
            drop(areas);
            self.each(addresses, &change);
        }
    }

    fn add(&self, area: Area) -> Result<(), SpaceError> {
        let mut areas = self.areas.lock();
        if areas.len() >= MOST_AREAS {
            return Err(RpcError::Busy.into());
        }
        let next = areas.partition_point(|other| other.at < area.at);
        let before = areas[..next]
            .last()
            .is_none_or(|other| other.end() <= area.at);
        let behind = areas.get(next).is_none_or(|other| area.end() <= other.at);
        if !(before && behind) {
            return Err(SpaceError::Occupied);
        }
        areas.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
        areas.insert(next, area);
        Ok(())
    }

    /// Takes a range of addresses out of the first area that has some of it; the part, and whether
    /// it was the last one of its mapping.
    fn take(&self, range: &Range<u64>) -> Result<Option<(Area, bool)>, SpaceError> {
        let mut areas = self.areas.lock();
        // One area may become two.
        areas.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
        let first = areas.partition_point(|area| area.end() <= range.start);
        let Some(taken) = areas.get(first).and_then(|area| area.part(range)) else {
            return Ok(None);
        };
        let area = &areas[first];
        let before = area.part(&(area.at..taken.at));
        let behind = area.part(&(taken.end()..area.end()));
        let old = match (before, behind) {
            (None, None) => areas.remove(first),
            (Some(one), None) | (None, Some(one)) => core::mem::replace(&mut areas[first], one),
            (Some(one), Some(other)) => {
                areas.insert(first + 1, other);
                core::mem::replace(&mut areas[first], one)
            }
        };
        let is_last = !areas.iter().any(|area| area.mapping == taken.mapping);
        drop(areas);
        drop(old);
        Ok(Some((taken, is_last)))
    }
}

impl Mapped for Space {
    fn unmap(&self, number: u64, pages: Range<u64>) {
        self.each_of(number, &pages, |at| self.clear(at));
    }

    fn protect(&self, number: u64, pages: Range<u64>) {
        self.each_of(number, &pages, |at| {
            if let Some((_, true)) = self.mapped(at) {
                let execute = self.area(at).is_some_and(|(.., allowed)| allowed.execute);
                let prot = UserProt {
                    read: true,
                    write: false,
                    execute,
                };
                let protected = self.vm.protect(at as usize, 1, prot);
                debug_assert!(protected.is_ok(), "a page that is mapped can be protected");
            }
        });
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // Not in the loop's head, where the lock would be held as long as the loop.
        let areas = core::mem::take(&mut *self.areas.lock());
        for area in areas {
            area.object.remove_mapping(area.mapping);
        }
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
        range(at, count)?;
        let (object, rights) = OBJECTS.find(&view).ok_or(SpaceError::Denied)?;
        let allowed = rights.map
            && rights.read
            && (rights.write || !protection.write)
            && (rights.execute || !protection.execute);
        if !allowed {
            return Err(SpaceError::Denied);
        }
        self.0.pay()?;
        let space: Arc<dyn Mapped> = self.0.clone();
        let mapping = object.add_mapping(Arc::downgrade(&space), page, count);
        let mapping = mapping.map_err(|error| Broken::from(error).0)?;
        let area = Area {
            at,
            count,
            page,
            protection,
            object: object.clone(),
            mapping,
        };
        self.0
            .add(area)
            .inspect_err(|_| object.remove_mapping(mapping))
    }

    fn unmap(&self, at: u64, count: u64) -> Result<u64, SpaceError> {
        let all = range(at, count)?;
        let range = all.start..all.end.min(all.start + AT_ONCE * PAGE);
        let space = &self.0;
        while let Some((area, is_last)) = space.take(&range)? {
            space.each(area.at..area.end(), |at| space.clear(at));
            if is_last {
                area.object.remove_mapping(area.mapping);
            }
        }
        Ok((range.end - range.start) / PAGE)
    }

    fn touch(&self, at: u64, write: bool) -> Result<(), SpaceError> {
        let at = page_at(at / PAGE * PAGE)?;
        let space = &self.0;
        let (object, page, mapping, allowed) = space.area(at).ok_or(SpaceError::NotMapped)?;
        if write && !allowed.write {
            return Err(SpaceError::NotMapped);
        }
        let prot = UserProt {
            read: true,
            write,
            execute: allowed.execute,
        };
        let enter = |held: &Held<Untyped>| space.enter(at, mapping, held, prot).map_err(Broken);
        let entered = object.map_page(page, write, enter, || space.drop_page(at));
        entered.map_err(|Broken(error)| error)
    }

    fn read(&self, at: u64, mut buffer: RVec<u8>) -> Result<(RVec<u8>, u64), SpaceError> {
        let mut left = &mut buffer[..];
        let count = in_pages(at, left.len(), |at, length| {
            let (now, later) = core::mem::take(&mut left).split_at_mut(length);
            left = later;
            self.0.vm.read(at, now)
        })?;
        Ok((buffer, count))
    }

    fn write(&self, at: u64, data: &RVec<u8>) -> Result<u64, SpaceError> {
        let mut left = &data[..];
        in_pages(at, data.len(), |at, length| {
            let (now, later) = left.split_at(length);
            left = later;
            self.0.vm.write(at, now)
        })
    }
}

/// Copies page by page; how many bytes before the first page that is not ready.
fn in_pages(
    at: u64,
    length: usize,
    mut copy: impl FnMut(usize, usize) -> Result<(), VmError>,
) -> Result<u64, SpaceError> {
    let end = at
        .checked_add(length as u64)
        .filter(|end| *end <= USER_END as u64);
    let end = end.ok_or(SpaceError::BadAddress)?;
    let mut done = at;
    while done < end {
        let length = (PAGE - done % PAGE).min(end - done);
        match copy(done as usize, length as usize) {
            Ok(()) => done += length,
            Err(error) if done == at => return Err(vm_error(error)),
            Err(_) => break,
        }
    }
    Ok(done - at)
}
