//! The scheduler core: takes threads off a processor, asks the policy for the next, puts it on.
//!
//! Everything here runs with interrupts off. `release` and `dispatch` run on the processor's
//! scheduler stack (after a voluntary switch) or on its interrupt stack (after a preemption), never
//! on the stack of the thread that is being released: once its state says READY or BLOCKED,
//! another processor may be running it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

use super::policy::{Choice, Left, Moment, Placement, Reason, Scheduler};
use super::preempt::may_sleep;
use super::thread::{State, Thread, ThreadRef};
use super::{busy, life};
use crate::arch::cpu::{self, PerCpu};
use crate::arch::{interrupts, switch, trap};
use crate::sync::IrqOff;
use crate::{kprintln, smp, time, trace, user};
use abi::events;

/// Indices into [`PerCpu::sched`].
mod word {
    /// The running thread; the word owns a counted reference.
    pub const CURRENT: usize = 0;
    /// End of the scheduler stack.
    pub const STACK_TOP: usize = 1;
    /// Lowest usable address of the scheduler stack.
    pub const STACK_LOW: usize = 2;
    /// 1 while the processor looks for work or halts for lack of it.
    pub const IDLE: usize = 3;
}

/// Points to the reference to the scheduler, which lives for ever; null before [`inject`].
static POLICY: AtomicPtr<&'static dyn Scheduler> = AtomicPtr::new(ptr::null_mut());
/// The function that says whether a thread is in a service, or 0.
static SERVICE_HOOK: AtomicUsize = AtomicUsize::new(0);
static REFUSALS: AtomicU64 = AtomicU64::new(0);
/// Answers of the policy that are refused in a row before a busy processor goes idle.
const MAX_REFUSALS: usize = 16;

/// Says of a thread's top record, which is not 0, and the key of the thread's group whether the
/// code that runs is another group's or the kernel's. Called with interrupts off, for a thread that
/// is on a processor.
pub type ServiceHook = fn(usize, u64) -> bool;

/// Makes `policy` the scheduler. Called once at boot, and by tests.
pub(crate) fn inject(policy: &'static dyn Scheduler) {
    let policy = Box::leak(Box::new(policy));
    POLICY.store(policy, Ordering::Release);
}

/// Installs the hook.
///
/// # Safety
/// It is safe to call with the top record of any thread that runs.
pub unsafe fn set_service_hook(hook: ServiceHook) {
    SERVICE_HOOK.store(hook as usize, Ordering::Release);
}

/// Whether `thread`, which is on this processor, is in a service.
fn in_service(thread: &Thread) -> bool {
    let hook = SERVICE_HOOK.load(Ordering::Acquire);
    let top_record = cpu::this_cpu().words.top.load(Ordering::Relaxed);
    if hook == 0 || top_record == 0 {
        return false;
    }
    // SAFETY: only `ServiceHook`s and 0 are ever stored.
    let hook: ServiceHook = unsafe { core::mem::transmute(hook) };
    hook(top_record, thread.group_key())
}

fn moment(cpu: usize, now: u64) -> Moment {
    let online = smp::online();
    Moment { now, cpu, online }
}

/// How many answers of the policy were refused: threads that were not ready, or are running.
pub fn refusals() -> u64 {
    REFUSALS.load(Ordering::Relaxed)
}

/// The scheduler.
///
/// # Panics
/// Before [`super::start`].
#[inline]
pub(crate) fn policy() -> &'static dyn Scheduler {
    // SAFETY: null, or a reference that `inject` leaked.
    let policy = unsafe { POLICY.load(Ordering::Acquire).as_ref() };
    *policy.expect("set before the first thread is made")
}

/// The running thread, or `None` on the scheduler stack of an idle processor and during boot.
#[inline]
pub(super) fn current() -> Option<&'static Thread> {
    // In one step, so that a preemption cannot fall between finding the block and reading it.
    let thread = cpu::sched_word::<{ word::CURRENT }>() as *const Thread;
    // SAFETY: the word is 0 or the address of the thread that runs here, which is the one that
    // asks. It stays alive while it runs, because the word owns a count; the reference must not be
    // kept beyond its end, which the callers, all in this module tree, respect by not storing it.
    unsafe { thread.as_ref() }
}

/// Whether processor `index` has nothing to run. It then runs no thread, and touches no memory of
/// kernel space, before it has called `smp::catch_up`.
pub(crate) fn is_idle(index: usize) -> bool {
    cpu::block(index).sched[word::IDLE].load(Ordering::SeqCst) != 0
}

/// Gives way to other ready threads; returns when the policy picks this one again. Does nothing
/// where the caller may not sleep, or there are no others.
pub fn yield_now() {
    let is_alone = {
        let _irq = IrqOff::new();
        policy().is_alone(cpu::cpu_index(), smp::online())
    };
    if !is_alone {
        give_way();
    }
}

/// As [`yield_now`], but the policy learns of it also if there are no others.
pub(super) fn give_way() {
    if may_sleep().is_ok() {
        let _irq = IrqOff::new();
        let thread = current().expect("may_sleep found a thread");
        thread.gives_way.store(true, Ordering::Relaxed);
        leave_processor();
    }
}

/// As [`yield_now`], because somebody else wants it so; the caller may sleep.
pub(super) fn give_up() {
    let _irq = IrqOff::new();
    leave_processor();
}

/// Takes the running thread, whose state says why, off the processor. Interrupts are off.
pub(super) fn leave_processor() {
    let thread = current().expect("called by a thread");
    let stack_top = cpu::this_cpu().sched[word::STACK_TOP].load(Ordering::Relaxed);
    // SAFETY: interrupts are off, so this processor stays ours; the context belongs to the
    // processor that runs the thread, this one; the scheduler stack is in use only between a
    // `leave` or `jump` and the next `resume`, so it is free.
    unsafe {
        let save = &raw mut (*thread.context.get()).sp;
        switch::leave(save, stack_top, after_leave);
    }
}

/// Continues [`leave_processor`] on the scheduler stack.
extern "C" fn after_leave() -> ! {
    release_current();
    dispatch()
}

/// Takes the running thread, whose context is saved completely, off this processor.
pub(super) fn release_current() {
    let block = cpu::this_cpu();
    user::leave(block);
    let thread = block.sched[word::CURRENT].swap(0, Ordering::Relaxed) as *const Thread;
    // SAFETY: the word owned a count of the running thread, which passes to `thread` here.
    let thread = unsafe { Arc::from_raw(thread) };
    let (here, now) = (cpu::cpu_index(), time::now_ns());
    thread.watch.stop(now);
    busy::ends(here, now);
    tell(&thread, here, now);
    let top_record = block.words.top.load(Ordering::Relaxed);
    thread.top_record.store(top_record, Ordering::Relaxed);
    match thread.state.get() {
        State::Running => ready(thread, Reason::Ran),
        State::Exited => life::retire(thread),
        _ => {
            if !thread.state.change(State::Blocking, State::Blocked) {
                ready(thread, Reason::Woken);
            }
        }
    }
}

// What `abi::events::LEAVES` says of them.
const _: () = assert!(Left::Preempted as u64 == 1 && Left::Yielded as u64 == 2);
const _: () = assert!(Left::Waits as u64 == 3 && Left::Ended as u64 == 4);

/// Tells the policy, and who traces, what a thread that leaves processor `here` has used, and why
/// it leaves.
fn tell(thread: &Thread, here: usize, now: u64) {
    let gives_way = thread.gives_way.load(Ordering::Relaxed);
    let left = match thread.state.get() {
        State::Running if gives_way => Left::Yielded,
        State::Running => Left::Preempted,
        State::Exited => Left::Ended,
        _ => Left::Waits,
    };
    thread.gives_way.store(false, Ordering::Relaxed);
    trace::tell(events::LEAVES, left as u64);
    let used = busy::take_used(here, now);
    policy().ran(thread, used, left, in_service(thread), moment(here, now));
}

/// Makes a thread that is in no queue and whose context is saved runnable.
pub(super) fn ready(thread: ThreadRef, why: Reason) {
    let here = cpu::cpu_index();
    thread.state.set(State::Ready);
    trace::tell(events::READY, thread.id().0);
    let at = moment(here, time::now_ns());
    let Placement { cpu, preempt } = policy().enqueue(thread, why, at);
    let cpu = cpu % smp::online();
    fence(Ordering::SeqCst);
    if cpu != here {
        if preempt || is_idle(cpu) {
            smp::request_reschedule(cpu);
        }
    } else if preempt {
        cpu::this_cpu().need_resched.store(true, Ordering::Relaxed);
    }
}

/// Makes a waiting thread, taken out of its wait queue by the caller, runnable.
pub(super) fn unblock(thread: ThreadRef, why: Reason) {
    if !thread.state.change(State::Blocking, State::Woken) {
        ready(thread, why);
    }
}

/// Runs the next thread. The present stack, which must not be a thread's, is abandoned.
pub(super) fn dispatch() -> ! {
    let here = cpu::cpu_index();
    match pick(here) {
        Some((thread, until)) => run(thread, until),
        None => {
            let stack_top = cpu::this_cpu().sched[word::STACK_TOP].load(Ordering::Relaxed);
            // SAFETY: as in `leave_processor`; this function's caller needs its stack no more
            // (if that is the scheduler stack itself, it is abandoned likewise).
            unsafe { switch::jump(stack_top, idle) }
        }
    }
}

/// Asks the policy for a thread and checks that it may run.
fn pick(here: usize) -> Option<(ThreadRef, u64)> {
    for _ in 0..MAX_REFUSALS {
        let Choice { thread, until } = policy().pick(moment(here, time::now_ns()));
        if let Some(thread) = claim(thread?, here) {
            return Some((thread, until));
        }
    }
    None
}

/// Moves a thread to RUNNING, if it is READY: the one door to a processor.
fn claim(thread: ThreadRef, here: usize) -> Option<ThreadRef> {
    if thread.state.change(State::Ready, State::Running) {
        return Some(thread);
    }
    refuse(&thread, here);
    None
}

#[cold]
fn refuse(thread: &Thread, here: usize) {
    if REFUSALS.fetch_add(1, Ordering::Relaxed) == 0 {
        let (id, state) = (thread.id(), thread.state());
        kprintln!("sched: policy offered thread {id} to cpu {here}, but it is {state:?}; refused");
    }
}

/// Puts a thread, just moved to RUNNING by this processor, on it.
fn run(thread: ThreadRef, until: u64) -> ! {
    let block = cpu::this_cpu();
    block.need_resched.store(false, Ordering::Relaxed);
    let (here, now) = (cpu::cpu_index(), time::now_ns());
    thread.cpu.store(here, Ordering::Relaxed);
    thread.watch.start(now);
    busy::begins(here, now);
    load_words(block, &thread);
    let id = thread.id().0;
    let context = thread.context.get();
    let pointer = Arc::into_raw(thread) as usize;
    block.sched[word::CURRENT].store(pointer, Ordering::Relaxed);
    time::thread_runs(now, until);
    trace::tell(events::RUNS, id);
    // SAFETY: this processor moved the thread from READY to RUNNING, so the context is complete,
    // is resumed for the first time since it was saved, and nobody else touches it. The count in
    // CURRENT keeps it alive. Interrupts are off.
    unsafe {
        match (*context).sp {
            0 => trap::return_to(&(*context).frame),
            sp => switch::resume(sp),
        }
    }
}

/// Loads the words of the per-processor block that belong to the thread.
fn load_words(block: &PerCpu, thread: &Thread) {
    let top = thread.top_record.load(Ordering::Relaxed);
    block.words.top.store(top, Ordering::Relaxed);
    block
        .words
        .stack_low
        .store(thread.stack_low, Ordering::Relaxed);
}

/// Halts until there is a thread to run; runs on the scheduler stack.
extern "C" fn idle() -> ! {
    let block = cpu::this_cpu();
    let here = cpu::cpu_index();
    block.words.top.store(0, Ordering::Relaxed);
    let stack_low = block.sched[word::STACK_LOW].load(Ordering::Relaxed);
    block.words.stack_low.store(stack_low, Ordering::Relaxed);
    loop {
        block.sched[word::IDLE].store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let Choice { thread, until } = policy().pick(moment(here, time::now_ns()));
        if let Some(thread) = thread {
            // An idle processor is left alone by stops and flushes, so it looks for them before
            // it claims a thread.
            block.sched[word::IDLE].store(0, Ordering::SeqCst);
            smp::catch_up();
            if let Some(thread) = claim(thread, here) {
                run(thread, until);
            }
            continue;
        }
        time::processor_idles(until);
        // An interrupt that makes a thread ready is taken here and wakes the processor.
        interrupts::wait();
        interrupts::disable();
    }
}

/// Gives the calling processor its scheduler stack and lets it run threads for ever.
///
/// # Safety
/// The stack is 16-byte aligned at `top`, belongs to this processor from now on, and interrupts are
/// disabled. Nothing on the present stack is needed any more.
pub(crate) unsafe fn run_processor(stack_low: usize, stack_top: usize) -> ! {
    let words = &cpu::this_cpu().sched;
    words[word::CURRENT].store(0, Ordering::Relaxed);
    words[word::STACK_LOW].store(stack_low, Ordering::Relaxed);
    words[word::STACK_TOP].store(stack_top, Ordering::Relaxed);
    // SAFETY: the caller vouches for the stack and for the abandoned one.
    unsafe { switch::jump(stack_top, idle) }
}

/// The moment has come at which the policy wants to be asked on processor `here`, the caller's.
/// Until when the running thread goes on; `None`: it gives way, or nothing runs.
pub(crate) fn slice_over(here: usize, now: u64) -> Option<u64> {
    let thread = current()?;
    let (at, in_service) = (moment(here, now), in_service(thread));
    let used = busy::take_used(here, now);
    policy().ran(thread, used, Left::Still, in_service, at);
    let until = policy().slice_over(thread, in_service, at);
    if until.is_none() {
        let flag = &cpu::this_cpu().need_resched;
        flag.store(true, Ordering::Relaxed);
    }
    until
}
