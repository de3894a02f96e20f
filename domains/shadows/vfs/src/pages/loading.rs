//! Loading pages, with no lock of the file held while the device works.
//!
//! # Who may do what with a page
//! | the page | is read, mapped | is written to | begins to be loaded | goes |
//! | --- | --- | --- | --- | --- |
//! | absent | no | alone | yes: it is claimed | |
//! | claimed | no, its load is waited for | no, the load is waited for | no | no, as before |
//! | there, clean | yes | alone | no | alone, or evicted with the file's lock |
//! | dirty or stored | yes | alone | no | alone |
//!
//! *Alone* is who has the file's lock and said which pages he means ([`File::alone`]): none of them
//! is claimed meanwhile. *Claimed* is a page from before the kernel is told of its load until that
//! has ended, whoever waits ([`Claim`]). Who has a claim takes no lock of a file; so who has a
//! file's lock may wait for claims, and nobody waits for him in vain.
//!
//! | dies | the claims | who waits |
//! | --- | --- | --- |
//! | the driver | go on: the shadow of the disk asks again | goes on waiting |
//! | the file system | go on: the next instance is asked | goes on waiting |
//! | this domain | go with it, and the kernel ends its loads | is woken, and asks the next instance |
//!
//! A load that fails is told to nobody who waits for the page itself: he is woken, finds no page,
//! and asks by [`Pages::populate`], which tries once more and says what is wrong. So each is told
//! for himself, once.

use alloc::sync::Arc;
use core::mem::take;
use core::ops::Range;
use core::sync::atomic::Ordering;

use domain_rt::sync::Wait;
use interfaces::{FsError, MemoryError, RpcError};
use vfs::claims::{Chance, Claims};

use super::file::{File, State};
use super::{LOAD, Pages, memory_error};
use crate::shadow::Shadow;

/// All pages of a file.
pub const ALL: Range<u64> = 0..u64::MAX;

/// What came of beginning to load pages.
pub enum Begun {
    /// They are the caller's to bring.
    Claim(Claim),
    /// The first is there already.
    There,
    /// Why not, see [`Chance`].
    Not(Chance),
}

/// Pages of a file that are being loaded, and that nobody else loads, changes or takes away.
pub struct Claim {
    file: Arc<File>,
    first: u64,
    /// How many still wait for their content.
    count: u64,
}

impl Claim {
    /// How many pages.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The load has failed for them as a whole: only the first is tried again.
    fn narrow(&mut self) -> Result<(), FsError> {
        let (first, owner) = (self.first, &self.file.owner);
        owner.break_off(first, self.count).map_err(memory_error)?;
        self.count = 0;
        owner.load(first, 1).map_err(memory_error)?;
        self.count = 1;
        self.file.change_claims(|claims| claims.keep(first, 1));
        Ok(())
    }

    /// They have their content; how many.
    fn end(mut self) -> Result<u64, FsError> {
        let (file, first, count) = (&self.file, self.first, self.count);
        file.end_loads(count, || file.owner.loaded(first, count))?;
        Ok(take(&mut self.count))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.count > 0 {
            // If it fails, for want of stack say, who claims the page next breaks it off.
            let _ = self.file.owner.break_off(self.first, self.count);
        }
        self.file.change_claims(|claims| claims.end(self.first));
    }
}

/// Pages that whoever has the file's lock has alone. To be dropped before the lock is given back.
pub struct Alone<'a>(&'a File);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.change_claims(Claims::open);
    }
}

impl File {
    /// Changes who has what, and wakes who waits for that.
    fn change_claims(&self, change: impl FnOnce(&mut Claims)) {
        let mut claims = self.claims.lock();
        change(&mut claims.of);
        let is_awaited = claims.waiting > 0;
        drop(claims);
        if is_awaited {
            self.freed.notify_all();
        }
    }

    /// Waits as long as `is_so`.
    ///
    /// # Errors
    /// The caller is ended.
    fn wait_while(&self, is_so: impl Fn(&Claims) -> bool) -> Result<(), FsError> {
        let mut claims = self.claims.lock();
        while is_so(&claims.of) {
            let wait;
            claims.waiting += 1;
            (claims, wait) = self.freed.wait(claims);
            claims.waiting -= 1;
            if wait == Wait::Interrupted {
                return Err(RpcError::Interrupted.into());
            }
        }
        Ok(())
    }

    /// Waits until none of these pages is being loaded, which says nothing of what comes then.
    ///
    /// # Errors
    /// The caller is ended.
    pub fn await_loads(&self, pages: &Range<u64>) -> Result<(), FsError> {
        self.wait_while(|claims| claims.is_claimed(pages))
    }

    /// Waits until something can be done about a page.
    fn await_chance(&self, page: u64) -> Result<(), FsError> {
        self.wait_while(|claims| {
            let chance = claims.chance(page, 1);
            matches!(chance, Chance::Claimed | Chance::Closed | Chance::Full)
        })
    }

    /// Has these pages alone, with the file's lock, when their loads have ended.
    ///
    /// # Errors
    /// The caller is ended.
    pub fn alone(&self, _state: &State, pages: Range<u64>) -> Result<Alone<'_>, FsError> {
        self.claims.lock().of.close(pages.clone());
        let alone = Alone(self);
        self.await_loads(&pages)?;
        Ok(alone)
    }

    /// As [`alone`](Self::alone), if none of them is being loaded.
    pub fn try_alone(&self, _state: &State, pages: &Range<u64>) -> Option<Alone<'_>> {
        let mut claims = self.claims.lock();
        if claims.of.is_claimed(pages) {
            return None;
        }
        claims.of.close(pages.clone());
        Some(Alone(self))
    }

    /// Of `count` pages from `first` on those that are not behind the end, if that is known.
    pub fn up_to_end(&self, first: u64, count: u64) -> u64 {
        let pages = self.claims.lock().of.pages();
        pages.map_or(count, |pages| pages.saturating_sub(first).min(count))
    }

    /// Whether it is known how many pages the file has.
    pub fn is_current(&self) -> bool {
        self.claims.lock().of.is_known()
    }

    /// Begins to load pages from `first` on, `count` at most, and waits for nothing.
    ///
    /// # Errors
    /// No memory.
    pub fn begin(self: &Arc<Self>, first: u64, count: u64) -> Result<Begun, FsError> {
        let free = {
            let mut claims = self.claims.lock();
            let free = match claims.of.chance(first, count.min(LOAD)) {
                Chance::Free(free) if claims.of.has_room() => free,
                Chance::Free(_) => return Err(RpcError::NoMemory.into()),
                chance => return Ok(Begun::Not(chance)),
            };
            claims.of.claim(first..first + free);
            free
        };
        let mut claim = Claim {
            file: self.clone(),
            first,
            count: 0,
        };
        // Without the lock: there may be no memory for some time.
        let mut begun = self.owner.load(first, free);
        if let Err(MemoryError::Present) = begun
            && self.owner.tags(first).is_ok_and(|tags| tags.loading)
        {
            // Its load is nobody's, since it was claimed just now: who had it could not even break
            // it off, for want of stack say.
            self.owner.break_off(first, 1).map_err(memory_error)?;
            begun = self.owner.load(first, free);
        }
        match begun {
            Ok(count) => {
                claim.count = count;
                if count < free {
                    self.change_claims(|claims| claims.keep(first, count));
                }
                Ok(Begun::Claim(claim))
            }
            Err(MemoryError::Present) => Ok(Begun::There),
            Err(error) => Err(memory_error(error)),
        }
    }
}

impl Pages {
    /// Sees to it that pages are there; how many from `first` on are. Waits for the device.
    ///
    /// # Errors
    /// The file system's; no memory; the caller is ended.
    pub fn populate(
        &self,
        shadow: &Shadow,
        inode: u64,
        first: u64,
        count: u64,
    ) -> Result<u64, FsError> {
        let file = self.file(shadow, inode)?;
        self.populate_file(shadow, &file, first, count)
    }

    pub(super) fn populate_file(
        &self,
        shadow: &Shadow,
        file: &Arc<File>,
        first: u64,
        count: u64,
    ) -> Result<u64, FsError> {
        let count = count.min(LOAD);
        self.stay_within(count)?;
        let end = first.saturating_add(count);
        let mut next = first;
        while next < end {
            let there = match self.begin(file, next, end - next) {
                Ok(Begun::Claim(claim)) => self.bring(shadow, claim),
                Ok(Begun::There) => Ok(1),
                Ok(Begun::Not(Chance::Behind)) => break,
                // Others see to it. Who wants more comes again.
                Ok(Begun::Not(_)) if next > first => break,
                Ok(Begun::Not(Chance::Unknown)) => file.lock(shadow).map(|_| 0),
                Ok(Begun::Not(_)) => file.await_chance(next).map(|()| 0),
                Err(error) => Err(error),
            };
            match there {
                Ok(there) => next += there,
                Err(error) if next == first => return Err(error),
                Err(_) => break,
            }
        }
        Ok(next.saturating_sub(first))
    }

    /// As [`File::begin`], counted.
    ///
    /// # Errors
    /// As there.
    pub(super) fn begin(&self, file: &Arc<File>, first: u64, count: u64) -> Result<Begun, FsError> {
        let begun = file.begin(first, count)?;
        if let Begun::Claim(claim) = &begun {
            self.there.fetch_add(claim.count, Ordering::Relaxed);
        }
        Ok(begun)
    }

    /// Brings claimed pages; how many. If the device fails for some, the first is tried alone.
    ///
    /// # Errors
    /// The file system's.
    fn bring(&self, shadow: &Shadow, mut claim: Claim) -> Result<u64, FsError> {
        self.fetch_claimed(shadow, &mut claim)?;
        claim.end()
    }

    /// As [`bring`](Self::bring), unless the file is forgotten meanwhile: then its number may be
    /// another one's, and nobody is to see what that one has.
    ///
    /// # Errors
    /// The file system's; `NotFound`.
    pub(super) fn bring_known(&self, shadow: &Shadow, mut claim: Claim) -> Result<(), FsError> {
        self.fetch_claimed(shadow, &mut claim)?;
        match self.known(claim.file.inode) {
            Some(known) if Arc::ptr_eq(&known, &claim.file) => claim.end().map(|_| ()),
            _ => Err(FsError::NotFound),
        }
    }

    fn fetch_claimed(&self, shadow: &Shadow, claim: &mut Claim) -> Result<(), FsError> {
        let fetch = |claim: &Claim| self.fetch(shadow, &claim.file, claim.first, claim.count);
        match fetch(claim) {
            Err(FsError::Device) if claim.count > 1 => {
                claim.narrow()?;
                fetch(claim)
            }
            fetched => fetched,
        }
    }

    /// Has the file system put the content of pages in place whose loads have begun.
    ///
    /// # Errors
    /// The file system's; it says that the file is shorter than it said.
    pub(super) fn fetch(
        &self,
        shadow: &Shadow,
        file: &File,
        first: u64,
        count: u64,
    ) -> Result<(), FsError> {
        // Then the file system need not know yet how long it is: behind that there is a hole.
        let was_live = file.record.lock().is_live;
        let loaded = shadow.ask(file.inode, |instance, real| {
            let view = file.view.duplicate()?;
            instance.fs().load(real, first, count, view)
        })?;
        match loaded == count || was_live {
            true => Ok(()),
            false => Err(FsError::Device),
        }
    }
}
