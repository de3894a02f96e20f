//! The system calls (`asm/unistd_64.h`; their arguments as `man 2` has them).

use crate::errno::{
    EAGAIN, EBADF, EINTR, EINVAL, EISDIR, EMFILE, ENODEV, ENOENT, ENOMEM, ENOSYS, ENOTDIR, ENOTTY,
    EPIPE, EROFS, Error, SIGKILL, SIGPIPE,
};
use crate::files::{self, Node, Open};
use crate::memory::{self, PAGE, Program};
use crate::process::{After, Process};
use crate::signals::Handler;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use domain_rt::time;
use interfaces::SpaceError;

/// The most descriptors of a process.
const MOST_FILES: usize = 256;
/// The most bytes that one call moves.
const MOST_BYTES: u64 = 256 << 10;
/// The directory that is meant by no descriptor.
const AT_FDCWD: i32 = -100;
const AT_EMPTY_PATH: u64 = 0x1000;
const O_WRONLY_OR_RDWR: u64 = 3;
const O_CREAT: u64 = 0x40;
const O_DIRECTORY: u64 = 0x1_0000;
const O_CLOEXEC: u64 = 0x8_0000;
const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_CHILD_SETTID: u64 = 0x0100_0000;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_PRIVATE: u64 = 0x2;

type Result<T> = core::result::Result<T, Error>;

/// What comes of a call if it is no value.
enum Other {
    Error(Error),
    /// The registers are all set.
    NoResult,
    /// The program ends, with a status as `wait` has it.
    End(i32),
}

impl Error {
    /// As a program sees it.
    pub fn result(self) -> u64 {
        self.0.wrapping_neg()
    }
}

impl Process {
    /// Answers the program.
    #[inline]
    pub fn call(&mut self) -> After {
        let r = self.program.registers;
        let a = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
        self.program.asked = r.rax;
        self.program.registers.rax = match self.answer(r.rax, a) {
            Ok(value) => value,
            Err(Other::Error(error)) => error.result(),
            Err(Other::NoResult) => return After::Run,
            Err(Other::End(status)) => return After::End(status),
        };
        After::Run
    }

    /// What comes of a call by its number (`asm/unistd_64.h`). One table of all: to ask one part
    /// after the other would take longer than many a call.
    #[inline]
    fn answer(&mut self, number: u64, a: [u64; 6]) -> core::result::Result<u64, Other> {
        let result = match number {
            0 => self.read(a[0], a[1], a[2]),
            1 => self.write(a[0], a[1], a[2]),
            2 => self.open(AT_FDCWD, a[0], a[1]),
            3 => self.close(a[0]),
            4 | 6 => self.stat(AT_FDCWD, a[0], a[1], 0),
            5 => self.stat(a[0] as i32, 0, a[1], AT_EMPTY_PATH),
            7 => self.poll(a[0], a[1], a[2] as i32),
            8 => self.seek(a[0], a[1], a[2]),
            9 => self.map(a[0], a[1], a[2], a[3]),
            10 => memory::protect(&self.program.space, a[0], a[1], a[2]).map(|()| 0),
            11 => memory::unmap(&self.program.space, a[0], a[1]).map(|()| 0),
            12 => self.set_heap(a[0]),
            13 => self.set_handler(a[0] as u32, a[1], a[2]),
            14 => self.change_mask(a[0], a[1], a[2]),
            15 => {
                self.leave_handler();
                return Err(Other::NoResult);
            }
            16 => self.opened(a[0]).and(Err(ENOTTY)),
            20 => self.write_pieces(a[0], a[1], a[2]),
            21 => self.look_up(AT_FDCWD, a[0]).map(|_| 0),
            22 => self.pipe(a[0], 0),
            28 | 102 | 104 | 107 | 108 | 273 => Ok(0),
            32 => self.duplicate(a[0]),
            33 => self.duplicate_to(a[0], a[1], false),
            35 => self.sleep(0, 0, a[0]),
            39 | 186 | 218 => Ok(self.id.into()),
            56 => self.fork(a[0], a[1], a[3]),
            57 | 58 => self.fork(0, 0, 0),
            59 => {
                // What it has replaced has no result.
                self.exec(a[0], a[1], a[2]).map_err(Other::Error)?;
                return Err(Other::NoResult);
            }
            60 | 231 => return Err(Other::End((a[0] as i32 & 0xff) << 8)),
            61 => self.wait_child_for(a[0] as i32, a[1], a[2]),
            62 => self.kill(a[0] as i32, a[1] as u32 & 63).map(|()| 0),
            63 => self.name(a[0]),
            72 => self.control(a[0], a[1], a[2]),
            79 => self.put_path(a[0], a[1]),
            80 => self.change_directory(a[0]),
            89 | 267 => Err(EINVAL),
            96 => self.put(a[0], &[time::wall_seconds(), 0]),
            109 => self.set_group(a[0] as u32, a[1] as u32).map(|()| 0),
            110 => Ok(self.parent().into()),
            111 => self.group_of(0).map(u64::from),
            112 => self.set_group(0, 0).map(|()| self.id.into()),
            121 => self.group_of(a[0] as u32).map(u64::from),
            130 => self.suspend(a[0]),
            158 => self.set_segment(a[0], a[1]),
            201 => Ok(time::wall_seconds()),
            217 => self.entries(a[0], a[1], a[2]),
            228 => self.clock(a[0], a[1]),
            230 => self.sleep(a[0], a[1], a[2]),
            257 => self.open(a[0] as i32, a[1], a[2]),
            262 => self.stat(a[0] as i32, a[1], a[2], a[3]),
            269 => self.look_up(a[0] as i32, a[1]).map(|_| 0),
            292 => self.duplicate_to(a[0], a[1], a[2] & O_CLOEXEC != 0),
            293 => self.pipe(a[0], a[1]),
            318 => self.random_bytes(a[0], a[1]),
            _ => Err(ENOSYS),
        };
        result.map_err(Other::Error)
    }

    fn seek(&self, descriptor: u64, to: u64, whence: u64) -> Result<u64> {
        self.opened(descriptor)?.seek(to as i64, whence)
    }

    fn duplicate(&mut self, descriptor: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        self.place(open, 0, false)
    }

    /// What a descriptor leads to.
    fn opened(&self, descriptor: u64) -> Result<Arc<Open>> {
        let slot = self.files.get(descriptor as usize).and_then(Option::as_ref);
        slot.map(|(open, _)| open.clone()).ok_or(EBADF)
    }

    /// A descriptor for it, from `least` on.
    fn place(&mut self, open: Arc<Open>, least: usize, closes: bool) -> Result<u64> {
        let free = (least..MOST_FILES).find(|at| self.files.get(*at).is_none_or(Option::is_none));
        let at = free.ok_or(EMFILE)?;
        if self.files.len() <= at {
            self.files.resize(at + 1, None);
        }
        self.files[at] = Some((open, closes));
        Ok(at as u64)
    }

    fn read(&mut self, descriptor: u64, at: u64, count: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        self.with_buffer(count, |process, buffer| {
            let count = open.read(process, buffer)?;
            memory::write(&process.program.space, at, &buffer[..count])?;
            Ok(count as u64)
        })
    }

    fn write(&mut self, descriptor: u64, at: u64, count: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let written = self.with_buffer(count, |process, buffer| {
            memory::read(&process.program.space, at, buffer)?;
            open.write(process, buffer)
        });
        if written == Err(EPIPE) {
            self.kill(self.id as i32, SIGPIPE)?;
        }
        written.map(|count| count as u64)
    }

    /// Lends a buffer for at most `count` bytes, the same each time unless they are many.
    fn with_buffer<T>(
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

    /// `writev`.
    fn write_pieces(&mut self, descriptor: u64, pieces: u64, count: u64) -> Result<u64> {
        let mut done = 0;
        for piece in 0..count.min(1024) {
            let [at, length] = self.get(pieces + 16 * piece)?;
            if length == 0 {
                continue;
            }
            match self.write(descriptor, at, length) {
                Ok(count) => done += count,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// `poll`: a list of descriptors with what is wanted (POLLIN 1, POLLOUT 4) and what there is.
    fn poll(&mut self, list: u64, count: u64, milliseconds: i32) -> Result<u64> {
        let mut entries = alloc::vec![0_u64; count.min(MOST_FILES as u64) as usize];
        for (index, entry) in entries.iter_mut().enumerate() {
            *entry = memory::read_word(&self.program.space, list + 8 * index as u64)?;
        }
        let wait = milliseconds.max(0) as u64 * 1_000_000;
        let deadline = (milliseconds >= 0).then(|| time::now().saturating_add(wait));
        let is_ready = |entry: &u64| {
            let open = self.opened(*entry & 0xffff_ffff);
            (*entry as i32) >= 0 && open.is_ok_and(|open| open.is_ready(&self.ears))
        };
        let any = || entries.iter().any(is_ready).then_some(());
        self.until_or(deadline, any)?;
        let mut found = 0;
        for entry in &mut entries {
            let wanted = *entry >> 32 & 5;
            let there = if is_ready(entry) { wanted } else { 0 };
            found += u64::from(there != 0);
            *entry = *entry & 0xffff_ffff_ffff | there << 48;
        }
        self.put(list, &entries)?;
        Ok(found)
    }

    /// The directory that a path begins at.
    fn base(&self, descriptor: i32) -> Result<Vec<u8>> {
        if descriptor == AT_FDCWD {
            return Ok(self.directory.clone());
        }
        match &*self.opened(descriptor as u64)? {
            Open::Directory(path, _) => Ok(path.clone()),
            _ => Err(ENOTDIR),
        }
    }

    /// What a path in the program's memory leads to.
    fn look_up(&self, descriptor: i32, path: u64) -> Result<Open> {
        let path = memory::read_text(&self.program.space, path)?;
        let base = match path.starts_with(b"/") {
            true => Vec::new(),
            false => self.base(descriptor)?,
        };
        let whole = files::resolve(&base, &path);
        match &whole[..] {
            b"dev/null" => return Ok(Open::Nothing),
            b"dev/zero" => return Ok(Open::Zeros),
            _ => {}
        }
        let files = &self.system.files;
        match files.find(b"", &whole) {
            Some(Node::File(file)) => Ok(Open::File(file, AtomicU64::new(0))),
            Some(Node::Directory(path)) => Ok(Open::Directory(path, AtomicU64::new(0))),
            None => {
                let program = files.program(&whole).ok_or(ENOENT)?;
                Ok(Open::File(program, AtomicU64::new(0)))
            }
        }
    }

    fn open(&mut self, descriptor: i32, path: u64, flags: u64) -> Result<u64> {
        let open = match self.look_up(descriptor, path) {
            Err(ENOENT) if flags & O_CREAT != 0 => return Err(EROFS),
            open => open?,
        };
        let writes = flags & O_WRONLY_OR_RDWR != 0;
        match &open {
            Open::File(..) if flags & O_DIRECTORY != 0 => return Err(ENOTDIR),
            Open::File(..) if writes => return Err(EROFS),
            Open::Directory(..) if writes => return Err(EISDIR),
            _ => {}
        }
        self.place(Arc::new(open), 0, flags & O_CLOEXEC != 0)
    }

    fn close(&mut self, descriptor: u64) -> Result<u64> {
        let slot = self
            .files
            .get_mut(descriptor as usize)
            .and_then(Option::take);
        slot.map(|_| 0).ok_or(EBADF)
    }

    /// `newfstatat`; the structure is that of `asm/stat.h`.
    fn stat(&mut self, descriptor: i32, path: u64, at: u64, flags: u64) -> Result<u64> {
        let is_empty = path == 0 || memory::read_text(&self.program.space, path)?.is_empty();
        let (mode, size) = match flags & AT_EMPTY_PATH != 0 && is_empty {
            true => self.opened(descriptor as u64)?.mode_and_size(),
            false => self.look_up(descriptor, path)?.mode_and_size(),
        };
        let mut stat = [0_u64; 18];
        stat[2] = 1;
        stat[3] = mode.into();
        stat[6] = size;
        stat[7] = PAGE;
        stat[8] = size.div_ceil(512);
        self.put(at, &stat)
    }

    /// Gets numbers from the program's memory.
    fn get<const COUNT: usize>(&self, at: u64) -> Result<[u64; COUNT]> {
        let mut words = [[0; 8]; COUNT];
        memory::read(&self.program.space, at, words.as_flattened_mut())?;
        Ok(words.map(u64::from_le_bytes))
    }

    /// Puts numbers into the program's memory.
    fn put(&self, at: u64, words: &[u64]) -> Result<u64> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory::write(&self.program.space, at, &bytes)?;
        Ok(0)
    }

    fn pipe(&mut self, at: u64, flags: u64) -> Result<u64> {
        let closes = flags & O_CLOEXEC != 0;
        let [read, write] = files::pipe();
        let read = self.place(Arc::new(read), 0, closes)?;
        let write = self.place(Arc::new(write), 0, closes);
        let write = write.inspect_err(|_| drop(self.files[read as usize].take()))?;
        self.put(at, &[read | write << 32])
    }

    fn duplicate_to(&mut self, from: u64, to: u64, closes: bool) -> Result<u64> {
        let open = self.opened(from)?;
        if to as usize >= MOST_FILES {
            return Err(EBADF);
        }
        if from != to {
            let _ = self.close(to);
            self.place(open, to as usize, closes)?;
        }
        Ok(to)
    }

    /// `fcntl`: duplicates, and whether `exec` closes.
    fn control(&mut self, descriptor: u64, what: u64, value: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        match what {
            0 | 1030 => self.place(open, value as usize, what == 1030),
            1 => Ok(u64::from(matches!(
                &self.files[descriptor as usize],
                Some((_, true))
            ))),
            2 => {
                self.files[descriptor as usize] = Some((open, value & 1 != 0));
                Ok(0)
            }
            3 => Ok(2),
            4 => Ok(0),
            _ => Err(EINVAL),
        }
    }

    fn put_path(&self, at: u64, room: u64) -> Result<u64> {
        let path = [b"/", &self.directory[..], b"\0"].concat();
        if path.len() as u64 > room {
            return Err(Error(34));
        }
        memory::write(&self.program.space, at, &path)?;
        Ok(path.len() as u64)
    }

    fn change_directory(&mut self, path: u64) -> Result<u64> {
        match self.look_up(AT_FDCWD, path)? {
            Open::Directory(path, _) => self.directory = path,
            _ => return Err(ENOTDIR),
        }
        Ok(0)
    }

    fn entries(&self, descriptor: u64, at: u64, room: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let bytes = open.entries(&self.system.files, room.min(MOST_BYTES) as usize)?;
        memory::write(&self.program.space, at, &bytes)?;
        Ok(bytes.len() as u64)
    }

    fn map(&mut self, at: u64, bytes: u64, bits: u64, flags: u64) -> Result<u64> {
        if flags & MAP_ANONYMOUS == 0 || flags & MAP_PRIVATE == 0 {
            return Err(ENODEV);
        }
        let bytes = bytes
            .checked_next_multiple_of(PAGE)
            .filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(EINVAL)?;
        let at = match flags & MAP_FIXED != 0 {
            true => {
                memory::unmap(&self.program.space, at, bytes)?;
                at
            }
            false => {
                let free = self.program.mappings.checked_sub(bytes).ok_or(ENOMEM)?;
                self.program.mappings = free;
                free
            }
        };
        memory::map_zero(&self.program.space, at, bytes, bits)?;
        Ok(at)
    }

    /// `brk`: where the heap ends now, whatever was asked.
    fn set_heap(&mut self, to: u64) -> Result<u64> {
        let program = &mut self.program;
        if to < program.heap || to > program.mappings {
            return Ok(program.heap_end);
        }
        let [old, new] = [program.heap_end, to].map(|end| end.next_multiple_of(PAGE));
        let done = match new > old {
            true => memory::map_zero(&program.space, old, new - old, 3),
            false => memory::unmap(&program.space, new, old - new),
        };
        if new == old || done.is_ok() {
            program.heap_end = to;
        }
        Ok(program.heap_end)
    }

    fn fork(&mut self, flags: u64, stack: u64, child_number: u64) -> Result<u64> {
        // Threads share their memory: there are none.
        if flags & CLONE_VM != 0 && flags & CLONE_VFORK == 0 {
            return Err(ENOSYS);
        }
        let space = self.system.spaces.create().map_err(|_| ENOMEM)?;
        let mut next = Some(0);
        while let Some(from) = next {
            let child = space.duplicate().map_err(|_| ENOMEM)?;
            next = self.program.space.fork(child, from).map_err(|_| ENOMEM)?;
        }
        let thread = space.thread().map_err(|_: SpaceError| ENOMEM)?;
        let mut registers = self.program.registers;
        registers.rax = 0;
        if stack != 0 {
            registers.rsp = stack;
        }
        let Program {
            asked,
            heap,
            heap_end,
            mappings,
            ..
        } = self.program;
        let child = Program {
            space,
            thread,
            registers,
            asked,
            heap,
            heap_end,
            mappings,
        };
        let child = self.child(child).map_err(|_| ENOMEM)?;
        let id = child.id;
        if flags & CLONE_CHILD_SETTID != 0 {
            memory::write(&child.program.space, child_number, &id.to_le_bytes())?;
        }
        child.start_from(self).map_err(|_| EAGAIN)?;
        Ok(id.into())
    }

    fn exec(&mut self, path: u64, arguments: u64, environment: u64) -> Result<()> {
        let space = &self.program.space;
        let path = memory::read_text(space, path)?;
        let arguments = memory::read_texts(space, arguments)?;
        let environment = memory::read_texts(space, environment)?;
        let whole = match &path[..] {
            b"/proc/self/exe" => b"bin/sh".to_vec(),
            _ => files::resolve(&self.directory, &path),
        };
        let file = self.system.files.program(&whole).ok_or(ENOENT)?;
        let program = self.system.load(file, &path, &arguments, &environment)?;
        self.forget_handlers();
        for slot in &mut self.files {
            slot.take_if(|(_, closes)| *closes);
        }
        self.replace(program).map_err(|_| ENOMEM)
    }

    fn wait_child_for(&mut self, which: i32, status: u64, options: u64) -> Result<u64> {
        let Some((id, how)) = self.wait_child(which, options & 1 != 0)? else {
            return Ok(0);
        };
        if status != 0 {
            memory::write(&self.program.space, status, &how.to_le_bytes())?;
        }
        Ok(id.into())
    }

    /// `uname`: six texts of 65 bytes.
    fn name(&self, at: u64) -> Result<u64> {
        let texts: [&[u8]; 6] = [
            b"Linux",
            b"trefoil",
            b"6.1.0",
            b"Trefoil mini",
            b"x86_64",
            b"",
        ];
        let mut bytes = [0; 6 * 65];
        for (place, text) in bytes.chunks_mut(65).zip(texts) {
            place[..text.len()].copy_from_slice(text);
        }
        memory::write(&self.program.space, at, &bytes)?;
        Ok(0)
    }

    /// `arch_prctl`: sets the base of FS.
    fn set_segment(&mut self, what: u64, base: u64) -> Result<u64> {
        if what != 0x1002 || base >= 1 << 47 {
            return Err(EINVAL);
        }
        self.program.registers.fs_base = base;
        Ok(0)
    }

    fn set_handler(&mut self, signal: u32, new: u64, old: u64) -> Result<u64> {
        if !(1..=64).contains(&signal) {
            return Err(EINVAL);
        }
        let before = (old != 0).then(|| self.handlers[signal as usize]);
        if new != 0 {
            let [function, flags, restorer, mask] = self.get(new)?;
            let handler = Handler {
                function,
                flags,
                restorer,
                mask,
            };
            if signal == SIGKILL {
                return Err(EINVAL);
            }
            self.handle(signal, handler);
        }
        if let Some(before) = before {
            let Handler {
                function,
                flags,
                restorer,
                mask,
            } = before;
            self.put(old, &[function, flags, restorer, mask])?;
        }
        Ok(0)
    }

    fn change_mask(&mut self, how: u64, new: u64, old: u64) -> Result<u64> {
        let before = self.mask();
        if new != 0 {
            let given = memory::read_word(&self.program.space, new)?;
            self.set_mask(match how {
                0 => before | given,
                1 => before & !given,
                2 => given,
                _ => return Err(EINVAL),
            });
        }
        if old != 0 {
            self.put(old, &[before])?;
        }
        Ok(0)
    }

    /// `rt_sigsuspend`: the mask comes back when a handler has been entered.
    fn suspend(&mut self, mask: u64) -> Result<u64> {
        let mask = memory::read_word(&self.program.space, mask)?;
        self.mask_after = Some(self.mask());
        self.set_mask(mask);
        self.until(|| None::<()>)?;
        Err(EINTR)
    }

    fn sleep(&mut self, clock: u64, flags: u64, at: u64) -> Result<u64> {
        let [seconds, rest] = self.get(at)?;
        if rest >= 1_000_000_000 || clock > 1 {
            return Err(EINVAL);
        }
        let length = seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        let deadline = match flags & 1 != 0 {
            true => length,
            false => time::now().saturating_add(length),
        };
        self.until_or(Some(deadline), || None::<()>)?;
        Ok(0)
    }

    /// `getrandom`.
    fn random_bytes(&self, at: u64, count: u64) -> Result<u64> {
        let bytes = self.system.random(count.min(1 << 16) as usize)?;
        memory::write(&self.program.space, at, &bytes)?;
        Ok(bytes.len() as u64)
    }

    fn clock(&self, clock: u64, at: u64) -> Result<u64> {
        let now = time::now();
        match clock {
            0 | 5 => self.put(at, &[time::wall_seconds(), now % 1_000_000_000]),
            _ => self.put(at, &[now / 1_000_000_000, now % 1_000_000_000]),
        }
    }
}
