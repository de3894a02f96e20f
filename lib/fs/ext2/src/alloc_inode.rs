//! Allocation of inodes: a file near its directory, a directory of the root where there is room;
//! and their release.

use crate::bitmap;
use crate::bytes::{put_u16, u32_at};
use crate::cache::Kind;
use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::inode::{FileKind, Inode, POINTERS};
use crate::layout::{ROOT, field};
use crate::transaction::Transaction;
use crate::trust::Doubt;

/// How many groups are compared for a new directory of the root.
const GROUPS_COMPARED: u32 = 128;

impl<D: BlockDevice> Transaction<'_, D> {
    /// Allocates an inode with no links, no content and the present time.
    ///
    /// # Errors
    /// `NoInodes`; `Corrupt`; device errors.
    pub(crate) fn allocate_inode(
        &mut self,
        parent: u32,
        kind: FileKind,
        permissions: u16,
    ) -> Result<Inode> {
        let groups = self.layout().groups;
        let first = self.first_group(parent, kind)?;
        for n in 0..groups {
            let index = (first + n) % groups;
            if !self.is_trusted(index)? {
                continue;
            }
            let group = self.group(index)?;
            if group.free_inodes == 0 {
                continue;
            }
            let Some(bit) = self.search_inode(&group)? else {
                continue;
            };
            let ino = index * self.layout().inodes_per_group + bit + 1;
            if self.is_in_use(ino)? {
                self.distrust(index, Doubt::InodeInUse(ino));
                continue;
            }
            self.take_inode(group, bit, kind)?;
            return self.start_inode(ino, kind, permissions);
        }
        Err(Error::NoInodes)
    }

    /// The group to try first.
    fn first_group(&mut self, parent: u32, kind: FileKind) -> Result<u32> {
        let (home, _) = self.layout().inode_group(parent, "inode number")?;
        if kind != FileKind::Directory || parent != ROOT {
            return Ok(home);
        }
        let groups = self.layout().groups;
        let mut best = (0, home);
        for n in 0..groups.min(GROUPS_COMPARED) {
            let Some(group) = self.sane_group((home + n) % groups)? else {
                continue;
            };
            if group.free_inodes > 0 && group.free_blocks > best.0 {
                best = (group.free_blocks, group.index);
            }
        }
        Ok(best.1)
    }

    fn search_inode(&mut self, group: &Group) -> Result<Option<u32>> {
        let layout = self.layout();
        let from = layout.reserved_inodes(group.index);
        self.first_unused(group.places.inode_bitmap, from, layout.inodes_per_group)
    }

    fn take_inode(&mut self, mut group: Group, bit: u32, kind: FileKind) -> Result<()> {
        let layout = self.layout();
        self.set_bits(group.places.inode_bitmap, bit, 1)?;
        group.free_inodes -= 1;
        group.directories += u32::from(kind == FileKind::Directory);
        self.put_group(&group)?;
        self.add_to_super(field::FREE_INODES, -1, layout.inodes)
    }

    /// Clears the record of a newly allocated inode, but for what only a new one has. The caller
    /// stores the inode.
    fn start_inode(&mut self, ino: u32, kind: FileKind, permissions: u16) -> Result<Inode> {
        let size = self.layout().inode_size;
        let now = self.now;
        self.last.take_if(|last| last.ino == ino);
        let (block, at) = self.inode_location(ino)?;
        let raw = self.modify(block, Kind::Inode, at..at + size)?;
        let generation = u32_at(raw, 100).wrapping_add(1);
        raw.fill(0);
        if size > 128 {
            // i_extra_isize: up to and with the creation time, where the record is large enough.
            put_u16(raw, 128, (size - 128).min(32) as u16);
        }
        now.encode_created(raw);
        Ok(Inode {
            ino,
            kind,
            permissions: permissions & 0xFFF,
            uid: 0,
            gid: 0,
            size: 0,
            atime: now,
            ctime: now,
            mtime: now,
            dtime: 0,
            links: 0,
            sectors: 0,
            flags: 0,
            pointers: [0; POINTERS],
            generation,
            attribute_block: 0,
        })
    }

    /// Frees an inode that owns no blocks any more and notes the time. In a group that is not
    /// trusted the bitmap has it as used from then on.
    ///
    /// # Errors
    /// `Corrupt` if it is free already, or reserved; device errors.
    pub(crate) fn free_inode(&mut self, mut inode: Inode) -> Result<()> {
        let layout = self.layout();
        let (index, bit) = layout.inode_group(inode.ino, "inode number")?;
        if inode.ino < layout.first_inode {
            return Err(Error::Corrupt("a name leads to a reserved inode"));
        }
        if self.is_trusted(index)? {
            self.give_back(index, bit, inode.kind)?;
        }
        self.store.indexes.forget(inode.ino);
        self.store.freed.push(inode.ino);
        inode.links = 0;
        inode.size = 0;
        inode.sectors = 0;
        inode.dtime = u32::try_from(self.now.seconds).unwrap_or(u32::MAX).max(1);
        inode.pointers = [0; POINTERS];
        self.put_inode(&inode)
    }

    /// Marks an inode as free.
    fn give_back(&mut self, index: u32, bit: u32, kind: FileKind) -> Result<()> {
        let layout = self.layout();
        let mut group = self.group(index)?;
        if !bitmap::is_set(self.read(group.places.inode_bitmap)?, bit) {
            return Err(Error::Corrupt("an inode in use is marked as free"));
        }
        self.clear_bits(group.places.inode_bitmap, bit, 1)?;
        self.freed.add(group.places.inode_bitmap.number(), bit, 1);
        group.free_inodes += 1;
        let directory = u32::from(kind == FileKind::Directory);
        group.directories = group.directories.saturating_sub(directory);
        self.put_group(&group)?;
        self.add_to_super(field::FREE_INODES, 1, layout.inodes)
    }
}
