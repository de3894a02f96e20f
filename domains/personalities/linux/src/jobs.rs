//! Groups and sessions of processes (`setpgid(2)`, `setsid(2)`, `credentials(7)`), and signals that
//! are sent to many.

use crate::delivery::by_kernel;
use crate::errno::{EACCES, EINVAL, EPERM, ESRCH, Error, SIGCONT, SIGHUP};
use crate::process::Process;
use crate::system::System;
use crate::table::{Entry, INIT};
use crate::task::Task;
use crate::users::MOST_TASKS;
use alloc::sync::Arc;
use linux::frame::Info;

/// A signal that a thread has sent to a thread.
const SI_TKILL: i32 = -6;

impl System {
    /// Does something with each process that is meant and lives, with nothing locked; whether there
    /// is one. One that is begun meanwhile has a higher number, so it is met, too.
    fn each(
        &self,
        is_meant: impl Fn(u32, &Entry) -> bool,
        mut act: impl FnMut(&Arc<Process>) -> bool,
    ) -> bool {
        let (mut from, mut is_any) = (0, false);
        for _ in 0..2 * MOST_TASKS {
            let table = self.table.lock();
            let next = table.next(from, |id, entry| entry.is_live() && is_meant(id, entry));
            let Some((id, process)) = next.map(|(id, entry)| (id, entry.process.clone())) else {
                break;
            };
            drop(table);
            is_any |= act(&process);
            from = id.saturating_add(1);
        }
        is_any
    }

    /// Sends a signal to a group, by nobody.
    pub fn signal_group(&self, group: u32, signal: u32) {
        let send = |process: &Arc<Process>| {
            process.signal(by_kernel(signal), None);
            true
        };
        self.each(|_, entry| entry.group == group, send);
    }

    /// Nobody is left who could let this stopped group go on.
    pub fn leave_group(&self, group: u32) {
        self.signal_group(group, SIGHUP);
        self.signal_group(group, SIGCONT);
    }

    /// The session of a group; `None`: there is no such group.
    pub fn session_of_group(&self, group: u32) -> Option<u32> {
        let table = self.table.lock();
        let member = table.next(0, |_, entry| entry.group == group);
        member.map(|(_, entry)| entry.session)
    }

    /// Whether nobody is left who could let a group go on that stops.
    pub fn is_orphaned(&self, group: u32) -> bool {
        self.table.lock().is_orphaned(group, 0)
    }
}

impl Task {
    /// Sends a signal; `to` as `kill` has it, and 0 is no signal.
    pub fn kill(&self, to: i32, signal: u32) -> Result<(), Error> {
        let own = self.group_of(0)?;
        let is_meant = |id: u32, entry: &Entry| match to {
            0 => entry.group == own,
            -1 => id != self.process.id,
            1.. => id == to as u32,
            _ => entry.group == to.unsigned_abs(),
        };
        let (mut reached, mut spared) = (false, false);
        let send = |process: &Arc<Process>| {
            let may = self.may_signal(process, signal);
            if may {
                process.signal(self.by_self(signal), Some(self));
            }
            (reached, spared) = (reached || may, spared || !may);
            true
        };
        self.process.system.each(is_meant, send);
        match (reached, spared) {
            (true, _) => Ok(()),
            // All that there are were meant, so that nobody was left out.
            (false, true) if to == -1 => Ok(()),
            (false, true) => Err(EPERM),
            // Process 1 takes no signals.
            (false, false) if to == INIT as i32 => match self.process.cred().is_root() {
                true => Ok(()),
                false => Err(EPERM),
            },
            // One that has ended is there until somebody has waited for it.
            (false, false) => {
                let table = self.process.system.table.lock();
                let is_there = to != -1 && table.next(0, is_meant).is_some();
                is_there.then_some(()).ok_or(ESRCH)
            }
        }
    }

    /// Whether the process may send a signal to another: to those of its user, and all of a session
    /// may be told to go on.
    fn may_signal(&self, process: &Arc<Process>, signal: u32) -> bool {
        let is_near = || self.session_of(0) == self.session_of(process.id);
        process.id == self.process.id
            || signal == SIGCONT && is_near()
            || self.process.cred().may_signal(&process.cred())
    }

    /// Sends a signal to a thread of a process (`tgkill`), or of any (`tkill`).
    pub fn kill_thread(&self, process: Option<u32>, to: u32, signal: u32) -> Result<(), Error> {
        let is_meant = |id: u32, _: &Entry| process.is_none_or(|meant| meant == id);
        let info = Info {
            code: SI_TKILL,
            ..self.by_self(signal)
        };
        let mut is_spared = false;
        let send = |process: &Arc<Process>| {
            let is_here = process.has_thread(to);
            let may = !is_here || self.may_signal(process, signal);
            is_spared |= !may;
            is_here && may && process.signal_thread(to, info, Some(self))
        };
        match self.process.system.each(is_meant, send) {
            true => Ok(()),
            false if is_spared => Err(EPERM),
            false => Err(ESRCH),
        }
    }

    /// What the table says of a process; 0: of this one.
    fn of<T>(&self, id: u32, tell: impl Fn(&Entry) -> T) -> Result<T, Error> {
        let id = if id == 0 { self.process.id } else { id };
        let table = self.process.system.table.lock();
        table.get(id).map(tell).ok_or(ESRCH)
    }

    /// The group of a process; 0: of this one.
    pub fn group_of(&self, id: u32) -> Result<u32, Error> {
        match id {
            INIT => Ok(INIT),
            id => self.of(id, |entry| entry.group),
        }
    }

    /// The session of a process; 0: of this one.
    pub fn session_of(&self, id: u32) -> Result<u32, Error> {
        match id {
            INIT => Ok(INIT),
            id => self.of(id, |entry| entry.session),
        }
    }

    /// `setpgid`: puts this process, or a child that runs the same program, into a group of its own
    /// or another one of its session.
    pub fn set_group(&self, id: u32, group: u32) -> Result<(), Error> {
        let id = if id == 0 { self.process.id } else { id };
        let group = if group == 0 { id } else { group };
        if group as i32 <= 0 {
            return Err(EINVAL);
        }
        let mut table = self.process.system.table.lock();
        let session = table.get(self.process.id).ok_or(ESRCH)?.session;
        let entry = table.get(id).ok_or(ESRCH)?;
        match id == self.process.id {
            true => {}
            false if entry.parent != self.process.id => return Err(ESRCH),
            false if entry.session != session => return Err(EPERM),
            false if entry.is_replaced => return Err(EACCES),
            false => {}
        }
        let is_there = |_: u32, it: &Entry| it.group == group && it.session == session;
        if entry.session == id || group != id && table.next(0, is_there).is_none() {
            return Err(EPERM);
        }
        table.get_mut(id).ok_or(ESRCH)?.group = group;
        Ok(())
    }

    /// `setsid`: a session of its own, which has no terminal.
    pub fn begin_session(&self) -> Result<u32, Error> {
        let id = self.process.id;
        let mut table = self.process.system.table.lock();
        if table.next(0, |_, entry| entry.group == id).is_some() {
            return Err(EPERM);
        }
        let entry = table.get_mut(id).ok_or(ESRCH)?;
        (entry.session, entry.group) = (id, id);
        Ok(id)
    }

    /// The number of the parent.
    pub fn parent(&self) -> u32 {
        self.of(0, |entry| entry.parent).unwrap_or(INIT)
    }
}
