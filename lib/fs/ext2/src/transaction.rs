//! The one way to change metadata.
//!
//! A [`Transaction`] changes metadata blocks where they lie in the cache, which notes what they
//! were before. Until [`commit`](Transaction::commit) it has the file system to itself, so nothing
//! else sees them; a transaction that is dropped takes all back and leaves no trace. So an
//! operation that fails half-way, for want of space or because a read failed, has done nothing.
//! Life of one: `begin`, any number of `read`/`modify`/`fresh`/`freed`, `commit` or drop.
//!
//! The journal is behind this interface: `commit` has the full set of blocks that change together
//! and the set of blocks that were freed (to be revoked). It does nothing if the journal has no
//! room for the set; room is made before `begin`, where the store makes room in the cache.

use alloc::vec::Vec;
use core::ops::Range;

use crate::bytes::{put_u32, u32_at};
use crate::cache::Kind;
use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::inode::{Difference, FileKind, Inode, RECORD, difference, record_of};
use crate::layout::{Block, Layout};
use crate::pending::Frees;
use crate::replaced::Replaced;
use crate::store::Store;
use crate::time::Time;

/// A set of metadata changes that happen together. See the module's text.
pub(crate) struct Transaction<'a, D: BlockDevice> {
    pub(crate) store: &'a mut Store<D>,
    /// The time of the change.
    pub(crate) now: Time,
    /// Bits that this transaction freed.
    pub(crate) freed: Frees,
    /// Inodes whose names this transaction gave to others.
    pub(crate) replaced: Replaced,
    forgotten: Vec<(u32, u32)>,
    /// The directory that was asked for last, as it is.
    pub(crate) last: Option<Inode>,
}

impl<D: BlockDevice> Drop for Transaction<'_, D> {
    fn drop(&mut self) {
        if self.store.cache.is_changing() {
            self.store.cache.take_back();
            self.store.notes.forget_places();
        }
    }
}

impl<'a, D: BlockDevice> Transaction<'a, D> {
    /// A transaction without changes.
    pub(crate) fn begin(store: &'a mut Store<D>, now: Time) -> Self {
        debug_assert!(!store.cache.is_changing(), "there is one at a time");
        Transaction {
            store,
            now,
            freed: Frees::default(),
            replaced: Replaced::default(),
            forgotten: Vec::new(),
            last: None,
        }
    }

    /// The shape of the file system.
    pub(crate) fn layout(&self) -> Layout {
        self.store.layout
    }

    /// The content of a metadata block as this transaction sees it.
    pub(crate) fn read(&mut self, block: Block) -> Result<&[u8]> {
        self.store.block(block)
    }

    /// As [`read`](Self::read), if it was read just before.
    pub(crate) fn seen(&self, block: u32) -> Option<&[u8]> {
        self.store.cache.peek(block)
    }

    /// Whether nothing was changed yet.
    pub(crate) fn is_unchanged(&self) -> bool {
        !self.store.cache.is_changing() && self.forgotten.is_empty()
    }

    /// The bytes `part` of a metadata block for change.
    pub(crate) fn modify(
        &mut self,
        block: Block,
        kind: Kind,
        part: Range<usize>,
    ) -> Result<&mut [u8]> {
        self.store.load_run(block, 1)?;
        Ok(self.store.cache.change(block.number(), kind, part)?)
    }

    /// All of a metadata block for change.
    pub(crate) fn modify_all(&mut self, block: Block, kind: Kind) -> Result<&mut [u8]> {
        self.modify(block, kind, 0..self.store.layout.block_size)
    }

    /// The content of a newly allocated metadata block: zeroes.
    pub(crate) fn fresh(&mut self, block: Block, kind: Kind) -> Result<&mut [u8]> {
        let size = self.store.layout.block_size;
        Ok(self.store.cache.change_all(block.number(), kind, size)?)
    }

    /// Notes that `count` blocks from `start` on were freed: their content does not matter any
    /// more.
    pub(crate) fn forget(&mut self, start: u32, count: u32) {
        self.forgotten.push((start, count));
    }

    /// Makes all changes visible. Returns false, and makes none, if the journal has no room for
    /// them.
    pub(crate) fn commit(mut self) -> bool {
        let (freed, forgotten) = (
            core::mem::take(&mut self.freed),
            core::mem::take(&mut self.forgotten),
        );
        let store = &mut *self.store;
        store.stay();
        let copies = store.dirty_metadata();
        if let Some(journal) = &mut store.journal {
            if !journal.fits(copies, &forgotten, store.layout.block_size) {
                return false;
            }
            store
                .cache
                .changing()
                .for_each(|block| journal.unrevoke(block));
            // After that: what was changed first and then freed is not there any more.
            for (start, count) in &forgotten {
                journal.revoke(*start, *count);
            }
        }
        store.cache.keep();
        for (start, count) in forgotten {
            (start..start + count).for_each(|block| store.cache.forget(block));
        }
        store.pending.take(freed, store.layout.block_size);
        store.replaced.absorb(core::mem::take(&mut self.replaced));
        true
    }

    /// A 32-bit field of the superblock.
    pub(crate) fn super_field(&mut self, field: usize) -> Result<u32> {
        let layout = self.layout();
        let block = self.read(layout.superblock())?;
        Ok(u32_at(block, layout.superblock_at() + field))
    }

    /// Sets a 32-bit field of the superblock.
    pub(crate) fn set_super_field(&mut self, field: usize, value: u32) -> Result<()> {
        let layout = self.layout();
        let at = layout.superblock_at() + field;
        put_u32(
            self.modify(layout.superblock(), Kind::Counters, at..at + 4)?,
            0,
            value,
        );
        Ok(())
    }

    /// Adds `delta` to a counter of the superblock that is at most `limit`.
    pub(crate) fn add_to_super(&mut self, field: usize, delta: i64, limit: u32) -> Result<()> {
        let sum = i64::from(self.super_field(field)?) + delta;
        match u32::try_from(sum) {
            Ok(value) if value <= limit => self.set_super_field(field, value),
            _ => Err(Error::Corrupt("free count in the superblock")),
        }
    }

    /// The inode `ino` if its record was ever used.
    ///
    /// # Errors
    /// `Corrupt` for a number that does not exist or a record that makes no sense.
    pub(crate) fn inode_record(&mut self, ino: u32) -> Result<Option<Inode>> {
        // Not the whole layout, which is a copy.
        let (size, has_long_files) = (self.layout().inode_size, self.layout().dynamic);
        let (block, at) = self.inode_location(ino)?;
        let raw = &self.read(block)?[at..at + size];
        Inode::decode(ino, raw, has_long_files)
    }

    /// The inode `ino`.
    ///
    /// # Errors
    /// As [`inode_record`](Self::inode_record), and `NotFound` if it has no links and is not open.
    pub(crate) fn inode(&mut self, ino: u32) -> Result<Inode> {
        match self.inode_record(ino)? {
            Some(inode) if inode.links > 0 || self.store.open.contains_key(&ino) => Ok(inode),
            _ => Err(Error::NotFound),
        }
    }

    /// Stores a changed inode. One that is there as it is, because a file was written twice within
    /// one beat of the clock, changes nothing: its block need be neither copied nor written.
    pub(crate) fn put_inode(&mut self, inode: &Inode) -> Result<()> {
        self.last.take_if(|last| last.ino == inode.ino);
        let (block, at) = self.inode_location(inode.ino)?;
        let size = self.layout().inode_size.min(RECORD);
        let present = &self.read(block)?[at..at + size];
        let record = &mut record_of(present)[..size];
        inode.encode(record);
        let difference = difference(record, present);
        if difference == Difference::More {
            self.store.unsettled.note(inode.ino);
        }
        if difference != Difference::None {
            self.modify(block, Kind::Inode, at..at + size)?
                .copy_from_slice(record);
        }
        if inode.kind == FileKind::Directory && inode.links > 0 {
            self.last = Some(inode.clone());
        }
        Ok(())
    }

    /// Loads the inode `ino`, lets `change` change it, and stores it.
    pub(crate) fn edit_inode(
        &mut self,
        ino: u32,
        change: impl FnOnce(&mut Inode, Time),
    ) -> Result<()> {
        let mut inode = self.inode(ino)?;
        change(&mut inode, self.now);
        self.put_inode(&inode)
    }
}
