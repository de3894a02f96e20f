//! Tests of waiting, waking, interruption, sleep, and of the sleeping locks.

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::Test;
use super::threads::{alongside, alongside_as, eventually, in_threads, sleep_ms, token};
use crate::check;
use crate::sync::{IrqOff, Mutex, Once, RwLock, SpinLock, WaitQueue};
use crate::task::{self, Attributes, Group, State, ThreadId, WaitResult};
use crate::{smp, time};

/// The tests of this file.
pub static TESTS: &[Test] = &[
    ("wait-hand-over-100000", hand_over),
    ("wait-mismatch-does-not-sleep", mismatch),
    ("wait-past-deadline", past_deadline),
    ("wait-timeouts-come-in-order", timeouts),
    ("wait-wakes-as-many-as-asked", wake_counts),
    ("wait-interrupt-ends-it", interrupt_blocked),
    ("wait-many-that-end-let-others-run", end_many),
    ("wait-many-timeouts-let-others-run", many_timeouts),
    ("wait-interrupt-is-sticky", interrupt_sticky),
    ("wait-interrupt-of-nobody", interrupt_nobody),
    ("wait-queue", wait_queue),
    ("lock-spin-contention", spin_contention),
    ("lock-mutex-contention", mutex_contention),
    ("lock-mutex-ignores-interrupt", mutex_interrupted),
    ("lock-try-fails-while-held", try_lock),
    ("lock-readers-see-whole-writes", rwlock),
    ("lock-once-runs-once", once),
    ("time-is-monotonic-over-processors", monotonic),
    ("time-wall-clock-is-set", wall_clock),
];

/// Two threads pass a word back and forth; one lost wake-up would end it.
fn hand_over() -> Result<(), String> {
    const ROUNDS: u32 = 50_000;
    let turn = AtomicU32::new(0);
    in_threads(2, &|me| {
        let me = me as u32;
        for _ in 0..ROUNDS {
            while turn.load(Ordering::SeqCst) % 2 != me {
                task::wait_on(&turn, 1 - me, None);
            }
            turn.store(1 - me, Ordering::SeqCst);
            task::wake(&turn, 1);
        }
    })
}

fn mismatch() -> Result<(), String> {
    let result = task::wait_on(&AtomicU32::new(1), 2, None);
    check!(result == WaitResult::Mismatch, "{result:?}");
    Ok(())
}

fn past_deadline() -> Result<(), String> {
    let result = task::wait_on(&AtomicU32::new(1), 1, Some(1));
    check!(result == WaitResult::TimedOut, "{result:?}");
    Ok(())
}

/// Sleeps that begin in another order than they end; none ends early.
fn timeouts() -> Result<(), String> {
    // In milliseconds. On a busy host a processor of ours may stand still for some ten of them.
    const AFTER: [u64; 5] = [250, 50, 200, 100, 150];
    let order = SpinLock::new(Vec::with_capacity(AFTER.len()));
    let early = AtomicUsize::new(0);
    let start = time::now_ns() + 20_000_000;
    in_threads(AFTER.len(), &|index| {
        let deadline = start + AFTER[index] * 1_000_000;
        task::sleep_until(deadline);
        early.fetch_add(usize::from(time::now_ns() < deadline), Ordering::Relaxed);
        order.lock().push(AFTER[index]);
    })?;
    let order = order.into_inner();
    check!(order.is_sorted(), "ended in the order {order:?}");
    check!(early.load(Ordering::Relaxed) == 0, "{early:?} ended early");
    Ok(())
}

/// Whether all these threads wait.
fn all_blocked(ids: &[ThreadId]) -> bool {
    let blocked = |id: &ThreadId| task::find(*id).is_some_and(|t| t.state() == State::Blocked);
    ids.iter().all(blocked)
}

fn wake_counts() -> Result<(), String> {
    let (word, other, ended) = (AtomicU32::new(0), AtomicU32::new(0), AtomicUsize::new(0));
    let wait = |_| {
        task::wait_on(&word, 0, None);
        ended.fetch_add(1, Ordering::SeqCst);
    };
    let counts = alongside(6, &wait, |ids| {
        let blocked = eventually(|| all_blocked(ids));
        let first = [task::wake(&other, 9), task::wake(&word, 2)];
        let two = eventually(|| ended.load(Ordering::SeqCst) == 2);
        sleep_ms(5);
        let still_two = ended.load(Ordering::SeqCst) == 2;
        let rest = task::wake(&word, usize::MAX);
        (blocked, first, two, still_two, rest)
    })?;
    check!(counts == (true, [0, 2], true, true, 4), "{counts:?}");
    Ok(())
}

fn interrupt_blocked() -> Result<(), String> {
    let (word, ended_well) = (AtomicU32::new(0), AtomicUsize::new(0));
    let wait = |index| {
        let interrupted = match index {
            0 => task::wait_on(&word, 0, None),
            1 => task::wait_on(&word, 0, Some(time::now_ns() + 600_000_000_000)),
            _ => task::sleep_until(time::now_ns() + 60_000_000_000),
        };
        let right = interrupted == WaitResult::Interrupted;
        ended_well.fetch_add(usize::from(right), Ordering::SeqCst);
    };
    alongside(3, &wait, |ids| {
        eventually(|| all_blocked(ids));
        ids.iter().for_each(|id| {
            task::interrupt(*id);
        });
    })?;
    check!(
        ended_well.load(Ordering::SeqCst) == 3,
        "{ended_well:?} of 3"
    );
    Ok(())
}

/// So many that they are not woken in one go.
const MANY: usize = 100;

/// Who goes before all others and ends many waits lets the first of them run before the last is
/// told, on one processor as well.
fn end_many() -> Result<(), String> {
    let (word, ran) = (AtomicU32::new(0), AtomicUsize::new(0));
    let before = AtomicUsize::new(0);
    let wait = |_| {
        task::wait_on(&word, 0, None);
        ran.fetch_add(1, Ordering::SeqCst);
    };
    let urgent = |_| (Attributes::URGENT, Group::system());
    alongside(MANY, &wait, |ids| {
        let end_all = |_| {
            eventually(|| all_blocked(ids));
            let mark = |view: smp::ThreadView<'_>| {
                let is_one = ids.contains(&view.id);
                view.interrupted.fetch_or(is_one, Ordering::SeqCst);
            };
            // SAFETY: no register is changed.
            smp::stop_world(|world| unsafe { world.threads(mark) });
            task::interrupt_marked();
            before.store(ran.load(Ordering::SeqCst), Ordering::SeqCst);
        };
        alongside_as(1, &urgent, &end_all, |_| ())
    })??;
    let (ran, before) = (ran.into_inner(), before.into_inner());
    check!(ran == MANY && before > 0, "{ran} ran, {before} in between");
    Ok(())
}

/// Of many that wait for the same moment on one processor the first runs before the last is woken.
fn many_timeouts() -> Result<(), String> {
    let (moment, left) = (AtomicU64::new(0), AtomicUsize::new(MANY));
    let (all, asleep) = (SpinLock::new(Vec::new()), AtomicBool::new(false));
    let wait = |_| {
        while moment.load(Ordering::SeqCst) == 0 {
            sleep_ms(1);
        }
        task::sleep_until(moment.load(Ordering::SeqCst));
        // While it looks, this processor's timer wakes nobody.
        let _irq = IrqOff::new();
        if left.fetch_sub(1, Ordering::SeqCst) == MANY {
            let someone = all.lock().iter().any(|id| all_blocked(&[*id]));
            asleep.store(someone, Ordering::SeqCst);
        }
    };
    let on_first = |_| {
        let pinned = Attributes {
            affinity: 1,
            ..Attributes::NORMAL
        };
        (pinned, Group::system())
    };
    let in_time = alongside_as(MANY, &on_first, &wait, |ids| {
        all.lock().extend_from_slice(ids);
        let at = time::now_ns() + 1_000_000_000;
        moment.store(at, Ordering::SeqCst);
        sleep_ms(500);
        all_blocked(ids) && time::now_ns() < at
    })?;
    let asleep = asleep.into_inner();
    check!(!in_time || asleep, "all were woken before the first ran");
    Ok(())
}

fn interrupt_sticky() -> Result<(), String> {
    let me = task::current_id().ok_or("no current thread")?;
    let wait = || task::sleep_until(time::now_ns() + 1_000_000);
    task::interrupt(me);
    let twice = [wait(), wait()];
    task::clear_interrupt(me);
    let after = wait();
    check!(twice == [WaitResult::Interrupted; 2], "{twice:?}");
    check!(after == WaitResult::TimedOut, "cleared, but {after:?}");
    Ok(())
}

fn interrupt_nobody() -> Result<(), String> {
    check!(
        !task::interrupt(ThreadId(u64::MAX)),
        "found a thread that never was"
    );
    task::clear_interrupt(ThreadId(0));
    Ok(())
}

fn wait_queue() -> Result<(), String> {
    let (queue, items, taken) = (WaitQueue::new(), AtomicUsize::new(0), AtomicUsize::new(0));
    let take = || items.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    let consume = |_| {
        for _ in 0..100 {
            if queue.wait_until(token(), None, || take().ok()).is_ok() {
                taken.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    alongside(3, &consume, |_| {
        for _ in 0..300 {
            items.fetch_add(1, Ordering::SeqCst);
            queue.wake_one();
        }
    })?;
    let empty = queue.wait_until(token(), Some(time::now_ns() + 1_000_000), || take().ok());
    check!(taken.load(Ordering::SeqCst) == 300, "{taken:?} of 300");
    check!(
        empty == Err(WaitResult::TimedOut),
        "the empty queue gave {empty:?}"
    );
    Ok(())
}

fn spin_contention() -> Result<(), String> {
    let lock = SpinLock::new(0_u64);
    in_threads(4, &|_| (0..10_000).for_each(|_| *lock.lock() += 1))?;
    let total = lock.into_inner();
    check!(total == 40_000, "counted {total}");
    Ok(())
}

fn mutex_contention() -> Result<(), String> {
    let mutex = Mutex::new(0_u64);
    in_threads(4, &|_| {
        for round in 0..500 {
            let mut value = mutex.lock(token());
            let seen = *value;
            if round % 50 == 0 {
                sleep_ms(1);
            } else if round % 5 == 0 {
                task::yield_now();
            }
            *value = seen + 1;
        }
    })?;
    let total = *mutex.lock(token());
    check!(total == 2000, "counted {total}");
    Ok(())
}

fn mutex_interrupted() -> Result<(), String> {
    let (mutex, inside) = (Mutex::new(()), AtomicBool::new(false));
    let held = mutex.lock(token());
    let early = alongside(
        1,
        &|_| {
            let _guard = mutex.lock(token());
            inside.store(true, Ordering::SeqCst);
        },
        |ids| {
            eventually(|| all_blocked(ids));
            task::interrupt(ids[0]);
            sleep_ms(5);
            let early = inside.load(Ordering::SeqCst);
            drop(held);
            early
        },
    )?;
    check!(!early, "the interrupted thread got in");
    check!(inside.load(Ordering::SeqCst), "it never got in");
    Ok(())
}

fn try_lock() -> Result<(), String> {
    let (spin, mutex) = (SpinLock::new(()), Mutex::new(()));
    let (spin_guard, mutex_guard) = (spin.lock(), mutex.try_lock());
    let both_refused = spin.try_lock().is_none() && mutex.try_lock().is_none();
    drop(spin_guard);
    drop(mutex_guard);
    check!(both_refused, "a held lock was taken");
    check!(
        spin.try_lock().is_some() && mutex.try_lock().is_some(),
        "a free lock was refused"
    );
    Ok(())
}

fn rwlock() -> Result<(), String> {
    let (pair, torn) = (RwLock::new((0_u64, 0_u64)), AtomicUsize::new(0));
    in_threads(4, &|index| {
        for _ in 0..2000 {
            if index == 0 {
                let mut pair = pair.write();
                pair.0 += 1;
                pair.1 += 1;
            } else {
                let (first, second) = *pair.read();
                torn.fetch_add(usize::from(first != second), Ordering::Relaxed);
            }
        }
    })?;
    check!(torn.load(Ordering::Relaxed) == 0, "{torn:?} torn reads");
    check!(*pair.read() == (2000, 2000), "lost writes");
    Ok(())
}

fn once() -> Result<(), String> {
    let (cell, made) = (Once::new(), AtomicUsize::new(0));
    in_threads(4, &|index| {
        cell.call_once(|| {
            made.fetch_add(1, Ordering::Relaxed);
            index
        });
    })?;
    check!(made.load(Ordering::Relaxed) == 1, "made {made:?} times");
    check!(cell.set(9) == Err(9), "set a second time");
    Ok(())
}

/// A thread never sees a time before one that another thread has published.
fn monotonic() -> Result<(), String> {
    let (latest, backwards) = (SpinLock::new(0_u64), AtomicUsize::new(0));
    in_threads(4, &|_| {
        for _ in 0..2000 {
            let mut latest = latest.lock();
            let now = time::now_ns();
            backwards.fetch_add(usize::from(now < *latest), Ordering::Relaxed);
            *latest = now;
        }
    })?;
    check!(
        backwards.load(Ordering::Relaxed) == 0,
        "{backwards:?} times backwards"
    );
    Ok(())
}

fn wall_clock() -> Result<(), String> {
    let seconds = time::wall_seconds();
    check!(seconds > 1_700_000_000, "{seconds} s since 1970");
    Ok(())
}
