//! `trefoil-host faults`: has the core carry out a fault campaign, and prints the ledger.

use anyhow::{Result, bail};
use hosted::launch;
use std::io::Write;

/// What the campaign needs.
pub const IMAGES: [&str; 2] = ["domains/frail-disk", "domains/block-shadow"];

/// Carries out `plan`; the process's status.
///
/// # Errors
/// If the campaign cannot begin or go on.
pub fn run(plan: &str) -> Result<u32> {
    let (start, len) = (plan.as_ptr() as usize, plan.len());
    let report = tell as *const () as usize;
    // SAFETY: the plan lives until the call returns, and `tell` is what the core expects.
    let status = launch::on_thread(|| unsafe { (launch::core().faults)(start, len, report) })?;
    if status != 0 {
        bail!("the campaign was not completed; its last line says why");
    }
    Ok(0)
}

/// Prints a line at once: the process may not live to its end.
extern "C" fn tell(start: usize, len: usize) {
    // SAFETY: the core lends a text of that length.
    let line = unsafe { std::slice::from_raw_parts(start as *const u8, len) };
    let mut out = std::io::stdout().lock();
    // Whoever does not read any more does not miss it.
    let _ = out
        .write_all(line)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
}
