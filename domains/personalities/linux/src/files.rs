//! What a process has open.

use crate::bells::Bell;
use crate::counters::EventCounter;
use crate::disk::{Disk, Listing, OnDisk, SEEK_DATA, SEEK_HOLE};
use crate::epoll::Epoll;
use crate::errno::{EBADF, EINVAL, EIO, EISDIR, ENOSPC, ENOTDIR, ENXIO, EROFS, ESPIPE, Error};
use crate::pipes::PipeEnd;
use crate::sockets::Socket;
use crate::special::system::Switch;
use crate::stream::Stream;
use crate::task::Task;
use crate::terminal::Terminal;
use crate::walk::Stand;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use domain_rt::sync::Mutex;
use guests::archive::File;
use interfaces::FileKind;
use linux::files::{self, Attributes, CHARACTER, Named};
use mounts::Seat;

/// Something that is open.
pub enum Open {
    Console(Arc<Stream>),
    Terminal(Arc<Terminal>),
    /// `/dev/null`.
    Nothing,
    /// `/dev/zero`.
    Zeros,
    /// `/dev/full`: zeros, and no room.
    Full,
    /// `/dev/random`, `/dev/urandom`.
    Random,
    /// What is told to do something.
    Switch(Switch),
    /// What was told when it was opened.
    Text(Vec<u8>, AtomicU64),
    File(File, AtomicU64),
    /// A file of the disk.
    Disk(OnDisk),
    Directory(Directory),
    Spot(Spot),
    Pipe(PipeEnd),
    Socket(Socket),
    /// What a program waits for.
    Epoll(Arc<Epoll>),
    Counter(EventCounter),
}

/// An open directory.
pub struct Directory {
    pub stand: Stand,
    /// It was opened by `O_PATH`: to stand for a place in paths, and for nothing else.
    pub is_place: bool,
    /// How many of its names were told.
    told: AtomicU64,
    /// If it is on the disk.
    listing: Mutex<Listing>,
    /// If it is not: names, and kinds of what they lead to.
    names: Vec<(Vec<u8>, u32)>,
}

/// What `O_PATH` opens, if it is no directory: something on the disk that stands for a place in
/// paths, and is neither read nor written to.
pub struct Spot {
    pub path: Vec<u8>,
    pub disk: Arc<Disk>,
    pub seat: Arc<Seat>,
    pub kind: FileKind,
}

/// What is told of a device.
pub fn device_of(node: u32) -> Attributes {
    Attributes {
        node,
        inode: node.into(),
        ..Attributes::new(CHARACTER | 0o666, 0)
    }
}

/// Puts what a service has read where it is wanted.
fn put(bytes: &[u8], to: &mut [u8]) -> Result<usize, Error> {
    to.get_mut(..bytes.len()).ok_or(EIO)?.copy_from_slice(bytes);
    Ok(bytes.len())
}

impl Open {
    /// Reads some bytes into `to`, which has room for as many as are wanted; how many, none at the
    /// end.
    pub fn read(&self, task: &Task, to: &mut [u8]) -> Result<usize, Error> {
        match self {
            Open::Console(stream) => stream.read(task, to),
            Open::Terminal(terminal) => terminal.read(task, to),
            Open::Nothing | Open::Switch(_) => Ok(0),
            Open::Zeros | Open::Full => {
                to.fill(0);
                Ok(to.len())
            }
            Open::Random => put(&task.process.system.random(to.len())?, to),
            Open::Text(text, position) => {
                let at = position.load(Ordering::Relaxed);
                let rest = text.get(at as usize..).unwrap_or_default();
                let count = rest.len().min(to.len());
                position.store(at + count as u64, Ordering::Relaxed);
                put(&rest[..count], to)
            }
            Open::File(file, position) => {
                let at = position.load(Ordering::Relaxed);
                let bytes = task.process.system.files.read(*file, at, to.len())?;
                position.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                put(&bytes, to)
            }
            // Its bytes do not come by way of a buffer.
            Open::Disk(_) => Err(EINVAL),
            Open::Directory(Directory { is_place: true, .. }) | Open::Spot(_) => Err(EBADF),
            Open::Directory(_) => Err(EISDIR),
            Open::Pipe(end) => end.read(task, to),
            Open::Counter(counter) => counter.read(task, to),
            Open::Socket(_) | Open::Epoll(_) => Err(EINVAL),
        }
    }

    /// Writes some bytes, at least one; how many.
    pub fn write(&self, task: &Task, bytes: &[u8]) -> Result<usize, Error> {
        match self {
            Open::Console(stream) => stream.write(bytes),
            Open::Terminal(terminal) => terminal.write(task, bytes),
            Open::Nothing | Open::Zeros | Open::Random => Ok(bytes.len()),
            Open::Full => Err(ENOSPC),
            Open::Switch(switch) => {
                switch.write(task, bytes)?;
                Ok(bytes.len())
            }
            Open::File(..) | Open::Text(..) | Open::Directory(_) | Open::Spot(_) => Err(EBADF),
            Open::Disk(_) => Err(EINVAL),
            Open::Pipe(end) => end.write(task, bytes),
            Open::Counter(counter) => counter.write(task, bytes),
            Open::Socket(_) | Open::Epoll(_) => Err(EINVAL),
        }
    }

    /// Whether one can read (1) and write (4) without waiting, or the other end is gone (8, 16); if
    /// not, `bell` hears of a change.
    pub fn ready(&self, bell: &Bell) -> u64 {
        match self {
            Open::Pipe(end) => end.ready(bell),
            Open::Socket(socket) => socket.ready(bell),
            Open::Epoll(set) => set.ready(bell),
            Open::Counter(counter) => counter.ready(bell),
            Open::Console(stream) => stream.ready(bell),
            Open::Terminal(terminal) => terminal.ready(bell),
            _ => 5,
        }
    }

    /// What `/proc` says that it is.
    pub fn name(&self) -> Vec<u8> {
        let name: &[u8] = match self {
            Open::Console(_) => b"/dev/console",
            Open::Terminal(_) => b"/dev/tty",
            Open::Nothing => b"/dev/null",
            Open::Zeros => b"/dev/zero",
            Open::Full => b"/dev/full",
            Open::Random => b"/dev/urandom",
            // A path that may have changed is not told here.
            Open::Disk(open) => &open.path,
            Open::Spot(spot) => &spot.path,
            Open::Directory(_) => b"/",
            Open::Pipe(end) => return alloc::format!("pipe:[{}]", end.number()).into_bytes(),
            Open::Socket(socket) => {
                return alloc::format!("socket:[{}]", socket.number()).into_bytes();
            }
            Open::Epoll(_) => b"anon_inode:[eventpoll]",
            Open::Counter(_) => b"anon_inode:[eventfd]",
            Open::File(..) | Open::Text(..) => b"/proc",
            Open::Switch(_) => b"/sys",
        };
        name.to_vec()
    }

    /// Sets the place from which is read next.
    pub fn seek(&self, offset: i64, from: u64) -> Result<u64, Error> {
        let (position, size) = match self {
            Open::File(file, position) => (position, file.size),
            Open::Text(text, position) => (position, text.len() as u64),
            Open::Nothing
            | Open::Zeros
            | Open::Full
            | Open::Random
            | Open::Switch(_)
            | Open::Epoll(_)
            | Open::Counter(_) => {
                return Ok(0);
            }
            Open::Disk(file) => return file.seek(offset, from),
            Open::Directory(directory) => return directory.seek(offset, from),
            Open::Spot(_) => return Err(EBADF),
            _ => return Err(ESPIPE),
        };
        let base = match from {
            0 => 0,
            1 => position.load(Ordering::Relaxed),
            2 => size,
            // It has no holes.
            SEEK_DATA | SEEK_HOLE if matches!(self, Open::File(..)) => {
                let offset = u64::try_from(offset).ok().filter(|offset| *offset < size);
                let offset = offset.ok_or(ENXIO)?;
                let to = if from == SEEK_DATA { offset } else { size };
                position.store(to, Ordering::Relaxed);
                return Ok(to);
            }
            _ => return Err(EINVAL),
        };
        let to = base.checked_add_signed(offset).ok_or(EINVAL)?;
        position.store(to, Ordering::Relaxed);
        Ok(to)
    }

    /// Entries of a directory in the form of `getdents64`, as many as `room` bytes have room for.
    pub fn entries(&self, room: usize) -> Result<Vec<u8>, Error> {
        match self {
            Open::Directory(Directory { is_place: true, .. }) | Open::Spot(_) => Err(EBADF),
            Open::Directory(directory) => directory.entries(room),
            _ => Err(ENOTDIR),
        }
    }

    /// Does something with the disk that it is on and its number there, which is held meanwhile.
    ///
    /// # Errors
    /// `EBADF`: it stands for a place alone. Those of [`with_place`](Self::with_place).
    pub fn with_node<T>(&self, act: impl Fn(&Disk, u64) -> Result<T, Error>) -> Result<T, Error> {
        match self {
            Open::Directory(Directory { is_place: true, .. }) | Open::Spot(_) => Err(EBADF),
            _ => self.with_place(act),
        }
    }

    /// As [`with_node`](Self::with_node), where a path leads to it: `/proc/self/fd` has names for
    /// what stands for a place, too.
    ///
    /// # Errors
    /// `EROFS`: it is not on a disk. `EINVAL`: a device. Those of `act`.
    pub fn with_place<T>(&self, act: impl Fn(&Disk, u64) -> Result<T, Error>) -> Result<T, Error> {
        match self {
            Open::Disk(open) => {
                let (disk, inode) = open.file.node();
                act(disk, inode)
            }
            Open::Spot(spot) => act(&spot.disk, spot.seat.inode()),
            Open::Directory(directory) => match &directory.stand {
                Stand::Disk(folder) => act(&folder.disk, folder.seat.inode()),
                Stand::Made(_) => Err(EROFS),
            },
            Open::Pipe(end) => {
                let (disk, inode) = end.node()?;
                act(&disk, inode)
            }
            Open::File(..) | Open::Text(..) => Err(EROFS),
            _ => Err(EINVAL),
        }
    }

    /// What `stat` tells of it.
    pub fn attributes(&self) -> Result<Attributes, Error> {
        let (mode, size) = match self {
            Open::Console(_) => return Ok(device_of(0x501)),
            Open::Terminal(_) => return Ok(device_of(0x500)),
            Open::Nothing => return Ok(device_of(0x103)),
            Open::Zeros => return Ok(device_of(0x105)),
            Open::Full => return Ok(device_of(0x107)),
            Open::Random => return Ok(device_of(0x109)),
            Open::Text(..) => (0o100_444, 0),
            Open::Switch(_) => (0o100_200, 0),
            Open::File(file, _) => (0o100_755, file.size),
            Open::Disk(open) => return open.file.attributes(),
            Open::Directory(directory) => match &directory.stand {
                Stand::Disk(folder) => return folder.disk.attributes_of(&folder.seat),
                Stand::Made(_) => (0o40_755, 0),
            },
            Open::Spot(spot) => return spot.disk.attributes_of(&spot.seat),
            Open::Pipe(end) => return end.attributes(),
            Open::Socket(socket) => return Ok(socket.attributes()),
            Open::Epoll(_) | Open::Counter(_) => (0o600, 0),
        };
        Ok(Attributes::new(mode, size))
    }
}

impl Directory {
    /// A directory; if it is not on the disk, with its names and their kinds.
    pub fn new(stand: Stand, names: Vec<(Vec<u8>, u32)>) -> Self {
        Directory {
            stand,
            is_place: false,
            told: AtomicU64::new(0),
            listing: Mutex::default(),
            names,
        }
    }

    /// Goes to a place that was told with a name, or to the beginning.
    fn seek(&self, offset: i64, from: u64) -> Result<u64, Error> {
        if self.is_place {
            return Err(EBADF);
        }
        let at = match from {
            0 => 0,
            1 => self.place(),
            _ => return Err(EINVAL),
        };
        let to = at.checked_add_signed(offset).ok_or(EINVAL)?;
        if from == 0 || offset != 0 {
            self.told.store(to, Ordering::Relaxed);
            *self.listing.lock() = Listing::behind(to);
        }
        Ok(to)
    }

    fn place(&self) -> u64 {
        match &self.stand {
            Stand::Disk(_) => self.listing.lock().count(),
            Stand::Made(_) => self.told.load(Ordering::Relaxed),
        }
    }

    fn entries(&self, room: usize) -> Result<Vec<u8>, Error> {
        if let Stand::Disk(folder) = &self.stand {
            return self.listing.lock().next(&folder.disk, &folder.seat, room);
        }
        let told = self.told.load(Ordering::Relaxed);
        let mut bytes = Vec::new();
        let rest = (1_u64..).zip(&self.names).skip(told as usize);
        let rest = rest.map(|(inode, (name, kind))| Named {
            name,
            kind: *kind,
            inode,
        });
        let count = files::list(&mut bytes, rest, told, room)?;
        self.told.store(told + count, Ordering::Relaxed);
        Ok(bytes)
    }
}
