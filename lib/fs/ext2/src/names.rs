//! Operations on names: looking up, listing, creating, linking, removing.

use alloc::vec::Vec;

use crate::cache::Kind;
use crate::device::BlockDevice;
use crate::directory::{DirectoryEntry, Found, check_name, is_dots};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::inode::{FAST_LINK, FileKind, Inode, LINKS_MAX};
use crate::transaction::Transaction;

impl<D: BlockDevice> FileSystem<D> {
    /// The inode that `name` names in directory `dir`; `.` and `..` are names too.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`, `NameTooLong`, `Invalid`; `Corrupt`; device errors.
    pub fn lookup(&mut self, dir: u32, name: &[u8]) -> Result<u32> {
        self.view(|tx| {
            let ino = tx.lookup(dir, name)?.ino;
            // A directory that was removed may have had a parent that is gone, too.
            if !is_dots(name) {
                tx.check_named(ino)?;
            }
            Ok(ino)
        })
    }

    /// Lists up to `most` entries of directory `dir`, `.` and `..` among them, from `cookie` on: 0
    /// for the first, then the `next` of the last entry. An empty list is the end. Entries that
    /// come or go meanwhile are listed or not; the others are listed once.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`; `Corrupt`; device errors.
    pub fn readdir(&mut self, dir: u32, cookie: u64, most: usize) -> Result<Vec<DirectoryEntry>> {
        self.view(|tx| tx.list(dir, cookie, most))
    }

    /// Creates an empty regular file and returns its inode. `mode` are permission bits.
    ///
    /// # Errors
    /// `Exists`, `NoSpace`, `NoInodes`, `ReadOnly`; as [`lookup`](Self::lookup).
    pub fn create(&mut self, dir: u32, name: &[u8], mode: u16) -> Result<u32> {
        self.update(|tx| {
            let inode = tx.new_inode(dir, name, FileKind::Regular, mode)?;
            tx.enter(dir, name, inode)
        })
    }

    /// Creates a device, pipe or socket. `device` is the number of a device, as
    /// [`Attributes::device`](crate::Attributes) has it; what is no device has none.
    ///
    /// # Errors
    /// `Invalid` for other kinds; as [`create`](Self::create).
    pub fn mknod(
        &mut self,
        dir: u32,
        name: &[u8],
        kind: FileKind,
        mode: u16,
        device: u32,
    ) -> Result<u32> {
        if matches!(
            kind,
            FileKind::Regular | FileKind::Directory | FileKind::Symlink
        ) {
            return Err(Error::Invalid("kind of the node"));
        }
        self.update(|tx| {
            let mut inode = tx.new_inode(dir, name, kind, mode)?;
            inode.set_device(device);
            tx.enter(dir, name, inode)
        })
    }

    /// Creates an empty directory and returns its inode.
    ///
    /// # Errors
    /// `TooManyLinks` if `dir` has 31,998 directories; as [`create`](Self::create).
    pub fn mkdir(&mut self, dir: u32, name: &[u8], mode: u16) -> Result<u32> {
        self.update(|tx| {
            if tx.directory(dir)?.links >= LINKS_MAX {
                return Err(Error::TooManyLinks);
            }
            let mut inode = tx.new_inode(dir, name, FileKind::Directory, mode)?;
            tx.start_directory(&mut inode, dir)?;
            inode.links = 1;
            tx.edit_inode(dir, |parent, _| parent.links += 1)?;
            tx.enter(dir, name, inode)
        })
    }

    /// Creates a symbolic link to `target` and returns its inode.
    ///
    /// # Errors
    /// `NameTooLong` if the target does not fit in a block, `Invalid` if it is empty; as
    /// [`create`](Self::create).
    pub fn symlink(&mut self, dir: u32, name: &[u8], target: &[u8]) -> Result<u32> {
        if target.is_empty() || target.contains(&0) {
            return Err(Error::Invalid("target of a symbolic link"));
        }
        if target.len() >= self.store.layout.block_size {
            return Err(Error::NameTooLong);
        }
        self.update(|tx| {
            let mut inode = tx.new_inode(dir, name, FileKind::Symlink, 0o777)?;
            tx.set_link_target(&mut inode, target)?;
            tx.enter(dir, name, inode)
        })
    }

    /// Gives the inode `ino` another name.
    ///
    /// # Errors
    /// `IsDirectory`, `Exists`, `TooManyLinks`, `NoSpace`, `ReadOnly`; as [`lookup`](Self::lookup).
    pub fn link(&mut self, ino: u32, dir: u32, name: &[u8]) -> Result<()> {
        self.update(|tx| {
            let inode = tx.inode(ino)?;
            if inode.kind == FileKind::Directory {
                return Err(Error::IsDirectory);
            }
            if inode.links == 0 {
                return Err(Error::NotFound);
            }
            if inode.links >= LINKS_MAX {
                return Err(Error::TooManyLinks);
            }
            tx.check_new(dir, name)?;
            tx.enter(dir, name, inode).map(|_| ())
        })
    }

    /// Removes a name of what is no directory. The last name takes the inode with it, unless that
    /// is open.
    ///
    /// # Errors
    /// `IsDirectory`, `ReadOnly`; as [`lookup`](Self::lookup).
    pub fn unlink(&mut self, dir: u32, name: &[u8]) -> Result<()> {
        self.remove(dir, name, |tx, inode, parent, found| {
            if inode.kind == FileKind::Directory {
                return Err(Error::IsDirectory);
            }
            tx.remove_of(parent, found)
        })
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotDirectory`, `NotEmpty`, `Invalid` for `.` and `..`, `ReadOnly`; as
    /// [`lookup`](Self::lookup).
    pub fn rmdir(&mut self, dir: u32, name: &[u8]) -> Result<()> {
        self.remove(dir, name, |tx, inode, parent, found| {
            if inode.kind != FileKind::Directory {
                return Err(Error::NotDirectory);
            }
            if inode.ino == dir || is_dots(name) {
                return Err(Error::Invalid("directory that cannot be removed"));
            }
            if !tx.is_empty(inode)? {
                return Err(Error::NotEmpty);
            }
            tx.remove_of(parent, found)?;
            tx.edit_inode(dir, |parent, _| {
                parent.links = parent.links.saturating_sub(1)
            })
        })
    }

    /// Removes a name with `detach`, which checks that it may go, and then one link of its inode.
    /// `detach` is given that inode, and the one of the directory.
    fn remove(
        &mut self,
        dir: u32,
        name: &[u8],
        mut detach: impl FnMut(&mut Transaction<'_, D>, &Inode, Inode, &Found) -> Result<()>,
    ) -> Result<()> {
        let (ino, left) = self.update(|tx| {
            let (parent, found) = tx.lookup_in(dir, name)?;
            let ino = found.ino;
            let inode = match tx.inode(ino) {
                Ok(inode) => inode,
                // An entry that names nothing: all there is to do is to remove it.
                Err(Error::NotFound) => {
                    tx.check_named(ino)?;
                    tx.remove_of(parent, &found)?;
                    return Ok((ino, false));
                }
                Err(error) => return Err(error),
            };
            detach(tx, &inode, parent, &found)?;
            Ok((ino, tx.drop_link_of(inode)?))
        })?;
        if left {
            self.reap(ino)?;
        }
        Ok(())
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// Checks that `name` can be a new name in directory `dir`. Nothing can be made in a
    /// directory that was removed.
    pub(crate) fn check_new(&mut self, dir: u32, name: &[u8]) -> Result<()> {
        check_name(name)?;
        self.make_way(dir, name)?;
        let inode = self.directory(dir)?;
        if inode.links == 0 {
            return Err(Error::NotFound);
        }
        match self.find_entry(&inode, name)? {
            Some(_) => Err(Error::Exists),
            None => Ok(()),
        }
    }

    /// A new inode for the new name `name` in directory `dir`, for [`enter`](Self::enter).
    fn new_inode(&mut self, dir: u32, name: &[u8], kind: FileKind, mode: u16) -> Result<Inode> {
        self.check_new(dir, name)?;
        self.allocate_inode(dir, kind, mode)
    }

    /// Enters `inode` as `name` in directory `dir`, counts the link and stores the inode.
    fn enter(&mut self, dir: u32, name: &[u8], mut inode: Inode) -> Result<u32> {
        self.add_entry(dir, name, inode.ino, inode.kind)?;
        inode.links += 1;
        inode.ctime = self.now;
        self.put_inode(&inode)?;
        Ok(inode.ino)
    }

    /// Stores the target of a new symbolic link. The caller stores the inode.
    fn set_link_target(&mut self, inode: &mut Inode, target: &[u8]) -> Result<()> {
        inode.size = target.len() as u64;
        if target.len() < FAST_LINK {
            inode.set_pointer_bytes(target);
            return Ok(());
        }
        let block = self.fill_runs(inode, 0, 1)?[0].nth(0, &self.layout())?;
        self.fresh(block, Kind::Map)?[..target.len()].copy_from_slice(target);
        Ok(())
    }
}
