//! Birth and death of threads.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use super::group::Group;
use super::policy::{Attributes, Class, Reason, Scheduler};
use super::queue::RunQueue;
use super::thread::{State, Thread, ThreadId, ThreadRef};
use super::{sched, table, wait};
use crate::arch::MAX_CPUS;
use crate::arch::switch::{self, PREPARED_WORDS};
use crate::mem::NoMemory;
use crate::mem::kspace::{self, Region};
use crate::smp;
use crate::sync::{IrqOff, Mutex, Sleepable, SpinLock};
use crate::time::Alarm;

/// Pages of a thread's stack where nothing else is asked for.
pub const DEFAULT_STACK_PAGES: usize = 16;

/// Threads that have exited and whose stacks are still to be freed.
static DEAD: SpinLock<RunQueue> = SpinLock::new(RunQueue::new());
/// Counts exits; the reaper and `join` wait for it to change.
static EXITS: AtomicU32 = AtomicU32::new(0);
/// Held while dead threads are being freed.
static REAPING: Mutex<()> = Mutex::new(());

/// Makes a thread that calls `entry(arg)` and ends when that returns.
///
/// `stack_pages` counts 4 KiB pages; a guard page lies below them. Its top
/// record starts as 0.
pub fn spawn(
    name: &str,
    entry: extern "C" fn(usize),
    arg: usize,
    stack_pages: usize,
) -> Result<ThreadId, NoMemory> {
    let (attributes, group) = (Attributes::NORMAL, Group::system());
    spawn_as(name, entry, arg, stack_pages, attributes, group)
}

/// As [`spawn`], with attributes, in a group. Refused, too, if a deadline is asked for that cannot
/// be promised.
pub fn spawn_as(
    name: &str,
    entry: extern "C" fn(usize),
    arg: usize,
    stack_pages: usize,
    attributes: Attributes,
    group: Group,
) -> Result<ThreadId, NoMemory> {
    free_dead_first();
    let stack = kspace::map_region(stack_pages.max(1))?;
    let (low, sp) = write_first_context(&stack, entry, arg);
    let id = table::reserve()?;
    if !sched::policy().admit(table::count(), smp::online()) {
        table::release(id);
        return Err(NoMemory);
    }
    let Ok(alarm) = Alarm::new(id) else {
        table::release(id);
        return Err(NoMemory);
    };
    let Some(attributes) = promised(attributes) else {
        table::release(id);
        return Err(NoMemory);
    };
    // From here on the thread's drop takes the promise back.
    let thread = Thread::new(id, name, stack, low, sp, attributes, group, alarm);
    let Ok(thread) = Arc::try_new(thread) else {
        table::release(id);
        return Err(NoMemory);
    };
    table::insert(thread.clone());
    let irq = IrqOff::new();
    sched::ready(thread, Reason::New);
    drop(irq);
    super::preempt_point();
    Ok(id)
}

/// The attributes with the processor where the policy promises what they ask for.
fn promised(asked: Attributes) -> Option<Attributes> {
    let Class::Deadline { runtime, period } = asked.class else {
        return Some(asked);
    };
    let cpu = sched::policy().promise(runtime, period, smp::online())?;
    let affinity = 1 << (cpu % MAX_CPUS);
    Some(Attributes { affinity, ..asked })
}

/// Frees what is to be freed before more is taken, so that a program which makes and ends threads
/// needs no more memory than those that live; left to the reaper where the caller may not sleep.
fn free_dead_first() {
    if DEAD.lock().is_empty() {
        return;
    }
    if let Ok(token) = Sleepable::claim() {
        reap(token);
    }
}

/// Writes what the first switch to the thread pops; returns the stack's low end and that place.
fn write_first_context(stack: &Region, entry: extern "C" fn(usize), arg: usize) -> (usize, usize) {
    let low = stack.start();
    let top = stack.end();
    let sp = top - PREPARED_WORDS * size_of::<usize>();
    let words = switch::prepare(entry, arg);
    // SAFETY: the region is fresh, writable memory that only this function knows; the words fit
    // below its end, which is page-aligned.
    unsafe { (sp as *mut [usize; PREPARED_WORDS]).write(words) };
    (low, sp)
}

/// Ends the running thread. What its stack refers to is not dropped.
pub fn exit() -> ! {
    let irq = IrqOff::new();
    let thread = sched::current().expect("only a thread can exit");
    thread.state.set(State::Exited);
    core::mem::forget(irq);
    sched::leave_processor();
    unreachable!("an exited thread is never picked")
}

/// Where a thread lands when its entry returns.
pub(crate) extern "C" fn exit_from_entry() -> ! {
    exit()
}

/// Takes an exited thread, whose stack is no longer in use, out of the world.
pub(super) fn retire(thread: ThreadRef) {
    drop(table::release(thread.id()));
    let queued = DEAD.lock().push_back(thread);
    debug_assert!(queued.is_ok(), "an exited thread was in a queue");
    EXITS.fetch_add(1, Ordering::SeqCst);
    wait::wake(&EXITS, usize::MAX);
}

/// Sleeps until the thread has ended. Returns at once for an id that names none.
pub fn join(_token: Sleepable, id: ThreadId) {
    loop {
        let seen = EXITS.load(Ordering::SeqCst);
        if table::find(id).is_none() {
            return;
        }
        wait::wait_uninterrupted(&EXITS, seen);
    }
}

/// Frees the memory of all threads that have exited so far.
pub fn reap(token: Sleepable) {
    let _one_at_a_time = REAPING.lock(token);
    loop {
        let Some(thread) = DEAD.lock().pop_front() else {
            return;
        };
        // SAFETY: the thread was retired from the scheduler stack of its processor, and popping it
        // made this caller the only one that frees it.
        let stack = unsafe { thread.take_stack() };
        drop(stack);
    }
}

/// The thread that frees the stacks of others.
extern "C" fn reaper(_: usize) {
    loop {
        let seen = EXITS.load(Ordering::SeqCst);
        if let Ok(token) = Sleepable::claim() {
            reap(token);
        }
        wait::wait_uninterrupted(&EXITS, seen);
    }
}

/// Brings up interrupts, time and all processors, then runs `entry(arg)` as the first thread.
///
/// Called once, by the boot processor, with memory ready and interrupts off; the boot stack is
/// abandoned. `policy` becomes the scheduler.
///
/// # Panics
/// If there is no memory for the first threads.
pub fn start(policy: &'static dyn Scheduler, entry: extern "C" fn(usize), arg: usize) -> ! {
    sched::inject(policy);
    crate::irq::init();
    crate::time::init();
    wait::init();
    smp::start_processors();
    let (urgent, group) = (Attributes::URGENT, Group::system());
    let reaper = spawn_as("reaper", reaper, 0, DEFAULT_STACK_PAGES, urgent, group);
    reaper.expect("memory at boot");
    spawn("main", entry, arg, DEFAULT_STACK_PAGES).expect("memory at boot");
    smp::enter_boot_processor()
}
