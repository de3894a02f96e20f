//! Waiting on a word of memory, waking, interruption and sleep.
//!
//! Waiters stand in hashed buckets. A waiter checks the word with its bucket locked, and a waker
//! changes the word before it locks the bucket, so a wake-up cannot fall between check and sleep. A
//! count of waiters per bucket spares wakers the lock where nobody waits.
//!
//! Which bucket a word has depends on numbers that only the kernel knows. Otherwise a domain could
//! choose words of one bucket, and every wake there would go past all their waiters, with
//! interrupts off.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use super::policy::Reason;
use super::preempt::{may_sleep, preempt_point};
use super::queue::RunQueue;
use super::thread::{State, Thread, ThreadId, ThreadRef};
use super::{sched, table};
use crate::arch::entropy;
use crate::sync::{IrqOff, SpinLock};
use crate::time;

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum WaitResult {
    /// Another thread or an interrupt woke it.
    Woken,
    /// The word did not have the expected value; there was no wait.
    Mismatch,
    /// The deadline passed.
    TimedOut,
    /// [`interrupt`] was called for the thread, before or during the wait.
    Interrupted,
}

struct Bucket {
    /// Threads in `queue`, or about to be.
    waiters: AtomicUsize,
    queue: SpinLock<RunQueue>,
}

const BUCKETS: usize = 2048;
/// The most threads that are woken, or looked for, with interrupts off.
const AT_ONCE: usize = 32;

static TABLE: [Bucket; BUCKETS] = [const {
    Bucket {
        waiters: AtomicUsize::new(0),
        queue: SpinLock::new(RunQueue::new()),
    }
}; BUCKETS];

/// What words are spread by. Set before the first thread is made.
static SECRET: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Chooses the numbers by which words are spread. Called once, before anybody waits.
pub(super) fn init() {
    let mut words = [time::now_ns(), time::tsc()];
    // Without a source of random numbers it is the moment of the start.
    entropy::words(&mut words);
    for (secret, word) in SECRET.iter().zip(words) {
        secret.store(word as usize, Ordering::Relaxed);
    }
}

fn bucket_of(key: usize) -> usize {
    let [first, second] = &SECRET;
    spread(
        key,
        [
            first.load(Ordering::Relaxed),
            second.load(Ordering::Relaxed),
        ],
    )
}

/// The bucket of the word at `key`: a multiplicative hash, after one that is secret.
fn spread(key: usize, secret: [usize; 2]) -> usize {
    let mixed = ((key >> 2) ^ secret[0]).wrapping_mul(secret[1] | 1);
    let mixed = mixed ^ mixed >> (usize::BITS / 2);
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - BUCKETS.ilog2())
}

/// Sleeps while `word` is `expected`, until woken, interrupted, or the deadline (nanoseconds since
/// boot) passes. Wake-ups may be spurious: look at the condition again.
///
/// # Panics
/// If the caller may not sleep (interrupts off, preemption off, no thread).
pub fn wait_on(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> WaitResult {
    wait(word, expected, deadline_ns, true)
}

/// Like [`wait_on`], without a deadline and deaf to [`interrupt`].
pub fn wait_uninterrupted(word: &AtomicU32, expected: u32) {
    wait(word, expected, None, false);
}

/// Sleeps until `deadline_ns` nanoseconds since boot, unless interrupted.
pub fn sleep_until(deadline_ns: u64) -> WaitResult {
    let nobody_wakes = AtomicU32::new(0);
    wait(&nobody_wakes, 0, Some(deadline_ns), true)
}

fn wait(word: &AtomicU32, expected: u32, deadline: Option<u64>, interruptible: bool) -> WaitResult {
    if let Err(why) = may_sleep() {
        panic!("sleeping in atomic context: {why:?}");
    }
    let _irq = IrqOff::new();
    let thread = sched::current().expect("may_sleep found a thread");
    thread
        .wait_interruptible
        .store(interruptible, Ordering::Relaxed);
    if let Err(ended) = enqueue(thread, word, expected, deadline) {
        return ended;
    }
    sched::leave_processor();
    if deadline.is_some() {
        time::cancel(thread);
    }
    result_of(thread)
}

/// Puts the running thread into the bucket of `word`, or says why it need not wait.
fn enqueue(
    thread: &Thread,
    word: &AtomicU32,
    expected: u32,
    deadline: Option<u64>,
) -> Result<(), WaitResult> {
    let key = core::ptr::from_ref(word) as usize;
    let index = bucket_of(key);
    let bucket = &TABLE[index];
    let mut queue = bucket.queue.lock();
    bucket.waiters.fetch_add(1, Ordering::SeqCst);
    thread.wait_bucket.store(index + 1, Ordering::SeqCst);
    if let Some(ended) = ends_at_once(thread, word, expected, deadline) {
        thread.wait_bucket.store(0, Ordering::SeqCst);
        bucket.waiters.fetch_sub(1, Ordering::SeqCst);
        return Err(ended);
    }
    thread.wait_key.store(key, Ordering::Relaxed);
    thread
        .deadline
        .store(deadline.unwrap_or(u64::MAX), Ordering::Relaxed);
    thread.state.set(State::Blocking);
    if queue.push_back(thread.to_ref()).is_err() {
        // A policy that lies keeps a running thread in a queue of its own. A spurious end of the
        // wait is allowed, and the caller tries again; the policy's next offer of the thread is
        // refused.
        thread.state.set(State::Running);
        thread.wait_bucket.store(0, Ordering::SeqCst);
        bucket.waiters.fetch_sub(1, Ordering::SeqCst);
        return Err(WaitResult::Woken);
    }
    if deadline.is_some() {
        time::schedule(thread);
    }
    Ok(())
}

/// Whether a wait is over before it begins. Called with the bucket locked.
fn ends_at_once(
    thread: &Thread,
    word: &AtomicU32,
    expected: u32,
    deadline: Option<u64>,
) -> Option<WaitResult> {
    let interruptible = thread.wait_interruptible.load(Ordering::Relaxed);
    if interruptible && thread.interrupted.load(Ordering::SeqCst) {
        return Some(WaitResult::Interrupted);
    }
    if word.load(Ordering::SeqCst) != expected {
        return Some(WaitResult::Mismatch);
    }
    let over = deadline.is_some_and(|deadline| deadline <= time::now_ns());
    over.then_some(WaitResult::TimedOut)
}

fn result_of(thread: &Thread) -> WaitResult {
    match thread.wait_result.load(Ordering::Relaxed) {
        1 => WaitResult::Mismatch,
        2 => WaitResult::TimedOut,
        3 => WaitResult::Interrupted,
        _ => WaitResult::Woken,
    }
}

/// Wakes up to `n` threads that wait on the word at this address, in the order in which they came;
/// returns how many. The address is never dereferenced. Usable in interrupt context.
pub fn wake(word: *const AtomicU32, n: usize) -> usize {
    let woken = wake_for(word, n, Reason::Woken);
    preempt_point();
    woken
}

/// As [`wake`] for one thread, whose work can wait: the running thread goes on until it waits or
/// its time slice ends.
pub fn wake_later(word: *const AtomicU32) {
    wake_for(word, 1, Reason::WokenLater);
}

fn wake_for(word: *const AtomicU32, n: usize, why: Reason) -> usize {
    let key = word as usize;
    let bucket = &TABLE[bucket_of(key)];
    fence(Ordering::SeqCst);
    // No more than are there now: who waits anew meanwhile is not woken again and again.
    let n = n.min(bucket.waiters.load(Ordering::SeqCst));
    let mut woken = 0;
    while woken < n {
        let wanted = AT_ONCE.min(n - woken);
        let more = wake_some(bucket, key, wanted, why);
        woken += more;
        if more < wanted {
            break;
        }
    }
    woken
}

/// Wakes up to `n` threads of the bucket that wait on the word at `key`, with the bucket locked.
fn wake_some(bucket: &Bucket, key: usize, n: usize, why: Reason) -> usize {
    let mut queue = bucket.queue.lock();
    for woken in 0..n {
        let same_word = |thread: &Thread| thread.wait_key.load(Ordering::Relaxed) == key;
        let Some(thread) = queue.pop_first(same_word) else {
            return woken;
        };
        finish(bucket, &thread, WaitResult::Woken);
        sched::unblock(thread, why);
    }
    n
}

/// Records the end of a wait whose thread was taken out of the bucket.
fn finish(bucket: &Bucket, thread: &Thread, result: WaitResult) {
    bucket.waiters.fetch_sub(1, Ordering::SeqCst);
    thread.wait_bucket.store(0, Ordering::SeqCst);
    thread.wait_result.store(result as u8, Ordering::Relaxed);
}

/// Ends the present wait of `thread` with `result`, if it waits and `applies` says so with its
/// bucket locked.
fn end_wait(thread: &Thread, result: WaitResult, applies: impl Fn() -> bool) {
    loop {
        let index = thread.wait_bucket.load(Ordering::SeqCst);
        let Some(bucket) = index.checked_sub(1).and_then(|index| TABLE.get(index)) else {
            return;
        };
        let mut queue = bucket.queue.lock();
        if thread.wait_bucket.load(Ordering::SeqCst) != index {
            continue;
        }
        if !applies() {
            return;
        }
        if let Some(thread) = queue.remove(thread) {
            finish(bucket, &thread, result);
            sched::unblock(thread, Reason::Woken);
        }
        return;
    }
}

/// Makes the thread's present wait, or else its next ones, end with `Interrupted`, until
/// [`clear_interrupt`]. Usable in interrupt context. Returns whether the thread exists.
pub fn interrupt(id: ThreadId) -> bool {
    let Some(thread) = table::find(id) else {
        return false;
    };
    thread.interrupted.store(true, Ordering::SeqCst);
    end_interrupted(&thread);
    preempt_point();
    true
}

/// [`interrupt`] for all threads that a visitor of the stopped world has marked so. The world goes
/// on meanwhile; there may be thousands. Who calls this may go before all others: so it rests after
/// each few, for as long as they took.
pub fn interrupt_marked() {
    let is_marked = |thread: &ThreadRef| thread.interrupted.load(Ordering::SeqCst);
    let mut from = 0;
    loop {
        let begin = time::now_ns();
        let mut found = [const { None }; AT_ONCE];
        let next = table::find_some(from, is_marked, &mut found);
        for thread in found.iter().flatten() {
            end_interrupted(thread);
        }
        let Some(next) = next else {
            return preempt_point();
        };
        from = next;
        if found.iter().all(Option::is_some) && may_sleep().is_ok() {
            let now = time::now_ns();
            sleep_until(now + now.saturating_sub(begin));
        }
    }
}

fn end_interrupted(thread: &Thread) {
    end_wait(thread, WaitResult::Interrupted, || {
        thread.wait_interruptible.load(Ordering::Relaxed)
    });
}

/// Takes back [`interrupt`] for waits to come.
pub fn clear_interrupt(id: ThreadId) {
    if let Some(thread) = table::find(id) {
        thread.interrupted.store(false, Ordering::SeqCst);
    }
}

/// Ends the wait of a thread whose deadline has passed. Called by the timer interrupt.
pub(crate) fn time_out(id: ThreadId, now: u64) {
    if let Some(thread) = table::find(id) {
        end_wait(&thread, WaitResult::TimedOut, || {
            thread.deadline.load(Ordering::Relaxed) <= now
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most of these words that one bucket has.
    fn fullest(words: &[usize], secret: [usize; 2]) -> usize {
        let mut counts = [0; BUCKETS];
        words
            .iter()
            .for_each(|word| counts[spread(*word, secret)] += 1);
        counts.into_iter().max().unwrap_or(0)
    }

    #[test]
    fn who_does_not_know_the_secret_cannot_choose_a_bucket() {
        const BASE: usize = 0xffff_c000_0012_3000;
        let one = [0x0123_4567_89ab_cdef, 0xfeed_f00d_dead_beef];
        let all = (0..4 << 20).map(|index| BASE + 4 * index);
        let chosen: Vec<usize> = all.filter(|word| spread(*word, one) == 7).collect();
        assert!(chosen.len() > 1000, "{} words of one bucket", chosen.len());
        for other in [[0, 0], [1, 2], [one[0], 3], [!one[0], !one[1]]] {
            let most = fullest(&chosen, other);
            assert!(most < 40, "{most} of {} with {other:x?}", chosen.len());
        }
    }

    #[test]
    fn words_side_by_side_and_pages_apart_are_spread() {
        for secret in [[0, 0], [0x0123_4567_89ab_cdef, 0xfeed_f00d_dead_beef]] {
            for step in [4, 64, 4096, 53_248] {
                let words: Vec<usize> = (0..10_000).map(|index| 1 << 46 | index * step).collect();
                let most = fullest(&words, secret);
                assert!(most < 40, "{most} of 10,000, {step} apart, {secret:x?}");
            }
        }
    }
}
