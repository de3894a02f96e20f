//! How processes and threads begin, become another program, and are waited for.

use super::Result;
use crate::children::{
    Children, WALL, WCLONE, WCONTINUED, WEXITED, WNOHANG, WNOTHREAD, WNOWAIT, WSTOPPED, of_child,
};
use crate::errno::{E2BIG, EAGAIN, EINVAL, ENOENT, ENOMEM, SIGCHLD};
use crate::memory::{self, PAGE, Program};
use crate::parts::{Files, Fs, Lent, Loan, Mm};
use crate::process::Told;
use crate::programs::{Source, Wanted};
use crate::task::{NO_STACK, Task};
use alloc::sync::Arc;
use domain_rt::sync::Wait;
use interfaces::SpaceError;
use linux::files;

/// The signal that says that a child has ended.
const SIGNAL: u64 = 0xff;
const CLONE_VM: u64 = 0x100;
const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
const CLONE_SIGHAND: u64 = 0x800;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_THREAD: u64 = 0x1_0000;
const CLONE_SETTLS: u64 = 0x8_0000;
const CLONE_PARENT_SETTID: u64 = 0x10_0000;
const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
const CLONE_CHILD_SETTID: u64 = 0x100_0000;
/// All of these, and what changes nothing here: semaphores, being traced, input and output.
const CLONE_KNOWN: u64 = SIGNAL
    | CLONE_VM
    | CLONE_FS
    | CLONE_FILES
    | CLONE_SIGHAND
    | CLONE_VFORK
    | CLONE_THREAD
    | CLONE_SETTLS
    | CLONE_PARENT_SETTID
    | CLONE_CHILD_CLEARTID
    | CLONE_CHILD_SETTID
    | 0x4_0000
    | 0x40_0000
    | 0x80_0000
    | 0x8000_0000;
/// Addresses of programs end here.
const USER_END: u64 = 1 << 47;

/// What `clone` is asked for.
#[derive(Clone, Copy)]
pub struct Birth {
    pub flags: u64,
    /// The signal that tells of its end; 0: none.
    pub signal: u64,
    /// Where the stack begins; 0: where that of who asks is.
    pub stack: u64,
    /// Where its number goes, for who asks and for the new one.
    pub parent_word: u64,
    pub child_word: u64,
    /// The base of FS.
    pub segment: u64,
}

impl Default for Birth {
    /// As `fork` does it.
    fn default() -> Self {
        Birth {
            flags: 0,
            signal: SIGCHLD.into(),
            stack: 0,
            parent_word: 0,
            child_word: 0,
            segment: 0,
        }
    }
}

impl Birth {
    fn asks(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

/// What `waitid` can be asked for.
const WAITS: u64 = WNOHANG | WSTOPPED | WEXITED | WCONTINUED | WNOWAIT | WNOTHREAD | WALL | WCLONE;

impl Task {
    pub(super) fn clone(&mut self, birth: Birth) -> Result<u64> {
        let asks = |flag| birth.asks(flag);
        let is_odd = birth.flags & !CLONE_KNOWN != 0
            || birth.signal > 64
            || asks(CLONE_SIGHAND) && !asks(CLONE_VM)
            // Handlers are those of one process.
            || asks(CLONE_SIGHAND) != asks(CLONE_THREAD)
            || asks(CLONE_SETTLS) && birth.segment >= USER_END;
        match asks(CLONE_THREAD) {
            _ if is_odd => Err(EINVAL),
            true => self.begin_thread(&birth),
            false => self.fork(&birth),
        }
    }

    /// `clone3`: the same, with its arguments in a list in memory (`linux/sched.h`).
    pub(super) fn clone_by_list(&mut self, at: u64, bytes: u64) -> Result<u64> {
        if !(64..=PAGE).contains(&bytes) {
            return Err(if bytes < 64 { EINVAL } else { E2BIG });
        }
        let [
            flags,
            _,
            child_word,
            parent_word,
            signal,
            stack,
            size,
            segment,
        ] = self.get(at)?;
        if flags & SIGNAL != 0 || (stack == 0) != (size == 0) {
            return Err(EINVAL);
        }
        self.clone(Birth {
            flags,
            signal,
            stack: stack.wrapping_add(size),
            parent_word,
            child_word,
            segment,
        })
    }

    /// `vfork`.
    pub(super) fn fork_for_exec(&mut self) -> Result<u64> {
        self.clone(Birth {
            flags: CLONE_VM | CLONE_VFORK,
            ..Birth::default()
        })
    }

    /// What the new one runs, in this memory or its copy.
    fn copy(&mut self, mm: Arc<Mm>, birth: &Birth) -> Result<Program> {
        let thread = mm.space.handle().thread();
        let thread = thread.map_err(|_: SpaceError| EAGAIN)?;
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
            mm,
            thread,
            registers,
            asked: self.program.asked,
        })
    }

    fn begin_thread(&mut self, birth: &Birth) -> Result<u64> {
        let program = self.copy(self.program.mm.clone(), birth)?;
        self.process.handlers.share();
        let id = self.process.system.new_number();
        let new = Task::new(&self.process, Some(id), program, self.shares(birth)?)?;
        self.begin(new, birth)
    }

    /// What the new one has in common with this one.
    fn shares(&self, birth: &Birth) -> Result<(Arc<Files>, Arc<Fs>)> {
        let files = match birth.asks(CLONE_FILES) {
            true => self.files.clone(),
            false => self.files.copy()?,
        };
        let fs = match birth.asks(CLONE_FS) {
            true => self.fs.clone(),
            false => self.fs.copy(),
        };
        Ok((files, fs))
    }

    /// Has the new one live, once its number stands where it is wanted.
    fn begin(&self, mut new: Task, birth: &Birth) -> Result<u64> {
        new.ears.set_mask(self.ears.mask());
        let number = new.id.to_le_bytes();
        if birth.asks(CLONE_PARENT_SETTID) {
            memory::write(&self.program.mm.space, birth.parent_word, &number)?;
        }
        if birth.asks(CLONE_CHILD_SETTID) {
            memory::write(&new.program.mm.space, birth.child_word, &number)?;
        }
        if birth.asks(CLONE_CHILD_CLEARTID) {
            new.clear_at = birth.child_word;
        }
        let id = new.id;
        new.start().map_err(|_| EAGAIN)?;
        Ok(id.into())
    }

    fn fork(&mut self, birth: &Birth) -> Result<u64> {
        let mm = match birth.asks(CLONE_VM) {
            true => self.program.mm.clone(),
            false => self.copied_memory()?,
        };
        let program = self.copy(mm, birth)?;
        let process = Arc::new(self.process.forked());
        let mut new = Task::new(&process, None, program, self.shares(birth)?)?;
        // In the same memory two of them on one stack would destroy it, unless one waits.
        if !birth.asks(CLONE_VM) || birth.asks(CLONE_VFORK) {
            new.signal_stack = self.signal_stack;
        }
        let lent = birth.asks(CLONE_VFORK).then(|| {
            let (loan, lent) = Loan::new(&self.ears);
            new.loan = Some(loan);
            lent
        });
        let system = &process.system;
        system.add(&process, self, birth.signal as u32)?;
        let id = self
            .begin(new, birth)
            .inspect_err(|_| system.forget(process.id))?;
        if let Some(lent) = lent {
            self.await_return(&lent);
        }
        Ok(id)
    }

    /// A copy of the memory for a child.
    fn copied_memory(&self) -> Result<Arc<Mm>> {
        let space = self.process.system.spaces.create().map_err(|_| ENOMEM)?;
        let mm = &self.program.mm;
        mm.copy(space, || self.is_ending())
    }

    /// Waits until a child does without the memory that it was lent. Nothing but SIGKILL ends that.
    fn await_return(&self, lent: &Lent) {
        loop {
            let seen = self.ears.changes();
            let is_over = lent.is_back() || self.is_ending();
            if is_over || self.ears.sleep(seen, None) == Wait::Interrupted {
                return;
            }
        }
    }

    pub(super) fn exec(&mut self, path: u64, arguments: u64, environment: u64) -> Result<()> {
        let space = &self.program.mm.space;
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
        // What another process has as well stays as it is there.
        if Arc::strong_count(&self.files) > 1 {
            self.files = self.files.copy()?;
            *self.process.shown.lock() = (Arc::downgrade(&self.files), Arc::downgrade(&self.fs));
        }
        self.process.forget_handlers();
        self.signal_stack = NO_STACK;
        self.process.change_cred(|cred| {
            cred.executed();
            Ok(())
        })?;
        self.close_for_exec();
        let told = Told::new(begun.wanted, begun.file);
        let before = core::mem::replace(&mut *self.process.told.lock(), told);
        drop(before);
        system.is_replaced(self.process.id);
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
        let stand = self.fs.directory.lock().clone();
        self.view(&cred).program(&stand, path)
    }

    /// `wait4`: which, where its end goes, options, where what it has used goes.
    pub(super) fn wait_child_for(&mut self, a: [u64; 4]) -> Result<u64> {
        let children = self.children_of(a[0] as i32, a[2])?;
        let Some((id, how)) = self.wait_child(children, a[2] | WEXITED)? else {
            return Ok(0);
        };
        if a[1] != 0 {
            memory::write(&self.program.mm.space, a[1], &how.to_le_bytes())?;
        }
        if a[3] != 0 {
            // What children use is not counted.
            self.put(a[3], &[0; 18])?;
        }
        Ok(id.into())
    }

    /// `waitid`: which, where what is told of it goes, options, where what it has used goes.
    pub(super) fn wait_child_info(&mut self, a: [u64; 5]) -> Result<u64> {
        let [kind, id, at, options, used] = a;
        let is_asked = options & (WEXITED | WSTOPPED | WCONTINUED) != 0;
        if options & !WAITS != 0 || !is_asked {
            return Err(EINVAL);
        }
        let children = match (kind, id as i32) {
            (0, _) => Children::All,
            (1, 1..) => Children::Process(id as u32),
            (2, 1..) => Children::Group(id as u32),
            (2, 0) => Children::Group(self.group_of(0)?),
            _ => return Err(EINVAL),
        };
        let found = self.wait_child(children, options)?;
        if used != 0 && found.is_some() {
            self.put(used, &[0; 18])?;
        }
        if at != 0 {
            let info = found.map_or([0; 16], |(id, how)| of_child(id, how).words());
            self.put(at, &info)?;
        }
        Ok(0)
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
        memory::write(&self.program.mm.space, at, &bytes)?;
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
