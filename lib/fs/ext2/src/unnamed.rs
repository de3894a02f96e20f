//! The directory of *unnamed* files: those that are in use and have lost their last name. Whoever
//! has them in use gives them names in it, so that they outlive this mount, and removes what is
//! left there when nobody uses it any more.
//!
//! It lies in the root directory, under a name that says what it is, and is a directory like any
//! other to whoever reads the disk. Two flags of its inode tell it from what users make: one that
//! no system gives a meaning to in this format, so that none lets it be set, and the immutable one,
//! so that no other system puts a name into it. Without both of them it is a user's, whatever its
//! name: nothing is ever hidden or removed for how it is called.
//!
//! Here it can be reached by its number alone: it is in no listing, and its name leads to nothing.
//! If somebody wants that name, he gets it, and the directory another.

use alloc::format;
use alloc::vec::Vec;

use crate::device::BlockDevice;
use crate::dirent;
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::inode::{FileKind, LINKS_MAX};
use crate::layout::ROOT;
use crate::transaction::Transaction;

/// How its name begins.
const NAME: &[u8] = b".trefoil-unnamed";
/// Numbers that are tried behind that, if users have made such names.
const NAMES: u32 = 1000;
/// No system gives a meaning to this one: `chattr` can neither set nor clear it.
const FLAG_UNNAMED: u32 = 0x0080_0000;
/// Linux lets nobody change names in a directory that has this one.
const FLAG_IMMUTABLE: u32 = 0x10;
/// What its inode has, and no other.
const FLAGS: u32 = FLAG_UNNAMED | FLAG_IMMUTABLE;

impl<D: BlockDevice> FileSystem<D> {
    /// The directory of files without a name. If there is none it is made if `makes`; it is as safe
    /// then as any other change: whoever notes its number calls [`commit`](Self::commit) first.
    ///
    /// # Errors
    /// `NoSpace`, `NoInodes`, `ReadOnly`; `Corrupt`; device errors.
    pub fn unnamed(&mut self, makes: bool) -> Result<Option<u32>> {
        if self.store.unnamed.is_none() && makes {
            let made = self.update(|tx| tx.make_unnamed())?;
            self.store.unnamed = Some(made);
        }
        Ok(self.store.unnamed)
    }

    /// Looks for that directory. What cannot be read is none.
    ///
    /// # Errors
    /// Device errors.
    pub(crate) fn find_unnamed(&mut self) -> Result<()> {
        self.store.unnamed = match self.view(|tx| tx.find_unnamed()) {
            Err(Error::Corrupt(_)) => None,
            found => found?,
        };
        Ok(())
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// Whether an entry of directory `dir` that leads to `ino` is the one that nobody sees.
    pub(crate) fn is_hidden(&self, dir: u32, ino: u32) -> bool {
        dir == ROOT && self.store.unnamed == Some(ino)
    }

    fn find_unnamed(&mut self) -> Result<Option<u32>> {
        let root = self.directory(ROOT)?;
        for n in 0..self.directory_blocks(&root)? {
            let block = self.directory_block(&root, n)?;
            let mut candidates = Vec::new();
            for entry in dirent::entries(self.read(block)?) {
                let entry = entry?;
                let is_directory = matches!(
                    FileKind::from_entry(entry.kind),
                    None | Some(FileKind::Directory)
                );
                let leads_below = !matches!(entry.ino, 0 | ROOT);
                if leads_below && is_directory && entry.name.starts_with(NAME) {
                    candidates.push(entry.ino);
                }
            }
            for ino in candidates {
                match self.inode(ino) {
                    Ok(of) if of.kind == FileKind::Directory && of.flags & FLAGS == FLAGS => {
                        return Ok(Some(ino));
                    }
                    Ok(_) | Err(Error::NotFound | Error::Corrupt(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(None)
    }

    fn make_unnamed(&mut self) -> Result<u32> {
        let name = self.free_name()?;
        if self.directory(ROOT)?.links >= LINKS_MAX {
            return Err(Error::TooManyLinks);
        }
        let mut inode = self.allocate_inode(ROOT, FileKind::Directory, 0o700)?;
        self.start_directory(&mut inode, ROOT)?;
        inode.flags |= FLAGS;
        inode.links = 2;
        self.add_entry(ROOT, &name, inode.ino, FileKind::Directory)?;
        self.edit_inode(ROOT, |root, _| root.links += 1)?;
        self.put_inode(&inode)?;
        Ok(inode.ino)
    }

    /// Sees to it that a name that somebody wants in directory `dir` is not the one that nobody
    /// sees.
    pub(crate) fn make_way(&mut self, dir: u32, name: &[u8]) -> Result<()> {
        if dir != ROOT || !name.starts_with(NAME) || self.store.unnamed.is_none() {
            return Ok(());
        }
        let root = self.directory(ROOT)?;
        let Some(found) = self.find_entry(&root, name)? else {
            return Ok(());
        };
        if !self.is_hidden(dir, found.ino) {
            return Ok(());
        }
        let other = self.free_name()?;
        let root = self.directory(ROOT)?;
        self.remove_of(root, &found)?;
        self.add_entry(ROOT, &other, found.ino, FileKind::Directory)
    }

    /// A name for the directory that nothing has.
    fn free_name(&mut self) -> Result<Vec<u8>> {
        let root = self.directory(ROOT)?;
        for number in 0..NAMES {
            let mut name = NAME.to_vec();
            if number > 0 {
                name.extend_from_slice(format!("-{number}").as_bytes());
            }
            if self.find_entry(&root, &name)?.is_none() {
                return Ok(name);
            }
        }
        Err(Error::NoSpace)
    }
}
