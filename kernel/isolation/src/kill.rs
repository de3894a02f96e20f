//! How a domain dies, and how everything that it owned comes back.
//!
//! 1. *Death*: `alive` is cleared (the first reason wins). From now on calls into the domain fail.
//! 2. *Leaving*: every thread that is inside leaves, its caller gets the error. The thread in which the
//!    crash happened leaves at once. For the others the reaper stops the world, again and again until nobody
//!    is inside: a thread whose instruction pointer is in the dead image is put into the error stub of its
//!    top record; one that waits on the dead domain's behalf is woken; one that is deeper, in a domain that
//!    the dead one called, finishes that call, and its proxy finds [`CALLER_DEAD`] when it returns.
//!    A thread in kernel text is never touched: it may own something. It is met again on its way out.
//! 3. *Reclaim* (in [`crate::undertaker`]), when no record of any thread names the domain: proxies that it held, shared objects, private
//!    heap, image. The order matters: dropping proxies runs other domains' code and ends kernel objects (which
//!    stops devices), freeing memory comes last.

use crate::call::{CALLER_DEAD, Method, Record, UNBOUNDED, guarded, resume};
use crate::domain::{self, ALIVE, CRASH_NEXT, ControlBlock, Reason, State};
use crate::heap::OBJECTS;
use crate::lock::Lock;
use crate::platform::{Frame, ThreadView, platform};
use crate::thread::{current, top, with_root};
use crate::{handle, klog};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

/// Milliseconds that one scheduler tick stands for.
pub const TICK_MS: u32 = 10;
/// Nanoseconds between two looks at threads that have not left yet: at first, and when it takes long.
const LOOK_AGAIN: u64 = 1_000_000;
const LOOK_AGAIN_LATER: u64 = 8_000_000;

static DYING: Lock<Vec<Arc<ControlBlock>>> = Lock::new(Vec::new());
static WORK: AtomicU32 = AtomicU32::new(0);

/// Starts the reaper. Called once at boot.
///
/// # Panics
/// If there is no memory for its thread.
pub fn init() {
    domain::prepare_events();
    DYING.lock().reserve(64);
    crate::undertaker::init();
    platform()
        .spawn("reaper", reaper, 0)
        .expect("memory for the first thread");
}

/// Ends `block` from outside, for `reason`. Returns when it is dead; it may be the caller's own domain, in
/// which case the caller is unwound on its way out of the kernel.
pub fn kill(block: &Arc<ControlBlock>, reason: Reason) {
    if block.die(reason) {
        klog!("{}: domain {} ended: {:?}", block.name(), block.id, reason);
        begin_reclaim(block);
    }
}

/// Threads that clear away what dead domains owned; there are more when much is to be done, and never fewer.
#[cfg(feature = "faults")]
pub fn helpers() -> u32 {
    crate::undertaker::helpers()
}

/// Hands a dead domain to the reaper.
fn begin_reclaim(block: &Arc<ControlBlock>) {
    platform().stop_devices(block.id);
    block.enter_state(State::Dying);
    mark_callees(top(), Arc::as_ptr(block));
    DYING.lock().push(block.clone());
    look_again();
}

/// Makes the reaper look at once.
pub(crate) fn look_again() {
    WORK.fetch_add(1, Ordering::Release);
    platform().wake(&WORK, 1);
}

/// Ends the domain whose code runs, and leaves it. `what` and `place` go into the log as they are.
///
/// The thread runs on the domain's behalf and owns nothing of the kernel's.
pub fn crash_here(
    reason: Reason,
    what: core::fmt::Arguments<'_>,
    place: core::fmt::Arguments<'_>,
) -> ! {
    let record = top();
    die_at(record, reason, what, place);
    // SAFETY: the code that runs belongs to the callee of the top record, which is dead now.
    unsafe { resume(record) }
}

/// The death itself, for a crash in the code of `record`'s callee.
fn die_at(
    record: *mut Record,
    reason: Reason,
    what: core::fmt::Arguments<'_>,
    place: core::fmt::Arguments<'_>,
) {
    // SAFETY: the top record of the running thread; its callee is in memory as long as it names it.
    let (block, method) = unsafe { (&*(*record).domain, &*(*record).method) };
    assert!(
        !core::ptr::eq(block, domain::kernel_block()),
        "the kernel itself failed: {what} at {place}"
    );
    if block.die(reason) {
        klog!(
            "{}: domain {} crashed in {}.{}: {what} at {place}; its caller gets an error",
            block.name(),
            block.id,
            method.interface,
            method.name
        );
        if let Some(block) = domain::find(block.id) {
            begin_reclaim(&block);
        }
    }
    mark_callees(record, block);
}

/// Sets [`CALLER_DEAD`] on every record from `record` down that was called by `dead`; whether any record
/// names it as callee.
fn mark_callees(mut record: *mut Record, dead: *const ControlBlock) -> bool {
    let mut inside = false;
    // SAFETY: the chain of the running thread, or of one that is stopped. It ends with null.
    unsafe {
        while !record.is_null() {
            inside |= (*record).domain == dead;
            let previous = (*record).previous;
            if !previous.is_null() && (*previous).domain == dead {
                let state = &raw mut (*record).state;
                state.write_volatile(state.read_volatile() | CALLER_DEAD);
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

static CRASH: Method = Method::internal("crash", UNBOUNDED);

/// Carries out [`ask_to_crash`]: makes the domain's own runtime panic. One caller does it, others go on.
pub(crate) fn crash_as_asked(block: &ControlBlock) {
    if block
        .alive
        .compare_exchange(CRASH_NEXT, ALIVE, Ordering::SeqCst, Ordering::Relaxed)
        .is_err()
    {
        return;
    }
    let entry = block.crash_entry.load(Ordering::Relaxed);
    if entry != 0 {
        // SAFETY: the address was given by the runtime of this very domain for this.
        unsafe {
            let panic: unsafe extern "C" fn(*mut u8) = core::mem::transmute(entry);
            let _ = guarded(block, &CRASH, panic, core::ptr::null_mut());
        }
    }
}

/// Makes the domain panic inside its next call; whether it is alive.
pub fn ask_to_crash(block: &ControlBlock) -> bool {
    block
        .alive
        .compare_exchange(ALIVE, CRASH_NEXT, Ordering::SeqCst, Ordering::Relaxed)
        .is_ok()
}

/// A fault of the processor, with interrupts off, in the frame of the code that did it. If that is a
/// domain's, the domain dies and the frame is changed so that the thread leaves it.
///
/// A kernel function that a domain calls straight, or the proxy that it calls, may run into the guard page
/// before it comes to look how much stack is left. It owns nothing then, and the domain is to blame. Where it
/// did look, there is enough; and who holds a lock has interrupts off and is not taken for one of these.
///
/// Returns whether it was a domain's.
pub fn fault(frame: &mut dyn Frame, reason: Reason, address: usize) -> bool {
    let record = top();
    if record.is_null() {
        return false;
    }
    // SAFETY: the running thread's top record.
    let block = unsafe { &*(*record).domain };
    let in_kernel = core::ptr::eq(block, domain::kernel_block());
    let overrun = reason == Reason::StackOverflow && frame.interruptible() && !in_kernel;
    if !block.in_image(frame.ip()) && !overrun {
        return false;
    }
    let offset = frame.ip().wrapping_sub(block.image_start());
    let what = format_args!("{reason:?} (address {address:#x})");
    let place = if block.in_image(frame.ip()) {
        format_args!("image offset {offset:#x}")
    } else {
        format_args!("a call of the kernel")
    };
    die_at(record, reason, what, place);
    // SAFETY: as above; the thread is inside the callee.
    let landing = unsafe { (*record).landing() };
    frame.redirect(&landing);
    true
}

/// A scheduler tick found the running thread at `frame`. Ends a domain whose call has used up its budget, if
/// its own code runs; in a kernel function it is found out at the next one ([`leave_if_late`]).
pub fn tick(frame: &mut dyn Frame) {
    let record = top();
    if record.is_null() {
        return;
    }
    // SAFETY: the running thread's top record; the tick interrupts it, so it does not change. The method is
    // written once the callee's code runs.
    unsafe {
        let block = &*(*record).domain;
        if core::ptr::eq(block, domain::kernel_block()) {
            return;
        }
        (*record).ticks += 1;
        if !block.in_image(frame.ip()) {
            return;
        }
        if let Some(budget) = exceeded(record) {
            let offset = frame.ip() - block.image_start();
            let what = format_args!("over its budget of {budget} ms");
            let place = format_args!("image offset {offset:#x}");
            die_at(record, Reason::Hang, what, place);
            frame.redirect(&(*record).landing());
        }
    }
}

/// Ends the domain that called the kernel function that runs, if its call has used up its budget.
#[inline]
pub(crate) fn leave_if_late() {
    let record = top();
    // SAFETY: the running thread's top record; a domain's code runs in its callee if ticks were counted.
    unsafe {
        if !record.is_null()
            && (*record).ticks != 0
            && let Some(budget) = exceeded(record)
        {
            let what = format_args!("over its budget of {budget} ms");
            crash_here(Reason::Hang, what, format_args!("a kernel function"));
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
    match crate::thread::is_own_thread(method) {
        true => block.thread_ms(),
        // SAFETY: as above.
        false => block.budget_of(unsafe { (*method).budget }),
    }
}

/// The first function of the reaper's thread.
extern "C" fn reaper(_: usize) {
    with_root(|| {
        let mut pause = LOOK_AGAIN;
        let mut last = 0;
        loop {
            let seen = WORK.load(Ordering::Acquire);
            pause = if seen == last {
                LOOK_AGAIN_LATER.min(pause * 2)
            } else {
                LOOK_AGAIN
            };
            last = seen;
            crate::undertaker::see_to_it();
            let left = reap() || crate::undertaker::is_behind();
            let deadline = left.then(|| platform().now() + pause);
            platform().wait(&WORK, seen, deadline);
        }
    })
}

/// One round: lets threads leave, hands over those domains that nobody is inside of; whether some are left.
fn reap() -> bool {
    let dying: Vec<Arc<ControlBlock>> = DYING.lock().clone();
    if dying.is_empty() {
        return false;
    }
    let mut busy = Vec::with_capacity(dying.len());
    busy.resize(dying.len(), false);
    platform().stop_world(&mut |view| {
        for (block, busy) in dying.iter().zip(&mut busy) {
            *busy |= usher_out(view, block);
        }
    });
    for (block, _) in dying.iter().zip(&busy).filter(|(_, busy)| !**busy) {
        DYING.lock().retain(|other| !Arc::ptr_eq(other, block));
        crate::undertaker::clear_away(block.clone());
    }
    !DYING.lock().is_empty()
}

/// Helps a stopped thread out of the dead domain; whether it is (still) inside.
fn usher_out(view: &mut ThreadView<'_>, block: &Arc<ControlBlock>) -> bool {
    let dead = Arc::as_ptr(block);
    if view.top.is_null() || !mark_callees(view.top, dead) {
        return false;
    }
    view.interrupt |= view.blocked;
    // SAFETY: the thread is stopped, its top record does not change.
    let top = unsafe { &*view.top };
    if let Some(frame) = &mut view.frame
        && top.domain == dead
        && block.in_image(frame.ip())
    {
        frame.redirect(&top.landing());
    }
    true
}

/// Frees everything that the dead domain owned. Nobody is inside.
pub(crate) fn reclaim(block: &Arc<ControlBlock>) {
    let handles = handle::release_all_of(block.id);
    let objects = OBJECTS.free_all_of(block.id);
    let bytes = block.free_memory();
    domain::forget(block.id);
    klog!(
        "{}: domain {} cleared away: {bytes} bytes, {objects} shared objects, {handles} handles",
        block.name(),
        block.id
    );
    block.enter_state(State::Gone);
}

/// Leaves the domain whose code called the kernel function that runs, if it is dead.
pub(crate) fn leave_if_dead() {
    // SAFETY: the running thread's top record and its callee.
    unsafe {
        if !(*current()).is_alive() {
            resume(top());
        }
    }
}
