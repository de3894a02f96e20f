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
/// The most bytes that one call moves, as on Linux.
pub(super) const MOST_MOVED: u64 = 0x7fff_f000;
/// The most bytes that are moved at once.
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
    pub fn opened(&self, descriptor: u64) -> Result<Arc<Open>> {
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
        self.read_runs(&open, &[run(at, count.min(MOST_MOVED))])
    }

    /// Reads what does not lie on a disk to runs of the program's memory, as one: as many bytes as
    /// come without a wait, once some have.
    fn read_runs(&mut self, open: &Open, runs: &[UserSegment]) -> Result<u64> {
        if let Open::Socket(socket) = open {
            return self.receive_runs(socket, runs, 0).map(|count| count as u64);
        }
        self.move_runs(runs, |task, done, buffer| {
            let count = open.read(task, buffer)?;
            let put = task.scatter(runs, done, &buffer[..count]);
            if let (Err(_), Open::Pipe(end)) = (put, open) {
                end.give_back(&buffer[..count]);
            }
            put.map(|()| count)
        })
    }

    /// Writes runs of the program's memory to what does not lie on a disk, as one.
    fn write_runs(&mut self, open: &Open, runs: &[UserSegment]) -> Result<u64> {
        if let Open::Socket(socket) = open {
            return self.send_runs(socket, runs, 0);
        }
        let written = self.move_runs(runs, |task, done, buffer| {
            task.gather(runs, done, buffer)?;
            open.write(task, buffer)
        });
        if written == Err(EPIPE) {
            self.process
                .signal_thread(self.id, self.by_self(SIGPIPE), Some(self));
        }
        written
    }

    /// Moves the bytes of runs by way of a buffer, a part at a time: `each` is told how many were
    /// moved, and says how many more. An error is one only where none was.
    fn move_runs(
        &mut self,
        runs: &[UserSegment],
        mut each: impl FnMut(&mut Self, u64, &mut [u8]) -> Result<usize>,
    ) -> Result<u64> {
        let total: u64 = runs.iter().map(|run| run.length).sum();
        let first = MOST_BYTES.min(total);
        let mut done = self.with_buffer(first, |task, buffer| each(task, 0, buffer))? as u64;
        if done < first {
            return Ok(done);
        }
        while done < total && !self.is_ending() {
            let part = MOST_BYTES.min(total - done);
            let moved = self.with_buffer(part, |task, buffer| each(task, done, buffer));
            let more = moved.unwrap_or(0) as u64;
            done += more;
            if more < part {
                break;
            }
        }
        Ok(done)
    }

    /// Puts bytes into runs of the program's memory, from byte `at` of the whole on.
    pub(super) fn scatter(&self, runs: &[UserSegment], at: u64, mut bytes: &[u8]) -> Result<()> {
        let mut skipped = at;
        for run in runs {
            let room = run.length.saturating_sub(skipped);
            let (now, rest) = bytes.split_at(bytes.len().min(room as usize));
            if !now.is_empty() {
                let to = run.start.wrapping_add(skipped);
                memory::write(&self.program.mm.space, to, now)?;
            }
            (bytes, skipped) = (rest, skipped.saturating_sub(run.length));
        }
        Ok(())
    }

    /// Gets bytes from runs of the program's memory likewise.
    pub(super) fn gather(&self, runs: &[UserSegment], at: u64, mut bytes: &mut [u8]) -> Result<()> {
        let mut skipped = at;
        for run in runs {
            let room = run.length.saturating_sub(skipped);
            let count = bytes.len().min(room as usize);
            let (now, rest) = bytes.split_at_mut(count);
            if !now.is_empty() {
                let from = run.start.wrapping_add(skipped);
                memory::read(&self.program.mm.space, from, now)?;
            }
            (bytes, skipped) = (rest, skipped.saturating_sub(run.length));
        }
        Ok(())
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
        self.write_runs(&open, &[run(at, count.min(MOST_MOVED))])
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
    pub(super) fn pieces(&self, pieces: u64, count: u64) -> Result<Vec<UserSegment>> {
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
        i64::try_from(all).map_err(|_| EINVAL)?;
        // More than one call moves is left.
        let mut room = MOST_MOVED;
        for run in &mut runs {
            run.length = run.length.min(room);
            room -= run.length;
        }
        Ok(runs)
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
        let pieces = self.pieces(pieces, count)?;
        let Some(mut next) = offset else {
            return self.read_runs(&open, &pieces);
        };
        let mut done = 0;
        for piece in pieces.iter().filter(|piece| piece.length > 0) {
            match self.read_at(descriptor, piece.start, piece.length, next) {
                Ok(count) => (done, next) = (done + count, next.saturating_add(count)),
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
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
            (_, None) => {
                let pieces = self.pieces(pieces, count)?;
                self.write_runs(&open, &pieces)
            }
        }
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
        self.put(at, &[read | write << 32]).inspect_err(|_| {
            // Nobody knows of them.
            let _ = [read, write].map(|it| self.close(it));
        })
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
            Open::Socket(socket) => self.control_socket(socket, what, at),
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
                    Open::Socket(socket) => socket.set_never_waits(value & O_NONBLOCK != 0),
                    Open::Counter(counter) => counter.set_never_waits(value & O_NONBLOCK != 0),
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
