//! Counts of calls: exact, from several threads at once, also where the callee dies; nothing while
//! they are off.

use crate::lab::{Lab, Victim, say, unlimited};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{thread, time};
use interfaces::{
    CallCount, Counting, DomainSpec, INTERFACES, Misdeed, RRef, RpcError, Subject, Text,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("counts-equal-the-calls-made", equal),
    ("counts-of-errors-and-of-a-domain-that-dies", errors),
    ("counts-of-timed-calls-are-all-in-the-histogram", timed),
    ("counts-traced-calls-come-back", traced),
    ("counts-are-switched-on-off-and-reset", switched),
    ("counts-without-room-are-counted-together", without_room),
    ("counts-samples-meet-the-callee", samples),
];

/// Counting, until it is dropped.
struct On<'a>(&'a Lab);

impl<'a> On<'a> {
    fn new(lab: &'a Lab, how: Counting) -> Result<Self, String> {
        lab.monitor.count_calls(how).map_err(say)?;
        Ok(On(lab))
    }
}

impl Drop for On<'_> {
    fn drop(&mut self) {
        let _ = self.0.monitor.count_calls(Counting::Off);
    }
}

/// A victim with this name, before `next`.
fn named(lab: &Lab, name: &str, next: Option<&Victim>) -> Result<Victim, String> {
    let spec = DomainSpec {
        name: Text::new(name),
        ..unlimited()
    };
    let victim = lab.start_as(next, spec, b"")?;
    victim.map_err(|error| format!("no start: {error:?}"))
}

/// All that was counted.
fn all(lab: &Lab) -> Result<Vec<CallCount>, String> {
    let (mut counts, mut from) = (Vec::new(), 0);
    while let Some(count) = lab.monitor.call_count(from).map_err(say)? {
        from = count.index + 1;
        counts.push(count);
    }
    Ok(counts)
}

/// What was counted of `method` of subjects between domains of these names; nothing if none was.
fn count(lab: &Lab, caller: &str, callee: &str, method: &str) -> Result<Option<CallCount>, String> {
    let subject = INTERFACES.iter().find(|(_, name, _)| *name == "Subject");
    let (interface, _, methods) = subject.ok_or("no interface `Subject`")?;
    let number = methods.iter().position(|name| *name == method);
    let number = number.ok_or("no such method")? as u32;
    let mut counts = all(lab)?.into_iter();
    Ok(counts.find(|count| {
        (count.interface, count.method) == (*interface, number)
            && (count.caller.as_str(), count.callee.as_str()) == (caller, callee)
    }))
}

/// How often it was called.
fn calls(lab: &Lab, caller: &str, callee: &str, method: &str) -> Result<u64, String> {
    Ok(count(lab, caller, callee, method)?.map_or(0, |count| count.calls))
}

/// The name of this domain.
fn own(lab: &Lab) -> Result<String, String> {
    let info = lab
        .info(domain_rt::self_id())?
        .ok_or("this domain is gone")?;
    Ok(format!("{}", info.name))
}

/// Threads that call at once.
const THREADS: u32 = 8;
/// Calls that each makes.
const CALLS: u64 = 20_000;

/// The calls of one thread: one of each kind for each round.
fn work(subject: &dyn Subject) -> Result<(), RpcError> {
    let mut object = RRef::new([0; 64])?;
    for round in 0..CALLS {
        subject.null()?;
        subject.add(round, 1)?;
        object = subject.bump(object)?;
    }
    Ok(())
}

fn equal(lab: &Lab) -> Verdict {
    let (own, back) = (own(lab)?, named(lab, "counted-back", None)?);
    let front = named(lab, "counted", Some(&back))?;
    let _on = On::new(lab, Counting::On)?;
    let before: Vec<u64> = ["null", "add", "bump"]
        .map(|method| calls(lab, &own, "counted", method))
        .into_iter()
        .collect::<Result<_, _>>()?;
    let state = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
    for _ in 0..THREADS {
        let (subject, state) = (front.subject.duplicate().map_err(say)?, state.clone());
        thread::spawn("caller", move || {
            if work(black_box(&*subject)).is_err() {
                state.1.fetch_add(1, Ordering::SeqCst);
            }
            state.0.fetch_add(1, Ordering::SeqCst);
        })
        .map_err(say)?;
    }
    while state.0.load(Ordering::SeqCst) < THREADS {
        time::sleep(10_000_000);
    }
    ensure!(state.1.load(Ordering::SeqCst) == 0, "a call failed");
    let expected = u64::from(THREADS) * CALLS;
    for (method, before) in ["null", "add", "bump"].into_iter().zip(before) {
        let counted = calls(lab, &own, "counted", method)? - before;
        ensure!(
            counted == expected,
            "{method}: {counted} of {expected} calls"
        );
    }
    // And that which the front makes: the back has nobody behind it.
    let further = black_box(&*front.subject).depth(100).map_err(say)?;
    let through = calls(lab, "counted", "counted-back", "depth")?;
    let mine = calls(lab, &own, "counted", "depth")?;
    ensure!(
        (further, through, mine) == (1, 1, 1),
        "{further}: {through}, {mine} calls of `depth`"
    );
    front.end()?;
    back.end()
}

/// Calls of a domain that is dead.
const LATE: u64 = 7;

fn errors(lab: &Lab) -> Verdict {
    let (own, victim) = (own(lab)?, named(lab, "counted-dead", None)?);
    let _on = On::new(lab, Counting::On)?;
    let subject: &dyn Subject = black_box(&*victim.subject);
    subject.null().map_err(say)?;
    let answer = subject.misbehave(Misdeed::Panic);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    for _ in 0..LATE {
        let answer = subject.null();
        ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    }
    for (method, calls, errors) in [("null", LATE + 1, LATE), ("misbehave", 1, 1)] {
        let count = count(lab, &own, "counted-dead", method)?.ok_or("nothing was counted")?;
        let found = (count.calls, count.errors);
        ensure!(found == (calls, errors), "{method}: {found:?}");
    }
    victim.gone()?;
    // The next instance of that name goes on where this one was.
    let next = named(lab, "counted-dead", None)?;
    black_box(&*next.subject).null().map_err(say)?;
    let counted = calls(lab, &own, "counted-dead", "null")?;
    ensure!(counted == LATE + 2, "{counted} calls");
    next.end()
}

/// How many of these calls were timed.
fn timed_calls(count: &CallCount) -> u64 {
    count.latency.iter().map(|&calls| u64::from(calls)).sum()
}

/// Calls that wait.
const PAUSES: u32 = 3;

fn timed(lab: &Lab) -> Verdict {
    let (own, victim) = (own(lab)?, named(lab, "counted-timed", None)?);
    let _on = On::new(lab, Counting::Timed)?;
    let subject: &dyn Subject = black_box(&*victim.subject);
    for _ in 0..CALLS {
        subject.null().map_err(say)?;
    }
    // A call may begin late, and then lasts not as long: three are long enough together.
    let pause = 30_000_000;
    for _ in 0..PAUSES {
        subject.block_until(time::now() + pause).map_err(say)?;
    }
    let null = count(lab, &own, "counted-timed", "null")?.ok_or("nothing was counted")?;
    let found = (null.calls, timed_calls(&null));
    ensure!(found == (CALLS, CALLS), "{found:?}");
    let blocked = count(lab, &own, "counted-timed", "block_until")?.ok_or("nothing was counted")?;
    ensure!(
        blocked.ns >= pause,
        "{} ns for a pause of {pause}",
        blocked.ns
    );
    let all: u32 = blocked.latency.iter().sum();
    let long: u32 = blocked.latency[pause.ilog2() as usize..].iter().sum();
    ensure!(all == PAUSES && long > 0, "{:?}", blocked.latency);
    victim.end()
}

/// Traced calls are counted as others, when the ring is full, too; and who dies in one, also of a
/// stack that is used up wherever it happens to be, is all that dies.
fn traced(lab: &Lab) -> Verdict {
    let (own, victim) = (own(lab)?, named(lab, "traced", None)?);
    let _on = On::new(lab, Counting::Traced)?;
    let subject: &dyn Subject = black_box(&*victim.subject);
    // Each has two events, so this is more than a ring holds.
    for _ in 0..2 * CALLS {
        subject.null().map_err(say)?;
    }
    let null = count(lab, &own, "traced", "null")?.ok_or("nothing was counted")?;
    let (found, expected) = ((null.calls, timed_calls(&null)), (2 * CALLS, 2 * CALLS));
    ensure!(found == expected, "{found:?}");
    for misdeed in [Misdeed::Panic, Misdeed::DeepRecursion, Misdeed::DeepCalls] {
        let dying = named(lab, "traced-dead", None)?;
        let answer = black_box(&*dying.subject).misbehave(misdeed);
        ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
        dying.gone()?;
    }
    let dead = count(lab, &own, "traced-dead", "misbehave")?.ok_or("nothing was counted")?;
    ensure!((dead.calls, dead.errors) == (3, 3), "{dead:?}");
    victim.end()
}

fn switched(lab: &Lab) -> Verdict {
    let (own, victim) = (own(lab)?, named(lab, "counted-off", None)?);
    let null = || black_box(&*victim.subject).null().map_err(say);
    let counted = || calls(lab, &own, "counted-off", "null");
    null()?;
    ensure!(counted()? == 0, "counted while it was off");
    let on = On::new(lab, Counting::On)?;
    null()?;
    ensure!(counted()? == 1, "{} calls", counted()?);
    lab.monitor.count_calls(Counting::Reset).map_err(say)?;
    ensure!(counted()? == 0, "{} calls after a reset", counted()?);
    null()?;
    null()?;
    drop(on);
    null()?;
    ensure!(counted()? == 2, "{} calls", counted()?);
    victim.end()
}

/// More names than there is room for.
const NAMES: usize = 400;

/// Domains of ever new names use the table up; their calls are counted together from then on. This
/// is the last of these tests, since the table stays full.
fn without_room(lab: &Lab) -> Verdict {
    let _on = On::new(lab, Counting::On)?;
    let together = |counts: &[CallCount]| -> u64 {
        let others = counts.iter().filter(|count| count.interface == 0);
        others.map(|count| count.calls).sum()
    };
    let (mut made, mut separate) = (0, 0);
    for number in 0..NAMES {
        let victim = named(lab, &format!("named-{number}"), None)?;
        black_box(&*victim.subject).null().map_err(say)?;
        victim.end()?;
        made += 1;
        if together(&all(lab)?) > 0 {
            break;
        }
    }
    let counts = all(lab)?;
    let others = together(&counts);
    for count in &counts {
        let is_one = count.callee.as_str().starts_with("named-") && count.interface != 0;
        separate += if is_one { count.calls } else { 0 };
    }
    ensure!(others > 0, "{made} names did not use the table up");
    ensure!(
        separate + others >= made,
        "{separate} and {others} of {made}"
    );
    Ok(())
}

fn samples(lab: &Lab) -> Verdict {
    let (own, victim) = (domain_rt::self_id(), named(lab, "sampled", None)?);
    let mut from = 0;
    while let Some(sample) = lab.monitor.call_sample(from).map_err(say)? {
        from = sample.number + 1;
    }
    let answer = victim.subject.misbehave(Misdeed::Spin);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    let (mut inside, mut ns) = (0, 0);
    while let Some(sample) = lab.monitor.call_sample(from).map_err(say)? {
        from = sample.number + 1;
        if (sample.caller, sample.callee) == (own, victim.id) {
            (inside, ns) = (inside + 1, ns + sample.ns);
        }
    }
    // It loops for more than 300 ms of processor time.
    ensure!(
        inside >= 20 && ns >= 200_000_000,
        "{inside} samples, {ns} ns"
    );
    victim.gone().map(drop)
}
