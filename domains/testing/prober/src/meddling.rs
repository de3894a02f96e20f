//! Memory objects and address spaces whose users get in each other's way: threads that touch one
//! page at once, spaces that are forked where they must not be, owners that die in the midst of
//! their work, clients that hang; and memory that ends at each single step.

use crate::lab::{Lab, say};
use crate::objects::{canary, read};
use crate::spaces::{ALL, AT, PAGE, READ, WRITE, map, object, peek, poke, space};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use domain_rt::{thread, time};
use interfaces::{
    AddressSpace, AddressSpaces, Handle, MemoryError, MemoryObjects, Misdeed, PageKind, RVec,
    RpcError, SpaceError, VmoFill, VmoOwner, VmoView,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("spaces-private-writes-beside-readers", private_writes),
    ("spaces-forked-into-the-midst", forked_into),
    ("objects-owners-die-amid-their-work", dying_owners),
    ("spaces-of-one-who-hangs", hung),
    ("memory-ends-at-each-step", ends),
];

/// What is written to a private page stays there while others read the page for the first time.
fn private_writes(lab: &Lab) -> Verdict {
    const PAGES: u64 = 3000;
    const READERS: u64 = 3;
    let Some(space) = space(lab)? else {
        return Ok(());
    };
    let owner = object(lab, PAGES, VmoFill::Zero)?;
    let view = owner.view(ALL).map_err(say)?;
    space.map_private(AT, view, 0, PAGES, WRITE).map_err(say)?;
    let space = Arc::new(space);
    let (now, is_over) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    for _ in 0..READERS {
        let (space, now, is_over) = (space.clone(), now.clone(), is_over.clone());
        let read = move || {
            while !is_over.load(Ordering::SeqCst) {
                let _ = space.touch(AT + now.load(Ordering::SeqCst) * PAGE, false);
            }
        };
        thread::spawn("reads", read).map_err(say)?;
    }
    let written = |page: u64| -> Verdict {
        now.store(page, Ordering::SeqCst);
        poke(&space, AT + page * PAGE, [7; 8]).map_err(say)?;
        for _ in 0..20 {
            let seen = peek(&space, AT + page * PAGE);
            ensure!(seen == Ok([7; 8]), "{seen:?} in page {page}");
        }
        Ok(())
    };
    let verdict = (0..PAGES).try_for_each(written);
    is_over.store(true, Ordering::SeqCst);
    verdict
}

/// A fork that begins in the midst of an area gives the child pages where it has others, or none.
/// It is a fork into what it is from, too. Both can be used, and all comes back.
fn forked_into(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (Some(parent), Some(child)) = (space(lab)?, space(lab)?) else {
            return Ok(());
        };
        let owner = object(lab, 8, VmoFill::Zero)?;
        parent.map_zero(AT, 8, WRITE).map_err(say)?;
        for page in 0..8 {
            poke(&parent, AT + page * PAGE, [9; 8]).map_err(say)?;
        }
        let fork = |child: &Handle<dyn AddressSpace>| {
            let copy = child.duplicate().map_err(SpaceError::Rpc)?;
            parent.fork(copy, AT + PAGE)
        };
        let itself = fork(&parent);
        ensure!(
            itself == Err(SpaceError::Occupied),
            "into itself: {itself:?}"
        );
        poke(&parent, AT + PAGE, [8; 8]).map_err(say)?;
        map(&child, AT, &owner, 8, WRITE)?;
        poke(&child, AT, [1; 8]).map_err(say)?;
        fork(&child).map_err(say)?;
        // The child has an object's area there. What it reads and writes is the object's.
        for page in 1..8 {
            poke(&child, AT + page * PAGE, [2; 8]).map_err(say)?;
        }
        let view = owner.view(ALL).map_err(say)?;
        let seen = read(&view, 7 * PAGE, 8).map_err(say)?;
        ensure!(seen == [2; 8], "the object holds {seen:?}");
        let seen = [1, 7].map(|page| peek(&parent, AT + page * PAGE));
        ensure!(
            seen == [Ok([8; 8]), Ok([9; 8])],
            "the parent holds {seen:?}"
        );
        Ok(())
    })
}

/// Owners that load, clean, evict and cut are ended in the midst of it: each page has what was
/// loaded into it or nothing, and can be loaded, written back and cut by who is left.
fn dying_owners(lab: &Lab) -> Verdict {
    const PAGES: u64 = 150;
    const ROUNDS: u64 = 12;
    lab.conserves_memory(|| {
        for round in 0..ROUNDS {
            let owner = object(lab, PAGES, VmoFill::Load)?;
            let view = owner.view(ALL).map_err(say)?;
            let mut victims = Vec::new();
            for seed in 0..2 {
                let victim = lab.start()?;
                let subject = victim.subject.duplicate().map_err(say)?;
                let copy = owner.duplicate().map_err(say)?;
                let tend = move || _ = subject.tend(copy, 2 * round + seed);
                thread::spawn("tends", tend).map_err(say)?;
                victims.push(victim);
            }
            let until = time::now() + 2_000_000 + round * 431_000;
            let mut page = round;
            while time::now() < until {
                page = (page * 37 + 11) % PAGES;
                let data = RVec::from_slice(&canary(page)).map_err(say)?;
                let _ = view.write(page * PAGE, &data);
            }
            for victim in victims {
                ensure!(!victim.has_died()?, "an owner ended by itself");
                victim.end()?;
            }
            left_by_owners(&owner, &view, PAGES).map_err(|why| format!("round {round}: {why}"))?;
        }
        Ok(())
    })
}

/// Looks at what dead owners have left of an object, and does what is left to do.
fn left_by_owners(owner: &Handle<dyn VmoOwner>, view: &Handle<dyn VmoView>, pages: u64) -> Verdict {
    for page in 0..pages {
        match read(view, page * PAGE, 8) {
            Ok(seen) => ensure!(seen == canary(page), "page {page} holds {seen:?}"),
            Err(MemoryError::Absent) => {
                let begun = owner.load(page, 1);
                ensure!(begun == Ok(1), "{begun:?} for a load of page {page}");
            }
            Err(error) => return Err(format!("{error:?} in page {page}")),
        }
    }
    let absent = owner.break_off(0, pages).map_err(say)?;
    // What was being written back counts as dirty, and is again when somebody says so.
    owner.redo(0, pages).map_err(say)?;
    while let Some((first, count)) = owner.clean(0, pages).map_err(say)? {
        owner.commit(first, count).map_err(say)?;
    }
    let dirty = owner.next(0, PageKind::Dirty).map_err(say)?;
    ensure!(dirty.is_none(), "page {dirty:?} stays dirty");
    let evicted = owner.evict(0, pages).map_err(say)?;
    ensure!(
        evicted + absent == pages,
        "{evicted} and {absent} of {pages}"
    );
    let left = owner.info().map_err(say)?.pages;
    ensure!(left == 0, "{left} pages are left");
    Ok(())
}

/// A domain has a file mapped and hangs: its owner takes the pages away all the same, at once, and
/// has the memory.
fn hung(lab: &Lab) -> Verdict {
    let Some(spaces) = &lab.spaces else {
        return Ok(());
    };
    lab.conserves_memory(|| {
        let victim = lab.start()?;
        let maker = spaces.duplicate().map_err(say)?;
        let space = victim.subject.make_space(maker).map_err(say)?;
        let owner = object(lab, 100, VmoFill::Zero)?;
        map(&space, AT, &owner, 100, WRITE)?;
        for page in 0..100 {
            poke(&space, AT + page * PAGE, canary(page)).map_err(say)?;
        }
        let subject = victim.subject.duplicate().map_err(say)?;
        let has_begun = Arc::new(AtomicBool::new(false));
        let begun = has_begun.clone();
        let hang = move || {
            begun.store(true, Ordering::SeqCst);
            let _ = subject.misbehave(Misdeed::Spin);
        };
        thread::spawn("hangs", hang).map_err(say)?;
        while !has_begun.load(Ordering::SeqCst) {
            time::sleep(1_000_000);
        }
        owner.set_limit(10).map_err(say)?;
        let left = owner.info().map_err(say)?.pages;
        ensure!(left == 10, "{left} pages are left of ten");
        let seen = peek(&space, AT + 50 * PAGE);
        let beyond = SpaceError::Object(MemoryError::Beyond);
        ensure!(seen == Err(beyond), "{seen:?} beyond the limit");
        let seen = peek(&space, AT + 9 * PAGE);
        ensure!(seen == Ok(canary(9)), "{seen:?} in the last page");
        victim.end()
    })
}

/// Memory ends at each single question for some: who asks gets an error, and all is given back.
fn ends(lab: &Lab) -> Verdict {
    let (Some(spaces), Some(objects), Some(auditor)) = (&lab.spaces, &lab.objects, &lab.auditor)
    else {
        return Ok(());
    };
    let charged = || -> Result<u64, String> {
        let info = lab.info(domain_rt::self_id())?.ok_or("it is me")?;
        Ok(info.object_bytes)
    };
    all_that_asks(objects, spaces).map_err(say)?;
    let before = charged()?;
    for number in 1.. {
        let mut done = Ok(());
        lab.conserves_memory(|| {
            auditor.refuse_memory(number).map_err(say)?;
            done = all_that_asks(objects, spaces);
            auditor.refuse_memory(0).map_err(say)
        })
        .map_err(|why| format!("question {number}: {why}"))?;
        let left = charged()? - before;
        ensure!(left == 0, "question {number}: {left} bytes are charged");
        match done {
            Err(Short::NoMemory) => {}
            Err(why) => return Err(format!("question {number}: {why:?}")),
            Ok(()) => {
                ensure!(number > 40, "only {number} questions were asked");
                break;
            }
        }
    }
    lab.audit()
}

/// Why a step was not done.
#[derive(Debug)]
enum Short {
    NoMemory,
    #[allow(dead_code, reason = "it is shown")]
    Other(SpaceError),
}

impl From<SpaceError> for Short {
    fn from(why: SpaceError) -> Self {
        match why {
            SpaceError::Rpc(RpcError::NoMemory)
            | SpaceError::Object(MemoryError::Rpc(RpcError::NoMemory)) => Short::NoMemory,
            why => Short::Other(why),
        }
    }
}

impl From<MemoryError> for Short {
    fn from(why: MemoryError) -> Self {
        SpaceError::Object(why).into()
    }
}

impl From<RpcError> for Short {
    fn from(why: RpcError) -> Self {
        SpaceError::Rpc(why).into()
    }
}

/// Everything that asks for memory, with objects and spaces. It takes none of its own heap.
fn all_that_asks(
    objects: &Handle<dyn MemoryObjects>,
    spaces: &Handle<dyn AddressSpaces>,
) -> Result<(), Short> {
    let content = RVec::filled(5, 3 * PAGE as usize)?;
    let loaded = objects.create(1 << 30, VmoFill::Load)?;
    if loaded.load(10, 3)? < 3 {
        return Err(Short::NoMemory);
    }
    loaded.end_load(10, &content)?;
    let owner = objects.create(1 << 36, VmoFill::Zero)?;
    let view = owner.view(ALL)?;
    // Each of them needs nodes of its own.
    for page in [0, 1, 64, 1 << 12, 1 << 18, 1 << 30] {
        view.write(page * PAGE, &content)?;
        view.write((page + 2) * PAGE, &content)?;
    }
    let parent = spaces.create()?;
    parent.map(AT, owner.view(ALL)?, 0, 8, WRITE)?;
    parent.touch(AT, true)?;
    parent.touch(AT + 3 * PAGE, true)?;
    let private = AT + (1 << 30);
    parent.map_private(private, loaded.view(ALL)?, 10, 3, WRITE)?;
    parent.touch(private, false)?;
    parent.touch(private, true)?;
    let zeros = AT + (1 << 31);
    parent.map_zero(zeros, 100, WRITE)?;
    for page in 0..40 {
        parent.touch(zeros + page * PAGE, true)?;
    }
    parent.protect(zeros + PAGE, 1, READ)?;
    parent.unmap(zeros + 50 * PAGE, 1)?;
    let child = spaces.create()?;
    parent.fork(child.duplicate()?, 0)?;
    child.touch(zeros, true)?;
    child.touch(AT, true)?;
    let thread = child.thread()?;
    drop(thread);
    Ok(())
}
