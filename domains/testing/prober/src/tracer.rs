//! Traces of calls with their arguments: what is asked for and no more, events that were written
//! over, hostile places, limits, and the deaths of who is traced and of who traces.

use crate::lab::{Lab, Victim, say, unlimited};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::hint::black_box;
use interfaces::{
    CallEvent, CallTrace, Counting, DomainSpec, Handle, INTERFACES, Misdeed, RVec, RpcError,
    Subject, Tracer,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("tracer-shows-calls-and-arguments", shows),
    ("tracer-shows-no-other-domain", others),
    ("tracer-of-a-domain-that-dies", died),
    ("tracer-that-dies-or-lets-go-traces-no-more", ends),
    ("tracer-counts-what-was-written-over", overflow),
    ("tracer-and-hostile-places", hostile),
    ("tracer-limits-of-a-domain", limits),
];

/// Events in the kernel's ring.
const EVENTS: u64 = 1 << 16;

const NOTHING: CallEvent = CallEvent {
    time: 0,
    begun: 0,
    caller: 0,
    callee: 0,
    interface: 0,
    method: 0,
    failed: false,
    arguments: [0; 4],
};

fn tracer(lab: &Lab) -> Result<&Handle<dyn Tracer>, String> {
    lab.tracer.as_ref().ok_or_else(|| "nobody traces".into())
}

fn trace(lab: &Lab, victim: &Victim) -> Result<Handle<dyn CallTrace>, String> {
    tracer(lab)?.trace(victim.id).map_err(say)
}

/// All that there is from place `from` on, `room` events at a time; how many were lost; the place
/// behind.
fn read_from(
    trace: &Handle<dyn CallTrace>,
    mut from: u64,
    room: usize,
) -> Result<(Vec<CallEvent>, u64, u64), String> {
    let (mut all, mut lost) = (Vec::new(), 0);
    loop {
        let buffer = RVec::filled(NOTHING, room).map_err(say)?;
        let taken = trace.read(from, buffer).map_err(say)?;
        ensure!(taken.events.len() <= room, "{} events", taken.events.len());
        (from, lost) = (taken.next, lost + taken.lost);
        if taken.events.is_empty() {
            return Ok((all, lost, from));
        }
        all.extend(taken.events.iter().copied());
    }
}

/// All that is there.
fn read(trace: &Handle<dyn CallTrace>) -> Result<Vec<CallEvent>, String> {
    let (events, lost, _) = read_from(trace, 0, 64)?;
    ensure!(lost == 0, "{lost} events are lost");
    Ok(events)
}

/// The number of this method of subjects.
fn number(method: &str) -> Result<u32, String> {
    let subject = INTERFACES.iter().find(|(_, name, _)| *name == "Subject");
    let (_, _, methods) = subject.ok_or("no interface `Subject`")?;
    let number = methods.iter().position(|name| *name == method);
    Ok(number.ok_or("no such method")? as u32)
}

/// What each call of subjects was, in its order: method, arguments, whether it has ended, and how.
type Seen = (u32, [u64; 4], Option<bool>);

fn seen(events: &[CallEvent]) -> Vec<Seen> {
    let begun = events.iter().filter(|event| event.begun == 0);
    let end = |call: &CallEvent| {
        let is_its = |event: &&CallEvent| {
            event.begun == call.time && (event.caller, event.callee) == (call.caller, call.callee)
        };
        events.iter().find(is_its).map(|event| event.failed)
    };
    begun
        .map(|call| (call.method, call.arguments, end(call)))
        .collect()
}

fn shows(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    // Looked up anew each time, since tracing changes which method is found.
    let subject = || -> &dyn Subject { black_box(&*victim.subject) };
    subject().add(1, 2).map_err(say)?;
    let trace = trace(lab, &victim)?;
    for number in 0..3 {
        subject().add(7, number).map_err(say)?;
    }
    subject().many(1, 2, 3, 4, 5, 6, 7, 8).map_err(say)?;
    let events = read(&trace)?;
    let add = number("add")?;
    let mut expected: Vec<Seen> = (0..3).map(|it| (add, [7, it, 0, 0], Some(false))).collect();
    expected.push((number("many")?, [1, 2, 3, 4], Some(false)));
    ensure!(seen(&events) == expected, "{events:?}");
    let (me, now) = (domain_rt::self_id(), domain_rt::time::now());
    for event in &events {
        let both = (event.caller, event.callee);
        ensure!(both == (me, victim.id) && event.time <= now, "{event:?}");
    }
    let interface = INTERFACES.iter().find(|(_, name, _)| *name == "Subject");
    let number = interface.map_or(0, |(number, ..)| *number);
    ensure!(events[0].interface == number, "{:?}", events[0]);
    // In small pieces it is the same.
    let (pieces, lost, next) = read_from(&trace, 0, 1)?;
    ensure!(lost == 0 && pieces == events, "{pieces:?}");
    let (none, ..) = read_from(&trace, next, 64)?;
    ensure!(none.is_empty(), "{none:?} for the second time");
    drop(trace);
    victim.end()
}

fn others(lab: &Lab) -> Verdict {
    let (victim, other) = (lab.start()?, lab.start()?);
    let (one, two) = (trace(lab, &victim)?, trace(lab, &other)?);
    let none = tracer(lab)?.trace(u32::MAX).map_err(say)?;
    black_box(&*other.subject).add(3, 4).map_err(say)?;
    let (first, second) = (read(&one)?, read(&two)?);
    ensure!(first.is_empty(), "{first:?}");
    ensure!(seen(&second).len() == 1, "{second:?}");
    ensure!(read(&none)?.is_empty(), "somebody has the largest number");
    drop((one, two, none));
    victim.end()?;
    other.end()
}

fn died(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let trace = trace(lab, &victim)?;
    let subject: &dyn Subject = black_box(&*victim.subject);
    let answer = subject.misbehave(Misdeed::Panic);
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    victim.gone()?;
    ensure!(subject.null() == Err(RpcError::DomainCrashed), "it lives");
    let events = read(&trace)?;
    let ends: Vec<_> = seen(&events).iter().map(|(_, _, end)| *end).collect();
    ensure!(ends == [Some(true), Some(true)], "{events:?}");
    Ok(())
}

/// How many calls to `victim` are counted when it is called once; together with others if there is
/// no room for names any more.
fn counted(lab: &Lab, victim: &Victim, name: &str) -> Result<u64, String> {
    let sum = || -> Result<u64, String> {
        let (mut calls, mut from) = (0, 0);
        while let Some(count) = lab.monitor.call_count(from).map_err(say)? {
            from = count.index + 1;
            let is_its = count.callee.as_str() == name || count.interface == 0;
            calls += if is_its { count.calls } else { 0 };
        }
        Ok(calls)
    };
    let before = sum()?;
    black_box(&*victim.subject).null().map_err(say)?;
    Ok(sum()? - before)
}

/// Calls are traced as long as somebody wants it: not when he lets go, dies, or others count.
fn ends(lab: &Lab) -> Verdict {
    let spec = DomainSpec {
        name: interfaces::Text::new("traced-by"),
        ..unlimited()
    };
    let victim = lab.start_as(None, spec, b"")?;
    let victim = victim.map_err(|error| format!("no start: {error:?}"))?;
    let count = || counted(lab, &victim, "traced-by");
    ensure!(count()? == 0, "counted while nobody wants it");
    let first = trace(lab, &victim)?;
    ensure!(count()? == 1, "not counted in a trace");
    for how in [
        Counting::Off,
        Counting::Profiled,
        Counting::On,
        Counting::Off,
    ] {
        lab.monitor.count_calls(how).map_err(say)?;
        ensure!(count()? == 1, "{how:?} ended the trace of another");
    }
    let holder = lab.start()?;
    let maker = tracer(lab)?.duplicate().map_err(say)?;
    holder.subject.keep_trace(maker, victim.id).map_err(say)?;
    let before = seen(&read(&first)?).len();
    ensure!(before == 5, "{before} calls in the trace");
    drop(first);
    ensure!(count()? == 1, "one of two has ended both");
    holder.end()?;
    ensure!(count()? == 0, "traced for a dead one");
    lab.monitor.count_calls(Counting::On).map_err(say)?;
    drop(trace(lab, &victim)?);
    let counted = count();
    lab.monitor.count_calls(Counting::Off).map_err(say)?;
    ensure!(counted? == 1, "the end of a trace ended the counting");
    victim.end()
}

/// The last events are those that are kept, and the number of the others is told.
fn overflow(lab: &Lab) -> Verdict {
    const CALLS: u64 = EVENTS;
    let victim = lab.start()?;
    let trace = trace(lab, &victim)?;
    let subject: &dyn Subject = black_box(&*victim.subject);
    // A place in front of all that follow.
    let (_, _, start) = read_from(&trace, 0, 64)?;
    for number in 0..CALLS {
        subject.add(number, 1).map_err(say)?;
    }
    // Piece by piece: all at once is more than may be free in one run.
    let (mut from, mut lost, mut events, mut begun, mut last) = (start, 0, 0, 0_u64, None);
    loop {
        let buffer = RVec::filled(NOTHING, 1024).map_err(say)?;
        let taken = trace.read(from, buffer).map_err(say)?;
        if taken.events.is_empty() {
            break;
        }
        for event in taken.events.iter().filter(|event| event.begun == 0) {
            let number = event.arguments[0];
            let follows = last.is_none_or(|last| last + 1 == number);
            ensure!(follows, "{number} behind {last:?}");
            (last, begun) = (Some(number), begun + 1);
        }
        events += taken.events.len() as u64;
        (from, lost) = (taken.next, lost + taken.lost);
    }
    ensure!(lost >= CALLS, "{lost} of {} events lost", 2 * CALLS);
    ensure!(last == Some(CALLS - 1), "{last:?} is the last");
    // What the reading itself notes is among them, too.
    let all = from - start;
    ensure!(events + lost <= all, "{events} and {lost} of {all}");
    ensure!(begun > EVENTS / 4, "{begun} calls");
    drop(trace);
    victim.end()
}

fn hostile(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let trace = trace(lab, &victim)?;
    black_box(&*victim.subject).add(1, 2).map_err(say)?;
    for from in [1, EVENTS, 1 << 32, 1 << 63, u64::MAX - EVENTS, u64::MAX] {
        for room in [0, 1, 4096] {
            let buffer = RVec::filled(NOTHING, room).map_err(say)?;
            let taken = trace.read(from, buffer).map_err(say)?;
            let known = taken.events.iter().all(|event| event.callee == victim.id);
            ensure!(known && taken.events.len() <= room, "place {from:#x}");
            ensure!(taken.next < 1 << 40 && taken.lost == 0, "place {from:#x}");
        }
    }
    // Who has no room stays where he is.
    let nothing = RVec::filled(NOTHING, 0).map_err(say)?;
    let taken = trace.read(0, nothing).map_err(say)?;
    let (events, ..) = read_from(&trace, taken.next, 64)?;
    ensure!(seen(&events).len() == 1, "{events:?}");
    drop(trace);
    victim.end()
}

/// Traces are charged to who asks for them, and come back with him.
fn limits(lab: &Lab) -> Verdict {
    // The kernel takes its ring once, for good.
    drop(tracer(lab)?.trace(0).map_err(say)?);
    lab.conserves_memory(|| {
        let spec = DomainSpec {
            group_pages: 512,
            ..unlimited()
        };
        let holder = lab.start_as(None, spec, b"")?.map_err(say)?;
        let mut made = 0;
        let refused = loop {
            let maker = tracer(lab)?.duplicate().map_err(say)?;
            match holder.subject.keep_trace(maker, holder.id) {
                Ok(()) => made += 1,
                Err(error) => break error,
            }
            ensure!(made < 100_000, "there is no limit");
        };
        ensure!(refused == RpcError::NoMemory, "{refused:?}");
        let bytes = lab.info(holder.id)?.ok_or("it is gone")?.note_bytes;
        ensure!(bytes >= made * 256, "{bytes} bytes for {made} traces");
        holder.end()
    })
}
