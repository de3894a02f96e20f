//! Orphans: inodes without links that are still open, and files in the middle of a truncation. They
//! stand in a list on disk (superblock, then each inode's deletion time), so that the next mount
//! can finish what a power cut interrupted.

use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::inode::{FileKind, Inode};
use crate::layout::field;
use crate::transaction::Transaction;

impl<D: BlockDevice> Transaction<'_, D> {
    /// The first inode of the list, 0 if there is none.
    pub(crate) fn first_orphan(&mut self) -> Result<u32> {
        self.super_field(field::LAST_ORPHAN)
    }

    /// Puts `inode` on the list. The caller stores the inode.
    pub(crate) fn add_orphan(&mut self, inode: &mut Inode) -> Result<()> {
        inode.dtime = self.first_orphan()?;
        self.set_super_field(field::LAST_ORPHAN, inode.ino)
    }

    /// Takes `inode` from the list. The caller stores the inode.
    ///
    /// # Errors
    /// `Corrupt` if it is not there or the list makes no sense.
    pub(crate) fn remove_orphan(&mut self, inode: &mut Inode) -> Result<()> {
        let next = core::mem::take(&mut inode.dtime);
        let mut at = self.first_orphan()?;
        if at == inode.ino {
            return self.set_super_field(field::LAST_ORPHAN, next);
        }
        for _ in 0..self.layout().inodes {
            if at == 0 {
                break;
            }
            let mut before = self.orphan(at)?;
            if before.dtime == inode.ino {
                before.dtime = next;
                return self.put_inode(&before);
            }
            at = before.dtime;
        }
        Err(Error::Corrupt("orphan is not in the list"))
    }

    /// An inode of the list.
    pub(crate) fn orphan(&mut self, ino: u32) -> Result<Inode> {
        if ino < self.layout().first_inode {
            return Err(Error::Corrupt("reserved inode in the list of orphans"));
        }
        self.inode_record(ino)?
            .ok_or(Error::Corrupt("unused inode in the list of orphans"))
    }

    /// One step of finishing the orphan `ino`: one without links loses its content and is freed,
    /// one with links is cut to its size. Returns whether it is finished, and then it is off the
    /// list.
    pub(crate) fn finish_orphan(&mut self, ino: u32) -> Result<bool> {
        let mut inode = self.orphan(ino)?;
        if inode.links > 0 {
            return self.cut_orphan(ino);
        }
        if !self.shrink(&mut inode, 0)? {
            self.put_inode(&inode)?;
            return Ok(false);
        }
        self.remove_orphan(&mut inode)?;
        self.release_attributes(&mut inode)?;
        self.free_inode(inode)?;
        Ok(true)
    }

    /// One step of cutting the orphan `ino` to its size. Returns whether it is finished; one that
    /// has links is then off the list.
    pub(crate) fn cut_orphan(&mut self, ino: u32) -> Result<bool> {
        let mut inode = self.orphan(ino)?;
        if inode.kind != FileKind::Regular {
            return Err(Error::Corrupt("orphan that is neither unlinked nor a file"));
        }
        let keep = inode.size.div_ceil(self.layout().block_size as u64);
        let done = self.shrink(&mut inode, keep)?;
        if done && inode.links > 0 {
            self.remove_orphan(&mut inode)?;
        }
        self.put_inode(&inode)?;
        Ok(done)
    }

    /// Takes one link (or, from a directory, all) from an inode that no entry names any more. When
    /// none is left the inode is freed at once if it is not open and that takes one step only;
    /// else it becomes an orphan. Returns whether an orphan is left that nobody has open.
    pub(crate) fn drop_link(&mut self, ino: u32) -> Result<bool> {
        let inode = self.inode(ino)?;
        self.drop_link_of(inode)
    }

    /// As [`drop_link`](Self::drop_link), of what is `inode` now.
    pub(crate) fn drop_link_of(&mut self, mut inode: Inode) -> Result<bool> {
        let ino = inode.ino;
        let directory = inode.kind == FileKind::Directory;
        inode.links = if directory {
            0
        } else {
            inode.links.saturating_sub(1)
        };
        inode.ctime = self.now;
        if inode.links > 0 {
            self.put_inode(&inode)?;
            return Ok(false);
        }
        let open = self.store.open.contains_key(&ino);
        // In the middle of a truncation it is on the list already.
        if self.store.cut.contains(&ino) {
            self.put_inode(&inode)?;
            return Ok(!open);
        }
        // One that is replaced stays whole on the disk until its name leads to the other.
        let whole = self.replaced.len() > 0 && !self.ends_in_one_step(&inode);
        if !open && !whole && self.shrink(&mut inode, 0)? {
            self.release_attributes(&mut inode)?;
            self.free_inode(inode)?;
            return Ok(false);
        }
        self.add_orphan(&mut inode)?;
        self.put_inode(&inode)?;
        Ok(!open)
    }
}
