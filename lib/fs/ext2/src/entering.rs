//! Entering a name in a directory with an index on disk (see `hashed`).
//!
//! A full leaf is split into two of about the same size; a full node too; under a full root of keys
//! for leaves a level of nodes is put. Nothing is ever joined again: a leaf without names stays.
//! All of it is one transaction with the new name.

use alloc::vec::Vec;

use crate::cache::Kind;
use crate::device::{BlockDevice, DeviceError, list, zeroes};
use crate::directory::is_dots;
use crate::dirent::{self, Entry};
use crate::error::{Error, Result};
use crate::hashed::{BROKEN, Step, Tree, Way};
use crate::htree::{self, CONTINUES, Place};
use crate::inode::{FLAG_INDEX, Inode};
use crate::layout::Block;
use crate::transaction::Transaction;

/// What is to be entered in a directory.
#[derive(Clone, Copy)]
pub(crate) struct Entering<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) ino: u32,
    /// The type byte.
    pub(crate) kind: u8,
}

impl Entering<'_> {
    /// Bytes that the entry needs.
    pub(crate) fn needed(&self) -> usize {
        dirent::needed(self.name.len())
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// Enters a name through the index of a directory, which is made if the directory would grow
    /// beyond its first block. Says no, and does nothing, if there is none. The caller stores the
    /// inode.
    ///
    /// # Errors
    /// `NoSpace`, also if the index cannot grow; `Corrupt`; device errors.
    pub(crate) fn add_hashed(&mut self, inode: &mut Inode, new: &Entering<'_>) -> Result<bool> {
        if self.tree(inode)?.is_none() {
            self.start_tree(inode, new.needed())?;
        }
        let Some(tree) = self.tree(inode)? else {
            return Ok(false);
        };
        let hash = tree.hash(new.name);
        let way = self.way(inode, &tree, hash)?;
        let leaf = self.hashed_block(inode, way.leaf)?;
        if !self.enter_in_leaf(leaf, new)? {
            let way = self.make_room_for_key(inode, way)?;
            self.split_leaf(inode, &tree, way, new)?;
        }
        Ok(true)
    }

    /// Enters a name in a leaf, if it has room; all gaps are joined for that if need be.
    fn enter_in_leaf(&mut self, leaf: Block, new: &Entering<'_>) -> Result<bool> {
        let need = new.needed();
        let at = match self.find_gap_in(leaf, need)? {
            Some(at) => at,
            None => {
                let raw = self.read(leaf)?;
                let size = raw.len();
                let copy = copy(raw)?;
                let all = named(&copy)?;
                let used: usize = all
                    .iter()
                    .map(|entry| dirent::needed(entry.name.len()))
                    .sum();
                if used + need > size {
                    return Ok(false);
                }
                self.check_owned(leaf)?;
                self.store.notes.forget(leaf.number());
                let raw = self.modify_all(leaf, Kind::Directory)?;
                dirent::pack(raw, all.into_iter());
                dirent::find_gap(raw, 0, need)?.ok_or(BROKEN)?
            }
        };
        self.fill_gap(leaf, at, new)?;
        Ok(true)
    }

    /// Gives a directory of one block an index, if an entry of `need` bytes does not fit in it.
    fn start_tree(&mut self, inode: &mut Inode, need: usize) -> Result<()> {
        let Some(hashing) = self.layout().hashing else {
            return Ok(());
        };
        if inode.flags & FLAG_INDEX != 0 || self.directory_blocks(inode)? != 1 {
            return Ok(());
        }
        let first = self.hashed_block(inode, 0)?;
        let raw = self.read(first)?;
        if dirent::find_gap(raw, 0, need)?.is_some() {
            return Ok(());
        }
        let copy = copy(raw)?;
        let all = named(&copy)?;
        let (dot, parent, rest) = match all.split_first_chunk() {
            Some(([dot, parent], rest)) => (dot, parent, rest),
            None => return Ok(()),
        };
        let dots = dot.name == b"." && parent.name == b"..";
        if !dots || rest.iter().any(|entry| is_dots(entry.name)) {
            return Ok(());
        }
        self.check_owned(first)?;
        let leaf = self.grow_directory(inode)?;
        self.store.notes.forget(first.number());
        dirent::pack(self.modify_all(leaf, Kind::Map)?, rest.iter().copied());
        let root = self.modify_all(first, Kind::Directory)?;
        dirent::start(root, dot.ino, parent.ino, parent.kind);
        htree::start(root, hashing.version, 1);
        inode.flags |= FLAG_INDEX;
        self.store.indexes.judge(inode.ino, true);
        Ok(())
    }

    /// Makes room for a key more behind that of the leaf of `way`: the way to it then.
    fn make_room_for_key(&mut self, inode: &mut Inode, way: Way) -> Result<Way> {
        let size = self.layout().block_size;
        let lowest = way.below.unwrap_or(way.top);
        if lowest.count < lowest.place.limit(size) {
            return Ok(way);
        }
        match way.below {
            None => self.deepen(inode, way),
            Some(_) if way.top.count >= Place::Root.limit(size) => Err(Error::NoSpace),
            Some(below) => self.split_node(inode, way, below),
        }
    }

    /// Puts a node between the full root and its leaves.
    fn deepen(&mut self, inode: &mut Inode, way: Way) -> Result<Way> {
        let n = self.directory_blocks(inode)?;
        self.move_keys(inode, way.top, 0)?;
        let root = self.hashed_block(inode, 0)?;
        htree::deepen(self.modify_all(root, Kind::Directory)?, n as u32);
        let below = Step {
            place: Place::Node,
            n,
            ..way.top
        };
        let top = Step {
            at: 0,
            count: 1,
            ..way.top
        };
        Ok(Way {
            top,
            below: Some(below),
            ..way
        })
    }

    /// Splits the full node `below` of `way`.
    fn split_node(&mut self, inode: &mut Inode, way: Way, below: Step) -> Result<Way> {
        let n = self.directory_blocks(inode)?;
        let kept = below.count / 2;
        let key = self.move_keys(inode, below, kept)?;
        let root = self.hashed_block(inode, 0)?;
        let raw = self.modify_all(root, Kind::Directory)?;
        Place::Root.insert(raw, way.top.at + 1, key, n as u32);
        let (mut top, mut half) = (way.top, below);
        top.count += 1;
        half.count = kept;
        if below.at >= kept {
            top.at += 1;
            half.n = n;
            half.at -= kept;
            half.count = below.count - kept;
        }
        Ok(Way {
            top,
            below: Some(half),
            ..way
        })
    }

    /// Moves the keys of a block from `first` on to a new node behind the directory's end.
    fn move_keys(&mut self, inode: &mut Inode, step: Step, first: usize) -> Result<u32> {
        let from = self.hashed_block(inode, step.n)?;
        self.check_owned(from)?;
        let to = self.grow_directory(inode)?;
        let mut node = zeroes(self.layout().block_size, 0)?;
        let raw = self.modify_all(from, Kind::Directory)?;
        let key = step.place.split(raw, first, &mut node);
        self.modify_all(to, Kind::Map)?.copy_from_slice(&node);
        Ok(key)
    }

    /// Splits the full leaf of `way`, for whose key there is room, and enters a name in the half
    /// where it belongs.
    fn split_leaf(
        &mut self,
        inode: &mut Inode,
        tree: &Tree,
        way: Way,
        new: &Entering<'_>,
    ) -> Result<()> {
        let next = self.next_leaf(inode, &way)?;
        let end = next.map_or(u32::MAX, |next| next.key & !CONTINUES);
        let leaf = self.hashed_block(inode, way.leaf)?;
        let copy = copy(self.read(leaf)?)?;
        let mut all = list(
            named(&copy)?
                .into_iter()
                .map(|entry| (tree.hash(entry.name), entry)),
        )?;
        all.sort_unstable_by_key(|(hash, entry)| (*hash, entry.at));
        let (first, last) = (all.first().ok_or(BROKEN)?.0, all.last().ok_or(BROKEN)?.0);
        if first < way.key & !CONTINUES || last > end {
            return Err(Error::Corrupt(
                "name in a wrong block of an indexed directory",
            ));
        }
        let kept = split_point(&all, copy.len());
        let (low, high) = all.split_at(kept);
        let hash = high.first().ok_or(BROKEN)?.0;
        let continues = low.last().is_some_and(|(other, _)| *other == hash);

        let n = self.directory_blocks(inode)?;
        self.check_owned(leaf)?;
        let fresh = self.grow_directory(inode)?;
        self.store.notes.forget(leaf.number());
        dirent::pack(
            self.modify_all(fresh, Kind::Map)?,
            high.iter().map(|(_, entry)| *entry),
        );
        dirent::pack(
            self.modify_all(leaf, Kind::Directory)?,
            low.iter().map(|(_, entry)| *entry),
        );
        let lowest = way.below.unwrap_or(way.top);
        let node = self.hashed_block(inode, lowest.n)?;
        self.check_owned(node)?;
        let raw = self.modify_all(node, Kind::Directory)?;
        let key = hash | if continues { CONTINUES } else { 0 };
        lowest.place.insert(raw, lowest.at + 1, key, n as u32);
        let target = if tree.hash(new.name) >= hash {
            fresh
        } else {
            leaf
        };
        match self.enter_in_leaf(target, new)? {
            true => Ok(()),
            false => Err(BROKEN),
        }
    }
}

/// How many of a full leaf's entries stay: those of about the first half of the bytes. The half of
/// the longest entry is 132 bytes, so both halves have room for one more.
fn split_point(all: &[(u32, Entry<'_>)], size: usize) -> usize {
    let mut bytes = 0;
    let stay = all.iter().position(|(_, entry)| {
        let length = dirent::needed(entry.name.len());
        let beyond = bytes + length / 2 > size / 2;
        bytes += length;
        beyond
    });
    stay.unwrap_or(all.len() / 2)
        .clamp(1, (all.len() - 1).max(1))
}

/// The entries of a block that name something.
fn named(block: &[u8]) -> Result<Vec<Entry<'_>>> {
    let mut all = Vec::new();
    for entry in dirent::entries(block) {
        let entry = entry?;
        if entry.ino != 0 {
            all.try_reserve(1).map_err(|_| DeviceError::NoMemory)?;
            all.push(entry);
        }
    }
    Ok(all)
}

/// A copy of a block.
fn copy(block: &[u8]) -> Result<Vec<u8>> {
    let mut copy = zeroes(block.len(), 0)?;
    copy.copy_from_slice(block);
    Ok(copy)
}
