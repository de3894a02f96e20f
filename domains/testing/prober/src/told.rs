//! Memory objects that tell: the first dirty page raises an event, and the end of a load wakes who
//! waits for it, whoever dies meanwhile.

use crate::events::{PATIENCE, bound, maker, wait};
use crate::lab::{Lab, Victim, say, settle, wait_for};
use crate::objects::{ALL, PAGE, READ, bytes, object};
use crate::spaces::{self, AT, WRITE};
use crate::{Test, Verdict, ensure};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{thread, time};
use interfaces::{
    Handle, MemoryError, PageKind, Raiser, RpcError, RpcResult, VmoFill, VmoOwner, VmoRights,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("told-first-dirty-page", first),
    ("told-written-by-a-program", by_program),
    ("told-events-that-are-gone", gone),
    ("told-among-dying-writers", dying),
    ("told-end-of-a-load", loads),
    ("told-waits-for-loads-among-deaths", waiters),
];

/// Has the object raise a new event that is bound to `word`.
fn tell(owner: &Handle<dyn VmoOwner>, raiser: Handle<dyn Raiser>) -> Verdict {
    owner.tell_dirty(Some(raiser)).map_err(say)
}

/// A raiser of this domain's own.
struct Forged;

impl Raiser for Forged {
    fn raise(&self) -> RpcResult<()> {
        Ok(())
    }
}

/// One raise for many writes, and another when somebody has looked.
fn first(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let owner = object(lab, 100, VmoFill::Zero)?;
        let view = owner.view(ALL).map_err(say)?;
        let word = maker(lab)?.word().map_err(say)?;
        let made = bound(lab, &word, 3)?;
        let forged = Handle::<dyn Raiser>::new(Forged).map_err(say)?;
        let answer = owner.tell_dirty(Some(forged));
        ensure!(matches!(answer, Err(MemoryError::Invalid)), "{answer:?}");
        tell(&owner, made.raiser)?;
        ensure!(wait(&word, 4, 0)?.is_empty(), "told before a write");
        view.write(7 * PAGE, &bytes(&[1; 3 * 4096])?).map_err(say)?;
        let told = wait(&word, 4, PATIENCE)?;
        ensure!(told.len() == 1 && told[0].count == 1, "{told:?}");
        let run = owner.clean(0, 100).map_err(say)?;
        ensure!(run == Some((7, 3)), "{run:?} is dirty");
        view.write(8 * PAGE, &bytes(&[2])?).map_err(say)?;
        let told = wait(&word, 4, PATIENCE)?;
        ensure!(told.len() == 1, "not told again: {told:?}");
        owner.tell_dirty(None).map_err(say)?;
        let told = wait(&word, 4, PATIENCE)?;
        let ended = told.first().is_some_and(|told| told.ended);
        ensure!(ended, "the right to raise is still there: {told:?}");
        Ok(())
    })
}

/// A page that a program writes to by its mapping is told like others.
fn by_program(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = spaces::space(lab)? else {
            return Ok(());
        };
        let owner = object(lab, 8, VmoFill::Zero)?;
        spaces::map(&space, AT, &owner, 8, WRITE)?;
        let word = maker(lab)?.word().map_err(say)?;
        let made = bound(lab, &word, 1)?;
        tell(&owner, made.raiser)?;
        spaces::peek(&space, AT).map_err(say)?;
        ensure!(wait(&word, 4, 0)?.is_empty(), "a read was told");
        for round in 1..4 {
            spaces::poke(&space, AT + PAGE, [round; 8]).map_err(say)?;
            let told = wait(&word, 4, PATIENCE)?;
            ensure!(told.len() == 1, "{told:?} in round {round}");
            let run = owner.clean(0, 8).map_err(say)?;
            ensure!(run == Some((1, 1)), "{run:?} is dirty in round {round}");
            owner.commit(1, 1).map_err(say)?;
        }
        Ok(())
    })
}

/// Who made the event is dead, or nobody learns of it any more: writes go on.
fn gone(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let owner = object(lab, 8, VmoFill::Zero)?;
        let view = owner.view(ALL).map_err(say)?;
        let victim = lab.start()?;
        let events = maker(lab)?.duplicate().map_err(say)?;
        let made = victim.subject.make_event(events).map_err(say)?;
        tell(&owner, made.raiser)?;
        victim.end()?;
        drop(made.event);
        for page in 0..8 {
            view.write(page * PAGE, &bytes(&[1])?).map_err(say)?;
            owner.clean(0, 8).map_err(say)?;
        }
        Ok(())
    })
}

/// Domains write, and are ended at any moment. Who looks only when he is told misses nothing.
fn dying(lab: &Lab) -> Verdict {
    const ROUNDS: u64 = 12;
    lab.conserves_memory(|| {
        for round in 0..ROUNDS {
            let owner = object(lab, 40, VmoFill::Zero)?;
            let word = maker(lab)?.word().map_err(say)?;
            let made = bound(lab, &word, 1)?;
            tell(&owner, made.raiser)?;
            let mut victims = Vec::new();
            for seed in 0..3 {
                let victim = lab.start()?;
                let view = owner.view(ALL).map_err(say)?;
                let subject = victim.subject.duplicate().map_err(say)?;
                thread::spawn("churn", move || _ = subject.churn(view, round * 3 + seed))
                    .map_err(say)?;
                victims.push(victim);
            }
            for victim in &victims {
                for _ in 0..3 {
                    let told = wait(&word, 4, PATIENCE)?;
                    ensure!(!told.is_empty(), "nobody told of a write");
                    collect(&owner)?;
                }
                time::sleep(round * 13_000);
                victim.domain.kill().map_err(say)?;
            }
            for victim in victims {
                victim.gone()?;
            }
            let dirty = owner.next(0, PageKind::Dirty).map_err(say)?;
            let told = wait(&word, 4, 0)?;
            let missed = dirty.is_some() && told.is_empty();
            ensure!(!missed, "page {dirty:?} was never told, round {round}");
        }
        settle(lab)
    })
}

fn collect(owner: &Handle<dyn VmoOwner>) -> Verdict {
    while let Some((first, count)) = owner.clean(0, 40).map_err(say)? {
        owner.commit(first, count).map_err(say)?;
    }
    Ok(())
}

/// An end that a load can have.
type End = fn(&Handle<dyn VmoOwner>) -> Result<(), MemoryError>;

/// A wait for a load: not without a right, not beyond the end, not beyond its deadline.
fn loads(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let owner = object(lab, 16, VmoFill::Load)?;
        let view = owner.view(READ).map_err(say)?;
        let nothing = VmoRights {
            read: false,
            ..READ
        };
        let useless = owner.view(nothing).map_err(say)?;
        let answer = useless.await_load(0, None);
        ensure!(matches!(answer, Err(MemoryError::Denied)), "{answer:?}");
        for page in [16, u64::MAX] {
            let answer = view.await_load(page, None);
            ensure!(matches!(answer, Err(MemoryError::Beyond)), "{answer:?}");
        }
        ensure!(view.await_load(0, None) == Ok(true), "nobody loads it");
        owner.load(0, 16).map_err(say)?;
        let begun = time::now();
        let answer = view.await_load(3, Some(begun + 25_000_000));
        ensure!(answer == Ok(false), "{answer:?} with a load under way");
        let past = time::now() - begun;
        ensure!(past >= 25_000_000, "it waited {past} ns only");
        // The ends that a load can have, each for one page.
        let ends: [End; 4] = [
            |owner| owner.end_load(0, &bytes_of_a_page()?).map(drop),
            |owner| owner.break_off(1, 1).map(drop),
            |owner| owner.cut(2, 1).map(drop),
            |owner| owner.set_limit(3),
        ];
        for (page, end) in (0..).zip(ends) {
            let view = view.duplicate().map_err(say)?;
            let done = Arc::new(AtomicU32::new(0));
            let other = done.clone();
            thread::spawn("waits", move || {
                let answer = view.await_load(page, None);
                let woken = matches!(answer, Ok(true) | Err(MemoryError::Beyond));
                other.store(1 + u32::from(woken), Ordering::SeqCst);
            })
            .map_err(say)?;
            time::sleep(3_000_000);
            let early = done.load(Ordering::SeqCst);
            ensure!(early == 0, "page {page}: the wait has ended by itself");
            end(&owner).map_err(say)?;
            wait_for("the end of a wait", || done.load(Ordering::SeqCst) > 0)?;
            let right = done.load(Ordering::SeqCst) == 2;
            ensure!(right, "page {page}: an error");
        }
        settle(lab)
    })
}

fn bytes_of_a_page() -> Result<interfaces::RVec<u8>, MemoryError> {
    interfaces::RVec::filled(7, 4096).map_err(MemoryError::Rpc)
}

fn await_load(victim: &Victim, owner: &Handle<dyn VmoOwner>, told: &Arc<AtomicU32>) -> Verdict {
    let view = owner.view(READ).map_err(say)?;
    let subject = victim.subject.duplicate().map_err(say)?;
    let told = told.clone();
    thread::spawn("waits", move || {
        let code = match subject.await_load(view, 0) {
            Ok(true) => 1,
            Err(RpcError::DomainCrashed) => 100,
            _ => 10_000,
        };
        told.fetch_add(code, Ordering::SeqCst);
    })
    .map_err(say)
}

/// Two wait for a page; one of them dies, and then the loader: the other goes on.
fn waiters(lab: &Lab) -> Verdict {
    const ROUNDS: u64 = 10;
    lab.conserves_memory(|| {
        for round in 0..ROUNDS {
            let owner = object(lab, 4, VmoFill::Load)?;
            let (loader, one, other) = (lab.start()?, lab.start()?, lab.start()?);
            let copy = owner.duplicate().map_err(say)?;
            let begun = loader.subject.begin_load(copy, 0, 4).map_err(say)?;
            ensure!(begun == 4, "{begun} pages are loaded");
            let told = Arc::new(AtomicU32::new(0));
            await_load(&one, &owner, &told)?;
            await_load(&other, &owner, &told)?;
            time::sleep(round * 150_000);
            one.end()?;
            wait_for("a dead one to leave", || told.load(Ordering::SeqCst) == 100)?;
            loader.domain.kill().map_err(say)?;
            wait_for("the end of a load", || told.load(Ordering::SeqCst) != 100)?;
            let code = told.load(Ordering::SeqCst);
            ensure!(code == 101, "the waits ended with {code}");
            loader.gone()?;
            let again = owner.load(0, 1).map_err(say)?;
            ensure!(again == 1, "it cannot be loaded again");
            owner.break_off(0, 1).map_err(say)?;
            other.end()?;
        }
        settle(lab)
    })
}
