//! The death of a domain, as far as it is the affair of threads that are inside: who marks their
//! records, and how a thread leaves that runs on behalf of a dead one.
//!
//! [`crate::death::kill`] tells the whole story, and lets the others leave.

use super::handle::in_kernel;
use super::landing::start_over;
use super::stack::note;
use super::thread::{current, stack_left, stack_low, top};
use super::{CALLEE_DEAD, CALLER_DEAD, Record, resume};
use crate::domain::words::{Crash, LastWords};
use crate::domain::{self, ControlBlock, Died, Reason, queues};
use crate::platform::{Place, here, platform};
use alloc::sync::Arc;

/// Stack that kernel functions may use which a domain calls straight.
pub(crate) const KERNEL_RESERVE: usize = 10 * 1024;

/// Ends the domain whose code runs, and leaves it.
///
/// The thread runs on the domain's behalf and owns nothing of the kernel's.
pub(crate) fn crash_here(reason: Reason, crash: &Crash<'_>) -> ! {
    let record = top();
    die_at(record, reason, crash, Some(here()));
    // SAFETY: the code that runs belongs to the callee of the top record, which is dead now.
    unsafe { resume(record) }
}

/// The death itself, for a crash at `place`, in the code of `record`'s callee.
pub(crate) fn die_at(record: *mut Record, reason: Reason, crash: &Crash<'_>, place: Option<Place>) {
    // SAFETY: the top record of the running thread; its callee is in memory as long as it names it.
    let (block, method) = unsafe { (&*(*record).domain, &*(*record).method) };
    let called = (method.interface, method.name);
    if core::ptr::eq(block, domain::kernel_block()) {
        let mut words = LastWords::NONE;
        words.put_down(crash, called);
        panic!("the kernel itself {words}");
    }
    if block.die(reason) == Died::Now
        && let Some(block) = domain::find(block.id)
    {
        block.put_down(crash, called);
        if let Some(place) = place {
            // SAFETY: the top record of the running thread, whose callee's code called or was
            // interrupted there.
            unsafe { note(place, stack_low(), record) };
        }
        begin_reclaim(&block);
    }
    mark(record, &mut |domain| core::ptr::eq(domain, block));
}

/// Sets [`CALLEE_DEAD`] on every record from `record` down that names as callee a domain which
/// `is_dead`, and [`CALLER_DEAD`] on those of calls that such a domain made; how many there are of
/// the former.
pub(crate) fn mark(
    mut record: *mut Record,
    is_dead: &mut dyn FnMut(*const ControlBlock) -> bool,
) -> u32 {
    let mut inside = 0;
    // SAFETY: the chain of the running thread, or of one that is stopped. It ends with null.
    unsafe {
        while !record.is_null() {
            let previous = (*record).previous;
            let mut news = 0;
            if is_dead((*record).domain) {
                inside += 1;
                news |= CALLEE_DEAD;
            }
            if !previous.is_null() && is_dead((*previous).domain) {
                news |= CALLER_DEAD;
            }
            if news != 0 {
                let state = &raw mut (*record).state;
                state.write_volatile(state.read_volatile() | news);
            }
            record = previous;
        }
    }
    inside
}

/// Whether some domain in the call chain of the running thread is dead.
pub(crate) fn chain_has_dead() -> bool {
    let mut record = top();
    // SAFETY: the chain of the running thread; the domains that it names are not freed.
    unsafe {
        while !record.is_null() {
            if !(*(*record).domain).is_alive() {
                return true;
            }
            record = (*record).previous;
        }
    }
    false
}

/// Hands a dead domain to the reaper.
pub(crate) fn begin_reclaim(block: &Arc<ControlBlock>) {
    platform().stop_devices(block.id);
    let dead = Arc::as_ptr(block);
    mark(top(), &mut |domain| domain == dead);
    queues::dies(block.clone());
}

/// Leaves the domain whose code called the kernel function that runs, if it is dead.
#[inline(always)]
pub(crate) fn leave_if_dead() {
    // SAFETY: the running thread's top record and its callee.
    unsafe {
        if !(*current()).is_alive() {
            leave_the_dead();
        }
    }
}

/// Leaves the domain whose code called the kernel function that runs.
///
/// # Safety
/// It is dead.
#[cold]
#[inline(never)]
unsafe fn leave_the_dead() -> ! {
    // SAFETY: the running thread's top record, whose callee is dead by the caller's duty.
    unsafe {
        note(here(), stack_low(), top());
        resume(top())
    }
}

/// Ends the running domain if too little stack is left for a kernel function. In the kernel itself
/// (whose own depth is bounded) nothing is checked.
#[inline]
pub(crate) fn check_stack() {
    if stack_left() < KERNEL_RESERVE && !in_kernel() {
        out_of_stack();
    }
}

/// Ends the running domain, which called a kernel function with too little stack.
#[cold]
pub(crate) fn out_of_stack() -> ! {
    // It may be too little to die on as well, since a domain's own functions ask nobody. On the way
    // there are locks, and a fault under one of them would be the kernel's.
    if stack_left() < KERNEL_RESERVE / 2 {
        // SAFETY: the code that runs belongs to the callee of the top record, or was called by it
        // and owns nothing.
        unsafe { start_over(top(), die_of_stack) }
    }
    die_of_stack()
}

extern "C" fn die_of_stack() -> ! {
    crash_here(
        Reason::StackOverflow,
        &Crash::new(
            format_args!("stack overflow"),
            format_args!("a kernel function"),
        ),
    )
}
