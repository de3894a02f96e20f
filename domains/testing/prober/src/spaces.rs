//! Address spaces: pages of memory objects in them, and what becomes of these when objects lose
//! pages, spaces go and domains die.

use crate::lab::{Lab, say, settle};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use domain_rt::{thread, time};
use interfaces::{
    AddressSpace, Handle, MemoryError, PageKind, Protection, RVec, SpaceError, VmoFill, VmoOwner,
    VmoRights,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("spaces-share-an-object", shared),
    ("spaces-rights-of-views", rights),
    ("spaces-bad-ranges", ranges),
    ("spaces-lose-what-the-object-loses", losses),
    ("spaces-writes-are-marked", marks),
    ("spaces-parts-are-unmapped", parts),
    ("spaces-go-with-their-maker", gone),
    ("spaces-huge-mapping-is-sealed", huge),
    ("spaces-among-dying-domains", dying),
];

pub const PAGE: u64 = 4096;
pub const AT: u64 = 0x40_0000;

pub const ALL: VmoRights = VmoRights {
    read: true,
    write: true,
    map: true,
    execute: true,
};
pub const WRITE: Protection = Protection {
    write: true,
    ..READ
};
pub const READ: Protection = Protection {
    read: true,
    write: false,
    execute: false,
};

type Space = Handle<dyn AddressSpace>;
type Owner = Handle<dyn VmoOwner>;

/// A new space; none where there are none.
pub fn space(lab: &Lab) -> Result<Option<Space>, String> {
    let spaces = lab.spaces.as_ref();
    spaces.map(|it| it.create().map_err(say)).transpose()
}

pub fn object(lab: &Lab, limit: u64, fill: VmoFill) -> Result<Owner, String> {
    let objects = lab.objects.as_ref().ok_or("nobody makes objects")?;
    objects.create(limit, fill).map_err(say)
}

/// Maps all of an object.
pub fn map(space: &Space, at: u64, owner: &Owner, count: u64, how: Protection) -> Verdict {
    let view = owner.view(ALL).map_err(say)?;
    space.map(at, view, 0, count, how).map_err(say)
}

/// What a program reads at `at`, a fault included.
pub fn peek(space: &Space, at: u64) -> Result<[u8; 8], SpaceError> {
    let look = || -> Result<[u8; 8], SpaceError> {
        let buffer = RVec::filled(0xaa, 8).map_err(SpaceError::Rpc)?;
        let (bytes, _) = space.read(at, buffer)?;
        Ok(bytes[..8].try_into().unwrap_or_default())
    };
    match look() {
        Err(SpaceError::NotMapped) => {
            space.touch(at, false)?;
            look()
        }
        seen => seen,
    }
}

/// What a program writes at `at`, a fault included.
pub fn poke(space: &Space, at: u64, bytes: [u8; 8]) -> Result<(), SpaceError> {
    let data = RVec::from_slice(&bytes).map_err(SpaceError::Rpc)?;
    match space.write(at, &data) {
        Err(SpaceError::NotMapped) => {
            space.touch(at, true)?;
            space.write(at, &data).map(drop)
        }
        done => done.map(drop),
    }
}

/// Two spaces and a view see the same bytes.
fn shared(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (Some(one), Some(other)) = (space(lab)?, space(lab)?) else {
            return Ok(());
        };
        let owner = object(lab, 20, VmoFill::Zero)?;
        map(&one, AT, &owner, 20, WRITE)?;
        map(&other, AT + 100 * PAGE, &owner, 20, READ)?;
        poke(&one, AT + 3 * PAGE + 16, *b"one writ").map_err(say)?;
        let seen = peek(&other, AT + 103 * PAGE + 16).map_err(say)?;
        ensure!(seen == *b"one writ", "the other space reads {seen:?}");
        let view = owner.view(ALL).map_err(say)?;
        let data = RVec::from_slice(b"by a cal").map_err(say)?;
        view.write(3 * PAGE + 16, &data).map_err(say)?;
        let seen = peek(&one, AT + 3 * PAGE + 16).map_err(say)?;
        ensure!(seen == *b"by a cal", "the first space reads {seen:?}");
        let denied = poke(&other, AT + 103 * PAGE, [1; 8]);
        ensure!(matches!(denied, Err(SpaceError::NotMapped)), "{denied:?}");
        drop((owner, view));
        let seen = peek(&other, AT + 103 * PAGE + 16).map_err(say)?;
        ensure!(seen == *b"by a cal", "it went with its handles");
        Ok(())
    })
}

/// No space gives more than the view that was mapped.
fn rights(lab: &Lab) -> Verdict {
    let Some(space) = space(lab)? else {
        return Ok(());
    };
    let owner = object(lab, 4, VmoFill::Zero)?;
    let cases = [
        (VmoRights { map: false, ..ALL }, READ),
        (VmoRights { read: false, ..ALL }, READ),
        (
            VmoRights {
                write: false,
                ..ALL
            },
            WRITE,
        ),
        (
            VmoRights {
                execute: false,
                ..ALL
            },
            Protection {
                execute: true,
                ..READ
            },
        ),
    ];
    for (rights, how) in cases {
        let view = owner.view(rights).map_err(say)?;
        let answer = space.map(AT, view, 0, 4, how);
        ensure!(
            matches!(answer, Err(SpaceError::Denied)),
            "{answer:?} with {rights:?}"
        );
    }
    let readable = VmoRights {
        write: false,
        ..ALL
    };
    let view = owner.view(readable).map_err(say)?;
    space.map(AT, view, 0, 4, READ).map_err(say)?;
    let answer = space.touch(AT, true);
    ensure!(
        matches!(answer, Err(SpaceError::NotMapped)),
        "{answer:?} to a write"
    );
    ensure!(peek(&space, AT) == Ok([0; 8]), "it cannot be read");
    Ok(())
}

/// Addresses that are none of a program's, ranges that wrap, mappings over others and over the end.
fn ranges(lab: &Lab) -> Verdict {
    let Some(space) = space(lab)? else {
        return Ok(());
    };
    let owner = object(lab, 16, VmoFill::Zero)?;
    let map = |at: u64, page: u64, count: u64| {
        let view = owner.view(ALL).map_err(say)?;
        Ok::<_, String>(space.map(at, view, page, count, WRITE))
    };
    let upper = 0xffff_8000_0000_0000;
    for (at, page, count) in [
        (0, 0, 1),
        (AT + 1, 0, 1),
        (upper, 0, 1),
        (u64::MAX - 4095, 0, 1),
        (0x7fff_ffff_f000, 0, 2),
        (AT, 0, 0),
        (AT, 0, u64::MAX),
        (AT, 0, 1 << 52),
        // Behind its limit an object may be mapped, but not behind what any object can have.
        (AT, 1 << 60, 1),
        (AT, u64::MAX, 2),
    ] {
        let answer = map(at, page, count)?;
        ensure!(answer.is_err(), "{count} pages from {page} at {at:#x}");
    }
    map(AT, 0, 16)?.map_err(say)?;
    for (at, count) in [
        (AT, 1),
        (AT + 15 * PAGE, 1),
        (AT - PAGE, 2),
        (AT - PAGE, 16),
    ] {
        let answer = map(at, 0, count)?;
        ensure!(
            matches!(answer, Err(SpaceError::Occupied)),
            "{answer:?} over another"
        );
    }
    map(AT + 16 * PAGE, 0, 1)?.map_err(say)?;
    map(AT - PAGE, 0, 1)?.map_err(say)?;
    for at in [0, upper, u64::MAX, AT + 17 * PAGE] {
        ensure!(space.touch(at, true).is_err(), "{at:#x} is touched");
        ensure!(peek(&space, at).is_err(), "{at:#x} is read");
        ensure!(poke(&space, at, [1; 8]).is_err(), "{at:#x} is written");
    }
    for (at, count) in [(0, 1), (AT, u64::MAX), (AT + 1, 1), (upper, 1), (AT, 0)] {
        ensure!(
            space.unmap(at, count).is_err(),
            "{count} pages at {at:#x} unmapped"
        );
    }
    Ok(())
}

/// What an object cuts, or has no more by its limit, is nowhere; what it evicts comes again.
fn losses(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (Some(one), Some(other)) = (space(lab)?, space(lab)?) else {
            return Ok(());
        };
        let owner = object(lab, 200, VmoFill::Zero)?;
        map(&one, AT, &owner, 200, WRITE)?;
        map(&other, AT, &owner, 200, READ)?;
        for page in 0..200 {
            poke(&one, AT + page * PAGE, [7; 8]).map_err(say)?;
            ensure!(peek(&other, AT + page * PAGE) == Ok([7; 8]), "page {page}");
        }
        owner.cut(10, 100).map_err(say)?;
        let seen = [9, 10, 109, 110].map(|page| peek(&other, AT + page * PAGE));
        let right = [Ok([7; 8]), Ok([0; 8]), Ok([0; 8]), Ok([7; 8])];
        ensure!(seen == right, "{seen:?} after a cut");
        let seen = peek(&one, AT + 50 * PAGE);
        ensure!(seen == Ok([0; 8]), "{seen:?} where it was written");
        owner.set_limit(50).map_err(say)?;
        let seen = peek(&one, AT + 60 * PAGE);
        let beyond = SpaceError::Object(MemoryError::Beyond);
        ensure!(seen == Err(beyond), "{seen:?} beyond the limit");
        let run = owner.clean(0, 50).map_err(say)?;
        ensure!(run == Some((0, 10)), "{run:?} are dirty");
        owner.commit(0, 10).map_err(say)?;
        let evicted = owner.evict(0, 10).map_err(say)?;
        ensure!(evicted == 10, "{evicted} mapped pages were evicted");
        ensure!(peek(&one, AT) == Ok([0; 8]), "an evicted page is there");
        Ok(())
    })
}

/// Whoever writes through a mapping makes the page dirty, also again after it was cleaned.
fn marks(lab: &Lab) -> Verdict {
    let (Some(one), Some(other)) = (space(lab)?, space(lab)?) else {
        return Ok(());
    };
    let owner = object(lab, 300, VmoFill::Load)?;
    map(&one, AT, &owner, 300, WRITE)?;
    map(&other, AT, &owner, 300, WRITE)?;
    let absent = SpaceError::Object(MemoryError::Absent);
    ensure!(peek(&one, AT) == Err(absent), "an absent page is read");
    owner.load(0, 300).map_err(say)?;
    let loading = SpaceError::Object(MemoryError::Loading);
    ensure!(
        poke(&one, AT, [1; 8]) == Err(loading),
        "a loading page is written"
    );
    let content = RVec::filled(5, 300 * PAGE as usize).map_err(say)?;
    owner.end_load(0, &content).map_err(say)?;
    for page in 0..300 {
        ensure!(peek(&one, AT + page * PAGE) == Ok([5; 8]), "page {page}");
        ensure!(peek(&other, AT + page * PAGE) == Ok([5; 8]), "page {page}");
    }
    let dirty = || owner.next(0, PageKind::Dirty).map_err(say);
    ensure!(dirty()?.is_none(), "what was read is dirty");
    poke(&one, AT + 77 * PAGE, [6; 8]).map_err(say)?;
    ensure!(dirty()? == Some(77), "what was written is clean");
    for round in 0..3 {
        let run = owner.clean(0, 300).map_err(say)?;
        ensure!(run == Some((77, 1)), "{run:?} in round {round}");
        ensure!(!owner.tags(77).map_err(say)?.dirty, "it is dirty already");
        // The entry that let the program write is gone, so this is seen.
        poke(&other, AT + 77 * PAGE, [round; 8]).map_err(say)?;
        ensure!(
            owner.tags(77).map_err(say)?.dirty,
            "a write is lost in round {round}"
        );
        owner.commit(77, 1).map_err(say)?;
    }
    owner.seal().map_err(say)?;
    let sealed = SpaceError::Object(MemoryError::Sealed);
    let answer = poke(&other, AT + 77 * PAGE, [9; 8]);
    ensure!(
        answer == Err(sealed),
        "{answer:?} to a write after the seal"
    );
    ensure!(
        peek(&one, AT + 77 * PAGE) == Ok([2; 8]),
        "it was written all the same"
    );
    Ok(())
}

/// A part of a mapping is unmapped, and the rest goes on.
fn parts(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = space(lab)? else {
            return Ok(());
        };
        let owner = object(lab, 10, VmoFill::Zero)?;
        map(&space, AT, &owner, 10, WRITE)?;
        for page in 0..10 {
            poke(&space, AT + page * PAGE, [page as u8; 8]).map_err(say)?;
        }
        ensure!(
            space.unmap(AT + 3 * PAGE, 4).map_err(say)? == 4,
            "not four are done"
        );
        let there: Vec<u64> = (0..10)
            .filter(|page| peek(&space, AT + page * PAGE).is_ok())
            .collect();
        ensure!(there == [0, 1, 2, 7, 8, 9], "{there:?} are there");
        owner.cut(8, 1).map_err(say)?;
        ensure!(
            peek(&space, AT + 8 * PAGE) == Ok([0; 8]),
            "a cut page is there"
        );
        let view = owner.view(ALL).map_err(say)?;
        space.map(AT + 4 * PAGE, view, 0, 2, READ).map_err(say)?;
        ensure!(
            peek(&space, AT + 5 * PAGE) == Ok([1; 8]),
            "what is mapped in the gap"
        );
        space.unmap(AT, 10).map_err(say)?;
        let there = (0..10).any(|page| peek(&space, AT + page * PAGE).is_ok());
        ensure!(!there, "something is left");
        Ok(())
    })
}

/// Dropped spaces give back what they took, and their maker is not charged for it any more.
fn gone(lab: &Lab) -> Verdict {
    let Some(first) = space(lab)? else {
        return Ok(());
    };
    drop(first);
    let charged = || {
        Ok::<_, String>(
            lab.info(domain_rt::self_id())?
                .ok_or("no self")?
                .object_bytes,
        )
    };
    let before = charged()?;
    lab.conserves_memory(|| {
        let owner = object(lab, 40, VmoFill::Zero)?;
        let space = space(lab)?.ok_or("there is none")?;
        // Far from each other: each takes page tables.
        for index in 0..40 {
            let view = owner.view(ALL).map_err(say)?;
            let at = AT + (index << 31);
            space.map(at, view, index, 1, WRITE).map_err(say)?;
            poke(&space, at, [3; 8]).map_err(say)?;
        }
        let tables = charged()? - before;
        ensure!(tables > 80 * PAGE, "{tables} bytes for 80 page tables");
        Ok(())
    })?;
    let after = charged()?;
    ensure!(
        after <= before,
        "{} bytes are still charged",
        after - before
    );
    Ok(())
}

/// A mapping of more pages than anybody could look at one by one ends no differently.
fn huge(lab: &Lab) -> Verdict {
    const PAGES: u64 = 1 << 33;
    let Some(space) = space(lab)? else {
        return Ok(());
    };
    let owner = object(lab, PAGES, VmoFill::Zero)?;
    map(&space, AT, &owner, PAGES, WRITE)?;
    let places = [0, 1, 1 << 20, PAGES - 1].map(|page| AT + page * PAGE);
    for at in places {
        poke(&space, at, [1; 8]).map_err(say)?;
    }
    owner.seal().map_err(say)?;
    let sealed = SpaceError::Object(MemoryError::Sealed);
    for at in places {
        let answer = poke(&space, at, [2; 8]);
        ensure!(answer == Err(sealed), "{answer:?} to a write at {at:#x}");
        ensure!(peek(&space, at) == Ok([1; 8]), "it was written at {at:#x}");
    }
    Ok(())
}

/// What a page begins with that was written to.
fn canary(page: u64) -> [u8; 8] {
    (page + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// Whether a page may begin so: what is read while somebody writes is a mix of both.
fn is_own(page: u64, seen: &[u8]) -> bool {
    let bytes = seen.iter().zip(canary(page));
    bytes
        .into_iter()
        .all(|(seen, right)| *seen == 0 || *seen == right)
}

/// Three domains use an object, two threads the same by two spaces; it is cut meanwhile, the
/// domains are ended and the spaces dropped: no page holds what was never written to it, and
/// nothing is lost.
fn dying(lab: &Lab) -> Verdict {
    const PAGES: u64 = 96;
    const ROUNDS: u64 = 25;
    let wrong = Arc::new(AtomicU32::new(0));
    lab.conserves_memory(|| {
        for round in 0..ROUNDS {
            let owner = object(lab, PAGES, VmoFill::Zero)?;
            let ended = Arc::new(AtomicBool::new(false));
            for seed in 0..2 {
                let Some(space) = space(lab)? else {
                    return Ok(());
                };
                map(&space, AT, &owner, PAGES, WRITE)?;
                let (ended, told) = (ended.clone(), wrong.clone());
                thread::spawn("mapped", move || {
                    let mut page = seed;
                    while !ended.load(Ordering::SeqCst) {
                        page = (page * 37 + 11) % PAGES;
                        let seen = peek(&space, AT + page * PAGE);
                        let is_right = match seen {
                            Ok(seen) => is_own(page, &seen),
                            Err(error) => error == SpaceError::NotMapped,
                        };
                        // Between a fault and the second attempt the page may be cut again.
                        let written = poke(&space, AT + page * PAGE, canary(page));
                        let is_fine = matches!(written, Ok(()) | Err(SpaceError::NotMapped));
                        if !is_right || !is_fine {
                            domain_rt::log!("page {page}: {seen:?}, {written:?}");
                            told.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                })
                .map_err(say)?;
            }
            let mut victims = Vec::new();
            for seed in 0..3 {
                let victim = lab.start()?;
                let view = owner.view(ALL).map_err(say)?;
                let subject = victim.subject.duplicate().map_err(say)?;
                let told = wrong.clone();
                thread::spawn("churn", move || {
                    if subject.churn(view, round * 3 + seed).is_ok() {
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
            ended.store(true, Ordering::SeqCst);
            for victim in victims {
                let why = victim.gone()?;
                ensure!(
                    why == interfaces::CrashReason::Killed,
                    "it ended by {why:?}"
                );
            }
        }
        settle(lab)
    })?;
    let wrong = wrong.load(Ordering::SeqCst);
    ensure!(wrong == 0, "{wrong} times a page was not right");
    Ok(())
}
