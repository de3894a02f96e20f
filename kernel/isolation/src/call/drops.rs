//! Where the drop of an object runs whose last handle goes in another domain.
//!
//! A drop is the exporter's code, and whoever drops a handle did not ask for it. Most drops never
//! wait, and run on the thread of who drops, as a call would. But one may wait for ever, so:
//!
//! - a domain one of whose drops has ever waited for something, and not for a moment only
//!   ([`note_wait`]), *may wait*. From then on others do not run its drops: they leave them to a
//!   helper of the [`undertaker`](crate::death::undertaker), one at a time and in their order, and
//!   wait for it for [`PATIENCE`]. While a drop is late nobody waits at all. So who drops goes on,
//!   and of all helpers a domain has one at most in its drops;
//! - the first such drop has somebody else's thread. It is waited for as long as a call into the
//!   domain may run, and then the domain is ended as one that hangs. Of a drop within a drop only
//!   the inner one's time runs: who hangs is ended, and not who dropped something of his.
//!
//! A helper that is in a drop does not count as one: there can be another in its place. Its stack
//! is charged to the domain whose drop it is.
//!
//! What waits for a helper waits in its own [`Export`], which is charged to the exporter until the
//! drop is over. So a row of such drops needs no memory, is as long as the exporter's budget lets
//! it, and ends with the exporter; whoever drops neither fails nor waits for room in it.

use super::thread::{current, top};
use super::{DROP, Method, guarded_as, internal};
use crate::domain::exports::{Export, Orphan};
use crate::domain::{BlockRef, ControlBlock, DEFAULT_BUDGET_MS, kernel_block, queues};
use crate::platform::{WaitResult, platform};
use abi::handle::RawHandle;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// Who drops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropper {
    /// A thread that has other things to do.
    Anybody,
    /// A helper of the undertaker, on behalf of the dead.
    Undertaker,
}

/// Nanoseconds for which somebody waits for a drop that a helper carries out.
const PATIENCE: u64 = if cfg!(test) { 2 } else { 10_000_000 };

/// Nanoseconds that a drop may take at the cost of the one that it is part of, and in which it may
/// wait without being one that waits.
const SLIGHT: u64 = 1_000_000;

/// Drops the object inside its own domain. If that is dead, reclaim takes it.
pub(crate) fn carry_out(orphan: Orphan, dropper: Dropper) {
    let BlockRef::Domain(block) = &orphan.domain else {
        return orphan.release();
    };
    let block = block.clone();
    let is_own = core::ptr::eq(current(), Arc::as_ptr(&block));
    if is_own || !block.is_alive() || !block.drops.may_wait.load(Ordering::Relaxed) {
        return match dropper {
            Dropper::Anybody => orphan.release(),
            Dropper::Undertaker => queues::away(&block, || orphan.release()),
        };
    }
    let number = leave_to_helper(&block, orphan);
    if dropper == Dropper::Anybody {
        await_helper(&block, number);
    }
}

/// Leaves the drop to a helper; which it is.
fn leave_to_helper(block: &Arc<ControlBlock>, orphan: Orphan) -> u32 {
    let (number, calls) = {
        let mut queue = block.drops.queue.lock();
        queue.waiting.push(orphan);
        queue.left = queue.left.wrapping_add(1);
        let calls = !core::mem::replace(&mut queue.has_helper, true);
        (queue.left, calls)
    };
    if calls {
        queues::drop_for(block.clone());
    }
    number
}

/// Waits a while until drop `number` of the domain is carried out.
fn await_helper(block: &ControlBlock, number: u32) {
    let drops = &block.drops;
    let deadline = platform().now() + PATIENCE;
    loop {
        let done = drops.done.load(Ordering::Acquire);
        if number.wrapping_sub(done) as i32 <= 0 || drops.late.load(Ordering::Relaxed) {
            return;
        }
        match platform().wait(&drops.done, done, Some(deadline)) {
            WaitResult::TimedOut => return drops.late.store(true, Ordering::Relaxed),
            WaitResult::Interrupted => return,
            WaitResult::Woken | WaitResult::Mismatch => {}
        }
    }
}

/// Carries out the drops that were left to helpers. Called by one helper at a time.
pub(crate) fn help(block: &ControlBlock) {
    let drops = &block.drops;
    loop {
        let orphan = {
            let mut queue = drops.queue.lock();
            let next = queue.waiting.pop();
            queue.has_helper = next.is_some();
            next
        };
        let Some(orphan) = orphan else { return };
        orphan.release_for_ever();
        drops.late.store(false, Ordering::Relaxed);
        drops.done.fetch_add(1, Ordering::Release);
        platform().wake(&drops.done, u32::MAX);
    }
}

/// How the object goes, once no handle leads to it.
impl Export {
    /// On a thread that has other things to do.
    fn release(&self) {
        // SAFETY: it held the reference, and holds a share in its domain's block.
        unsafe { release_of(self.domain.as_ptr(), &self.object) };
    }

    /// On a thread that has not.
    fn release_for_ever(&self) {
        // SAFETY: as above.
        unsafe { release_until(None, self.domain.as_ptr(), &self.object) };
    }
}

static RELEASE: Method = internal("drop", 0);

/// What a drop's record leads to.
struct Dropping {
    inner: RawHandle,
    /// When it began, in nanoseconds since boot.
    begun: u64,
    /// When it has waited for too long, in nanoseconds since boot; `None`: it may for ever.
    end: Option<u64>,
}

/// Gives up the reference `inner` of the domain at `block` to an object of its own, inside that
/// domain.
///
/// # Safety
/// The block is in memory, and the reference is not used again.
pub(crate) unsafe fn release_of(block: *const ControlBlock, inner: &RawHandle) {
    // SAFETY: by the caller's duty.
    unsafe {
        let begun = platform().now();
        let end = begun.saturating_add(budget_ns(&*block));
        release_until(Some(end), block, inner);
        lengthen_outer(platform().now().saturating_sub(begun));
    }
}

/// As [`release_of`]; it may wait until `end`.
///
/// # Safety
/// As for [`release_of`].
unsafe fn release_until(end: Option<u64>, block: *const ControlBlock, inner: &RawHandle) {
    // SAFETY: the object is live as long as its domain is, which `guarded` tests.
    unsafe {
        if core::ptr::eq(block, kernel_block()) {
            ((*inner.head().as_ptr()).ops.release)(inner.data);
        } else {
            let inner = *inner;
            let begun = platform().now();
            let mut dropping = Dropping { inner, begun, end };
            // A crash in a drop is the domain's affair, and already logged.
            let data = (&raw mut dropping).cast();
            let _ = guarded_as(DROP, &*block, &RELEASE, release_in_domain, data);
        }
    }
}

/// Runs in the context of the object's domain.
///
/// # Safety
/// `data` is the `Dropping` of [`release_of`], whose record is the top one.
unsafe extern "C" fn release_in_domain(data: *mut u8) {
    // SAFETY: see `Orphan::release`; the domain was alive after the record was published, so its
    // memory stays until the record is gone.
    unsafe {
        let inner = (*data.cast::<Dropping>()).inner;
        ((*inner.head().as_ptr()).ops.release)(inner.data);
    }
}

/// The running thread is about to wait, or to give way. Where it has been in a drop for long, the
/// domain is one whose drops may wait. Until when it may wait before this is to be asked again, or
/// before the innermost drop has waited for too long, in nanoseconds since boot.
pub(crate) fn note_wait() -> Option<u64> {
    let (mut innermost, mut again) = (None, None::<u64>);
    each_drop(|block, dropping| {
        let slow = dropping.begun.saturating_add(SLIGHT);
        if platform().now() >= slow {
            block.drops.may_wait.store(true, Ordering::Relaxed);
        } else {
            again = again.into_iter().chain([slow]).min();
        }
        // The dead are the reaper's affair.
        innermost.get_or_insert(dropping.end.filter(|_| block.is_alive()));
    });
    innermost.flatten().into_iter().chain(again).min()
}

/// The domain in whose drop, the innermost, the running thread has waited for too long, if it has.
pub(crate) fn late() -> Option<Arc<ControlBlock>> {
    let mut innermost = None;
    each_drop(|block, dropping| _ = innermost.get_or_insert((block.id, dropping.end)));
    let (id, end) = innermost?;
    let is_late = end.is_some_and(|end| platform().now() >= end);
    is_late.then(|| crate::domain::find(id)).flatten()
}

/// A drop that took `ns` nanoseconds is over: the one that it was part of, if any, has so much more
/// time.
fn lengthen_outer(ns: u64) {
    // Most drops are over at once, and need no look at the records.
    if ns < SLIGHT {
        return;
    }
    let mut is_first = true;
    each_drop(|_, dropping| {
        if core::mem::replace(&mut is_first, false)
            && let Some(end) = &mut dropping.end
        {
            *end = end.saturating_add(ns);
        }
    });
}

/// Nanoseconds that a drop may take on somebody else's thread.
fn budget_ns(block: &ControlBlock) -> u64 {
    // Twice the default where the domain has no budget of its own: it may wait for others who are
    // slow.
    let ms = match block.call_ms() {
        DEFAULT_BUDGET_MS => 2 * DEFAULT_BUDGET_MS,
        own => own,
    };
    u64::from(ms) * 1_000_000
}

/// Shows `look` the drops that the running thread is in, the innermost first.
fn each_drop(mut look: impl FnMut(&ControlBlock, &mut Dropping)) {
    let mut record = top();
    // SAFETY: the chain of the running thread; the domains that it names are not freed. A record
    // with the mark is that of a call in `release_until`, whose frame stands as long as it is
    // linked and which does not use the data meanwhile.
    unsafe {
        while !record.is_null() {
            if (&raw const (*record).state).read_volatile() & DROP != 0 {
                let dropping = crate::call::data_of(record).cast::<Dropping>();
                look(&*(*record).domain, &mut *dropping);
            }
            record = (*record).previous;
        }
    }
}

/// Runs `body` as a drop in `block` that waits for too long when `ns` nanoseconds have passed.
#[cfg(test)]
pub(crate) fn in_drop(block: &ControlBlock, ns: u64, mut body: &mut dyn FnMut()) {
    unsafe extern "C" fn run(data: *mut u8) {
        // SAFETY: `in_drop` passes these.
        unsafe {
            (*(*data.cast::<Dropping>())
                .inner
                .data
                .cast::<&mut dyn FnMut()>())()
        };
    }
    let begun = platform().now();
    let inner = RawHandle {
        data: (&raw mut body).cast(),
        vtable: core::ptr::null(),
    };
    let end = Some(begun + ns);
    let mut dropping = Dropping { inner, begun, end };
    // SAFETY: function and data belong together.
    let _ = unsafe { guarded_as(DROP, block, &RELEASE, run, (&raw mut dropping).cast()) };
    lengthen_outer(platform().now() - begun);
}
