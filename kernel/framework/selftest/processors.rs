//! Tests of what processors do to each other.

use alloc::string::String;
use alloc::vec::Vec;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::Test;
use super::threads::{alongside, eventually, in_threads, sleep_ms, this_cpu_words};
use crate::arch::cpu::cpu_index;
use crate::arch::interrupts;
use crate::arch::trap::TrapFrame;
use crate::check;
use crate::mem::kspace;
use crate::sync::{SpinLock, relax};
use crate::task::{self, State, ThreadId};
use crate::{smp, time};

/// The tests of this file.
pub static TESTS: &[Test] = &[
    ("smp-call-reaches-all", call_all),
    ("smp-calls-from-all-at-once", calls_at_once),
    ("smp-flush-under-locks", flushes),
    ("stop-nothing-moves", stop_still),
    ("stop-shows-every-thread", stop_views),
    ("stop-frame-can-be-rewritten", stop_rewrites),
    ("stop-two-at-once", stop_race),
    ("stop-from-the-tick", stop_from_tick),
];

fn call_all() -> Result<(), String> {
    let (calls, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for _ in 0..100 {
        smp::call_all(&|index| {
            calls.fetch_add(1, Ordering::Relaxed);
            let elsewhere = index != cpu_index() || interrupts::enabled();
            wrong.fetch_add(usize::from(elsewhere), Ordering::Relaxed);
        });
    }
    check!(
        calls.load(Ordering::Relaxed) == 100 * smp::online(),
        "{calls:?} calls"
    );
    check!(
        wrong.load(Ordering::Relaxed) == 0,
        "{wrong:?} on the wrong processor"
    );
    Ok(())
}

fn calls_at_once() -> Result<(), String> {
    let calls = AtomicUsize::new(0);
    in_threads(4, &|_| {
        for _ in 0..20 {
            smp::call_all(&|_| {
                calls.fetch_add(1, Ordering::Relaxed);
            });
        }
    })?;
    let wanted = 80 * smp::online();
    check!(
        calls.load(Ordering::Relaxed) == wanted,
        "{calls:?} of {wanted}"
    );
    Ok(())
}

/// All processors unmap memory while they hold and wait for the same lock, calls under way.
fn flushes() -> Result<(), String> {
    let (lock, failed) = (SpinLock::new(()), AtomicUsize::new(0));
    in_threads(4, &|index| {
        for round in 0..20 {
            let region = kspace::map_region(2);
            failed.fetch_add(usize::from(region.is_err()), Ordering::Relaxed);
            if round % 2 == 0 {
                let _guard = lock.lock();
                drop(region);
            } else if index == 0 {
                smp::call_all(&|_| ());
            }
        }
    })?;
    check!(
        failed.load(Ordering::Relaxed) == 0,
        "{failed:?} without memory"
    );
    Ok(())
}

/// Threads that count, yield and sleep stand still while the world is stopped.
fn stop_still() -> Result<(), String> {
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let busy = |index| {
        while !stop.load(Ordering::Relaxed) {
            count.fetch_add(1, Ordering::Relaxed);
            match index {
                0 => task::yield_now(),
                1 => sleep_ms(1),
                _ => {}
            }
        }
    };
    let moved = alongside(smp::online() + 3, &busy, |_| {
        let mut moved = 0;
        for _ in 0..30 {
            moved += smp::stop_world(|_| {
                let before = count.load(Ordering::SeqCst);
                (0..2000).for_each(|_| relax());
                count.load(Ordering::SeqCst) - before
            });
            task::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        moved
    })?;
    check!(moved == 0, "{moved} steps while the world stood still");
    Ok(())
}

/// What `World::threads` says of one thread.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    id: ThreadId,
    top: usize,
    has_frame: bool,
    blocked: bool,
    is_caller: bool,
}

fn look() -> Vec<Seen> {
    let mut all = Vec::with_capacity(100);
    let mut note = |thread: smp::ThreadView<'_>| {
        all.push(Seen {
            id: thread.id,
            top: thread.top_record as usize,
            has_frame: thread.frame.is_some_and(|frame| !frame.is_user()),
            blocked: thread.blocked,
            is_caller: thread.is_caller,
        });
    };
    // SAFETY: changes no registers.
    smp::stop_world(|world| unsafe { world.threads(&mut note) });
    all
}

/// A spinning thread has a frame, a waiting one has none, the caller is marked, no other is.
fn stop_views() -> Result<(), String> {
    let (stop, word) = (
        AtomicBool::new(false),
        core::sync::atomic::AtomicU32::new(0),
    );
    let work = |index| {
        this_cpu_words(|block| block.words.top.store(0x1000 + index, Ordering::Relaxed));
        if index == 0 {
            task::wait_uninterrupted(&word, 0);
        }
        while !stop.load(Ordering::Relaxed) {
            relax();
        }
        this_cpu_words(|block| block.words.top.store(0, Ordering::Relaxed));
    };
    let spinners = smp::online() + 1;
    let (all, ids) = alongside(1 + spinners, &work, |ids| {
        let waits = || task::find(ids[0]).is_some_and(|t| t.state() == State::Blocked);
        eventually(waits);
        sleep_ms(50);
        let all = look();
        stop.store(true, Ordering::Relaxed);
        word.store(1, Ordering::SeqCst);
        task::wake(&word, 1);
        (all, ids.to_vec())
    })?;
    let me = task::current_id();
    check!(
        all.iter()
            .all(|seen| seen.is_caller == (Some(seen.id) == me)),
        "caller: {all:?}"
    );
    for (index, id) in ids.iter().enumerate() {
        let seen = all.iter().find(|seen| seen.id == *id);
        let seen = seen.ok_or("a thread was not shown")?;
        let right = seen.blocked == (index == 0) && seen.has_frame == (index != 0);
        check!(
            right && seen.top == 0x1000 + index,
            "thread {index}: {seen:?}"
        );
    }
    Ok(())
}

/// Loops for ever, unless its instruction pointer is moved to `escape`.
#[unsafe(naked)]
extern "C" fn loop_for_ever() {
    naked_asm!("2:", "nop", "jmp 2b")
}

/// Where a rewritten thread goes on: returns from [`loop_for_ever`], whose stack frame is empty.
#[unsafe(naked)]
extern "C" fn escape() {
    naked_asm!("ret")
}

/// Frees threads from an endless loop by changing their registers, running or preempted.
fn stop_rewrites() -> Result<(), String> {
    let looping = loop_for_ever as *const () as u64;
    let freed = AtomicUsize::new(0);
    let threads = smp::online() * 2;
    let work = |_| {
        loop_for_ever();
        freed.fetch_add(1, Ordering::SeqCst);
    };
    let free = |thread: smp::ThreadView<'_>| {
        let frame = thread
            .frame
            .filter(|frame| (looping..looping + 3).contains(&frame.rip));
        if let Some(frame) = frame {
            frame.rip = escape as *const () as u64;
        }
    };
    let all = alongside(threads, &work, |_| {
        eventually(|| {
            // SAFETY: moves threads only from the loop to a return, with the same stack.
            smp::stop_world(|world| unsafe { world.threads(free) });
            freed.load(Ordering::SeqCst) == threads
        })
    })?;
    check!(all, "freed {freed:?} of {threads}");
    Ok(())
}

/// All processors stop the world at the same time, over and over, among calls and flushes.
fn stop_race() -> Result<(), String> {
    let visits = AtomicUsize::new(0);
    let inside = AtomicUsize::new(0);
    let overlaps = AtomicUsize::new(0);
    in_threads(smp::online() + 1, &|index| {
        for round in 0..30 {
            smp::stop_world(|_| {
                let alone = inside.fetch_add(1, Ordering::SeqCst) == 0;
                overlaps.fetch_add(usize::from(!alone), Ordering::SeqCst);
                visits.fetch_add(1, Ordering::SeqCst);
                inside.fetch_sub(1, Ordering::SeqCst);
            });
            match (round + index) % 4 {
                0 => smp::call_all(&|_| ()),
                1 => smp::flush_everywhere(0, 1),
                _ => {}
            }
        }
    })?;
    let wanted = 30 * (smp::online() + 1);
    check!(
        overlaps.load(Ordering::SeqCst) == 0,
        "{overlaps:?} overlaps"
    );
    check!(
        visits.load(Ordering::SeqCst) == wanted,
        "{visits:?} of {wanted}"
    );
    Ok(())
}

static TICK_STOPS: AtomicUsize = AtomicUsize::new(0);

fn stop_in_tick(_: &mut TrapFrame) {
    // SAFETY: changes no registers.
    smp::stop_world(|world| unsafe { world.threads(|_| ()) });
    TICK_STOPS.fetch_add(1, Ordering::SeqCst);
}

/// The tick hook of every processor stops the world while threads do so too.
fn stop_from_tick() -> Result<(), String> {
    let before = TICK_STOPS.load(Ordering::SeqCst);
    let old = time::swap_tick_hook(Some(stop_in_tick));
    let enough = || TICK_STOPS.load(Ordering::SeqCst) - before > 3 * smp::online();
    let end = time::now_ns() + 60_000_000_000;
    let result = in_threads(smp::online() + 1, &|_| {
        while !enough() && time::now_ns() < end {
            smp::stop_world(|_| ());
        }
    });
    time::swap_tick_hook(old);
    result?;
    check!(enough(), "only {TICK_STOPS:?} ticks");
    Ok(())
}
