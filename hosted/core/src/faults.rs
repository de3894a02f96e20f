//! Carries out fault campaigns: the campaign itself is in `lab/faults`.

use crate::frames::POOL;
use crate::host::{bytes, heap_bytes, host};
use abi::{Handle, RpcError};
use core::sync::atomic::{AtomicUsize, Ordering};
use faults::Ground;
use services::{KernelEvents, KernelObjects};

static REPORT: AtomicUsize = AtomicUsize::new(0);

/// See [`hosted_core::Core::faults`].
///
/// # Safety
/// `plan` is the address of `len` bytes; `report` that of an `extern "C" fn(address, length)`.
pub unsafe extern "C" fn run(plan: usize, len: usize, report: usize) -> u32 {
    // SAFETY: by the caller's duty.
    let plan = core::str::from_utf8(unsafe { bytes(plan, len) }).unwrap_or("");
    REPORT.store(report, Ordering::Release);
    let ground = Ground {
        image: |path| Some(crate::machine::named(path)?.content),
        free: || (host().memory)(1),
        heap: || heap_bytes() as u64,
        objects: || Handle::new(KernelObjects(POOL)),
        events: || Handle::new(KernelEvents),
        hardware: || Err(RpcError::Refused),
        report: tell,
        stack_extra: 0,
        slack: 0,
        stretch: 1,
    };
    isolation::call::thread::with_root(|| match faults::run(plan, &ground) {
        Ok(()) => 0,
        Err(why) => {
            crate::log::print(format_args!("faults: {why}"));
            1
        }
    })
}

fn tell(line: &str) {
    // SAFETY: `run` stored the address of such a function; the line is lent for the call.
    unsafe {
        let report: extern "C" fn(usize, usize) =
            core::mem::transmute(REPORT.load(Ordering::Acquire));
        report(line.as_ptr() as usize, line.len());
    }
}
