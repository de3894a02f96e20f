//! A domain that has no more memory: it refuses calls and lives, and works again when there is
//! some.

use crate::lab::{Lab, Victim, say, settle, unlimited, wait_for};
use crate::memory::all_memory;
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{memory, thread, time};
use interfaces::{DomainSpec, RpcError};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("short-of-memory-refuses-calls", refuses),
    (
        "short-of-memory-has-what-processors-kept",
        kept_by_processors,
    ),
    ("short-of-memory-lives-on-its-reserve", reserve_is_enough),
    ("short-of-memory-when-all-is-taken", all_taken),
    ("short-of-memory-and-crashed", crashed),
    ("short-of-memory-counts-calls", counts),
];

/// Private memory of a victim, in pages: its reserve, and as much again.
const PAGES: u64 = 128;

/// A victim with a reserve and little else.
fn hardy(lab: &Lab, spec: DomainSpec) -> Result<Victim, String> {
    let started = lab.start_as(None, spec, b"reserve")?;
    started.map_err(|error| format!("no start: {error:?}"))
}

fn little() -> DomainSpec {
    DomainSpec {
        page_limit: PAGES,
        ..unlimited()
    }
}

/// Has it keep small objects until it refuses; how many hundreds.
fn fill(victim: &Victim) -> Result<u32, String> {
    for hundreds in 0..1_000_000 {
        match victim.subject.gather(100) {
            Ok(()) => {}
            Err(RpcError::NoMemory) => return Ok(hundreds),
            Err(error) => return Err(format!("{error:?} after {hundreds} calls")),
        }
    }
    Err("there is no end of memory".into())
}

/// Has it free everything, and waits until it lets calls in.
fn empty(victim: &Victim) -> Verdict {
    victim.subject.shed().map_err(say)?;
    wait_for("the domain to let calls in again", || {
        victim.subject.null() == Ok(())
    })
}

/// Again and again, and no less each time: what was freed in small pieces is memory again.
fn refuses(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = hardy(lab, little())?;
        let first = fill(&victim)?;
        for _ in 0..3 {
            let refused = victim.subject.null();
            ensure!(refused == Err(RpcError::NoMemory), "{refused:?} when short");
            empty(&victim)?;
            let grown = victim.subject.grow(30_000);
            ensure!(grown.is_ok(), "{grown:?} in one piece");
            empty(&victim)?;
            let again = fill(&victim)?;
            ensure!(again + 1 >= first, "{again} hundreds after {first}");
        }
        victim.end()
    })
}

/// Four threads leave small objects of the domain with their processors, of sizes that are not
/// asked for any more: they are memory again when there is no other.
fn kept_by_processors(lab: &Lab) -> Verdict {
    /// What of each size is made: more than a processor keeps.
    const EACH: u32 = 40;
    lab.conserves_memory(|| {
        let victim = hardy(lab, little())?;
        let first = fill(&victim)?;
        empty(&victim)?;
        let left = Arc::new(AtomicU32::new(4));
        for _ in 0..4 {
            let (left, subject) = (left.clone(), victim.subject.duplicate().map_err(say)?);
            let body = move || {
                let end = time::now() + 200_000_000;
                // Where two meet, processors begin to keep something.
                while time::now() < end {
                    let _ = subject.scratch();
                }
                for bytes in [100, 200, 400] {
                    (0..EACH).for_each(|_| _ = subject.grow(bytes));
                    let _ = subject.shed();
                }
                left.fetch_sub(1, Ordering::SeqCst);
            };
            thread::spawn("user", body).map_err(say)?;
        }
        wait_for("the threads", || left.load(Ordering::SeqCst) == 0)?;
        settle(lab)?;
        let again = fill(&victim)?;
        ensure!(again + 1 >= first, "{again} hundreds after {first}");
        victim.end()
    })
}

/// Half of the reserve is there for calls that free. Who takes more than that ends.
fn reserve_is_enough(lab: &Lab) -> Verdict {
    let victim = hardy(lab, little())?;
    fill(&victim)?;
    // Of 128 KiB the last call but one took a hundred objects at most.
    let rest = (128 * 1024 / 64) - 100;
    let taken = victim.subject.gather_more(rest);
    ensure!(taken == Ok(()), "{taken:?} within the reserve");
    let larger = victim.subject.null();
    ensure!(larger == Err(RpcError::NoMemory), "{larger:?} when short");
    empty(&victim)?;
    fill(&victim)?;
    let more = victim.subject.gather_more(10 * rest);
    ensure!(more == Err(RpcError::DomainCrashed), "{more:?} beyond it");
    victim.gone().map(drop)
}

/// Not its own limit is reached, but that of the machine; another domain has all.
fn all_taken(lab: &Lab) -> Verdict {
    memory::reserve(256).map_err(say)?;
    let victim = hardy(lab, unlimited())?;
    // Where memory has no end it is of no use to look for it.
    if lab.memory.is_none() {
        return victim.end();
    }
    let rest = all_memory();
    let refused = fill(&victim).map(drop);
    let answer = victim.subject.add(1, 1);
    drop(rest);
    refused?;
    ensure!(answer == Err(RpcError::NoMemory), "{answer:?} when short");
    empty(&victim)?;
    victim.end()
}

/// An operator's wish comes before want of memory.
fn crashed(lab: &Lab) -> Verdict {
    let victim = hardy(lab, little())?;
    fill(&victim)?;
    victim.domain.crash_next_call().map_err(say)?;
    let answer = victim.subject.null();
    ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
    victim.gone().map(drop)
}

/// Where calls are counted, those that free are as well, and they are not let in for ever.
fn counts(lab: &Lab) -> Verdict {
    let spec = DomainSpec {
        call_limit: 1,
        ..little()
    };
    let victim = hardy(lab, spec)?;
    for _ in 0..3 {
        fill(&victim)?;
        let freed = (0..5).try_for_each(|_| victim.subject.gather_more(1));
        ensure!(freed == Ok(()), "{freed:?} one by one");
        empty(&victim)?;
    }
    victim.end()
}
