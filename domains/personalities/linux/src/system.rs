//! All processes, and what they know of each other: parents, groups, how they ended.

use crate::alarms::Alarms;
use crate::delivery::by_kernel;
use crate::disk::Disk;
use crate::errno::{EAGAIN, ECHILD, ENOMEM, EPERM, ESRCH, Error, SIGCHLD, SIGCONT};
use crate::process::Process;
use crate::special::system::Authority;
use crate::task::Task;
use crate::terminal::Terminal;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{log, time};
use guests::archive::Files;
use guests::workers::Workers;
use interfaces::{AddressSpaces, Handle, RVec, Random, RpcResult};
use linux::frame::Info;

/// Bytes of memory that no machine has.
const MUCH: u64 = 1 << 40;
/// The most calls that are noted as missing.
const MOST_MISSING: usize = 1024;
/// What `wait4` is asked for.
const WNOHANG: u64 = 1;
const WUNTRACED: u64 = 2;
const WCONTINUED: u64 = 8;

/// What there is once.
pub struct System {
    pub spaces: Handle<dyn AddressSpaces>,
    pub files: Files,
    /// What is below `/disk`, or the root.
    pub disk: Option<Arc<Disk>>,
    random: Handle<dyn Random>,
    pub workers: Arc<Workers<Task>>,
    pub terminal: Option<Arc<Terminal>>,
    pub alarms: Alarms,
    /// What of the machine itself is granted.
    pub authority: Authority,
    /// Calls that were made and are not there, by program; `None`: nobody wants to know.
    missing: Option<Mutex<Missing>>,
    table: Mutex<BTreeMap<u32, Entry>>,
    /// A process has ended whose parent is none.
    ended: Condvar,
    /// The next number of a process or thread.
    next: AtomicU32,
    /// Bytes of memory that the machine has; more than it has, if that is not granted.
    pub total: u64,
    /// When this machine's clock began, in nanoseconds since 1970.
    began: u64,
}

/// Programs, and the numbers of calls that they have made in vain.
type Missing = BTreeSet<(Vec<u8>, u64)>;

/// A signal that a thread has sent to a thread.
const SI_TKILL: i32 = -6;

/// The signal of a child that has ended, stopped or gone on, by what `wait4` says.
fn of_child(id: u32, how: i32) -> Info {
    let (code, status) = match (how, how & 0x7f) {
        (0xffff, _) => (6, SIGCONT as i32),
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

/// What others know of a process.
struct Entry {
    parent: u32,
    group: u32,
    /// How it ended, as `wait4` says it.
    status: Option<i32>,
    /// That it has stopped or gone on, likewise, until somebody has been told.
    change: Option<i32>,
    process: Arc<Process>,
}

impl System {
    /// No processes yet.
    ///
    /// # Errors
    /// No memory.
    pub fn new(
        spaces: Handle<dyn AddressSpaces>,
        (files, disk): (Files, Option<Arc<Disk>>),
        (random, authority): (Handle<dyn Random>, Authority),
        terminal: Option<Arc<Terminal>>,
        tells_missing: bool,
    ) -> RpcResult<Self> {
        let monitor = authority.monitor.as_ref();
        let told = monitor.and_then(|monitor| monitor.memory().ok());
        Ok(System {
            total: told.map_or(MUCH, |told| told.total),
            spaces,
            files,
            disk,
            random,
            workers: Arc::new(Workers::new()?),
            terminal,
            alarms: Alarms::default(),
            authority,
            missing: tells_missing.then(Mutex::default),
            table: Mutex::new(BTreeMap::new()),
            ended: Condvar::new(),
            next: AtomicU32::new(1),
            began: time::wall().saturating_sub(time::now()),
        })
    }

    /// Whether the disk is the root of the tree, and not below `/disk`.
    pub fn is_rooted(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.name.is_empty())
    }

    /// The names in a directory of the archive, and whether they are directories.
    pub fn names(&self, path: &[u8]) -> Vec<(Vec<u8>, bool)> {
        let mut names = Vec::from_iter(self.files.names(path));
        if let Some(disk) = self.disk.as_ref().filter(|_| path.is_empty()) {
            names.push((disk.name.to_vec(), true));
        }
        names
    }

    /// The process of a number.
    pub fn process(&self, id: u32) -> Option<Arc<Process>> {
        let table = self.table.lock();
        table.get(&id).map(|entry| entry.process.clone())
    }

    /// The numbers of all processes.
    pub fn processes(&self) -> Vec<u32> {
        self.table.lock().keys().copied().collect()
    }

    /// Parent and group of a process.
    pub fn kin(&self, id: u32) -> Option<[u32; 2]> {
        let table = self.table.lock();
        table.get(&id).map(|entry| [entry.parent, entry.group])
    }

    /// A number that no process or thread has had.
    pub fn new_number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Nanoseconds since 1970, as exact as the machine's clock was at the start, and never less
    /// than before.
    pub fn wall(&self) -> u64 {
        self.began.saturating_add(time::now())
    }

    /// When it will be so many nanoseconds since 1970, by the clock that waits go by.
    pub fn until_wall(&self, wall: u64) -> u64 {
        wall.saturating_sub(self.began)
    }

    /// So many random bytes.
    ///
    /// # Errors
    /// `EAGAIN`: the machine has no source, or none yet.
    pub fn random(&self, count: usize) -> Result<RVec<u8>, Error> {
        let buffer = RVec::filled(0, count).map_err(|_| ENOMEM)?;
        self.random.fill(buffer).map_err(|_| EAGAIN)
    }

    /// Bytes of memory in all, and of those that are free; a guess where that is not granted.
    pub fn memory(&self) -> (u64, u64) {
        let told = self
            .authority
            .monitor
            .as_ref()
            .and_then(|it| it.memory().ok());
        told.map_or((1 << 30, 1 << 29), |told| (told.total, told.free))
    }

    /// How many processors there are.
    pub fn processors(&self) -> u32 {
        let told = self
            .authority
            .monitor
            .as_ref()
            .and_then(|it| it.processors().ok());
        told.unwrap_or(1)
    }

    /// A program has made a call that there is not: said once of each, in the log.
    pub fn note_missing(&self, program: &[u8], number: u64) {
        let Some(missing) = &self.missing else {
            return;
        };
        let mut missing = missing.lock();
        if missing.len() < MOST_MISSING && missing.insert((program.to_vec(), number)) {
            let program = alloc::string::String::from_utf8_lossy(program);
            log!("missing: {program:?} asked for call {number}");
        }
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

    /// Notes that a process lives, as a child of `parent`'s in its group, or of nobody's.
    pub fn add(&self, process: &Arc<Process>, parent: Option<u32>) {
        let mut table = self.table.lock();
        let group = parent.and_then(|parent| Some(table.get(&parent)?.group));
        let entry = Entry {
            parent: parent.unwrap_or(0),
            group: group.unwrap_or(process.id),
            status: None,
            change: None,
            process: process.clone(),
        };
        table.insert(process.id, entry);
    }

    /// A process has not come to life after all.
    pub fn forget(&self, id: u32) {
        self.table.lock().remove(&id);
    }

    /// The last thread of a process has ended: its children are nobody's, and its parent is told.
    pub fn ended(&self, id: u32, status: i32) {
        let mut table = self.table.lock();
        table.retain(|_, entry| entry.parent != id || entry.status.is_none());
        for entry in table.values_mut().filter(|entry| entry.parent == id) {
            entry.parent = 0;
        }
        let parent = table.get(&id).map_or(0, |entry| entry.parent);
        let told = table.get(&parent).map(|entry| entry.process.clone());
        match table.get_mut(&id) {
            Some(entry) if parent == 0 || told.is_some() => entry.status = Some(status),
            _ => drop(table.remove(&id)),
        }
        drop(table);
        self.alarms.set(id, None);
        match told {
            Some(parent) => parent.child_changed(of_child(id, status)),
            None => self.ended.notify_all(),
        }
    }
}

impl System {
    /// A process has stopped or goes on: its parent is told.
    pub fn has_changed(&self, id: u32, how: i32) {
        let mut table = self.table.lock();
        let Some(entry) = table.get_mut(&id) else {
            return;
        };
        entry.change = Some(how);
        let parent = entry.parent;
        let told = table.get(&parent).map(|entry| entry.process.clone());
        drop(table);
        if let Some(parent) = told {
            parent.child_changed(of_child(id, how));
        }
    }

    /// Those that are meant and live.
    fn meant(&self, is_meant: impl Fn(u32, &Entry) -> bool) -> Vec<Arc<Process>> {
        let table = self.table.lock();
        let live = table.iter().filter(|(_, entry)| entry.status.is_none());
        let meant = live.filter(|(id, entry)| is_meant(**id, entry));
        meant.map(|(_, entry)| entry.process.clone()).collect()
    }

    /// Sends a signal to a group, by nobody.
    pub fn signal_group(&self, group: u32, signal: u32) {
        for process in self.meant(|_, entry| entry.group == group) {
            process.signal(by_kernel(signal), None);
        }
    }

    /// Whether there is a group of this number.
    pub fn has_group(&self, group: u32) -> bool {
        !self.meant(|_, entry| entry.group == group).is_empty()
    }
}

impl Task {
    /// Sends a signal; `to` as `kill` has it, and 0 is no signal.
    pub fn kill(&self, to: i32, signal: u32) -> Result<(), Error> {
        let own = self.group_of(0)?;
        let meant = self.process.system.meant(|id, entry| match to {
            0 => entry.group == own,
            -1 => id != self.process.id,
            1.. => id == to as u32,
            _ => entry.group == to.unsigned_abs(),
        });
        let (mut reached, mut spared) = (false, false);
        for process in &meant {
            let may = self.may_signal(process, signal);
            if may {
                process.signal(self.by_self(signal), Some(self));
            }
            (reached, spared) = (reached || may, spared || !may);
        }
        match (reached, spared) {
            (true, _) => Ok(()),
            // All that there are were meant, so that nobody was left out.
            (false, true) if to == -1 => Ok(()),
            (false, true) => Err(EPERM),
            (false, false) => Err(ESRCH),
        }
    }

    /// Whether the process may send a signal to another: to those of its user, and there is one
    /// session in which all may be told to go on.
    fn may_signal(&self, process: &Arc<Process>, signal: u32) -> bool {
        process.id == self.process.id
            || signal == SIGCONT
            || self.process.cred().may_signal(&process.cred())
    }

    /// Sends a signal to a thread of a process (`tgkill`), or of any (`tkill`).
    pub fn kill_thread(&self, process: Option<u32>, to: u32, signal: u32) -> Result<(), Error> {
        let system = &self.process.system;
        let meant = system.meant(|id, _| process.is_none_or(|meant| meant == id));
        let sends = |process: &Arc<Process>| {
            let info = Info {
                code: SI_TKILL,
                ..self.by_self(signal)
            };
            process.signal_thread(to, info, Some(self))
        };
        let is_there = |process: &&Arc<Process>| process.has_thread(to);
        let process = meant.iter().find(is_there).ok_or(ESRCH)?;
        if !self.may_signal(process, signal) {
            return Err(EPERM);
        }
        sends(process).then_some(()).ok_or(ESRCH)
    }

    /// The group of a process; 0: of this one.
    pub fn group_of(&self, id: u32) -> Result<u32, Error> {
        let id = if id == 0 { self.process.id } else { id };
        let table = self.process.system.table.lock();
        table.get(&id).map(|entry| entry.group).ok_or(ESRCH)
    }

    /// Puts a process into a group.
    pub fn set_group(&self, id: u32, group: u32) -> Result<(), Error> {
        let id = if id == 0 { self.process.id } else { id };
        let group = if group == 0 { id } else { group };
        let mut table = self.process.system.table.lock();
        table.get_mut(&id).ok_or(ESRCH)?.group = group;
        Ok(())
    }

    /// `getsid`: the only session is that of the first process.
    pub fn session_of(&self, id: u32) -> Result<u64, Error> {
        self.group_of(id).map(|_| 1)
    }

    /// The number of the parent; 0 if it has none.
    pub fn parent(&self) -> u32 {
        let table = self.process.system.table.lock();
        table.get(&self.process.id).map_or(0, |own| own.parent)
    }

    /// Waits for the end of a child, `which` and `options` as `wait4` has them; its number and how
    /// it ended, or that it has stopped or gone on if that is asked for; `None` where there is
    /// nothing to tell, and that is asked for.
    pub fn wait_child(&self, which: i32, options: u64) -> Result<Option<(u32, i32)>, Error> {
        let own = self.group_of(0)?;
        let meant = |id: u32, entry: &Entry| {
            entry.parent == self.process.id
                && match which {
                    -1 => true,
                    0 => entry.group == own,
                    1.. => id == which as u32,
                    _ => entry.group == which.unsigned_abs(),
                }
        };
        let asked = |how: &i32| match *how {
            0xffff => options & WCONTINUED != 0,
            _ => options & WUNTRACED != 0,
        };
        self.until(|| {
            let mut table = self.process.system.table.lock();
            let children = || table.iter().filter(|(id, entry)| meant(**id, entry));
            if children().next().is_none() {
                return Some(Err(ECHILD));
            }
            let ended = children().find_map(|(id, entry)| Some((*id, entry.status?)));
            if let Some((id, _)) = ended {
                table.remove(&id);
                return Some(Ok(ended));
            }
            let changed =
                children().find_map(|(id, entry)| Some((*id, entry.change.filter(asked)?)));
            if let Some((id, _)) = changed {
                table.entry(id).and_modify(|entry| entry.change = None);
                return Some(Ok(changed));
            }
            (options & WNOHANG != 0).then_some(Ok(None))
        })?
    }
}
