//! What changes files and their names. All of that is on the disk.

use super::paths::Path;
use super::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW, Result};
use crate::disk::{self, Disk, DiskFile, Making};
use crate::errno::{
    EBADF, EBUSY, EEXIST, EFBIG, EINVAL, EISDIR, ENAMETOOLONG, ENODEV, ENOENT, ENOTDIR, ENOTEMPTY,
    ENOTTY, EOPNOTSUPP, EPERM, EROFS, ESPIPE, EXDEV,
};
use crate::files::Open;
use crate::memory;
use crate::task::Task;
use crate::walk::{Led, Node, View};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use domain_rt::time;
use interfaces::{FileKind, Renaming};
use linux::cred::{EXECUTE, WRITE};
use linux::files::{self, Attributes};
use mounts::Seat;
use vfs::walk::Tree;

pub(super) const AT_REMOVEDIR: u64 = 0x200;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
/// How `renameat2` moves a name.
const RENAME_NOREPLACE: u64 = 1;
const RENAME_EXCHANGE: u64 = 2;
/// How `fallocate` makes a hole.
const KEEP_SIZE: u64 = 1;
const PUNCH_HOLE: u64 = 2;
/// What `mkdir` obeys of a mode.
const DIRECTORY_MODE: u64 = 0o1777;
/// Permission bits of a mode.
const PERMISSIONS: u64 = 0o7777;
/// What stands for nanoseconds where a time is now, and where it stays.
const UTIME_NOW: u64 = (1 << 30) - 1;
const UTIME_OMIT: u64 = (1 << 30) - 2;
/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// The longest target of a symbolic link.
const LONGEST_LINK: usize = 4095;

/// Nanoseconds since 1970 of a time that a program gives; one before is taken for 1970.
fn nanoseconds(seconds: u64, rest: u64) -> u64 {
    match i64::try_from(seconds) {
        Ok(_) => seconds.saturating_mul(SECOND).saturating_add(rest),
        Err(_) => 0,
    }
}

/// Owner and group; the highest number stands for the one that there is.
fn ids(owner: [u64; 2]) -> [Option<u32>; 2] {
    owner.map(|id| Some(id as u32).filter(|id| *id != u32::MAX))
}

/// Permission bits, as the file system has them.
fn permissions(mode: u64) -> u16 {
    (mode & PERMISSIONS) as u16
}

/// What changes about a file, and not of its content.
#[derive(Clone, Copy)]
enum Change {
    Mode(u32),
    /// Owner and group; `None` stays.
    Owner([Option<u32>; 2]),
    /// Of the last access and the last change; whether both are now.
    Times([Option<u64>; 2], bool),
}

/// Times of the last access and the last change; `None` stays.
struct Times {
    both: [Option<u64>; 2],
    /// Whoever may write may set both to now.
    is_now: bool,
}

impl Times {
    fn of(times: [u64; 2]) -> Self {
        Times {
            both: times.map(Some),
            is_now: false,
        }
    }
}

impl Task {
    /// Permissions of a new file, without those that are masked.
    pub(super) fn masked(&self, mode: u64) -> u16 {
        permissions(mode & !u64::from(self.fs.mask.load(Ordering::Relaxed)))
    }

    /// `umask`.
    pub(super) fn set_file_mask(&self, mask: u64) -> u64 {
        let mask = (mask & 0o777) as u32;
        self.fs.mask.swap(mask, Ordering::Relaxed).into()
    }

    /// The directory of the disk that a name is to be made in, if that may be.
    fn within<'l>(&self, view: &View<'_>, led: &'l Led) -> Result<(&'l disk::Node, Attributes)> {
        let of = view.attributes(&led.directory)?;
        view.cred.check(&of, WRITE | EXECUTE)?;
        match &led.directory {
            Node::Disk(directory) => Ok((directory, of)),
            _ => Err(EROFS),
        }
    }

    pub(super) fn disk(&self) -> Result<&Arc<Disk>> {
        self.process.system.disk.as_ref().ok_or(EROFS)
    }

    /// Makes something under a name that leads to nothing.
    fn make(&self, (descriptor, path): (i32, u64), what: Making<'_>, mode: u16) -> Result<u64> {
        let path = self.path(descriptor, path)?;
        self.make_at(&path, what, mode).map(|_| 0)
    }

    /// Makes something; what it is, held, unless somebody has removed it again.
    fn make_at(&self, path: &Path, what: Making<'_>, mode: u16) -> Result<Option<Arc<Seat>>> {
        let kind = match what {
            Making::Directory => files::DIRECTORY,
            _ => files::REGULAR,
        };
        self.named(path, |view, led, _| {
            if led.node.is_some() || led.name.is_empty() {
                return Err(EEXIST);
            }
            if led.slash && kind != files::DIRECTORY {
                return Err(ENOENT);
            }
            let (directory, of) = self.within(view, led)?;
            let (user, group, mode) = view.cred.made(&of, kind, mode.into());
            let given = (user, group, mode as u16);
            self.disk()?.make((directory, &led.name), what, given)
        })
    }

    /// Makes the name of a socket; where it is, held.
    ///
    /// # Errors
    /// Linux's.
    pub fn make_socket(&self, path: &[u8]) -> Result<(Arc<Disk>, Arc<Seat>)> {
        let path = self.path_of_text(path.to_vec(), AT_FDCWD)?;
        let what = Making::Node(FileKind::Socket, 0);
        let seat = self.make_at(&path, what, self.masked(0o777))?;
        Ok((self.disk()?.clone(), seat.ok_or(ENOENT)?))
    }

    pub(super) fn make_directory(&self, descriptor: i32, path: u64, mode: u64) -> Result<u64> {
        let mode = self.masked(mode & DIRECTORY_MODE);
        self.make((descriptor, path), Making::Directory, mode)
    }

    /// `unlinkat`.
    pub(super) fn remove(&self, descriptor: i32, path: u64, flags: u64) -> Result<u64> {
        if flags & !AT_REMOVEDIR != 0 {
            return Err(EINVAL);
        }
        let (path, is_rmdir) = (self.path(descriptor, path)?, flags != 0);
        self.named(&path, |view, led, _| {
            if led.name.is_empty() {
                return Err(match path.last() {
                    _ if !is_rmdir => EISDIR,
                    b"." => EINVAL,
                    b".." => ENOTEMPTY,
                    _ => EBUSY,
                });
            }
            let node = self.removable(view, led)?;
            match (node, &led.directory) {
                (Node::Disk(node), Node::Disk(directory)) => {
                    let named = (directory, &led.name[..]);
                    self.disk()?.remove(named, node, is_rmdir).map(|()| 0)
                }
                // Something else stands there.
                (_, Node::Disk(_)) => Err(EBUSY),
                _ => Err(EROFS),
            }
        })
    }

    /// What a name leads to, if that may be taken from it.
    fn removable<'l>(&self, view: &View<'_>, led: &'l Led) -> Result<&'l Node> {
        let node = led.node.as_ref().ok_or(ENOENT)?;
        if led.slash && !view.is_directory(node) {
            return Err(ENOTDIR);
        }
        if view.cred.has_all_files() {
            return Ok(node);
        }
        let [directory, of] = [view.attributes(&led.directory)?, view.attributes(node)?];
        view.cred.may_remove(&directory, &of).map(|()| node)
    }

    /// `renameat2`.
    pub(super) fn rename(&self, from: (i32, u64), to: (i32, u64), flags: u64) -> Result<u64> {
        let how = match flags {
            0 => Renaming::Replace,
            RENAME_NOREPLACE => Renaming::New,
            RENAME_EXCHANGE => Renaming::Exchange,
            _ => return Err(EINVAL),
        };
        let [from, to] = [self.path(from.0, from.1)?, self.path(to.0, to.1)?];
        self.named(&from, |view, from, _| {
            let to = self.name_of(view, &to)?;
            self.move_name(view, from, &to, how).map(|()| 0)
        })
    }

    fn move_name(&self, view: &View<'_>, from: &Led, to: &Led, how: Renaming) -> Result<()> {
        if from.name.is_empty() || to.name.is_empty() {
            return Err(if how == Renaming::New && to.name.is_empty() {
                EEXIST
            } else {
                EBUSY
            });
        }
        let (Node::Disk(old), Node::Disk(new)) = (&from.directory, &to.directory) else {
            let both = [&from.directory, &to.directory];
            let is_one = both.iter().any(|it| matches!(it, Node::Disk(_)));
            return Err(if is_one { EXDEV } else { EROFS });
        };
        let Node::Disk(node) = from.node.as_ref().ok_or(ENOENT)? else {
            return Err(EBUSY);
        };
        match &to.node {
            Some(_) if how == Renaming::New => return Err(EEXIST),
            Some(Node::Disk(other)) if other.inode() == node.inode() => return Ok(()),
            Some(Node::Disk(_)) => {}
            Some(_) => return Err(EBUSY),
            None if how == Renaming::Exchange => return Err(ENOENT),
            None if to.slash && !node.is_directory() => return Err(ENOTDIR),
            None => {}
        }
        self.removable(view, from)?;
        match &to.node {
            Some(_) => drop(self.removable(view, to)?),
            None => drop(self.within(view, to)?),
        }
        if node.is_directory() && old.inode() != new.inode() {
            // Its `..` changes.
            let of = view.attributes(&Node::Disk(node.clone()))?;
            view.cred.check(&of, WRITE)?;
        }
        let [from, to] = [(old, &from.name[..]), (new, &to.name[..])];
        self.disk()?.rename(from, to, how)
    }

    /// `mknodat`.
    pub(super) fn make_node(
        &self,
        descriptor: i32,
        path: u64,
        mode: u64,
        device: u64,
    ) -> Result<u64> {
        let kind = match mode as u32 & files::KIND {
            0 | files::REGULAR => FileKind::Regular,
            files::CHARACTER | files::BLOCK if !self.process.cred().is_root() => {
                return Err(EPERM);
            }
            files::CHARACTER => FileKind::CharacterDevice,
            files::BLOCK => FileKind::BlockDevice,
            files::FIFO => FileKind::Pipe,
            files::SOCKET => FileKind::Socket,
            files::DIRECTORY => return Err(EPERM),
            _ => return Err(EINVAL),
        };
        let what = Making::Node(kind, device as u32);
        self.make((descriptor, path), what, self.masked(mode))
    }

    /// `linkat`.
    pub(super) fn add_name(&self, old: (i32, u64), new: (i32, u64), flags: u64) -> Result<u64> {
        if flags & !AT_SYMLINK_FOLLOW != 0 {
            return Err(EINVAL);
        }
        let [old, new] = [self.path(old.0, old.1)?, self.path(new.0, new.1)?];
        self.walked(&old, flags & AT_SYMLINK_FOLLOW != 0, |view, led, _| {
            let node = led.node.as_ref().ok_or(ENOENT)?;
            let to = self.name_of(view, &new)?;
            match to.node {
                None if to.slash => return Err(ENOENT),
                None if !to.name.is_empty() => {}
                _ => return Err(EEXIST),
            }
            let of = view.attributes(node)?;
            let node = match node {
                Node::Disk(node) => node.clone(),
                Node::Open(open) => match &**open {
                    // What has no name any more gets none.
                    Open::Disk(_) if of.links == 0 => return Err(ENOENT),
                    Open::Disk(open) => open.file.as_node(),
                    _ => return Err(EXDEV),
                },
                Node::Made(..) => return Err(EXDEV),
            };
            let Node::Disk(_) = to.directory else {
                return Err(EXDEV);
            };
            if !view.cred.may_link(&of) {
                return Err(EPERM);
            }
            let (directory, _) = self.within(view, &to)?;
            match node.is_directory() {
                true => Err(EPERM),
                false => self
                    .disk()?
                    .add_name(&node, (directory, &to.name))
                    .map(|()| 0),
            }
        })
    }

    /// `symlinkat`.
    pub(super) fn make_link(&self, target: u64, descriptor: i32, path: u64) -> Result<u64> {
        let target = memory::read_text(&self.program.mm.space, target)?;
        match target.len() {
            0 => return Err(ENOENT),
            length if length > LONGEST_LINK => return Err(ENAMETOOLONG),
            _ => {}
        }
        self.make((descriptor, path), Making::Link(&target), 0o777)
    }

    /// `ftruncate`.
    pub(super) fn set_length(&self, descriptor: u64, length: u64) -> Result<u64> {
        let length = i64::try_from(length).map_err(|_| EINVAL)? as u64;
        match &*self.opened(descriptor)? {
            Open::Disk(open) => {
                let file = open.to_change().map_err(|_| EINVAL)?;
                file.set_length(length).map(|()| 0)
            }
            Open::Directory(_) => Err(EISDIR),
            _ => Err(EINVAL),
        }
    }

    /// `truncate`.
    pub(super) fn set_length_at(&self, path: u64, length: u64) -> Result<u64> {
        let length = i64::try_from(length).map_err(|_| EINVAL)? as u64;
        let path = self.path(AT_FDCWD, path)?;
        self.walked(&path, true, |view, led, before| {
            let node = led.node.as_ref().ok_or(ENOENT)?;
            let of = view.attributes(node)?;
            match of.mode & files::KIND {
                files::REGULAR => view.cred.check(&of, WRITE)?,
                files::DIRECTORY => return Err(EISDIR),
                _ => return Err(EINVAL),
            }
            match node {
                Node::Disk(node) => {
                    let disk = self.disk()?;
                    let (_, seat) = disk.take(led, node, before)?;
                    DiskFile::new(disk, seat).set_length(length).map(|()| 0)
                }
                Node::Open(open) => match &**open {
                    Open::Disk(open) => open.file.set_length(length).map(|()| 0),
                    _ => Err(EINVAL),
                },
                Node::Made(..) => Err(EROFS),
            }
        })
    }

    /// Changes what is held on a disk, with its lock, if the process may.
    fn apply(&self, disk: &Disk, inode: u64, change: Change) -> Result<()> {
        let cred = self.process.cred();
        let lock = disk.lock_of(inode);
        let _alone = lock.lock();
        let of = match cred.has_all_files() {
            // The user 0 is asked nothing.
            true => Attributes::default(),
            false => disk.attributes_by(inode)?,
        };
        match change {
            Change::Mode(mode) => disk.set_mode(inode, cred.new_mode(&of, mode)? as u16),
            Change::Owner(ids) => {
                cred.may_give(&of, ids)?;
                disk.set_owner(inode, ids)
            }
            Change::Times(times, is_now) => {
                cred.may_date(&of, is_now)?;
                disk.set_times(inode, times)
            }
        }
    }

    /// Changes what a path leads to.
    fn apply_at(
        &self,
        (descriptor, path): (i32, u64),
        follows: bool,
        change: Change,
    ) -> Result<u64> {
        let path = self.path(descriptor, path)?;
        self.walked(&path, follows, |_, led, before| {
            match led.node.as_ref().ok_or(ENOENT)? {
                Node::Disk(node) => {
                    let disk = self.disk()?;
                    let (of, _held) = disk.take(led, node, before)?;
                    self.apply(disk, of.inode, change)
                }
                Node::Open(open) => {
                    open.with_place(|disk, inode| Ok(self.apply(disk, inode, change)))?
                }
                Node::Made(..) if self.process.cred().has_all_files() => Err(EROFS),
                Node::Made(..) => Err(EPERM),
            }
            .map(|()| 0)
        })
    }

    /// Changes what is open.
    fn apply_open(&self, open: &Open, change: Change) -> Result<()> {
        open.with_node(|disk, inode| Ok(self.apply(disk, inode, change)))?
    }

    /// `fchmodat`.
    pub(super) fn set_mode(&self, descriptor: i32, path: u64, mode: u64) -> Result<u64> {
        let change = Change::Mode(permissions(mode).into());
        self.apply_at((descriptor, path), true, change)
    }

    /// `fchmod`.
    pub(super) fn set_mode_of(&self, descriptor: u64, mode: u64) -> Result<u64> {
        let change = Change::Mode(permissions(mode).into());
        self.apply_open(&*self.opened(descriptor)?, change)
            .map(|()| 0)
    }

    /// `fchownat`.
    pub(super) fn set_owner(
        &self,
        (descriptor, path): (i32, u64),
        owner: [u64; 2],
        flags: u64,
    ) -> Result<u64> {
        if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
            return Err(EINVAL);
        }
        if flags & AT_EMPTY_PATH != 0 && memory::read_text(&self.program.mm.space, path)?.is_empty()
        {
            return self.set_owner_of(descriptor as u32 as u64, owner);
        }
        let follows = flags & AT_SYMLINK_NOFOLLOW == 0;
        self.apply_at((descriptor, path), follows, Change::Owner(ids(owner)))
    }

    /// `fchown`. What is not on the disk belongs to the user 0 for ever.
    pub(super) fn set_owner_of(&self, descriptor: u64, owner: [u64; 2]) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let change = Change::Owner(ids(owner));
        match open.with_node(|disk, inode| Ok(self.apply(disk, inode, change))) {
            Ok(set) => set.map(|()| 0),
            // A pipe or a terminal.
            Err(EINVAL) if ids(owner).into_iter().flatten().all(|id| id == 0) => Ok(0),
            Err(EINVAL) => Err(EPERM),
            Err(error) => Err(error),
        }
    }

    /// `fallocate`: it makes holes, and promises no room.
    pub(super) fn allocate(
        &self,
        descriptor: u64,
        mode: u64,
        offset: u64,
        length: u64,
    ) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let sign = |number: u64| i64::try_from(number).map_err(|_| EINVAL);
        let end = sign(offset)?.checked_add(sign(length)?).ok_or(EFBIG)?;
        match &*open {
            _ if length == 0 => Err(EINVAL),
            Open::Disk(_) | Open::File(..) if mode != PUNCH_HOLE | KEEP_SIZE => Err(EOPNOTSUPP),
            Open::Disk(open) => {
                let length = end as u64 - offset;
                open.to_change()?.punch(offset, length).map(|()| 0)
            }
            Open::File(..) => Err(EBADF),
            Open::Directory(_) => Err(EISDIR),
            Open::Pipe(_) => Err(ESPIPE),
            _ => Err(ENODEV),
        }
    }

    /// `FS_IOC_GETVERSION` of a file or directory on the disk.
    pub(super) fn put_generation(&self, open: &Open, at: u64) -> Result<u64> {
        let told = open.with_node(|disk, inode| Ok(disk.generation(inode)));
        let generation = told.map_err(|_| ENOTTY)??;
        memory::write(&self.program.mm.space, at, &generation.to_le_bytes())?;
        Ok(0)
    }

    /// `utimensat`; without a path that of the descriptor.
    pub(super) fn set_times(&self, descriptor: i32, path: u64, at: u64, flags: u64) -> Result<u64> {
        if flags & !AT_SYMLINK_NOFOLLOW != 0 {
            return Err(EINVAL);
        }
        let times = self.times(at)?;
        let follows = flags & AT_SYMLINK_NOFOLLOW == 0;
        self.put_times((descriptor, path), follows, times)
    }

    /// `utimes` and `futimesat`: two times of seconds and microseconds.
    pub(super) fn set_micro_times(&self, descriptor: i32, path: u64, at: u64) -> Result<u64> {
        let times = match at {
            0 => self.times(0)?,
            at => match self.get(at)? {
                [a, a_rest @ 0..1_000_000, m, m_rest @ 0..1_000_000] => {
                    Times::of([nanoseconds(a, a_rest * 1000), nanoseconds(m, m_rest * 1000)])
                }
                _ => return Err(EINVAL),
            },
        };
        self.put_times((descriptor, path), true, times)
    }

    /// `utime`: two times of seconds.
    pub(super) fn set_whole_times(&self, path: u64, at: u64) -> Result<u64> {
        let times = match at {
            0 => self.times(0)?,
            at => Times::of(self.get::<2>(at)?.map(|it| nanoseconds(it, 0))),
        };
        self.put_times((AT_FDCWD, path), true, times)
    }

    fn put_times(
        &self,
        (descriptor, path): (i32, u64),
        follows: bool,
        times: Times,
    ) -> Result<u64> {
        if times.both == [None; 2] {
            return Ok(0);
        }
        let change = Change::Times(times.both, times.is_now);
        match path {
            0 if descriptor != AT_FDCWD => {
                let open = self.opened(descriptor as u32 as u64)?;
                self.apply_open(&open, change).map(|()| 0)
            }
            path => self.apply_at((descriptor, path), follows, change),
        }
    }

    /// Two times that a program gives: of the last access and the last change; now, if none.
    fn times(&self, at: u64) -> Result<Times> {
        let now = time::wall_coarse();
        let is_now = Times {
            both: [Some(now); 2],
            is_now: true,
        };
        if at == 0 {
            return Ok(is_now);
        }
        let [a, a_rest, m, m_rest] = self.get(at)?;
        if [a_rest, m_rest] == [UTIME_NOW; 2] {
            return Ok(is_now);
        }
        let time = |seconds: u64, rest| match rest {
            UTIME_NOW => Ok(Some(now)),
            UTIME_OMIT => Ok(None),
            0..SECOND => Ok(Some(nanoseconds(seconds, rest))),
            _ => Err(EINVAL),
        };
        Ok(Times {
            both: [time(a, a_rest)?, time(m, m_rest)?],
            is_now: false,
        })
    }
}
