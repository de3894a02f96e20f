//! Who logs does not send; the log's own thread does. The last tests, since that thread stays.

use alloc::string::String;

use super::Test;
use crate::log::Which;
use crate::sync::IrqOff;
use crate::{check, kprintln, log, smp, task, time};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("log-is-sent-by-its-thread", sent_by_its_thread),
    ("log-console-gets-the-rest-in-pieces", in_pieces),
    ("log-too-fast-for-the-line", too_fast),
];

/// How long the sender may take, in nanoseconds.
const PATIENCE: u64 = 10_000_000_000;

/// Waits until all is sent.
fn settle() -> Result<(), String> {
    let end = time::now_ns() + PATIENCE;
    while log::unsent() > 0 {
        check!(time::now_ns() < end, "{} bytes are unsent", log::unsent());
        task::sleep_until(time::now_ns() + 1_000_000);
    }
    Ok(())
}

/// Logs so many lines of a hundred bytes with interrupts off, so that on this processor nobody
/// sends; bytes unsent then.
fn log_alone(lines: usize) -> u64 {
    let _irq = IrqOff::new();
    (0..lines).for_each(|line| kprintln!("line {line:5} {:70}", "of many"));
    log::unsent()
}

fn sent_by_its_thread() -> Result<(), String> {
    log::start_sender();
    settle()?;
    let unsent = log_alone(50);
    check!(
        smp::online() > 1 || unsent >= 50 * 80,
        "who logs has sent: {unsent} bytes are left"
    );
    settle()
}

/// What the console has not got yet when it changes hands goes there a few bytes per hold of the
/// lock.
fn in_pieces() -> Result<(), String> {
    // With others the sender is at it at the same time.
    if smp::online() > 1 {
        return Ok(());
    }
    settle()?;
    let (unsent, holds) = {
        let _irq = IrqOff::new();
        (0..300).for_each(|line| kprintln!("line {line:5} {:70}", "of many"));
        let unsent = log::unsent();
        // Whichever has the log.
        let console = log::send_rest(Which::Console);
        (unsent, console.max(log::send_rest(Which::Mirror)))
    };
    check!(unsent > 300 * 80, "{unsent} bytes were unsent");
    let least = unsent as usize / 16;
    check!(holds > least, "{unsent} bytes in {holds} pieces");
    settle()
}

/// More than the ring holds, while nothing is sent: what is lost is said, and what comes then is
/// sent.
fn too_fast() -> Result<(), String> {
    if smp::online() > 1 {
        return Ok(());
    }
    settle()?;
    let before = log::written();
    log_alone(1_000);
    let all = log::written() - before;
    let lost = all - (64 << 10);
    // And the rest of a line of which the beginning is lost.
    let said = |lost| alloc::format!("log: {lost} bytes came too fast for the serial line\n");
    let all_said = (lost..lost + 200).map(said);
    let end = time::now_ns() + PATIENCE;
    loop {
        settle()?;
        let mut bytes = [0; 200];
        let (_, count) = log::read(log::written().saturating_sub(100), &mut bytes);
        let text = core::str::from_utf8(&bytes[..count]).map_err(|_| "not text")?;
        if all_said.clone().any(|said| text.ends_with(&said)) {
            return Ok(());
        }
        check!(time::now_ns() < end, "{lost} bytes were lost: {text:?}");
    }
}
