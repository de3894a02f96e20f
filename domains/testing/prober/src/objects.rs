//! Memory objects: shared by domains, charged to who made them, and there after he is dead.

use crate::lab::{Lab, say, settle};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{thread, time};
use interfaces::{
    Handle, MemoryError, MemoryObjects, PageKind, PageTags, RVec, RpcError, VmoFill, VmoOwner,
    VmoRights, VmoView,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("objects-are-shared", shared),
    ("objects-views-have-rights", rights),
    ("objects-numbers-at-the-ends", ends),
    ("objects-memory-comes-back", given_back),
    ("objects-load-of-a-dead-loader", dead_loader),
    ("objects-write-back", write_back),
    ("objects-sealed", sealed),
    ("objects-among-dying-domains", dying),
];

pub const PAGE: u64 = 4096;

pub const ALL: VmoRights = VmoRights {
    read: true,
    write: true,
    map: true,
    execute: true,
};
pub const READ: VmoRights = VmoRights {
    read: true,
    write: false,
    map: false,
    execute: false,
};

pub fn maker(lab: &Lab) -> Result<&Handle<dyn MemoryObjects>, String> {
    let maker = lab.objects.as_ref();
    maker.ok_or_else(|| "nobody makes memory objects".into())
}

pub fn object(lab: &Lab, limit: u64, fill: VmoFill) -> Result<Handle<dyn VmoOwner>, String> {
    maker(lab)?.create(limit, fill).map_err(say)
}

pub fn bytes(of: &[u8]) -> Result<RVec<u8>, String> {
    RVec::from_slice(of).map_err(say)
}

/// `count` bytes from `offset` on, as many as there are.
pub fn read(view: &Handle<dyn VmoView>, offset: u64, count: usize) -> Result<Vec<u8>, MemoryError> {
    let buffer = RVec::filled(0xaa, count).map_err(MemoryError::Rpc)?;
    let (buffer, count) = view.read(offset, buffer)?;
    Ok(buffer[..count as usize].to_vec())
}

/// What one view writes another one reads, over the ends of pages; what nobody wrote is zeros and
/// takes no memory.
fn shared(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let owner = object(lab, 300, VmoFill::Zero)?;
        let (one, other) = (
            owner.view(ALL).map_err(say)?,
            owner.view(READ).map_err(say)?,
        );
        let text: Vec<u8> = (0..10_000).map(|at| (at % 251) as u8).collect();
        let written = one.write(3 * PAGE + 1000, &bytes(&text)?).map_err(say)?;
        ensure!(written == 10_000, "{written} bytes were written");
        let seen = read(&other, 3 * PAGE + 1000, 10_000).map_err(say)?;
        ensure!(seen == text, "other bytes are read");
        let around = read(&other, 2 * PAGE, 5 * PAGE as usize).map_err(say)?;
        let zeros = around[..PAGE as usize + 1000].iter().all(|byte| *byte == 0);
        ensure!(zeros, "what nobody wrote is not zeros");
        let info = owner.info().map_err(say)?;
        ensure!(info.pages == 3, "{} pages for three", info.pages);
        let last = read(&other, 299 * PAGE + 4000, 1000).map_err(say)?;
        ensure!(last.len() == 96, "{} bytes before the end", last.len());
        drop(owner);
        let seen = read(&other, 3 * PAGE + 1000, 10_000).map_err(say)?;
        ensure!(seen == text, "it went with the owner's handle");
        Ok(())
    })
}

/// A view can do what it was made for, and what is made from it no more than that.
fn rights(lab: &Lab) -> Verdict {
    let owner = object(lab, 4, VmoFill::Zero)?;
    let reader = owner.view(READ).map_err(say)?;
    let more = reader.restrict(ALL).map_err(say)?;
    ensure!(more.rights() == Ok(READ), "a view got more rights");
    let write = VmoRights { read: false, ..ALL };
    let writer = owner.view(write).map_err(say)?;
    for view in [&reader, &more] {
        let answer = view.write(0, &bytes(b"x")?);
        ensure!(
            matches!(answer, Err(MemoryError::Denied)),
            "a reader writes: {answer:?}"
        );
    }
    let answer = read(&writer, 0, 1);
    ensure!(
        matches!(answer, Err(MemoryError::Denied)),
        "a writer reads: {answer:?}"
    );
    let nothing = writer.restrict(READ).map_err(say)?;
    ensure!(
        read(&nothing, 0, 1).is_err(),
        "what is left of two is more than one"
    );
    writer.write(0, &bytes(b"x")?).map_err(say)?;
    ensure!(
        read(&reader, 0, 1).map_err(say)? == b"x",
        "it was not written"
    );
    Ok(())
}

/// Numbers at the ends of what there can be are refused, and do no harm.
fn ends(lab: &Lab) -> Verdict {
    let maker = maker(lab)?;
    for limit in [u64::MAX, 1 << 63, (1 << 36) + 1] {
        ensure!(
            maker.create(limit, VmoFill::Zero).is_err(),
            "a limit of {limit} pages"
        );
    }
    let owner = object(lab, 1 << 36, VmoFill::Zero)?;
    let view = owner.view(ALL).map_err(say)?;
    let end = (1 << 36) * PAGE;
    ensure!(
        view.write(end - 1, &bytes(b"xy")?).map_err(say)? == 1,
        "the last byte"
    );
    ensure!(
        read(&view, end - 1, 2).map_err(say)? == b"x",
        "the last byte"
    );
    for offset in [end, end + PAGE, u64::MAX, u64::MAX - 1, 1 << 63] {
        let answer = view.write(offset, &bytes(b"xy")?);
        ensure!(answer.is_err(), "{answer:?} at {offset}");
        ensure!(read(&view, offset, 2).is_err(), "read at {offset}");
    }
    for (first, count) in [
        (u64::MAX, 1),
        (u64::MAX, u64::MAX),
        (1, u64::MAX),
        (1 << 36, 1),
    ] {
        let answers = [
            owner.cut(first, count),
            owner.evict(first, count),
            owner.load(first, count),
            owner.break_off(first, count),
            owner.commit(first, count),
            owner.redo(first, count),
            owner.clean(first, count).map(|_| 0),
        ];
        let refused = answers.iter().all(Result::is_err);
        ensure!(refused, "{answers:?} for {count} pages from {first}");
    }
    let next = owner.next(0, PageKind::Dirty).map_err(say)?;
    ensure!(next == Some((1 << 36) - 1), "the last page is {next:?}");
    ensure!(
        owner.next(u64::MAX, PageKind::Present) == Ok(None),
        "a page beyond all"
    );
    owner.set_limit(0).map_err(say)?;
    let pages = owner.info().map_err(say)?.pages;
    ensure!(pages == 0, "{pages} pages are left");
    ensure!(view.write(0, &bytes(b"x")?).is_err(), "a page of none");
    Ok(())
}

/// What a page begins with that a victim wrote to.
pub fn canary(page: u64) -> [u8; 8] {
    (page + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// Cut off, evicted, beyond a lower limit, or dropped: the memory is back, notes and all.
fn given_back(lab: &Lab) -> Verdict {
    let owner = object(lab, 1 << 30, VmoFill::Zero)?;
    let view = owner.view(ALL).map_err(say)?;
    let empty = owner.info().map_err(say)?;
    let sparse = |lab: &Lab| -> Verdict {
        for at in 0..200_u64 {
            let page = at * 5_000_011 % (1 << 30);
            view.write(page * PAGE, &bytes(&[1])?).map_err(say)?;
        }
        ensure!(owner.info().map_err(say)?.pages == 200, "not 200 pages");
        let mut from = 0;
        while let Some(page) = owner.next(from, PageKind::Present).map_err(say)? {
            ensure!(owner.cut(page, 1).map_err(say)? == 1, "page {page} stays");
            from = page + 1;
        }
        ensure!(owner.info().map_err(say)?.pages == 0, "pages are left");
        lab.free().map(drop)
    };
    // The nodes stay for the next pages, so from the second time on nothing is taken.
    lab.conserves_memory(|| sparse(lab))?;
    let notes = owner.info().map_err(say)?.bytes - empty.bytes;
    ensure!(notes < 2 << 20, "{notes} bytes of notes for 200 pages");
    lab.conserves_memory(|| {
        let owner = object(lab, 1000, VmoFill::Zero)?;
        let view = owner.view(ALL).map_err(say)?;
        view.write(0, &bytes(&[7; 40 * 4096])?).map_err(say)?;
        owner.set_limit(10).map_err(say)?;
        ensure!(owner.info().map_err(say)?.pages == 10, "not ten pages");
        owner.set_limit(20).map_err(say)?;
        let seen = read(&view, 9 * PAGE, 2 * PAGE as usize).map_err(say)?;
        let (kept, cut) = seen.split_at(PAGE as usize);
        ensure!(kept.iter().all(|byte| *byte == 7), "the last page of ten");
        ensure!(
            cut.iter().all(|byte| *byte == 0),
            "a page that was cut off is back"
        );
        Ok(())
    })
}

/// A page that a dead domain was to load is nobody's: it can be loaded by others.
fn dead_loader(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let owner = object(lab, 64, VmoFill::Load)?;
        let view = owner.view(ALL).map_err(say)?;
        let answer = read(&view, 0, 8);
        ensure!(
            matches!(answer, Err(MemoryError::Absent)),
            "{answer:?} before a load"
        );
        let loader = lab.start()?;
        let copy = owner.duplicate().map_err(say)?;
        let begun = loader.subject.begin_load(copy, 0, 8).map_err(say)?;
        ensure!(begun == 8, "{begun} pages are loaded");
        let answer = read(&view, 0, 8);
        ensure!(
            matches!(answer, Err(MemoryError::Loading)),
            "{answer:?} in a load"
        );
        let twice = owner.load(3, 1);
        ensure!(
            matches!(twice, Err(MemoryError::Present)),
            "{twice:?} for a second load"
        );
        loader.end()?;
        let answer = read(&view, 0, 8);
        ensure!(
            matches!(answer, Err(MemoryError::Absent)),
            "{answer:?} after its death"
        );
        ensure!(
            owner.load(0, 4).map_err(say)? == 4,
            "it cannot be loaded again"
        );
        let ended = owner.end_load(0, &bytes(&[5; 2 * 4096])?).map_err(say)?;
        ensure!(ended == 2, "{ended} pages have come");
        ensure!(
            read(&view, PAGE, 8).map_err(say)? == [5; 8],
            "other bytes have come"
        );
        let tags = owner.tags(1).map_err(say)?;
        let clean = PageTags {
            present: true,
            dirty: false,
            writeback: false,
            accessed: true,
            loading: false,
        };
        ensure!(tags == clean, "a page that was loaded and read is {tags:?}");
        // Two of its own, and four that the dead one left.
        ensure!(
            owner.break_off(2, 6).map_err(say)? == 6,
            "not six loads were left"
        );
        ensure!(
            owner.evict(0, 64).map_err(say)? == 2,
            "not two pages were clean"
        );
        ensure!(owner.info().map_err(say)?.pages == 0, "pages are left");
        Ok(())
    })
}

/// What is written while a page is written back is not lost.
fn write_back(lab: &Lab) -> Verdict {
    let owner = object(lab, 2000, VmoFill::Zero)?;
    let view = owner.view(ALL).map_err(say)?;
    view.write(100 * PAGE, &bytes(&[1; 3 * 4096])?)
        .map_err(say)?;
    view.write(700 * PAGE, &bytes(&[1])?).map_err(say)?;
    let run = owner.clean(0, 2000).map_err(say)?;
    ensure!(run == Some((100, 3)), "{run:?} is cleaned");
    let next = owner.clean(0, 2000).map_err(say)?;
    ensure!(next == Some((700, 1)), "{next:?} is cleaned next");
    let none = owner.clean(0, 2000).map_err(say)?;
    ensure!(none.is_none(), "{none:?} is cleaned twice");
    view.write(101 * PAGE, &bytes(&[2])?).map_err(say)?;
    ensure!(
        owner.evict(0, 512).map_err(say)? == 0,
        "a page was evicted that is written back"
    );
    let twice = owner.clean(0, 2000).map_err(say)?;
    ensure!(twice.is_none(), "{twice:?} is written back twice at a time");
    ensure!(
        owner.commit(100, 3).map_err(say)? == 3,
        "not three were committed"
    );
    ensure!(owner.redo(700, 1).map_err(say)? == 1, "one was not redone");
    let runs = [owner.clean(0, 2000), owner.clean(0, 2000)];
    let runs = runs.map(|run| run.ok().flatten());
    ensure!(
        runs == [Some((101, 1)), Some((700, 1))],
        "{runs:?} are cleaned at last"
    );
    ensure!(
        owner.evict(0, 512).map_err(say)? == 2,
        "two clean pages were not evicted"
    );
    owner.cut(700, 1).map_err(say)?;
    ensure!(
        owner.commit(700, 1).map_err(say)? == 0,
        "a page that was cut was committed"
    );
    Ok(())
}

/// What is sealed stays as it is.
fn sealed(lab: &Lab) -> Verdict {
    let owner = object(lab, 4, VmoFill::Zero)?;
    let view = owner.view(ALL).map_err(say)?;
    view.write(0, &bytes(b"for ever")?).map_err(say)?;
    owner.seal().map_err(say)?;
    ensure!(owner.info().map_err(say)?.sealed, "it is not sealed");
    let sealed = |answer: Result<u64, MemoryError>| matches!(answer, Err(MemoryError::Sealed));
    ensure!(sealed(view.write(0, &bytes(b"x")?)), "it was written to");
    ensure!(sealed(owner.cut(0, 4)), "it was cut");
    ensure!(
        sealed(owner.set_limit(1).map(|()| 0)),
        "it was made smaller"
    );
    let _ = owner.clean(0, 4).map_err(say)?;
    let _ = owner.commit(0, 4).map_err(say)?;
    ensure!(sealed(owner.evict(0, 4)), "it was evicted");
    ensure!(
        read(&view, 0, 8).map_err(say)? == b"for ever",
        "it has changed"
    );
    Ok(())
}

/// Three domains read and write one object, which somebody cuts meanwhile, and each is ended in the
/// middle: no page holds what was never written to it, and no memory is lost.
fn dying(lab: &Lab) -> Verdict {
    const PAGES: u64 = 96;
    const ROUNDS: u64 = 40;
    let wrong = Arc::new(AtomicU32::new(0));
    lab.conserves_memory(|| {
        for round in 0..ROUNDS {
            let owner = object(lab, PAGES, VmoFill::Zero)?;
            let mut victims = Vec::new();
            for seed in 0..3 {
                let victim = lab.start()?;
                let view = owner.view(ALL).map_err(say)?;
                let subject = victim.subject.duplicate().map_err(say)?;
                let told = wrong.clone();
                thread::spawn("churn", move || {
                    let seen = subject.churn(view, round * 3 + seed);
                    if let Ok(page) = seen {
                        domain_rt::log!("page {page} holds another's bytes");
                        told.fetch_add(1, Ordering::SeqCst);
                    }
                })
                .map_err(say)?;
                victims.push(victim);
            }
            for (step, victim) in victims.iter().enumerate() {
                time::sleep(200_000 + round * 7_000);
                owner.cut(round % 50, 30).map_err(say)?;
                owner.evict(0, PAGES).map_err(say)?;
                let alive = !victim.has_died()?;
                ensure!(alive, "number {step} ended by itself");
                victim.domain.kill().map_err(say)?;
            }
            let view = owner.view(READ).map_err(say)?;
            for page in 0..PAGES {
                let seen = read(&view, page * PAGE, 8).map_err(say)?;
                // What was read while the last of them still wrote is a mix of both.
                let mut both = seen.iter().zip(canary(page));
                let right = both.all(|(seen, right)| *seen == 0 || *seen == right);
                ensure!(right, "page {page} holds {seen:?} in round {round}");
            }
            for victim in victims {
                let why = victim.gone()?;
                ensure!(
                    why == interfaces::CrashReason::Killed,
                    "it ended by {why:?}"
                );
            }
            let answer = view.restrict(ALL).map(drop);
            ensure!(answer.is_ok(), "{answer:?}");
        }
        settle(lab)
    })?;
    let wrong = wrong.load(Ordering::SeqCst);
    ensure!(wrong == 0, "{wrong} pages held another's bytes");
    let answer = maker(lab)?.create(1, VmoFill::Zero).map(drop);
    let refused = matches!(answer, Err(MemoryError::Rpc(RpcError::NoMemory)));
    ensure!(!refused, "the kernel is short of memory");
    Ok(())
}
