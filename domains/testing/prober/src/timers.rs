//! Timers: never before their time, never lost, never after their domain.

use crate::lab::{Lab, say, settle, unlimited, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use domain_rt::{thread, time};
use interfaces::{
    DomainSpec, Event, Events, Fired, Handle, NewEvent, RVec, Raiser, RpcError, RpcResult, Timer,
    TimerError, TimerState, WaitWord,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("timers-values", values),
    ("timers-ten-thousand-not-before-their-time", many),
    ("timers-periods", periods),
    ("timers-outlive-their-events", orphans),
    ("timers-limits-of-a-group", limits),
    ("timers-go-with-their-domain", deaths),
    ("timers-in-a-flood", flood),
];

const NONE: Fired = Fired {
    tag: 0,
    count: 0,
    ended: false,
};
/// Longer than anything here takes; in nanoseconds.
const PATIENCE: u64 = 20_000_000_000;
const MS: u64 = 1_000_000;
/// The shortest period that the interface has.
const SHORTEST: u64 = 100_000;
const MANY: usize = 10_000;

fn maker(lab: &Lab) -> Result<&Handle<dyn Events>, String> {
    let maker = lab.events.as_ref();
    maker.ok_or_else(|| "nobody makes events".into())
}

fn timer(lab: &Lab, raiser: &Handle<dyn Raiser>) -> Result<Handle<dyn Timer>, String> {
    let raiser = raiser.duplicate().map_err(say)?;
    maker(lab)?.timer(raiser).map_err(say)
}

/// A timer for an event of its own.
fn alone(lab: &Lab) -> Result<(Handle<dyn Timer>, NewEvent), String> {
    let made = maker(lab)?.event().map_err(say)?;
    Ok((timer(lab, &made.raiser)?, made))
}

fn taken(event: &Handle<dyn Event>) -> Result<u64, String> {
    Ok(event.take().map_err(say)?.count)
}

/// Waits until the event was raised; how often.
fn await_raise(event: &Handle<dyn Event>) -> Result<u64, String> {
    let mut count = 0;
    wait_for("a timer", || {
        count = event.take().map_or(0, |raised| raised.count);
        count > 0
    })?;
    Ok(count)
}

fn unset() -> TimerState {
    TimerState {
        is_set: false,
        deadline: 0,
        overruns: 0,
    }
}

fn set_until(timer: &Handle<dyn Timer>, deadline: u64) -> Verdict {
    let state = timer.state().map_err(say)?;
    ensure!(state.is_set && state.deadline == deadline, "{state:?}");
    Ok(())
}

/// A raiser of this domain's own, which the kernel must not take for one of its own.
struct Forged;

impl Raiser for Forged {
    fn raise(&self) -> RpcResult<()> {
        Ok(())
    }
}

/// Deadlines and periods at the ends of their ranges; what is refused changes nothing.
fn values(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let forged = Handle::<dyn Raiser>::new(Forged).map_err(say)?;
        let answer = maker(lab)?.timer(forged);
        let refused = matches!(answer, Err(TimerError::NoRaiser));
        ensure!(refused, "another's raiser was taken");
        let (timer, NewEvent { event, .. }) = alone(lab)?;
        ensure!(timer.cancel() == Ok(false), "it was set by nobody");
        for deadline in [0, 1, time::now() - 1, time::now()] {
            timer.set(deadline, None).map_err(say)?;
            let count = await_raise(&event)?;
            ensure!(count == 1, "{count} raises for {deadline}");
            ensure!(timer.state() == Ok(unset()), "it is set for ever");
        }
        timer.set(u64::MAX, None).map_err(say)?;
        set_until(&timer, u64::MAX)?;
        for period in [0, 1, SHORTEST - 1] {
            let answer = timer.set(0, Some(period));
            let refused = matches!(answer, Err(TimerError::TooShort));
            ensure!(refused, "a period of {period}: {answer:?}");
            set_until(&timer, u64::MAX)?;
        }
        ensure!(timer.cancel() == Ok(true), "it was set");
        ensure!(timer.cancel() == Ok(false), "it was cancelled twice");
        // Its second deadline is later than the clock can show.
        timer.set(0, Some(u64::MAX)).map_err(say)?;
        let count = await_raise(&event)?;
        ensure!(count == 1, "{count} raises");
        ensure!(timer.state() == Ok(unset()), "it is set for ever");
        time::sleep(5 * MS);
        let count = taken(&event)?;
        ensure!(count == 0, "{count} raises of what was cancelled");
        Ok(())
    })
}

/// A timer, its event, and when it has to come; `None`: it was cancelled.
type Set = (Handle<dyn Timer>, NewEvent, Option<u64>);

/// 10,000 timers, many of them moved and some cancelled: each of the others is told once, and not
/// before its time.
fn many(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let word = maker(lab)?.word().map_err(say)?;
        let mut all = Vec::new();
        for tag in 0..MANY {
            let (timer, made) = alone(lab)?;
            let word = word.duplicate().map_err(say)?;
            made.event.bind(word, tag as u64).map_err(say)?;
            all.push((timer, made, None));
        }
        set_all(&mut all)?;
        told_once(&word, &all)?;
        drop(all);
        settle(lab)
    })
}

/// A number below [`MANY`], another one for each.
fn shuffled(number: usize) -> u64 {
    (number * 7_919 % MANY) as u64
}

/// Sets all, so that some are due before the last one is set, and moves or cancels some.
fn set_all(all: &mut [Set]) -> Verdict {
    let base = time::now() + 20 * MS;
    for (number, (timer, _, planned)) in all.iter_mut().enumerate().rev() {
        // Those are moved below, and are never due before.
        let far = (number % 7 == 0).then_some(base + PATIENCE);
        let deadline = far.unwrap_or(base + shuffled(number) * 60_000);
        timer.set(deadline, None).map_err(say)?;
        *planned = Some(deadline);
    }
    for (number, (timer, _, planned)) in all.iter_mut().enumerate() {
        if number % 14 == 0 {
            ensure!(timer.cancel() == Ok(true), "{number} was not set");
        }
        if number % 7 == 0 {
            let deadline = time::now() + shuffled(number) * 9_000;
            timer.set(deadline, None).map_err(say)?;
            *planned = Some(deadline);
        }
        if number % 7 == 1 {
            // It may have been due by now.
            timer.cancel().map_err(say)?;
            *planned = None;
        }
    }
    Ok(())
}

/// Waits until each timer with a deadline has been told.
fn told_once(word: &Handle<dyn WaitWord>, all: &[Set]) -> Verdict {
    let mut counts = vec![0; all.len()];
    let mut left = all.iter().filter(|set| set.2.is_some()).count();
    while left > 0 {
        let room = RVec::filled(NONE, 256).map_err(say)?;
        let deadline = time::now().saturating_add(PATIENCE);
        let told = word.wait(Some(deadline), room).map_err(say)?;
        ensure!(!told.is_empty(), "{left} timers were never due");
        let now = time::now();
        for fired in told.iter() {
            let number = fired.tag as usize;
            ensure!(!fired.ended, "{number} has ended");
            counts[number] += fired.count;
            if let Some(deadline) = all[number].2 {
                ensure!(now >= deadline, "{number} at {now}, before {deadline}");
                left = left.saturating_sub(1);
            }
        }
    }
    time::sleep(5 * MS);
    let told = word.wait(Some(0), RVec::filled(NONE, 256).map_err(say)?);
    let more = told
        .map_err(say)?
        .iter()
        .any(|it| all[it.tag as usize].2.is_some());
    ensure!(!more, "a timer was told twice");
    for (number, (timer, _, deadline)) in all.iter().enumerate() {
        let count = counts[number];
        let is_right = count == 1 || (count == 0 && deadline.is_none());
        ensure!(is_right, "{number} was raised {count} times");
        let state = timer.state();
        ensure!(state == Ok(unset()), "{number} is set: {state:?}");
    }
    Ok(())
}

/// Waits until nobody raises the event any more; how often it was until then. What was due when its
/// timer was cancelled may still come.
fn last_raises(event: &Handle<dyn Event>) -> Result<u64, String> {
    let mut all = 0;
    for _ in 0..200 {
        time::sleep(5 * MS);
        match taken(event)? {
            0 => return Ok(all),
            count => all += count,
        }
    }
    Err("a timer that was cancelled goes on".into())
}

/// A period is counted as often as it has passed, and no more often.
fn periods(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        for period in [SHORTEST, 333_333, 2 * MS] {
            let (timer, NewEvent { event, .. }) = alone(lab)?;
            let first = time::now() + 3 * MS;
            timer.set(first, Some(period)).map_err(say)?;
            let mut count = 0;
            while count < 40 {
                count += await_raise(&event)?;
                let passed = (time::now() - first) / period + 1;
                ensure!(count <= passed, "{count} of {passed} periods");
            }
            let state = timer.state().map_err(say)?;
            let phase = (state.deadline - first) % period;
            ensure!(state.is_set && phase == 0, "{state:?} after {first}");
            ensure!(timer.cancel() == Ok(true), "it was set");
            count += last_raises(&event)?;
            let passed = (time::now() - first) / period + 1;
            ensure!(count <= passed, "{count} of {passed} periods");
            let state = timer.state().map_err(say)?;
            let within = !state.is_set && state.overruns < count;
            ensure!(within, "{state:?} of {count}");
        }
        Ok(())
    })
}

/// A timer keeps its event from ending, and nothing comes of one whose event nobody waits for.
fn orphans(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (timer, made) = alone(lab)?;
        drop(made.raiser);
        let raised = made.event.take().map_err(say)?;
        ensure!(!raised.ended, "it ended before its timer");
        drop(timer);
        let raised = made.event.take().map_err(say)?;
        ensure!(raised.ended && raised.count == 0, "{raised:?}");
        // Both of the event's rights were the dead domain's.
        let victim = lab.start()?;
        let events = maker(lab)?.duplicate().map_err(say)?;
        let theirs = victim.subject.make_event(events).map_err(say)?;
        let word = maker(lab)?.word().map_err(say)?;
        let other = word.duplicate().map_err(say)?;
        theirs.event.bind(other, 1).map_err(say)?;
        let orphan = self::timer(lab, &theirs.raiser)?;
        let bound = self::timer(lab, &theirs.raiser)?;
        victim.end()?;
        orphan.set(0, Some(SHORTEST)).map_err(say)?;
        drop((theirs, word));
        bound.set(time::now() + MS, None).map_err(say)?;
        wait_for("a timer without an event", || bound.state() == Ok(unset()))?;
        ensure!(orphan.cancel() == Ok(true), "it was set");
        Ok(())
    })
}

/// Timers are charged to who makes them, whoever holds them and whatever they are set to.
fn limits(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let spec = DomainSpec {
            group_pages: 512,
            ..unlimited()
        };
        let victim = lab.start_as(None, spec, b"")?.map_err(say)?;
        let NewEvent { raiser, event } = maker(lab)?.event().map_err(say)?;
        let make = || {
            let events = maker(lab).map_err(|_| RpcError::Refused)?.duplicate()?;
            victim.subject.make_timer(events, raiser.duplicate()?)
        };
        let mut made = Vec::new();
        let refused = loop {
            match make() {
                Ok(timer) => made.push(timer),
                Err(error) => break error,
            }
        };
        let is_memory = matches!(refused, TimerError::Rpc(RpcError::NoMemory));
        ensure!(is_memory, "{refused:?}");
        let bytes = lab.info(victim.id)?.ok_or("it is gone")?.note_bytes;
        // As much is for the handle to each.
        let least = made.len() as u64 * 2 * 256;
        ensure!(bytes >= least, "{bytes} bytes for {} timers", made.len());
        // Setting takes nothing, so the limit is no hindrance.
        for timer in &made {
            timer.set(0, None).map_err(say)?;
        }
        let mut count = 0;
        wait_for("all timers", || {
            count += event.take().map_or(0, |raised| raised.count);
            count >= made.len() as u64
        })?;
        ensure!(count == made.len() as u64, "{count} raises");
        made.clear();
        let again = make().map(drop);
        ensure!(again.is_ok(), "{again:?} when all are gone");
        victim.end()
    })
}

/// A domain with 10,000 timers dies, and others while they make theirs: all are cancelled, and all
/// memory comes back.
fn deaths(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let NewEvent { raiser, event } = maker(lab)?.event().map_err(say)?;
        for (deadline, period) in [(PATIENCE, None), (0, Some(MS)), (u64::MAX, Some(u64::MAX))] {
            let victim = lab.start()?;
            let events = maker(lab)?.duplicate().map_err(say)?;
            let raiser = raiser.duplicate().map_err(say)?;
            let deadline = time::now().saturating_add(deadline);
            let count = MANY as u64;
            let kept = victim
                .subject
                .keep_timers(events, raiser, count, deadline, period);
            ensure!(kept == Ok(count), "{kept:?} timers");
            victim.end()?;
            last_raises(&event)?;
        }
        for round in 0..10 {
            die_while_making(lab, &raiser, round)?;
            last_raises(&event)?;
        }
        drop(raiser);
        ensure!(event.take().map_err(say)?.ended, "somebody has a timer");
        settle(lab)
    })
}

fn die_while_making(lab: &Lab, raiser: &Handle<dyn Raiser>, round: u64) -> Verdict {
    let victim = lab.start()?;
    let events = maker(lab)?.duplicate().map_err(say)?;
    let raiser = raiser.duplicate().map_err(say)?;
    let subject = victim.subject.duplicate().map_err(say)?;
    thread::spawn("of a victim", move || {
        let _ = subject.keep_timers(events, raiser, MANY as u64, 0, Some(SHORTEST));
    })
    .map_err(say)?;
    time::sleep(100_000 + round * 337_000);
    victim.domain.kill().map_err(say)?;
    victim.gone().map(drop)
}

/// A domain has more timers due than anybody can raise: a timer of another one still comes, and
/// calls go on.
fn flood(lab: &Lab) -> Verdict {
    const FLOOD: u64 = 2000;
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let NewEvent { raiser, event } = maker(lab)?.event().map_err(say)?;
        let events = maker(lab)?.duplicate().map_err(say)?;
        let kept = victim.subject.keep_timers(
            events,
            raiser.duplicate().map_err(say)?,
            FLOOD,
            0,
            Some(SHORTEST),
        );
        ensure!(kept == Ok(FLOOD), "{kept:?} timers");
        let (timer, own) = alone(lab)?;
        for round in 0..20 {
            let deadline = time::now() + round * 100_000;
            timer.set(deadline, None).map_err(say)?;
            let count = await_raise(&own.event)?;
            ensure!(count == 1, "{count} raises");
            ensure!(time::now() >= deadline, "before its time");
        }
        let count = taken(&event)?;
        ensure!(count >= FLOOD, "{count} raises of {FLOOD} timers");
        victim.end()?;
        last_raises(&event).map(drop)
    })
}
