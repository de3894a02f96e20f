//! The rv6 personality: a Unix-like system of processes, without `fork`, as a domain.
//!
//! Each process is a domain of its own, with one object of this domain's in its hands: its
//! `interfaces::Process`, whose methods are the system calls. A system call runs on the caller's
//! thread.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`system`] | everything that there is once |
//! | [`services`] | what programs may ask for by name |
//! | [`personality`] | what `init` sees |
//! | [`calls`] | the system calls of a process: checks, then the modules below |
//! | [`process`], [`table`] | one process; all of them, who waits for whom, who is interrupted |
//! | [`times`] | how long processes have had a processor |
//! | [`ledger`] | what is held here for a program and all that it starts |
//! | [`launch`], [`images`] | starting a program and seeing it to its end; verified images that are kept |
//! | [`descriptors`], [`description`], [`pipes`] | what a process has open |
//! | [`files`], [`names`] | opening files; directories and names |
//! | [`volumes`], [`mount_table`], [`mount`], [`mounting`], [`held`] | the file systems, where they are mounted, their restarts, and inodes that are kept |
//! | [`proc`], [`proc_text`] | `/proc` |
//! | [`lanes`] | changes that are made once, also if a file system dies meanwhile |
//! | [`special`] | `/dev` |
//! | [`listing`] | entries of directories, mount points among them |
//! | [`terminal`], [`input`], [`device`] | the console: output, line editing, and its restarts |
//!
//! # Kills and locks
//! The domain of a process may be killed while its thread is in here. The thread then goes on to
//! its return; only waits end early, with `Wait::Interrupted`, and every place that waits has
//! nothing half done at that moment. Locks are held over calls to other domains in two places only:
//! disks are mounted one at a time, and the position of an open file is locked while the file is
//! read or written, so that each byte is read or written once. Locks inside locks: position of a
//! file, then the hold of its inode. All others are taken alone.
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
mod ledger;
mod listing;
mod mount_table;
mod mounting;
mod names;
mod options;
mod personality;
mod pipes;
mod proc;
mod proc_text;
mod process;
mod script;
mod services;
mod special;
mod stop;
mod system;
mod table;
mod terminal;
mod times;
mod volumes;

use alloc::sync::Arc;
use domain_rt::{log, memory, thread};
use interfaces::{
    Console, Disks, FileSystem, FsError, Handle, Loader, Monitor, Personality, RVec, Random,
    Respawn, RpcError, RpcResult, Services,
};

use mount_table::{Origin, Point};
use mounts::Mount;
use options::Settings;
use personality::Runner;
use proc::Proc;
use readonly::ReadOnly;
use services::Named;
use special::Devices;
use system::{Granted, System};
use terminal::Terminal;
use volumes::Volumes;

/// Starts the personality. The console and the file systems are not touched before they are needed,
/// so that `init` may start them in any order.
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
    tmp: Option<Handle<dyn Respawn>>,
    monitor: Option<Handle<dyn Monitor>>,
    disks: Option<Handle<dyn Disks>>,
    services: Option<Handle<dyn Services>>,
    random: Option<Handle<dyn Random>>,
    options: RVec<u8>,
) -> RpcResult<Handle<dyn Personality>> {
    memory::reserve(512)?;
    let settings = Settings::parse(&options);
    for line in &settings.unknown {
        log!("option not understood: {line}");
    }
    let granted = Granted {
        monitor,
        disks,
        services: Named::new(services),
        random,
    };
    let terminal = Terminal::new(console, errors, !settings.exec);
    let volumes = mount_all(root, boot, tmp, settings.root_disk.as_deref())
        .map_err(|_| RpcError::NoMemory)?;
    let interactive = !settings.exec;
    let system = Arc::new(System::new(loader, granted, terminal, volumes, settings));
    mount_proc(&system).map_err(|_| RpcError::NoMemory)?;
    if interactive {
        let reader = system.clone();
        thread::spawn("terminal", move || input::read_for_ever(&reader))?;
    }
    Handle::<dyn Personality>::new(Runner::new(system))
}

/// Mounts what the system tells of itself.
fn mount_proc(system: &Arc<System>) -> Result<(), FsError> {
    let files = Handle::<dyn FileSystem>::new(ReadOnly(Proc::new(system.clone())))?;
    let mount = Mount::fixed("/proc", files)?;
    let point = Point::Top(b"proc".to_vec());
    let mounts = &system.volumes.mounts;
    mounts.add("proc", Origin::System, point, b"/proc", mount)?;
    Ok(())
}

/// Mounts what there is at the start.
fn mount_all(
    root: Option<Handle<dyn Respawn>>,
    boot: Handle<dyn Respawn>,
    tmp: Option<Handle<dyn Respawn>>,
    root_disk: Option<&str>,
) -> Result<Volumes, FsError> {
    let mut volumes = Volumes::new();
    let mounts = &volumes.mounts;
    if let Some(root) = root {
        let disk = root_disk.unwrap_or("root");
        mounts.add(
            disk,
            Origin::System,
            Point::Root,
            b"/",
            Mount::new("/", root),
        )?;
    }
    let top = |device, path: &str, mount| {
        let name = Point::Top(path.trim_start_matches('/').into());
        mounts.add(device, Origin::System, name, path.as_bytes(), mount)
    };
    top("bootfs", "/boot", Mount::new("/boot", boot).unchanging())?;
    if let Some(tmp) = tmp {
        top("ramfs", "/tmp", Mount::new("/tmp", tmp))?;
    }
    let devices = Handle::<dyn FileSystem>::new(ReadOnly(Devices))?;
    volumes.mount_devices(Mount::fixed("/dev", devices)?)?;
    Ok(volumes)
}
