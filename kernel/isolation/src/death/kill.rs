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

use crate::call::handle;
use crate::call::{CALLEE_DEAD, CALLER_DEAD, Method, Record, UNBOUNDED, guarded, resume};
use crate::domain::thread::{current, top, with_root};
use crate::domain::words::LastWords;
use crate::domain::{self, CRASH_NEXT, ControlBlock, Reason, SHORT, State};
use crate::klog;
use crate::lock::Lock;
use crate::memory::heap::OBJECTS;
use crate::platform::{Attributes, Frame, ThreadView, platform};
use crate::sync::AtomicU32;
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
    crate::death::undertaker::init();
    platform()
        .spawn("reaper", reaper, 0, &Attributes::URGENT)
        .expect("memory for the first thread");
}

/// Ends `block` from outside, for `reason`. Returns when it is dead; it may be the caller's own
/// domain, in which case the caller is unwound on its way out of the kernel.
pub fn kill(block: &Arc<ControlBlock>, reason: Reason) {
    if block.die(reason) {
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

/// Makes room among the dead for `domains` domains; whether there is. A death needs no memory.
pub(crate) fn make_room(domains: usize) -> bool {
    let mut dying = DYING.lock();
    let more = domains.saturating_sub(dying.len());
    dying.try_reserve(more).is_ok()
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
    if block.die(reason)
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

/// Has the runtime of a domain that is short of memory look whether there is some now; whether it
/// looked.
pub(crate) fn restock(block: &ControlBlock) -> bool {
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
        return false;
    }
    // SAFETY: the address was given by the runtime of this very domain for this.
    unsafe {
        let look: unsafe extern "C" fn(*mut u8) = core::mem::transmute(entry);
        guarded(block, &RESTOCK, look, core::ptr::null_mut()).is_ok()
    }
}

/// Makes the domain panic inside its next call; whether it is alive.
pub fn ask_to_crash(block: &ControlBlock) -> bool {
    let next = |alive| (alive == block.open() || alive == SHORT).then_some(CRASH_NEXT);
    block
        .alive
        .fetch_update(Ordering::SeqCst, Ordering::Relaxed, next)
        .is_ok()
}

/// Whether the thread was in the code of the image. Ring 3 can jump to any address, and is in
/// nobody's code.
fn runs_code_of(block: &ControlBlock, frame: &dyn Frame) -> bool {
    !frame.is_user() && block.in_image(frame.ip())
}

/// A fault of the processor, with interrupts off, in the frame of the code that did it. If that is
/// a domain's, the domain dies and the frame is changed so that the thread leaves it.
///
/// A kernel function that a domain calls straight, or the proxy that it calls, may run into the
/// guard page before it comes to look how much stack is left. It owns nothing then, and the domain
/// is to blame. Where it did look, there is enough; and who holds a lock has interrupts off and is
/// not taken for one of these.
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
    if frame.is_user() || !(block.in_image(frame.ip()) || overrun) {
        return false;
    }
    let offset = frame.ip().wrapping_sub(block.image_start());
    let what = format_args!("{reason:?} (address {address:#x})");
    let place = if block.in_image(frame.ip()) {
        format_args!("image offset {offset:#x}")
    } else {
        format_args!("a call of the kernel")
    };
    die_at(record, reason, LastWords::new(what, place));
    // SAFETY: as above; the thread is inside the callee.
    let landing = unsafe { (*record).landing() };
    frame.redirect(&landing);
    true
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
    crate::domain::thread::charge(ns);
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
            die_at(record, Reason::Hang, LastWords::new(what, place));
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
            let words = LastWords::new(what, format_args!("a kernel function"));
            crash_here(Reason::Hang, words);
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
    match crate::domain::thread::is_own_thread(method) {
        true => block.thread_ms(),
        // SAFETY: as above.
        false => block.budget_of(unsafe { (*method).budget }),
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

/// How long the reaper rests between two looks, and since when it finds work for which nobody is
/// idle.
#[derive(Default)]
pub(crate) struct Patience {
    /// The dead that it looks at, and whether somebody is inside; empty between two looks.
    dying: Vec<Arc<ControlBlock>>,
    busy: Vec<bool>,
    pause: u64,
    last: u32,
    behind: Option<u64>,
}

impl Patience {
    /// Whether there is work that waits for a helper. If it has waited for a while, there is one
    /// more from now on.
    fn look_after_helpers(&mut self) -> bool {
        if !crate::death::undertaker::is_behind() {
            self.behind = None;
            return false;
        }
        let now = platform().now();
        // Another processor's clock may be a little behind.
        if now.saturating_sub(*self.behind.get_or_insert(now)) >= HELP_AFTER {
            crate::death::undertaker::add_helper();
            self.behind = None;
        }
        true
    }
}

/// What the reaper does again and again: it looks, and rests until there is reason to look again.
pub(crate) fn reaper_round(patience: &mut Patience) {
    let seen = WORK.load(Ordering::Acquire);
    patience.pause = if seen == patience.last {
        (patience.pause * 2).clamp(LOOK_AGAIN, LOOK_AGAIN_LATER)
    } else {
        LOOK_AGAIN
    };
    patience.last = seen;
    let left = reap(patience);
    let helpers_wait = patience.look_after_helpers();
    let pause = left.unwrap_or(0).max(patience.pause);
    let deadline = (left.is_some() || helpers_wait).then(|| platform().now() + pause);
    platform().wait(&WORK, seen, deadline);
}

/// One round: lets threads leave, hands over those domains that nobody is inside of. If some are
/// left, for how long nobody should look again at the least.
fn reap(patience: &mut Patience) -> Option<u64> {
    let Patience { dying, busy, .. } = patience;
    gather(dying, busy);
    if dying.is_empty() {
        return None;
    }
    dying.iter().for_each(begin_to_die);
    dying.sort_unstable_by_key(|block| block.id);
    let pause = look(dying, busy);
    #[cfg(test)]
    if crate::sync::is_broken(crate::sync::Broken::NobodyLooks) {
        busy.fill(false);
    }
    for (block, _) in dying.iter().zip(&*busy).filter(|(_, busy)| !**busy) {
        DYING.lock().retain(|other| !Arc::ptr_eq(other, block));
        crate::death::undertaker::clear_away(block.clone());
    }
    dying.clear();
    busy.clear();
    (!DYING.lock().is_empty()).then_some(pause)
}

/// Shares in all dead domains, or in the first of them if there is no memory for all.
fn gather(dying: &mut Vec<Arc<ControlBlock>>, busy: &mut Vec<bool>) {
    let all = DYING.lock();
    // What fails leaves the room that there was.
    let _ = dying.try_reserve(all.len());
    let _ = busy.try_reserve(all.len());
    let room = dying.capacity().min(busy.capacity());
    dying.extend(all.iter().take(room).cloned());
    busy.resize(dying.len(), false);
}

/// Stops the world and lets threads leave the domains `dying`, which are in the order of their
/// numbers; sets `busy` for each of them that somebody is inside of. How long nobody should look
/// again, so that this takes little of all time.
fn look(dying: &[Arc<ControlBlock>], busy: &mut [bool]) -> u64 {
    // Few threads are in a dead domain, and many domains may have died at once: so each record is
    // looked at once.
    let mut is_dying = |domain: *const ControlBlock| {
        // SAFETY: whoever calls this has it from a linked record, which keeps it in memory.
        let domain = unsafe { &*domain };
        let index = match domain.is_alive() {
            true => return false,
            false => dying.binary_search_by_key(&domain.id, |block| block.id),
        };
        if let Ok(index) = index {
            busy[index] = true;
        }
        index.is_ok()
    };
    let (mut inside, mut threads) = (0, 0);
    platform().stop_world(&mut |view| {
        threads += 1;
        inside += usher_out(view, &mut is_dying);
        // Before the world goes on, since they begin to leave then.
        INSIDE.store(inside, Ordering::Relaxed);
    });
    LOOK_PAUSE * threads
}

/// Tells the log and those who wait for events of a death that the reaper sees for the first time.
fn begin_to_die(block: &Arc<ControlBlock>) {
    if !block.has_entered(State::Dying) {
        if let Some(words) = block.take_words() {
            let caller = match words.has_caller() {
                true => "; its caller gets an error",
                false => "",
            };
            klog!("{}: domain {} {words}{caller}", block.name(), block.id);
        }
        block.enter_state(State::Dying);
    }
}

/// Helps a stopped thread out of domains that are dead; how many of its records name such.
pub(crate) fn usher_out(
    view: &mut ThreadView<'_>,
    is_dead: &mut dyn FnMut(*const ControlBlock) -> bool,
) -> u32 {
    let inside = mark(view.top, is_dead);
    if inside == 0 {
        return 0;
    }
    view.interrupt |= view.blocked;
    // SAFETY: the thread is stopped, its top record does not change. That names its callee.
    let (top, block) = unsafe { (&*view.top, &*(*view.top).domain) };
    if let Some(frame) = &mut view.frame
        && is_dead(block)
        && runs_code_of(block, &**frame)
    {
        frame.redirect(&top.landing());
    }
    inside
}

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
