//! A process's address space, and what is mapped where in it.

use crate::disk::Mapped;
use crate::errno::{EFAULT, EINTR, EINVAL, EIO, ENOMEM, Error};
use crate::shared::{self, Source};
use crate::system::System;
use crate::waiters::{Key, Place};
use alloc::sync::Weak;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use domain_rt::sync::{Mutex, MutexGuard};
use domain_rt::user;
use guests::space::{self, error, protection};
use interfaces::{AddressSpace, Handle, MemoryError, RpcError, SpaceError};
use linux::areas::{Area, Areas};
use linux::layout::{self, Layout};
use linux::memory::{Memory, PAGE};
use linux::program::USER_END;

/// How often one tries to have a page that goes as soon as it has come.
const ATTEMPTS: u32 = 64;

/// A space, what is mapped in it, and where its heap is.
///
/// Whoever changes what is mapped holds the lock of `layout` meanwhile. So a fork sees no change by
/// half; and whoever finds nothing at an address looks again with that lock held, so that no
/// thread meets the hole between the two steps of a mapping that takes another one's place.
pub struct Space {
    handle: Handle<dyn AddressSpace>,
    maps: Mutex<Areas<Source>>,
    number: u64,
    layout: Mutex<Layout>,
    system: Weak<System>,
    /// Its processes were ended because there was no memory: they get no more.
    is_doomed: AtomicBool,
}

impl Space {
    /// One without files, whose heap is still to be placed.
    pub fn new(handle: Handle<dyn AddressSpace>, system: Weak<System>) -> Self {
        Space {
            handle,
            maps: Mutex::default(),
            number: shared::new_number(),
            layout: Mutex::new(Layout::new(0)),
            system,
            is_doomed: AtomicBool::new(false),
        }
    }

    /// Where the heap is. Nothing else changes what is mapped while this is held.
    pub fn layout(&self) -> MutexGuard<'_, Layout> {
        self.layout.lock()
    }

    /// The space itself, for what has nothing to do with files.
    pub fn handle(&self) -> &Handle<dyn AddressSpace> {
        &self.handle
    }

    /// A copy of this one, for a child, in the empty space `handle`.
    ///
    /// # Errors
    /// `ENOMEM`. `EINTR`: `is_ending` says that nobody waits for it any more.
    pub fn fork(
        &self,
        handle: Handle<dyn AddressSpace>,
        is_ending: impl Fn() -> bool,
    ) -> Result<Self, Error> {
        let layout = self.layout.lock();
        let mut next = Some(0);
        while let Some(from) = next {
            // As much may be mapped as takes seconds to go through.
            if is_ending() {
                return Err(EINTR);
            }
            let child = handle.duplicate().map_err(|_| ENOMEM)?;
            next = self.handle.fork(child, from).map_err(|_| ENOMEM)?;
        }
        let maps = self.maps.lock().copy()?;
        Ok(Space {
            handle,
            maps: Mutex::new(maps),
            number: shared::new_number(),
            layout: Mutex::new(*layout),
            system: self.system.clone(),
            is_doomed: AtomicBool::new(false),
        })
    }

    /// Gives back the pages of a range that are the program's own; what is mapped stays.
    ///
    /// # Errors
    /// `EINVAL`: addresses that no program has.
    pub fn discard(&self, at: u64, bytes: u64) -> Result<(), Error> {
        space::discard(&self.handle, at, bytes)
    }

    /// What a word holds, which need not be one that the program may write to. `None`: it may not
    /// read there now.
    pub fn load(&self, at: u64) -> Option<u32> {
        user::load(&self.handle, at)
    }

    /// Whether it is this one.
    pub fn is(&self, other: &Space) -> bool {
        self.number == other.number
    }

    /// Pages of memory that it takes, with those that it shares.
    pub fn pages(&self) -> u64 {
        let own = self.handle.usage().map_or(0, |usage| usage.own);
        let maps = self.maps.lock();
        let shared = maps.iter().filter_map(|area| area.file.as_ref());
        let shared = shared.map(Source::pages);
        shared.fold(own, u64::saturating_add)
    }

    /// Gives it no more pages.
    pub fn doom(&self) {
        self.is_doomed.store(true, Ordering::SeqCst);
    }

    /// Whether that was said.
    pub fn is_doomed(&self) -> bool {
        self.is_doomed.load(Ordering::SeqCst)
    }

    /// Takes all pages that are its own.
    pub fn empty(&self) {
        // There are no other addresses, so that it cannot fail.
        let _ = self.discard(PAGE, USER_END - PAGE);
    }

    /// What the word at an address is known by. One that is said to be private is this memory's
    /// own, whatever is mapped there.
    pub fn key(&self, at: u64, is_private: bool) -> Key {
        if is_private {
            let place = Place::Private(self.number);
            return Key { place, at };
        }
        let shared = self.maps.lock().find(at).and_then(|area| {
            let place = area.file.as_ref()?.place()?;
            Some((place, area.page_at(at)))
        });
        match shared {
            Some((place, page)) => Key {
                place,
                at: page * PAGE + at % PAGE,
            },
            None => Key {
                place: Place::Memory(self.number),
                at,
            },
        }
    }

    /// The file that is mapped at an address, and which page of it is there.
    fn file_at(&self, at: u64) -> Option<(Mapped, u64)> {
        let maps = self.maps.lock();
        let area = maps.find(at)?;
        let file = area.file.as_ref()?.file()?;
        Some((file.clone(), area.page_at(at)))
    }

    /// Whether there is a mapped page at an address that has no content.
    fn is_missing(&self, at: u64) -> bool {
        let why = self.handle.touch(at, false);
        matches!(
            why,
            Err(SpaceError::Object(
                MemoryError::Absent | MemoryError::Loading
            ))
        )
    }

    /// Maps pages of a file, or of what is shared, from its page `page` on; behind its end there is
    /// SIGBUS.
    ///
    /// # Errors
    /// Linux's.
    pub fn map_source(
        &self,
        range: Range<u64>,
        (source, page): (&Source, u64),
        bits: u64,
    ) -> Result<(), Error> {
        if let Some(file) = source.file() {
            // The first pages are soon asked for. Where there are none there is nothing to bring.
            file.bring_around(page)?;
        }
        let view = source.view()?;
        let count = (range.end - range.start) / PAGE;
        let (at, protection) = (range.start, protection(bits));
        let area = Area {
            start: range.start,
            end: range.end,
            bits,
            page,
            file: Some(source.clone()),
        };
        self.add(area, || match source.is_shared() {
            true => self.handle.map(at, view, page, count, protection),
            false => self.handle.map_private(at, view, page, count, protection),
        })
    }

    /// Has `map` map an area, and notes it.
    fn add(
        &self,
        area: Area<Source>,
        map: impl FnOnce() -> Result<(), SpaceError>,
    ) -> Result<(), Error> {
        self.maps.lock().reserve()?;
        map().map_err(error)?;
        self.maps.lock().put(area);
        Ok(())
    }

    /// Where something is put for which the program says no place, or `hint` if that is free.
    ///
    /// # Errors
    /// `ENOMEM`: no hole is large enough.
    pub fn place(&self, hint: u64, bytes: u64) -> Result<u64, Error> {
        layout::place(&self.maps.lock(), hint, bytes)
    }

    /// What is mapped at an address.
    pub fn area(&self, at: u64) -> Option<Area<Source>> {
        self.maps.lock().find(at).cloned()
    }

    /// Up to where a range is mapped from its start on.
    pub fn reach(&self, range: Range<u64>) -> u64 {
        self.maps.lock().reach(range)
    }

    /// Whether nothing of a range is mapped.
    pub fn is_free(&self, range: Range<u64>) -> bool {
        self.maps.lock().is_free(range)
    }

    /// Has what programs have written to files in a range outlive a power cut.
    ///
    /// # Errors
    /// `EINTR`: `is_ending` says that nobody waits for it any more.
    pub fn commit(&self, at: u64, bytes: u64, is_ending: impl Fn() -> bool) -> Result<(), Error> {
        self.each_part(at, bytes, is_ending, |file, part| match file.is_changed {
            true => {
                let from = part.page * PAGE;
                file.file.commit_data(from, from + (part.end - part.start))
            }
            false => Ok(()),
        })
    }

    /// Asks for the pages of files in a range.
    ///
    /// # Errors
    /// Likewise.
    pub fn request(&self, at: u64, bytes: u64, is_ending: impl Fn() -> bool) -> Result<(), Error> {
        self.each_part(at, bytes, is_ending, |file, part| {
            file.file.request(part.page, (part.end - part.start) / PAGE)
        })
    }

    /// Does something with each part of a range in which a file is mapped.
    fn each_part(
        &self,
        mut at: u64,
        bytes: u64,
        is_ending: impl Fn() -> bool,
        work: impl Fn(&Mapped, &Area<Source>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let end = at.saturating_add(bytes);
        let next = |at| self.maps.lock().next(at, end);
        while let Some(part) = next(at) {
            if is_ending() {
                return Err(EINTR);
            }
            if let Some(file) = part.file.as_ref().and_then(Source::file) {
                work(file, &part)?;
            }
            at = part.end;
        }
        Ok(())
    }
}

/// The pages of a range.
fn whole(at: u64, bytes: u64) -> Range<u64> {
    at..at.saturating_add(bytes.div_ceil(PAGE).saturating_mul(PAGE))
}

impl Memory for Space {
    #[inline]
    fn peek(&self, at: u64, bytes: &mut [u8]) -> usize {
        user::read(&self.handle, at, bytes)
    }

    #[inline]
    fn poke(&self, at: u64, bytes: &[u8]) -> usize {
        user::write(&self.handle, at, bytes)
    }

    #[inline]
    fn compare_exchange(&self, at: u64, old: u32, new: u32) -> Option<u32> {
        user::compare_exchange(&self.handle, at, old, new)
    }

    /// With the content of a file if it is one's. `EIO` is SIGBUS's case.
    fn touch(&self, at: u64, write: bool) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            if self.is_doomed() {
                break;
            }
            match self.bring_settled(at, write) {
                Err(ENOMEM) if self.is_relieved(at, write) => {}
                done => return done,
            }
        }
        Err(ENOMEM)
    }

    fn map_zero(&self, at: u64, bytes: u64, bits: u64) -> Result<(), Error> {
        let end = at.checked_add(bytes).ok_or(EINVAL)?;
        let area = Area {
            start: at,
            end: end.next_multiple_of(PAGE),
            bits,
            page: 0,
            file: None,
        };
        self.add(area, || {
            let pages = bytes.div_ceil(PAGE);
            self.handle.map_zero(at, pages, protection(bits))
        })
    }

    fn unmap(&self, at: u64, bytes: u64) -> Result<(), Error> {
        self.maps.lock().reserve()?;
        space::unmap(&self.handle, at, bytes)?;
        self.maps.lock().take(whole(at, bytes));
        Ok(())
    }

    fn protect(&self, at: u64, bytes: u64, bits: u64) -> Result<(), Error> {
        self.maps.lock().reserve()?;
        space::protect(&self.handle, at, bytes, bits)?;
        self.maps.lock().protect(whole(at, bytes), bits);
        Ok(())
    }
}

impl Space {
    /// Has others give memory back for a page; whether one may try again.
    fn is_relieved(&self, at: u64, write: bool) -> bool {
        let Some(system) = self.system.upgrade() else {
            return false;
        };
        // A page of a file that will be dirty has to be prepared before.
        let is_prepared = self.file_at(at).is_some_and(|(file, _)| file.is_changed);
        let no_memory = Err(SpaceError::Rpc(RpcError::NoMemory));
        system.relieve(self, || {
            self.handle.touch(at, write && !is_prepared) != no_memory
        })
    }

    /// Fills a page. Whoever calls it has the lock of `layout`.
    ///
    /// # Errors
    /// `ENOMEM`. The page is not the program's own.
    pub fn fill_page(&self, at: u64, content: &[u8]) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            if self.poke(at, content) == content.len() {
                return Ok(());
            }
            match self.bring(at, true) {
                Err(ENOMEM) if self.is_relieved(at, true) => {}
                done => done?,
            }
        }
        Err(ENOMEM)
    }

    /// Makes a page ready, as what is mapped is when nobody changes it.
    fn bring_settled(&self, at: u64, write: bool) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            match self.bring(at, write) {
                Err(EFAULT) => {}
                done => return done,
            }
            if self.is_settled(at, write)? {
                return Ok(());
            }
        }
        Err(EFAULT)
    }

    /// Looks, while nobody changes what is mapped, for a page that was not there: something may
    /// have been about to take the place of another mapping. Whether it is ready; if not, one has
    /// to try again.
    ///
    /// # Errors
    /// `EFAULT`: nothing is mapped there, or not for this.
    fn is_settled(&self, at: u64, write: bool) -> Result<bool, Error> {
        let _layout = self.layout.lock();
        // A page of a file that will be dirty has to be prepared, which is not done with the lock.
        let is_prepared = write && self.file_at(at).is_some_and(|(file, _)| file.is_changed);
        match self.handle.touch(at, write && !is_prepared) {
            Ok(()) => Ok(!is_prepared),
            Err(SpaceError::NotMapped | SpaceError::BadAddress) => Err(EFAULT),
            Err(_) => Ok(false),
        }
    }

    /// Makes a page ready that is mapped at this moment.
    fn bring(&self, at: u64, write: bool) -> Result<(), Error> {
        let mut is_awaited = false;
        for _ in 0..ATTEMPTS {
            // First: from then on the page may be dirty.
            if let Some((file, page)) = write.then(|| self.file_at(at)).flatten() {
                // Who prepares it would wait for it.
                if file.is_changed && !is_awaited && self.is_missing(at) {
                    is_awaited = file.await_around(page);
                }
                file.prepare(page)?;
            }
            let why = match self.handle.touch(at, write) {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            let Some((file, page)) = self.file_at(at) else {
                // Behind the end of what is shared there is nothing.
                return Err(match why {
                    SpaceError::Object(MemoryError::Beyond) => EIO,
                    why => error(why),
                });
            };
            let is_there = match why {
                SpaceError::Object(MemoryError::Absent | MemoryError::Loading) => {
                    // Where that was in vain it is asked why.
                    match core::mem::replace(&mut is_awaited, true) {
                        false if file.await_around(page) => Ok(true),
                        _ => file.bring_around(page),
                    }
                }
                // The object has as many pages as the file had when somebody asked last.
                SpaceError::Object(MemoryError::Beyond) => file.bring_around(page),
                SpaceError::Object(_) => Ok(false),
                why => return Err(error(why)),
            };
            match is_there {
                Ok(true) => {}
                Err(ENOMEM) => return Err(ENOMEM),
                _ => return Err(EIO),
            }
        }
        Err(EIO)
    }
}
