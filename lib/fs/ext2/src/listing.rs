//! Listing a directory: in the order of its blocks, or of the hashes of its names.
//!
//! Where directories may have an index, entries move when a leaf is split. So there a listing goes
//! by hashes, and a cookie is a place among them, also in a directory of one block, which may get
//! an index meanwhile. A *position* has the 31 bits of a name's hash that count, and behind them 32
//! of a second hash that tells names of the same hash apart; `.` and `..` come first, at 0 and 1.
//! Of names that are equal in all 63 bits, which somebody would have to look for, some may be left
//! out of a listing that is read in pieces.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::device::BlockDevice;
use crate::directory::{DirectoryEntry, is_dots};
use crate::dirent;
use crate::dirindex;
use crate::error::Result;
use crate::hash::Hashing;
use crate::hashed::{Tree, Way};
use crate::htree::CONTINUES;
use crate::inode::{FLAG_INDEX, FileKind, Inode};
use crate::transaction::Transaction;

/// Names by position: the first ones from a position on, no more than there is room for.
struct Nearest {
    from: u64,
    most: usize,
    found: BTreeMap<(u64, Vec<u8>), (u32, u8)>,
}

impl Nearest {
    fn add(&mut self, position: u64, entry: &dirent::Entry<'_>) {
        if position < self.from {
            return;
        }
        let full = self.found.len() >= self.most;
        let last = self.found.last_key_value();
        if full && last.is_none_or(|((last, _), _)| *last < position) {
            return;
        }
        let name = entry.name.to_vec();
        self.found.insert((position, name), (entry.ino, entry.kind));
        if self.found.len() > self.most {
            self.found.pop_last();
        }
    }
}

/// How names are hashed in a directory.
#[derive(Clone, Copy)]
enum Hashes {
    /// It has an index.
    Tree(Tree),
    /// It has one block and may get an index.
    Block(Hashing),
}

impl Hashes {
    fn hash(&self, name: &[u8]) -> u32 {
        match self {
            Hashes::Tree(tree) => tree.hash(name),
            Hashes::Block(hashing) => hashing.hash(hashing.version, name),
        }
    }
}

/// The position of the first name of `hash`.
fn start_of(hash: u32) -> u64 {
    u64::from(hash >> 1) << 32
}

/// The last hash that may stand in front of a leaf of key `key`.
fn last_before(key: u32) -> u32 {
    match key & CONTINUES {
        0 => key.saturating_sub(1),
        _ => key,
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// Up to `most` entries of directory `dir` from `cookie` on.
    pub(crate) fn list(
        &mut self,
        dir: u32,
        cookie: u64,
        most: usize,
    ) -> Result<Vec<DirectoryEntry>> {
        let inode = self.directory(dir)?;
        let mut from = cookie;
        loop {
            let mut list = match self.hashes(&inode)? {
                Some(hashes) => self.list_by_hash(&inode, hashes, from, most)?,
                None => self.list_in_order(&inode, from, most)?,
            };
            let next = list.last().map(|last| last.next);
            list.retain(|entry| !self.is_hidden(dir, entry.ino));
            match next {
                // Nothing but what nobody sees must not look like the end.
                Some(next) if list.is_empty() && next > from => from = next,
                _ => return self.with_kinds(list),
            }
        }
    }

    /// How a directory is to be listed by hashes; `None` if it is not.
    fn hashes(&mut self, inode: &Inode) -> Result<Option<Hashes>> {
        if let Some(tree) = self.tree(inode)? {
            return Ok(Some(Hashes::Tree(tree)));
        }
        let hashing = self.layout().hashing;
        let one = inode.flags & FLAG_INDEX == 0 && self.directory_blocks(inode)? == 1;
        Ok(hashing.filter(|_| one).map(Hashes::Block))
    }

    fn list_in_order(
        &mut self,
        inode: &Inode,
        cookie: u64,
        most: usize,
    ) -> Result<Vec<DirectoryEntry>> {
        let size = self.layout().block_size as u64;
        let mut list = Vec::new();
        for n in cookie / size..self.directory_blocks(inode)? {
            let block = self.directory_block(inode, n)?;
            for entry in dirent::entries(self.read(block)?) {
                let entry = entry?;
                if entry.ino == 0 || n * size + (entry.at as u64) < cookie {
                    continue;
                }
                list.push(DirectoryEntry {
                    ino: entry.ino,
                    kind: FileKind::from_entry(entry.kind),
                    name: entry.name.to_vec(),
                    next: n * size + (entry.at + entry.length) as u64,
                });
                if list.len() >= most {
                    return Ok(list);
                }
            }
        }
        Ok(list)
    }

    fn list_by_hash(
        &mut self,
        inode: &Inode,
        hashes: Hashes,
        cookie: u64,
        most: usize,
    ) -> Result<Vec<DirectoryEntry>> {
        let mut nearest = Nearest {
            from: cookie,
            most,
            found: BTreeMap::new(),
        };
        self.gather_dots(inode, &mut nearest)?;
        match hashes {
            Hashes::Tree(tree) => {
                let first = u32::try_from(cookie >> 32).unwrap_or(u32::MAX);
                let mut way = Some(self.way(inode, &tree, first << 1)?);
                while let Some(here) = way.filter(|_| nearest.found.len() < most) {
                    way = self.gather_leaves(inode, hashes, here, &mut nearest)?;
                }
            }
            Hashes::Block(_) => self.gather(inode, hashes, 0, (0, u32::MAX), &mut nearest)?,
        }
        let entry = |((position, name), (ino, kind))| DirectoryEntry {
            ino,
            kind: FileKind::from_entry(kind),
            name,
            next: position + 1,
        };
        Ok(nearest.found.into_iter().map(entry).collect())
    }

    /// Adds `.` and `..`.
    fn gather_dots(&mut self, inode: &Inode, nearest: &mut Nearest) -> Result<()> {
        let block = self.hashed_block(inode, 0)?;
        let raw = self.read(block)?;
        for (position, name) in [(0, &b"."[..]), (1, b"..")] {
            if let Some(entry) = dirent::find(raw, name)? {
                nearest.add(position, &entry);
            }
        }
        Ok(())
    }

    /// Adds the names of the leaf of `way`, and of those behind it into which a hash continues; the
    /// way to the leaf behind them.
    fn gather_leaves(
        &mut self,
        inode: &Inode,
        hashes: Hashes,
        way: Way,
        nearest: &mut Nearest,
    ) -> Result<Option<Way>> {
        let low = way.key & !CONTINUES;
        let mut here = way;
        loop {
            let next = self.next_leaf(inode, &here)?;
            let end = next.map_or(u32::MAX, |next| last_before(next.key)).max(low);
            self.gather(inode, hashes, here.leaf, (low, end), nearest)?;
            match next {
                Some(next) if next.key & CONTINUES != 0 => here = next,
                other => return Ok(other),
            }
        }
    }

    /// Adds the names of block `n`. Hashes outside of `bounds` are those of names in a wrong block,
    /// which are listed at the edge rather than not at all.
    fn gather(
        &mut self,
        inode: &Inode,
        hashes: Hashes,
        n: u64,
        bounds: (u32, u32),
        nearest: &mut Nearest,
    ) -> Result<()> {
        let block = self.hashed_block(inode, n)?;
        for entry in dirent::entries(self.read(block)?) {
            let entry = entry?;
            if entry.ino != 0 && !is_dots(entry.name) {
                let hash = hashes.hash(entry.name).clamp(bounds.0, bounds.1);
                let position = start_of(hash) | u64::from(dirindex::hash(entry.name));
                nearest.add(position.max(2), &entry);
            }
        }
        Ok(())
    }

    /// Fills in kinds from the inodes where the directory does not have them.
    fn with_kinds(&mut self, mut list: Vec<DirectoryEntry>) -> Result<Vec<DirectoryEntry>> {
        if !self.layout().file_types {
            for entry in &mut list {
                entry.kind = self.inode_record(entry.ino)?.map(|inode| inode.kind);
            }
        }
        Ok(list)
    }
}
