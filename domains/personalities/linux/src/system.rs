//! What there is once: the tree of files, the terminal, the table of processes.

use crate::alarms::Alarms;
use crate::disk::Disk;
use crate::epoll::Sets;
use crate::errno::{EAGAIN, ENOMEM, Error};
use crate::process::Process;
use crate::shortage::Shortage;
use crate::sockets::names::Names;
use crate::sockets::network::Network;
use crate::special::system::Authority;
use crate::table::{INIT, Table};
use crate::task::Task;
use crate::terminal::Terminal;
use crate::users::{MOST_TASKS, Users};
use crate::waiters::Waiters;
use alloc::collections::BTreeSet;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::sync::{Condvar, Mutex};
use domain_rt::{log, time};
use guests::archive::Files;
use guests::workers::Workers;
use interfaces::{AddressSpaces, Handle, MemoryObjects, RVec, Random, RpcResult};

/// Numbers of processes are less.
const LAST: u32 = 1 << 22;
/// Bytes of memory that each machine has.
const LITTLE: u64 = 128 << 20;
/// Bytes of memory that no machine has.
const MUCH: u64 = 1 << 40;
/// The most calls that are noted as missing.
const MOST_MISSING: usize = 1024;
/// What there is once.
pub struct System {
    pub spaces: Handle<dyn AddressSpaces>,
    /// For memory that processes share.
    pub objects: Option<Handle<dyn MemoryObjects>>,
    pub files: Files,
    /// What is below `/disk`, or the root.
    pub disk: Option<Arc<Disk>>,
    random: Handle<dyn Random>,
    pub workers: Arc<Workers<Task>>,
    pub terminal: Option<Arc<Terminal>>,
    /// The way to the network, if there is one.
    pub network: Option<Arc<Network>>,
    pub alarms: Alarms,
    pub waiters: Waiters,
    pub shortage: Shortage,
    /// The way to this for what it makes; nothing before it is set.
    pub own: Mutex<Weak<System>>,
    /// What of the machine itself is granted.
    pub authority: Authority,
    /// Calls that were made and are not there, by program; `None`: nobody wants to know.
    missing: Option<Mutex<Missing>>,
    pub table: Mutex<Table>,
    /// The first process of a session has ended.
    pub ended: Condvar,
    /// What each user's programs have.
    pub users: Users,
    /// Names of sockets that stand in no file system.
    pub names_of_sockets: Names,
    /// Held while sockets are sent over sockets.
    pub passing: Mutex<()>,
    /// What programs wait for.
    pub sets: Arc<Sets>,
    /// The next number of a process or thread.
    next: AtomicU32,
    /// Bytes of memory that the machine has; more than it has, if that is not granted.
    pub total: u64,
    /// When this machine's clock began, in nanoseconds since 1970.
    began: u64,
}

/// Programs, and the numbers of calls that they have made in vain.
type Missing = BTreeSet<(Vec<u8>, u64)>;

impl System {
    /// No processes yet.
    ///
    /// # Errors
    /// No memory.
    pub fn new(
        (spaces, objects): (Handle<dyn AddressSpaces>, Option<Handle<dyn MemoryObjects>>),
        (files, disk): (Files, Option<Arc<Disk>>),
        (random, authority): (Handle<dyn Random>, Authority),
        (terminal, network): (Option<Arc<Terminal>>, Option<Arc<Network>>),
        tells_missing: bool,
    ) -> RpcResult<Self> {
        let monitor = authority.monitor.as_ref();
        let told = monitor.and_then(|monitor| monitor.memory().ok());
        Ok(System {
            total: told.map_or(MUCH, |told| told.total),
            spaces,
            objects,
            files,
            disk,
            random,
            workers: Arc::new(Workers::new()?),
            terminal,
            network,
            alarms: Alarms::default(),
            waiters: Waiters::new()?,
            shortage: Shortage::default(),
            own: Mutex::default(),
            authority,
            missing: tells_missing.then(Mutex::default),
            table: Mutex::default(),
            ended: Condvar::new(),
            next: AtomicU32::new(INIT + 1),
            users: Users::new(told.map_or(LITTLE, |told| told.total)),
            names_of_sockets: Names::default(),
            passing: Mutex::new(()),
            sets: Arc::default(),
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
        table.get(id).map(|entry| entry.process.clone())
    }

    /// The first process that lives of this number or a higher one, and its number.
    pub fn next_process(&self, from: u32) -> Option<(u32, Arc<Process>)> {
        let table = self.table.lock();
        let (id, entry) = table.next(from, |_, entry| entry.is_live())?;
        Some((id, entry.process.clone()))
    }

    /// The numbers of all processes, as far as there is memory for them.
    pub fn processes(&self) -> Vec<u32> {
        let table = self.table.lock();
        let mut all = Vec::new();
        if all.try_reserve_exact(table.len()).is_ok() {
            all.extend(table.iter().map(|(id, _)| id));
        }
        all
    }

    /// Parent, group and session of a process.
    pub fn kin(&self, id: u32) -> Option<[u32; 3]> {
        let table = self.table.lock();
        table
            .get(id)
            .map(|entry| [entry.parent, entry.group, entry.session])
    }

    /// A number for a process or thread. When all have been given out they begin anew, without
    /// those of processes, groups and sessions that there are.
    pub fn new_number(&self) -> u32 {
        let next = |_: &u64| self.next.fetch_add(1, Ordering::Relaxed) % LAST;
        let mut some = (0..=3 * MOST_TASKS).map(|turn| next(&turn));
        let is_free = |id: &u32| *id > INIT && !self.table.lock().has_number(*id);
        some.find(is_free).unwrap_or(LAST)
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
}
