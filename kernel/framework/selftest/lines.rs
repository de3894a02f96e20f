//! Tests of interrupts and interrupt lines.

use alloc::string::String;
use alloc::vec::Vec;
use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::Test;
use super::threads::{alongside, in_threads, sleep_ms};
use crate::arch::cpu::cpu_index;
use crate::arch::{controller, regs};
use crate::check;
use crate::irq::{self, IrqError, IrqLine, Polarity, Trigger};
use crate::sync::{IrqOff, SpinLock, relax};
use crate::task::WaitResult;
use crate::{smp, time};

/// The tests of this file.
pub static TESTS: &[Test] = &[
    ("irq-stray-vector-is-counted", stray),
    ("irq-line-wakes-its-waiter", line_wakes),
    ("irq-line-belongs-to-a-processor", processors),
    ("irq-lines-run-out-and-come-back", lines_run_out),
    ("irq-input-has-one-owner", input_owner),
    ("irq-input-wanted-by-all-at-once", input_race),
    ("irq-late-handler-masks-nobody-elses-input", late_handler),
    ("irq-io-apic-delivers", io_apic),
];

fn stray() -> Result<(), String> {
    let before = irq::unexpected();
    // SAFETY: raises an interrupt on a vector that has a handler, which counts it.
    unsafe { asm!("int 0x2f", "int 0xe0") };
    let counted = irq::unexpected() - before;
    check!(counted == 2, "{counted} of 2 counted");
    Ok(())
}

/// Raises the line's vector on this processor, as a device would.
fn raise(line: &IrqLine) {
    let _irq = IrqOff::new();
    controller::raise(cpu_index(), line.vector());
}

fn line_wakes() -> Result<(), String> {
    let line = IrqLine::alloc().map_err(|why| alloc::format!("{why:?}"))?;
    let (address, data) = line.msi_message();
    check!(address >> 20 == 0xfee, "MSI address {address:#x}");
    check!(data == u32::from(line.vector()), "MSI data {data:#x}");
    let seen = line.count();
    let woken = AtomicUsize::new(0);
    alongside(
        1,
        &|_| {
            let far = time::now_ns() + 60_000_000_000;
            let result = line.wait(seen, Some(far));
            let right = matches!(result, WaitResult::Woken | WaitResult::Mismatch);
            woken.fetch_add(usize::from(right), Ordering::SeqCst);
        },
        |_| {
            sleep_ms(2);
            raise(&line);
        },
    )?;
    check!(woken.load(Ordering::SeqCst) == 1, "the waiter timed out");
    check!(
        line.count() == seen + 1,
        "count {} after {seen}",
        line.count()
    );
    Ok(())
}

/// Each processor has a message of its own, and there is none for one that is not there.
fn processors() -> Result<(), String> {
    let count = smp::online();
    let lines = (0..count).map(IrqLine::alloc_on);
    let lines = lines.collect::<Result<Vec<_>, _>>();
    let lines = lines.map_err(|why| alloc::format!("{why:?}"))?;
    let mut to: Vec<u64> = lines.iter().map(|line| line.msi_message().0).collect();
    to.dedup();
    check!(to.len() == count, "messages to {to:x?}");
    for processor in [count, usize::MAX] {
        let refused = IrqLine::alloc_on(processor).err();
        check!(refused == Some(IrqError::NoSuchProcessor), "{refused:?}");
    }
    Ok(())
}

fn lines_run_out() -> Result<(), String> {
    let mut lines = Vec::new();
    let error = loop {
        match IrqLine::alloc() {
            Ok(line) => lines.push(line),
            Err(why) => break why,
        }
    };
    check!(error == IrqError::NoVector, "{error:?}");
    let mut vectors: Vec<u8> = lines.iter().map(IrqLine::vector).collect();
    vectors.sort_unstable();
    let number = vectors.len();
    vectors.dedup();
    check!(vectors.len() == number, "a vector was given out twice");
    drop(lines);
    check!(IrqLine::alloc().is_ok(), "no vector came back");
    Ok(())
}

fn input_owner() -> Result<(), String> {
    let claim = |gsi| IrqLine::for_gsi(gsi, Trigger::Level, Polarity::Low);
    let first = claim(11);
    let second = claim(11).err();
    check!(first.is_ok(), "input 11: {first:?}");
    check!(
        second == Some(IrqError::InputInUse),
        "claimed twice: {second:?}"
    );
    drop(first);
    check!(claim(11).is_ok(), "a dropped input stayed taken");
    let none = claim(100_000).err();
    check!(
        none == Some(IrqError::NoSuchInput),
        "input 100000: {none:?}"
    );
    Ok(())
}

/// All processors want one input at the same moment, over and over: never do two have it.
fn input_race() -> Result<(), String> {
    let threads = smp::online();
    let (arrived, owners, most) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let (stop, end) = (AtomicBool::new(false), time::now_ns() + 500_000_000);
    // Waits until all have come so far.
    let meet = |step: usize| {
        arrived.fetch_add(1, Ordering::SeqCst);
        while arrived.load(Ordering::SeqCst) < (step + 1) * threads {
            relax();
        }
    };
    in_threads(threads, &|index| {
        for step in (0..).step_by(2) {
            meet(step);
            let line = IrqLine::for_gsi(11, Trigger::Level, Polarity::Low);
            if line.is_ok() {
                let now = owners.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
            }
            if index == 0 && time::now_ns() >= end {
                stop.store(true, Ordering::SeqCst);
            }
            meet(step + 1);
            owners.store(0, Ordering::SeqCst);
            drop(line);
            if stop.load(Ordering::SeqCst) {
                break;
            }
        }
    })?;
    check!(most.load(Ordering::SeqCst) == 1, "{most:?} owners at once");
    Ok(())
}

/// The line that an interrupt is for is given up, and its input taken by another, when the handler
/// has begun.
fn late_handler() -> Result<(), String> {
    static LINE: SpinLock<Option<IrqLine>> = SpinLock::new(None);
    const INPUT: u32 = 11;
    fn claim() -> Option<IrqLine> {
        IrqLine::for_gsi(INPUT, Trigger::Level, Polarity::Low).ok()
    }
    fn change_hands() {
        let old = LINE.lock().take();
        drop(old);
        *LINE.lock() = claim();
    }
    let first = claim().ok_or("no line")?;
    let vector = first.vector();
    *LINE.lock() = Some(first);
    *irq::line::BEFORE_MASKING.lock() = Some(change_hands);
    {
        let _irq = IrqOff::new();
        controller::raise(cpu_index(), vector);
    }
    let end = time::now_ns() + 10_000_000_000;
    while irq::line::BEFORE_MASKING.lock().is_some() {
        check!(time::now_ns() < end, "the interrupt did not come");
        relax();
    }
    // The handler runs with interrupts off on this processor, so it is over.
    sleep_ms(1);
    let line = LINE.lock().take().ok_or("nobody has the input")?;
    check!(line.vector() != vector, "it has the same vector again");
    check!(
        !controller::is_masked(INPUT),
        "the next owner's input is masked"
    );
    Ok(())
}

/// The 8254's channel 0, once, through its ISA interrupt, on machines that have one.
fn io_apic() -> Result<(), String> {
    let fadt = crate::acpi::platform().fadt;
    if fadt.is_none_or(|fadt| fadt.hardware_reduced) {
        return Ok(());
    }
    let line = IrqLine::for_isa(0).map_err(|why| alloc::format!("{why:?}"))?;
    let seen = line.count();
    // SAFETY: programs a channel that nothing else uses to count down once (mode 0).
    unsafe {
        regs::outb(0x43, 0x30);
        regs::outb(0x40, 0x00);
        regs::outb(0x40, 0x04);
    }
    let result = line.wait(seen, Some(time::now_ns() + 60_000_000_000));
    check!(line.count() > seen, "no interrupt: {result:?}");
    Ok(())
}
