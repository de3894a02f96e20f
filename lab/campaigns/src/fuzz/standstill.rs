//! Where the processors stand of a machine that says nothing any more.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::gdb::Gdb;
use crate::steps::symbols::Symbols;

/// How long QEMU may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Most calls that are shown of a processor.
const DEEPEST: usize = 24;
/// Lines of what QEMU says of an interrupt controller: what is being handled, what waits, the last
/// request to another processor, the timer.
const CONTROLLER: [&str; 5] = ["ISR", "IRR", "ICR", "ICR2", "Timer"];
/// The number of the register `rbp` in GDB's order, which leads to the caller's frame.
const FRAME: usize = 6;

/// The state of the interrupt controller of each of `count` processors, and the calls in which it
/// is, from the innermost on.
///
/// # Errors
/// If the stub behind `socket` does not answer.
pub fn calls(socket: &Path, kernel: &Path, count: usize) -> Result<String> {
    let symbols = Symbols::of(kernel)?;
    let mut gdb = Gdb::connect(socket, ANSWER)?;
    let mut text = String::new();
    for processor in 0..count {
        let registers = gdb.registers(processor)?;
        writeln!(
            text,
            "    processor {processor}, flags {:#x}:",
            registers.flags
        )?;
        for line in gdb.monitor(&format!("info lapic {processor}"))?.lines() {
            let name = line.split_whitespace().next();
            if name.is_some_and(|name| CONTROLLER.contains(&name)) {
                writeln!(text, "        {}", line.trim().replace('\t', " "))?;
            }
        }
        let (mut at, mut frame) = (registers.ip, registers.general[FRAME]);
        for _ in 0..DEEPEST {
            let name = symbols.name(at).unwrap_or("?");
            writeln!(text, "        {at:#018x} {name}")?;
            let (Ok(caller), Ok(outer)) = (
                gdb.read(processor, frame.wrapping_add(8)),
                gdb.read(processor, frame),
            ) else {
                break;
            };
            // Frames lie one above the other; what does not is none.
            if outer <= frame {
                break;
            }
            (at, frame) = (caller, outer);
        }
    }
    Ok(text)
}
