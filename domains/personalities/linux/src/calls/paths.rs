//! Paths, and what is told of files.

use super::io::MOST_BYTES;
use super::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW, O_CLOEXEC, O_NONBLOCK, Result};
use crate::disk::{Access, OnDisk, There, Wish};
use crate::errno::{
    EEXIST, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ENXIO, ERANGE, EROFS,
};
use crate::files::{Directory, Open};
use crate::memory;
use crate::pipes::{Ends, PipeEnd};
use crate::special::Special;
use crate::task::Task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use guests::archive::Node;
use linux::files::{self, Attributes};

const O_WRONLY: u64 = 1;
const O_RDWR: u64 = 2;
const O_ACCMODE: u64 = 3;
const O_CREAT: u64 = 0x40;
const O_EXCL: u64 = 0x80;
const O_TRUNC: u64 = 0x200;
const O_APPEND: u64 = 0x400;
const O_DIRECTORY: u64 = 0x1_0000;
const O_NOFOLLOW: u64 = 0x2_0000;
/// What `creat` asks for.
pub(super) const CREATES: u64 = O_WRONLY | O_CREAT | O_TRUNC;
/// What `statx` may be asked for: links and empty paths, no mounting, how new; and what it may not.
const STATX_FLAGS: u64 = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | 0x800 | 0x6000;
const STATX_RESERVED: u64 = 0x8000_0000;
/// The longest path.
const LONGEST: usize = 4096;

/// What an open file is asked for by `open`.
fn access_of(flags: u64) -> Access {
    let mode = flags & O_ACCMODE;
    Access {
        reads: mode != O_WRONLY,
        writes: mode != 0,
        appends: flags & O_APPEND != 0,
    }
}

/// What something is open for, as `fcntl` tells it.
fn mode_of(reads: bool, writes: bool) -> u64 {
    match (reads, writes) {
        (true, true) => O_RDWR,
        (false, _) => O_WRONLY,
        (true, false) => 0,
    }
}

/// How something is open, as `fcntl` tells it.
pub(super) fn flags_of(open: &Open) -> u64 {
    match open {
        Open::Disk(open) => {
            let mode = mode_of(open.access.reads, open.access.writes);
            mode | if open.access.appends { O_APPEND } else { 0 }
        }
        Open::Pipe(end) => {
            let (reads, writes) = end.is_for();
            mode_of(reads, writes) | if end.never_waits() { O_NONBLOCK } else { 0 }
        }
        Open::File(..) | Open::Text(..) | Open::Directory(_) => 0,
        _ => O_RDWR,
    }
}

impl Task {
    /// The directory that a path begins at.
    fn base(&self, descriptor: i32) -> Result<Vec<u8>> {
        if descriptor == AT_FDCWD {
            return Ok(self.process.directory.lock().clone());
        }
        match &*self.opened(descriptor as u64)? {
            Open::Directory(directory) => Ok(directory.path.clone()),
            _ => Err(ENOTDIR),
        }
    }

    /// A path in the program's memory, from the root on.
    pub(super) fn whole(&self, descriptor: i32, path: u64) -> Result<Vec<u8>> {
        let path = memory::read_text(&self.program.space, path)?;
        if path.is_empty() {
            return Err(ENOENT);
        }
        let base = match path.starts_with(b"/") {
            true => Vec::new(),
            false => self.base(descriptor)?,
        };
        let whole = files::resolve(&base, &path);
        match whole.len() < LONGEST {
            // A caller that wants what a link at the end leads to follows it itself.
            true => self.settled_by(whole, false),
            false => Err(ENAMETOOLONG),
        }
    }

    /// What a path leads to that is not on the disk.
    fn look_up(&self, whole: &[u8]) -> Result<Arc<Open>> {
        if !self.process.system.is_rooted() {
            return self.look_up_archived(whole).map(Arc::new);
        }
        let whole = self.settled(whole.to_vec())?;
        if let Some((disk, path)) = self.process.system.disk_of(&whole) {
            let disk = disk.clone();
            return match disk.open(path, Wish::READ)? {
                There::File(file) => {
                    let access = access_of(0);
                    Ok(Arc::new(Open::Disk(OnDisk::new(whole, file, access))))
                }
                There::Directory => Ok(Arc::new(Open::Directory(Directory::new(
                    whole,
                    Some(&disk),
                )))),
                _ => Err(ENXIO),
            };
        }
        match self.special(&whole)? {
            Special::Open(open) | Special::Magic(open, _) => Ok(open),
            Special::Directory(names) => {
                Ok(Arc::new(Open::Directory(Directory::special(whole, names))))
            }
            Special::Text(text) => Ok(Arc::new(Open::Text(text, AtomicU64::new(0)))),
            Special::Link(_) => Err(ELOOP),
        }
    }

    fn look_up_archived(&self, whole: &[u8]) -> Result<Open> {
        match whole {
            b"dev/null" => return Ok(Open::Nothing),
            b"dev/zero" => return Ok(Open::Zeros),
            b"dev/tty" => {
                let terminal = self.process.system.terminal.clone();
                return terminal.map(Open::Terminal).ok_or(ENXIO);
            }
            _ => {}
        }
        let files = &self.process.system.files;
        match files.find(b"", whole) {
            Some(Node::File(file)) => Ok(Open::File(file, AtomicU64::new(0))),
            Some(Node::Directory(path)) => Ok(Open::Directory(Directory::new(path, None))),
            None => {
                let program = files.program(whole).ok_or(ENOENT)?;
                Ok(Open::File(program, AtomicU64::new(0)))
            }
        }
    }

    pub(super) fn open(
        &mut self,
        descriptor: i32,
        path: u64,
        flags: u64,
        mode: u64,
    ) -> Result<u64> {
        let whole = self.whole(descriptor, path)?;
        let whole = match flags & (O_NOFOLLOW | O_EXCL) {
            0 => self.settled(whole)?,
            _ => whole,
        };
        let open = match self.process.system.disk_of(&whole) {
            Some(_) => Arc::new(self.open_on_disk(whole, flags, mode)?),
            None => self.open_else(&whole, flags)?,
        };
        self.place(open, 0, flags & O_CLOEXEC != 0)
    }

    fn open_on_disk(&self, whole: Vec<u8>, flags: u64, mode: u64) -> Result<Open> {
        let access = access_of(flags);
        if flags & O_ACCMODE == O_ACCMODE {
            return Err(EINVAL);
        }
        let wish = Wish {
            makes: (flags & O_CREAT != 0).then(|| self.masked(mode)),
            is_new: flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL,
            cuts: flags & O_TRUNC != 0 && access.writes,
            writes: access.writes,
            follows: flags & O_NOFOLLOW == 0,
            is_directory: flags & O_DIRECTORY != 0,
        };
        let (disk, path) = self.process.system.disk_of(&whole).ok_or(ENOENT)?;
        Ok(match disk.open(path, wish)? {
            There::File(file) => Open::Disk(OnDisk::new(whole, file, access)),
            There::Directory => {
                let disk = disk.clone();
                Open::Directory(Directory::new(whole, Some(&disk)))
            }
            There::Device(number) => self.device_of(number)?,
            There::Pipe(seat) => {
                let ends = Ends {
                    reads: access.reads,
                    writes: access.writes,
                    never_waits: flags & O_NONBLOCK != 0,
                };
                Open::Pipe(PipeEnd::open(self, disk, seat, ends)?)
            }
        })
    }

    /// The device of a number (Linux, "devices.txt").
    fn device_of(&self, number: u32) -> Result<Open> {
        match number {
            0x103 => Ok(Open::Nothing),
            0x105 => Ok(Open::Zeros),
            0x500 => self.look_up_archived(b"dev/tty"),
            _ => Err(ENXIO),
        }
    }

    fn open_else(&self, whole: &[u8], flags: u64) -> Result<Arc<Open>> {
        let open = match self.look_up(whole) {
            Err(ENOENT) if flags & O_CREAT != 0 => return Err(EROFS),
            open => open?,
        };
        let writes = flags & O_ACCMODE != 0;
        match &*open {
            _ if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL => Err(EEXIST),
            Open::File(..) | Open::Text(..) if flags & O_DIRECTORY != 0 => Err(ENOTDIR),
            Open::File(..) | Open::Text(..) if writes => Err(EROFS),
            Open::Directory(_) if writes => Err(EISDIR),
            _ => Ok(open),
        }
    }

    /// What `stat` tells of a path from the root on.
    pub(super) fn attributes(&self, whole: &[u8], follows: bool) -> Result<Attributes> {
        match self.process.system.disk_of(whole) {
            Some((disk, path)) => disk.attributes(path, follows),
            None if !follows && self.process.system.is_rooted() => match self.special(whole)? {
                Special::Link(target) | Special::Magic(_, target) => {
                    Ok(Attributes::new(files::LINK | 0o777, target.len() as u64))
                }
                _ => self.look_up(whole)?.attributes(),
            },
            None => self.look_up(whole)?.attributes(),
        }
    }

    /// What is told of what a call means by a descriptor, a path and flags.
    fn told_of(&self, descriptor: i32, path: u64, flags: u64) -> Result<Attributes> {
        let is_empty = path == 0 || memory::read_text(&self.program.space, path)?.is_empty();
        match flags & AT_EMPTY_PATH != 0 && is_empty {
            true => self.opened(descriptor as u64)?.attributes(),
            false => {
                let whole = self.whole(descriptor, path)?;
                self.attributes(&whole, flags & AT_SYMLINK_NOFOLLOW == 0)
            }
        }
    }

    /// `newfstatat`; the structure is that of `asm/stat.h`.
    pub(super) fn stat(&mut self, descriptor: i32, path: u64, at: u64, flags: u64) -> Result<u64> {
        let of = self.told_of(descriptor, path, flags)?;
        self.put(at, &of.stat())
    }

    /// `statx`; the structure is that of `linux/stat.h`. All that is known is told, whatever was
    /// asked for.
    pub(super) fn stat_more(
        &mut self,
        [descriptor, path, flags, mask, at]: [u64; 5],
    ) -> Result<u64> {
        if flags & !STATX_FLAGS != 0 || mask & STATX_RESERVED != 0 {
            return Err(EINVAL);
        }
        let of = self.told_of(descriptor as i32, path, flags)?;
        self.put(at, &of.statx())
    }

    /// `access`: whether it is there, and with `mode` 2 whether it may be written to.
    pub(super) fn is_there(&self, descriptor: i32, path: u64, mode: u64) -> Result<u64> {
        let whole = self.whole(descriptor, path)?;
        let of = self.attributes(&whole, true)?;
        let is_fixed = self.process.system.disk_of(&whole).is_none();
        match is_fixed && mode & 2 != 0 && of.mode & files::CHARACTER == 0 {
            true => Err(EROFS),
            false => Ok(0),
        }
    }

    pub(super) fn put_path(&self, at: u64, room: u64) -> Result<u64> {
        let path = [b"/", &self.process.directory.lock()[..], b"\0"].concat();
        if path.len() as u64 > room {
            return Err(ERANGE);
        }
        memory::write(&self.program.space, at, &path)?;
        Ok(path.len() as u64)
    }

    pub(super) fn change_directory(&mut self, path: u64) -> Result<u64> {
        let whole = self.settled(self.whole(AT_FDCWD, path)?)?;
        let of = self.attributes(&whole, true)?;
        if of.mode & files::KIND != files::DIRECTORY {
            return Err(ENOTDIR);
        }
        *self.process.directory.lock() = whole;
        Ok(0)
    }

    /// `fchdir`.
    pub(super) fn change_directory_to(&mut self, descriptor: u64) -> Result<u64> {
        match &*self.opened(descriptor)? {
            Open::Directory(directory) => {
                *self.process.directory.lock() = directory.path.clone();
                Ok(0)
            }
            _ => Err(ENOTDIR),
        }
    }

    pub(super) fn entries(&self, descriptor: u64, at: u64, room: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let bytes = open.entries(&self.process.system, room.min(MOST_BYTES) as usize)?;
        memory::write(&self.program.space, at, &bytes)?;
        Ok(bytes.len() as u64)
    }
}
