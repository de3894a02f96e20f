//! Paths, and what is told of files.

use super::io::MOST_BYTES;
use super::{AT_EMPTY_PATH, AT_FDCWD, O_CLOEXEC, Result};
use crate::disk::There;
use crate::errno::{EISDIR, ENOENT, ENOTDIR, ENXIO, ERANGE, EROFS};
use crate::files::Open;
use crate::memory;
use crate::task::Task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use guests::archive::Node;
use linux::files;

const O_WRONLY_OR_RDWR: u64 = 3;
const O_CREAT: u64 = 0x40;
const O_DIRECTORY: u64 = 0x1_0000;

impl Task {
    /// The directory that a path begins at.
    pub(super) fn base(&self, descriptor: i32) -> Result<Vec<u8>> {
        if descriptor == AT_FDCWD {
            return Ok(self.process.directory.lock().clone());
        }
        match &*self.opened(descriptor as u64)? {
            Open::Directory(path, _) => Ok(path.clone()),
            _ => Err(ENOTDIR),
        }
    }

    /// What a path in the program's memory leads to.
    pub(super) fn look_up(&self, descriptor: i32, path: u64) -> Result<Open> {
        let path = memory::read_text(&self.program.space, path)?;
        let base = match path.starts_with(b"/") {
            true => Vec::new(),
            false => self.base(descriptor)?,
        };
        let whole = files::resolve(&base, &path);
        match &whole[..] {
            b"dev/null" => return Ok(Open::Nothing),
            b"dev/zero" => return Ok(Open::Zeros),
            b"dev/tty" => {
                let terminal = self.process.system.terminal.clone();
                return terminal.map(Open::Terminal).ok_or(ENXIO);
            }
            _ => {}
        }
        if let Some((disk, path)) = self.process.system.disk_of(&whole) {
            return match disk.find(path)? {
                There::File(file) => Ok(Open::Disk(Arc::new(file), AtomicU64::new(0))),
                There::Directory => Ok(Open::Directory(whole, AtomicU64::new(0))),
            };
        }
        let files = &self.process.system.files;
        match files.find(b"", &whole) {
            Some(Node::File(file)) => Ok(Open::File(file, AtomicU64::new(0))),
            Some(Node::Directory(path)) => Ok(Open::Directory(path, AtomicU64::new(0))),
            None => {
                let program = files.program(&whole).ok_or(ENOENT)?;
                Ok(Open::File(program, AtomicU64::new(0)))
            }
        }
    }

    pub(super) fn open(&mut self, descriptor: i32, path: u64, flags: u64) -> Result<u64> {
        let open = match self.look_up(descriptor, path) {
            Err(ENOENT) if flags & O_CREAT != 0 => return Err(EROFS),
            open => open?,
        };
        let writes = flags & O_WRONLY_OR_RDWR != 0;
        match &open {
            Open::File(..) | Open::Disk(..) if flags & O_DIRECTORY != 0 => return Err(ENOTDIR),
            Open::File(..) | Open::Disk(..) if writes => return Err(EROFS),
            Open::Directory(..) if writes => return Err(EISDIR),
            _ => {}
        }
        self.place(Arc::new(open), 0, flags & O_CLOEXEC != 0)
    }

    /// `newfstatat`; the structure is that of `asm/stat.h`.
    pub(super) fn stat(&mut self, descriptor: i32, path: u64, at: u64, flags: u64) -> Result<u64> {
        let is_empty = path == 0 || memory::read_text(&self.program.space, path)?.is_empty();
        let (mode, size) = match flags & AT_EMPTY_PATH != 0 && is_empty {
            true => self.opened(descriptor as u64)?.mode_and_size()?,
            false => self.look_up(descriptor, path)?.mode_and_size()?,
        };
        self.put(at, &files::stat(mode, size))
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
        match self.look_up(AT_FDCWD, path)? {
            Open::Directory(path, _) => *self.process.directory.lock() = path,
            _ => return Err(ENOTDIR),
        }
        Ok(0)
    }

    pub(super) fn entries(&self, descriptor: u64, at: u64, room: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let bytes = open.entries(&self.process.system, room.min(MOST_BYTES) as usize)?;
        memory::write(&self.program.space, at, &bytes)?;
        Ok(bytes.len() as u64)
    }
}
