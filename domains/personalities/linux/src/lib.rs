//! A personality for static Linux programs: small enough to be read in one sitting.
//!
//! Each process has an address space, and each of its threads a user thread and a thread of this
//! domain, which runs the program until it traps and answers. System calls have Linux's numbers and
//! structures; what is not answered is `ENOSYS`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`system`] | what there is once |
//! | [`table`], [`children`], [`jobs`] | all processes: parents and ends; groups and sessions |
//! | [`users`] | what one user may have |
//! | [`process`] | a process: what its threads share |
//! | [`parts`] | what tasks may have in common |
//! | [`task`] | a thread: beginning, end, waits |
//! | [`delivery`] | what a thread does at signals |
//! | [`alarms`] | signals that come at a time |
//! | [`futex`], [`waiters`] | threads that wait at words of the program's memory |
//! | [`calls`] | the system calls |
//! | [`programs`] | how a program gets into memory |
//! | [`memory`], [`space`], [`shared`] | the program's memory: copies, heap; files in it; what is shared |
//! | [`shortage`] | what is done when there is no memory for programs |
//! | [`walk`], [`special`] | the tree of files, and paths; `/dev` and `/proc` |
//! | [`files`], [`pipes`], [`disk`] | descriptors; pipes; the disk |
//! | [`sockets`], [`counters`] | sockets of this machine; counters that one waits at |
//! | [`bells`], [`epoll`] | who is told of changes: threads, and sets of what one waits for |
//! | [`terminal`], [`stream`] | the console; who reads it |
//!
//! Numbers, structures and how a program is loaded are in `lib/unix/linux`; address spaces, the
//! tree of files, what signals are and who runs a thread in `domains/libs/guests`.
//!
//! One lock holds what processes know of each other. Whoever waits is rung by who has changed what
//! it waits for. A program has no more authority than is written here, and this domain no more than
//! its grants: a bug here harms the programs that it runs, and nobody else.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod alarms;
mod bells;
mod calls;
mod children;
mod counters;
mod delivery;
mod disk;
mod epoll;
mod files;
mod futex;
mod jobs;
mod lent;
mod memory;
mod parts;
mod pipes;
mod process;
mod programs;
mod shared;
mod shortage;
mod sockets;
mod space;
mod special;
mod stream;
mod system;
mod table;
mod task;
mod terminal;
mod users;
mod waiters;
mod walk;

use alloc::sync::Arc;
use alloc::vec::Vec;
use disk::Disk;
use domain_rt::memory as heap;
use files::Open;
use guests::archive::Files as Archived;
use guests::{handlers, signals};
use interfaces::{
    AddressSpaces, Archive, Console, DomainControl, Errno, Events, ExitStatus, FsError, Handle,
    MemoryObjects, Monitor, Personality, Power, RVec, Random, Respawn, RpcError, RpcResult,
    Updater,
};
use linux::cred::Cred;
use linux::errno;
use parts::{Files, Fs};
use process::{Process, Told};
use programs::{Begun, Source, Wanted};
use sockets::network::Network;
use special::system::Authority;
use stream::Stream;
use system::System;
use task::Task;
use terminal::Terminal;
use walk::{Stand, View};

/// Starts the personality.
///
/// # Errors
/// There is no ring 3, or no memory.
#[allow(clippy::too_many_arguments, reason = "the entry's declaration")]
pub fn start(
    spaces: Option<Handle<dyn AddressSpaces>>,
    objects: Option<Handle<dyn MemoryObjects>>,
    archive: Handle<dyn Archive>,
    disk: Option<Handle<dyn Respawn>>,
    random: Handle<dyn Random>,
    console: Handle<dyn Console>,
    errors: Option<Handle<dyn Console>>,
    monitor: Option<Handle<dyn Monitor>>,
    control: Option<Handle<dyn DomainControl>>,
    updater: Option<Handle<dyn Updater>>,
    power: Option<Handle<dyn Power>>,
    net: Option<Handle<dyn Respawn>>,
    events: Option<Handle<dyn Events>>,
    options: RVec<u8>,
) -> RpcResult<Handle<dyn Personality>> {
    heap::reserve(heap::SERVICE)?;
    let spaces = spaces.ok_or(RpcError::Refused)?;
    let has = |word: &[u8]| {
        options
            .split(|byte| *byte == b'\n')
            .any(|line| line == word)
    };
    let once = has(b"exec");
    let files = Archived::new(archive, b"busybox")?;
    let (terminal, streams) = match (once, errors) {
        (false, _) => {
            let terminal = Arc::new(Terminal::new(console));
            let stream = Arc::new(Open::Terminal(terminal.clone()));
            (Some(terminal), [stream.clone(), stream])
        }
        (true, Some(errors)) => {
            let streams = [console, errors].map(Stream::new);
            streams[0].attend()?;
            (None, streams.map(Open::Console).map(Arc::new))
        }
        (true, None) => {
            let stream = Stream::new(console);
            stream.attend()?;
            let stream = Arc::new(Open::Console(stream));
            (None, [stream.clone(), stream])
        }
    };
    let is_root = has(b"root");
    let name: &[u8] = if is_root { b"" } else { b"disk" };
    let disk = disk.map(|disk| Arc::new(Disk::new(name, disk)));
    let network = match (net, events) {
        (Some(net), Some(events)) => Some(Network::new(net, &events)?),
        _ => None,
    };
    let authority = Authority {
        monitor,
        control,
        updater,
        power,
    };
    let system = Arc::new(System::new(
        (spaces, objects),
        (files, disk),
        (random, authority),
        (terminal, network),
        has(b"missing"),
    )?);
    *system.own.lock() = Arc::downgrade(&system);
    alarms::attend(&system)?;
    if let Some(network) = &system.network {
        network.attend()?;
    }
    if let Some(terminal) = &system.terminal {
        terminal.attend(&system)?;
    }
    Handle::<dyn Personality>::new(Runner { system, streams })
}

/// Where Debian's root looks for programs.
const ROOT_PATH: &[u8] = b"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What `init` calls.
struct Runner {
    system: Arc<System>,
    /// Where input comes from and output goes to, and where errors go to.
    streams: [Arc<Open>; 2],
}

impl Personality for Runner {
    fn run(&self, path: RVec<u8>, arguments: RVec<u8>) -> Result<ExitStatus, Errno> {
        let words = arguments.split(|byte| *byte == 0);
        let mut words: Vec<Vec<u8>> = words.map(Vec::from).collect();
        words.pop();
        let wanted = Wanted {
            path: path.to_vec(),
            arguments: words,
            environment: self.environment(),
        };
        let begun = match self.system.is_rooted() && wanted.arguments.len() == 1 {
            true => self.login(wanted),
            false => self.begin(wanted),
        };
        let begun = begun.map_err(|why| match why {
            errno::ENOENT => Errno::Fs(FsError::NotFound),
            errno::ENOMEM => Errno::Rpc(RpcError::NoMemory),
            _ => Errno::Fs(FsError::Invalid),
        })?;
        let [console, errors] = &self.streams;
        let streams = [console, console, errors].map(|open| Some((open.clone(), false)));
        let no_memory = |_| Errno::Rpc(RpcError::NoMemory);
        let process = Process::new(&self.system).map_err(no_memory)?;
        let shares = (Files::new(Vec::from(streams)), Fs::new(self.home()));
        *process.told.lock() = Told::new(begun.wanted, begun.file);
        let task = Task::new(&Arc::new(process), None, begun.program, shares);
        let task = task.map_err(no_memory)?;
        let id = task.process.id;
        self.system.add_first(&task.process).map_err(no_memory)?;
        if let Some(terminal) = &self.system.terminal {
            terminal.begin(id);
        }
        if task.start().is_err() {
            self.system.forget(id);
            return Err(Errno::Rpc(RpcError::NoMemory));
        }
        let status = self.system.end_of(id).ok_or(RpcError::Interrupted)?;
        Ok(match status & 0x7f {
            0 => ExitStatus::Exited(status >> 8),
            _ => ExitStatus::Killed,
        })
    }
}

impl Runner {
    /// What the first program finds in its environment.
    fn environment(&self) -> Vec<Vec<u8>> {
        let usual: &[&[u8]] = match (self.system.is_rooted(), self.system.terminal.is_some()) {
            (true, true) => &[
                ROOT_PATH,
                b"HOME=/root",
                b"TERM=linux",
                b"USER=root",
                b"LOGNAME=root",
            ],
            (true, false) => &[ROOT_PATH, b"HOME=/root"],
            (false, true) => &[b"PATH=/bin", b"HOME=/", b"TERM=linux", b"PS1=$ "],
            (false, false) => &[b"PATH=/bin", b"HOME=/"],
        };
        usual.iter().map(|it| Vec::from(*it)).collect()
    }

    /// Where the first program stands.
    fn home(&self) -> Stand {
        let root = Stand::Made(Vec::new());
        match self.system.is_rooted() && self.system.terminal.is_some() {
            true => self.stand(b"/root").unwrap_or(root),
            false => root,
        }
    }

    fn stand(&self, path: &[u8]) -> Result<Stand, errno::Error> {
        let cred = Cred::default();
        let view = self.view(&cred);
        let led = view.walk(&Stand::Made(Vec::new()), path, true)?;
        view.stand(&led, 0)
    }

    /// The tree as the first program sees it.
    fn view<'a>(&'a self, cred: &'a Cred) -> View<'a> {
        View {
            system: &self.system,
            cred,
            own: 0,
        }
    }

    fn begin(&self, wanted: Wanted) -> Result<Begun, errno::Error> {
        self.system
            .load(&|path| self.program(path), wanted, &Cred::default())
    }

    /// Begins the login shell: bash, or what else was asked for if there is none. A dash in front
    /// of its name tells a shell that it is one.
    fn login(&self, wanted: Wanted) -> Result<Begun, errno::Error> {
        let of = |path: &[u8], name: &[u8]| Wanted {
            path: path.to_vec(),
            arguments: Vec::from([name.to_vec()]),
            ..wanted.clone()
        };
        match self.begin(of(b"/bin/bash", b"-bash")) {
            Err(errno::ENOENT) => self.begin(of(&wanted.path, b"-sh")),
            begun => begun,
        }
    }

    /// The file of a program, for the first one: from the root on.
    fn program(&self, path: &[u8]) -> Result<Source, errno::Error> {
        let cred = Cred::default();
        self.view(&cred).program(&Stand::Made(Vec::new()), path)
    }
}
