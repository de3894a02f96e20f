//! A process, and what processes know of each other.

use crate::errno::{
    EAGAIN, ECHILD, EINTR, ENOMEM, ESRCH, Error, SIGCHLD, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGTRAP,
};
use crate::files::{Files, Open};
use crate::memory::{self, Program};
use crate::signals::{Ears, HARMLESS, Handler, Handlers, bit};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::thread;
use domain_rt::user::{self, UserEvent, UserRegisters};
use interfaces::{AddressSpaces, Handle, RVec, Random, RpcResult};

/// What there is once.
pub struct System {
    pub spaces: Handle<dyn AddressSpaces>,
    pub files: Files,
    random: Handle<dyn Random>,
    table: Mutex<BTreeMap<u32, Entry>>,
    /// A process has ended whose parent is none.
    ended: Condvar,
    next: AtomicU32,
}

/// What others know of a process.
struct Entry {
    parent: u32,
    group: u32,
    /// How it ended, as `wait4` says it.
    status: Option<i32>,
    ears: Arc<Ears>,
}

/// System calls that a signal has ended begin anew.
const SA_RESTART: u64 = 0x1000_0000;
/// The most handlers that interrupt each other.
const MOST_SAVED: usize = 16;

/// A process, as its own thread has it.
pub struct Process {
    pub system: Arc<System>,
    pub id: u32,
    pub program: Program,
    /// What is open, and whether `exec` closes it.
    pub files: Vec<Option<(Arc<Open>, bool)>>,
    pub directory: Vec<u8>,
    pub handlers: Handlers,
    pub ears: Arc<Ears>,
    /// For what is read and written.
    pub buffer: Vec<u8>,
    /// What handlers have interrupted, with the mask of then.
    saved: Vec<(UserRegisters, u64)>,
    /// The mask that comes back when a handler has been entered.
    pub mask_after: Option<u64>,
}

/// How a process goes on.
pub enum After {
    Run,
    /// It ends, with the status that `wait4` says.
    End(i32),
}

impl System {
    /// No processes yet.
    pub fn new(
        spaces: Handle<dyn AddressSpaces>,
        files: Files,
        random: Handle<dyn Random>,
    ) -> Self {
        System {
            spaces,
            files,
            random,
            table: Mutex::new(BTreeMap::new()),
            ended: Condvar::new(),
            next: AtomicU32::new(1),
        }
    }

    /// So many random bytes.
    ///
    /// # Errors
    /// `EAGAIN`: the machine has no source, or none yet.
    pub fn random(&self, count: usize) -> Result<RVec<u8>, Error> {
        let buffer = RVec::filled(0, count).map_err(|_| ENOMEM)?;
        self.random.fill(buffer).map_err(|_| EAGAIN)
    }

    /// Waits for the end of a process; its status. `None`: the wait was ended.
    pub fn end_of(&self, id: u32) -> Option<i32> {
        let mut table = self.table.lock();
        loop {
            if let Some(status) = table.get(&id)?.status {
                table.remove(&id);
                return Some(status);
            }
            let (again, why) = self.ended.wait(table);
            table = again;
            if why == Wait::Interrupted {
                return None;
            }
        }
    }

    /// Sends a signal of process `from` to those that are meant; whether there was one. 0 is no
    /// signal.
    fn raise(&self, from: u32, signal: u32, meant: impl Fn(u32, &Entry) -> bool) -> bool {
        let table = self.table.lock();
        let mut found = false;
        for (id, entry) in table.iter() {
            if entry.status.is_some() || !meant(*id, entry) {
                continue;
            }
            found = true;
            // The sender looks at its own signals after its call.
            if signal != 0 && entry.ears.note(signal) && *id != from {
                entry.ears.call();
            }
        }
        found
    }
}

impl Process {
    /// The first one of a session.
    ///
    /// # Errors
    /// No memory.
    pub fn first(
        system: &Arc<System>,
        program: Program,
        open: Vec<Option<Arc<Open>>>,
    ) -> RpcResult<Self> {
        let files = open.into_iter().map(|open| open.map(|open| (open, false)));
        let thread = program.thread.duplicate()?;
        Ok(Process {
            system: system.clone(),
            id: system.next.fetch_add(1, Ordering::Relaxed),
            program,
            files: files.collect(),
            directory: Vec::new(),
            handlers: Box::new([Handler::default(); 65]),
            ears: Arc::new(Ears::new(thread, 0, HARMLESS)),
            buffer: Vec::new(),
            saved: Vec::new(),
            mask_after: None,
        })
    }

    /// Has another program in place of the one that made this call.
    pub fn replace(&mut self, program: Program) -> RpcResult<()> {
        let before = self.ears.follow(program.thread.duplicate()?);
        self.program = program;
        drop(before);
        Ok(())
    }

    /// A child with this program, and all else as it is here.
    ///
    /// # Errors
    /// No memory.
    pub fn child(&self, program: Program) -> RpcResult<Self> {
        let thread = program.thread.duplicate()?;
        let ears = Ears::new(thread, self.ears.mask(), self.ears.ignored());
        Ok(Process {
            system: self.system.clone(),
            id: self.system.next.fetch_add(1, Ordering::Relaxed),
            program,
            files: self.files.clone(),
            directory: self.directory.clone(),
            handlers: self.handlers.clone(),
            ears: Arc::new(ears),
            buffer: Vec::new(),
            saved: self.saved.clone(),
            mask_after: None,
        })
    }

    /// Lets it live, as a child of nobody.
    pub fn start(self) -> RpcResult<()> {
        let group = self.id;
        self.start_below(0, group)
    }

    /// Lets it live, as a child of `parent`'s.
    pub fn start_from(self, parent: &Process) -> RpcResult<()> {
        let group = parent.group_of(0).unwrap_or(self.id);
        self.start_below(parent.id, group)
    }

    fn start_below(self, parent: u32, group: u32) -> RpcResult<()> {
        let entry = Entry {
            parent,
            group,
            status: None,
            ears: self.ears.clone(),
        };
        let (system, id) = (self.system.clone(), self.id);
        system.table.lock().insert(id, entry);
        thread::spawn("process", move || self.live()).inspect_err(|_| {
            system.table.lock().remove(&id);
        })
    }

    /// Runs the program to its end.
    fn live(mut self) {
        let status = loop {
            let event = user::run(&self.program.thread, &mut self.program.registers);
            let after = match event {
                UserEvent::Syscall => self.call(),
                event => self.stopped(event),
            };
            match after {
                After::Run => {}
                After::End(status) => break status,
            }
            if let After::End(status) = self.take_signals() {
                break status;
            }
        };
        let Process {
            system,
            id,
            program,
            files,
            ..
        } = self;
        drop((files, program));
        system.ended(id, status);
    }

    /// Does what is to be done when the program has stopped for anything but a call.
    #[inline(never)]
    fn stopped(&mut self, event: UserEvent) -> After {
        match event {
            UserEvent::PageFault { address, write, .. } => self.fault(address, write),
            UserEvent::Exception { vector, .. } => self.exception(vector),
            UserEvent::Refused => After::End(SIGKILL as i32),
            UserEvent::Syscall | UserEvent::Kicked | UserEvent::Interrupted => After::Run,
        }
    }

    fn fault(&mut self, address: u64, write: bool) -> After {
        match self.program.space.touch(address, write) {
            Ok(()) => After::Run,
            Err(_) => self.hit(SIGSEGV),
        }
    }

    fn exception(&mut self, vector: u8) -> After {
        self.hit(match vector {
            0 | 16 | 19 => SIGFPE,
            1 | 3 => SIGTRAP,
            6 => SIGILL,
            _ => SIGSEGV,
        })
    }

    /// A signal of its own doing: it cannot be put off.
    fn hit(&mut self, signal: u32) -> After {
        let handler = self.handlers[signal as usize];
        let enters = handler.function > 1 && self.enter(signal, handler).is_ok();
        if enters {
            After::Run
        } else {
            After::End(signal as i32)
        }
    }

    /// Does what signals ask for that have come.
    fn take_signals(&mut self) -> After {
        while let Some(signal) = self.ears.take() {
            let handler = self.handlers[signal as usize];
            if handler.function > 1 && self.enter(signal, handler).is_ok() {
                continue;
            }
            if handler.function != 1 && HARMLESS & bit(signal) == 0 {
                return After::End(signal as i32);
            }
        }
        if let Some(mask) = self.mask_after.take() {
            self.set_mask(mask);
        }
        After::Run
    }

    /// Has the program go on in a handler, and then, by `rt_sigreturn`, where it was.
    fn enter(&mut self, signal: u32, handler: Handler) -> Result<(), Error> {
        if self.saved.len() == MOST_SAVED {
            return Err(EINTR);
        }
        let registers = &mut self.program.registers;
        // Below the red zone, and as a call leaves the stack (System V ABI, 3.2.2).
        let stack = (registers.rsp.wrapping_sub(128) & !15).wrapping_sub(8);
        memory::write(&self.program.space, stack, &handler.restorer.to_le_bytes())?;
        let mut before = *registers;
        if before.rax == EINTR.result() && handler.flags & SA_RESTART != 0 {
            before.rip -= 2;
            before.rax = self.program.asked;
        }
        (registers.rsp, registers.rip) = (stack, handler.function);
        (registers.rdi, registers.rsi, registers.rdx) = (signal.into(), 0, 0);
        registers.rax = 0;
        let mask = self.mask_after.take();
        let now = self.ears.mask();
        self.set_mask(now | handler.mask | bit(signal));
        self.saved.push((before, mask.unwrap_or(now)));
        Ok(())
    }

    /// A handler is done.
    pub fn leave_handler(&mut self) {
        if let Some((registers, mask)) = self.saved.pop() {
            self.program.registers = registers;
            self.set_mask(mask);
        }
    }

    /// Signals that wait.
    pub fn mask(&self) -> u64 {
        self.ears.mask()
    }

    /// Sets which signals wait; those that cannot be put off do not.
    pub fn set_mask(&self, mask: u64) {
        self.ears.set_mask(mask);
    }

    /// Sets what is done at a signal.
    pub fn handle(&mut self, signal: u32, handler: Handler) {
        self.handlers[signal as usize] = handler;
        let ignores = handler.function == 1 || handler.function == 0 && HARMLESS & bit(signal) != 0;
        self.ears.ignore(signal, ignores);
    }

    /// Handlers are gone with the program that had them.
    pub fn forget_handlers(&mut self) {
        for signal in 1..65 {
            if self.handlers[signal as usize].function > 1 {
                self.handle(signal, Handler::default());
            }
        }
        self.saved.clear();
    }

    /// Waits until `ready` says something. It is asked again whenever somebody has rung: whoever it
    /// gives the process's ears to.
    ///
    /// # Errors
    /// `EINTR`: a signal has come.
    pub fn until<T>(&self, ready: impl FnMut() -> Option<T>) -> Result<T, Error> {
        self.until_or(None, ready)
            .map(|found| found.expect("there is no deadline"))
    }

    /// As [`until`](Self::until), to a time at most: then `None`.
    pub fn until_or<T>(
        &self,
        deadline: Option<u64>,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, Error> {
        loop {
            let seen = self.ears.changes();
            if let Some(found) = ready() {
                return Ok(Some(found));
            }
            if self.ears.ready() != 0 {
                return Err(EINTR);
            }
            match self.ears.sleep(seen, deadline) {
                Wait::Interrupted => return Err(EINTR),
                Wait::TimedOut => return Ok(None),
                Wait::Woken => {}
            }
        }
    }

    /// Sends a signal; `to` as `kill` has it.
    pub fn kill(&self, to: i32, signal: u32) -> Result<(), Error> {
        let own = self.group_of(0)?;
        let found = self.system.raise(self.id, signal, |id, entry| match to {
            0 => entry.group == own,
            1.. => id == to as u32,
            _ => entry.group == to.unsigned_abs(),
        });
        found.then_some(()).ok_or(ESRCH)
    }

    /// The group of a process; 0: of this one.
    pub fn group_of(&self, id: u32) -> Result<u32, Error> {
        let id = if id == 0 { self.id } else { id };
        let table = self.system.table.lock();
        table.get(&id).map(|entry| entry.group).ok_or(ESRCH)
    }

    /// Puts a process into a group.
    pub fn set_group(&self, id: u32, group: u32) -> Result<(), Error> {
        let id = if id == 0 { self.id } else { id };
        let group = if group == 0 { id } else { group };
        let mut table = self.system.table.lock();
        table.get_mut(&id).ok_or(ESRCH)?.group = group;
        Ok(())
    }

    /// The number of the parent; 0 if it has none.
    pub fn parent(&self) -> u32 {
        let table = self.system.table.lock();
        table.get(&self.id).map_or(0, |own| own.parent)
    }

    /// Waits for the end of a child, `which` as `wait4` has it; its number and how it ended, or
    /// `None` where none has ended, and `now` is asked.
    pub fn wait_child(&self, which: i32, now: bool) -> Result<Option<(u32, i32)>, Error> {
        let own = self.group_of(0)?;
        let meant = |id: u32, entry: &Entry| {
            entry.parent == self.id
                && match which {
                    -1 => true,
                    0 => entry.group == own,
                    1.. => id == which as u32,
                    _ => entry.group == which.unsigned_abs(),
                }
        };
        self.until(|| {
            let mut table = self.system.table.lock();
            let children = || table.iter().filter(|(id, entry)| meant(**id, entry));
            if children().next().is_none() {
                return Some(Err(ECHILD));
            }
            let ended = children().find_map(|(id, entry)| Some((*id, entry.status?)));
            match ended {
                Some((id, _)) => drop(table.remove(&id)),
                None if now => {}
                None => return None,
            }
            Some(Ok(ended))
        })?
    }
}

impl System {
    /// A process has ended: its children are nobody's, and its parent is told.
    fn ended(&self, id: u32, status: i32) {
        let mut table = self.table.lock();
        table.retain(|_, entry| entry.parent != id || entry.status.is_none());
        for entry in table.values_mut().filter(|entry| entry.parent == id) {
            entry.parent = 0;
        }
        let parent = table.get(&id).map_or(0, |entry| entry.parent);
        let ears = table.get(&parent).map(|entry| entry.ears.clone());
        match table.get_mut(&id) {
            Some(entry) if parent == 0 || ears.is_some() => entry.status = Some(status),
            _ => drop(table.remove(&id)),
        }
        drop(table);
        match ears {
            Some(ears) if ears.note(SIGCHLD) => ears.call(),
            Some(ears) => ears.ring(),
            None => self.ended.notify_all(),
        }
    }
}
