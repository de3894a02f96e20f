//! The rv6 personality: a Unix-like system of processes, without `fork`, as a domain.
//!
//! Each process is a domain of its own, with one object of this domain's in its hands: its
//! `interfaces::Process`, whose methods are the system calls. A system call runs on the caller's thread.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`system`] | everything that there is once; the services that programs may ask for |
//! | [`personality`] | what `init` sees |
//! | [`calls`] | the system calls of a process: checks, then the modules below |
//! | [`process`], [`table`] | one process; all of them, who waits for whom, who is interrupted |
//! | [`launch`], [`images`] | starting a program and seeing it to its end; verified images that are kept |
//! | [`descriptors`], [`description`], [`pipes`] | what a process has open |
//! | [`files`], [`names`] | opening files; directories and names |
//! | [`volumes`], [`mount`], [`held`] | the file systems, their restarts, and inodes that are kept |
//! | [`terminal`], [`input`], [`device`] | the console: output, line editing, and its restarts |
//!
//! # Kills and locks
//! The domain of a process may be killed while its thread is in here. The thread then goes on to its
//! return; only waits end early, with `Wait::Interrupted`, and every place that waits has nothing half done
//! at that moment. Locks are held over calls to other domains in one place only: the position of an open
//! file is locked while the file is read or written, so that each byte is read or written once.
//! Locks inside locks: position of a file, then the hold of its inode. All others are taken alone.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod calls;
mod description;
mod descriptors;
mod device;
mod errors;
mod files;
mod held;
mod images;
mod input;
mod launch;
mod mount;
mod names;
mod options;
mod personality;
mod pipes;
mod process;
mod special;
mod system;
mod table;
mod terminal;
mod volumes;

use alloc::sync::Arc;
use domain_rt::{log, thread};
use interfaces::{
    Console, DomainControl, Handle, Loader, Monitor, Personality, Power, RVec, Respawn, RpcResult,
    Supervisor,
};

use options::Settings;
use personality::Runner;
use system::{Services, System};
use terminal::Terminal;
use volumes::Volumes;

/// Starts the personality. The console and the file systems are not touched before they are needed, so
/// that `init` may start them in any order.
///
/// # Errors
/// No memory or no thread.
#[allow(clippy::too_many_arguments, reason = "the entry's declaration")]
pub fn start(
    loader: Handle<dyn Loader>,
    console: Handle<dyn Respawn>,
    errors: Option<Handle<dyn Console>>,
    root: Option<Handle<dyn Respawn>>,
    boot: Handle<dyn Respawn>,
    monitor: Option<Handle<dyn Monitor>>,
    control: Option<Handle<dyn DomainControl>>,
    power: Option<Handle<dyn Power>>,
    supervisor: Option<Handle<dyn Supervisor>>,
    options: RVec<u8>,
) -> RpcResult<Handle<dyn Personality>> {
    let settings = Settings::parse(&options);
    for line in &settings.unknown {
        log!("option not understood: {line}");
    }
    let services = Services {
        monitor,
        control,
        power,
        supervisor,
    };
    let terminal = Terminal::new(console, errors, !settings.exec);
    let volumes = Volumes::new(root, boot);
    let interactive = !settings.exec;
    let system = Arc::new(System::new(loader, services, terminal, volumes, settings));
    if interactive {
        let reader = system.clone();
        thread::spawn("terminal", move || input::read_for_ever(&reader))?;
    }
    Handle::<dyn Personality>::new(Runner::new(system))
}
