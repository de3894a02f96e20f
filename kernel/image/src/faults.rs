//! Carries out fault campaigns (`lab/faults`) instead of starting `init`.
//!
//! With the word `faults` on the command line, `manifest.toml` in the archive is the plan. Every
//! run is a line `fault JSON` in the log.

use crate::machine::{files, switch_off};
use abi::Handle;
use abi::shared::CHUNK_BYTES;
use core::sync::atomic::AtomicU32;
use faults::Ground;
use framework::kprintln;
use framework::mem::untyped::POOL;
use isolation::call::thread::with_root;
use isolation::platform::{Attributes, PAGE, platform};
use services::{KernelEvents, KernelObjects};

/// How many times slower than a processor QEMU is, roughly.
const STRETCH: u64 = 20;

/// Whether the command line asks for a campaign.
pub fn requested() -> bool {
    framework::boot::command_line()
        .split_whitespace()
        .any(|word| word == "faults")
}

/// Carries it out and switches the machine off. That is done on a thread with the stack of those
/// that call domains; the kernel's first has half of it, and a start may begin other domains.
pub fn run() -> ! {
    let started = platform().spawn("faults", carry_out, 0, &Attributes::KERNEL);
    started.expect("memory at boot");
    let nobody_wakes = AtomicU32::new(0);
    loop {
        platform().wait(&nobody_wakes, 0, None);
    }
}

extern "C" fn carry_out(_: usize) {
    with_root(|| carry_out_all());
}

fn carry_out_all() -> ! {
    let ground = Ground {
        image: file,
        free: || (framework::mem::frames::stats().free * PAGE) as u64,
        // It is made of frames.
        heap: || 0,
        objects: || Handle::new(KernelObjects(POOL)),
        events: || Handle::new(KernelEvents),
        hardware: || Handle::new(crate::hardware::MachineHardware),
        report: |line| kprintln!("fault {line}"),
        stack_extra: 0,
        // The kernel's heap takes frames in runs, and keeps page tables.
        slack: CHUNK_BYTES as u64,
        stretch: STRETCH,
    };
    let plan = file("manifest.toml").and_then(|plan| core::str::from_utf8(plan).ok());
    let outcome = faults::run(plan.unwrap_or(""), &ground);
    if let Err(why) = &outcome {
        kprintln!("faults: {why}");
    }
    switch_off(u8::from(outcome.is_err()))
}

fn file(path: &str) -> Option<&'static [u8]> {
    files()
        .iter()
        .find(|file| file.path == path)
        .map(|file| file.content)
}
