//! Renaming, with all its cases, in one transaction.

use crate::device::BlockDevice;
use crate::directory::{Found, check_name, is_dots};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::inode::{FLAG_INDEX, FileKind, Inode, LINKS_MAX};
use crate::layout::ROOT;
use crate::transaction::Transaction;

/// One renaming: names, and what they name. `target` is what `new_name` names so far.
struct Rename<'n> {
    old_dir: u32,
    /// The entry in it.
    old: Found,
    new_dir: u32,
    new_name: &'n [u8],
    source: Inode,
    target: Option<Inode>,
}

impl<D: BlockDevice> FileSystem<D> {
    /// Renames `old_name` in `old_dir` to `new_name` in `new_dir`. What has that name loses it in
    /// the same transaction: a file gives way to anything but a directory, an empty directory to a
    /// directory. If both names are of the same inode nothing happens.
    ///
    /// # Errors
    /// `NotFound`; `IsDirectory`, `NotDirectory`, `NotEmpty` if the target does not give way;
    /// `Invalid` if a directory would come to lie in itself, or for `.` and `..`; `TooManyLinks`,
    /// `NoSpace`, `ReadOnly`; `Corrupt`; device errors.
    pub fn rename(
        &mut self,
        old_dir: u32,
        old_name: &[u8],
        new_dir: u32,
        new_name: &[u8],
    ) -> Result<()> {
        check_names(old_name, new_name)?;
        let orphan = self.update(|tx| tx.rename(old_dir, old_name, new_dir, new_name))?;
        match orphan {
            Some(ino) => {
                if !self.has_journal() {
                    // Its blocks of pointers are its own until its name leads to the other.
                    self.store.stay();
                    self.store.write_back()?;
                }
                self.reap(ino)
            }
            None => Ok(()),
        }
    }

    /// As [`rename`](Self::rename), but nothing gives way.
    ///
    /// # Errors
    /// `Exists` if there is something of the new name; as [`rename`](Self::rename).
    pub fn rename_to_new(
        &mut self,
        old_dir: u32,
        old_name: &[u8],
        new_dir: u32,
        new_name: &[u8],
    ) -> Result<()> {
        check_names(old_name, new_name)?;
        self.update(|tx| match tx.lookup(new_dir, new_name) {
            Ok(_) => Err(Error::Exists),
            Err(Error::NotFound) => tx.rename(old_dir, old_name, new_dir, new_name).map(|_| ()),
            Err(error) => Err(error),
        })
    }

    /// Lets two names lead to what the other led to, in one transaction.
    ///
    /// # Errors
    /// `NotFound` if there is nothing of one of the names; `Invalid` if a directory would come to
    /// lie in itself, or for `.` and `..`; `TooManyLinks`, `ReadOnly`; `Corrupt`; device errors.
    pub fn exchange(
        &mut self,
        one_dir: u32,
        one_name: &[u8],
        other_dir: u32,
        other_name: &[u8],
    ) -> Result<()> {
        check_names(one_name, other_name)?;
        self.update(|tx| tx.exchange([one_dir, other_dir], [one_name, other_name]))
    }
}

fn check_names(one: &[u8], other: &[u8]) -> Result<()> {
    check_name(one)?;
    check_name(other)?;
    match is_dots(one) || is_dots(other) {
        true => Err(Error::Invalid("renaming of . or ..")),
        false => Ok(()),
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// Returns an orphan that must be reaped, if one is left.
    fn rename(
        &mut self,
        old_dir: u32,
        old_name: &[u8],
        new_dir: u32,
        new_name: &[u8],
    ) -> Result<Option<u32>> {
        self.make_way(new_dir, new_name)?;
        let old = self.lookup(old_dir, old_name)?;
        let target = match self.lookup(new_dir, new_name) {
            Ok(found) if found.ino == old.ino => return Ok(None),
            Ok(found) => Some(self.inode(found.ino)?),
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        let source = self.inode(old.ino)?;
        let mut rename = Rename {
            old_dir,
            old,
            new_dir,
            new_name,
            source,
            target,
        };
        self.check_rename(&rename)?;
        self.move_entry(&rename)?;
        if rename.source.kind == FileKind::Directory {
            self.move_parent(&rename)?;
        }
        if rename.source.kind == FileKind::Directory {
            self.edit_inode(rename.source.ino, |inode, now| inode.ctime = now)?;
        } else {
            rename.source.ctime = self.now;
            self.put_inode(&rename.source)?;
        }
        match rename.target {
            Some(target) => {
                self.note_replaced(target.ino)?;
                Ok(self.drop_link(target.ino)?.then_some(target.ino))
            }
            None => Ok(None),
        }
    }

    /// Checks everything that can forbid a renaming.
    fn check_rename(&mut self, rename: &Rename<'_>) -> Result<()> {
        let directory = rename.source.kind == FileKind::Directory;
        let new_dir = self.directory(rename.new_dir)?;
        if new_dir.links == 0 {
            return Err(Error::NotFound);
        }
        if directory && self.is_inside(rename.new_dir, rename.source.ino)? {
            return Err(Error::Invalid("directory moved into itself"));
        }
        if let Some(target) = &rename.target {
            match (directory, target.kind == FileKind::Directory) {
                (true, false) => return Err(Error::NotDirectory),
                (false, true) => return Err(Error::IsDirectory),
                (true, true) if !self.is_empty(target)? => return Err(Error::NotEmpty),
                _ => {}
            }
        } else if directory && rename.old_dir != rename.new_dir && new_dir.links >= LINKS_MAX {
            return Err(Error::TooManyLinks);
        }
        Ok(())
    }

    /// Whether directory `dir` is `ancestor` or lies in it.
    fn is_inside(&mut self, dir: u32, ancestor: u32) -> Result<bool> {
        let mut at = dir;
        for _ in 0..self.layout().inodes {
            if at == ancestor {
                return Ok(true);
            }
            if at == ROOT {
                return Ok(false);
            }
            at = self.lookup(at, b"..")?.ino;
        }
        Err(Error::Corrupt("directories that contain each other"))
    }

    /// Removes the old entry, where it was found, and makes the new one.
    fn move_entry(&mut self, rename: &Rename<'_>) -> Result<()> {
        let (ino, kind) = (rename.source.ino, rename.source.kind);
        let from = self.directory(rename.old_dir)?;
        // What is done to the directory next stores its inode.
        if rename.old_dir == rename.new_dir && from.flags & FLAG_INDEX == 0 {
            self.detach(&from, &rename.old)?;
        } else {
            self.remove_of(from, &rename.old)?;
        }
        match rename.target {
            Some(_) => self.redirect_entry(rename.new_dir, rename.new_name, ino, kind),
            None => self.add_entry(rename.new_dir, rename.new_name, ino, kind),
        }
    }

    /// Sets the `..` of a directory that moved, and the links of its old and new parent.
    fn move_parent(&mut self, rename: &Rename<'_>) -> Result<()> {
        if rename.target.is_some() {
            self.edit_inode(rename.new_dir, |dir, _| {
                dir.links = dir.links.saturating_sub(1)
            })?;
        }
        if rename.old_dir == rename.new_dir {
            return Ok(());
        }
        let source = rename.source.ino;
        self.redirect_entry(source, b"..", rename.new_dir, FileKind::Directory)?;
        self.edit_inode(rename.old_dir, |dir, _| {
            dir.links = dir.links.saturating_sub(1)
        })?;
        self.edit_inode(rename.new_dir, |dir, _| {
            dir.links = dir.links.saturating_add(1)
        })
    }

    fn exchange(&mut self, dirs: [u32; 2], names: [&[u8]; 2]) -> Result<()> {
        let mut inodes = [self.lookup(dirs[0], names[0])?.ino, 0];
        inodes[1] = self.lookup(dirs[1], names[1])?.ino;
        if inodes[0] == inodes[1] {
            return Ok(());
        }
        let moved = [self.inode(inodes[0])?, self.inode(inodes[1])?];
        let is_directory = |at: usize| moved[at].kind == FileKind::Directory;
        for at in [0, 1] {
            if is_directory(at) && self.is_inside(dirs[1 - at], inodes[at])? {
                return Err(Error::Invalid("directory moved into itself"));
            }
        }
        for at in [0, 1] {
            let other = 1 - at;
            if dirs[0] != dirs[1] && is_directory(at) {
                self.redirect_entry(inodes[at], b"..", dirs[other], FileKind::Directory)?;
                if !is_directory(other) {
                    self.move_link(dirs[at], dirs[other])?;
                }
            }
            self.redirect_entry(dirs[other], names[other], inodes[at], moved[at].kind)?;
            self.edit_inode(inodes[at], |inode, now| inode.ctime = now)?;
        }
        Ok(())
    }

    /// A directory has gone from `from` to `to`, and its `..` with it.
    fn move_link(&mut self, from: u32, to: u32) -> Result<()> {
        if self.directory(to)?.links >= LINKS_MAX {
            return Err(Error::TooManyLinks);
        }
        self.edit_inode(from, |dir, _| dir.links = dir.links.saturating_sub(1))?;
        self.edit_inode(to, |dir, _| dir.links = dir.links.saturating_add(1))
    }
}
