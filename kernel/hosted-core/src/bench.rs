//! Benchmarks of calls, deaths and reclaim (P1 to P5 of the benchmark list), in native ticks of the
//! time-stamp counter: hot, on a pinned thread, minimum and median of 4,000 rounds of 1,000 calls.
//!
//! A figure is one call with the loop around it; the empty loop is a figure of its own.

use crate::host::{bytes, host};
use crate::machine::named;
use abi::{AnyHandle, Handle, RRef, RVec, RpcResult};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::arch::asm;
use core::arch::x86_64::{_mm_lfence, _rdtsc};
use core::hint::black_box;
use hosted_core::Figure;
use interfaces::{Misdeed, Subject};
use isolation::Reason;
use isolation::domain::Limits;
use isolation::heap::OBJECTS;
use isolation::kill::kill;
use isolation::loader::{self, Instance, MOST_GRANTS, Prepared};

/// Calls in one round.
const CALLS: u64 = 1000;
/// Rounds of calls.
const ROUNDS: usize = 4000;
/// Rounds of something that takes microseconds.
const LIVES: usize = 400;
/// Rounds of something that takes milliseconds to prepare.
const HARVESTS: usize = 40;

/// Bytes that may be kept for good: the stacks of up to 16 helpers that clear domains away, and chunks of the
/// shared heap that have become permanent. Over a million lives that is 3 bytes a life.
const MOST_KEPT: u64 = 3 << 20;

/// See [`hosted_core::Core::bench`].
///
/// # Safety
/// `names` is the address of `len` bytes.
pub unsafe extern "C" fn run(names: usize, len: usize) -> u32 {
    // SAFETY: by the caller's duty.
    let names = core::str::from_utf8(unsafe { bytes(names, len) }).unwrap_or("");
    let wanted = |name: &str| names.is_empty() || names.split(' ').any(|word| word == name);
    type Bench = fn() -> Result<(), String>;
    let all: [(&str, Bench); 3] = [
        ("calls", calls),
        ("recovery", recovery),
        ("reclaim", reclaim),
    ];
    isolation::thread::with_root(|| {
        for (name, bench) in all {
            if wanted(name)
                && let Err(why) = bench()
            {
                crate::log::print(format_args!("bench {name}: {why}"));
                return 1;
            }
        }
        let count = names
            .split(' ')
            .find_map(|word| word.strip_prefix("lives="));
        match count.map_or(Ok(()), |count| lives(count.parse().unwrap_or(0))) {
            Ok(()) => 0,
            Err(why) => {
                crate::log::print(format_args!("lives: {why}"));
                1
            }
        }
    })
}

fn say(error: impl core::fmt::Debug) -> String {
    format!("{error:?}")
}

/// The time-stamp counter, when all before has been done.
fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has both; neither touches memory.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

/// Tells the launcher minimum and median of `rounds`, each of `calls` calls.
fn tell(id: &str, name: &str, mut rounds: Vec<u64>, calls: u64) {
    rounds.sort_unstable();
    let (Some(minimum), Some(median)) = (rounds.first(), rounds.get(rounds.len() / 2)) else {
        return;
    };
    let figure = Figure {
        id: [id.as_ptr() as usize, id.len()],
        name: [name.as_ptr() as usize, name.len()],
        minimum: minimum * 1000 / calls,
        median: median * 1000 / calls,
    };
    // SAFETY: the figure and its texts are lent for the call.
    unsafe { (host().figure)((&raw const figure) as usize) };
}

/// Measures one call of `work`.
#[inline(always)]
fn measure(id: &str, name: &str, mut work: impl FnMut()) {
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = tsc();
        for _ in 0..CALLS {
            work();
        }
        rounds.push(tsc() - start);
    }
    tell(id, name, rounds, CALLS);
}

fn prepare(name: &str) -> Result<Prepared, String> {
    let file = named(name).ok_or_else(|| format!("no {name} among the images"))?;
    loader::prepare(RVec::from_slice(file.content).map_err(say)?).map_err(say)
}

type Started = (Instance, Handle<dyn Subject>);

fn start(image: &Prepared, next: Option<AnyHandle>) -> Result<Started, String> {
    let mut grants = [const { None }; MOST_GRANTS];
    grants[0] = next;
    let limits = Limits {
        pages: 0,
        threads: 0,
        call_ms: 0,
    };
    let options = RVec::from_slice(&[]).map_err(say)?;
    let mut instance = image.start("bench", limits, grants, options).map_err(say)?;
    let service = instance.offers[0].take().ok_or("no service")?;
    let subject = service
        .downcast()
        .map_err(|_| String::from("not a subject"))?;
    Ok((instance, subject))
}

/// An object of the core, called through its method table without a proxy.
struct Plain;

trait Null {
    fn null(&self) -> RpcResult<()>;
}

impl Null for Plain {
    #[inline(never)]
    fn null(&self) -> RpcResult<()> {
        black_box(Ok(()))
    }
}

/// The cheapest system call.
fn getpid() -> u64 {
    let pid;
    // SAFETY: `getpid` (39) changes nothing; a system call overwrites rcx and r11.
    unsafe {
        asm!("syscall", inout("rax") 39u64 => pid, out("rcx") _, out("r11") _, options(nostack))
    };
    pid
}

fn calls() -> Result<(), String> {
    let (victim, subject) = start(&prepare("domains/victim")?, None)?;
    let next = subject.duplicate().map_err(say)?.into_any();
    let (forwarder, shadow) = start(&prepare("domains/forwarder")?, Some(next))?;
    let plain: &dyn Null = black_box(&Plain);
    let (subject, shadow): (&dyn Subject, &dyn Subject) =
        (black_box(&*subject), black_box(&*shadow));
    measure("P0", "empty loop", || black_box(()));
    measure("P0d", "dyn call without a proxy", || {
        _ = black_box(plain.null())
    });
    measure("P0g", "getpid, raw system call", || _ = black_box(getpid()));
    measure("P1", "proxied null call", || _ = black_box(subject.null()));
    measure("P1a", "proxied call, two numbers and a result", || {
        _ = black_box(subject.add(1, 2))
    });
    moved("P2", "object moved in and back", subject)?;
    measure("P2a", "shared object made and freed", || {
        drop(black_box(RRef::new(1u64)))
    });
    measure("P3", "via a shadow, null", || _ = black_box(shadow.null()));
    moved("P3r", "via a shadow, object moved in and back", shadow)?;
    kill(&forwarder.block, Reason::Exited);
    kill(&victim.block, Reason::Exited);
    measure("P1d", "call on a dead domain", || {
        _ = black_box(subject.null())
    });
    Ok(())
}

fn moved(id: &str, name: &str, subject: &dyn Subject) -> Result<(), String> {
    let mut object = Some(RRef::new([0u8; 64]).map_err(say)?);
    measure(id, name, || {
        object = object.take().and_then(|object| subject.bump(object).ok())
    });
    object.map(drop).ok_or_else(|| "the object was lost".into())
}

/// Crash to error, restart to first good call.
fn recovery() -> Result<(), String> {
    let image = prepare("domains/victim")?;
    let (mut crashes, mut restarts, mut reclaims) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..LIVES {
        let (instance, subject) = start(&image, None)?;
        subject.null().map_err(say)?;
        let begin = tsc();
        let error = subject.misbehave(Misdeed::OutOfBounds);
        let known = tsc();
        let (next, again) = start(&image, None)?;
        again.null().map_err(say)?;
        let restarted = tsc();
        instance.block.wait_gone().map_err(say)?;
        let gone = tsc();
        if error.is_ok() {
            return Err("the victim survived".into());
        }
        crashes.push(known - begin);
        restarts.push(restarted - known);
        reclaims.push(gone - begin);
        drop((subject, again));
        kill(&next.block, Reason::Exited);
        next.block.wait_gone().map_err(say)?;
    }
    tell("P4", "crash to error at the caller", crashes, 1);
    tell("P4r", "restart to first good call", restarts, 1);
    tell("P4g", "crash to everything cleared away", reclaims, 1);
    Ok(())
}

fn reclaim() -> Result<(), String> {
    const OWNER: u32 = u32::MAX;
    const OBJECT_COUNT: usize = 100_000;
    let mut rounds = Vec::new();
    for _ in 0..HARVESTS {
        let made = (0..OBJECT_COUNT)
            .filter(|_| OBJECTS.allocate(64, OWNER).is_some())
            .count();
        let begin = tsc();
        let freed = OBJECTS.free_all_of(OWNER);
        rounds.push(tsc() - begin);
        if (made, freed) != (OBJECT_COUNT, OBJECT_COUNT) {
            return Err(format!("{made} objects made, {freed} freed"));
        }
    }
    tell("P5", "reclaim of 100,000 shared objects", rounds, 1);
    Ok(())
}

/// Starts and crashes one domain `count` times: no memory may be lost, no number used twice, and the last
/// tenth of the lives may take no longer than the first (which is told, not judged).
fn lives(count: usize) -> Result<(), String> {
    let image = prepare("domains/victim")?;
    let mut rounds = Vec::with_capacity(count);
    let (mut last, mut free) = (0, 0);
    for round in 0..count {
        let begin = tsc();
        let (instance, subject) = start(&image, None)?;
        if instance.block.id <= last || subject.misbehave(Misdeed::OutOfBounds).is_ok() {
            return Err(format!(
                "life {round}: number {} after {last}, or it survived",
                instance.block.id
            ));
        }
        last = instance.block.id;
        instance.block.wait_gone().map_err(say)?;
        drop((instance, subject));
        rounds.push(tsc() - begin);
        if round == count / 10 {
            free = (host().memory)(1);
        }
    }
    let lost = free.saturating_sub((host().memory)(1));
    if lost > MOST_KEPT {
        return Err(format!("{lost} bytes are lost after {count} lives"));
    }
    let tenth = count / 10;
    crate::log::print(format_args!(
        "{count} lives, the last is domain {last}; {lost} bytes are kept"
    ));
    tell(
        "lives",
        "start to cleared away, first tenth",
        rounds[..tenth].to_vec(),
        1,
    );
    tell(
        "lives",
        "start to cleared away, last tenth",
        rounds[count - tenth..].to_vec(),
        1,
    );
    Ok(())
}
