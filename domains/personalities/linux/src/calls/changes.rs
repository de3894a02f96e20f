//! What changes files and their names. All of that is on the disk.

use super::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW, Result};
use crate::disk::Disk;
use crate::errno::{
    EBADF, EEXIST, EFBIG, EINVAL, EISDIR, ENAMETOOLONG, ENODEV, ENOENT, ENOTTY, EOPNOTSUPP, EPERM,
    EROFS, ESPIPE, EXDEV,
};
use crate::files::Open;
use crate::memory;
use crate::special::Special;
use crate::task::Task;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use domain_rt::time;
use interfaces::{FileKind, Renaming};
use linux::files;

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

impl Task {
    /// Permissions of a new file, without those that are masked.
    pub(super) fn masked(&self, mode: u64) -> u16 {
        permissions(mode & !u64::from(self.process.mask.load(Ordering::Relaxed)))
    }

    /// `umask`.
    pub(super) fn set_file_mask(&self, mask: u64) -> u64 {
        let mask = (mask & 0o777) as u32;
        self.process.mask.swap(mask, Ordering::Relaxed).into()
    }

    /// The disk, if a path from the root on leads there, and the path from there on. What is
    /// elsewhere cannot be changed.
    fn to_change<'a>(&self, whole: &'a [u8]) -> Result<(&Arc<Disk>, &'a [u8])> {
        self.process.system.disk_of(whole).ok_or(EROFS)
    }

    /// Does something with a path on the disk.
    fn on_disk<T>(
        &self,
        (descriptor, path): (i32, u64),
        act: impl FnOnce(&Arc<Disk>, &[u8]) -> Result<T>,
    ) -> Result<T> {
        let whole = self.whole(descriptor, path)?;
        let (disk, path) = self.to_change(&whole)?;
        act(disk, path)
    }

    pub(super) fn make_directory(&self, descriptor: i32, path: u64, mode: u64) -> Result<u64> {
        let whole = self.whole(descriptor, path)?;
        let (disk, path) = match self.to_change(&whole) {
            // Who makes all directories of a path goes on.
            Err(EROFS) if self.is_there(descriptor, path, 0).is_ok() => return Err(EEXIST),
            there => there?,
        };
        disk.make_directory(path, self.masked(mode & DIRECTORY_MODE))
            .map(|()| 0)
    }

    /// `unlinkat`.
    pub(super) fn remove(&self, descriptor: i32, path: u64, flags: u64) -> Result<u64> {
        if flags & !AT_REMOVEDIR != 0 {
            return Err(EINVAL);
        }
        let whole = self.whole(descriptor, path)?;
        match self.to_change(&whole) {
            Err(EROFS) => self.is_there(descriptor, path, 0).and(Err(EROFS)),
            there => {
                let (disk, path) = there?;
                disk.remove(path, flags != 0).map(|()| 0)
            }
        }
    }

    /// `renameat2`.
    pub(super) fn rename(&self, from: (i32, u64), to: (i32, u64), flags: u64) -> Result<u64> {
        let how = match flags {
            0 => Renaming::Replace,
            RENAME_NOREPLACE => Renaming::New,
            RENAME_EXCHANGE => Renaming::Exchange,
            _ => return Err(EINVAL),
        };
        self.on_two_paths(from, to, |disk, from, to| disk.rename(from, to, how))
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
            files::CHARACTER => FileKind::CharacterDevice,
            files::BLOCK => FileKind::BlockDevice,
            files::FIFO => FileKind::Pipe,
            files::SOCKET => FileKind::Socket,
            files::DIRECTORY => return Err(EPERM),
            _ => return Err(EINVAL),
        };
        let mode = self.masked(mode);
        self.on_disk((descriptor, path), |disk, path| {
            disk.make_node(path, kind, mode, device as u32)
        })?;
        Ok(0)
    }

    /// `linkat`.
    pub(super) fn add_name(&self, old: (i32, u64), new: (i32, u64), flags: u64) -> Result<u64> {
        if flags & !AT_SYMLINK_FOLLOW != 0 {
            return Err(EINVAL);
        }
        self.on_two_paths(old, new, Disk::add_name)
    }

    fn on_two_paths(
        &self,
        from: (i32, u64),
        to: (i32, u64),
        act: impl FnOnce(&Disk, &[u8], &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let [from, to] = [self.whole(from.0, from.1)?, self.whole(to.0, to.1)?];
        match (self.to_change(&from), self.to_change(&to)) {
            (Ok((disk, from)), Ok((_, to))) => act(disk, from, to).map(|()| 0),
            (Err(_), Err(error)) => Err(error),
            _ => Err(EXDEV),
        }
    }

    /// `symlinkat`.
    pub(super) fn make_link(&self, target: u64, descriptor: i32, path: u64) -> Result<u64> {
        let target = memory::read_text(&self.program.space, target)?;
        match target.len() {
            0 => return Err(ENOENT),
            length if length > LONGEST_LINK => return Err(ENAMETOOLONG),
            _ => {}
        }
        self.on_disk((descriptor, path), |disk, path| {
            disk.make_link(&target, path)
        })?;
        Ok(0)
    }

    /// `readlinkat`. What is not on the disk is no link.
    pub(super) fn read_link(&self, descriptor: i32, path: u64, to: u64, room: u64) -> Result<u64> {
        let whole = self.whole(descriptor, path)?;
        let target = match self.process.system.disk_of(&whole) {
            Some((disk, path)) => disk.link_target(path)?,
            None if self.process.system.is_rooted() => match self.special(&whole)? {
                Special::Link(target) | Special::Magic(_, target) => target,
                _ => return Err(EINVAL),
            },
            None => return Err(EINVAL),
        };
        let count = (target.len() as u64).min(room);
        memory::write(&self.program.space, to, &target[..count as usize])?;
        Ok(count)
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
        self.on_disk((AT_FDCWD, path), |disk, path| disk.set_length(path, length))?;
        Ok(0)
    }

    /// `fchmodat`.
    pub(super) fn set_mode(&self, descriptor: i32, path: u64, mode: u64) -> Result<u64> {
        let mode = permissions(mode);
        self.on_disk((descriptor, path), |disk, path| {
            disk.with(path, true, |of| disk.set_mode(of.inode, mode))
        })?;
        Ok(0)
    }

    /// `fchmod`.
    pub(super) fn set_mode_of(&self, descriptor: u64, mode: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        open.with_node(|disk, inode| disk.set_mode(inode, permissions(mode)))?;
        Ok(0)
    }

    /// `fchownat`: programs run as user 0, who may give anything away. What is not on the disk
    /// belongs to that user for ever.
    pub(super) fn set_owner(
        &self,
        (descriptor, path): (i32, u64),
        owner: [u64; 2],
        flags: u64,
    ) -> Result<u64> {
        if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
            return Err(EINVAL);
        }
        if flags & AT_EMPTY_PATH != 0 && memory::read_text(&self.program.space, path)?.is_empty() {
            return self.set_owner_of(descriptor as u64, owner);
        }
        let follows = flags & AT_SYMLINK_NOFOLLOW == 0;
        self.on_disk((descriptor, path), |disk, path| {
            disk.with(path, follows, |of| disk.set_owner(of.inode, ids(owner)))
        })?;
        Ok(0)
    }

    /// `fchown`.
    pub(super) fn set_owner_of(&self, descriptor: u64, owner: [u64; 2]) -> Result<u64> {
        let open = self.opened(descriptor)?;
        match open.with_node(|disk, inode| Ok(disk.set_owner(inode, ids(owner)))) {
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
        memory::write(&self.program.space, at, &generation.to_le_bytes())?;
        Ok(0)
    }

    /// `utimensat`; without a path that of the descriptor.
    pub(super) fn set_times(&self, descriptor: i32, path: u64, at: u64, flags: u64) -> Result<u64> {
        if flags & !AT_SYMLINK_NOFOLLOW != 0 {
            return Err(EINVAL);
        }
        let times = self.times(at)?;
        self.put_times(descriptor, path, flags & AT_SYMLINK_NOFOLLOW == 0, times)
    }

    /// `utimes` and `futimesat`: two times of seconds and microseconds.
    pub(super) fn set_micro_times(&self, descriptor: i32, path: u64, at: u64) -> Result<u64> {
        let times = match at {
            0 => self.times(0)?,
            at => match self.get(at)? {
                [a, a_rest @ 0..1_000_000, m, m_rest @ 0..1_000_000] => {
                    [(a, a_rest), (m, m_rest)].map(|(it, rest)| Some(nanoseconds(it, rest * 1000)))
                }
                _ => return Err(EINVAL),
            },
        };
        self.put_times(descriptor, path, true, times)
    }

    /// `utime`: two times of seconds.
    pub(super) fn set_whole_times(&self, path: u64, at: u64) -> Result<u64> {
        let times = match at {
            0 => self.times(0)?,
            at => self.get::<2>(at)?.map(|it| Some(nanoseconds(it, 0))),
        };
        self.put_times(AT_FDCWD, path, true, times)
    }

    fn put_times(
        &self,
        descriptor: i32,
        path: u64,
        follows: bool,
        times: [Option<u64>; 2],
    ) -> Result<u64> {
        if times == [None; 2] {
            return Ok(0);
        }
        match path {
            0 if descriptor != AT_FDCWD => {
                let open = self.opened(descriptor as u64)?;
                open.with_node(|disk, inode| disk.set_times(inode, times))?;
            }
            path => self.on_disk((descriptor, path), |disk, path| {
                disk.with(path, follows, |of| disk.set_times(of.inode, times))
            })?,
        }
        Ok(0)
    }

    /// Two times that a program gives: of the last access and the last change; now, if none.
    fn times(&self, at: u64) -> Result<[Option<u64>; 2]> {
        let now = time::wall_coarse();
        if at == 0 {
            return Ok([Some(now); 2]);
        }
        let [a, a_rest, m, m_rest] = self.get(at)?;
        let time = |seconds: u64, rest| match rest {
            UTIME_NOW => Ok(Some(now)),
            UTIME_OMIT => Ok(None),
            0..SECOND => Ok(Some(nanoseconds(seconds, rest))),
            _ => Err(EINVAL),
        };
        Ok([time(a, a_rest)?, time(m, m_rest)?])
    }
}
