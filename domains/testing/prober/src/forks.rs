//! Address spaces: pages of their own, forks, and what is done with these among deaths.

use crate::lab::{Lab, say, settle, unlimited};
use crate::spaces::{ALL, AT, PAGE, READ, WRITE, map, object, peek, poke, space};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::{thread, time};
use interfaces::{
    AddressSpace, CrashReason, DomainSpec, Handle, MemoryError, PageKind, Protection, RVec,
    RpcError, SpaceError, SpaceUsage, UserThread, VmoFill, VmoRights, VmoView,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("spaces-pages-of-zeros", zeros),
    ("spaces-private-pages", private),
    ("spaces-private-pages-and-losses", private_losses),
    ("spaces-pages-are-discarded", discarded),
    ("spaces-beyond-an-object", beyond),
    ("spaces-holes-are-stepped-over", holes),
    ("spaces-protection-changes", protection),
    ("spaces-forked", forked),
    ("spaces-forked-again-and-again", generations),
    ("spaces-forks-refused", refused),
    ("spaces-own-pages-have-a-limit", limits),
    ("spaces-a-large-fork-goes-on", large),
    ("spaces-forked-among-dying-domains", dying),
];

type Space = Handle<dyn AddressSpace>;

const NONE: Protection = Protection {
    read: false,
    ..READ
};

/// A space that is none of the kernel's.
struct Fake;

impl AddressSpace for Fake {
    fn map(
        &self,
        _: u64,
        _: Handle<dyn VmoView>,
        _: u64,
        _: u64,
        _: Protection,
    ) -> Result<(), SpaceError> {
        Ok(())
    }

    fn map_private(
        &self,
        _: u64,
        _: Handle<dyn VmoView>,
        _: u64,
        _: u64,
        _: Protection,
    ) -> Result<(), SpaceError> {
        Ok(())
    }

    fn map_zero(&self, _: u64, _: u64, _: Protection) -> Result<(), SpaceError> {
        Ok(())
    }

    fn unmap(&self, _: u64, count: u64) -> Result<u64, SpaceError> {
        Ok(count)
    }

    fn protect(&self, _: u64, count: u64, _: Protection) -> Result<u64, SpaceError> {
        Ok(count)
    }

    fn discard(&self, _: u64, count: u64) -> Result<u64, SpaceError> {
        Ok(count)
    }

    fn usage(&self) -> Result<SpaceUsage, SpaceError> {
        Err(SpaceError::Denied)
    }

    fn fork(&self, _: Handle<dyn AddressSpace>, _: u64) -> Result<Option<u64>, SpaceError> {
        Ok(None)
    }

    fn thread(&self) -> Result<Handle<dyn UserThread>, SpaceError> {
        Err(SpaceError::Denied)
    }

    fn touch(&self, _: u64, _: bool) -> Result<(), SpaceError> {
        Ok(())
    }

    fn read(&self, _: u64, buffer: RVec<u8>) -> Result<(RVec<u8>, u64), SpaceError> {
        Ok((buffer, 0))
    }

    fn write(&self, _: u64, _: &RVec<u8>) -> Result<u64, SpaceError> {
        Ok(0)
    }
}

/// A second area, of the same size.
const THERE: u64 = AT + 1000 * PAGE;

/// Forks all of a space.
fn fork(parent: &Space, child: &Space) -> Result<(), SpaceError> {
    let mut next = Some(0);
    while let Some(from) = next {
        next = parent.fork(child.duplicate().map_err(SpaceError::Rpc)?, from)?;
    }
    Ok(())
}

fn charged(lab: &Lab) -> Result<u64, String> {
    let own = lab.info(domain_rt::self_id())?.ok_or("no self")?;
    Ok(own.object_bytes)
}

/// Zeros until they are written to, and charged as far as they were touched.
fn zeros(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = space(lab)? else {
            return Ok(());
        };
        space.map_zero(AT, 1 << 20, WRITE).map_err(say)?;
        let before = charged(lab)?;
        for page in 0..200 {
            let at = AT + page * 5000 * PAGE;
            ensure!(peek(&space, at) == Ok([0; 8]), "page {page} is not zeros");
            poke(&space, at + 8, [page as u8; 8]).map_err(say)?;
            ensure!(peek(&space, at + 8) == Ok([page as u8; 8]), "page {page}");
        }
        let more = charged(lab)? - before;
        ensure!(more >= 200 * PAGE, "{more} bytes for 200 pages");
        let mut done = 0;
        while done < 1 << 20 {
            done += space
                .unmap(AT + done * PAGE, (1 << 20) - done)
                .map_err(say)?;
        }
        let left = charged(lab)? - before;
        // Page tables stay.
        ensure!(
            left + 150 * PAGE < more,
            "{left} bytes of {more} are still charged"
        );
        ensure!(peek(&space, AT).is_err(), "a page is left");
        space.map_zero(AT, 1, WRITE).map_err(say)?;
        ensure!(peek(&space, AT + 8) == Ok([0; 8]), "it is not a new page");
        Ok(())
    })
}

/// What is written to a private page the object does not see; what was not written to is the
/// object's.
fn private(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = space(lab)? else {
            return Ok(());
        };
        let owner = object(lab, 8, VmoFill::Zero)?;
        map(&space, AT, &owner, 8, WRITE)?;
        // The view lets nobody write.
        let view = owner
            .view(VmoRights {
                write: false,
                ..ALL
            })
            .map_err(say)?;
        space.map_private(THERE, view, 0, 8, WRITE).map_err(say)?;
        poke(&space, AT + PAGE, *b"object's").map_err(say)?;
        let both = |page: u64| [AT, THERE].map(|at| peek(&space, at + page * PAGE));
        ensure!(both(1) == [Ok(*b"object's"); 2], "{:?}", both(1));
        poke(&space, AT + PAGE, *b"another.").map_err(say)?;
        ensure!(
            both(1) == [Ok(*b"another."); 2],
            "what was only read was copied"
        );
        owner.clean(0, 8).map_err(say)?;
        owner.commit(1, 1).map_err(say)?;
        poke(&space, THERE + PAGE, *b"its own.").map_err(say)?;
        ensure!(
            both(1) == [Ok(*b"another."), Ok(*b"its own.")],
            "{:?}",
            both(1)
        );
        let dirty = owner.next(0, PageKind::Dirty).map_err(say)?;
        ensure!(dirty.is_none(), "page {dirty:?} of the object is dirty");
        poke(&space, AT + PAGE, *b"at last.").map_err(say)?;
        ensure!(
            both(1) == [Ok(*b"at last."), Ok(*b"its own.")],
            "{:?}",
            both(1)
        );
        poke(&space, THERE + 2 * PAGE, *b"at once.").map_err(say)?;
        ensure!(both(2) == [Ok([0; 8]), Ok(*b"at once.")], "{:?}", both(2));
        Ok(())
    })
}

/// What the object loses goes where it was not copied. A sealed object can be mapped so and written
/// to.
fn private_losses(lab: &Lab) -> Verdict {
    let Some(space) = space(lab)? else {
        return Ok(());
    };
    let owner = object(lab, 8, VmoFill::Zero)?;
    let view = owner.view(ALL).map_err(say)?;
    space.map_private(AT, view, 0, 8, WRITE).map_err(say)?;
    let maker = owner.view(ALL).map_err(say)?;
    let content = RVec::filled(3, 8 * PAGE as usize).map_err(say)?;
    maker.write(0, &content).map_err(say)?;
    (0..8)
        .try_for_each(|page| peek(&space, AT + page * PAGE).map(drop))
        .map_err(say)?;
    poke(&space, AT, [4; 8]).map_err(say)?;
    owner.cut(0, 2).map_err(say)?;
    let seen = [0, 1, 2].map(|page| peek(&space, AT + page * PAGE));
    ensure!(
        seen == [Ok([4; 8]), Ok([0; 8]), Ok([3; 8])],
        "{seen:?} after a cut"
    );
    owner.set_limit(4).map_err(say)?;
    let beyond = Err(SpaceError::Object(MemoryError::Beyond));
    ensure!(
        peek(&space, AT + 5 * PAGE) == beyond,
        "a page beyond the limit is read"
    );
    owner.seal().map_err(say)?;
    poke(&space, AT + 2 * PAGE, [5; 8]).map_err(say)?;
    let of_object = maker.read(2 * PAGE, RVec::filled(0, 8).map_err(say)?);
    let (bytes, _) = of_object.map_err(say)?;
    ensure!(bytes[..] == [3; 8], "a sealed object was written to");
    Ok(())
}

/// Discards a range; in how many calls.
fn discard(space: &Space, at: u64, count: u64) -> Result<u64, SpaceError> {
    let (mut done, mut calls) = (0, 0);
    while done < count {
        done += space.discard(at + done * PAGE, count - done)?;
        calls += 1;
    }
    Ok(calls)
}

/// What is discarded of the space's own is zeros again, or what the object has, and its memory
/// comes back; a child that has the same pages keeps them, and what is shared stays.
fn discarded(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (Some(space), Some(child)) = (space(lab)?, space(lab)?) else {
            return Ok(());
        };
        let owner = object(lab, 8, VmoFill::Zero)?;
        let view = || owner.view(ALL).map_err(say);
        view()?
            .write(0, &RVec::filled(3, 8 * PAGE as usize).map_err(say)?)
            .map_err(say)?;
        space.map_zero(AT, 700, WRITE).map_err(say)?;
        let [private, shared] = [THERE, THERE + 100 * PAGE];
        space
            .map_private(private, view()?, 0, 8, WRITE)
            .map_err(say)?;
        space.map(shared, view()?, 0, 8, WRITE).map_err(say)?;
        for page in 0..700 {
            poke(&space, AT + page * PAGE, [9; 8]).map_err(say)?;
        }
        for page in 0..8 {
            poke(&space, private + page * PAGE, [4; 8]).map_err(say)?;
            poke(&space, shared + page * PAGE + 8, [5; 8]).map_err(say)?;
        }
        fork(&space, &child).map_err(say)?;
        let own = || space.usage().map(|usage| usage.own).map_err(say);
        let before = own()?;
        discard(&space, AT + 10 * PAGE, 600).map_err(say)?;
        discard(&space, private + PAGE, 120).map_err(say)?;
        let gone = before - own()?;
        ensure!(gone == 607, "{gone} pages are gone");
        for (page, right) in [(9, [9; 8]), (10, [0; 8]), (609, [0; 8]), (610, [9; 8])] {
            let at = AT + page * PAGE;
            let seen = [peek(&space, at), peek(&child, at)];
            ensure!(seen == [Ok(right), Ok([9; 8])], "{seen:?} in page {page}");
        }
        let seen = [0, 1].map(|page| peek(&space, private + page * PAGE));
        ensure!(seen == [Ok([4; 8]), Ok([3; 8])], "{seen:?} of the object");
        let seen = peek(&space, shared + PAGE + 8);
        ensure!(seen == Ok([5; 8]), "{seen:?} where it is shared");
        poke(&space, AT + 10 * PAGE, [6; 8]).map_err(say)?;
        let nothing = discard(&space, THERE + 5000 * PAGE, 100).map_err(say)?;
        ensure!(nothing == 1, "{nothing} calls for nothing");
        for (at, count) in [(AT + 1, 1), (0, 1), (AT, 0), (AT, u64::MAX), (1 << 47, 1)] {
            let answer = space.discard(at, count);
            let is_refused = matches!(answer, Err(SpaceError::BadAddress));
            ensure!(is_refused, "{answer:?} for {count} pages at {at:x}");
        }
        Ok(())
    })
}

/// A mapping may reach beyond its object: there is nothing until the object grows. It can be forked
/// when the object has become shorter. What no object has is refused.
fn beyond(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (Some(space), Some(child)) = (space(lab)?, space(lab)?) else {
            return Ok(());
        };
        let owner = object(lab, 4, VmoFill::Zero)?;
        map(&space, AT, &owner, 100, WRITE)?;
        let nothing = Err(SpaceError::Object(MemoryError::Beyond));
        ensure!(peek(&space, AT + 4 * PAGE) == nothing, "a page is read");
        poke(&space, AT + 3 * PAGE, [1; 8]).map_err(say)?;
        owner.set_limit(50).map_err(say)?;
        poke(&space, AT + 49 * PAGE, [2; 8]).map_err(say)?;
        owner.set_limit(20).map_err(say)?;
        ensure!(peek(&space, AT + 49 * PAGE) == nothing, "it is still there");
        fork(&space, &child).map_err(say)?;
        owner.set_limit(60).map_err(say)?;
        let seen = [3, 49].map(|page| peek(&child, AT + page * PAGE));
        ensure!(seen == [Ok([1; 8]), Ok([0; 8])], "{seen:?} in the child");
        for first in [u64::MAX, u64::MAX - 7, 1 << 60] {
            let view = owner.view(ALL).map_err(say)?;
            let answer = space.map(THERE, view, first, 8, READ);
            let refused = Err(SpaceError::Object(MemoryError::Beyond));
            ensure!(answer == refused, "{answer:?} from page {first:x} on");
        }
        Ok(())
    })
}

/// What is done to 16 TiB in which there are three pages takes few calls.
fn holes(lab: &Lab) -> Verdict {
    const COUNT: u64 = 1 << 32;
    lab.conserves_memory(|| {
        let (Some(space), Some(child)) = (space(lab)?, space(lab)?) else {
            return Ok(());
        };
        space.map_zero(AT, COUNT, WRITE).map_err(say)?;
        let pages = [0, COUNT / 3, COUNT - 1];
        for page in pages {
            poke(&space, AT + page * PAGE, [7; 8]).map_err(say)?;
        }
        let mut calls = 0;
        let mut next = Some(0);
        while let Some(from) = next {
            next = space
                .fork(child.duplicate().map_err(say)?, from)
                .map_err(say)?;
            calls += 1;
        }
        calls += discard(&space, AT, COUNT).map_err(say)?;
        for page in pages {
            let seen = [&space, &child].map(|it| peek(it, AT + page * PAGE));
            ensure!(seen == [Ok([0; 8]), Ok([7; 8])], "{seen:?} in page {page}");
        }
        let mut done = 0;
        while done < COUNT {
            done += child.unmap(AT + done * PAGE, COUNT - done).map_err(say)?;
            calls += 1;
        }
        let left = child.usage().map_err(say)?.own;
        ensure!(left == 0, "{left} pages are left");
        ensure!(calls < 1000, "{calls} calls");
        Ok(())
    })
}

/// Rights are taken away and given back, as far as the view has them; what may not be read keeps
/// its content.
fn protection(lab: &Lab) -> Verdict {
    let Some(space) = space(lab)? else {
        return Ok(());
    };
    let owner = object(lab, 8, VmoFill::Zero)?;
    let view = owner
        .view(VmoRights {
            write: false,
            ..ALL
        })
        .map_err(say)?;
    space.map(AT, view, 0, 8, READ).map_err(say)?;
    let answer = space.protect(AT, 8, WRITE);
    ensure!(
        matches!(answer, Err(SpaceError::Denied)),
        "{answer:?} beyond the view"
    );
    space.map_zero(THERE, 700, WRITE).map_err(say)?;
    for page in 0..700 {
        poke(&space, THERE + page * PAGE, [page as u8; 8]).map_err(say)?;
    }
    for how in [NONE, READ, NONE, WRITE] {
        let mut done = 0;
        while done < 500 {
            done += space
                .protect(THERE + (100 + done) * PAGE, 500 - done, how)
                .map_err(say)?;
        }
        for page in [0, 99, 100, 300, 599, 600, 699] {
            let at = THERE + page * PAGE;
            let how = if (100..600).contains(&page) {
                how
            } else {
                WRITE
            };
            let (seen, written) = (peek(&space, at), poke(&space, at, [page as u8; 8]));
            ensure!(
                seen.is_ok() == how.read,
                "page {page}: {seen:?} with {how:?}"
            );
            ensure!(
                written.is_ok() == how.write,
                "page {page}: {written:?} with {how:?}"
            );
            ensure!(
                !how.read || seen == Ok([page as u8; 8]),
                "page {page} is another"
            );
        }
    }
    for (at, count) in [(0, 1), (AT + 1, 1), (AT, 0), (AT, u64::MAX), (1 << 47, 1)] {
        let answer = space.protect(at, count, READ);
        ensure!(
            matches!(answer, Err(SpaceError::BadAddress)),
            "{answer:?} for {at:#x}"
        );
    }
    ensure!(
        space.protect(AT + 100 * PAGE, 5, READ) == Ok(5),
        "where nothing is mapped"
    );
    Ok(())
}

/// A child sees what was there at the fork; then neither sees what the other writes, but in the
/// pages of the object.
fn forked(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (Some(parent), Some(child)) = (space(lab)?, space(lab)?) else {
            return Ok(());
        };
        let owner = object(lab, 20, VmoFill::Zero)?;
        map(&parent, AT, &owner, 20, WRITE)?;
        parent
            .map_private(THERE, owner.view(ALL).map_err(say)?, 0, 20, WRITE)
            .map_err(say)?;
        let zeros = THERE + 1000 * PAGE;
        parent.map_zero(zeros, 100, WRITE).map_err(say)?;
        for page in 0..100 {
            poke(&parent, zeros + page * PAGE, [1; 8]).map_err(say)?;
        }
        for at in [AT, THERE, zeros] {
            poke(&parent, at + 3 * PAGE, *b"parent's").map_err(say)?;
        }
        parent.protect(zeros + 3 * PAGE, 1, READ).map_err(say)?;
        let before = charged(lab)?;
        fork(&parent, &child).map_err(say)?;
        let more = charged(lab)? - before;
        ensure!(
            more >= 80 * PAGE,
            "the child's pages are nobody's: {more} bytes"
        );
        for at in [AT, THERE, zeros] {
            let seen = peek(&child, at + 3 * PAGE);
            ensure!(seen == Ok(*b"parent's"), "{seen:?} at {at:#x} in the child");
        }
        let answer = poke(&child, zeros + 3 * PAGE, [0; 8]);
        ensure!(
            answer == Err(SpaceError::NotMapped),
            "{answer:?} to a write"
        );
        child.protect(zeros, 20, WRITE).map_err(say)?;
        for at in [AT, THERE, zeros] {
            poke(&child, at + 3 * PAGE, *b"child's.").map_err(say)?;
        }
        let seen = [AT, THERE, zeros].map(|at| peek(&parent, at + 3 * PAGE));
        let right = [Ok(*b"child's."), Ok(*b"parent's"), Ok(*b"parent's")];
        ensure!(seen == right, "{seen:?} in the parent");
        poke(&parent, THERE + 3 * PAGE, *b"later on").map_err(say)?;
        ensure!(
            peek(&child, THERE + 3 * PAGE) == Ok(*b"child's."),
            "the child sees it"
        );
        owner.cut(3, 1).map_err(say)?;
        let seen = [&parent, &child].map(|space| peek(space, AT + 3 * PAGE));
        ensure!(seen == [Ok([0; 8]); 2], "{seen:?} after a cut");
        drop(parent);
        ensure!(
            peek(&child, THERE + 3 * PAGE) == Ok(*b"child's."),
            "it went with the parent"
        );
        Ok(())
    })
}

/// A line of children, each of which writes one page more.
fn generations(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(mut last) = space(lab)? else {
            return Ok(());
        };
        last.map_zero(AT, 40, WRITE).map_err(say)?;
        let mut all = Vec::new();
        for generation in 0..30_u8 {
            let child = space(lab)?.ok_or("there is none")?;
            fork(&last, &child).map_err(say)?;
            poke(
                &child,
                AT + u64::from(generation) * PAGE,
                [generation + 1; 8],
            )
            .map_err(say)?;
            if generation % 3 > 0 {
                all.push((generation, core::mem::replace(&mut last, child)));
            } else {
                last = child;
            }
        }
        for (generation, space) in &all {
            for page in 0..30 {
                let value = if page < *generation { page + 1 } else { 0 };
                let seen = peek(space, AT + u64::from(page) * PAGE);
                ensure!(
                    seen == Ok([value; 8]),
                    "{seen:?} in page {page} of {generation}"
                );
            }
        }
        Ok(())
    })
}

/// Into itself, over what is there, from no page, into what is no space.
fn refused(lab: &Lab) -> Verdict {
    let (Some(parent), Some(child)) = (space(lab)?, space(lab)?) else {
        return Ok(());
    };
    parent.map_zero(AT, 10, WRITE).map_err(say)?;
    poke(&parent, AT, [1; 8]).map_err(say)?;
    let answer = fork(&parent, &parent);
    ensure!(
        answer == Err(SpaceError::Occupied),
        "{answer:?} into itself"
    );
    child.map_zero(AT + 5 * PAGE, 1, WRITE).map_err(say)?;
    let answer = fork(&parent, &child);
    ensure!(
        answer == Err(SpaceError::Occupied),
        "{answer:?} over a page"
    );
    let other = || child.duplicate().map_err(say);
    for from in [1, u64::MAX, 4095] {
        let answer = parent.fork(other()?, from);
        ensure!(
            answer == Err(SpaceError::BadAddress),
            "{answer:?} from {from:#x}"
        );
    }
    let answer = parent.fork(other()?, 1 << 50);
    ensure!(answer == Ok(None), "{answer:?} from behind all");
    // From the middle of an area that the child does not have: pages, and no area.
    let empty = space(lab)?.ok_or("there is none")?;
    poke(&parent, AT + 6 * PAGE, [6; 8]).map_err(say)?;
    let answer = parent.fork(empty.duplicate().map_err(say)?, AT + 2 * PAGE);
    ensure!(answer == Ok(None), "{answer:?} from the middle");
    ensure!(empty.touch(AT + 6 * PAGE, false).is_err(), "it has an area");
    empty.map_zero(AT, 10, WRITE).map_err(say)?;
    ensure!(peek(&empty, AT) == Ok([0; 8]), "it cannot be used any more");
    let foreign = Handle::<dyn AddressSpace>::new(Fake).map_err(say)?;
    let answer = parent.fork(foreign, 0);
    ensure!(
        answer == Err(SpaceError::Denied),
        "{answer:?} into what is no space"
    );
    ensure!(
        peek(&parent, AT) == Ok([1; 8]),
        "the parent has lost a page"
    );
    Ok(())
}

/// Writes to pages of zeros from `at` on, until there is no memory; how many.
fn fill(space: &Space, at: u64) -> Result<u64, String> {
    for page in 0..10_000 {
        match poke(space, at + page * PAGE, [1; 8]) {
            Ok(()) => {}
            Err(SpaceError::Rpc(RpcError::NoMemory)) => return Ok(page),
            Err(error) => return Err(say(error)),
        }
    }
    Ok(10_000)
}

/// Who makes a space pays for its pages as far as his limit goes, for those that two of his spaces
/// share twice.
fn limits(lab: &Lab) -> Verdict {
    const LIMIT: u64 = 512;
    let Some(spaces) = lab.spaces.as_ref() else {
        return Ok(());
    };
    lab.conserves_memory(|| {
        let spec = DomainSpec {
            group_pages: LIMIT,
            ..unlimited()
        };
        let victim = lab.start_as(None, spec, b"")?.map_err(say)?;
        let space = || {
            let maker = spaces.duplicate().map_err(say)?;
            victim.subject.make_space(maker).map_err(say)
        };
        let parent = space()?;
        parent.map_zero(AT, 10_000, WRITE).map_err(say)?;
        let pages = fill(&parent, AT)?;
        ensure!(
            (LIMIT / 4..LIMIT).contains(&pages),
            "{pages} pages of {LIMIT}"
        );
        ensure!(victim.subject.add(1, 1) == Ok(2), "it does not answer");
        let kept = 2 * pages / 3;
        parent.unmap(AT + kept * PAGE, pages - kept).map_err(say)?;
        let child = space()?;
        let forked = fork(&parent, &child);
        let no_memory = Err(SpaceError::Rpc(RpcError::NoMemory));
        ensure!(
            forked == no_memory,
            "{forked:?}: {kept} pages twice, of {pages}"
        );
        drop(child);
        let last = parent.touch(AT + (kept - 1) * PAGE, true);
        ensure!(last == Ok(()), "{last:?} after a fork that failed");
        parent.unmap(AT, kept).map_err(say)?;
        let again = fill(&parent, AT + 5000 * PAGE)?;
        ensure!(
            again + 24 > pages,
            "{again} pages after {pages} were given back"
        );
        drop(parent);
        victim.end()
    })
}

/// A fork of more than one call does is gone on with, over areas and holes.
fn large(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (Some(parent), Some(child)) = (space(lab)?, space(lab)?) else {
            return Ok(());
        };
        let areas = 150;
        let place = |area: u64| AT + (area << 22);
        for area in 0..areas {
            parent.map_zero(place(area), 3, WRITE).map_err(say)?;
            poke(&parent, place(area) + PAGE, area.to_le_bytes()).map_err(say)?;
        }
        let mut calls = 0;
        let mut next = Some(0);
        while let Some(from) = next {
            next = parent
                .fork(child.duplicate().map_err(say)?, from)
                .map_err(say)?;
            calls += 1;
        }
        ensure!(
            calls > 1,
            "one call did {areas} areas, so this tests nothing"
        );
        for area in 0..areas {
            let seen = peek(&child, place(area) + PAGE);
            ensure!(seen == Ok(area.to_le_bytes()), "{seen:?} in area {area}");
        }
        Ok(())
    })
}

/// Domains make spaces with an object's pages, fork them, and are ended in the middle, while the
/// object is cut, cleaned and evicted: no page holds what was never written to it, and nothing is
/// lost.
fn dying(lab: &Lab) -> Verdict {
    const PAGES: u64 = 96;
    const ROUNDS: u64 = 25;
    let Some(spaces) = lab.spaces.as_ref() else {
        return Ok(());
    };
    let wrong = Arc::new(AtomicU32::new(0));
    lab.conserves_memory(|| {
        for round in 0..ROUNDS {
            let owner = object(lab, PAGES, VmoFill::Zero)?;
            let mut victims = Vec::new();
            for seed in 0..3 {
                let victim = lab.start()?;
                let view = owner.view(ALL).map_err(say)?;
                let subject = victim.subject.duplicate().map_err(say)?;
                let (maker, told) = (spaces.duplicate().map_err(say)?, wrong.clone());
                thread::spawn("forks", move || {
                    if let Ok(page) = subject.fork_often(maker, view, round * 3 + seed) {
                        domain_rt::log!("page {page} holds what it must not");
                        told.fetch_add(1, Ordering::SeqCst);
                    }
                })
                .map_err(say)?;
                victims.push(victim);
            }
            for victim in &victims {
                time::sleep(300_000 + round * 11_000);
                owner.cut(round % 50, 30).map_err(say)?;
                owner.clean(0, PAGES).map_err(say)?;
                owner.commit(0, PAGES).map_err(say)?;
                owner.evict(0, PAGES).map_err(say)?;
                victim.domain.kill().map_err(say)?;
            }
            for victim in victims {
                let why = victim.gone()?;
                ensure!(why == CrashReason::Killed, "it ended by {why:?}");
            }
        }
        settle(lab)
    })?;
    let wrong = wrong.load(Ordering::SeqCst);
    ensure!(wrong == 0, "{wrong} times a page was not right");
    Ok(())
}
