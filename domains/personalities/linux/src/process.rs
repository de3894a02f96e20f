//! A process: what its threads share, and who they are.

use crate::calls::limits::{self, Limits};
use crate::errno::{EAGAIN, Error, SIGCHLD, SIGCONT, SIGKILL, SIGSTOP};
use crate::files::Open;
use crate::handlers::{Handler, Handlers};
use crate::parts::{Files, Fs, Mm};
use crate::programs::Wanted;
use crate::signals::{Ears, HARMLESS, STOPS, Signals, bit};
use crate::system::System;
use crate::task::Task;
use crate::users::Owner;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use linux::cred::Cred;
use linux::frame::Info;

/// Children that stop send no signal; those that end are not waited for.
const SA_NOCLDSTOP: u64 = 1;
const SA_NOCLDWAIT: u64 = 2;
/// The most descriptors of a process.
pub const MOST_FILES: usize = 1024;

/// A process: a group of threads. Of its locks no two are held at once, but for `members` within
/// that of all processes, and what counts for users within `cred`.
pub struct Process {
    pub system: Arc<System>,
    /// For whom its tasks count.
    pub owner: Arc<Owner>,
    pub id: u32,
    /// Users and groups that it acts for, in all its threads.
    cred: Mutex<Arc<Cred>>,
    /// What its first thread has open, and where that stands, for others that ask.
    pub shown: Mutex<(Weak<Files>, Weak<Fs>)>,
    /// What it runs in.
    pub mm: Mutex<Weak<Mm>>,
    pub limits: Mutex<Limits>,
    /// What it runs.
    pub told: Mutex<Told>,
    pub handlers: Handlers,
    pub signals: Arc<Signals>,
    members: Mutex<Members>,
}

/// What a process runs, as it is told to others.
#[derive(Clone, Default)]
pub struct Told {
    /// The path of the program.
    pub path: Vec<u8>,
    /// Its arguments, a zero byte behind each.
    pub line: Vec<u8>,
    /// Its file.
    pub file: Option<Arc<Open>>,
}

impl Told {
    /// Of a program that is begun.
    pub fn new(wanted: Wanted, file: Option<Arc<Open>>) -> Self {
        let mut line = wanted.arguments.join(&0);
        line.push(0);
        Told {
            path: wanted.path,
            line,
            file,
        }
    }
}

/// The threads of a process.
struct Members {
    threads: Vec<(u32, Arc<Ears>)>,
    /// How all of them end, as `wait4` says it, once that is known.
    end: Option<i32>,
    /// How the first one ended: the status, if the others just end as well.
    first: i32,
    /// One of them becomes another program, and the others end before.
    is_replaced: bool,
}

impl Process {
    /// One without threads.
    pub fn new(system: &Arc<System>) -> Result<Self, Error> {
        let cred = Cred::default();
        let owner = Owner::new(system.users.of(cred.user.real)?);
        Ok(Process::of(system, owner, Arc::new(cred)))
    }

    fn of(system: &Arc<System>, owner: Arc<Owner>, cred: Arc<Cred>) -> Self {
        Process {
            system: system.clone(),
            owner,
            id: system.new_number(),
            cred: Mutex::new(cred),
            shown: Mutex::default(),
            limits: Mutex::new(limits::usual(system.users.usual_tasks)),
            mm: Mutex::default(),
            told: Mutex::default(),
            handlers: Handlers::new(),
            signals: Arc::new(Signals::new(HARMLESS)),
            members: Mutex::new(Members {
                threads: Vec::new(),
                end: None,
                first: 0,
                is_replaced: false,
            }),
        }
    }

    /// A child as a fork makes it, without threads.
    pub fn forked(&self) -> Self {
        // Both under one lock, so that they are of one user.
        let cred = self.cred.lock();
        let owner = Owner::new(self.owner.user());
        let mut child = Process::of(&self.system, owner, cred.clone());
        drop(cred);
        child.limits = Mutex::new(*self.limits.lock());
        child.told = Mutex::new(self.told.lock().clone());
        child.handlers = self.handlers.copy();
        child.signals.ignore_all(self.signals.ignored());
        child
    }

    /// Users and groups that it acts for.
    pub fn cred(&self) -> Arc<Cred> {
        self.cred.lock().clone()
    }

    /// Changes who it is, if that may be.
    ///
    /// # Errors
    /// Those of `change`, after which it is who it was.
    pub fn change_cred<T>(
        &self,
        change: impl FnOnce(&mut Cred) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut cred = self.cred.lock();
        let mut new = Cred::clone(&cred);
        let changed = change(&mut new)?;
        if new.user.real != cred.user.real {
            self.owner.change(self.system.users.of(new.user.real)?);
        }
        *cred = Arc::new(new);
        Ok(changed)
    }

    /// A thread comes to it.
    ///
    /// # Errors
    /// `EAGAIN`: the process ends, or becomes another program; or no memory.
    pub fn join(&self, id: u32, ears: &Arc<Ears>) -> Result<(), Error> {
        let mut members = self.members.lock();
        if members.end.is_some() || members.is_replaced {
            return Err(EAGAIN);
        }
        members.threads.try_reserve(1).map_err(|_| EAGAIN)?;
        members.threads.push((id, ears.clone()));
        Ok(())
    }

    /// Whether a thread is the only one.
    pub fn is_alone(&self) -> bool {
        self.members.lock().threads.len() <= 1
    }

    /// A thread goes, with a status of its own; that of the process, if it was the last.
    pub fn leave(&self, id: u32, status: i32) -> Option<i32> {
        let mut members = self.members.lock();
        members.threads.retain(|(other, _)| *other != id);
        if id == self.id {
            members.first = status;
        }
        if members.threads.is_empty() {
            return Some(members.end.unwrap_or(members.first));
        }
        // What it was to do about signals others do now; and one may wait to be alone.
        if members.is_replaced || self.signals.pending() != 0 {
            members.threads.iter().for_each(|(_, ears)| ears.call());
        }
        None
    }

    /// Whether one of its threads has this number.
    pub fn has_thread(&self, id: u32) -> bool {
        self.members.lock().threads.iter().any(|it| it.0 == id)
    }

    /// Ends all threads but `own`; the first who says how is heard.
    pub fn end(&self, own: u32, status: i32) {
        let mut members = self.members.lock();
        members.end.get_or_insert(status);
        self.signals.set(SIGKILL);
        for (_, ears) in members.threads.iter().filter(|(id, _)| *id != own) {
            ears.call();
        }
    }

    /// Ends all threads but `own`, which becomes another program; whether it is the first to say
    /// so.
    pub fn end_others(&self, own: u32) -> bool {
        let mut members = self.members.lock();
        if members.is_replaced {
            return false;
        }
        members.is_replaced = true;
        for (_, ears) in members.threads.iter().filter(|(id, _)| *id != own) {
            ears.set(SIGKILL);
            ears.call();
        }
        true
    }

    /// The only thread takes the number of the process, and others may come again.
    pub fn begin_again(&self) {
        let mut members = self.members.lock();
        members.is_replaced = false;
        for (id, _) in &mut members.threads {
            *id = self.id;
        }
    }

    /// Sends a signal, by a thread or by nobody. It is for any thread that does not put it off.
    pub fn signal(&self, info: Info, from: Option<&Task>) {
        let signal = info.signal;
        match signal {
            SIGSTOP => return self.stop(SIGSTOP),
            SIGCONT => self.go_on(),
            _ => {}
        }
        let is_told = match signal {
            0 => false,
            SIGKILL => {
                self.signals.set(SIGKILL);
                true
            }
            _ => self.signals.note(info),
        };
        if !is_told {
            return;
        }
        // The sender looks at its own signals after its call.
        let takes = |ears: &Ears| ears.mask() & bit(signal) == 0;
        if from.is_some_and(|from| from.process.id == self.id && takes(&from.ears)) {
            return;
        }
        let members = self.members.lock();
        let mut takers = members.threads.iter().filter(|(_, ears)| takes(ears));
        match signal {
            SIGKILL => takers.for_each(|(_, ears)| ears.call()),
            _ => takers.next().into_iter().for_each(|(_, ears)| ears.call()),
        }
    }

    /// Sends a signal to a thread; whether there is one of this number.
    pub fn signal_thread(&self, id: u32, info: Info, from: Option<&Task>) -> bool {
        let signal = info.signal;
        if matches!(signal, SIGKILL | SIGSTOP | SIGCONT) {
            let is_here = self.has_thread(id);
            if is_here {
                self.signal(info, from);
            }
            return is_here;
        }
        let members = self.members.lock();
        let Some((_, ears)) = members.threads.iter().find(|it| it.0 == id) else {
            return false;
        };
        let ignored = signal != 0 && self.signals.ignored() & bit(signal) != 0;
        if signal != 0 && !ignored {
            ears.note(info);
            if from.is_none_or(|from| from.id != id) {
                ears.call();
            }
        }
        true
    }

    /// Has all threads rest, by a signal, until the process goes on.
    pub fn stop(&self, signal: u32) {
        self.signals.withdraw(bit(SIGCONT));
        self.signals.set(SIGSTOP);
        let members = self.members.lock();
        members.threads.iter().for_each(|(_, ears)| ears.call());
        drop(members);
        self.system
            .has_changed(self.id, (signal as i32) << 8 | 0x7f);
    }

    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.signals.pending() & bit(SIGSTOP) != 0
    }

    /// Goes on if it is stopped; what would stop it is forgotten.
    fn go_on(&self) {
        if self.signals.withdraw(STOPS) & bit(SIGSTOP) != 0 {
            let members = self.members.lock();
            members.threads.iter().for_each(|(_, ears)| ears.ring());
            drop(members);
            self.system.has_changed(self.id, 0xffff);
        }
    }

    /// A child has ended, or stopped: whoever waits is told, and the signal is sent if it is
    /// wanted.
    pub fn child_changed(&self, info: Info) {
        self.signal(info, None);
        self.wake();
    }

    /// Has all threads that wait look again.
    pub fn wake(&self) {
        let members = self.members.lock();
        members.threads.iter().for_each(|(_, ears)| ears.ring());
    }

    /// Whether its children are kept until it has waited for them.
    pub fn waits_for_children(&self) -> bool {
        let handler = self.handlers.get(SIGCHLD);
        handler.function != 1 && handler.flags & SA_NOCLDWAIT == 0
    }

    /// Whether it gets a signal when a child stops or goes on.
    pub fn hears_of_stops(&self) -> bool {
        self.handlers.get(SIGCHLD).flags & SA_NOCLDSTOP == 0
    }

    /// One thread puts signals off from now on that have come for any: others are asked.
    pub fn ask_others(&self, own: u32) {
        let members = self.members.lock();
        for (_, ears) in members.threads.iter().filter(|(id, _)| *id != own) {
            ears.call();
        }
    }

    /// Sets what is done at a signal. Inlined, as a call of it would be most of it.
    #[inline(always)]
    pub fn handle(&self, signal: u32, handler: Handler) {
        let before = self.handlers.set(signal, handler);
        if before.min(handler.function) <= 1 {
            let ignores = match handler.function {
                0 => HARMLESS & bit(signal) != 0,
                function => function == 1,
            };
            self.signals.ignore(signal, ignores);
        }
    }

    /// Handlers are gone with the program that had them.
    pub fn forget_handlers(&self) {
        for signal in 1..65 {
            if self.handlers.get(signal).function > 1 {
                self.handle(signal, Handler::default());
            }
        }
    }
}
