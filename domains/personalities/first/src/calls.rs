//! What a program may ask: as much as busybox's `echo`, `cat`, `ls` and `wc` do (`man 2`).

use crate::System;
use crate::program::Process;
use alloc::vec::Vec;
use domain_rt::log;
use guests::archive::{File, Node};
use interfaces::RVec;
use linux::call;
use linux::errno::{
    EAGAIN, EBADF, EINVAL, EISDIR, EMFILE, ENOENT, ENOMEM, ENOSYS, ENOTDIR, ENOTTY, EROFS, Error,
};
use linux::files::{self, CHARACTER, DIRECTORY, REGULAR};
use linux::memory::{Memory, read, read_text, write, write_words};

/// The most descriptors, bytes that one call moves, and calls of which the log tells.
const MOST_FILES: usize = 64;
const MOST_BYTES: u64 = 64 << 10;
const MOST_TOLD: u32 = 8;
/// The directory that is meant by no descriptor: the root.
const AT_FDCWD: i32 = -100;
const AT_EMPTY_PATH: u64 = 0x1000;
const O_ACCMODE: u64 = 3;
const ARCH_SET_FS: u64 = 0x1002;
const RLIMIT_STACK: u64 = 3;

/// Something that is open, and how far it was read.
pub enum Open {
    Nothing,
    Console,
    File(File, u64),
    Directory(Vec<u8>, u64),
}

impl System {
    /// So many random bytes.
    ///
    /// # Errors
    /// `EAGAIN`: the machine has no source, or none yet.
    pub fn random(&self, count: usize) -> Result<RVec<u8>, Error> {
        let buffer = RVec::zeroed(count).map_err(|_| ENOMEM)?;
        self.random.fill(buffer).map_err(|_| EAGAIN)
    }
}

impl Process<'_> {
    /// Answers the program; its status if that was its last call.
    pub fn call(&mut self) -> Option<i32> {
        let r = self.registers;
        if matches!(r.rax, call::EXIT | call::EXIT_GROUP) {
            return Some(r.rdi as i32 & 0xff);
        }
        let result = self.answer(r.rax, [r.rdi, r.rsi, r.rdx, r.r10]);
        self.registers.rax = result.unwrap_or_else(Error::result);
        None
    }

    fn answer(&mut self, number: u64, [a, b, c, d]: [u64; 4]) -> Result<u64, Error> {
        match number {
            call::READ => self.read(a, b, c),
            call::WRITE => self.write(a, b, c),
            call::SENDFILE if c == 0 => self.send(a, b, d),
            call::OPENAT => self.open(a as i32, b, c),
            call::CLOSE => self.slot(a)?.take().map(|_| 0).ok_or(EBADF),
            call::NEWFSTATAT => self.stat(a as i32, b, c, d),
            call::GETDENTS64 => self.entries(a, b, c),
            call::IOCTL => self.slot(a).and(Err(ENOTTY)),
            call::BRK => Ok(self.layout.set_heap(&self.space, a)),
            call::MPROTECT => self.space.protect(a, b, c).map(|()| 0),
            call::GETRANDOM => {
                let bytes = self.system.random(b.min(256) as usize)?;
                write(&self.space, a, &bytes).map(|()| bytes.len() as u64)
            }
            // The kernel looks at the base before the program runs.
            call::ARCH_PRCTL if a == ARCH_SET_FS => {
                self.registers.fs_base = b;
                Ok(0)
            }
            call::PRLIMIT64 if b == RLIMIT_STACK && c == 0 => {
                write_words(&self.space, d, &[8 << 20, u64::MAX]).map(|()| 0)
            }
            // There is one process, of one thread, and it is root's.
            call::SET_TID_ADDRESS => Ok(1),
            call::SET_ROBUST_LIST | call::GETUID => Ok(0),
            // No path is a link, and programs do without the others.
            call::READLINK | call::PRCTL => Err(EINVAL),
            call::RSEQ => Err(ENOSYS),
            _ => {
                self.unknown += 1;
                if self.unknown <= MOST_TOLD {
                    log!("{} asks for call {number}", self.name.escape_ascii());
                }
                Err(ENOSYS)
            }
        }
    }

    fn slot(&mut self, descriptor: u64) -> Result<&mut Option<Open>, Error> {
        let slot = self.files.get_mut(descriptor as usize);
        slot.filter(|slot| slot.is_some()).ok_or(EBADF)
    }

    fn opened(&mut self, descriptor: u64) -> Result<&mut Open, Error> {
        self.slot(descriptor)?.as_mut().ok_or(EBADF)
    }

    /// The next bytes of something; none at its end.
    fn next(&mut self, descriptor: u64, count: u64) -> Result<RVec<u8>, Error> {
        let system = self.system;
        match self.opened(descriptor)? {
            Open::Nothing | Open::Console => RVec::zeroed(0).map_err(|_| ENOMEM),
            Open::Directory(..) => Err(EISDIR),
            Open::File(file, at) => {
                let bytes = system
                    .files
                    .read(*file, *at, count.min(MOST_BYTES) as usize)?;
                *at += bytes.len() as u64;
                Ok(bytes)
            }
        }
    }

    fn read(&mut self, descriptor: u64, to: u64, count: u64) -> Result<u64, Error> {
        let bytes = self.next(descriptor, count)?;
        write(&self.space, to, &bytes).map(|()| bytes.len() as u64)
    }

    fn write(&mut self, descriptor: u64, from: u64, count: u64) -> Result<u64, Error> {
        let count = count.min(MOST_BYTES) as usize;
        let mut text = RVec::zeroed(count).map_err(|_| ENOMEM)?;
        read(&self.space, from, &mut text)?;
        self.print(descriptor, &text)
    }

    fn print(&mut self, descriptor: u64, text: &RVec<u8>) -> Result<u64, Error> {
        match self.opened(descriptor)? {
            Open::Console => self.system.print(text).map(|()| text.len() as u64),
            _ => Err(EBADF),
        }
    }

    /// `sendfile`, from where the file was read last.
    fn send(&mut self, to: u64, from: u64, count: u64) -> Result<u64, Error> {
        let bytes = self.next(from, count)?;
        self.print(to, &bytes)
    }

    /// What a path in the program's memory leads to.
    fn find(&mut self, directory: i32, path: u64) -> Result<Open, Error> {
        let path = read_text(&self.space, path)?;
        let from = match (directory, path.starts_with(b"/")) {
            (AT_FDCWD, _) | (_, true) => &[],
            (descriptor, _) => match self.opened(descriptor as u64)? {
                Open::Directory(path, _) => &path[..],
                _ => return Err(ENOTDIR),
            },
        };
        let path = files::resolve(from, &path);
        let files = &self.system.files;
        match files.find(b"", &path) {
            Some(Node::File(file)) => Ok(Open::File(file, 0)),
            Some(Node::Directory(path)) => Ok(Open::Directory(path, 0)),
            None => Err(ENOENT),
        }
    }

    fn open(&mut self, directory: i32, path: u64, flags: u64) -> Result<u64, Error> {
        let open = self.find(directory, path)?;
        if flags & O_ACCMODE != 0 {
            return Err(EROFS);
        }
        let free = (0..MOST_FILES).find(|at| self.files.get(*at).is_none_or(Option::is_none));
        let at = free.ok_or(EMFILE)?;
        if at == self.files.len() {
            self.files.push(None);
        }
        self.files[at] = Some(open);
        Ok(at as u64)
    }

    fn stat(&mut self, at: i32, path: u64, to: u64, flags: u64) -> Result<u64, Error> {
        let is_empty = path == 0 || read_text(&self.space, path)?.is_empty();
        let found;
        let of = match flags & AT_EMPTY_PATH != 0 && is_empty {
            true => self.opened(at as u64)?,
            false => {
                found = self.find(at, path)?;
                &found
            }
        };
        let (mode, size) = match of {
            Open::Nothing | Open::Console => (CHARACTER | 0o666, 0),
            Open::File(file, _) => (REGULAR | 0o444, file.size),
            Open::Directory(..) => (DIRECTORY | 0o555, 0),
        };
        write_words(&self.space, to, &files::stat(mode, size)).map(|()| 0)
    }

    fn entries(&mut self, descriptor: u64, to: u64, room: u64) -> Result<u64, Error> {
        let system = self.system;
        let Open::Directory(path, told) = self.opened(descriptor)? else {
            return Err(ENOTDIR);
        };
        let names = system.files.names(path);
        let names = names
            .iter()
            .map(|(name, is_directory)| (&name[..], *is_directory));
        let all = [(&b"."[..], true), (b"..", true)].into_iter().chain(names);
        let (bytes, now) = files::entries(all, *told, room.min(MOST_BYTES) as usize)?;
        *told = now;
        write(&self.space, to, &bytes).map(|()| bytes.len() as u64)
    }
}
