//! The tree of files of the boot archive, and what a process has open.

use crate::disk::DiskFile;
use crate::errno::{EBADF, EISDIR, ENOMEM, ENOTDIR, EPIPE, EROFS, ESPIPE, Error};
use crate::signals::Ears;
use crate::system::System;
use crate::task::Task;
use crate::terminal::Terminal;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use domain_rt::sync::Mutex;
use interfaces::{Archive, Console, Handle, RVec, RpcResult};
use pipe::{Blocked, End, Pipe};

/// The program behind each name in `/bin`.
const PROGRAM: &[u8] = b"busybox";

/// A file of the archive.
#[derive(Clone, Copy)]
pub struct File {
    index: u32,
    pub size: u64,
}

/// What a path leads to.
pub enum Node {
    File(File),
    /// With its path, without a slash at the beginning or end.
    Directory(Vec<u8>),
}

/// All files.
pub struct Files {
    archive: Handle<dyn Archive>,
    /// In the order of the archive.
    paths: Vec<(Vec<u8>, File)>,
}

impl Files {
    /// Reads the archive's list.
    pub fn new(archive: Handle<dyn Archive>) -> RpcResult<Self> {
        let mut paths = Vec::new();
        for index in 0.. {
            let Some(entry) = archive.entry(index)? else {
                break;
            };
            let size = entry.size;
            paths.push((Vec::from(entry.path.as_str()), File { index, size }));
        }
        Ok(Files { archive, paths })
    }

    /// What `path` leads to, from the directory `from` on.
    pub fn find(&self, from: &[u8], path: &[u8]) -> Option<Node> {
        let path = resolve(from, path);
        let file = self.paths.iter().find(|(there, _)| *there == path);
        if let Some((_, file)) = file {
            return Some(Node::File(*file));
        }
        let is_below =
            |there: &[u8]| there.starts_with(&path) && there.get(path.len()) == Some(&b'/');
        let is_directory = path.is_empty() || self.paths.iter().any(|(there, _)| is_below(there));
        is_directory.then_some(Node::Directory(path))
    }

    /// The program at `path`: each name in `/bin` is one of busybox.
    pub fn program(&self, path: &[u8]) -> Option<File> {
        let path = resolve(b"", path);
        let name = path
            .strip_prefix(b"bin/")
            .filter(|name| !name.contains(&b'/'));
        let path = if name.is_some() { PROGRAM } else { &path };
        match self.find(b"", path) {
            Some(Node::File(file)) => Some(file),
            _ => None,
        }
    }

    /// The names in a directory, and whether they are directories.
    pub fn names(&self, directory: &[u8]) -> BTreeSet<(Vec<u8>, bool)> {
        let below = self.paths.iter().filter_map(|(path, _)| match directory {
            b"" => Some(&path[..]),
            _ => path.strip_prefix(directory)?.strip_prefix(b"/"),
        });
        let name = |rest: &[u8]| match rest.iter().position(|byte| *byte == b'/') {
            Some(end) => (Vec::from(&rest[..end]), true),
            None => (Vec::from(rest), false),
        };
        below.map(name).collect()
    }

    /// All of a file.
    pub fn content(&self, file: File) -> Result<Vec<u8>, Error> {
        let mut content = Vec::new();
        let size = file.size as usize;
        content.try_reserve_exact(size).map_err(|_| ENOMEM)?;
        while content.len() < size {
            let piece = self.read(file, content.len() as u64, 256 << 10)?;
            if piece.is_empty() {
                break;
            }
            content.extend_from_slice(&piece);
        }
        Ok(content)
    }

    fn read(&self, file: File, offset: u64, count: usize) -> Result<RVec<u8>, Error> {
        let buffer = RVec::filled(0, count).map_err(|_| ENOMEM)?;
        let read = self.archive.read(file.index, offset, buffer);
        read.map_err(|_| Error(5))
    }
}

/// The path from the root, without slashes at its ends, and without `.` and `..`.
pub fn resolve(from: &[u8], path: &[u8]) -> Vec<u8> {
    let from = if path.starts_with(b"/") { b"" } else { from };
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in from
        .split(|byte| *byte == b'/')
        .chain(path.split(|byte| *byte == b'/'))
    {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join(&b'/')
}

/// Something that is open.
pub enum Open {
    Console(Handle<dyn Console>),
    Terminal(Arc<Terminal>),
    /// `/dev/null`.
    Nothing,
    /// `/dev/zero`.
    Zeros,
    File(File, AtomicU64),
    /// A file of the disk.
    Disk(Arc<DiskFile>, AtomicU64),
    /// Its path, and how many of its names were told.
    Directory(Vec<u8>, AtomicU64),
    Pipe(PipeEnd),
}

/// One end of a pipe. It is closed with the last descriptor.
pub struct PipeEnd {
    pipe: Arc<Mutex<Watched>>,
    end: End,
}

/// A pipe, and who waits for it to change.
struct Watched {
    pipe: Pipe,
    waiting: Vec<Arc<Ears>>,
}

impl Watched {
    /// Notes that a process waits. It may be noted already, for another reason to wake up.
    fn watch(&mut self, ears: &Arc<Ears>) -> Result<(), Error> {
        if !self.waiting.iter().any(|other| Arc::ptr_eq(other, ears)) {
            self.waiting.try_reserve(1).map_err(|_| ENOMEM)?;
            self.waiting.push(ears.clone());
        }
        Ok(())
    }
}

impl PipeEnd {
    /// Does something with the pipe, which wakes those that wait, or waits itself until it can be
    /// done.
    fn change(
        &self,
        task: &Task,
        mut act: impl FnMut(&mut Pipe) -> Result<usize, Blocked>,
    ) -> Result<usize, Error> {
        task.until(|| {
            let mut watched = self.pipe.lock();
            match act(&mut watched.pipe) {
                Err(Blocked::Wait) => watched.watch(&task.ears).err().map(Err),
                Err(Blocked::Broken) => Some(Err(EPIPE)),
                Err(Blocked::NoMemory) => Some(Err(ENOMEM)),
                Ok(count) => {
                    let waiting = core::mem::take(&mut watched.waiting);
                    drop(watched);
                    ring(waiting);
                    Some(Ok(count))
                }
            }
        })?
    }
}

/// Puts what a service has read where it is wanted.
fn put(bytes: &[u8], to: &mut [u8]) -> Result<usize, Error> {
    to.get_mut(..bytes.len())
        .ok_or(Error(5))?
        .copy_from_slice(bytes);
    Ok(bytes.len())
}

/// Tells those that have waited.
pub fn ring(waiting: Vec<Arc<Ears>>) {
    for ears in waiting {
        ears.ring();
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        let mut watched = self.pipe.lock();
        watched.pipe.close(self.end);
        let waiting = core::mem::take(&mut watched.waiting);
        drop(watched);
        ring(waiting);
    }
}

/// The two ends of a new pipe.
pub fn pipe() -> [Open; 2] {
    let pipe = Arc::new(Mutex::new(Watched {
        pipe: Pipe::new(),
        waiting: Vec::new(),
    }));
    [End::Read, End::Write].map(|end| {
        Open::Pipe(PipeEnd {
            pipe: pipe.clone(),
            end,
        })
    })
}

impl Open {
    /// Reads some bytes into `to`, which has room for as many as are wanted; how many, none at the
    /// end.
    pub fn read(&self, task: &Task, to: &mut [u8]) -> Result<usize, Error> {
        match self {
            Open::Console(console) => {
                let buffer = RVec::filled(0, to.len()).map_err(|_| ENOMEM)?;
                let bytes = console.read(buffer).map_err(|_| Error(5))?;
                put(&bytes, to)
            }
            Open::Terminal(terminal) => terminal.read(task, to),
            Open::Nothing => Ok(0),
            Open::Zeros => {
                to.fill(0);
                Ok(to.len())
            }
            Open::File(file, position) => {
                let at = position.load(Ordering::Relaxed);
                let bytes = task.process.system.files.read(*file, at, to.len())?;
                position.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                put(&bytes, to)
            }
            Open::Disk(file, position) => {
                let at = position.load(Ordering::Relaxed);
                let (bytes, count) = file.read(at, to.len())?;
                position.fetch_add(count as u64, Ordering::Relaxed);
                put(&bytes[..count], to)
            }
            Open::Directory(..) => Err(EISDIR),
            Open::Pipe(end) if end.end == End::Read => end.change(task, |pipe| pipe.read(to)),
            Open::Pipe(_) => Err(EBADF),
        }
    }

    /// Writes some bytes, at least one; how many.
    pub fn write(&self, task: &Task, bytes: &[u8]) -> Result<usize, Error> {
        match self {
            Open::Console(console) => {
                let text = RVec::from_slice(bytes).map_err(|_| ENOMEM)?;
                console.write(&text).map_err(|_| Error(5))?;
                Ok(bytes.len())
            }
            Open::Terminal(terminal) => terminal.write(bytes),
            Open::Nothing | Open::Zeros => Ok(bytes.len()),
            Open::File(..) | Open::Disk(..) => Err(EROFS),
            Open::Directory(..) => Err(EISDIR),
            Open::Pipe(end) if end.end == End::Write => end.change(task, |pipe| pipe.write(bytes)),
            Open::Pipe(_) => Err(EBADF),
        }
    }

    /// Whether one can read (1) and write (4) without waiting; if not, `ears` hear of a change. Of
    /// a console nobody knows.
    pub fn ready(&self, ears: &Arc<Ears>) -> u64 {
        let (pipe, end) = match self {
            Open::Pipe(PipeEnd { pipe, end }) => (pipe, *end),
            Open::Terminal(terminal) => return terminal.ready(ears),
            _ => return 5,
        };
        let mut watched = pipe.lock();
        // Without memory it looks as if it were ready, and the next call says why it is not.
        match watched.pipe.is_ready(end) || watched.watch(ears).is_err() {
            true => 5,
            false => 0,
        }
    }

    /// Sets the place from which is read next.
    pub fn seek(&self, offset: i64, from: u64) -> Result<u64, Error> {
        let (position, size) = match self {
            Open::File(file, position) => (position, file.size),
            // Its size is asked for where it counts.
            Open::Disk(file, position) if from == 2 => (position, file.mode_and_size()?.1),
            Open::Disk(_, position) => (position, 0),
            Open::Directory(_, position) => (position, 0),
            _ => return Err(ESPIPE),
        };
        let base = match from {
            0 => 0,
            1 => position.load(Ordering::Relaxed),
            2 => size,
            _ => return Err(crate::errno::EINVAL),
        };
        let to = base
            .checked_add_signed(offset)
            .ok_or(crate::errno::EINVAL)?;
        position.store(to, Ordering::Relaxed);
        Ok(to)
    }

    /// Entries of a directory in the form of `getdents64`, as many as `room` bytes have room for.
    pub fn entries(&self, system: &System, room: usize) -> Result<Vec<u8>, Error> {
        let Open::Directory(path, told) = self else {
            return Err(ENOTDIR);
        };
        let mut bytes = Vec::new();
        let skipped = told.load(Ordering::Relaxed);
        for (number, (name, is_directory)) in system.names(path)?.iter().enumerate() {
            let number = number as u64 + 1;
            let length = (19 + name.len() + 1).next_multiple_of(8);
            if number <= skipped {
                continue;
            }
            if bytes.len() + length > room {
                break;
            }
            let start = bytes.len();
            bytes.extend(number.to_le_bytes());
            bytes.extend(number.to_le_bytes());
            bytes.extend((length as u16).to_le_bytes());
            bytes.push(if *is_directory { 4 } else { 8 });
            bytes.extend(name);
            bytes.resize(start + length, 0);
            told.store(number, Ordering::Relaxed);
        }
        Ok(bytes)
    }

    /// Mode and size, as `stat` has them.
    pub fn mode_and_size(&self) -> Result<(u32, u64), Error> {
        Ok(match self {
            Open::Console(_) | Open::Terminal(_) | Open::Nothing | Open::Zeros => (0o20_666, 0),
            Open::File(file, _) => (0o100_755, file.size),
            Open::Disk(file, _) => file.mode_and_size()?,
            Open::Directory(..) => (0o40_755, 0),
            Open::Pipe(_) => (0o10_600, 0),
        })
    }
}
