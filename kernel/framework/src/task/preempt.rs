//! When a thread may be taken off its processor against its will, and when it may sleep.

use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use super::sched;
use crate::arch::trap::TrapFrame;
use crate::arch::{cpu, interrupts};

/// Why the caller may not sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicContext {
    /// Interrupts are disabled: an interrupt handler, or the holder of a spin lock.
    InterruptsOff,
    /// A [`PreemptOff`] guard is alive.
    PreemptOff,
    /// No thread runs here.
    NoThread,
}

/// Whether the caller may sleep.
pub fn may_sleep() -> Result<(), AtomicContext> {
    if !interrupts::enabled() {
        return Err(AtomicContext::InterruptsOff);
    }
    let thread = sched::current().ok_or(AtomicContext::NoThread)?;
    if thread.preempt_off.load(Ordering::Relaxed) != 0 {
        return Err(AtomicContext::PreemptOff);
    }
    Ok(())
}

/// Keeps the running thread on its processor while it lives; interrupts still come.
pub struct PreemptOff {
    not_send: PhantomData<*const ()>,
}

impl PreemptOff {
    /// Disables preemption; guards may nest.
    pub fn new() -> Self {
        add(1);
        Self {
            not_send: PhantomData,
        }
    }
}

impl Default for PreemptOff {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for PreemptOff {
    fn drop(&mut self) {
        add(u32::MAX);
        preempt_point();
    }
}

/// Adds to the running thread's depth; only the thread itself writes it.
fn add(change: u32) {
    if let Some(thread) = sched::current() {
        let depth = thread.preempt_off.load(Ordering::Relaxed);
        let depth = depth.wrapping_add(change);
        thread.preempt_off.store(depth, Ordering::Relaxed);
    }
}

/// Gives way if an interrupt or a wake-up asked for it and the caller may be preempted.
#[inline]
pub fn preempt_point() {
    if cpu::this_cpu().need_resched.load(Ordering::Relaxed) {
        give_way();
    }
}

#[cold]
fn give_way() {
    if may_sleep().is_ok() {
        sched::give_up();
    }
}

/// The end of an interrupt handler: switches to another thread if that was asked for, in which case
/// it does not return. Frames from ring 3 are left alone; `user` gives way in ring 0.
pub(crate) fn preempt_from(frame: &TrapFrame) {
    if !cpu::this_cpu().need_resched.load(Ordering::Relaxed) || frame.is_user() {
        return;
    }
    let Some(thread) = sched::current() else {
        return;
    };
    if !frame.interrupts_were_on() || thread.preempt_off.load(Ordering::Relaxed) != 0 {
        return;
    }
    // SAFETY: the context belongs to the processor that runs the thread, this one, and interrupts
    // are off.
    let context = unsafe { &mut *thread.context.get() };
    context.sp = 0;
    context.frame = *frame;
    sched::release_current();
    sched::dispatch()
}
