//! A process's address space, and what is mapped where in it.

use crate::disk::Mapped;
use crate::errno::{EFAULT, EINTR, EIO, ENOMEM, Error};
use crate::shared::{self, Source};
use crate::system::System;
use crate::waiters::{Key, Place};
use alloc::sync::Weak;
use core::sync::atomic::{AtomicBool, Ordering};
use domain_rt::sync::{Mutex, MutexGuard};
use domain_rt::user;
use guests::space::{self, error};
use interfaces::{AddressSpace, Handle, MemoryError, RpcError, SpaceError};
use linux::layout::Layout;
use linux::memory::{Memory, PAGE};
use linux::program::USER_END;
use linux::ranges::{Part, Ranges};

/// How often one tries to have a page that goes as soon as it has come.
const ATTEMPTS: u32 = 64;

/// A space, the files in it, and where there is room.
///
/// Whoever changes what is mapped holds the lock of `layout` meanwhile. So a fork sees no change by
/// half; and whoever finds nothing at an address looks again with that lock held, so that no
/// thread meets the hole between the two steps of a mapping that takes another one's place.
pub struct Space {
    handle: Handle<dyn AddressSpace>,
    maps: Mutex<Ranges<Source>>,
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

    /// Where there is room. Nothing else changes what is mapped while this is held.
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
        let shared = maps.all().map(Source::pages);
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
        let mapped = self.maps.lock().find(at);
        let shared = mapped.and_then(|(source, page)| Some((source.place()?, page)));
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
        let (source, page) = self.maps.lock().find(at)?;
        Some((source.file()?.clone(), page))
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

    /// Notes what is mapped, from its page `page` on, in a range where nothing is.
    pub fn note(&self, at: u64, bytes: u64, page: u64, source: &Source) -> Result<(), Error> {
        self.maps.lock().note(at, bytes, page, source.clone())
    }

    /// Has what programs have written to files in a range outlive a power cut.
    ///
    /// # Errors
    /// `EINTR`: `is_ending` says that nobody waits for it any more.
    pub fn commit(&self, at: u64, bytes: u64, is_ending: impl Fn() -> bool) -> Result<(), Error> {
        self.each_part(at, bytes, is_ending, |file, part| match file.is_changed {
            true => {
                let from = part.page * PAGE;
                file.file.commit_data(from, from + part.bytes)
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
            file.file.request(part.page, part.bytes.div_ceil(PAGE))
        })
    }

    /// Does something with each part of a range in which a file is mapped.
    fn each_part(
        &self,
        mut at: u64,
        bytes: u64,
        is_ending: impl Fn() -> bool,
        work: impl Fn(&Mapped, &Part<Source>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let end = at.saturating_add(bytes);
        let next = |at| self.maps.lock().next(at, end);
        while let Some(part) = next(at) {
            if is_ending() {
                return Err(EINTR);
            }
            if let Some(file) = part.file.file() {
                work(file, &part)?;
            }
            at = part.at + part.bytes;
        }
        Ok(())
    }

    /// Forgets what is mapped in a range.
    pub fn forget(&self, at: u64, bytes: u64) -> Result<(), Error> {
        self.maps.lock().forget(at, bytes)
    }
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
        space::map_zero(&self.handle, at, bytes, bits)
    }

    fn unmap(&self, at: u64, bytes: u64) -> Result<(), Error> {
        space::unmap(&self.handle, at, bytes)?;
        self.forget(at, bytes)
    }

    fn protect(&self, at: u64, bytes: u64, bits: u64) -> Result<(), Error> {
        space::protect(&self.handle, at, bytes, bits)
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
