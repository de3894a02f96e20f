//! What is made, moved and removed.
//!
//! A change is made once, through a lane of the shadow's: who would ask for it twice could be told
//! that there is what he has made himself.

use super::{Disk, Node, fs_error, text};
use crate::errno::{EISDIR, ENOTDIR, Error};
use alloc::sync::Arc;
use interfaces::{
    FileKind, FileSystem, FsError, FsStatistics, Handle, LaneOutcome, RVec, Renaming,
};
use mounts::{Known, Seat};

/// What is made.
#[derive(Clone, Copy)]
pub enum Making<'a> {
    File,
    Directory,
    /// What is no directory; the number is that of a device.
    Node(FileKind, u32),
    /// A symbolic link, with where it leads.
    Link(&'a [u8]),
}

impl Making<'_> {
    fn kind(&self) -> FileKind {
        match self {
            Making::File => FileKind::Regular,
            Making::Directory => FileKind::Directory,
            Making::Node(kind, _) => *kind,
            Making::Link(_) => FileKind::Symlink,
        }
    }
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

fn bytes(name: &[u8]) -> Result<RVec<u8>, Error> {
    text(name).map_err(|error| fs_error(error.into()))
}

impl Disk {
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

    /// Makes something under a name in a directory, with an owner, a group and a mode; what it is,
    /// held, or nothing if somebody has removed it again. Until it has its owner it has no mode,
    /// and the directory's lock is held.
    ///
    /// # Errors
    /// `EEXIST`. The file system's. `ESTALE`: the directory is another by now.
    pub fn make(
        &self,
        (directory, name): (&Node, &[u8]),
        what: Making<'_>,
        (user, group, mode): (u32, u32, u16),
    ) -> Result<Option<Arc<Seat>>, Error> {
        let (within, kind, name) = (directory.inode(), what.kind(), bytes(name)?);
        let target = match what {
            Making::Link(target) => target,
            _ => b"",
        };
        let target = bytes(target)?;
        let is_given = (user, group) != (0, 0);
        let lock = is_given.then(|| self.lock_of(within));
        let _alone = lock.as_ref().map(|lock| lock.lock());
        let first_mode = if is_given { 0 } else { mode };
        let make = |fs: &Handle<dyn FileSystem>| match what {
            Making::File | Making::Directory => fs.create(within, &name, kind, first_mode),
            Making::Node(FileKind::Regular, _) => fs.create(within, &name, kind, first_mode),
            Making::Node(_, device) => fs.make_node(within, &name, kind, first_mode, device),
            Making::Link(_) => fs.symlink(within, &name, &target),
        };
        let made = self.change_on([Some(directory.known), None], make)?;
        // Somebody may have removed it already, and its number may be another's.
        let there = match self.mount.ask(|live| live.find(directory.known, &name)) {
            Err(FsError::Stale) => None,
            there => there.map_err(fs_error)?,
        };
        let Some(of) = there.filter(|of| of.inode == made) else {
            return Ok(None);
        };
        let seat = match self.mount.hold(Known::from(&of), kind) {
            Err(FsError::Stale) => return Ok(None),
            seat => seat.map_err(fs_error)?,
        };
        if is_given {
            self.set_owner(made, [Some(user), Some(group)])?;
        }
        if is_given && kind != FileKind::Symlink {
            self.set_mode(made, mode)?;
        }
        Ok(Some(seat))
    }

    /// `link`.
    pub fn add_name(&self, of: &Node, (directory, name): (&Node, &[u8])) -> Result<(), Error> {
        let name = bytes(name)?;
        let on = [Some(directory.known), Some(of.known)];
        self.change_on(on, |fs| fs.link(directory.inode(), &name, of.inode()))
    }

    /// `unlink`, or `rmdir`.
    pub fn remove(
        &self,
        (directory, name): (&Node, &[u8]),
        node: &Node,
        is_directory: bool,
    ) -> Result<(), Error> {
        let (within, name) = (directory.inode(), bytes(name)?);
        let on = [Some(directory.known), None];
        match (node.is_directory(), is_directory) {
            (true, true) => self.change_on(on, |fs| fs.remove_directory(within, &name)),
            (true, false) => Err(EISDIR),
            (false, true) => Err(ENOTDIR),
            (false, false) => self.change_on(on, |fs| fs.unlink(within, &name)),
        }
    }

    /// `renameat2`.
    pub fn rename(
        &self,
        (from, name): (&Node, &[u8]),
        (to, new_name): (&Node, &[u8]),
        how: Renaming,
    ) -> Result<(), Error> {
        let [name, new_name] = [bytes(name)?, bytes(new_name)?];
        self.change_on([Some(from.known), Some(to.known)], |fs| {
            fs.rename(from.inode(), &name, to.inode(), &new_name, how)
        })
    }

    /// `chmod` of an inode that is held, with its lock.
    pub fn set_mode(&self, inode: u64, mode: u16) -> Result<(), Error> {
        self.ask(|fs| fs.set_mode(inode, mode))
    }

    /// `chown`, likewise; `None` stays.
    pub fn set_owner(&self, inode: u64, [user, group]: [Option<u32>; 2]) -> Result<(), Error> {
        self.ask(|fs| fs.set_owner(inode, user, group))
    }

    /// `utimensat`, likewise: of the last access and the last change; `None` stays.
    pub fn set_times(&self, inode: u64, [a, m]: [Option<u64>; 2]) -> Result<(), Error> {
        self.ask(|fs| fs.set_times(inode, a, m))
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
