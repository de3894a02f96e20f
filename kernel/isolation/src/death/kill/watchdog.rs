//! Faults, and threads that are inside for too long.

use super::TICK_MS;
use crate::call::end::{crash_here, die_at};
use crate::call::thread::{current, top};
use crate::call::{Method, Record, UNBOUNDED};
use crate::domain;
use crate::domain::words::Crash;
use crate::domain::{ControlBlock, Reason};
use crate::platform::Frame;

/// Whether the thread was in the code of the image. Ring 3 can jump to any address, and is in
/// nobody's code.
pub(super) fn runs_code_of(block: &ControlBlock, frame: &dyn Frame) -> bool {
    !frame.is_user() && block.in_image(frame.ip())
}

/// Whose fault a fault of the processor is.
#[must_use = "after a fault of the kernel's own nothing may go on"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// A domain's, which is dead now.
    Domain,
    /// The kernel's, or that of a program in ring 3. Nothing has changed.
    Other,
}

/// A fault of the processor, with interrupts off, in the frame of the code that did it. If that is
/// a domain's, the domain dies and the frame is changed so that the thread leaves it.
///
/// A kernel function that a domain calls straight, or the proxy that it calls, may run into the
/// guard page before it comes to look how much stack is left. It owns nothing then, and the domain
/// is to blame. Where it did look, there is enough; and who holds a lock has interrupts off and is
/// not taken for one of these.
pub fn fault(frame: &mut dyn Frame, reason: Reason, address: usize) -> Culprit {
    let record = top();
    if record.is_null() {
        return Culprit::Other;
    }
    // SAFETY: the running thread's top record.
    let block = unsafe { &*(*record).domain };
    let in_kernel = core::ptr::eq(block, domain::kernel_block());
    let overrun = reason == Reason::StackOverflow && frame.interruptible() && !in_kernel;
    if frame.is_user() || !(block.in_image(frame.ip()) || overrun) {
        return Culprit::Other;
    }
    let offset = frame.ip().wrapping_sub(block.image_start());
    let what = format_args!("{reason:?} (address {address:#x})");
    let place = if block.in_image(frame.ip()) {
        format_args!("image offset {offset:#x}")
    } else {
        format_args!("a call of the kernel")
    };
    let crash = Crash::new(what, place);
    die_at(record, reason, &crash, frame.place());
    // SAFETY: as above; the thread is inside the callee.
    let landing = unsafe { (*record).landing() };
    frame.redirect(&landing);
    Culprit::Domain
}

/// A scheduler tick found the running thread at `frame`, on a processor that was busy for `ns`
/// nanoseconds since the tick before.
///
/// That time is charged to the domain that the thread is in; it may have been elsewhere in between,
/// but who is met more often has run longer. It is also charged to the group that pays for the
/// thread.
///
/// Ends a domain whose call has used up its budget, if its own code runs; in a kernel function it
/// is found out at the next one ([`leave_if_late`]).
pub fn tick(frame: &mut dyn Frame, ns: u64) {
    // SAFETY: the callee of the top record, or the kernel's own block: in memory as long as the
    // thread is here.
    unsafe { (*current()).charge(ns) };
    crate::call::thread::charge(ns);
    crate::call::count::meet(ns);
    crate::call::stack::sample(frame.place(), ns);
    let record = top();
    if record.is_null() {
        return;
    }
    // SAFETY: the running thread's top record; the tick interrupts it, so it does not change. The
    // method is written once the callee's code runs.
    unsafe {
        let block = &*(*record).domain;
        if core::ptr::eq(block, domain::kernel_block()) {
            return;
        }
        // A program in ring 3 may take as long as it likes: the call that runs it is not late for
        // that.
        if frame.is_user() {
            return;
        }
        (*record).ticks += 1;
        if !runs_code_of(block, frame) {
            return;
        }
        if let Some(budget) = exceeded(record) {
            let offset = frame.ip() - block.image_start();
            let what = format_args!("over its budget of {budget} ms");
            let place = format_args!("image offset {offset:#x}");
            let crash = Crash::new(what, place);
            die_at(record, Reason::Hang, &crash, frame.place());
            frame.redirect(&(*record).landing());
        }
    }
}

/// Ends the domain that called the kernel function that runs, if its call has used up its budget.
#[inline]
pub(crate) fn leave_if_late() {
    let record = top();
    // SAFETY: the running thread's top record; a domain's code runs in its callee if ticks were
    // counted.
    unsafe {
        if !record.is_null()
            && (*record).ticks != 0
            && let Some(budget) = exceeded(record)
        {
            let what = format_args!("over its budget of {budget} ms");
            crash_here(
                Reason::Hang,
                &Crash::new(what, format_args!("a kernel function")),
            );
        }
    }
}

/// The budget of the record's call in milliseconds, if it is used up.
///
/// # Safety
/// The record's callee is a domain, and its code has begun to run.
unsafe fn exceeded(record: *const Record) -> Option<u32> {
    // SAFETY: by the caller's duty.
    let (budget, ticks) = unsafe {
        let budget = budget_of(&*(*record).domain, (*record).method);
        (budget, (*record).ticks)
    };
    (budget != UNBOUNDED && ticks.saturating_mul(TICK_MS) > budget).then_some(budget)
}

/// # Safety
/// `method` was written by the trampoline, as it is once the callee's code runs.
unsafe fn budget_of(block: &ControlBlock, method: *const Method) -> u32 {
    // SAFETY: by the caller's duty, a static.
    match crate::call::thread::is_own_thread(method) {
        true => block.thread_ms(),
        // SAFETY: as above.
        false => block.budget_of(unsafe { (*method).budget }),
    }
}
