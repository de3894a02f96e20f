//! How processes and threads begin, become another program, and are waited for.

use super::Result;
use crate::errno::{EAGAIN, EINTR, EINVAL, ENOENT, ENOMEM, ENOSYS};
use crate::memory::{self, Program};
use crate::process::Told;
use crate::programs::{Source, Wanted};
use crate::task::{NO_STACK, Task};
use alloc::sync::Arc;
use interfaces::SpaceError;
use linux::files;

const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_THREAD: u64 = 0x1_0000;
/// What a thread has in common with the one that begins it: memory, directory, files, handlers.
const CLONE_ALL: u64 = CLONE_VM | 0x200 | 0x400 | 0x800;
const CLONE_SETTLS: u64 = 0x8_0000;
const CLONE_PARENT_SETTID: u64 = 0x10_0000;
const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
const CLONE_CHILD_SETTID: u64 = 0x100_0000;
/// Addresses of programs end here.
const USER_END: u64 = 1 << 47;

/// What `clone` is asked for.
#[derive(Clone, Copy, Default)]
pub struct Birth {
    pub flags: u64,
    /// Where the stack begins; 0: where that of who asks is.
    pub stack: u64,
    /// Where its number goes, for who asks and for the new one.
    pub parent_word: u64,
    pub child_word: u64,
    /// The base of FS.
    pub segment: u64,
}

impl Birth {
    fn asks(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

impl Task {
    pub(super) fn clone(&mut self, birth: Birth) -> Result<u64> {
        if birth.asks(CLONE_SETTLS) && birth.segment >= USER_END {
            return Err(EINVAL);
        }
        match birth.asks(CLONE_THREAD) {
            true if birth.flags & CLONE_ALL == CLONE_ALL => self.begin_thread(&birth),
            true => Err(EINVAL),
            // Two processes never share memory: one that soon becomes another program has a copy.
            false if birth.asks(CLONE_VM) && !birth.asks(CLONE_VFORK) => Err(ENOSYS),
            false => self.fork(&birth),
        }
    }

    /// `clone3`: the same, with its arguments in a list in memory (`linux/sched.h`).
    pub(super) fn clone_by_list(&mut self, at: u64, bytes: u64) -> Result<u64> {
        if bytes < 64 {
            return Err(EINVAL);
        }
        let [flags, _, child_word, parent_word, _, stack, size, segment] = self.get(at)?;
        self.clone(Birth {
            flags,
            stack: stack.wrapping_add(size),
            parent_word,
            child_word,
            segment,
        })
    }

    /// What the new one runs, in this space or its copy.
    fn copy(&mut self, space: memory::Space, birth: &Birth) -> Result<Program> {
        let thread = space.handle().thread().map_err(|_: SpaceError| EAGAIN)?;
        let mut registers = self.program.registers;
        registers.rax = 0;
        if birth.stack != 0 {
            registers.rsp = birth.stack;
        }
        if birth.asks(CLONE_SETTLS) {
            registers.fs_base = birth.segment;
        }
        // The state of floating point and vectors goes on, too.
        self.copy_vector(&thread)?;
        Ok(Program {
            space,
            thread,
            registers,
            asked: self.program.asked,
        })
    }

    fn begin_thread(&mut self, birth: &Birth) -> Result<u64> {
        let space = self.program.space.duplicate().map_err(|_| ENOMEM)?;
        let program = self.copy(space, birth)?;
        self.process.handlers.share();
        let id = self.process.system.new_number();
        let new = Task::new(&self.process, id, program, self.ears.mask());
        let new = new.map_err(|_| EAGAIN)?;
        self.begin(new, birth)
    }

    /// Has the new one live, once its number stands where it is wanted.
    fn begin(&self, mut new: Task, birth: &Birth) -> Result<u64> {
        let number = new.id.to_le_bytes();
        if birth.asks(CLONE_PARENT_SETTID) {
            memory::write(&self.program.space, birth.parent_word, &number)?;
        }
        if birth.asks(CLONE_CHILD_SETTID) {
            memory::write(&new.program.space, birth.child_word, &number)?;
        }
        if birth.asks(CLONE_CHILD_CLEARTID) {
            new.clear_at = birth.child_word;
        }
        let id = new.id;
        new.start().map_err(|_| EAGAIN)?;
        Ok(id.into())
    }

    fn fork(&mut self, birth: &Birth) -> Result<u64> {
        let space = self.process.system.spaces.create().map_err(|_| ENOMEM)?;
        // Nothing is mapped meanwhile by other threads.
        let layout = self.process.layout.lock();
        let mut next = Some(0);
        while let Some(from) = next {
            // As much may be mapped as takes seconds to go through.
            if self.is_ending() {
                return Err(EINTR);
            }
            let child = space.duplicate().map_err(|_| ENOMEM)?;
            next = self
                .program
                .space
                .handle()
                .fork(child, from)
                .map_err(|_| ENOMEM)?;
        }
        drop(layout);
        let program = self.copy(self.program.space.forked(space)?, birth)?;
        let process = Arc::new(self.process.forked());
        let new = Task::new(&process, process.id, program, self.ears.mask());
        let mut new = new.map_err(|_| ENOMEM)?;
        new.signal_stack = self.signal_stack;
        process.system.add(&process, Some(self.process.id));
        self.begin(new, birth)
            .inspect_err(|_| process.system.forget(process.id))
    }

    pub(super) fn exec(&mut self, path: u64, arguments: u64, environment: u64) -> Result<()> {
        let space = &self.program.space;
        let path = memory::read_text(space, path)?;
        let arguments = memory::read_texts(space, arguments)?;
        let environment = memory::read_texts(space, environment)?;
        let system = self.process.system.clone();
        let wanted = Wanted {
            path,
            arguments,
            environment,
        };
        let cred = self.process.cred();
        let begun = system.load(&|path| self.program_at(path), wanted, &cred)?;
        if !self.process.is_alone() {
            self.be_alone()?;
        }
        self.process.forget_handlers();
        self.signal_stack = NO_STACK;
        self.process.change_cred(|cred| {
            cred.executed();
            Ok(())
        })?;
        self.close_for_exec();
        *self.process.layout.lock() = begun.layout;
        let told = Told::new(begun.wanted, begun.file);
        let before = core::mem::replace(&mut *self.process.told.lock(), told);
        drop(before);
        self.replace(begun.program).map_err(|_| ENOMEM)
    }

    /// The file of a program.
    fn program_at(&self, path: &[u8]) -> Result<Source> {
        let system = &self.process.system;
        if path == b"/proc/self/exe" && !system.is_rooted() {
            // There is one program in the archive, under every name.
            return system
                .files
                .program(b"bin/sh")
                .map(Source::Archive)
                .ok_or(ENOENT);
        }
        let cred = self.process.cred();
        let stand = self.process.directory.lock().clone();
        self.view(&cred).program(&stand, path)
    }

    pub(super) fn wait_child_for(&mut self, which: i32, status: u64, options: u64) -> Result<u64> {
        let Some((id, how)) = self.wait_child(which, options)? else {
            return Ok(0);
        };
        if status != 0 {
            memory::write(&self.program.space, status, &how.to_le_bytes())?;
        }
        Ok(id.into())
    }

    /// `uname`: six texts of 65 bytes.
    pub(super) fn name(&self, at: u64) -> Result<u64> {
        let bytes = files::names([
            b"Linux",
            b"trefoil",
            b"6.1.0",
            b"Trefoil linux",
            b"x86_64",
            b"",
        ]);
        memory::write(&self.program.space, at, &bytes)?;
        Ok(0)
    }

    /// `arch_prctl`: sets the base of FS.
    pub(super) fn set_segment(&mut self, what: u64, base: u64) -> Result<u64> {
        if what != 0x1002 || base >= USER_END {
            return Err(EINVAL);
        }
        self.program.registers.fs_base = base;
        Ok(0)
    }
}
