//! A thread of a process: it runs the program, answers it, and waits for it.

use crate::delivery::by_kernel;
use crate::errno::{EINTR, EIO, ENOMEM, Error, SIGBUS, SIGKILL, SIGSEGV};
use crate::memory::Program;
use crate::parts::{Files, Fs, Loan};
use crate::process::Process;
use crate::signals::{Ears, bit};
use crate::users::Counted;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use domain_rt::sync::Wait;
use domain_rt::user::{self, UserEvent};
use guests::workers::Work;
use interfaces::{Handle, RpcResult, UserThread};
use linux::faults::{Stuck, signal_of};
use linux::frame::{self, Info};
use linux::memory::Memory;

/// A thread, as this domain's own thread has it.
pub struct Task {
    pub process: Arc<Process>,
    pub id: u32,
    pub program: Program,
    /// What it has open, and where it stands in the tree.
    pub files: Arc<Files>,
    pub fs: Arc<Fs>,
    /// If the memory is lent by the parent. Behind the program, as it is given back with that.
    pub loan: Option<Loan>,
    /// That it is one of its user's.
    _counted: Counted,
    pub ears: Arc<Ears>,
    /// For what is read and written.
    pub buffer: Vec<u8>,
    /// For the frame of a signal: what its program has in vector registers, in the middle.
    pub vector: Vec<u8>,
    /// The call that a signal has broken off, until a handler or nobody decides what becomes of it.
    pub broken: Option<u64>,
    /// The mask that comes back when a handler has been entered.
    pub mask_after: Option<u64>,
    /// The word that is cleared, and woken at, when the thread ends; 0: none.
    pub clear_at: u64,
    /// The list of locks that it may hold; 0: none.
    pub robust: u64,
    /// The stack that handlers run on that want one of their own: address, flags, bytes.
    pub signal_stack: [u64; 3],
    /// Its name, as it gives itself one.
    pub name: [u8; 16],
    pub stuck: Stuck,
    /// When the wait ends that a signal has broken off, and when the one does that begins anew.
    pub broken_off: Cell<Option<u64>>,
    pub begun_anew: Cell<Option<u64>>,
}

/// Why an address was wrong, of `si_code`: nothing is there; not for this; behind the end of a
/// file.
const SEGV_MAPERR: i32 = 1;
const SEGV_ACCERR: i32 = 2;
const BUS_ADRERR: i32 = 2;
/// `SS_DISABLE`.
pub const NO_STACK: [u64; 3] = [0, 2, 0];

/// How a thread goes on.
pub enum After {
    Run,
    /// It ends by itself.
    Leave(i32),
    /// All threads of its process end, with the status that `wait4` says.
    End(i32),
}

impl Task {
    /// A thread of a process that runs `program`, with what it shares: the first one, or one of
    /// this number. It puts off no signals.
    ///
    /// # Errors
    /// `EAGAIN`: the user has as many as may be. `ENOMEM`.
    pub fn new(
        process: &Arc<Process>,
        id: Option<u32>,
        program: Program,
        (files, fs): (Arc<Files>, Arc<Fs>),
    ) -> Result<Self, Error> {
        let counted = process.owner.enter(process.most_tasks())?;
        let thread = program.thread.duplicate().map_err(|_| ENOMEM)?;
        if id.is_none() {
            *process.shown.lock() = (Arc::downgrade(&files), Arc::downgrade(&fs));
            *process.mm.lock() = Arc::downgrade(&program.mm);
        }
        Ok(Task {
            process: process.clone(),
            id: id.unwrap_or(process.id),
            program,
            files,
            fs,
            loan: None,
            _counted: counted,
            ears: Arc::new(Ears::new(thread, &process.signals, 0)),
            buffer: Vec::new(),
            vector: Vec::new(),
            broken: None,
            mask_after: None,
            clear_at: 0,
            robust: 0,
            signal_stack: NO_STACK,
            name: [0; 16],
            stuck: Stuck::default(),
            broken_off: Cell::new(None),
            begun_anew: Cell::new(None),
        })
    }

    /// Has another program in place of the one that made this call.
    pub fn replace(&mut self, program: Program) -> RpcResult<()> {
        let before = self.ears.follow(program.thread.duplicate()?);
        self.leave_words();
        *self.process.mm.lock() = Arc::downgrade(&program.mm);
        self.program = program;
        self.loan = None;
        (self.clear_at, self.robust) = (0, 0);
        drop(before);
        Ok(())
    }

    /// Lets it live.
    ///
    /// # Errors
    /// There is no memory for a thread, or its process ends.
    pub fn start(self) -> Result<(), Error> {
        let (process, id) = (self.process.clone(), self.id);
        process.join(id, &self.ears)?;
        process.system.workers.clone().run(self).map_err(|_| {
            process.leave(id, 0);
            ENOMEM
        })
    }

    /// Runs the program to its end.
    fn live(mut self) {
        let (own, all) = loop {
            let event = user::run(&self.program.thread, &mut self.program.registers);
            let after = match event {
                UserEvent::Syscall => self.call(),
                event => self.stopped(event),
            };
            match after {
                After::Run => {}
                After::Leave(status) => break (status, None),
                After::End(status) => break (status, Some(status)),
            }
            if self.ears.ready() == 0 && self.broken.is_none() {
                continue;
            }
            match self.take_signals() {
                After::Run => {}
                After::Leave(status) => break (status, None),
                After::End(status) => break (status, Some(status)),
            }
        };
        self.finish(own, all);
    }

    /// Ends the thread, and if `all` says how, its process.
    fn finish(self, own: i32, all: Option<i32>) {
        let (process, id) = (self.process.clone(), self.id);
        if let Some(status) = all {
            process.end(id, status);
        }
        self.leave_words();
        drop(self);
        if let Some(status) = process.leave(id, own) {
            process.system.ended(process.id, status);
        }
    }

    /// Does what is to be done when the program has stopped for anything but a call.
    #[inline(never)]
    fn stopped(&mut self, event: UserEvent) -> After {
        match event {
            UserEvent::PageFault {
                address,
                write,
                execute,
            } => self.fault(address, write, execute),
            UserEvent::Exception { vector, error_code } => {
                let info = by_kernel(signal_of(vector));
                self.hit(info, [error_code, vector.into(), 0])
            }
            UserEvent::Refused => After::End(SIGKILL as i32),
            UserEvent::Syscall | UserEvent::Kicked | UserEvent::Interrupted => After::Run,
        }
    }

    fn fault(&mut self, address: u64, write: bool, execute: bool) -> After {
        let space = &self.program.mm.space;
        // Bits of the error code: writing, by a program, executing.
        let error = 4 | u64::from(write) << 1 | u64::from(execute) << 4;
        let trap = [error, 14, address];
        if execute && !self.stuck.tries_again(space, address) {
            return self.hit(Info::fault(SIGSEGV, SEGV_ACCERR, address), trap);
        }
        match space.touch(address, write) {
            Ok(()) => After::Run,
            // There is no memory for it: this process was ended so that others can go on.
            Err(ENOMEM) => After::End(SIGKILL as i32),
            Err(EIO) => self.hit(Info::fault(SIGBUS, BUS_ADRERR, address), trap),
            Err(_) => self.hit(Info::fault(SIGSEGV, SEGV_MAPERR, address), trap),
        }
    }

    /// Whether its process is to end.
    pub fn is_ending(&self) -> bool {
        self.ears.ready() & bit(SIGKILL) != 0
    }

    /// Waits until `ready` says something. It is asked again whenever somebody has rung: whoever it
    /// gives the thread's ears to.
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

    /// As [`until_or`](Self::until_or), and if a stop breaks it off it is gone on with to the same
    /// time.
    pub fn until_timed<T>(
        &self,
        deadline: Option<u64>,
        ready: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let deadline = self.begun_anew.take().or(deadline);
        let result = self.until_or(deadline, ready);
        self.broken_off.set(deadline.filter(|_| result.is_err()));
        result
    }

    /// Rests as long as the process is stopped.
    pub fn rest(&mut self) {
        loop {
            let seen = self.ears.changes();
            if self.is_ending() || !self.process.is_stopped() {
                break;
            }
            if self.ears.sleep(seen, None) == Wait::Interrupted {
                break;
            }
        }
    }

    /// Has room for what its program has in vector registers, in the frame of a signal.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn room_of_vector(&mut self) -> Result<(), Error> {
        if !self.vector.is_empty() {
            return Ok(());
        }
        let length = user::vector(&self.program.thread, &mut []) + frame::FRONT + frame::BEHIND;
        self.vector.try_reserve_exact(length).map_err(|_| ENOMEM)?;
        self.vector.resize(length, 0);
        Ok(())
    }

    /// Gives another user thread what its program has in vector registers.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn copy_vector(&mut self, to: &Handle<dyn UserThread>) -> Result<(), Error> {
        self.room_of_vector()?;
        let (_, vector) = self.vector.split_at_mut(frame::FRONT);
        user::vector(&self.program.thread, vector);
        user::set_vector(to, vector);
        Ok(())
    }

    /// Ends all other threads of the process and waits until they have. Signals wait meanwhile.
    ///
    /// # Errors
    /// `EINTR`: another one does so, or all of them end.
    pub fn be_alone(&mut self) -> Result<(), Error> {
        if !self.process.end_others(self.id) {
            return Err(EINTR);
        }
        loop {
            let seen = self.ears.changes();
            if self.process.is_alone() {
                break;
            }
            if self.is_ending() || self.ears.sleep(seen, None) == Wait::Interrupted {
                return Err(EINTR);
            }
        }
        self.process.begin_again();
        self.id = self.process.id;
        Ok(())
    }
}

impl Work for Task {
    fn work(self) {
        self.live();
    }
}
