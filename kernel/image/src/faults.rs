//! Carries out fault campaigns (`lab/faults`) instead of starting `init`.
//!
//! With the word `faults` on the command line, `manifest.toml` in the archive is the plan. Every
//! run is a line `fault JSON` in the log.

use crate::machine::{files, switch_off};
use abi::Handle;
use abi::shared::CHUNK_BYTES;
use faults::Ground;
use framework::kprintln;
use framework::mem::untyped::POOL;
use isolation::platform::PAGE;
use services::{KernelEvents, KernelObjects};

/// How many times slower than a processor QEMU is, roughly.
const STRETCH: u64 = 20;

/// Whether the command line asks for a campaign.
pub fn requested() -> bool {
    framework::boot::command_line()
        .split_whitespace()
        .any(|word| word == "faults")
}

/// Carries it out and switches the machine off.
pub fn run() -> ! {
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
