//! Events: told once and to one, by one wait over many, whoever dies meanwhile.

use crate::lab::{Lab, Victim, say, settle, unlimited};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{thread, time};
use interfaces::{
    BindError, DomainSpec, Events, Fired, Handle, NewEvent, RVec, Raised, Raiser, RpcError,
    RpcResult, WaitWord,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("events-are-told-once", once),
    ("events-end-with-their-raisers", ended),
    ("events-bindings", bindings),
    ("events-ten-thousand-in-one-wait", many),
    ("events-limits-of-a-group", limits),
    ("events-among-dying-domains", dying),
];

const NONE: Fired = Fired {
    tag: 0,
    count: 0,
    ended: false,
};
/// Longer than anything here takes; in nanoseconds.
pub const PATIENCE: u64 = 20_000_000_000;

pub fn maker(lab: &Lab) -> Result<&Handle<dyn Events>, String> {
    lab.events
        .as_ref()
        .ok_or_else(|| "nobody makes events".into())
}

/// A new event that is bound to `word`.
pub fn bound(lab: &Lab, word: &Handle<dyn WaitWord>, tag: u64) -> Result<NewEvent, String> {
    let made = maker(lab)?.event().map_err(say)?;
    let word = word.duplicate().map_err(say)?;
    made.event.bind(word, tag).map_err(say)?;
    Ok(made)
}

/// What a wait of at most `patience` tells, with room for so many.
pub fn wait(word: &Handle<dyn WaitWord>, room: usize, patience: u64) -> Result<Vec<Fired>, String> {
    let fired = RVec::filled(NONE, room).map_err(say)?;
    let deadline = time::now().saturating_add(patience);
    let fired = word.wait(Some(deadline), fired).map_err(say)?;
    Ok(fired.to_vec())
}

fn fired(tag: u64, count: u64) -> Fired {
    Fired {
        tag,
        count,
        ended: false,
    }
}

/// Raises are counted and told once, in the order of the first; a wait for nothing ends with its
/// deadline and not before.
fn once(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let word = maker(lab)?.word().map_err(say)?;
        let (one, other) = (bound(lab, &word, 7)?, bound(lab, &word, u64::MAX)?);
        for raiser in [&other.raiser, &one.raiser, &other.raiser] {
            raiser.raise().map_err(say)?;
        }
        let told = wait(&word, 8, PATIENCE)?;
        let expected = [fired(u64::MAX, 2), fired(7, 1)];
        ensure!(told == expected, "{told:?}");
        let begun = time::now();
        let told = wait(&word, 8, 3_000_000)?;
        let past = time::now() - begun;
        ensure!(told.is_empty(), "told twice: {told:?}");
        ensure!(past >= 3_000_000, "it waited {past} ns only");
        one.raiser.raise().map_err(say)?;
        let taken = one.event.take().map_err(say)?;
        let expected = Raised {
            count: 1,
            ended: false,
        };
        ensure!(taken == expected, "{taken:?}");
        let told = wait(&word, 8, 0)?;
        ensure!(told.is_empty(), "told after it was taken: {told:?}");
        let told = wait(&word, 0, PATIENCE)?;
        ensure!(told.is_empty(), "told without room: {told:?}");
        Ok(())
    })
}

/// An event ends with the last handle with which it could be raised, also by a death.
fn ended(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let word = maker(lab)?.word().map_err(say)?;
        let made = bound(lab, &word, 1)?;
        let second = made.raiser.duplicate().map_err(say)?;
        made.raiser.raise().map_err(say)?;
        drop(made.raiser);
        let told = wait(&word, 8, PATIENCE)?;
        ensure!(told == [fired(1, 1)], "{told:?}");
        let victim = lab.start()?;
        let raised = victim.subject.raise_often(second, 3).map_err(say)?;
        ensure!(raised == 3, "{raised} raises");
        let told = wait(&word, 8, PATIENCE)?;
        let count: u64 = told.iter().map(|fired| fired.count).sum();
        let last = told.last().is_some_and(|fired| fired.ended);
        ensure!(count == 3 && last, "{told:?}");
        victim.end()
    })
}

/// A word of this domain's own, which the kernel must not take for one of its own.
struct Forged;

impl WaitWord for Forged {
    fn wait(&self, _: Option<u64>, fired: RVec<Fired>) -> RpcResult<RVec<Fired>> {
        Ok(fired)
    }
}

/// What can be bound, how often, and what becomes of the count.
fn bindings(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let word = maker(lab)?.word().map_err(say)?;
        let made = maker(lab)?.event().map_err(say)?;
        made.raiser.raise().map_err(say)?;
        let forged = Handle::<dyn WaitWord>::new(Forged).map_err(say)?;
        let answer = made.event.bind(forged, 0);
        ensure!(matches!(answer, Err(BindError::NoWord)), "{answer:?}");
        let bind = |tag| made.event.bind(word.duplicate()?, tag);
        bind(5).map_err(say)?;
        let answer = bind(6);
        ensure!(matches!(answer, Err(BindError::Bound)), "{answer:?}");
        made.raiser.raise().map_err(say)?;
        ensure!(made.event.unbind() == Ok(true), "it was bound");
        ensure!(made.event.unbind() == Ok(false), "it was bound twice");
        let told = wait(&word, 4, 0)?;
        ensure!(told.is_empty(), "told without a binding: {told:?}");
        bind(8).map_err(say)?;
        let told = wait(&word, 4, PATIENCE)?;
        ensure!(told == [fired(8, 2)], "{told:?}");
        drop(word);
        made.raiser.raise().map_err(say)?;
        let next = maker(lab)?.word().map_err(say)?;
        let other = next.duplicate().map_err(say)?;
        made.event.bind(other, 9).map_err(say)?;
        made.raiser.raise().map_err(say)?;
        let told = wait(&next, 4, PATIENCE)?;
        ensure!(told == [fired(9, 1)], "{told:?}");
        Ok(())
    })
}

/// 10,000 events, raised by four threads, and one wait: each raise is told exactly once.
fn many(lab: &Lab) -> Verdict {
    const EVENTS: usize = 10_000;
    const RAISERS: usize = 4;
    const ROUNDS: usize = 3;
    lab.conserves_memory(|| {
        let word = maker(lab)?.word().map_err(say)?;
        let mut events = Vec::new();
        let mut raisers: Vec<Vec<Handle<dyn Raiser>>> = Vec::new();
        raisers.resize_with(RAISERS, Vec::new);
        for tag in 0..EVENTS {
            let made = bound(lab, &word, tag as u64)?;
            raisers[tag % RAISERS].push(made.raiser);
            events.push(made.event);
        }
        let wrong = Arc::new(AtomicU32::new(0));
        for own in raisers {
            let wrong = wrong.clone();
            let raise = move || {
                for round in 0..ROUNDS {
                    let all = own.iter().rev().skip(round * 7);
                    let failed = all.filter(|raiser| raiser.raise().is_err()).count();
                    wrong.fetch_add(failed as u32, Ordering::SeqCst);
                }
            };
            thread::spawn("raiser", raise).map_err(say)?;
        }
        let (counts, ends) = count(&word, EVENTS)?;
        ensure!(wrong.load(Ordering::SeqCst) == 0, "raises failed");
        ensure!(ends.iter().all(|&ends| ends == 1), "ends were told twice");
        for (tag, &count) in counts.iter().enumerate() {
            let from_the_end = (EVENTS - 1 - tag) / RAISERS;
            let rounds = (from_the_end / 7 + 1).min(ROUNDS) as u64;
            ensure!(count == rounds, "event {tag}: {count} of {rounds} raises");
        }
        drop(events);
        settle(lab)
    })
}

/// Waits until all events have ended: how often each was raised, and how often it ended.
fn count(word: &Handle<dyn WaitWord>, events: usize) -> Result<(Vec<u64>, Vec<u32>), String> {
    let (mut counts, mut ends) = (Vec::new(), Vec::new());
    counts.resize(events, 0);
    ends.resize(events, 0);
    let mut left = events;
    while left > 0 {
        let told = wait(word, 256, PATIENCE)?;
        ensure_told(&told)?;
        for fired in told {
            counts[fired.tag as usize] += fired.count;
            ends[fired.tag as usize] += u32::from(fired.ended);
            left = left.saturating_sub(usize::from(fired.ended));
        }
    }
    let told = wait(word, 256, 0)?;
    ensure!(told.is_empty(), "told behind the end: {told:?}");
    Ok((counts, ends))
}

fn ensure_told(told: &[Fired]) -> Verdict {
    ensure!(!told.is_empty(), "a wait was not woken");
    Ok(())
}

/// Events are charged to who makes them, as long as anybody holds them.
fn limits(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let spec = DomainSpec {
            group_pages: 512,
            ..unlimited()
        };
        let victim = lab.start_as(None, spec, b"")?.map_err(say)?;
        let mut made = Vec::new();
        let refused = loop {
            let events = maker(lab)?.duplicate().map_err(say)?;
            match victim.subject.make_event(events) {
                Ok(event) => made.push(event),
                Err(error) => break error,
            }
        };
        ensure!(refused == RpcError::NoMemory, "{refused:?}");
        let bytes = lab.info(victim.id)?.ok_or("it is gone")?.note_bytes;
        let least = made.len() as u64 * 256;
        ensure!(bytes >= least, "{bytes} bytes for {} events", made.len());
        made.clear();
        let events = maker(lab)?.duplicate().map_err(say)?;
        let again = victim.subject.make_event(events).map(drop);
        ensure!(again == Ok(()), "{again:?} when all are gone");
        victim.end()
    })
}

/// A domain that waits, and one that raises, each ended at any moment: who is left learns of all
/// that concerns him, and nothing is lost.
fn dying(lab: &Lab) -> Verdict {
    const ROUNDS: u64 = 30;
    lab.conserves_memory(|| {
        (0..ROUNDS).try_for_each(|round| die(lab, round))?;
        settle(lab)
    })
}

pub fn begin(body: impl FnOnce(&Victim) + Send + 'static, of: &Victim) -> Verdict {
    let subject = of.subject.duplicate().map_err(say)?;
    let domain = of.domain.duplicate().map_err(say)?;
    let id = of.id;
    let own = Victim {
        subject,
        domain,
        id,
    };
    thread::spawn("of a victim", move || body(&own)).map_err(say)
}

fn die(lab: &Lab, round: u64) -> Verdict {
    let word = maker(lab)?.word().map_err(say)?;
    let shared = word.duplicate().map_err(say)?;
    let (waiter, raiser) = (lab.start()?, lab.start()?);
    begin(
        move |victim| {
            let _ = victim.subject.await_events(shared);
        },
        &waiter,
    )?;
    let theirs = bound(lab, &word, 1)?;
    let of_victim = theirs.raiser;
    begin(
        move |victim| {
            let _ = victim.subject.raise_often(of_victim, u64::MAX);
        },
        &raiser,
    )?;
    time::sleep(100_000 + round * 37_000);
    waiter.domain.kill().map_err(say)?;
    // From here on only this domain waits. Raises go on.
    waiter.gone()?;
    let told = wait(&word, 4, PATIENCE)?;
    ensure_told(&told)?;
    let own = bound(lab, &word, 2)?;
    own.raiser.raise().map_err(say)?;
    time::sleep(round * 11_000);
    raiser.domain.kill().map_err(say)?;
    let (mut ended, mut raised) = (false, 0);
    while !ended || raised == 0 {
        let told = wait(&word, 4, PATIENCE)?;
        ensure_told(&told)?;
        for fired in told {
            ended |= fired.tag == 1 && fired.ended;
            raised += if fired.tag == 2 { fired.count } else { 0 };
        }
    }
    ensure!(raised == 1, "{raised} of one raise");
    let told = wait(&word, 4, 0)?;
    ensure!(told.is_empty(), "told behind the end: {told:?}");
    raiser.gone().map(drop)
}
