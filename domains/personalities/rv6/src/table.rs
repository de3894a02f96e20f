//! All processes: numbers, parents, how they ended, and who waits.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::{Condvar, Mutex, Wait};
use interfaces::{Errno, ExitStatus, Handle, Monitor, ProcessInfo};

use crate::errors;
use crate::ledger::Ledger;
use crate::process::{Birth, Process};

/// Most processes at a time, with those that nobody has waited for yet.
const LIMIT: usize = 1024;

/// The parent's number of processes that have none: those that `init` started, and orphans.
pub const NOBODY: u32 = 0;

struct Entry {
    process: Arc<Process>,
    parent: u32,
    /// How it ended, if it has.
    status: Option<ExitStatus>,
    /// Somebody will ask for the status. Otherwise the entry goes when the process ends.
    kept: bool,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<u32, Entry>,
    last_pid: u32,
    last_job: u32,
}

/// The table.
pub struct Table {
    state: Mutex<State>,
    /// Notified when a process has ended.
    ended: Condvar,
}

impl State {
    /// The next number that is not in use.
    fn next_pid(&mut self) -> u32 {
        loop {
            self.last_pid = self.last_pid.checked_add(1).unwrap_or(1);
            if !self.entries.contains_key(&self.last_pid) {
                return self.last_pid;
            }
        }
    }

    /// The next number of a job that no process has.
    fn next_job(&mut self) -> u32 {
        loop {
            self.last_job = self.last_job.checked_add(1).unwrap_or(1);
            let mut entries = self.entries.values();
            if !entries.any(|entry| entry.process.job == self.last_job) {
                return self.last_job;
            }
        }
    }

    /// Process `pid` and its descendants, each behind its parent.
    fn family(&self, pid: u32) -> Vec<u32> {
        let mut family = Vec::from([pid]);
        let mut next = 0;
        while let Some(&parent) = family.get(next) {
            let children = self.entries.iter();
            let children = children.filter(|(_, entry)| entry.parent == parent);
            family.extend(children.map(|(&child, _)| child));
            next += 1;
        }
        family
    }

    /// A child of `parent` that has ended: `pid`, or any if that is 0.
    ///
    /// # Errors
    /// `NoSuchProcess` if there is nothing to wait for.
    fn ended_child(&self, parent: u32, pid: u32) -> Result<Option<(u32, ExitStatus)>, Errno> {
        let mut any = false;
        for (&number, entry) in &self.entries {
            if entry.parent != parent || !entry.kept || pid != 0 && number != pid {
                continue;
            }
            any = true;
            if let Some(status) = entry.status {
                return Ok(Some((number, status)));
            }
        }
        if any {
            Ok(None)
        } else {
            Err(Errno::NoSuchProcess)
        }
    }

    /// Takes out a child of `parent` that has ended, and adds what it has used to what the children
    /// of `parent` have.
    fn take_ended(&mut self, parent: u32, pid: u32) -> Option<Entry> {
        let child = self.entries.remove(&pid)?;
        if let Some(parent) = self.entries.get(&parent) {
            parent.process.account.adopt(&child.process.account);
        }
        Some(child)
    }

    /// Makes the children of a process that is gone nobody's; those that ended are forgotten.
    fn orphan_children(&mut self, parent: u32) {
        for entry in self
            .entries
            .values_mut()
            .filter(|entry| entry.parent == parent)
        {
            entry.parent = NOBODY;
            entry.kept = false;
        }
        self.entries
            .retain(|_, entry| entry.kept || entry.status.is_none());
    }
}

impl Table {
    /// An empty table.
    pub fn new() -> Self {
        Table {
            state: Mutex::new(State::default()),
            ended: Condvar::new(),
        }
    }

    /// A new process, which has not started.
    ///
    /// # Errors
    /// `TooManyProcesses`; `Killed` if the parent's job is being ended.
    pub fn add(&self, parent: u32, birth: Birth) -> Result<Arc<Process>, Errno> {
        let mut state = self.state.lock();
        if state.entries.len() >= LIMIT {
            return Err(Errno::TooManyProcesses);
        }
        let parent_entry = state.entries.get(&parent);
        if parent_entry.is_some_and(|entry| entry.process.is_barren()) {
            return Err(Errno::Killed);
        }
        let pid = state.next_pid();
        let process = Arc::new(Process::new(pid, birth));
        let entry = Entry {
            process: process.clone(),
            parent,
            status: None,
            kept: true,
        };
        state.entries.insert(pid, entry);
        Ok(process)
    }

    /// The number of a new job, which no living process has.
    pub fn new_job(&self) -> u32 {
        self.state.lock().next_job()
    }

    /// What is held for a job, if there is a process of it.
    pub fn ledger(&self, job: u32) -> Option<Arc<Ledger>> {
        let state = self.state.lock();
        let mut entries = state.entries.values();
        let one = entries.find(|entry| entry.process.job == job)?;
        Some(one.process.ledger.clone())
    }

    /// The job of a child of `parent`.
    ///
    /// # Errors
    /// `NoSuchProcess` if it is none.
    pub fn job_of_child(&self, parent: u32, pid: u32) -> Result<u32, Errno> {
        let state = self.state.lock();
        let child = state.entries.get(&pid);
        let child = child.filter(|entry| entry.parent == parent && parent != NOBODY);
        child
            .map(|entry| entry.process.job)
            .ok_or(Errno::NoSuchProcess)
    }

    /// Sees to it that the processes of a job start no others, and gives those that live, to be
    /// ended: the last first, so that no reader of a pipe takes the end of the writer for the end
    /// of its input. The job is that of `child`, or, if the caller is in it itself, what descends
    /// from `child`.
    ///
    /// # Errors
    /// `NoSuchProcess` if `child` is no child of the caller.
    pub fn close_job(&self, caller: &Process, child: u32) -> Result<Vec<Arc<Process>>, Errno> {
        let job = self.job_of_child(caller.pid, child)?;
        let state = self.state.lock();
        let mut family = state.family(child);
        family.sort_unstable();
        let is_member = |process: &Process| match job == caller.job {
            true => family.binary_search(&process.pid).is_ok(),
            false => process.job == job,
        };
        let entries = state.entries.values().rev();
        let living = entries.filter(|entry| entry.status.is_none());
        let members = living.map(|entry| entry.process.clone());
        let members: Vec<_> = members.filter(|process| is_member(process)).collect();
        // With the table locked: who is not among them yet is refused in `add`.
        members.iter().for_each(|member| member.make_barren());
        Ok(members)
    }

    /// Takes out a process that did not start.
    pub fn remove(&self, pid: u32) {
        let entry = self.state.lock().entries.remove(&pid);
        drop(entry);
    }

    /// Notes how a process ended and tells who waits for it.
    pub fn end(&self, pid: u32, status: ExitStatus) {
        let mut state = self.state.lock();
        state.orphan_children(pid);
        if let Some(entry) = state.entries.get_mut(&pid) {
            entry.status = Some(status);
            if !entry.kept {
                state.entries.remove(&pid);
            }
        }
        drop(state);
        self.ended.notify_all();
    }

    /// Waits until a child of `parent` has ended (`pid`, or any if that is 0); which, and how.
    ///
    /// # Errors
    /// `NoSuchProcess` if there is none; `Interrupted` if the waiting process is ended.
    pub fn wait(&self, parent: u32, pid: u32) -> Result<(u32, ExitStatus), Errno> {
        let mut state = self.state.lock();
        loop {
            if let Some((pid, status)) = state.ended_child(parent, pid)? {
                let entry = state.take_ended(parent, pid);
                drop(state);
                drop(entry);
                return Ok((pid, status));
            }
            let (guard, wait) = self.ended.wait(state);
            if wait == Wait::Interrupted {
                return Err(errors::INTERRUPTED);
            }
            state = guard;
        }
    }

    /// Waits until child `pid` of `parent` has ended; `None` if Ctrl-Z stops it before.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_or_stop(&self, parent: u32, pid: u32) -> Result<Option<ExitStatus>, Errno> {
        let mut state = self.state.lock();
        loop {
            if let Some((pid, status)) = state.ended_child(parent, pid)? {
                let entry = state.take_ended(parent, pid);
                drop(state);
                drop(entry);
                return Ok(Some(status));
            }
            let entry = state.entries.get(&pid);
            if entry.is_some_and(|entry| entry.process.take_stop()) {
                return Ok(None);
            }
            let (guard, wait) = self.ended.wait(state);
            if wait == Wait::Interrupted {
                return Err(errors::INTERRUPTED);
            }
            state = guard;
        }
    }

    /// Wakes who waits for children: one may have been stopped.
    pub fn wake(&self) {
        drop(self.state.lock());
        self.ended.notify_all();
    }

    /// Lets process `pid` and its descendants go on.
    ///
    /// # Errors
    /// `NoSuchProcess`.
    pub fn resume(&self, pid: u32, background: bool) -> Result<(), Errno> {
        let state = self.state.lock();
        if !state.entries.contains_key(&pid) {
            return Err(Errno::NoSuchProcess);
        }
        let family = state.family(pid);
        for member in family.iter().filter_map(|pid| state.entries.get(pid)) {
            member.process.resume(background);
        }
        Ok(())
    }

    /// Waits until the first process of a session is the only one that is left, at most until
    /// `deadline` (nanoseconds since boot).
    pub fn drain(&self, first: &Process, deadline: u64) {
        let mut state = self.state.lock();
        let left = |entry: &Entry| {
            let process = &entry.process;
            process.session == first.pid && process.pid != first.pid && entry.status.is_none()
        };
        while state.entries.values().any(left) {
            let (guard, wait) = self.ended.wait_until(state, deadline);
            if wait != Wait::Woken {
                return;
            }
            state = guard;
        }
    }

    /// The process with a number, also if it has ended and was not waited for.
    ///
    /// # Errors
    /// `NoSuchProcess`.
    pub fn get(&self, pid: u32) -> Result<Arc<Process>, Errno> {
        let state = self.state.lock();
        let entry = state.entries.get(&pid).ok_or(Errno::NoSuchProcess)?;
        Ok(entry.process.clone())
    }

    /// The processes that have not ended and are `wanted`.
    pub fn select(&self, wanted: impl Fn(&Process) -> bool) -> Vec<Arc<Process>> {
        let state = self.state.lock();
        let alive = state
            .entries
            .values()
            .filter(|entry| entry.status.is_none());
        alive
            .filter(|entry| wanted(&entry.process))
            .map(|entry| entry.process.clone())
            .collect()
    }

    /// Process number `index`, counted by numbers.
    pub fn info(&self, index: usize, monitor: Option<&Handle<dyn Monitor>>) -> Option<ProcessInfo> {
        let state = self.state.lock();
        let (&pid, entry) = state.entries.iter().nth(index)?;
        let (process, parent, ended) =
            (entry.process.clone(), entry.parent, entry.status.is_some());
        drop(state);
        let times = process.times(monitor);
        Some(ProcessInfo {
            pid,
            parent,
            domain: process.domain(),
            name: process.name,
            ended,
            stopped: !ended && process.is_stopped(),
            user_ns: times.user,
            system_ns: times.system,
        })
    }
}
