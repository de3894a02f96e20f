//! How an instance begins: with nothing, or with what another one has left.

use alloc::vec::Vec;

use crate::content::Content;
use crate::fs::{Body, Inode, Kind, Limits, OBJECT_COST, RamFs};
use crate::journal::{Journal, Trouble};
use crate::kept::JOURNAL;
use crate::names::Names;
use crate::record::{Image, Record, VERSION};
use crate::store::{Fault, PAGE, Store};
use crate::{Error, Result};

/// Most places of inodes that a journal may name.
const MOST: usize = 1 << 28;

/// What another instance has left.
pub enum Opened<S: Store> {
    /// Its files, and what they are kept in.
    Files(RamFs<S>),
    /// Nothing.
    Nothing(S),
    /// A journal with something else at this byte: what it says is not to be trusted.
    Damaged(S, u64),
}

impl<S: Store> RamFs<S> {
    /// An empty file system; what `store` had kept is forgotten. `base`: where numbers of inodes
    /// start, other than the root's, which is 1.
    ///
    /// # Errors
    /// `NoSpace`, `Broken`.
    pub fn new(store: S, limits: Limits, base: u64, now: u64) -> Result<Self> {
        let mut files = Self::blank(store, limits)?;
        files.base = base.max(2);
        let root = Inode {
            links: 2,
            ..Inode::new(directory(), 0o1777, now)
        };
        let place = files.prepare_inode_at(0)?;
        files.add(place, root, 0);
        // The journal is what leads to all else, so it goes first, and the new one comes last.
        // What stays is not known to any journal, and so goes with the next instance.
        let _ = files.remove_unknown(|_| false);
        files.journal = files.snapshot()?;
        files.keep_all();
        Ok(files)
    }

    /// What another instance has left in `store`.
    ///
    /// # Errors
    /// `NoSpace`, `Broken`: it is still there.
    pub fn open(store: S, limits: Limits) -> Result<Opened<S>> {
        let object = match store.get(JOURNAL) {
            Ok(Some(object)) => object,
            Ok(None) | Err(Fault::Forgotten) => return Ok(Opened::Nothing(store)),
            Err(fault) => return Err(fault.into()),
        };
        let mut files = Self::blank(store, limits)?;
        let mut is_begun = false;
        let opened = Journal::open(object, |record| {
            let is_first = !core::mem::replace(&mut is_begun, true);
            match matches!(record, Record::Begin { .. }) == is_first {
                true => files.replay(record),
                false => Err(Error::Invalid),
            }
        });
        let at = match opened {
            Ok(journal) => {
                files.journal = journal;
                match files.settle() {
                    Ok(()) => return Ok(Opened::Files(files)),
                    Err(error @ (Error::NoSpace | Error::Broken)) => return Err(error),
                    Err(_) => 0,
                }
            }
            Err(Trouble::Failed(error)) => return Err(error),
            Err(Trouble::Damaged(at)) => at,
        };
        Ok(Opened::Damaged(files.store, at))
    }

    /// Without so much as a root, and with a journal that nobody keeps.
    fn blank(store: S, limits: Limits) -> Result<Self> {
        let journal = Journal::new(store.make()?)?;
        Ok(RamFs {
            store,
            journal,
            limits,
            used: 0,
            noted: 0,
            base: 2,
            inodes: Vec::new(),
            free: Vec::new(),
            count: 0,
            lives: 0,
            is_short: || false,
            is_unkept: false,
        })
    }

    /// Does what a record says that was done.
    ///
    /// # Errors
    /// `NoSpace`; another one if it cannot have been done.
    fn replay(&mut self, record: &Record) -> Result<()> {
        match *record {
            Record::Begin { version, base } if version == VERSION => {
                self.base = base;
                Ok(())
            }
            Record::Begin { .. } => Err(Error::Invalid),
            Record::Inode(ref image) => self.replay_inode(image),
            Record::Name {
                directory,
                at,
                name,
                inode,
            } => self.name_again(directory, at, name, inode),
            Record::Make {
                directory,
                at,
                name,
                ref image,
            } => self.make_again(directory, at, name, image.inode, inode_of(image)?),
            Record::Link {
                directory,
                at,
                name,
                inode,
                now,
            } => self.link_again(directory, at, name, inode, now),
            Record::Unlink {
                directory,
                name,
                now,
            } => self.put_unlink(directory, name, now),
            Record::RemoveDirectory {
                directory,
                name,
                now,
            } => self.put_remove_directory(directory, name, now),
            Record::Rename {
                from,
                name,
                to,
                new_name,
                at,
                now,
            } => {
                let source = self.lookup(from, name)?;
                let entry = at
                    .map(|at| self.prepare_again(to, at, new_name, source))
                    .transpose()?;
                self.move_name([from, to], name, new_name, entry, now)
            }
            _ => match self.replay_content(record) {
                // It was held without a name, and so is gone.
                Err(Error::NotFound) => Ok(()),
                done => done,
            },
        }
    }

    fn replay_inode(&mut self, image: &Image) -> Result<()> {
        let place = self.free_place(image.inode)?;
        let inode = inode_of(image)?;
        let extra = image.target.len() as u64;
        self.add(place, inode, extra);
        if place == 0 {
            self.get_mut(image.inode)?.links = 2;
        }
        Ok(())
    }

    fn replay_content(&mut self, record: &Record) -> Result<()> {
        match *record {
            Record::Written { inode, size, now } => {
                let content = self.content(inode)?;
                content.is_noted = true;
                content.set_size(size)?;
                self.get_mut(inode)?.touch(now);
                Ok(())
            }
            Record::Resized { inode, size, now } => {
                self.content(inode)?.set_size(size)?;
                self.get_mut(inode)?.touch(now);
                Ok(())
            }
            Record::Mode { inode, mode, now } => self.put_mode(inode, mode, now),
            Record::Times { inode, times } => self.put_times(inode, times),
            _ => Err(Error::Invalid),
        }
    }

    /// The place of an inode, at which none may be yet.
    pub(crate) fn free_place(&mut self, inode: u64) -> Result<usize> {
        let place = self.place_of(inode).filter(|&place| place < MOST);
        let place = place.ok_or(Error::Invalid)?;
        if self.number(place) != inode || self.get(inode).is_ok() {
            return Err(Error::Exists);
        }
        self.prepare_inode_at(place)
    }

    /// After the journal was read: content, free places, and what nobody will ask for.
    fn settle(&mut self) -> Result<()> {
        if !matches!(self.get(1)?.body, Body::Directory { .. }) {
            return Err(Error::Invalid);
        }
        for place in 0..self.inodes.len() {
            let number = self.number(place);
            let Some(of) = self.inodes[place].as_mut() else {
                continue;
            };
            if of.links == 0 {
                return Err(Error::Invalid);
            }
            match &mut of.body {
                Body::Directory { names, .. } => names.find_free(),
                Body::File(_) => self.settle_content(number)?,
                Body::Symlink(_) => {}
            }
        }
        self.find_free();
        let known: Vec<bool> = self.known()?;
        self.remove_unknown(|key| known.get(key as usize) == Some(&true))
    }

    /// Which keys are in use.
    fn known(&self) -> Result<Vec<bool>> {
        let mut known = Vec::new();
        known
            .try_reserve_exact(self.inodes.len() + 1)
            .map_err(|_| Error::NoSpace)?;
        known.push(true);
        for of in &self.inodes {
            let body = of.as_ref().map(|of| &of.body);
            known.push(matches!(body, Some(Body::File(content)) if content.object().is_some()));
        }
        Ok(known)
    }

    /// Finds the object of a file again.
    fn settle_content(&mut self, inode: u64) -> Result<()> {
        if !self.content(inode)?.is_noted {
            return Ok(());
        }
        let object = self.store.get(self.key(inode))?;
        // The journal is kept only beside all that it names.
        let object = object.ok_or(Error::NotFound)?;
        let content = self.content(inode)?;
        content.give(object);
        content.settle()?;
        let pages = content.pages();
        self.used += pages * PAGE + OBJECT_COST;
        Ok(())
    }

    fn find_free(&mut self) {
        self.free.clear();
        for place in (0..self.inodes.len()).rev() {
            // There is room, see `prepare_inode_at`.
            if self.inodes[place].is_none() && self.free.len() < self.free.capacity() {
                self.free.push(place);
            }
        }
    }

    /// Has nothing be kept under any key that is not known.
    fn remove_unknown(&self, is_known: impl Fn(u64) -> bool) -> Result<()> {
        let mut from = 0;
        while let Some(key) = self.store.next(from)? {
            if !is_known(key) {
                self.store.remove(key)?;
            }
            from = key + 1;
        }
        Ok(())
    }
}

fn directory<O>() -> Body<O> {
    Body::Directory {
        names: Names::default(),
        parent: 1,
    }
}

/// What an image shows, without a name.
fn inode_of<O: crate::Object>(image: &Image) -> Result<Inode<O>> {
    let body = match image.kind {
        Kind::Regular => Body::File(Content::new(image.size, image.has_object)),
        Kind::Directory => directory(),
        Kind::Symlink => {
            let mut target = Vec::new();
            target
                .try_reserve_exact(image.target.len())
                .map_err(|_| Error::NoSpace)?;
            target.extend_from_slice(image.target);
            Body::Symlink(target)
        }
    };
    let [accessed, modified, changed] = image.times;
    Ok(Inode {
        accessed,
        modified,
        ..Inode::new(body, image.mode, changed)
    })
}
