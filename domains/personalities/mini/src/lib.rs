//! A personality for static Linux programs: small enough to be read in one sitting.
//!
//! Each process has an address space, and each of its threads a user thread and a thread of this
//! domain, which runs the program until it traps and answers. System calls have Linux's numbers and
//! structures; what is not answered is `ENOSYS`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`system`] | all processes, and what they know of each other |
//! | [`process`] | a process: what its threads share |
//! | [`task`] | a thread: beginning, end, waits |
//! | [`delivery`] | what a thread does at signals |
//! | [`futex`] | threads that wait at words of the program's memory |
//! | [`calls`] | the system calls |
//! | [`memory`], [`space`] | the program's memory: copies, heap, a program that is loaded; files in it |
//! | [`files`], [`pipes`], [`disk`], [`terminal`] | descriptors; pipes; the disk; the console |
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

mod calls;
mod delivery;
mod disk;
mod files;
mod futex;
mod lent;
mod memory;
mod pipes;
mod process;
mod space;
mod system;
mod task;
mod terminal;

use alloc::sync::Arc;
use alloc::vec::Vec;
use disk::Disk;
use domain_rt::memory as heap;
use files::Open;
use guests::archive::Files;
use guests::{handlers, signals};
use interfaces::{
    AddressSpaces, Archive, Console, Errno, ExitStatus, FsError, Handle, Personality, RVec, Random,
    Respawn, RpcError, RpcResult,
};
use linux::errno;
use process::Process;
use system::System;
use task::Task;
use terminal::Terminal;

/// Starts the personality.
///
/// # Errors
/// There is no ring 3, or no memory.
pub fn start(
    spaces: Option<Handle<dyn AddressSpaces>>,
    archive: Handle<dyn Archive>,
    disk: Option<Handle<dyn Respawn>>,
    random: Handle<dyn Random>,
    console: Handle<dyn Console>,
    errors: Option<Handle<dyn Console>>,
    options: RVec<u8>,
) -> RpcResult<Handle<dyn Personality>> {
    heap::reserve(heap::SERVICE)?;
    let spaces = spaces.ok_or(RpcError::Refused)?;
    let once = options
        .split(|byte| *byte == b'\n')
        .any(|line| line == b"exec");
    let files = Files::new(archive, b"busybox")?;
    let (terminal, streams) = match (once, errors) {
        (false, _) => {
            let terminal = Arc::new(Terminal::new(console));
            let stream = Arc::new(Open::Terminal(terminal.clone()));
            (Some(terminal), [stream.clone(), stream])
        }
        (true, Some(errors)) => (None, [console, errors].map(Open::Console).map(Arc::new)),
        (true, None) => {
            let stream = Arc::new(Open::Console(console));
            (None, [stream.clone(), stream])
        }
    };
    let disk = disk.map(|disk| Arc::new(Disk::new(disk)));
    let system = Arc::new(System::new(spaces, (files, disk), random, terminal)?);
    if let Some(terminal) = &system.terminal {
        terminal.attend(&system)?;
    }
    Handle::<dyn Personality>::new(Runner { system, streams })
}

/// What `init` calls.
struct Runner {
    system: Arc<System>,
    /// Where input comes from and output goes to, and where errors go to.
    streams: [Arc<Open>; 2],
}

impl Personality for Runner {
    fn run(&self, path: RVec<u8>, arguments: RVec<u8>) -> Result<ExitStatus, Errno> {
        let not_found = || Errno::Fs(FsError::NotFound);
        let file = self.system.files.program(&path).ok_or_else(not_found)?;
        let words = arguments.split(|byte| *byte == 0);
        let mut words: Vec<Vec<u8>> = words.map(Vec::from).collect();
        words.pop();
        let usual: [&[u8]; 4] = [b"PATH=/bin", b"HOME=/", b"TERM=linux", b"PS1=$ "];
        let count = if self.system.terminal.is_some() { 4 } else { 2 };
        let environment: Vec<_> = usual[..count].iter().map(|it| Vec::from(*it)).collect();
        let program = self.system.load(file, &path, &words, &environment);
        let (program, layout) = program.map_err(|_| Errno::Rpc(RpcError::NoMemory))?;
        let [console, errors] = &self.streams;
        let streams = [console, console, errors].map(|open| Some((open.clone(), false)));
        let process = Process::new(&self.system, Vec::from(streams), Vec::new(), layout);
        let task = Task::first(process, program, 0).map_err(Errno::Rpc)?;
        let id = task.process.id;
        self.system.add(&task.process, None);
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
