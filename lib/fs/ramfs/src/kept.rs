//! What is left for the next instance: who keeps it, and the journal's snapshots.

use crate::fs::{Body, RamFs};
use crate::journal::{Journal, Need};
use crate::record::{Record, VERSION};
use crate::store::{Fault, Store};
use crate::{Error, Result};

/// The journal's key. Content has that of the inode's place, and one more.
pub(crate) const JOURNAL: u64 = 0;

/// How often everything is put again, if whoever keeps it dies again.
const ATTEMPTS: u32 = 3;

impl<S: Store> RamFs<S> {
    /// Where things are kept.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Has everything kept anew, if whoever keeps it has forgotten it; whether it is kept then. To
    /// be called now and then: a change notices that as well, but there may be none for long.
    pub fn see_to_it(&mut self) -> bool {
        let is_kept = matches!(self.store.next(JOURNAL), Ok(Some(JOURNAL)));
        if self.is_unkept || !is_kept {
            self.keep_all();
        }
        !self.is_unkept
    }

    /// The key of an inode's content.
    pub(crate) fn key(&self, inode: u64) -> u64 {
        self.place_of(inode)
            .map_or(u64::MAX, |place| place as u64 + 1)
    }

    /// Has the object of a file kept.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) fn keep(&mut self, inode: u64) -> Result<()> {
        let key = self.key(inode);
        let object = match &self.get(inode)?.body {
            Body::File(content) => content.object(),
            _ => None,
        };
        let object = object.ok_or(Error::Invalid)?;
        match self.store.put(key, object) {
            Ok(()) => Ok(()),
            Err(Fault::NoRoom) => Err(Error::NoSpace),
            Err(Fault::Forgotten) => {
                self.keep_all();
                Ok(())
            }
            Err(Fault::Broken) => {
                self.is_unkept = true;
                Ok(())
            }
        }
    }

    /// Has the object of an inode that is gone kept no more.
    pub(crate) fn forget(&mut self, inode: u64) {
        match self.store.remove(self.key(inode)) {
            Ok(()) => {}
            Err(Fault::Forgotten) => self.keep_all(),
            Err(_) => self.is_unkept = true,
        }
    }

    /// Has everything kept, the journal last: where that is, the rest is, too.
    pub(crate) fn keep_all(&mut self) {
        for _ in 0..ATTEMPTS {
            let put = self.put_all();
            self.is_unkept = put.is_err();
            if put != Err(Fault::Forgotten) {
                return;
            }
        }
    }

    fn put_all(&self) -> core::result::Result<(), Fault> {
        for (place, of) in (1..).zip(&self.inodes) {
            if let Some(Body::File(content)) = of.as_ref().map(|of| &of.body)
                && let Some(object) = content.object()
            {
                self.store.put(place, object)?;
            }
        }
        self.store.put(JOURNAL, self.journal.object())
    }

    /// Goes on with a journal that begins with a snapshot, if there is memory for one.
    pub(crate) fn begin_anew(&mut self) {
        let Ok(journal) = self.snapshot() else {
            return self.journal.put_off();
        };
        match self.store.put(JOURNAL, journal.object()) {
            Ok(()) => self.journal = journal,
            Err(Fault::Forgotten | Fault::Broken) => {
                self.journal = journal;
                self.keep_all();
            }
            Err(Fault::NoRoom) => self.journal.put_off(),
        }
    }

    /// A journal that says what there is.
    pub(crate) fn snapshot(&self) -> Result<Journal<S::Object>> {
        let mut journal = Journal::new(self.store.make()?)?;
        let base = self.base;
        journal.append(&Record::Begin {
            version: VERSION,
            base,
        })?;
        // What has no name goes with this instance.
        let named = || {
            let all = self.inodes.iter().enumerate();
            let there = all.filter_map(|(place, of)| Some((self.number(place), of.as_ref()?)));
            there.filter(|(_, of)| of.links > 0)
        };
        for (number, of) in named() {
            journal.append(&Record::Inode(Self::image(number, of)))?;
        }
        for (directory, of) in named() {
            let Body::Directory { names, .. } = &of.body else {
                continue;
            };
            for (at, entry) in names.all() {
                journal.append(&Record::Name {
                    directory,
                    at,
                    name: &entry.name,
                    inode: entry.inode,
                })?;
            }
        }
        journal.make_room(Need::Growth)?;
        Ok(journal)
    }
}
