//! Memory: what a dead domain owned comes back, budgets hold, and no domain takes the others' memory along.

use crate::lab::{Lab, say};
use crate::{Test, Verdict, ensure};
use alloc::vec::Vec;
use domain_rt::time;
use interfaces::{Misdeed, RRef, RpcError};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("memory-private-heap-comes-back", private),
    ("memory-shared-objects-come-back", shared),
    ("memory-nested-objects-come-back", nested),
    ("memory-small-objects-share-pages", small_objects),
    ("memory-budget-of-private-heap", private_budget),
    ("memory-hoarding-private-heap", |lab| {
        hoard(lab, Misdeed::HoardPrivate)
    }),
    ("memory-hoarding-shared-heap", |lab| {
        hoard(lab, Misdeed::HoardShared)
    }),
    ("memory-death-of-a-rich-domain", rich),
    ("memory-a-hundred-lives", hundred_lives),
];

fn private(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        victim.subject.grow(3_000_000).map_err(say)?;
        let heap = lab.info(victim.id)?.map_or(0, |info| info.heap_bytes);
        ensure!(heap >= 3_000_000, "{heap} bytes of heap");
        victim.end()
    })
}

fn shared(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        for _ in 0..500 {
            victim
                .subject
                .keep(RRef::new([1; 64]).map_err(say)?)
                .map_err(say)?;
        }
        let owned = lab.info(victim.id)?.map_or(0, |info| info.shared_objects);
        ensure!(owned == 500, "{owned} objects");
        victim.end()
    })
}

fn nested(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        for value in 0..100 {
            let nest = victim.subject.make_nest(value).map_err(say)?;
            victim.subject.keep_nest(nest).map_err(say)?;
        }
        let owned = lab.info(victim.id)?.map_or(0, |info| info.shared_objects);
        ensure!(owned == 500, "{owned} objects");
        victim.end()
    })
}

fn small_objects(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let before = lab.info(victim.id)?.map_or(0, |info| info.heap_bytes);
    (0..1000)
        .try_for_each(|_| victim.subject.grow(16).map(drop))
        .map_err(say)?;
    let after = lab.info(victim.id)?.map_or(0, |info| info.heap_bytes);
    ensure!(
        after - before <= 512 * 1024,
        "1,000 objects of 16 bytes took {} bytes",
        after - before
    );
    victim.end()
}

fn private_budget(lab: &Lab) -> Verdict {
    let started = lab.start_limited(None, 64, 0, b"")?;
    let victim = started.map_err(say)?;
    let grown = victim.subject.grow(64 * 4096);
    ensure!(grown == Err(RpcError::NoMemory), "{grown:?} over budget");
    ensure!(
        victim.subject.add(1, 1) == Ok(2),
        "asking for too much ended it"
    );
    victim.end()
}

fn hoard(lab: &Lab, how: Misdeed) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let answer = victim.subject.misbehave(how);
        ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
        victim.gone().map(drop)
    })
}

fn rich(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let answer = victim.subject.misbehave(Misdeed::PanicRich);
        ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
        victim.gone().map(drop)
    })
}

fn hundred_lives(lab: &Lab) -> Verdict {
    let live = || {
        let victim = lab.start()?;
        victim.subject.make_nest(1).map_err(say)?;
        ensure!(
            victim.subject.misbehave(Misdeed::Panic).is_err(),
            "it lives"
        );
        victim.gone().map(drop)
    };
    (0..10).try_for_each(|_| live())?;
    let mut free: Vec<u64> = Vec::new();
    for _ in 0..100 {
        live()?;
        time::sleep(1000);
        free.push(lab.free()?);
    }
    ensure!(
        free.first() <= free.last(),
        "{} bytes free, then {}",
        free[0],
        free[99]
    );
    Ok(())
}
