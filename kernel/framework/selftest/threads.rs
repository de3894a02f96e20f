//! Helpers of the tests that need several threads, and the tests of threads themselves.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::{Test, gives_back};
use crate::arch::cpu::this_cpu;
use crate::check;
use crate::mem;
use crate::sync::{Sleepable, relax};
use crate::task::{
    self, AtomicContext, Attributes, Choice, Group, Left, Moment, Placement, PreemptOff, Reason,
    Scheduler, Share, State, Thread, ThreadId, ThreadRef,
};
use crate::{smp, time};

/// The tests of this file.
pub static TESTS: &[Test] = &[
    ("task-entry-gets-its-argument", argument),
    ("task-endless-loop-is-preempted", preemption),
    ("task-ids-are-not-reused", ids),
    ("task-words-are-per-thread", words),
    ("task-memory-comes-back", leak),
    ("task-spawn-without-memory", no_memory),
    ("task-policy-that-lies-is-refused", lying_policy),
    ("task-sleep-in-atomic-context-is-detected", atomic_context),
    ("task-preempt-off-keeps-the-processor", preempt_off),
    ("task-all-processors-get-work", balance),
    ("task-wakers-do-not-starve-others", no_starvation),
];

/// The token of a test thread, which may always sleep.
pub fn token() -> Sleepable {
    Sleepable::claim().expect("tests run in threads, with interrupts on")
}

/// What a helper thread is to do: `work(index)`.
struct Job<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    index: usize,
}

/// Entry of the helper threads; `job` is the address of a [`Job`].
extern "C" fn do_job(job: usize) {
    // SAFETY: `alongside` keeps the job alive until this thread has been joined.
    let job = unsafe { &*(job as *const Job<'_>) };
    (job.work)(job.index);
}

/// Runs `work(0)` to `work(count - 1)` in threads of their own, and `main` with their ids
/// meanwhile; returns when all have ended.
pub fn alongside<R>(
    count: usize,
    work: &(dyn Fn(usize) + Sync),
    main: impl FnOnce(&[ThreadId]) -> R,
) -> Result<R, String> {
    let kind = |_| (Attributes::NORMAL, Group::system());
    alongside_as(count, &kind, work, main)
}

/// As [`alongside`], with attributes and group of each thread.
pub fn alongside_as<R>(
    count: usize,
    kind: &dyn Fn(usize) -> (Attributes, Group),
    work: &(dyn Fn(usize) + Sync),
    main: impl FnOnce(&[ThreadId]) -> R,
) -> Result<R, String> {
    let jobs: Vec<Job<'_>> = (0..count).map(|index| Job { work, index }).collect();
    let mut ids = Vec::new();
    for job in &jobs {
        let (attributes, group) = kind(job.index);
        let argument = core::ptr::from_ref(job) as usize;
        match task::spawn_as("test", do_job, argument, 4, attributes, group) {
            Ok(id) => ids.push(id),
            Err(_) => break,
        }
    }
    let result = (ids.len() == count).then(|| main(&ids));
    ids.iter().for_each(|id| task::join(token(), *id));
    result.ok_or_else(|| String::from("no memory for the threads"))
}

/// Runs `work(0)` to `work(count - 1)` in threads of their own and waits for them.
pub fn in_threads(count: usize, work: &(dyn Fn(usize) + Sync)) -> Result<(), String> {
    alongside(count, work, |_| ())
}

/// Sleeps.
pub fn sleep_ms(ms: u64) {
    task::sleep_until(time::now_ns() + ms * 1_000_000);
}

/// Sleeps until `done`, at most a minute; says whether it was done.
pub fn eventually(done: impl Fn() -> bool) -> bool {
    let end = time::now_ns() + 60_000_000_000;
    while !done() && time::now_ns() < end {
        sleep_ms(1);
    }
    done()
}

fn argument() -> Result<(), String> {
    let sum = AtomicUsize::new(0);
    in_threads(10, &|index| {
        sum.fetch_add(index, Ordering::Relaxed);
    })?;
    check!(sum.load(Ordering::Relaxed) == 45, "sum {sum:?}");
    Ok(())
}

/// More spinning threads than processors, which only end when this thread gets its turn.
fn preemption() -> Result<(), String> {
    let stop = AtomicBool::new(false);
    let spin = |_| {
        while !stop.load(Ordering::Relaxed) {
            relax();
        }
    };
    alongside(smp::online() * 2, &spin, |_| {
        sleep_ms(30);
        stop.store(true, Ordering::Relaxed);
    })
}

fn ids() -> Result<(), String> {
    let mut seen = Vec::new();
    for _ in 0..50 {
        alongside(1, &|_| (), |ids| seen.push(ids[0]))?;
    }
    check!(
        seen.iter().all(|id| task::find(*id).is_none()),
        "a dead thread was found"
    );
    seen.sort();
    seen.dedup();
    check!(seen.len() == 50, "only {} different ids", seen.len());
    Ok(())
}

/// Each thread finds its own top record and its own stack's end after every switch.
fn words() -> Result<(), String> {
    let wrong = AtomicUsize::new(0);
    in_threads(8, &|index| {
        let here = 0_u8;
        let record = 0x1000 + index;
        this_cpu_words(|block| block.words.top.store(record, Ordering::Relaxed));
        for _ in 0..200 {
            task::yield_now();
            let stack = core::ptr::from_ref(&here) as usize;
            let right = this_cpu_words(|block| {
                let low = block.words.stack_low.load(Ordering::Relaxed);
                block.words.top.load(Ordering::Relaxed) == record
                    && (low..low + 4 * mem::PAGE_SIZE).contains(&stack)
            });
            wrong.fetch_add(usize::from(!right), Ordering::Relaxed);
        }
        this_cpu_words(|block| block.words.top.store(0, Ordering::Relaxed));
    })?;
    check!(wrong.load(Ordering::Relaxed) == 0, "{wrong:?} times wrong");
    Ok(())
}

/// Shows the words of the processor that the caller is on.
pub fn this_cpu_words<R>(look: impl FnOnce(&crate::arch::cpu::PerCpu) -> R) -> R {
    let _pinned = crate::sync::IrqOff::new();
    look(this_cpu())
}

/// A thousand threads leave as much memory as there was before, and no thread. First, more at once
/// than later, because page tables of kernel space are never freed.
fn leak() -> Result<(), String> {
    let go = AtomicBool::new(false);
    let wait = |_| {
        eventually(|| go.load(Ordering::Relaxed));
    };
    alongside(100, &wait, |_| go.store(true, Ordering::Relaxed))?;
    task::reap(token());
    let threads = task::count();
    gives_back(|| {
        for _ in 0..20 {
            in_threads(50, &|_| ())?;
        }
        task::reap(token());
        let left = task::count();
        check!(left == threads, "{threads} threads before, {left} after");
        Ok(())
    })
}

extern "C" fn nothing(_: usize) {}

fn no_memory() -> Result<(), String> {
    gives_back(|| {
        let threads = task::count();
        let result = task::spawn("huge", nothing, 0, 1 << 40);
        check!(result.is_err(), "a stack of 4 PiB was made");
        check!(task::count() == threads, "the failed thread is counted");
        Ok(())
    })
}

/// A scheduler that offers threads twice: the running one, or one that waits.
struct Liar {
    honest: &'static dyn Scheduler,
    /// The thread offered wrongly.
    victim: ThreadRef,
    calls: AtomicU32,
}

impl Scheduler for Liar {
    fn admit(&self, threads: usize, online: usize) -> bool {
        self.honest.admit(threads, online)
    }

    fn open_group(&self, group: u32, share: Share) {
        self.honest.open_group(group, share);
    }

    fn enqueue(&self, thread: ThreadRef, why: Reason, at: Moment) -> Placement {
        let honest = self.honest.enqueue(thread, why, at);
        Placement {
            cpu: honest.cpu + 1000 * smp::online(),
            ..honest
        }
    }

    fn pick(&self, at: Moment) -> Choice {
        let waits = !matches!(self.victim.state(), State::Ready);
        if waits && self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            let thread = Some(self.victim.clone());
            return Choice { thread, until: 0 };
        }
        self.honest.pick(at)
    }

    fn ran(&self, thread: &Thread, used: u64, left: Left, in_service: bool, at: Moment) {
        self.honest.ran(thread, used, left, in_service, at);
    }

    fn slice_over(&self, thread: &Thread, in_service: bool, at: Moment) -> Option<u64> {
        // A moment that is long past: it must not hold the processor in its timer interrupt.
        self.honest.slice_over(thread, in_service, at).map(|_| 0)
    }
}

/// Every second answer names a thread that runs on some processor or waits, and every placement
/// names a processor that does not exist; the threads must not notice.
fn lying_policy() -> Result<(), String> {
    let victim = task::current().ok_or("no current thread")?;
    let before = task::refusals();
    let liar = alloc::boxed::Box::leak(alloc::boxed::Box::new(Liar {
        honest: task::scheduler(),
        victim,
        calls: AtomicU32::new(0),
    }));
    let honest = liar.honest;
    task::inject(liar);
    let total = AtomicUsize::new(0);
    let result = in_threads(8, &|_| {
        for _ in 0..100 {
            task::yield_now();
            total.fetch_add(1, Ordering::Relaxed);
        }
    });
    sleep_ms(2);
    task::inject(honest);
    result?;
    let refused = task::refusals() - before;
    check!(refused > 0, "no answer was refused");
    check!(total.load(Ordering::Relaxed) == 800, "total {total:?}");
    Ok(())
}

fn atomic_context() -> Result<(), String> {
    check!(task::may_sleep().is_ok(), "a thread may sleep");
    let lock = crate::sync::SpinLock::new(());
    let guard = lock.lock();
    let under_lock = task::may_sleep();
    drop(guard);
    check!(
        under_lock == Err(AtomicContext::InterruptsOff),
        "under a spin lock: {under_lock:?}"
    );
    let guard = PreemptOff::new();
    let pinned = Sleepable::claim().err();
    drop(guard);
    check!(
        pinned == Some(AtomicContext::PreemptOff),
        "pinned: {pinned:?}"
    );
    let refused = AtomicUsize::new(0);
    smp::call_all(&|_| {
        refused.fetch_add(usize::from(Sleepable::claim().is_err()), Ordering::Relaxed);
    });
    check!(
        refused.load(Ordering::Relaxed) == smp::online(),
        "interrupt context got a token"
    );
    check!(
        task::may_sleep().is_ok(),
        "the guards left something behind"
    );
    Ok(())
}

/// A pinned thread keeps its processor over several ticks, though others are ready.
fn preempt_off() -> Result<(), String> {
    let (stop, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    let busy = |_| {
        while !stop.load(Ordering::Relaxed) {
            relax();
        }
    };
    alongside(smp::online() * 2, &busy, |_| {
        let guard = PreemptOff::new();
        let here = crate::arch::cpu::cpu_index();
        let end = time::now_ns() + 3 * time::TICK_NS;
        while time::now_ns() < end {
            let now_here = crate::arch::cpu::cpu_index();
            moved.fetch_add(u64::from(now_here != here), Ordering::Relaxed);
        }
        drop(guard);
        stop.store(true, Ordering::Relaxed);
    })?;
    let moved = moved.load(Ordering::Relaxed);
    check!(moved == 0, "{}", format!("moved {moved} times"));
    Ok(())
}

/// As many spinning threads as processors end up on all of them.
fn balance() -> Result<(), String> {
    let used = AtomicU32::new(0);
    let all = (1 << smp::online()) - 1;
    let end = time::now_ns() + 60_000_000_000;
    in_threads(smp::online(), &|_| {
        while used.load(Ordering::Relaxed) != all && time::now_ns() < end {
            let _pinned = PreemptOff::new();
            used.fetch_or(1 << crate::arch::cpu::cpu_index(), Ordering::Relaxed);
        }
    })?;
    let used = used.load(Ordering::Relaxed);
    check!(used == all, "used processors {used:#b} of {all:#b}");
    Ok(())
}

/// Threads that wake each other for ever leave time to threads that only compute.
fn no_starvation() -> Result<(), String> {
    let (word, done) = (AtomicU32::new(0), AtomicBool::new(false));
    let end = time::now_ns() + 60_000_000_000;
    let over = || done.load(Ordering::Relaxed) || time::now_ns() > end;
    let pairs = 2 * smp::online();
    in_threads(2 * pairs + 1, &|index| {
        if index == 2 * pairs {
            (0..1_000_000).for_each(|_| relax());
            done.store(true, Ordering::Relaxed);
        }
        while !over() {
            let seen = word.fetch_add(1, Ordering::SeqCst) + 1;
            task::wake(&word, 1);
            task::wait_on(&word, seen, Some(time::now_ns() + 1_000_000));
        }
    })?;
    check!(time::now_ns() < end, "the computing thread did not get on");
    Ok(())
}
