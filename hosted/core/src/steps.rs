//! Kills a domain at every instruction of a call into it.
//!
//! One thread calls, and is stopped after one instruction, then after two, and so on, until a call
//! has ended before the number is reached. While it stands there, another thread kills the callee,
//! and the reaper finds the caller just there. Every call must end with the right result or with
//! the error, and all must come back.

use crate::bench::{prepare, say, start};
use crate::host::{heap_bytes, host};
use crate::log::print;
use abi::{Handle, RRef, RpcError, RpcResult};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::arch::asm;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use hosted_core::{REACHED_ALONE, REACHED_LOCKED};
use interfaces::Subject;
use isolation::death::kill::{helpers, kill};
use isolation::load::loader::Prepared;
use isolation::lock::Lock;
use isolation::memory::heap::{OBJECTS, PROXIES};
use isolation::memory::owner::Owner;
use isolation::platform::{Attributes, STACK_BYTES, platform};
use isolation::{ControlBlock, Reason};

/// A call: its name, how many instructions from one kill to the next, and what it does; whether the
/// result is right.
type Call = (
    &'static str,
    usize,
    fn(&Handle<dyn Subject>) -> RpcResult<bool>,
);

const CALLS: [Call; 6] = [
    ("null", 1, |subject| subject.null().map(|()| true)),
    ("add", 1, |subject| Ok(subject.add(2, 3)? == 5)),
    ("result-in-memory", 1, |subject| {
        Ok(subject.many(1, 2, 3, 4, 5, 6, 7, 8)? == [3, 7, 11, 15])
    }),
    ("object-there-and-back", 1, |subject| {
        Ok(subject.bump(RRef::new([7; 64])?)?[0] == 8)
    }),
    ("objects-given-away", 17, |subject| {
        Ok(*subject.make_nest(5)?.inner == 5)
    }),
    ("handle-given-away", 7, |subject| {
        Ok(subject.offspring()?.add(1, 1)? == 2)
    }),
];

/// What the killer waits for: 0 until the place is reached, then [`hosted_core::REACHED`] and its
/// like.
static REACHED: AtomicU32 = AtomicU32::new(0);
/// [`REACHED`]: there is nothing to kill this time.
const NEVER: u32 = 9;
/// 1 when the callee is dead.
static DONE: AtomicU32 = AtomicU32::new(0);
static TARGET: Lock<Option<Arc<ControlBlock>>> = Lock::new(None);

/// What came of the kills of one call.
#[derive(Default)]
struct Tally {
    kills: u32,
    answered: u32,
    crashed: u32,
    locked: u32,
    alone: u32,
}

/// What must be the same before and after.
#[derive(Debug)]
struct Counts {
    free: u64,
    heap: usize,
    objects: usize,
    handles: usize,
}

/// See [`hosted_core::Core::steps`].
pub extern "C" fn run() -> u32 {
    isolation::call::thread::with_root(|| {
        let mut failed = 0;
        for call in CALLS {
            match sweep(call) {
                Ok(told) => print(format_args!("test step-{} ok ({told})", call.0)),
                Err(why) => {
                    print(format_args!("test step-{} FAILED: {why}", call.0));
                    failed += 1;
                }
            }
        }
        u32::from(failed > 0)
    })
}

/// Sweeps of one call until nothing is missing afterwards: a table that grows once does not count,
/// what is lost every time does.
const SWEEPS: usize = 3;
/// How long what comes back may take, in nanoseconds.
const PATIENCE: u64 = 5_000_000_000;

/// The counts now.
fn counts() -> Counts {
    Counts {
        free: (host().memory)(1)
            + (OBJECTS.bytes() + PROXIES.bytes()) as u64
            + u64::from(helpers()) * STACK_BYTES as u64,
        heap: heap_bytes(),
        objects: OBJECTS.count_of(Owner::KERNEL),
        handles: PROXIES.count_of(Owner::KERNEL),
    }
}

/// The counts as soon as nothing is missing, compared with `before`; an error if that does not
/// come.
fn settled(before: &Counts) -> Result<(), String> {
    let deadline = platform().now() + PATIENCE;
    loop {
        let now = counts();
        let is_back = now.free >= before.free
            && now.heap <= before.heap
            && now.objects <= before.objects
            && now.handles <= before.handles;
        if is_back {
            return Ok(());
        }
        if platform().now() > deadline {
            return Err(format!("{before:?} before, {now:?} after"));
        }
        platform().yield_now();
    }
}

/// All kills of one call.
fn sweep((_, stride, call): Call) -> Result<String, String> {
    let image = prepare("domains/victim")?;
    let mut tally = Tally::default();
    let mut answer = Ok(());
    for _ in 0..SWEEPS {
        let before = counts();
        tally = Tally::default();
        let mut counted = (1..).step_by(stride);
        while let Some(count) = counted.next()
            && step(&image, count, call, &mut tally)?
        {}
        answer = settled(&before);
        if answer.is_ok() {
            break;
        }
    }
    answer?;
    // A path of which nothing was seen, or on which nothing ever failed, was not the path of the
    // call.
    if tally.kills < 20 || tally.crashed == 0 || tally.answered == 0 {
        return Err(format!(
            "only {} kills, {} errors",
            tally.kills, tally.crashed
        ));
    }
    Ok(tally.to_string())
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "killed at {} places, {} of them under a lock, {} too late: {} results, {} errors",
            self.kills, self.locked, self.alone, self.answered, self.crashed
        )
    }
}

/// One call that is stopped after `count` instructions; whether it came so far.
fn step(
    image: &Prepared,
    count: usize,
    call: fn(&Handle<dyn Subject>) -> RpcResult<bool>,
    tally: &mut Tally,
) -> Result<bool, String> {
    let (instance, subject) = start(image, None)?;
    *TARGET.lock() = Some(instance.block.clone());
    REACHED.store(0, Ordering::SeqCst);
    DONE.store(0, Ordering::SeqCst);
    platform()
        .spawn("killer", killer, 0, &Attributes::KERNEL)
        .ok_or("no killer")?;
    // SAFETY: the word is a static.
    unsafe { (host().step)(count as u64, REACHED.as_ptr() as usize) };
    let answer = stepping(|| call(&subject));
    let reached = REACHED.swap(NEVER, Ordering::SeqCst);
    if reached == 0 {
        platform().wake(&REACHED, 1);
    } else {
        tally.kills += 1;
        tally.locked += u32::from(reached == REACHED_LOCKED);
        tally.alone += u32::from(reached == REACHED_ALONE);
    }
    while DONE.load(Ordering::SeqCst) == 0 {
        platform().wait(&DONE, 0, None);
    }
    match answer {
        Ok(true) => tally.answered += u32::from(reached != 0),
        Err(RpcError::DomainCrashed) if reached != 0 => tally.crashed += 1,
        other => return Err(format!("after {count} instructions: {other:?}")),
    }
    instance.block.wait_gone().map_err(say)?;
    if subject.null() != Err(RpcError::DomainCrashed) {
        return Err(format!(
            "after {count} instructions: it answers when it is gone"
        ));
    }
    Ok(reached != 0)
}

/// Runs `body` with the trap flag set.
fn stepping<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: the flag makes every instruction end in a trap, which changes no register; the host
    // handles it.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    let result = body();
    // SAFETY: as above.
    unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
    result
}

/// Waits until the place is reached, and kills; or ends the domain when the call is over.
extern "C" fn killer(_: usize) {
    while REACHED.load(Ordering::SeqCst) == 0 {
        platform().wait(&REACHED, 0, None);
    }
    let target = TARGET.lock().take();
    if let Some(block) = target {
        kill(&block, Reason::Killed);
    }
    DONE.store(1, Ordering::SeqCst);
    platform().wake(&DONE, 1);
}
