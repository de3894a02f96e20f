//! Calling a function on every processor.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{flush, others, request};
use crate::arch::cpu::cpu_index;
use crate::sync::{IrqOff, relax};

/// What to call, erased: the caller waits, so the reference outlives all uses.
type Function = *const (dyn Fn(usize) + Sync);

struct FunctionCell(UnsafeCell<Option<Function>>);

// SAFETY: written by the owner of BUSY while WAITING is 0, read only by processors whose bit in
// WAITING is set.
unsafe impl Sync for FunctionCell {}

/// Taken by the processor whose call is under way.
static BUSY: AtomicBool = AtomicBool::new(false);
static FUNCTION: FunctionCell = FunctionCell(UnsafeCell::new(None));
/// A bit for each processor that has still to call.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// Calls `function` with each processor's index on that processor, in interrupt context there;
/// returns when all calls have returned. The caller holds no spin lock.
pub fn call_all(function: &(dyn Fn(usize) + Sync)) {
    let _irq = IrqOff::new();
    while BUSY.swap(true, Ordering::Acquire) {
        request::poll();
        relax();
    }
    let mask = others().fold(0, |mask, index| mask | 1 << index);
    // SAFETY: BUSY is ours and no call is pending, so nobody reads the cell. The transmute only
    // drops the lifetime; `function` is borrowed until this function returns, which is after the
    // last use, when WAITING is 0.
    unsafe {
        *FUNCTION.0.get() = Some(core::mem::transmute::<&(dyn Fn(usize) + Sync), Function>(
            function,
        ));
    }
    WAITING.store(mask, Ordering::SeqCst);
    others().for_each(|index| request::send(index, request::CALL));
    function(cpu_index());
    while WAITING.load(Ordering::Acquire) != 0 {
        request::poll();
        relax();
    }
    BUSY.store(false, Ordering::Release);
}

/// Makes the call that is under way, on this processor.
pub(super) fn serve() {
    let here = cpu_index();
    if WAITING.load(Ordering::Acquire) & 1 << here == 0 {
        return;
    }
    // The function may lie on a stack that an idle processor knows by a stale translation.
    flush::catch_up();
    // SAFETY: this processor's bit is set, so the cell was written and its writer waits.
    if let Some(function) = unsafe { *FUNCTION.0.get() } {
        // SAFETY: the caller keeps the function borrowed until our bit is cleared below.
        unsafe { (*function)(here) };
    }
    WAITING.fetch_and(!(1 << here), Ordering::Release);
}
