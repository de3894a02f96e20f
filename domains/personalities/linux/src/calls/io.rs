//! What is open: reading, writing, pipes, descriptors.

use super::{O_CLOEXEC, O_NONBLOCK, Result, opening};
use crate::errno::{EBADF, EINVAL, EMFILE, ENOLCK, ENOMEM, ENOTTY, EPIPE, ESPIPE, SIGPIPE};
use crate::files::Open;
use crate::lent::run;
use crate::memory::{self, PAGE};
use crate::parts::Descriptors;
use crate::pipes;
use crate::task::Task;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use domain_rt::user::{UserBuf, UserSegment};

/// `FS_IOC_GETVERSION`.
const GET_VERSION: u64 = 0x8008_7601;
/// The most bytes that one call moves.
pub(super) const MOST_BYTES: u64 = 256 << 10;

/// An offset in a file, which a call says as a signed number.
fn place_of(offset: u64) -> Result<u64> {
    i64::try_from(offset).map(|_| offset).map_err(|_| EINVAL)
}

/// Has a list of descriptors reach to `at`.
fn reach(files: &mut Descriptors, at: usize) -> Result<()> {
    if files.len() <= at {
        files
            .try_reserve(at + 1 - files.len())
            .map_err(|_| ENOMEM)?;
        files.resize(at + 1, None);
    }
    Ok(())
}

impl Task {
    pub(super) fn seek(&self, descriptor: u64, to: u64, whence: u64) -> Result<u64> {
        self.opened(descriptor)?.seek(to as i64, whence)
    }

    pub(super) fn duplicate(&mut self, descriptor: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        self.place(open, 0, false)
    }

    /// What a descriptor leads to.
    pub(super) fn opened(&self, descriptor: u64) -> Result<Arc<Open>> {
        let files = self.files.lock();
        let slot = files.get(descriptor as usize).and_then(Option::as_ref);
        slot.map(|(open, _)| open.clone()).ok_or(EBADF)
    }

    /// A descriptor for it, from `least` on.
    pub(super) fn place(&mut self, open: Arc<Open>, least: usize, closes: bool) -> Result<u64> {
        let most = self.most_files();
        if least >= most {
            return Err(EINVAL);
        }
        let mut files = self.files.lock();
        let free = (least..most).find(|at| files.get(*at).is_none_or(Option::is_none));
        let at = free.ok_or(EMFILE)?;
        reach(&mut files, at)?;
        files[at] = Some((open, closes));
        Ok(at as u64)
    }

    pub(super) fn read(&mut self, descriptor: u64, at: u64, count: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        if let Open::Disk(file) = &*open {
            return file.read(self, None, &[run(at, count)]);
        }
        self.with_buffer(count, |task, buffer| {
            let count = open.read(task, buffer)?;
            memory::write(&task.program.mm.space, at, &buffer[..count])?;
            Ok(count as u64)
        })
    }

    /// `pread64`.
    pub(super) fn read_at(&self, descriptor: u64, to: u64, count: u64, offset: u64) -> Result<u64> {
        let (open, offset) = (self.opened(descriptor)?, place_of(offset)?);
        match &*open {
            Open::Disk(file) => file.read(self, Some(offset), &[run(to, count)]),
            Open::File(file, _) => {
                let count = count.min(MOST_BYTES) as usize;
                let bytes = self.process.system.files.read(*file, offset, count)?;
                memory::write(&self.program.mm.space, to, &bytes)?;
                Ok(bytes.len() as u64)
            }
            _ => Err(ESPIPE),
        }
    }

    /// `pwrite64`.
    pub(super) fn write_at(
        &self,
        descriptor: u64,
        from: u64,
        count: u64,
        offset: u64,
    ) -> Result<u64> {
        let (open, offset) = (self.opened(descriptor)?, place_of(offset)?);
        match &*open {
            Open::Disk(file) => file.write(self, Some(offset), &[run(from, count)]),
            Open::File(..) => Err(EBADF),
            _ => Err(ESPIPE),
        }
    }

    pub(super) fn write(&mut self, descriptor: u64, at: u64, count: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        if let Open::Disk(file) = &*open {
            return file.write(self, None, &[run(at, count)]);
        }
        let written = self.with_buffer(count, |task, buffer| {
            memory::read(&task.program.mm.space, at, buffer)?;
            open.write(task, buffer)
        });
        if written == Err(EPIPE) {
            self.process
                .signal_thread(self.id, self.by_self(SIGPIPE), Some(self));
        }
        written.map(|count| count as u64)
    }

    /// Lends a buffer for at most `count` bytes, the same each time unless they are many.
    pub(super) fn with_buffer<T>(
        &mut self,
        count: u64,
        act: impl FnOnce(&mut Self, &mut [u8]) -> Result<T>,
    ) -> Result<T> {
        let count = count.min(MOST_BYTES) as usize;
        let mut buffer = core::mem::take(&mut self.buffer);
        if buffer.len() < count {
            let more = count - buffer.len();
            buffer.try_reserve_exact(more).map_err(|_| ENOMEM)?;
            buffer.resize(count, 0);
        }
        let result = act(self, &mut buffer[..count]);
        if buffer.len() <= PAGE as usize {
            self.buffer = buffer;
        }
        result
    }

    /// The pieces that `readv` and its kin are given.
    fn pieces(&self, pieces: u64, count: u64) -> Result<Vec<UserSegment>> {
        if count > UserBuf::MOST_SEGMENTS as u64 {
            return Err(EINVAL);
        }
        let (mut runs, mut all) = (Vec::new(), 0_u64);
        runs.try_reserve_exact(count as usize).map_err(|_| ENOMEM)?;
        for piece in 0..count {
            let [at, length] = self.get(pieces.wrapping_add(16 * piece))?;
            all = all.checked_add(length).ok_or(EINVAL)?;
            runs.push(run(at, length));
        }
        i64::try_from(all).map(|_| runs).map_err(|_| EINVAL)
    }

    /// `readv`, and `preadv` with an offset. A file of a disk is read in one go.
    pub(super) fn read_pieces(
        &mut self,
        descriptor: u64,
        (pieces, count): (u64, u64),
        offset: Option<u64>,
    ) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let offset = offset.map(place_of).transpose()?;
        if let Open::Disk(file) = &*open {
            return file.read(self, offset, &self.pieces(pieces, count)?);
        }
        let mut next = offset;
        self.by_pieces(pieces, count, |task, at, count| {
            let Some(from) = next else {
                return task.read(descriptor, at, count);
            };
            let done = task.read_at(descriptor, at, count, from)?;
            next = Some(from.saturating_add(done));
            Ok(done)
        })
    }

    /// `writev`, and `pwritev` with an offset, likewise.
    pub(super) fn write_pieces(
        &mut self,
        descriptor: u64,
        (pieces, count): (u64, u64),
        offset: Option<u64>,
    ) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let offset = offset.map(place_of).transpose()?;
        match (&*open, offset) {
            (Open::Disk(file), offset) => file.write(self, offset, &self.pieces(pieces, count)?),
            (Open::File(..), Some(_)) => Err(EBADF),
            (_, Some(_)) => Err(ESPIPE),
            (_, None) => self.by_pieces(pieces, count, |task, at, count| {
                task.write(descriptor, at, count)
            }),
        }
    }

    /// `readv` and `writev`, by what is done with each piece: its address and length.
    fn by_pieces(
        &mut self,
        pieces: u64,
        count: u64,
        mut each: impl FnMut(&mut Self, u64, u64) -> Result<u64>,
    ) -> Result<u64> {
        if count > UserBuf::MOST_SEGMENTS as u64 {
            return Err(EINVAL);
        }
        let mut done = 0;
        for piece in 0..count {
            let [at, length] = self.get(pieces.wrapping_add(16 * piece))?;
            if length == 0 {
                continue;
            }
            match each(self, at, length) {
                Ok(count) => {
                    done += count;
                    if count < length {
                        break;
                    }
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    pub(super) fn close(&mut self, descriptor: u64) -> Result<u64> {
        // It may be closed for good, which tells others: not with the list locked.
        let slot = self
            .files
            .lock()
            .get_mut(descriptor as usize)
            .and_then(Option::take);
        slot.map(|_| 0).ok_or(EBADF)
    }

    /// Closes what `exec` closes, without the lock.
    pub(super) fn close_for_exec(&mut self) {
        let mut files = self.files.lock();
        let closed: Vec<_> = files
            .iter_mut()
            .filter_map(|slot| slot.take_if(|(_, closes)| *closes))
            .collect();
        drop(files);
        drop(closed);
    }

    /// `close_range`; with `flags` 4 they are closed by `exec`.
    pub(super) fn close_range(&mut self, first: u64, last: u64, flags: u64) -> Result<u64> {
        let (first, last) = (first as u32 as usize, last as u32 as usize);
        if first > last || flags & !6 != 0 {
            return Err(EINVAL);
        }
        let mut files = self.files.lock();
        let end = files.len().min(last.saturating_add(1));
        let range = files.get_mut(first..end).unwrap_or_default();
        if flags & 4 != 0 {
            let open = range.iter_mut().filter_map(Option::as_mut);
            open.for_each(|(_, closes)| *closes = true);
            return Ok(0);
        }
        let closed: Vec<_> = range.iter_mut().filter_map(Option::take).collect();
        drop(files);
        drop(closed);
        Ok(0)
    }

    /// `flock`: within one personality there is nobody yet who would wait for another's lock, so
    /// all are refused but the one that gives back.
    pub(super) fn lock_file(&self, descriptor: u64, how: u64) -> Result<u64> {
        self.opened(descriptor)?;
        match how & !4 {
            8 => Ok(0),
            _ => Err(ENOLCK),
        }
    }

    pub(super) fn pipe(&mut self, at: u64, flags: u64) -> Result<u64> {
        if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
            return Err(EINVAL);
        }
        let closes = flags & O_CLOEXEC != 0;
        let [read, write] =
            pipes::pipe(&self.process.owner.user(), flags & O_NONBLOCK != 0)?.map(Open::Pipe);
        let read = self.place(Arc::new(read), 0, closes)?;
        let write = self.place(Arc::new(write), 0, closes);
        let write = write.or_else(|why| self.close(read).and(Err(why)))?;
        self.put(at, &[read | write << 32])
    }

    pub(super) fn duplicate_to(&mut self, from: u64, to: u64, closes: bool) -> Result<u64> {
        let open = self.opened(from)?;
        if to as usize >= self.most_files() {
            return Err(EBADF);
        }
        if from == to {
            return Ok(to);
        }
        // In one step, or another thread's file could come in between.
        let mut files = self.files.lock();
        reach(&mut files, to as usize)?;
        let before = files[to as usize].replace((open, closes));
        drop(files);
        drop(before);
        Ok(to)
    }

    /// `dup3`: another one, or an error.
    pub(super) fn duplicate_to_other(&mut self, from: u64, to: u64, flags: u64) -> Result<u64> {
        match flags & !O_CLOEXEC {
            0 if from != to => self.duplicate_to(from, to, flags != 0),
            _ => Err(EINVAL),
        }
    }

    /// Whether `exec` closes a descriptor; and sets it.
    fn closes(&self, descriptor: u64, to: Option<bool>) -> Result<bool> {
        let mut files = self.files.lock();
        let slot = files.get_mut(descriptor as usize).and_then(Option::as_mut);
        let (_, closes) = slot.ok_or(EBADF)?;
        let before = *closes;
        *closes = to.unwrap_or(before);
        Ok(before)
    }

    /// `ioctl`.
    pub(super) fn device(&self, descriptor: u64, what: u64, at: u64) -> Result<u64> {
        match &*self.opened(descriptor)? {
            Open::Terminal(terminal) => terminal.control(self, what, at),
            open if what == GET_VERSION => self.put_generation(open, at),
            _ => Err(ENOTTY),
        }
    }

    /// `fcntl`: duplicates, whether `exec` closes, and whether a pipe waits.
    pub(super) fn control(&mut self, descriptor: u64, what: u64, value: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        match what {
            0 | 1030 => self.place(open, value as usize, what == 1030),
            1 => Ok(u64::from(self.closes(descriptor, None)?)),
            2 => self.closes(descriptor, Some(value & 1 != 0)).map(|_| 0),
            3 => Ok(opening::flags_of(&open)),
            4 => {
                match &*open {
                    Open::Pipe(end) => end.set_never_waits(value & O_NONBLOCK != 0),
                    Open::Disk(open) => {
                        let appends = value & opening::O_APPEND != 0;
                        open.appends.store(appends, Ordering::Relaxed);
                    }
                    _ => {}
                }
                Ok(0)
            }
            _ => Err(EINVAL),
        }
    }
}
