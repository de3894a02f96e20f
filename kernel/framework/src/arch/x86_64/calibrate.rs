//! Finds out how fast the time-stamp counter and the local APIC's timer run.
//!
//! CPUID may tell; otherwise both are compared for about a millisecond with a clock of known rate:
//! the ACPI power-management timer, or channel 2 of the 8254 where there is none.

use super::{lapic, regs};
use crate::arch::types::Rates;
use crate::arch::upcalls::firmware;

/// Counts per second of the ACPI timer (ACPI 6.5, 4.8.3.3).
const PM_RATE: u64 = 3_579_545;
/// Counts per second of the 8254.
const PIT_RATE: u64 = 1_193_182;
/// Length of the comparison: 1/1000 s.
const PARTS: u64 = 1000;
/// Reads of a clock after which it is taken to stand still.
const PATIENCE: u32 = 1_000_000;

/// Readings of a clock of which the quickest counts, because emulated ones take their time.
const TRIES: usize = 8;

/// Measures.
///
/// # Panics
/// If the machine has no clock of known rate at all.
pub(crate) fn measure() -> Rates {
    lapic::start_counting();
    let before = read_at(|| u64::from(lapic::counted()));
    let (measured, source) = match by_pm_timer() {
        Some(tsc) => (tsc, "ACPI timer"),
        None => (
            by_pit().expect("a machine with an ACPI timer or an 8254"),
            "8254",
        ),
    };
    let after = read_at(|| u64::from(lapic::counted()));
    let (tsc, source) = told_by_cpuid().map_or((measured, source), |tsc| (tsc, "CPUID"));
    Rates {
        clock: tsc,
        timer: rate(before, after, measured).max(1_000_000),
        source,
    }
}

/// The rate of the time-stamp counter from leaf 0x15 or from the hypervisor's timing leaf, if
/// given.
fn told_by_cpuid() -> Option<u64> {
    let leaf = regs::cpuid(0x15, 0);
    if leaf.eax != 0 && leaf.ebx != 0 && leaf.ecx != 0 {
        return Some(u64::from(leaf.ecx) * u64::from(leaf.ebx) / u64::from(leaf.eax));
    }
    let under_hypervisor = regs::cpuid(1, 0).ecx >> 31 != 0;
    if !under_hypervisor || regs::cpuid(0x4000_0000, 0).eax < 0x4000_0010 {
        return None;
    }
    let khz = regs::cpuid(0x4000_0010, 0).eax;
    (khz != 0).then(|| u64::from(khz) * 1000)
}

/// A clock's value and the time-stamp counter's at the same moment.
#[derive(Clone, Copy)]
struct Reading {
    clock: u64,
    tsc: u64,
}

/// Reads a clock several times and keeps the reading that took least time.
fn read_at(mut read: impl FnMut() -> u64) -> Reading {
    let mut best = (u64::MAX, Reading { clock: 0, tsc: 0 });
    for _ in 0..TRIES {
        let start = regs::rdtsc();
        let clock = read();
        let took = regs::rdtsc() - start;
        if took < best.0 {
            let tsc = start + took / 2;
            best = (took, Reading { clock, tsc });
        }
    }
    best.1
}

/// The rate of a clock whose readings these are, given that of the time-stamp counter.
fn rate(from: Reading, to: Reading, tsc_rate: u64) -> u64 {
    let (counts, tsc) = (to.clock - from.clock, to.tsc - from.tsc);
    (u128::from(counts) * u128::from(tsc_rate) / u128::from(tsc.max(1))) as u64
}

/// The rate of the time-stamp counter by a clock that counts up, `clock_rate` per second. `None`
/// if the clock stands still.
fn by_clock(clock_rate: u64, mut read: impl FnMut() -> u64) -> Option<u64> {
    let from = read_at(&mut read);
    let end = from.clock + clock_rate / PARTS;
    (0..PATIENCE).find(|_| read() >= end)?;
    let to = read_at(&mut read);
    let (counts, tsc) = (to.clock - from.clock, to.tsc - from.tsc);
    Some((u128::from(tsc) * u128::from(clock_rate) / u128::from(counts)) as u64)
}

/// Measures with the ACPI timer, a free-running counter of 24 bits or more.
fn by_pm_timer() -> Option<u64> {
    let port = firmware().fadt?.pm_timer?;
    // SAFETY: reading the timer port that the FADT names has no side effect.
    let read = || u64::from(unsafe { regs::inl(port) });
    let mut last = read();
    let mut total = 0;
    by_clock(PM_RATE, || {
        let now = read();
        total += now.wrapping_sub(last) & 0xff_ffff;
        last = now;
        total
    })
}

/// Measures with channel 2 of the 8254, counting down from 65535 with the speaker off.
fn by_pit() -> Option<u64> {
    // SAFETY: programs channel 2 and its gate, which nothing else uses.
    unsafe {
        let gate = regs::inb(0x61);
        regs::outb(0x61, gate & !2 | 1);
        regs::outb(0x43, 0xb0);
        regs::outb(0x42, 0xff);
        regs::outb(0x42, 0xff);
    }
    by_clock(PIT_RATE, || {
        // SAFETY: latches and reads the count of the same channel.
        let (low, high) = unsafe {
            regs::outb(0x43, 0x80);
            (regs::inb(0x42), regs::inb(0x42))
        };
        0xffff - u64::from(u16::from_le_bytes([low, high]))
    })
}
