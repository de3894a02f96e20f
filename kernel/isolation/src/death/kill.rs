//! How a domain dies, and how everything that it owned comes back.
//!
//! 1. *Death*: `alive` is cleared (the first reason wins). From now on calls into the domain fail.
//! 2. *Leaving*: every thread that is inside leaves, its caller gets the error. The thread in which
//!    the crash happened leaves at once. For the others the reaper stops the world, again and again
//!    until nobody is inside: a thread whose instruction pointer is in the dead image is put into
//!    the error stub of its top record; one that waits on the dead domain's behalf is woken; one
//!    that is deeper, in a domain that the dead one called, finishes that call, and its proxy finds
//!    [`CALLER_DEAD`] when it returns. A thread in kernel text is never touched: it may own
//!    something. It is met again on its way out.
//! 3. *Reclaim* (in [`crate::death::undertaker`]), when no record of any thread names the domain:
//!    proxies that it held, shared objects, private heap, image. The order matters: dropping
//!    proxies runs other domains' code and ends kernel objects (which stops devices), freeing
//!    memory comes last.

mod reaper;
mod watchdog;

#[cfg(test)]
pub(crate) use reaper::usher_out;
pub(crate) use reaper::{Patience, reaper_round};
pub(crate) use watchdog::leave_if_late;
use watchdog::runs_code_of;
pub use watchdog::{Culprit, fault, tick};

use crate::call::handle;
use crate::call::{CALLEE_DEAD, CALLER_DEAD, Method, Record, UNBOUNDED, guarded, resume};
use crate::domain::thread::{current, top, with_root};
use crate::domain::words::LastWords;
use crate::domain::{self, CRASH_NEXT, ControlBlock, Died, Reason, SHORT};
use crate::klog;
use crate::lock::Lock;
use crate::memory::heap::OBJECTS;
use crate::platform::{Attributes, platform};
use crate::sync::AtomicU32;
use abi::RpcError;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// Milliseconds that one scheduler tick stands for.
pub const TICK_MS: u32 = 10;
/// Nanoseconds between two looks at threads that have not left yet: at first, and when it takes
/// long.
const LOOK_AGAIN: u64 = 1_000_000;
const LOOK_AGAIN_LATER: u64 = 8_000_000;
/// Nanoseconds between two looks for each thread that there is, at the least: some twenty times
/// what a look at it takes.
const LOOK_PAUSE: u64 = 2_000;
/// Nanoseconds for which work waits for a helper to be idle before there is one more. The model's
/// clock counts looks at it.
const HELP_AFTER: u64 = if cfg!(test) { 2 } else { 10_000_000 };

static DYING: Lock<Vec<Arc<ControlBlock>>> = Lock::new(Vec::new());
static WORK: AtomicU32 = AtomicU32::new(0);
/// Records that the last look found of calls into dead domains, less those that were left since. It
/// only says when it is worth to look again: a wrong number costs time and nothing else.
static INSIDE: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);

/// Starts the reaper. Called once at boot.
///
/// # Panics
/// If there is no memory for its thread.
pub fn init() {
    domain::prepare_events();
    // Room for the usual number from the start, so that no death leaves the queues larger.
    make_room(LOOKED_AT)
        .and_then(|()| crate::death::undertaker::make_room(LOOKED_AT))
        .expect("there is memory for the first domains at boot");
    crate::death::undertaker::init();
    platform()
        .spawn("reaper", reaper, 0, &Attributes::URGENT)
        .expect("memory for the first thread");
}

/// Ends `block` from outside, for `reason`. Returns when it is dead; it may be the caller's own
/// domain, in which case the caller is unwound on its way out of the kernel.
pub fn kill(block: &Arc<ControlBlock>, reason: Reason) {
    if block.die(reason) == Died::Now {
        // That it was ended by right is told when it is cleared away: one line for each program
        // that ends.
        if reason != Reason::Killed {
            klog!("{}: domain {} ended: {:?}", block.name(), block.id, reason);
        }
        begin_reclaim(block);
    }
}

/// Threads that clear away what dead domains owned; there are more when much is to be done, and one
/// at the least.
#[cfg(feature = "faults")]
pub fn helpers() -> u32 {
    crate::death::undertaker::helpers()
}

/// Makes room among the dead for `domains` domains, so that a death needs no memory.
///
/// # Errors
/// [`RpcError::NoMemory`].
pub(crate) fn make_room(domains: usize) -> Result<(), RpcError> {
    let mut dying = DYING.lock();
    let more = domains.saturating_sub(dying.len());
    dying.try_reserve(more).map_err(|_| RpcError::NoMemory)
}

/// For how many dead there is room.
#[cfg(test)]
pub(crate) fn room() -> usize {
    DYING.lock().capacity()
}

/// Hands a dead domain to the reaper.
fn begin_reclaim(block: &Arc<ControlBlock>) {
    platform().stop_devices(block.id);
    let dead = Arc::as_ptr(block);
    mark(top(), &mut |domain| domain == dead);
    DYING.lock().push(block.clone());
    // The caller is to have its error first. It goes on to whoever makes the next instance, and
    // waits there.
    WORK.fetch_add(1, Ordering::Release);
    platform().wake_later(&WORK);
}

/// Makes the reaper look at once.
pub(crate) fn look_again() {
    WORK.fetch_add(1, Ordering::Release);
    platform().wake(&WORK, 1);
}

/// Notes that the running thread has left a call into a dead domain. The last one to leave has the
/// reaper look again.
pub(crate) fn has_left() {
    let one_less = |inside: u32| inside.checked_sub(1);
    let before = INSIDE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    if before == Ok(1) {
        look_again();
    }
}

/// Ends the domain whose code runs, and leaves it.
///
/// The thread runs on the domain's behalf and owns nothing of the kernel's.
pub fn crash_here(reason: Reason, words: LastWords) -> ! {
    let record = top();
    die_at(record, reason, words);
    // SAFETY: the code that runs belongs to the callee of the top record, which is dead now.
    unsafe { resume(record) }
}

/// The death itself, for a crash in the code of `record`'s callee.
fn die_at(record: *mut Record, reason: Reason, mut words: LastWords) {
    // SAFETY: the top record of the running thread; its callee is in memory as long as it names it.
    let (block, method) = unsafe { (&*(*record).domain, &*(*record).method) };
    words.method = Some(method);
    assert!(
        !core::ptr::eq(block, domain::kernel_block()),
        "the kernel itself {words}"
    );
    if block.die(reason) == Died::Now
        && let Some(block) = domain::find(block.id)
    {
        block.put_down(words);
        begin_reclaim(&block);
    }
    mark(record, &mut |domain| core::ptr::eq(domain, block));
}

/// Sets [`CALLEE_DEAD`] on every record from `record` down that names as callee a domain which
/// `is_dead`, and [`CALLER_DEAD`] on those of calls that such a domain made; how many there are of
/// the former.
fn mark(mut record: *mut Record, is_dead: &mut dyn FnMut(*const ControlBlock) -> bool) -> u32 {
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

static CRASH: Method = Method::internal("crash", UNBOUNDED);

/// Carries out [`ask_to_crash`]: makes the domain's own runtime panic. One caller does it, others
/// go on.
pub(crate) fn crash_as_asked(block: &ControlBlock) {
    if block
        .alive
        .compare_exchange(
            CRASH_NEXT,
            block.open(),
            Ordering::SeqCst,
            Ordering::Relaxed,
        )
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

static RESTOCK: Method = Method::internal("restock", 0);

/// Nanoseconds between two looks for memory by a domain that is short of it, on behalf of calls
/// that are refused.
const RESTOCK_EVERY: u64 = 10_000_000;

/// Whether a domain that is short of memory has looked for some.
#[must_use = "after a look a call that was refused may come in"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restock {
    /// It has.
    Looked,
    /// It has not: it did so a moment ago, or has died meanwhile.
    NotTried,
}

/// Has the runtime of a domain that is short of memory look whether there is some now.
pub(crate) fn restock(block: &ControlBlock) -> Restock {
    let entry = block.restock_entry.load(Ordering::Relaxed);
    let last = block.counters.restocked.load(Ordering::Relaxed);
    let now = platform().now();
    if entry == 0
        || last != 0 && now.saturating_sub(last) < RESTOCK_EVERY
        || block
            .counters
            .restocked
            .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
    {
        return Restock::NotTried;
    }
    // SAFETY: the address was given by the runtime of this very domain for this.
    unsafe {
        let look: unsafe extern "C" fn(*mut u8) = core::mem::transmute(entry);
        match guarded(block, &RESTOCK, look, core::ptr::null_mut()) {
            Ok(()) => Restock::Looked,
            Err(_) => Restock::NotTried,
        }
    }
}

/// What becomes of [`ask_to_crash`].
#[must_use = "a domain that is dead, or is to crash already, does not crash once more"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashRequest {
    /// Its next call makes it panic.
    Noted,
    /// It is dead, or somebody has asked before.
    TooLate,
}

/// Makes the domain panic inside its next call.
pub fn ask_to_crash(block: &ControlBlock) -> CrashRequest {
    let next = |alive| (alive == block.open() || alive == SHORT).then_some(CRASH_NEXT);
    match block
        .alive
        .fetch_update(Ordering::SeqCst, Ordering::Relaxed, next)
    {
        Ok(_) => CrashRequest::Noted,
        Err(_) => CrashRequest::TooLate,
    }
}

/// The first function of the reaper's thread.
extern "C" fn reaper(_: usize) {
    with_root(|| {
        let mut patience = Patience::default();
        patience.dying.reserve(LOOKED_AT);
        patience.busy.reserve(LOOKED_AT);
        loop {
            reaper_round(&mut patience);
        }
    })
}

/// How many dead domains the reaper can look at together where there is no memory for more.
const LOOKED_AT: usize = 64;

/// Frees everything that the dead domain owned. Nobody is inside. [`State::Gone`] is to be entered
/// next.
pub(crate) fn reclaim(block: &Arc<ControlBlock>) {
    let handles = handle::release_all_of(block.owner());
    // SAFETY: it is dead, and nobody is inside.
    let objects = unsafe { OBJECTS.free_all_of(block.owner()) };
    let bytes = block.free_memory();
    crate::memory::budget::close(block);
    domain::forget(block.id);
    crate::load::entry::tell_lost(block, block.take_lost_lines());
    let how = match block.reason() {
        Reason::Killed => "ended, ",
        _ => "",
    };
    klog!(
        "{}: domain {} {how}cleared away: {bytes} bytes, {objects} shared objects, {handles} handles",
        block.name(),
        block.id
    );
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
