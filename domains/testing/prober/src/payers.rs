//! Who pays for memory objects: their makers, also when they are dead, until another adopts them;
//! and the place where a domain is started pays for what all its instances have left. And who pays
//! for the threads of programs in ring 3.

use crate::lab::{Lab, Victim, say, unlimited};
use crate::objects::{PAGE, READ, canary, maker, read};
use crate::spaces::space;
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{DomainSpec, Handle, VmoOwner};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("objects-outlive-who-filled-them", outlive),
    ("objects-limits-of-a-group", limits),
    ("objects-adopted-beyond-a-limit", adopted),
    ("objects-left-by-instances-count-together", left),
    ("ring3-threads-are-charged", threads_in_ring3),
];

fn spec(pages: u64) -> DomainSpec {
    DomainSpec {
        group_pages: pages,
        ..unlimited()
    }
}

fn start(lab: &Lab, spec: DomainSpec) -> Result<Victim, String> {
    lab.start_as(None, spec, b"")?.map_err(say)
}

/// An object that a domain filled, by `fill_object`.
fn filled(lab: &Lab, victim: &Victim, pages: u64) -> Result<(Handle<dyn VmoOwner>, u64), String> {
    let maker = maker(lab)?.duplicate().map_err(say)?;
    victim.subject.fill_object(maker, pages).map_err(say)
}

/// A domain is dead and gone, and what it wrote is there; who adopts it pays for it.
fn outlive(lab: &Lab) -> Verdict {
    const PAGES: u64 = 200;
    let own = || {
        Ok::<_, String>(
            lab.info(domain_rt::self_id())?
                .ok_or("no self")?
                .object_bytes,
        )
    };
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let (owner, pages) = filled(lab, &victim, PAGES)?;
        ensure!(pages == PAGES, "{pages} pages were written");
        let charged = lab.info(victim.id)?.ok_or("it is gone")?.object_bytes;
        let bytes = owner.info().map_err(say)?.bytes;
        ensure!(
            charged == bytes && bytes > PAGES * PAGE,
            "{charged} of {bytes} bytes"
        );
        victim.end()?;
        let view = owner.view(READ).map_err(say)?;
        for page in 0..PAGES {
            let seen = read(&view, page * PAGE, 8).map_err(say)?;
            ensure!(seen == canary(page), "page {page} holds {seen:?}");
        }
        let before = own()?;
        owner.adopt().map_err(say)?;
        ensure!(own()? == before + bytes, "{} bytes more", own()? - before);
        owner.adopt().map_err(say)?;
        ensure!(own()? == before + bytes, "it pays twice");
        drop((owner, view));
        ensure!(own()? == before, "{} bytes are left", own()? - before);
        Ok(())
    })
}

/// A group has no more memory in objects than its limit lets it, and answers at the limit.
fn limits(lab: &Lab) -> Verdict {
    const LIMIT: u64 = 512;
    lab.conserves_memory(|| {
        let victim = start(lab, spec(LIMIT))?;
        let (owner, pages) = filled(lab, &victim, LIMIT)?;
        ensure!(
            (LIMIT / 4..LIMIT).contains(&pages),
            "{pages} pages of {LIMIT}"
        );
        let info = lab.info(victim.id)?.ok_or("it is gone")?;
        ensure!(
            info.group_bytes <= info.group_limit + (16 << 10),
            "beyond its limit"
        );
        ensure!(victim.subject.add(1, 1) == Ok(2), "it does not answer");
        owner.cut(0, pages).map_err(say)?;
        let (again, more) = filled(lab, &victim, LIMIT)?;
        ensure!(
            more + 8 > pages,
            "{more} pages after {pages} were given back"
        );
        drop((owner, again));
        victim.end()
    })
}

/// What is too much for a domain is not handed over to it, and stays as it was.
fn adopted(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let rich = lab.start()?;
        let poor = start(lab, spec(256))?;
        let (owner, _) = filled(lab, &rich, 400)?;
        let copy = |owner: &Handle<dyn VmoOwner>| owner.duplicate().map_err(say);
        let taken = poor.subject.adopt(copy(&owner)?).map_err(say)?;
        ensure!(!taken, "400 pages went to who may have 256");
        let bytes = owner.info().map_err(say)?.bytes;
        let pays = lab.info(rich.id)?.ok_or("it is gone")?.object_bytes;
        ensure!(pays == bytes, "{pays} bytes of {bytes}");
        owner.cut(100, 300).map_err(say)?;
        let taken = poor.subject.adopt(copy(&owner)?).map_err(say)?;
        ensure!(taken, "100 pages did not go to who may have 256");
        let (before, after) = (lab.info(rich.id)?, lab.info(poor.id)?);
        let [before, after] = [before, after].map(|it| it.map(|it| it.object_bytes));
        let bytes = owner.info().map_err(say)?.bytes;
        ensure!(
            before == Some(0) && after == Some(bytes),
            "{before:?} and {after:?}"
        );
        drop(owner);
        rich.end()?;
        poor.end()
    })
}

/// A domain leaves memory behind, dies, and is started again in the same group: all that its
/// instances have left counts, and the last of them gets what there is beside that and no more.
fn left(lab: &Lab) -> Verdict {
    const LIMIT: u64 = 1024;
    const EACH: u64 = 150;
    let spec = DomainSpec {
        group: 41,
        ..spec(LIMIT)
    };
    lab.conserves_memory(|| {
        let mut owners = alloc::vec::Vec::new();
        let refused = loop {
            ensure!(owners.len() < 100, "dead instances leave what they like");
            let started = lab.start_as(None, spec, b"")?;
            let Ok(victim) = started else { break 0 };
            let (owner, pages) = filled(lab, &victim, EACH)?;
            let info = lab.info(victim.id)?.ok_or("it is gone")?;
            let paid = (owners.len() as u64 * EACH + pages) * PAGE;
            ensure!(info.group_bytes >= paid, "{} of {paid}", info.group_bytes);
            owners.push(owner);
            victim.end()?;
            if pages < EACH {
                break pages;
            }
        };
        let whole = owners.len() as u64 * EACH;
        ensure!(whole > LIMIT / 2, "{whole} pages and {refused} are all");
        // What is dropped is room for the next, and another number's group has room of its own.
        owners.truncate(2);
        let next = start(lab, spec)?;
        let (_, pages) = filled(lab, &next, EACH)?;
        ensure!(pages == EACH, "{pages} pages after most were dropped");
        next.end()?;
        let other = start(lab, DomainSpec { group: 42, ..spec })?;
        let used = lab.info(other.id)?.ok_or("it is gone")?.group_bytes;
        ensure!(used < 2 * EACH * PAGE, "{used} bytes in another group");
        other.end()?;
        // Who has a handle to a dead instance has a share, too.
        drop((owners, next));
        // With the last of it the group is gone, and its limit.
        let roomy = DomainSpec {
            group_pages: 2 * LIMIT,
            ..spec
        };
        let last = start(lab, roomy)?;
        let limit = lab.info(last.id)?.ok_or("it is gone")?.group_limit;
        ensure!(limit == 2 * LIMIT * PAGE, "a limit of {limit} bytes");
        last.end()
    })
}

/// Threads of programs are charged to who asks for them, and given back with their handles.
fn threads_in_ring3(lab: &Lab) -> Verdict {
    const THREADS: u64 = 50;
    // What FXSAVE writes, the least that any of them keeps.
    const LEAST: u64 = 512;
    let Some(space) = space(lab)? else {
        return Ok(());
    };
    let own = || Ok::<_, String>(lab.info(domain_rt::self_id())?.ok_or("no self")?.note_bytes);
    lab.conserves_memory(|| {
        let before = own()?;
        let threads: Result<Vec<_>, _> = (0..THREADS).map(|_| space.thread()).collect();
        let threads = threads.map_err(say)?;
        let charged = own()? - before;
        ensure!(charged >= THREADS * LEAST, "{charged} bytes for {THREADS}");
        drop(threads);
        let left = own()? as i64 - before as i64;
        ensure!(left == 0, "{left} bytes are left");
        Ok(())
    })
}
