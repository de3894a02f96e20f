//! `init`: starts all other domains as the image's manifest says, and starts them again when they
//! crash.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`kernel`] | what the kernel grants to `init`, and through it to others |
//! | [`files`], [`images`] | the boot archive; verified images, each read and checked once |
//! | [`check`] | does the manifest fit the images? |
//! | [`system`] | everything that there is once |
//! | [`service`] | one supervised domain: its state, and its instance |
//! | [`instances`] | how instances are started, ended and replaced, and where their grants come from |
//! | [`claims`] | which driver has which PCI function |
//! | [`own`] | what `init` itself offers to others |
//! | [`disks`] | disks that are mounted on demand |
//! | [`programs`] | what programs may ask their personality for |
//! | [`restarts`] | what has died and is to be restarted |
//! | [`supervise`] | the threads that watch and restart, and what others see: `Supervisor` |
//! | [`update`], [`estate`], [`fit`] | replacing a domain by another image; its state; does the image fit? |
//! | [`version`] | which image a domain is started from, and which one if that fails |
//! | [`session`] | the personality and its shell, from the first prompt to power-off |
//! | [`former`] | the domains of a former life, when `init` itself was restarted |
//! | [`steward`] | what is left to the next life, and objects that outlive this one |
//! | [`words`] | the kernel's command line |
//! | [`failure`], [`last_words`] | why something did not start, in words |
//! | [`last_resort`] | how the user is told when there is no console |
//!
//! # Locks
//! Each supervised domain has one lock, which is held while that domain is started, ended or
//! replaced, also over the calls that this takes. Whoever holds it may take the locks of domains
//! that this one's grants come from, directly (a grant is resolved) or through a call (the start
//! function of a file system reads a block, the block shadow finds its driver dead and asks for
//! another). The manifest's grants have no circle, so neither have the locks. An update takes
//! [`system::System::updating`] first, then closes the gates of shadows, and only then takes the
//! lock of its domain: calls that are still under way at the gate may need that. Everything else is
//! under locks of its own that are held for a few instructions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod check;
mod claims;
mod disks;
mod estate;
mod failure;
mod files;
mod fit;
mod former;
mod images;
mod instances;
mod kernel;
mod last_resort;
mod last_words;
mod limit;
mod own;
mod programs;
mod restarts;
mod service;
mod session;
mod steward;
mod supervise;
mod system;
mod update;
mod version;
mod words;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use domain_rt::{log, memory, thread};
use interfaces::{
    AddressSpaces, Archive, CommandLine, DomainControl, Events, Handle, Hardware, HeapAudit,
    Legacy, Loader, MemoryObjects, MemoryWatch, Monitor, Power, RVec, Random, RpcResult, Tracer,
};
use manifest::Manifest;

use files::Files;
use kernel::Kernel;
use system::System;
use words::Words;

/// Where the manifest is in the boot archive.
const MANIFEST: &str = "manifest.toml";

/// Starts everything. If that cannot be done, the log says why and the machine is switched off with
/// status 1: without its domains it would only stand there.
///
/// # Errors
/// Only if even switching off fails.
// A grant each, as the declaration in `init.idl` has them.
#[allow(clippy::too_many_arguments)]
pub fn start(
    loader: Handle<dyn Loader>,
    monitor: Handle<dyn Monitor>,
    control: Handle<dyn DomainControl>,
    hardware: Handle<dyn Hardware>,
    power: Handle<dyn Power>,
    archive: Handle<dyn Archive>,
    command_line: Handle<dyn CommandLine>,
    memory: Handle<dyn MemoryWatch>,
    objects: Handle<dyn MemoryObjects>,
    events: Handle<dyn Events>,
    tracer: Handle<dyn Tracer>,
    random: Handle<dyn Random>,
    spaces: Option<Handle<dyn AddressSpaces>>,
    auditor: Option<Handle<dyn HeapAudit>>,
    legacy: Option<Handle<dyn Legacy>>,
    options: RVec<u8>,
) -> RpcResult<()> {
    memory::reserve(256)?;
    let kernel = Arc::new(Kernel {
        loader,
        monitor,
        control,
        hardware,
        power,
        archive,
        command_line,
        memory,
        objects,
        events,
        tracer,
        random,
        spaces,
        auditor,
        legacy,
        deaths: deaths(&options),
    });
    match boot(&kernel) {
        Ok(()) => Ok(()),
        Err(cause) => {
            log!("cannot boot: {cause}");
            let once = Words::read(&kernel.command_line).is_ok_and(|words| words.exec.is_some());
            last_resort::write(&kernel.hardware, &format!("cannot boot: {cause}"), once);
            kernel.power.off(1)
        }
    }
}

/// How often this domain has ended before.
fn deaths(options: &[u8]) -> u32 {
    let text = core::str::from_utf8(options).unwrap_or_default();
    let count = text
        .strip_prefix("deaths ")
        .and_then(|count| count.parse().ok());
    count.unwrap_or(0)
}

fn boot(kernel: &Arc<Kernel>) -> Result<(), String> {
    let words = Words::read(&kernel.command_line)?;
    let files =
        Files::list(&kernel.archive).map_err(|error| format!("the boot archive: {error}"))?;
    let text = files.read(&kernel.archive, MANIFEST)?;
    let text = core::str::from_utf8(&text).map_err(|_| format!("{MANIFEST}: not UTF-8"))?;
    let manifest = Manifest::parse(text).map_err(|error| format!("{MANIFEST}, {error}"))?;
    let system = Arc::new(System::new(
        kernel.clone(),
        manifest,
        words,
        &files,
        own::make,
    )?);
    supervise::start(&system).map_err(|error| format!("no thread: {error}"))?;
    let of_thread = system.clone();
    // In a thread of its own, so that the kernel sees `init` running while the others start.
    thread::spawn("session", move || session::run(&of_thread)).map_err(|error| error.to_string())
}
