//! Which groups may be changed: the format says many things twice, and what disagrees is damaged.
//!
//! A bitmap that has a block in use as free would have that block written over, silently. So a
//! group is looked at before the first thing is taken from it or given back to it: its descriptor
//! counts what its bitmaps have as free, and the bitmaps have as used what the file system itself
//! needs. From then on counters and bitmaps change together, so the verdict stays right. What comes
//! up later is held against a group as well: an inode that is marked as free and has links, and a
//! name that leads to a free inode, which a new file would get.
//!
//! Of a distrusted group nothing is allocated, and its bitmaps and counters stay as they are, since
//! nobody knows which of them is right: what is freed there is left over for `e2fsck`. Its files
//! are read, and written to where that needs no block of the group. Blocks that a group has wrongly
//! as free, and as many wrongly as used, are not found: only `e2fsck` looks at all files.

use alloc::vec::Vec;

use crate::bitmap;
use crate::bytes::u16_at;
use crate::device::{BlockDevice, DeviceError};
use crate::error::Result;
use crate::fs::FileSystem;
use crate::group::Group;
use crate::store::Store;
use crate::transaction::Transaction;

/// Groups of which a verdict is kept: more than a file system with groups of the usual size can
/// have. Nothing is allocated in those behind them.
const MOST: u32 = 1 << 19;
/// Disagreements that wait to be told. More are forgotten.
const MOST_TOLD: usize = 64;

/// What is wrong with a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The descriptor says another number of free blocks than the bitmap: both numbers.
    FreeBlocks(u32, u32),
    /// The descriptor says another number of free inodes than the bitmap: both numbers.
    FreeInodes(u32, u32),
    /// The descriptor says that there are more directories than inodes in use: both numbers.
    Directories(u32, u32),
    /// A number in the descriptor is larger than it can be, or its tables are where they cannot be.
    Descriptor,
    /// Blocks of the file system's own tables are marked as free.
    Tables,
    /// Blocks of the journal are marked as free.
    Journal,
    /// Inodes that have a meaning of their own are marked as free.
    ReservedInodes,
    /// This inode is marked as free, and has links.
    InodeInUse(u32),
    /// A name leads to this inode, which is not in use.
    Named(u32),
}

/// A group of which nothing is allocated any more. Its `Display` says so in a line for a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distrusted {
    /// The group's number.
    pub group: u32,
    /// What was found.
    pub doubt: Doubt,
}

impl core::fmt::Display for Distrusted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "group {} is damaged and nothing is allocated there: ",
            self.group
        )?;
        match self.doubt {
            Doubt::FreeBlocks(said, counted) => {
                write!(
                    f,
                    "its descriptor says {said} free blocks, its bitmap {counted}"
                )
            }
            Doubt::FreeInodes(said, counted) => {
                write!(
                    f,
                    "its descriptor says {said} free inodes, its bitmap {counted}"
                )
            }
            Doubt::Directories(said, most) => {
                write!(
                    f,
                    "its descriptor says {said} directories, and {most} inodes are in use"
                )
            }
            Doubt::Descriptor => f.write_str("a number in its descriptor makes no sense"),
            Doubt::Tables => f.write_str("its bitmap has the file system's tables as free"),
            Doubt::Journal => f.write_str("its bitmap has blocks of the journal as free"),
            Doubt::ReservedInodes => f.write_str("its bitmap has reserved inodes as free"),
            Doubt::InodeInUse(ino) => write!(f, "inode {ino} is in use and marked as free"),
            Doubt::Named(ino) => write!(f, "a name leads to inode {ino}, which is not in use"),
        }
    }
}

/// What is known of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Unknown,
    Good,
    Bad,
}

/// The verdicts, and what was found and not told yet.
#[derive(Default)]
pub(crate) struct Trust {
    verdicts: Vec<Verdict>,
    news: Vec<Distrusted>,
}

impl Trust {
    /// For so many groups.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn new(groups: u32) -> core::result::Result<Self, DeviceError> {
        let groups = groups.min(MOST) as usize;
        let mut trust = Trust::default();
        let verdicts = trust.verdicts.try_reserve_exact(groups);
        let both = verdicts.and_then(|()| trust.news.try_reserve_exact(MOST_TOLD));
        both.map_err(|_| DeviceError::NoMemory)?;
        trust.verdicts.resize(groups, Verdict::Unknown);
        Ok(trust)
    }

    fn verdict(&self, group: u32) -> Verdict {
        let known = self.verdicts.get(group as usize);
        known.copied().unwrap_or(Verdict::Bad)
    }

    /// Keeps a verdict; whether it is news that a group is not trusted.
    fn judge(&mut self, group: u32, doubt: Option<Doubt>) -> bool {
        let known = match self.verdicts.get_mut(group as usize) {
            Some(known) if *known != Verdict::Bad => known,
            _ => return false,
        };
        let Some(doubt) = doubt else {
            *known = Verdict::Good;
            return false;
        };
        *known = Verdict::Bad;
        if self.news.len() < MOST_TOLD {
            self.news.push(Distrusted { group, doubt });
        }
        true
    }
}

impl<D: BlockDevice> FileSystem<D> {
    /// The groups of which nothing is allocated any more, as that was found since this was last
    /// asked; of very many some.
    pub fn take_distrusted(&mut self) -> Vec<Distrusted> {
        let news = &mut self.store.trust.news;
        match news.is_empty() {
            true => Vec::new(),
            // The room stays: it was made when there was memory for it.
            false => crate::device::list(news.drain(..)).unwrap_or_default(),
        }
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// Whether group `index`, which must exist, may be changed.
    ///
    /// # Errors
    /// Device errors.
    pub(crate) fn is_trusted(&mut self, index: u32) -> Result<bool> {
        match self.store.trust.verdict(index) {
            Verdict::Good => return Ok(true),
            Verdict::Bad => return Ok(false),
            Verdict::Unknown => {}
        }
        let doubt = self.examine(index)?;
        self.judge(index, doubt);
        Ok(doubt.is_none())
    }

    /// Something was found that group `index` must not be changed for.
    pub(crate) fn distrust(&mut self, index: u32, doubt: Doubt) {
        self.judge(index, Some(doubt));
    }

    fn judge(&mut self, index: u32, doubt: Option<Doubt>) {
        if self.store.trust.judge(index, doubt) {
            // The host is to look at all of it, also where the image is unmounted cleanly.
            self.store.damaged = true;
        }
    }

    /// What is wrong with a group.
    fn examine(&mut self, index: u32) -> Result<Option<Doubt>> {
        let Some(group) = self.sane_group(index)? else {
            return Ok(Some(Doubt::Descriptor));
        };
        match self.examine_blocks(&group)? {
            Some(doubt) => Ok(Some(doubt)),
            None => self.examine_inodes(&group),
        }
    }

    fn examine_blocks(&mut self, group: &Group) -> Result<Option<Doubt>> {
        let (layout, places) = (self.layout(), group.places);
        self.read(places.block_bitmap)?;
        let map = self.seen(places.block_bitmap.number());
        let map = map.expect("the newest blocks are never evicted");
        let is_free = |(bit, count): (u32, u32)| !bitmap::all_set(map, bit, count);
        let free = bitmap::count_clear(map, layout.group_blocks(group.index));
        Ok(if free != group.free_blocks {
            Some(Doubt::FreeBlocks(group.free_blocks, free))
        } else if places.system(&layout).any(is_free) {
            Some(Doubt::Tables)
        } else if self.store.journal_in(group.index).any(is_free) {
            Some(Doubt::Journal)
        } else {
            None
        })
    }

    fn examine_inodes(&mut self, group: &Group) -> Result<Option<Doubt>> {
        let layout = self.layout();
        let map = self.read(group.places.inode_bitmap)?;
        let free = bitmap::count_clear(map, layout.inodes_per_group);
        let used = layout.inodes_per_group - free;
        let reserved = layout.reserved_inodes(group.index);
        Ok(if free != group.free_inodes {
            Some(Doubt::FreeInodes(group.free_inodes, free))
        } else if group.directories > used {
            Some(Doubt::Directories(group.directories, used))
        } else if !bitmap::all_set(map, 0, reserved) {
            Some(Doubt::ReservedInodes)
        } else {
            None
        })
    }

    /// Whether somebody uses an inode, whatever the bitmap says.
    pub(crate) fn is_in_use(&mut self, ino: u32) -> Result<bool> {
        if self.store.open.contains_key(&ino) {
            return Ok(true);
        }
        let (block, at) = self.inode_location(ino)?;
        Ok(u16_at(self.read(block)?, at + 26) != 0)
    }

    /// A name leads to `ino`. If that is free, the next file that got it would have this name, too.
    pub(crate) fn check_named(&mut self, ino: u32) -> Result<()> {
        if !self.store.read_only && !self.is_in_use(ino)? {
            let (group, _) = self.layout().inode_group(ino, "inode number")?;
            self.distrust(group, Doubt::Named(ino));
        }
        Ok(())
    }
}

impl<D> Store<D> {
    /// Bits of a group's bitmap that are of blocks of the journal: the first, and how many.
    fn journal_in(&self, group: u32) -> impl Iterator<Item = (u32, u32)> {
        let start = self.layout.group_start(group);
        let end = start + self.layout.group_blocks(group);
        let is_before = |(_, behind): &(u32, u32)| *behind <= start;
        let from = self.journal_blocks.partition_point(is_before);
        let inside = self.journal_blocks[from..].iter();
        let inside = inside.take_while(move |(first, _)| *first < end);
        inside.map(move |(first, behind)| {
            let first = (*first).max(start);
            (first - start, (*behind).min(end) - first)
        })
    }

    /// Whether one of `count` blocks from `start` on is of the journal.
    pub(crate) fn is_of_journal(&self, start: u32, count: u32) -> bool {
        let at = self
            .journal_blocks
            .partition_point(|(_, behind)| *behind <= start);
        let next = self.journal_blocks.get(at);
        next.is_some_and(|(first, _)| *first < start.saturating_add(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_distrusted_once_and_for_good() {
        let mut trust = Trust::new(3).expect("memory");
        assert_eq!(trust.verdict(1), Verdict::Unknown);
        assert!(!trust.judge(1, None));
        assert_eq!(trust.verdict(1), Verdict::Good);
        assert!(trust.judge(1, Some(Doubt::Tables)));
        assert!(!trust.judge(1, Some(Doubt::Descriptor)) && !trust.judge(1, None));
        assert_eq!(trust.verdict(1), Verdict::Bad);
        assert_eq!(
            trust.news,
            [Distrusted {
                group: 1,
                doubt: Doubt::Tables
            }]
        );
        // What cannot be kept apart is not trusted.
        assert_eq!(trust.verdict(3), Verdict::Bad);
        assert!(!trust.judge(3, None));
    }

    #[test]
    fn what_is_told_is_bounded() {
        let mut trust = Trust::new(1000).expect("memory");
        assert!((0..1000).all(|group| trust.judge(group, Some(Doubt::Descriptor))));
        assert_eq!(trust.news.len(), MOST_TOLD);
    }
}
