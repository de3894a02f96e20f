//! What is made, moved and removed.
//!
//! A change is made once, through a lane of the shadow's: who would ask for it twice could be told
//! that there is what he has made himself.

use super::{Disk, DiskFile, Led, There, fs_error, text};
use crate::errno::{
    EBUSY, EEXIST, EINVAL, EISDIR, ELOOP, ENOENT, ENOTDIR, ENXIO, EPERM, ESTALE, Error,
};
use alloc::sync::Arc;
use interfaces::{
    FileKind, FileSystem, FsError, FsStatistics, Handle, LaneOutcome, RVec, Renaming,
};
use mounts::Known;

/// How a file is to be opened.
#[derive(Clone, Copy)]
pub struct Wish {
    /// It is made if there is none, with this mode.
    pub makes: Option<u16>,
    /// It is an error if there is one.
    pub is_new: bool,
    /// What it has is cut off.
    pub cuts: bool,
    /// It is written to, so it is no directory.
    pub writes: bool,
    /// A symbolic link is followed.
    pub follows: bool,
    /// Nothing but a directory will do.
    pub is_directory: bool,
}

impl Wish {
    /// What is there is read, wherever symbolic links lead.
    pub const READ: Wish = Wish {
        makes: None,
        is_new: false,
        cuts: false,
        writes: false,
        follows: true,
        is_directory: false,
    };
}

/// What comes of a change.
trait Outcome {
    /// It was made by an instance that has died since.
    fn found(outcome: &LaneOutcome) -> Self;
}

/// The inode that was made.
impl Outcome for u64 {
    fn found(outcome: &LaneOutcome) -> Self {
        outcome.first
    }
}

impl Outcome for () {
    fn found(_: &LaneOutcome) -> Self {}
}

/// The directory and the name in it that a path leads to. The root has no name.
fn named(found: &Led) -> Result<(Known, RVec<u8>), Error> {
    if found.name.is_empty() {
        return Err(EEXIST);
    }
    let name = text(&found.name).map_err(|error| fs_error(error.into()))?;
    Ok((found.directory, name))
}

impl Disk {
    /// Makes a change of a name in a directory.
    fn change<T: Outcome>(
        &self,
        directory: Known,
        change: impl FnMut(&Handle<dyn FileSystem>) -> Result<T, FsError>,
    ) -> Result<T, Error> {
        self.change_on([Some(directory), None], change)
    }

    /// Makes a change about one or two inodes.
    fn change_on<T: Outcome>(
        &self,
        on: [Option<Known>; 2],
        change: impl FnMut(&Handle<dyn FileSystem>) -> Result<T, FsError>,
    ) -> Result<T, Error> {
        self.mount.change(on, change, T::found).map_err(fs_error)
    }

    /// What is told of all of it.
    pub fn statistics(&self) -> Result<FsStatistics, Error> {
        self.ask(|fs| fs.statistics())
    }

    /// Opens what a path leads to.
    pub fn open(self: &Arc<Self>, path: &[u8], wish: Wish) -> Result<There, Error> {
        self.look_again(|before| {
            let follows = wish.follows && !wish.is_new;
            let found = self.walk(path, follows)?;
            let opened = match (&found.node, wish.makes) {
                (Some(_), _) if wish.is_new => return Err(EEXIST),
                (Some(_), _) => self.open_there(&found, wish, before),
                (None, Some(mode)) => self.open_new(&found, mode),
                (None, None) => return Err(ENOENT),
            };
            match opened {
                // Somebody else was faster, to make it or to remove it.
                Err(EEXIST) if !wish.is_new => Err(ESTALE),
                Err(ENOENT) if wish.makes.is_some() => Err(ESTALE),
                opened => opened,
            }
        })
    }

    fn open_there(self: &Arc<Self>, found: &Led, wish: Wish, before: u32) -> Result<There, Error> {
        let of = found.node.ok_or(ENOENT)?;
        match of.kind {
            FileKind::Directory if wish.writes || wish.makes.is_some() => return Err(EISDIR),
            FileKind::Directory => return Ok(There::Directory),
            _ if wish.is_directory => return Err(ENOTDIR),
            FileKind::Symlink => return Err(ELOOP),
            FileKind::CharacterDevice => return Ok(There::Device(of.device)),
            FileKind::Pipe => return Ok(There::Pipe(self.take(found, before)?.1)),
            // Nobody is behind them.
            FileKind::BlockDevice | FileKind::Socket => return Err(ENXIO),
            FileKind::Regular => {}
        }
        let file = DiskFile::new(self, self.take(found, before)?.1);
        if wish.cuts {
            file.set_length(0)?;
        }
        Ok(There::File(file))
    }

    fn open_new(self: &Arc<Self>, found: &Led, mode: u16) -> Result<There, Error> {
        let (directory, name) = named(found)?;
        let create = |fs: &Handle<dyn FileSystem>| {
            fs.create(directory.inode, &name, FileKind::Regular, mode)
        };
        let made = self.change(directory, create)?;
        // Somebody may have removed it already, and its number may be another's.
        let there = self.mount.ask(|live| live.find(directory, &name));
        let there = there.map_err(fs_error)?.filter(|of| of.inode == made);
        let known = Known::from(&there.ok_or(ESTALE)?);
        let seat = self.mount.hold(known, FileKind::Regular);
        let seat = seat.map_err(fs_error)?;
        Ok(There::File(DiskFile::new(self, seat)))
    }

    /// `mkdir`.
    pub fn make_directory(&self, path: &[u8], mode: u16) -> Result<(), Error> {
        self.look_again(|_| {
            let (directory, name) = self.free(path)?;
            let create = |fs: &Handle<dyn FileSystem>| {
                fs.create(directory.inode, &name, FileKind::Directory, mode)
            };
            self.change(directory, create).map(|_| ())
        })
    }

    /// The directory and the name in it that a path leads to, where nothing is.
    fn free(&self, path: &[u8]) -> Result<(Known, RVec<u8>), Error> {
        let found = self.walk(path, false)?;
        match found.node {
            Some(_) => Err(EEXIST),
            None => named(&found),
        }
    }

    /// `mknod`, of what is no directory; `device` is the number of a device.
    pub fn make_node(
        &self,
        path: &[u8],
        kind: FileKind,
        mode: u16,
        device: u32,
    ) -> Result<(), Error> {
        self.look_again(|_| {
            let (directory, name) = self.free(path)?;
            let make = |fs: &Handle<dyn FileSystem>| match kind {
                FileKind::Regular => fs.create(directory.inode, &name, kind, mode),
                _ => fs.make_node(directory.inode, &name, kind, mode, device),
            };
            self.change(directory, make).map(|_| ())
        })
    }

    /// `symlink`.
    pub fn make_link(&self, target: &[u8], path: &[u8]) -> Result<(), Error> {
        let target = text(target).map_err(|error| fs_error(error.into()))?;
        self.look_again(|_| {
            let (directory, name) = named(&self.walk(path, false)?)?;
            let make = |fs: &Handle<dyn FileSystem>| fs.symlink(directory.inode, &name, &target);
            self.change(directory, make).map(|_| ())
        })
    }

    /// `link`.
    pub fn add_name(&self, old: &[u8], new: &[u8]) -> Result<(), Error> {
        self.look_again(|_| {
            let of = self.walk(old, false)?.node.ok_or(ENOENT)?;
            let (directory, name) = self.free(new)?;
            if of.kind == FileKind::Directory {
                return Err(EPERM);
            }
            let on = [Some(directory), Some(Known::from(&of))];
            self.change_on(on, |fs| fs.link(directory.inode, &name, of.inode))
        })
    }

    /// `unlink`, or `rmdir`.
    pub fn remove(&self, path: &[u8], is_directory: bool) -> Result<(), Error> {
        self.look_again(|_| {
            let found = self.walk(path, false)?;
            let of = found.node.as_ref().ok_or(ENOENT)?;
            let (directory, name) = named(&found).map_err(|_| EBUSY)?;
            match (of.kind, is_directory) {
                (FileKind::Directory, true) => {
                    self.change(directory, |fs| fs.remove_directory(directory.inode, &name))
                }
                (FileKind::Directory, false) => Err(EISDIR),
                (_, true) => Err(ENOTDIR),
                (_, false) => self.change(directory, |fs| fs.unlink(directory.inode, &name)),
            }
        })
    }

    /// `renameat2`.
    pub fn rename(&self, old: &[u8], new: &[u8], how: Renaming) -> Result<(), Error> {
        self.look_again(|_| {
            let found = self.walk(old, false)?;
            found.node.as_ref().ok_or(ENOENT)?;
            let busy = |_| EBUSY;
            let (from, name) = named(&found).map_err(busy)?;
            let (to, new_name) = named(&self.walk(new, false)?).map_err(busy)?;
            self.change_on([Some(from), Some(to)], |fs| {
                fs.rename(from.inode, &name, to.inode, &new_name, how)
            })
        })
    }

    /// `chmod`.
    pub fn set_mode(&self, inode: u64, mode: u16) -> Result<(), Error> {
        self.ask(|fs| fs.set_mode(inode, mode))
    }

    /// `chown`; `None` stays.
    pub fn set_owner(&self, inode: u64, [user, group]: [Option<u32>; 2]) -> Result<(), Error> {
        self.ask(|fs| fs.set_owner(inode, user, group))
    }

    /// `utimensat`: of the last access and the last change; `None` stays.
    pub fn set_times(&self, inode: u64, [a, m]: [Option<u64>; 2]) -> Result<(), Error> {
        self.ask(|fs| fs.set_times(inode, a, m))
    }

    /// `truncate`.
    pub fn set_length(self: &Arc<Self>, path: &[u8], length: u64) -> Result<(), Error> {
        self.with(path, true, |of| match of.kind {
            FileKind::Regular => self.ask(|fs| fs.truncate(of.inode, length)),
            FileKind::Directory => Err(EISDIR),
            _ => Err(EINVAL),
        })
    }

    /// Returns when what was written before would survive a power cut.
    pub fn commit(&self) -> Result<(), Error> {
        self.ask(|fs| fs.commit())
    }

    /// Returns when all is on the disk.
    pub fn sync(&self) -> Result<(), Error> {
        self.ask(|fs| fs.sync())
    }
}
