//! Directories with an index on disk: a name is found through a hash of it, in as many blocks as
//! the tree has levels. The format is in `htree`, the functions in `hash`.
//!
//! An index is looked at as a whole before it is first used. One that makes no sense is not used at
//! all: the directory is then read linearly, and loses its index flag with the first change. So
//! what is below may take for granted that nodes and leaves are apart and in order; but a leaf may
//! still have names that belong into others.
//!
//! How an index grows is in `entering`.

use alloc::vec::Vec;

use crate::bitmap;
use crate::device::{BlockDevice, list, zeroes};
use crate::directory::{Found, is_dots};
use crate::error::{Error, Result};
use crate::hash::{Hashing, Version};
use crate::htree::{self, CONTINUES, Place};
use crate::inode::{FLAG_INDEX, Inode};
use crate::layout::Block;
use crate::transaction::Transaction;

/// What must not be met in an index that was found to make sense.
pub(crate) const BROKEN: Error = Error::Corrupt("index of a directory");

/// The index of a directory.
#[derive(Clone, Copy)]
pub(crate) struct Tree {
    hashing: Hashing,
    version: Version,
    deep: bool,
}

impl Tree {
    /// The hash of a name in this directory.
    pub(crate) fn hash(&self, name: &[u8]) -> u32 {
        self.hashing.hash(self.version, name)
    }
}

/// A key of a root or node.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) place: Place,
    /// The block's number in the directory.
    pub(crate) n: u64,
    /// Which key.
    pub(crate) at: usize,
    /// How many there are.
    pub(crate) count: usize,
}

/// The way from the root to a leaf.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) top: Step,
    pub(crate) below: Option<Step>,
    /// The leaf's number in the directory.
    pub(crate) leaf: u64,
    /// The key of the leaf.
    pub(crate) key: u32,
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// The index of a directory, if it has one that makes sense.
    ///
    /// # Errors
    /// Device errors; `Corrupt` for a directory that could not be read linearly either.
    pub(crate) fn tree(&mut self, inode: &Inode) -> Result<Option<Tree>> {
        let Some(hashing) = self.layout().hashing else {
            return Ok(None);
        };
        if inode.flags & FLAG_INDEX == 0 {
            return Ok(None);
        }
        let good = match self.store.indexes.verdict(inode.ino) {
            Some(verdict) => verdict,
            None => {
                let good = self.is_index_good(inode)?;
                self.store.indexes.judge(inode.ino, good);
                good
            }
        };
        if !good {
            return Ok(None);
        }
        let block = self.hashed_block(inode, 0)?;
        let root = htree::root(self.read(block)?).ok_or(BROKEN)?;
        Ok(Some(Tree {
            hashing,
            version: root.version,
            deep: root.deep,
        }))
    }

    /// Looks at all keys of an index: each block of the directory is named once, and no key is out
    /// of order.
    fn is_index_good(&mut self, inode: &Inode) -> Result<bool> {
        let blocks = self.directory_blocks(inode)?;
        let mut seen = zeroes(blocks as usize / 8 + 1, 0)?;
        bitmap::set(&mut seen, 0, 1);
        let block = self.hashed_block(inode, 0)?;
        let Some(root) = htree::root(self.read(block)?) else {
            return Ok(false);
        };
        let children = self.children(block, Place::Root)?;
        if !note_all(&mut seen, blocks, &children) {
            return Ok(false);
        }
        if !root.deep {
            return Ok(bitmap::all_set(&seen, 0, blocks as u32));
        }
        for (n, (low, node)) in children.iter().enumerate() {
            let high = children.get(n + 1).map_or(u32::MAX, |(key, _)| *key);
            let block = self.hashed_block(inode, (*node).into())?;
            if !htree::is_node(self.read(block)?) {
                return Ok(false);
            }
            let leaves = self.children(block, Place::Node)?;
            let inside = |(key, _): &(u32, u32)| (*low..=high).contains(key);
            if !note_all(&mut seen, blocks, &leaves) || !leaves[1..].iter().all(inside) {
                return Ok(false);
            }
        }
        Ok(bitmap::all_set(&seen, 0, blocks as u32))
    }

    /// The keys of a block, and what they name.
    fn children(&mut self, block: Block, place: Place) -> Result<Vec<(u32, u32)>> {
        let raw = self.read(block)?;
        let all = 0..place.count(raw);
        Ok(list(all.map(|n| (place.key(raw, n), place.block(raw, n))))?)
    }

    /// Block `n` of a directory, and no other.
    pub(crate) fn hashed_block(&mut self, inode: &Inode, n: u64) -> Result<Block> {
        if n >= self.directory_blocks(inode)? {
            return Err(BROKEN);
        }
        let run = self.find_run(inode, n, 1)?;
        run.start.ok_or(Error::Corrupt("hole in a directory"))
    }

    /// The way to the leaf where names of `hash` start.
    pub(crate) fn way(&mut self, inode: &Inode, tree: &Tree, hash: u32) -> Result<Way> {
        let (top, key, child) =
            self.step(inode, Place::Root, 0, |place, raw| place.find(raw, hash))?;
        if !tree.deep {
            return Ok(Way {
                top,
                below: None,
                leaf: child,
                key,
            });
        }
        self.way_below(inode, top, key, child, |place, raw| place.find(raw, hash))
    }

    /// The way through the node `n`, of key `key`, by the key that `choose` takes.
    fn way_below(
        &mut self,
        inode: &Inode,
        top: Step,
        key: u32,
        n: u64,
        choose: impl FnOnce(Place, &[u8]) -> usize,
    ) -> Result<Way> {
        let (below, own, leaf) = self.step(inode, Place::Node, n, choose)?;
        Ok(Way {
            top,
            below: Some(below),
            leaf,
            key: if below.at == 0 { key } else { own },
        })
    }

    /// One step down from block `n` of a directory: the key, its hash, and what it names.
    fn step(
        &mut self,
        inode: &Inode,
        place: Place,
        n: u64,
        choose: impl FnOnce(Place, &[u8]) -> usize,
    ) -> Result<(Step, u32, u64)> {
        let block = self.hashed_block(inode, n)?;
        let raw = self.read(block)?;
        let count = place.count(raw);
        let at = choose(place, raw).min(count - 1);
        let step = Step {
            place,
            n,
            at,
            count,
        };
        Ok((step, place.key(raw, at), place.block(raw, at).into()))
    }

    /// The way to the leaf behind that of `way`; `None` at the end.
    pub(crate) fn next_leaf(&mut self, inode: &Inode, way: &Way) -> Result<Option<Way>> {
        if let Some(below) = way.below.filter(|below| below.at + 1 < below.count) {
            let next = below.at + 1;
            return self
                .way_below(inode, way.top, 0, below.n, |_, _| next)
                .map(Some);
        }
        if way.top.at + 1 >= way.top.count {
            return Ok(None);
        }
        let next = way.top.at + 1;
        let (top, key, child) = self.step(inode, Place::Root, 0, |_, _| next)?;
        if way.below.is_some() {
            return self.way_below(inode, top, key, child, |_, _| 0).map(Some);
        }
        Ok(Some(Way {
            top,
            below: None,
            leaf: child,
            key,
        }))
    }

    /// The entry `name` of a directory with an index.
    pub(crate) fn find_hashed(
        &mut self,
        inode: &Inode,
        tree: &Tree,
        name: &[u8],
    ) -> Result<Option<Found>> {
        if is_dots(name) {
            return self.find_in(inode, core::iter::once(0), name, 1);
        }
        let hash = tree.hash(name);
        let mut way = Some(self.way(inode, tree, hash)?);
        while let Some(here) = way {
            if let Some(found) = self.find_in(inode, core::iter::once(here.leaf), name, 1)? {
                return Ok(Some(found));
            }
            let next = self.next_leaf(inode, &here)?;
            way = next.filter(|next| next.key & !CONTINUES == hash);
        }
        Ok(None)
    }
}

/// Notes that the blocks of `children` are in use; says no if one is outside, or was already.
fn note_all(seen: &mut [u8], blocks: u64, children: &[(u32, u32)]) -> bool {
    children.iter().all(|(_, n)| {
        let new = u64::from(*n) < blocks && !bitmap::is_set(seen, *n);
        if new {
            bitmap::set(seen, *n, 1);
        }
        new
    })
}
