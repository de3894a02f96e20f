//! A file that is open or mapped.

use super::{Disk, Node, attributes, fs_error};
use crate::errno::{EBADF, EFAULT, EINVAL, EIO, ENOMEM, ENXIO, Error};
use crate::lent::Lent;
use crate::memory::PAGE;
use crate::task::Task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use domain_rt::sync::Mutex;
use domain_rt::user::{UserDirection, UserSegment};
use interfaces::{FileKind, FileSystem, FsError, Handle, MemoryError, RVec, RpcError, VmoView};
use linux::files::Attributes;
use mounts::{Live, Seat};

/// Pages that are brought at once, for a fault and for a read.
const AROUND: u64 = 16;
const AHEAD: u64 = 64;
/// How often one looks again at pages that go as soon as they have come.
const ATTEMPTS: u32 = 64;

/// `lseek` goes to data or to a hole.
pub const SEEK_DATA: u64 = 3;
pub const SEEK_HOLE: u64 = 4;

/// Bytes that are moved at once, and the most that one call moves, as on Linux.
const PIECE: u64 = 256 << 10;
const MOST_BYTES: u64 = 0x7fff_f000;

/// No file is longer, as Linux has it for file systems with blocks of 4 KiB.
const MOST_OFFSET: u64 = (16 << 40) - 4096;

/// A way to a file's pages.
type View = Arc<Handle<dyn VmoView>>;

/// The same, and the instance that has given it.
type Way = (u32, View);

/// A file, which is not removed as long as this is there.
pub struct DiskFile {
    disk: Arc<Disk>,
    inode: u64,
    /// A way to its pages, once somebody reads or maps it, and which instance has given it: who
    /// just writes needs none.
    view: Mutex<Option<Way>>,
    /// Passes from instance to instance.
    seat: Arc<Seat>,
    /// See [`Disk::lock_of`], once something is changed.
    lock: Mutex<Option<Arc<Mutex<()>>>>,
}

/// A file that is mapped.
#[derive(Clone)]
pub struct Mapped {
    pub file: Arc<DiskFile>,
    /// What is written to the mapping is the file's.
    pub is_changed: bool,
}

/// What an open file may be used for.
#[derive(Clone, Copy)]
pub struct Access {
    pub reads: bool,
    pub writes: bool,
    /// All that is written comes behind the end.
    pub appends: bool,
}

impl Access {
    /// To be read.
    pub const READ: Access = Access {
        reads: true,
        writes: false,
        appends: false,
    };
}

/// An open file: what all its descriptors have in common.
pub struct OnDisk {
    /// Where it was found, from the root on.
    pub path: Vec<u8>,
    pub file: Arc<DiskFile>,
    pub access: Access,
    /// All that is written comes behind the end.
    pub appends: AtomicBool,
    /// Where is read and written next; locked meanwhile.
    position: Mutex<u64>,
}

/// Has `count` bytes moved a piece at a time by `each`, by where the piece begins and how many
/// bytes it has; how many were moved, an error only where none was. A program that is ended does
/// not wait for all of them.
fn in_pieces(
    task: &Task,
    count: u64,
    mut each: impl FnMut(u64, u64) -> Result<u64, Error>,
) -> Result<u64, Error> {
    let count = count.min(MOST_BYTES);
    let mut done = 0;
    loop {
        let piece = PIECE.min(count - done);
        match each(done, piece) {
            Ok(moved) => {
                done += moved;
                if moved < piece || done == count || task.is_ending() {
                    return Ok(done);
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => return Ok(done),
        }
    }
}

impl DiskFile {
    /// The file whose inode is held so.
    pub fn new(disk: &Arc<Disk>, seat: Arc<Seat>) -> Self {
        DiskFile {
            disk: disk.clone(),
            inode: seat.inode(),
            view: Mutex::new(None),
            seat,
            lock: Mutex::new(None),
        }
    }

    /// Its number, which no other file has as long as this is there.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// The lock of its inode.
    fn lock(&self) -> Arc<Mutex<()>> {
        let mut lock = self.lock.lock();
        lock.get_or_insert_with(|| self.disk.lock_of(self.inode))
            .clone()
    }

    /// Asks something that may be asked twice, with the file held by who is asked.
    fn ask<T>(
        &self,
        mut question: impl FnMut(&Handle<dyn FileSystem>) -> Result<T, FsError>,
    ) -> Result<T, Error> {
        let asked = self
            .disk
            .mount
            .ask_held(&self.seat, |live| question(&live.fs));
        asked.map_err(fs_error)
    }

    /// What `stat` tells of it.
    pub fn attributes(&self) -> Result<Attributes, Error> {
        let of = self.ask(|fs| fs.metadata(self.inode))?;
        Ok(attributes(&of))
    }

    /// A way to its pages, by the instance that serves.
    fn pages(&self) -> Result<View, Error> {
        let serves = self.disk.mount.current().map(|live| live.id);
        let mut view = self.view.lock();
        if let Some((by, view)) = &*view
            && serves == Some(*by)
        {
            return Ok(view.clone());
        }
        let ask = |live: &Live| Ok((live.id, live.fs.pages(self.inode)?));
        let (by, new) = self
            .disk
            .mount
            .ask_held(&self.seat, ask)
            .map_err(fs_error)?;
        Ok(view.insert((by, Arc::new(new))).1.clone())
    }

    /// Has the way to its pages asked for again.
    fn forget_way(&self) {
        let old = self.view.lock().take();
        drop(old);
    }

    /// Its length; if that is beyond `offset` a way to its pages as well, by one question.
    fn size_to_read(&self, offset: u64) -> Result<(u64, Option<View>), Error> {
        let ask = |live: &Live| {
            let size = live.fs.metadata(self.inode)?.size;
            if offset >= size {
                return Ok((size, None));
            }
            if let Some((by, view)) = &*self.view.lock()
                && *by == live.id
            {
                return Ok((size, Some((view.clone(), None))));
            }
            let view = Arc::new(live.fs.pages(self.inode)?);
            Ok((size, Some((view, Some(live.id)))))
        };
        let asked = self.disk.mount.ask_held(&self.seat, ask);
        let (size, way) = asked.map_err(fs_error)?;
        let Some((view, by)) = way else {
            return Ok((size, None));
        };
        if let Some(by) = by {
            let old = self.view.lock().replace((by, view.clone()));
            drop(old);
        }
        Ok((size, Some(view)))
    }

    /// Another way to its pages.
    fn view(&self) -> Result<Handle<dyn VmoView>, Error> {
        self.pages()?.duplicate().map_err(|_| ENOMEM)
    }

    /// A way to its pages for mappings that are written to.
    fn view_to_change(&self) -> Result<Handle<dyn VmoView>, Error> {
        self.seat.note_shared();
        self.ask(|fs| fs.pages_to_change(self.inode))
    }

    /// Has a page ready to be written to through a mapping; whether there is one.
    fn prepare(&self, page: u64) -> Result<bool, Error> {
        self.ask(|fs| fs.prepare(self.inode, page))
    }

    /// Bytes from `offset` on, `count` of them or as many as there are.
    pub fn head(&self, offset: u64, count: usize) -> Result<Vec<u8>, Error> {
        let bytes: RVec<u8> = self.ask(|fs| fs.read(self.inode, offset, RVec::zeroed(count)?))?;
        let mut head = Vec::new();
        head.try_reserve_exact(bytes.len()).map_err(|_| ENOMEM)?;
        head.extend_from_slice(&bytes);
        Ok(head)
    }

    /// Sees to it that pages from `first` on are there; whether one is. None is behind the end.
    fn bring(&self, first: u64, count: u64) -> Result<bool, Error> {
        let brought = self.ask(|fs| fs.populate(self.inode, first, count));
        brought.map(|count| count > 0)
    }

    /// Has pages from `first` on begin to come, and waits for the first while it is on its way, at
    /// the page itself: no thread waits in a service. Whether it was on its way; what has become of
    /// it, or why it was not, [`bring`](Self::bring) says.
    fn await_page(&self, first: u64, count: u64) -> Result<bool, Error> {
        let coming = self.ask(|fs| match fs.request(self.inode, first, count) {
            Err(FsError::Unsupported) => Ok(0),
            coming => coming,
        })?;
        if coming == 0 {
            return Ok(false);
        }
        Ok(self.pages()?.await_load(first, None).is_ok())
    }

    /// Reads at `offset` to byte `at` of what is lent, `count` bytes at most, copied once; short
    /// only at the end of the file.
    ///
    /// # Errors
    /// Not one byte could be read.
    fn read_to(&self, to: &Lent<'_>, at: u64, offset: u64, count: u64) -> Result<u64, Error> {
        let (size, mut way) = self.size_to_read(offset)?;
        let count = size.saturating_sub(offset).min(count);
        let (mut done, mut failed) = (0, 0);
        while done < count && !to.is_ending() {
            let (from, left) = (offset + done, count - done);
            if failed > 1 {
                // What was made ready may be elsewhere by now.
                self.forget_way();
            }
            let view = match way.take() {
                Some(view) => view,
                None => self.pages()?,
            };
            let copied = view.read_to(from, left, to.buffer(), at + done);
            let next = match copied {
                Ok(more) if more > 0 => {
                    done += more;
                    failed = 0;
                    continue;
                }
                // Others take what was made ready again and again.
                _ if failed == ATTEMPTS => Err(EIO),
                Ok(_) => Err(EFAULT),
                Err(MemoryError::Unready) => to.touch(at + done, left).map(|()| true),
                Err(MemoryError::Absent | MemoryError::Loading | MemoryError::Beyond) => {
                    let first = from / PAGE;
                    let wanted = (offset + count).div_ceil(PAGE) - first;
                    self.bring(first, wanted.max(AHEAD))
                }
                Err(MemoryError::Rpc(RpcError::NoMemory)) => Err(ENOMEM),
                Err(_) => Err(EIO),
            };
            failed += 1;
            match next {
                Ok(true) => {}
                Err(error) if done == 0 => return Err(error),
                // It has become shorter, or failed after some.
                _ => break,
            }
        }
        Ok(done)
    }

    /// Writes at `offset`, or at the end, from byte `at` of what is lent; where, and how many
    /// bytes.
    fn write_part(
        &self,
        from: &Lent<'_>,
        at: u64,
        offset: Option<u64>,
        count: u64,
    ) -> Result<(u64, u64), Error> {
        let bytes = from.buffer();
        self.seat.note_written();
        match offset {
            Some(offset) => {
                let write = |fs: &Handle<dyn FileSystem>| {
                    fs.write_from(self.inode, offset, count, bytes, at)
                };
                Ok((offset, self.ask(write)?))
            }
            // Once, or the bytes would be there twice.
            None => {
                let append =
                    |fs: &Handle<dyn FileSystem>| fs.append_from(self.inode, count, bytes, at);
                self.disk.mount.append(&self.seat, append).map_err(fs_error)
            }
        }
    }

    /// Writes `count` bytes from byte `at` of what is lent on, to `offset`, or at the end; where it
    /// ends, and how many bytes: fewer where the disk is full, or the program has no more.
    ///
    /// # Errors
    /// Not one byte could be written.
    fn write_from(
        &self,
        from: &Lent<'_>,
        at: u64,
        offset: Option<u64>,
        count: u64,
    ) -> Result<(u64, u64), Error> {
        let (mut done, mut end, mut failed) = (0, offset.unwrap_or(0), 0);
        while done < count && !from.is_ending() {
            let to = offset.map(|offset| offset.saturating_add(done));
            let error = match self.write_part(from, at + done, to, count - done) {
                Ok((place, more)) if more > 0 => {
                    (done, end, failed) = (done + more, place.saturating_add(more), 0);
                    continue;
                }
                Ok(_) if failed < ATTEMPTS => {
                    failed += 1;
                    match from.touch(at + done, count - done) {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Ok(_) => EFAULT,
                Err(error) => error,
            };
            match done {
                0 => return Err(error),
                _ => break,
            }
        }
        Ok((end, done))
    }

    /// Makes it shorter, or longer by zeros.
    pub fn set_length(&self, length: u64) -> Result<(), Error> {
        let lock = self.lock();
        let _alone = lock.lock();
        self.ask(|fs| fs.truncate(self.inode, length))
    }

    /// Returns when what was written to it before would survive a power cut; what the bytes are
    /// found without only if not of `data_only`.
    pub fn commit(&self, data_only: bool) -> Result<(), Error> {
        self.ask(|fs| fs.commit_inode(self.inode, 0, u64::MAX, data_only))?;
        self.seat.note_flushed();
        Ok(())
    }

    /// As [`commit`](Self::commit), for some bytes.
    pub fn commit_data(&self, from: u64, end: u64) -> Result<(), Error> {
        self.ask(|fs| fs.commit_inode(self.inode, from, end, true))
    }

    /// Asks for pages, which come later.
    pub fn request(&self, first: u64, count: u64) -> Result<(), Error> {
        self.ask(|fs| match fs.request(self.inode, first, count) {
            // It is advice.
            Ok(_) | Err(FsError::Unsupported) => Ok(()),
            Err(error) => Err(error),
        })
    }

    /// As a path leads to it.
    pub fn as_node(&self) -> Node {
        Node::held(self.inode, FileKind::Regular)
    }

    /// The disk that it is on, and its number there.
    pub fn node(&self) -> (&Arc<Disk>, u64) {
        (&self.disk, self.inode)
    }

    /// `fallocate` that makes a hole.
    pub fn punch(&self, offset: u64, length: u64) -> Result<(), Error> {
        let lock = self.lock();
        let _alone = lock.lock();
        self.ask(|fs| fs.punch(self.inode, offset, length))
    }

    /// Where the next data, or the next hole, begins from `offset` on.
    fn next(&self, offset: u64, hole: bool) -> Result<u64, Error> {
        let next = self.ask(|fs| match hole {
            true => fs.next_hole(self.inode, offset),
            false => fs.next_data(self.inode, offset),
        });
        next?.ok_or(ENXIO)
    }
}

impl Mapped {
    /// A way to the pages.
    pub fn view(&self) -> Result<Handle<dyn VmoView>, Error> {
        match self.is_changed {
            true => self.file.view_to_change(),
            false => self.file.view(),
        }
    }

    /// Has pages ready for a program that has met a fault at a page; whether there are any. It
    /// waits for the file system.
    pub fn bring_around(&self, page: u64) -> Result<bool, Error> {
        self.file.bring(page, AROUND)
    }

    /// As [`bring_around`](Self::bring_around), but what comes is waited for at the pages. Whether
    /// the page may be there now; if it is not, `bring_around` says why.
    pub fn await_around(&self, page: u64) -> bool {
        self.file.await_page(page, AROUND).unwrap_or(false)
    }

    /// Has a page ready for a program that wants to write to it.
    ///
    /// # Errors
    /// `EIO`: it is behind the end, or there is no room on the disk. `ENOMEM`.
    pub fn prepare(&self, page: u64) -> Result<(), Error> {
        match self.is_changed.then(|| self.file.prepare(page)) {
            None | Some(Ok(true)) => Ok(()),
            Some(Err(ENOMEM)) => Err(ENOMEM),
            Some(_) => Err(EIO),
        }
    }
}

impl OnDisk {
    /// The file, at its beginning.
    pub fn new(path: Vec<u8>, file: Arc<DiskFile>, access: Access) -> Self {
        OnDisk {
            path,
            file,
            appends: AtomicBool::new(access.appends),
            access,
            position: Mutex::new(0),
        }
    }

    /// The file, if it may be written to.
    pub fn to_change(&self) -> Result<&Arc<DiskFile>, Error> {
        self.access.writes.then_some(&self.file).ok_or(EBADF)
    }

    /// Reads to a program's memory, as many bytes as there is room for, from where it is or from
    /// `offset` on; how many: fewer only at the end.
    pub fn read(&self, task: &Task, offset: Option<u64>, to: &[UserSegment]) -> Result<u64, Error> {
        if !self.access.reads {
            return Err(EBADF);
        }
        let to = Lent::new(task, to, UserDirection::ToProgram)?;
        let read = |from: u64| {
            in_pieces(task, to.len(), |done, count| {
                self.file
                    .read_to(&to, done, from.saturating_add(done), count)
            })
        };
        if let Some(offset) = offset {
            return read(offset);
        }
        let mut position = self.position.lock();
        let count = read(*position)?;
        *position += count;
        Ok(count)
    }

    /// Writes a program's memory, where it is or at `offset`; how many bytes: fewer only where the
    /// disk is full.
    pub fn write(
        &self,
        task: &Task,
        offset: Option<u64>,
        from: &[UserSegment],
    ) -> Result<u64, Error> {
        let file = self.to_change()?;
        let from = Lent::new(task, from, UserDirection::FromProgram)?;
        let mut end = None;
        let mut write = |to: u64| {
            // With `O_APPEND` at the end, as on Linux, whatever POSIX says of `pwrite`.
            let to = (!self.appends.load(Ordering::Relaxed)).then_some(to);
            let lock = file.lock();
            let _alone = lock.lock();
            in_pieces(task, from.len(), |done, count| {
                let to = to.map(|to| to.saturating_add(done));
                let (behind, count) = file.write_from(&from, done, to, count)?;
                end = Some(behind);
                Ok(count)
            })
        };
        if let Some(offset) = offset {
            return write(offset);
        }
        let mut position = self.position.lock();
        let count = write(*position)?;
        if let Some(end) = end.filter(|_| count > 0) {
            *position = end;
        }
        Ok(count)
    }

    /// Sets where is read and written next.
    pub fn seek(&self, offset: i64, from: u64) -> Result<u64, Error> {
        let mut position = self.position.lock();
        if matches!(from, SEEK_DATA | SEEK_HOLE) {
            let offset = u64::try_from(offset).map_err(|_| ENXIO)?;
            *position = self.file.next(offset, from == SEEK_HOLE)?;
            return Ok(*position);
        }
        let base = match from {
            0 => 0,
            1 => *position,
            2 => self.file.attributes()?.size,
            _ => return Err(EINVAL),
        };
        let to = base.checked_add_signed(offset).ok_or(EINVAL)?;
        if to > MOST_OFFSET {
            return Err(EINVAL);
        }
        *position = to;
        Ok(to)
    }
}
