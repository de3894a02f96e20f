//! Benchmarks of calls (P1 to P5 of the benchmark list), measured by the kernel on test domains.
//!
//! With the word `bench=calls` on the command line the kernel runs these instead of starting
//! `init`. The ruler is the time-stamp counter: under `qemu -icount shift=0` it counts executed
//! instructions exactly. Each figure is a line `bench ID "NAME" VALUE UNIT`.

use abi::{AnyHandle, Handle, RRef, RVec, RpcResult};
use alloc::string::String;
use core::hint::black_box;
use framework::kprintln;
use framework::time::tsc;
use interfaces::{Counting, Misdeed, Subject};
use isolation::call::count;
use isolation::death::kill::kill;
use isolation::domain::Limits;
use isolation::load::loader::{self, Instance, MOST_GRANTS, Prepared};
use isolation::memory::owner::Owner;
use isolation::{Reason, platform::platform};

/// Calls in one round.
const CALLS: u64 = 1000;
/// Rounds; the best one counts, since only it was not interrupted.
const ROUNDS: u64 = 20;

/// Whether the command line asks for benchmarks.
pub fn requested() -> bool {
    framework::boot::command_line()
        .split_whitespace()
        .any(|word| word == "bench=calls")
}

/// Runs them and switches the machine off.
pub fn run() -> ! {
    let outcome = calls().and_then(|()| deaths());
    if let Err(why) = &outcome {
        kprintln!("bench failed: {why}");
    }
    crate::machine::switch_off(u8::from(outcome.is_err()))
}

fn say(error: impl core::fmt::Debug) -> String {
    alloc::format!("{error:?}")
}

fn print(id: &str, name: &str, value: u64, unit: &str) {
    kprintln!("bench {id} \"{name}\" {value} {unit}");
}

/// Ticks of the counter per call of `work`, in the best round, less what the loop itself takes.
fn per_call(mut work: impl FnMut()) -> u64 {
    let empty = best(|| {
        black_box(());
    });
    (best(&mut work) - empty) / CALLS
}

fn best(mut work: impl FnMut()) -> u64 {
    let round = |_| {
        let start = tsc();
        (0..CALLS).for_each(|_| work());
        tsc() - start
    };
    (0..ROUNDS).map(round).min().unwrap_or(0)
}

fn prepare(path: &str) -> Result<Prepared, String> {
    let file = crate::machine::files()
        .iter()
        .find(|file| file.path == path);
    let file = file.ok_or_else(|| alloc::format!("no {path} in the boot archive"))?;
    loader::prepare(RVec::from_slice(file.content).map_err(say)?).map_err(say)
}

fn start(
    image: &Prepared,
    next: Option<AnyHandle>,
) -> Result<(Instance, Handle<dyn Subject>), String> {
    let mut grants = [const { None }; MOST_GRANTS];
    grants[0] = next;
    let limits = Limits::default();
    let options = RVec::from_slice(&[]).map_err(say)?;
    let mut instance = image.start("bench", limits, grants, options).map_err(say)?;
    let service = instance.offers[0].take().ok_or("no service")?;
    let subject = service
        .downcast()
        .map_err(|_| String::from("not a subject"))?;
    Ok((instance, subject))
}

/// An object of the kernel, called through its method table without a proxy.
struct Plain;

trait Null {
    fn null(&self) -> RpcResult<()>;
}

impl Null for Plain {
    #[inline(never)]
    fn null(&self) -> RpcResult<()> {
        Ok(())
    }
}

fn calls() -> Result<(), String> {
    let (victim, subject) = start(&prepare("domains/victim")?, None)?;
    let next = subject.duplicate().map_err(say)?.into_any();
    let (forwarder, shadow) = start(&prepare("domains/forwarder")?, Some(next))?;
    let plain: &dyn Null = black_box(&Plain);
    print(
        "bare",
        "dyn call without a proxy",
        per_call(|| _ = black_box(plain.null())),
        "instructions",
    );
    print(
        "P1",
        "proxied null call",
        per_call(|| _ = black_box(subject.null())),
        "instructions",
    );
    let add = per_call(|| _ = black_box(subject.add(1, 2)));
    print(
        "P1a",
        "proxied call, two numbers and a result",
        add,
        "instructions",
    );
    print(
        "P2",
        "object moved in and back",
        moved(&*subject)?,
        "instructions",
    );
    print(
        "P3",
        "via a shadow, null",
        per_call(|| _ = black_box(shadow.null())),
        "instructions",
    );
    print(
        "P3r",
        "via a shadow, object in and back",
        moved(&*shadow)?,
        "instructions",
    );
    counting(&*subject, &*shadow)?;
    let object = per_call(|| drop(black_box(RRef::new(1u64))));
    print(
        "P2a",
        "shared object made and freed",
        object,
        "instructions",
    );
    kill(&forwarder.block, Reason::Exited);
    kill(&victim.block, Reason::Exited);
    let dead = per_call(|| _ = black_box(subject.null()));
    print("P1d", "call on a dead domain", dead, "instructions");
    Ok(())
}

/// The same while calls are counted.
fn counting(subject: &dyn Subject, shadow: &dyn Subject) -> Result<(), String> {
    count::set(Counting::On).map_err(say)?;
    // Methods that were looked up before are not those that count.
    let (subject, shadow) = (black_box(subject), black_box(shadow));
    let null = per_call(|| _ = black_box(subject.null()));
    print("P1c", "proxied null call, counted", null, "instructions");
    let there_and_back = moved(subject)?;
    print(
        "P2c",
        "object moved in and back, counted",
        there_and_back,
        "instructions",
    );
    let via = per_call(|| _ = black_box(shadow.null()));
    print("P3c", "via a shadow, null, counted", via, "instructions");
    count::set(Counting::Off).map_err(say)
}

fn moved(subject: &dyn Subject) -> Result<u64, String> {
    let mut object = Some(RRef::new([0u8; 64]).map_err(say)?);
    let ticks = per_call(|| object = object.take().and_then(|object| subject.bump(object).ok()));
    object
        .map(|_| ticks)
        .ok_or_else(|| "the object was lost".into())
}

/// Crash to error, restart to first good call, reclaim.
fn deaths() -> Result<(), String> {
    let image = prepare("domains/victim")?;
    let (mut crash, mut restart, mut renewed) = (u64::MAX, u64::MAX, u64::MAX);
    for _ in 0..ROUNDS {
        let (instance, subject) = start(&image, None)?;
        let begin = tsc();
        // Not `Panic`, before which the victim makes a thousand boxes: that is none of the crash.
        let error = subject.misbehave(Misdeed::DivideByZero);
        let known = tsc();
        if error.is_ok() {
            return Err("the victim survived".into());
        }
        let (next, again) = start(&image, None)?;
        again.null().map_err(say)?;
        restart = restart.min(tsc() - known);
        crash = crash.min(known - begin);
        kill(&next.block, Reason::Exited);
        instance.block.wait_gone().map_err(say)?;
        next.block.wait_gone().map_err(say)?;
        let cleared = tsc();
        let (last, again) = start(&image, None)?;
        again.null().map_err(say)?;
        renewed = renewed.min(tsc() - cleared);
        kill(&last.block, Reason::Exited);
        last.block.wait_gone().map_err(say)?;
    }
    print("P4", "crash to error at the caller", crash, "instructions");
    print("P4r", "restart to first good call", restart, "instructions");
    print(
        "P4k",
        "the same when the dead one is cleared away, its image kept",
        renewed,
        "instructions",
    );
    print(
        "P5",
        "reclaim of 100,000 shared objects",
        reclaim(),
        "instructions",
    );
    Ok(())
}

fn reclaim() -> u64 {
    // SAFETY: so many domains never live in a benchmark.
    const OWNER: Owner = unsafe { Owner::new(u32::MAX - 1) };
    let heap = &isolation::memory::heap::OBJECTS;
    (0..100_000).for_each(|_| _ = heap.allocate(64, OWNER));
    let begin = tsc();
    // SAFETY: nobody uses what was allocated for the owner that is none.
    black_box(unsafe { heap.free_all_of(OWNER) });
    let end = tsc();
    platform().yield_now();
    end - begin
}
