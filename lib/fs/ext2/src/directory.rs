//! Directories: entries looked up, added and removed over all blocks of a directory, or through its
//! index: that on disk (see `hashed`), or one in memory that large ones get which have none (see
//! `dirindex`).

use alloc::vec::Vec;

use crate::cache::Kind;
use crate::device::BlockDevice;
use crate::dirent::{self, HEADER, NAME_MAX};
use crate::dirindex::Index;
use crate::dirnotes::Names;
use crate::entering::Entering;
use crate::error::{Error, Result};
use crate::inode::{FLAG_INDEX, FileKind, Inode};
use crate::layout::Block;
use crate::transaction::Transaction;

/// Blocks of a directory that are read together.
const READ_AHEAD: u32 = 16;

/// Blocks from which on a directory gets an index.
const INDEX_FROM: u64 = 4;

/// One entry of a directory, as `readdir` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The inode it names.
    pub ino: u32,
    /// What it names; `None` where neither directory nor inode say.
    pub kind: Option<FileKind>,
    /// Its name: any bytes but zero and slash.
    pub name: Vec<u8>,
    /// The cookie from which the listing goes on behind this entry.
    pub next: u64,
}

/// An entry that was found: the inode, and where the entry stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) ino: u32,
    block: Block,
    /// The block's number in the directory.
    n: u64,
    at: usize,
}

/// Checks a name for a new or existing entry.
///
/// # Errors
/// `NameTooLong`; `Invalid` if it is empty or has a slash or a zero byte.
pub(crate) fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > NAME_MAX {
        return Err(Error::NameTooLong);
    }
    if name.is_empty() || name.iter().any(|byte| matches!(byte, 0 | b'/')) {
        return Err(Error::Invalid("file name"));
    }
    Ok(())
}

/// Whether `name` is one of the two names that every directory has.
pub(crate) fn is_dots(name: &[u8]) -> bool {
    name == b"." || name == b".."
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// The inode of a directory.
    ///
    /// # Errors
    /// `NotDirectory`; as [`inode`](Self::inode).
    pub(crate) fn directory(&mut self, ino: u32) -> Result<Inode> {
        if let Some(known) = self.last.as_ref().filter(|known| known.ino == ino) {
            return Ok(known.clone());
        }
        let inode = self.inode(ino)?;
        match inode.kind {
            FileKind::Directory => {
                self.last = Some(inode.clone());
                Ok(inode)
            }
            _ => Err(Error::NotDirectory),
        }
    }

    /// How many blocks a directory has. No more than the file system, so a loop over them is
    /// bounded.
    pub(crate) fn directory_blocks(&self, inode: &Inode) -> Result<u64> {
        let layout = self.layout();
        let blocks = inode.size / layout.block_size as u64;
        let whole = inode.size.is_multiple_of(layout.block_size as u64);
        match whole && blocks > 0 && blocks <= layout.blocks.into() {
            true => Ok(blocks),
            false => Err(Error::Corrupt("size of a directory")),
        }
    }

    /// Block `n` of a directory, read ahead.
    pub(crate) fn directory_block(&mut self, inode: &Inode, n: u64) -> Result<Block> {
        self.directory_block_ahead(inode, n, READ_AHEAD)
    }

    /// Block `n` of a directory, with what follows, `ahead` blocks together.
    fn directory_block_ahead(&mut self, inode: &Inode, n: u64, ahead: u32) -> Result<Block> {
        let run = self.find_run(inode, n, ahead)?;
        let block = run.start.ok_or(Error::Corrupt("hole in a directory"))?;
        self.store.load_run(block, run.count as usize)?;
        Ok(block)
    }

    /// The entry `name` of a directory.
    pub(crate) fn find_entry(&mut self, inode: &Inode, name: &[u8]) -> Result<Option<Found>> {
        if let Some(tree) = self.tree(inode)? {
            return self.find_hashed(inode, &tree, name);
        }
        let blocks = self.directory_blocks(inode)?;
        self.index_directory(inode, blocks)?;
        if let Some(index) = self.store.indexes.get(inode.ino) {
            let candidates = index.blocks(name).into_iter().map(u64::from);
            return self.find_in(inode, candidates.filter(|n| *n < blocks), name, READ_AHEAD);
        }
        self.find_in(inode, 0..blocks, name, READ_AHEAD)
    }

    /// The entry `name` in some blocks of a directory, read `ahead` together.
    pub(crate) fn find_in(
        &mut self,
        inode: &Inode,
        blocks: impl Iterator<Item = u64>,
        name: &[u8],
        ahead: u32,
    ) -> Result<Option<Found>> {
        let layout = self.layout();
        for n in blocks {
            let block = self.directory_block_ahead(inode, n, ahead)?;
            if self.store.notes.lacks(block.number(), name) {
                debug_assert!(!matches!(
                    dirent::find(self.read(block)?, name),
                    Ok(Some(_))
                ));
                continue;
            }
            let near = self.store.notes.near(block.number());
            let entry = dirent::find_near(self.read(block)?, near, name)?;
            let Some((ino, at)) = entry.map(|entry| (entry.ino, entry.at)) else {
                self.note_missed(block)?;
                continue;
            };
            self.store.notes.found(block.number(), at);
            layout.inode_group(ino, "inode number in a directory entry")?;
            return Ok(Some(Found { ino, block, n, at }));
        }
        Ok(None)
    }

    /// A name is not in a block; perhaps it is time to note which are.
    fn note_missed(&mut self, block: Block) -> Result<()> {
        if !self.store.notes.missed(block.number()) || !self.is_unchanged() {
            return Ok(());
        }
        let raw = self.store.block(block)?;
        let mut names = Names::default();
        for entry in dirent::entries(raw) {
            let entry = entry?;
            if entry.ino != 0 {
                names.add(entry.name);
            }
        }
        self.store.notes.set_names(block.number(), names);
        Ok(())
    }

    /// The first gap of `need` bytes in a block: the entry in front of it.
    pub(crate) fn find_gap_in(&mut self, block: Block, need: usize) -> Result<Option<usize>> {
        let full = self.store.notes.full(block.number(), need);
        let found = dirent::find_gap(self.read(block)?, full, need)?;
        debug_assert_eq!(
            dirent::find_gap(self.read(block)?, 0, need).unwrap_or(found),
            found
        );
        if let Some(at) = found {
            self.store.notes.found_gap(block.number(), need, at);
        }
        Ok(found)
    }

    /// Gives a large directory an index, if it has none and the budget allows it.
    fn index_directory(&mut self, inode: &Inode, blocks: u64) -> Result<()> {
        let worth = blocks >= INDEX_FROM && self.is_unchanged();
        if !worth || self.store.indexes.get(inode.ino).is_some() {
            return Ok(());
        }
        let mut index = Index::default();
        let (mut names, most) = (blocks as usize, self.store.indexes.most());
        for n in 0..blocks {
            let block = self.directory_block(inode, n)?;
            let raw = self.read(block)?;
            for entry in dirent::entries(raw) {
                let entry = entry?;
                if entry.ino != 0 {
                    index.add(entry.name, n as u32);
                    names += 1;
                }
            }
            index.set_gap(n as u32, dirent::largest_gap(raw)?);
            if names > most {
                return Ok(());
            }
        }
        self.store.indexes.insert(inode.ino, index);
        Ok(())
    }

    /// The inode that `name` names in directory `dir`.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`, errors of the name; `Corrupt`; device errors.
    pub(crate) fn lookup(&mut self, dir: u32, name: &[u8]) -> Result<Found> {
        self.lookup_in(dir, name).map(|(_, found)| found)
    }

    /// As [`lookup`](Self::lookup), with the inode of the directory.
    pub(crate) fn lookup_in(&mut self, dir: u32, name: &[u8]) -> Result<(Inode, Found)> {
        check_name(name)?;
        let inode = self.directory(dir)?;
        let found = self.find_entry(&inode, name)?;
        match found.filter(|found| !self.is_hidden(dir, found.ino)) {
            Some(found) => Ok((inode, found)),
            None => Err(Error::NotFound),
        }
    }

    /// Adds an entry for `ino` to directory `dir`, which has none of that name.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; device errors.
    pub(crate) fn add_entry(
        &mut self,
        dir: u32,
        name: &[u8],
        ino: u32,
        kind: FileKind,
    ) -> Result<()> {
        let mut inode = self.directory(dir)?;
        let kind = self.entry_byte(kind);
        let new = Entering { name, ino, kind };
        if !self.add_hashed(&mut inode, &new)? {
            self.add_linear(&mut inode, &new)?;
        }
        self.touch_directory(inode)
    }

    /// Adds an entry where there is room. The caller stores the inode.
    fn add_linear(&mut self, inode: &mut Inode, new: &Entering<'_>) -> Result<()> {
        let blocks = self.directory_blocks(inode)?;
        let (n, block, at) = match self.find_gap(inode, blocks, new.needed())? {
            Some(gap) => gap,
            None => (blocks, self.grow_directory(inode)?, 0),
        };
        self.fill_gap(block, at, new)?;
        if self.store.indexes.get(inode.ino).is_some() {
            let gap = dirent::largest_gap(self.read(block)?)?;
            let indexes = &mut self.store.indexes;
            indexes.note_added(inode.ino, new.name, n as u32, gap);
        }
        Ok(())
    }

    /// Puts an entry into the gap that was found at `at` of a directory's block.
    pub(crate) fn fill_gap(&mut self, block: Block, at: usize, new: &Entering<'_>) -> Result<()> {
        self.check_owned(block)?;
        self.store.notes.added(block.number(), new.name, at);
        let gap = dirent::gap(self.read(block)?, at)?;
        let part = self.modify(block, Kind::Directory, gap.part(new.needed()))?;
        gap.fill(part, new.ino, new.kind, new.name);
        Ok(())
    }

    /// A gap of `need` bytes in a directory of `blocks` blocks: in which of them, and where. The
    /// last ones are tried first, where the room most often is.
    fn find_gap(
        &mut self,
        inode: &Inode,
        blocks: u64,
        need: usize,
    ) -> Result<Option<(u64, Block, usize)>> {
        let mut end = blocks;
        while end > 0 {
            let index = self.store.indexes.get(inode.ino);
            let n = match index.map(|index| index.block_with_gap(need, end as u32)) {
                Some(Some(n)) => n.into(),
                Some(None) => return Ok(None),
                None => end - 1,
            };
            let block = self.directory_block(inode, n)?;
            if let Some(at) = self.find_gap_in(block, need)? {
                return Ok(Some((n, block, at)));
            }
            if self.store.indexes.get(inode.ino).is_some() {
                let gap = dirent::largest_gap(self.read(block)?)?;
                if let Some(index) = self.store.indexes.get(inode.ino) {
                    index.set_gap(n as u32, gap);
                }
            }
            end = n;
        }
        Ok(None)
    }

    /// Appends an empty block to a directory. The caller stores the inode.
    pub(crate) fn grow_directory(&mut self, inode: &mut Inode) -> Result<Block> {
        let layout = self.layout();
        let blocks = self.directory_blocks(inode)?;
        let size = inode.size + layout.block_size as u64;
        if size > u32::MAX.into() {
            return Err(Error::NoSpace);
        }
        let run = self.fill_runs(inode, blocks, 1)?[0];
        let block = run.nth(0, &layout)?;
        self.store.notes.forget(block.number());
        dirent::clear(self.fresh(block, Kind::Map)?);
        inode.size = size;
        Ok(block)
    }

    /// Makes the first block of the new directory `inode`. The caller stores the inode.
    pub(crate) fn start_directory(&mut self, inode: &mut Inode, parent: u32) -> Result<()> {
        let layout = self.layout();
        let run = self.fill_runs(inode, 0, 1)?[0];
        let block = run.nth(0, &layout)?;
        self.store.notes.forget(block.number());
        let kind = self.entry_byte(FileKind::Directory);
        dirent::start(self.fresh(block, Kind::Map)?, inode.ino, parent, kind);
        inode.size = layout.block_size as u64;
        Ok(())
    }

    /// Removes an entry that this transaction has found, and not changed since, from the directory
    /// that is `inode` now.
    ///
    /// # Errors
    /// `Corrupt`; device errors.
    pub(crate) fn remove_of(&mut self, inode: Inode, found: &Found) -> Result<()> {
        self.detach(&inode, found)?;
        self.touch_directory(inode)
    }

    /// As [`remove_of`](Self::remove_of). The caller stores the inode.
    pub(crate) fn detach(&mut self, inode: &Inode, found: &Found) -> Result<()> {
        self.check_owned(found.block)?;
        let before = self.store.notes.before(found.block.number(), found.at);
        let removal = dirent::removal(self.read(found.block)?, before, found.at)?;
        let (front, gap) = (removal.front, removal.gap);
        let part = self.modify(found.block, Kind::Directory, removal.part())?;
        removal.make(part);
        let (notes, indexes) = (&mut self.store.notes, &mut self.store.indexes);
        notes.removed(found.block.number(), found.at, front);
        indexes.note_removed(inode.ino, found.n as u32, gap);
        Ok(())
    }

    /// Makes the entry `name` of directory `dir` name another inode.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt`; device errors.
    pub(crate) fn redirect_entry(
        &mut self,
        dir: u32,
        name: &[u8],
        ino: u32,
        kind: FileKind,
    ) -> Result<()> {
        let inode = self.directory(dir)?;
        let found = self.find_entry(&inode, name)?.ok_or(Error::NotFound)?;
        self.check_owned(found.block)?;
        let kind = self.entry_byte(kind);
        let header = found.at..found.at + HEADER;
        let header = self.modify(found.block, Kind::Directory, header)?;
        dirent::redirect(header, ino, kind);
        self.touch_directory(inode)
    }

    /// Notes a change of a directory. An index that is not used does not describe it any more.
    fn touch_directory(&mut self, mut inode: Inode) -> Result<()> {
        if self.tree(&inode)?.is_none() {
            inode.flags &= !FLAG_INDEX;
        }
        inode.mtime = self.now;
        inode.ctime = self.now;
        self.put_inode(&inode)
    }

    /// Whether a directory has no entries but the two that every one has.
    pub(crate) fn is_empty(&mut self, inode: &Inode) -> Result<bool> {
        for n in 0..self.directory_blocks(inode)? {
            let block = self.directory_block(inode, n)?;
            for entry in dirent::entries(self.read(block)?) {
                let entry = entry?;
                if entry.ino != 0 && !is_dots(entry.name) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The type byte of a new entry.
    fn entry_byte(&self, kind: FileKind) -> u8 {
        if self.layout().file_types {
            kind.entry_byte()
        } else {
            0
        }
    }
}
