//! Children: how they come, end, and are waited for (`wait(2)`).

use crate::errno::{ECHILD, EINTR, EINVAL, ESRCH, Error, SIGCHLD, SIGCONT};
use crate::process::Process;
use crate::system::System;
use crate::table::{Entry, INIT};
use crate::task::Task;
use alloc::sync::Arc;
use domain_rt::sync::Wait;
use linux::frame::Info;

/// What `waitid` and `wait4` are asked for (`linux/wait.h`).
pub const WNOHANG: u64 = 1;
pub const WSTOPPED: u64 = 2;
pub const WEXITED: u64 = 4;
pub const WCONTINUED: u64 = 8;
/// It can be asked for once more.
pub const WNOWAIT: u64 = 0x100_0000;
/// Children of this thread alone; all children; those that send another signal than SIGCHLD.
pub const WNOTHREAD: u64 = 0x2000_0000;
pub const WALL: u64 = 0x4000_0000;
pub const WCLONE: u64 = 0x8000_0000;
/// How a child goes on, as `wait4` says it.
const GOES_ON: i32 = 0xffff;

/// Which children are meant.
#[derive(Clone, Copy)]
pub enum Children {
    All,
    Process(u32),
    Group(u32),
}

/// What is told of a child by a signal, and by `waitid`: that it has ended, stopped or gone on, by
/// what `wait4` says.
pub fn of_child(id: u32, how: i32) -> Info {
    let (code, status) = match (how, how & 0x7f) {
        (GOES_ON, _) => (6, SIGCONT as i32),
        (_, 0x7f) => (5, how >> 8),
        (_, 0) => (1, how >> 8),
        (_, signal) if how & 0x80 != 0 => (3, signal),
        (_, signal) => (2, signal),
    };
    Info {
        signal: SIGCHLD,
        code,
        pair: [id, 0],
        rest: [status as u32 as u64, 0],
    }
}

impl System {
    /// Notes that a process lives, as a child of `parent`'s in its group and session, whose end is
    /// told by `signal`.
    ///
    /// # Errors
    /// `EINTR`: the parent is to end, and nobody would signal this one with its group. `EAGAIN`: no
    /// memory.
    pub fn add(&self, process: &Arc<Process>, parent: &Task, signal: u32) -> Result<(), Error> {
        let mut table = self.table.lock();
        let of = table.get(parent.process.id).filter(|_| !parent.is_ending());
        let of = of.ok_or(EINTR)?;
        let entry = Entry {
            parent: parent.process.id,
            group: of.group,
            session: of.session,
            signal,
            status: None,
            change: None,
            is_replaced: false,
            is_awaited: false,
            process: process.clone(),
        };
        table.insert(process.id, entry)
    }

    /// Notes the first process of a session, whose end [`end_of`](Self::end_of) waits for.
    ///
    /// # Errors
    /// `EAGAIN`: no memory.
    pub fn add_first(&self, process: &Arc<Process>) -> Result<(), Error> {
        let entry = Entry {
            parent: INIT,
            group: process.id,
            session: process.id,
            signal: SIGCHLD,
            status: None,
            change: None,
            is_replaced: true,
            is_awaited: true,
            process: process.clone(),
        };
        self.table.lock().insert(process.id, entry)
    }

    /// A process has not come to life after all.
    pub fn forget(&self, id: u32) {
        let entry = self.table.lock().remove(id);
        drop(entry);
    }

    /// A process runs another program now.
    pub fn is_replaced(&self, id: u32) {
        if let Some(entry) = self.table.lock().get_mut(id) {
            (entry.is_replaced, entry.signal) = (true, SIGCHLD);
        }
    }

    /// Waits for the end of the first process of a session; its status. `None`: the wait was ended.
    pub fn end_of(&self, id: u32) -> Option<i32> {
        let mut table = self.table.lock();
        loop {
            if let Some(status) = table.get(id)?.status {
                let entry = table.remove(id);
                drop(table);
                drop(entry);
                return Some(status);
            }
            let (again, why) = self.ended.wait(table);
            table = again;
            if why == Wait::Interrupted {
                return None;
            }
        }
    }

    /// The last thread of a process has ended: its children are process 1's, and its parent is
    /// told.
    pub fn ended(&self, id: u32, status: i32) {
        self.alarms.set(id, None);
        self.leave_children(id);
        let mut table = self.table.lock();
        let left = table.leaves(id);
        let Some(entry) = table.get(id) else {
            return;
        };
        let (parent, signal) = (entry.parent, entry.signal);
        let is_first = entry.is_awaited;
        let parent = table.get(parent).map(|entry| entry.process.clone());
        // Whoever wants no signal of it, or says so, does not wait for it.
        let is_kept = match &parent {
            Some(parent) => signal != SIGCHLD || parent.waits_for_children(),
            None => is_first,
        };
        if let Some(entry) = table.get_mut(id).filter(|_| is_kept) {
            entry.status = Some(status);
        }
        drop(table);
        let terminal = self.terminal.as_ref();
        let foreground = terminal.and_then(|terminal| terminal.leave(id));
        for group in left.into_iter().chain(foreground) {
            self.leave_group(group);
        }
        let info = Info {
            signal,
            ..of_child(id, status)
        };
        match &parent {
            Some(parent) => parent.child_changed(info),
            None => self.ended.notify_all(),
        }
        if is_kept {
            return;
        }
        // Not before: a parent that finds no child any more has got the signal.
        let gone = self.table.lock().remove(id);
        drop(gone);
        if let Some(parent) = parent {
            parent.wake();
        }
    }

    /// Gives all children of a process, which has ended, to process 1.
    fn leave_children(&self, id: u32) {
        let next = || self.table.lock().give_away(id);
        // It gets no more, as it has no thread.
        while let Some((gone, group)) = next() {
            drop(gone);
            if let Some(group) = group {
                self.leave_group(group);
            }
        }
    }

    /// A process has stopped or goes on: its parent is told.
    pub fn has_changed(&self, id: u32, how: i32) {
        let mut table = self.table.lock();
        let Some(entry) = table.get_mut(id) else {
            return;
        };
        entry.change = Some(how);
        let parent = entry.parent;
        let told = table.get(parent).map(|entry| entry.process.clone());
        drop(table);
        if let Some(parent) = told {
            let signal = if parent.hears_of_stops() { SIGCHLD } else { 0 };
            parent.child_changed(Info {
                signal,
                ..of_child(id, how)
            });
        }
    }
}

impl Task {
    /// Waits for a child that has ended, stopped or gone on, as `options` have it; its number and
    /// how, as `wait4` says it. `None` where there is nothing to tell, and that is asked for.
    pub fn wait_child(&self, which: Children, options: u64) -> Result<Option<(u32, i32)>, Error> {
        let meant = |id: u32, entry: &Entry| {
            let is_named = match which {
                Children::All => true,
                Children::Process(meant) => id == meant,
                Children::Group(group) => entry.group == group,
            };
            let is_kind =
                options & WALL != 0 || (options & WCLONE != 0) == (entry.signal != SIGCHLD);
            entry.parent == self.process.id && is_named && is_kind
        };
        let told = |entry: &Entry| {
            let ended = entry.status.filter(|_| options & WEXITED != 0);
            let changed = entry.change.filter(|how| match *how {
                GOES_ON => options & WCONTINUED != 0,
                _ => options & WSTOPPED != 0,
            });
            ended.or(changed.filter(|_| entry.is_live()))
        };
        self.until(|| {
            let mut table = self.process.system.table.lock();
            if table.next(0, meant).is_none() {
                return Some(Err(ECHILD));
            }
            let found = table.next(0, |id, entry| meant(id, entry) && told(entry).is_some());
            let Some((id, how, is_live)) =
                found.and_then(|(id, entry)| Some((id, told(entry)?, entry.is_live())))
            else {
                return (options & WNOHANG != 0).then_some(Ok(None));
            };
            let gone = match (options & WNOWAIT, is_live) {
                (0, false) => table.remove(id),
                (0, true) => {
                    if let Some(entry) = table.get_mut(id) {
                        entry.change = None;
                    }
                    None
                }
                _ => None,
            };
            drop(table);
            drop(gone);
            Some(Ok(Some((id, how))))
        })?
    }

    /// Which children `wait4` means.
    ///
    /// # Errors
    /// `EINVAL`: bits of `options` that mean nothing. `ESRCH`: no number is meant.
    pub fn children_of(&self, which: i32, options: u64) -> Result<Children, Error> {
        if options & !(WNOHANG | WSTOPPED | WCONTINUED | WNOTHREAD | WALL | WCLONE) != 0 {
            return Err(EINVAL);
        }
        Ok(match which {
            i32::MIN => return Err(ESRCH),
            -1 => Children::All,
            0 => Children::Group(self.group_of(0)?),
            1.. => Children::Process(which as u32),
            _ => Children::Group(which.unsigned_abs()),
        })
    }
}
