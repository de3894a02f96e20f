//! Copies between memory objects and programs: which bytes, how many, whatever numbers are asked
//! for, and whatever becomes of object, program and domains meanwhile.

use crate::lab::{Lab, Victim, say, settle};
use crate::spaces::{ALL, AT, PAGE, READ, WRITE, map, object};
use crate::userbufs::{FROM, INTO, Space, bytes, lent, pages, segment};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use domain_rt::user::UserBuf;
use domain_rt::{thread, time};
use interfaces::{
    CrashReason, Events, Handle, MemoryError, RVec, VmoFill, VmoOwner, VmoRights, VmoView,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("copies-objects-and-programs", there_and_back),
    ("copies-short-at-a-fault", short),
    ("copies-of-wrong-numbers", wrong),
    ("copies-of-mapped-pages", mapped),
    ("copies-while-pages-go", changing),
    ("copies-among-dying-domains", dying),
];

/// The most bytes of one call.
const MOST: u64 = 2 << 20;

type View = Handle<dyn VmoView>;

fn pattern(count: u64) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8).collect()
}

fn read(view: &View, offset: u64, count: u64) -> Result<Vec<u8>, String> {
    let buffer = RVec::filled(0xaa, count as usize).map_err(say)?;
    let (buffer, count) = view.read(offset, buffer).map_err(say)?;
    Ok(buffer[..count as usize].to_vec())
}

fn write(space: &Space, at: u64, bytes: &[u8]) -> Verdict {
    let data = RVec::from_slice(bytes).map_err(say)?;
    let count = space.write(at, &data).map_err(say)?;
    ensure!(
        count == bytes.len() as u64,
        "{count} bytes are the program's"
    );
    Ok(())
}

/// In runs over the ends of pages, to a place that is not at a page's beginning; and back.
fn there_and_back(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = pages(lab, 6)? else {
            return Ok(());
        };
        let owner = object(lab, 8, VmoFill::Zero)?;
        let view = owner.view(ALL).map_err(say)?;
        let right = pattern(9099);
        write(&space, AT + 3 * PAGE - 7, &right[..5000])?;
        write(&space, AT + 100, &right[5000..5003])?;
        write(&space, AT + PAGE, &right[5003..])?;
        let segments = [
            segment(AT + 3 * PAGE - 7, 5000),
            segment(AT, 0),
            segment(AT + 100, 3),
            segment(AT + PAGE, 4096),
        ];
        let from = lent(&space, &segments, FROM)?;
        let done = view.write_from(PAGE - 50, 9099, &from, 0);
        ensure!(done == Ok(9099), "{done:?} from the program");
        let seen = read(&view, PAGE - 50, 9099)?;
        ensure!(seen == right, "other bytes are in the object");
        let beside = [
            read(&view, 0, PAGE - 50)?,
            read(&view, PAGE - 50 + 9099, 100)?,
        ]
        .concat();
        ensure!(beside.iter().all(|byte| *byte == 0), "bytes beside them");
        // From the middle of the runs on, and no more than there are.
        let other = [
            segment(AT + 4 * PAGE + 1000, 300),
            segment(AT + 5 * PAGE - 100, 900),
        ];
        let to = lent(&space, &other, INTO)?;
        let done = view.read_to(PAGE, u64::MAX / 2, &to, 250);
        ensure!(done == Ok(950), "{done:?} to the program");
        let seen = [
            bytes(&space, AT + 4 * PAGE + 1250, 50)?,
            bytes(&space, AT + 5 * PAGE - 100, 900)?,
        ]
        .concat();
        ensure!(seen == right[50..1000], "other bytes are in the program");
        let before = bytes(&space, AT + 4 * PAGE + 1000, 250)?;
        ensure!(before.iter().all(|byte| *byte == 0), "bytes before them");
        Ok(())
    })
}

/// A page of the program that is not ready ends a copy, and so does one of the object.
fn short(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = pages(lab, 2)? else {
            return Ok(());
        };
        space.map_zero(AT + 2 * PAGE, 1, WRITE).map_err(say)?;
        space.map_zero(AT + 3 * PAGE, 1, READ).map_err(say)?;
        let owner = object(lab, 8, VmoFill::Load)?;
        let view = owner.view(ALL).map_err(say)?;
        let all = [segment(AT, 4 * PAGE)];
        let (to, from) = (lent(&space, &all, INTO)?, lent(&space, &all, FROM)?);
        let absent = Err(MemoryError::Absent);
        ensure!(view.read_to(0, PAGE, &to, 0) == absent, "of an absent page");
        owner.load(0, 6).map_err(say)?;
        let filled = view.fill_from(10, 4 * PAGE, &from, 0);
        ensure!(filled == Ok(2 * PAGE), "{filled:?} while it is loaded");
        owner.loaded(0, 3).map_err(say)?;
        let done = view.read_to(0, 4 * PAGE, &to, 8);
        ensure!(done == Ok(2 * PAGE - 8), "{done:?} before an absent page");
        let unready = Err(MemoryError::Unready);
        let done = view.read_to(0, PAGE, &to, 2 * PAGE);
        ensure!(done == unready, "{done:?} to an absent page");
        let done = view.write_from(0, PAGE, &from, 2 * PAGE);
        ensure!(done == unready, "{done:?} from an absent page");
        space.touch(AT + 2 * PAGE, true).map_err(say)?;
        space.touch(AT + 3 * PAGE, false).map_err(say)?;
        let done = view.read_to(0, 3 * PAGE, &to, PAGE);
        ensure!(done == Ok(2 * PAGE), "{done:?} before one to read only");
        let done = view.read_to(0, PAGE, &to, 3 * PAGE);
        ensure!(done == unready, "{done:?} to one to read only");
        let done = view.write_from(0, PAGE, &from, 3 * PAGE);
        ensure!(done == Ok(PAGE), "{done:?} from one to read only");
        // The object: behind page 2 is a page that is being loaded.
        let done = view.read_to(2 * PAGE, 2 * PAGE, &to, 0);
        ensure!(done == Ok(PAGE), "{done:?} before a page that is loaded");
        let done = view.write_from(3 * PAGE, 1, &from, 0);
        ensure!(done == Err(MemoryError::Loading), "{done:?} of one");
        Ok(())
    })
}

/// Rights, directions, handles of other things, and numbers at the ends.
fn wrong(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = pages(lab, 1)? else {
            return Ok(());
        };
        let owner = object(lab, 2000, VmoFill::Zero)?;
        let view = owner.view(ALL).map_err(say)?;
        let own = [segment(AT, 64)];
        let (to, from) = (lent(&space, &own, INTO)?, lent(&space, &own, FROM)?);
        let done = view.write_from(0, 64, &from, 0);
        ensure!(done == Ok(64), "{done:?} from the program");
        let absent = view.read_to(PAGE, 8, &to, 0);
        ensure!(absent == Err(MemoryError::Absent), "{absent:?} of a page");
        let (invalid, denied) = (Err(MemoryError::Invalid), Err(MemoryError::Denied));
        ensure!(view.read_to(0, 8, &from, 0) == invalid, "the wrong way");
        ensure!(view.write_from(0, 8, &to, 0) == invalid, "the wrong way");
        ensure!(view.fill_from(0, 8, &to, 0) == invalid, "the wrong way");
        let none = UserBuf::empty(INTO);
        ensure!(view.read_to(0, 8, &none, 0) == invalid, "of no program");
        let map_only = VmoRights {
            read: false,
            write: false,
            ..ALL
        };
        let mute = owner.view(map_only).map_err(say)?;
        ensure!(mute.read_to(0, 8, &to, 0) == denied, "without the right");
        ensure!(
            mute.write_from(0, 8, &from, 0) == denied,
            "without the right"
        );
        ensure!(
            mute.fill_from(0, 8, &from, 0) == denied,
            "without the right"
        );
        for at in [64, 65, u64::MAX] {
            let done = view.read_to(0, 8, &to, at);
            ensure!(done == Ok(0), "{done:?} behind the end, at {at:#x}");
        }
        for offset in [2000 * PAGE, 1 << 48, 1 << 63, u64::MAX - 7, u64::MAX] {
            for count in [8, PAGE, u64::MAX] {
                let beyond = Err(MemoryError::Beyond);
                let done = view.read_to(offset, count, &to, 0);
                ensure!(done == beyond, "{done:?} to, {offset:#x} and {count:#x}");
                let done = view.write_from(offset, count, &from, 0);
                ensure!(done == beyond, "{done:?} from, {offset:#x} and {count:#x}");
            }
        }
        let numbers = [
            (0, 64),
            (AT - 64, 64),
            (1 << 47, 64),
            ((1 << 47) - 64, 4096),
            (u64::MAX, u64::MAX),
            (u64::MAX - 4095, u64::MAX),
            (0xffff_8000_0000_0000, u64::MAX),
            (0xffff_ffff_8000_0000, 4096),
        ];
        for (start, length) in numbers {
            let far = [segment(start, length)];
            let unready = Err(MemoryError::Unready);
            let done = view.read_to(0, u64::MAX, &lent(&space, &far, INTO)?, 0);
            ensure!(done == unready, "{done:?} to {start:#x}");
            let done = view.write_from(0, u64::MAX, &lent(&space, &far, FROM)?, 0);
            ensure!(done == unready, "{done:?} from {start:#x}");
        }
        // Handles of other things, of the kernel's and of a domain's.
        let victim = lab.start()?;
        let events: &Handle<dyn Events> = lab.events.as_ref().ok_or("no events")?;
        let fakes = [
            UserBuf::new(events, &own, INTO),
            UserBuf::new(&view, &own, INTO),
            UserBuf::new(&victim.subject, &own, INTO),
        ];
        for fake in fakes.into_iter().flatten() {
            let done = view.read_to(0, 8, &fake, 0);
            ensure!(done == invalid, "{done:?} with a handle of something else");
        }
        let seen = bytes(&space, AT, PAGE as usize)?;
        ensure!(seen.iter().all(|byte| *byte == 0), "something was written");
        most(lab, &view)?;
        victim.end()
    })
}

/// One call does not go on without an end.
fn most(lab: &Lab, view: &View) -> Verdict {
    let Some(space) = pages(lab, 1)? else {
        return Ok(());
    };
    // The same page again and again.
    let many = [segment(AT, PAGE); 600];
    let done = view.write_from(0, u64::MAX, &lent(&space, &many, FROM)?, 0);
    ensure!(done == Ok(MOST), "{done:?} bytes in one call");
    let done = view.read_to(0, u64::MAX, &lent(&space, &many, INTO)?, 0);
    ensure!(done == Ok(MOST), "{done:?} bytes in one call");
    Ok(())
}

/// The program has the object's own pages mapped: copies onto themselves, and one beside the other.
fn mapped(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(space) = pages(lab, 1)? else {
            return Ok(());
        };
        let owner = object(lab, 4, VmoFill::Zero)?;
        let view = owner.view(ALL).map_err(say)?;
        let there = AT + 0x10_0000;
        map(&space, there, &owner, 4, WRITE)?;
        for page in 0..4 {
            space.touch(there + page * PAGE, true).map_err(say)?;
        }
        let right = pattern(4 * PAGE);
        write(&space, there, &right)?;
        let same = [segment(there, 4 * PAGE)];
        let done = view.read_to(0, 4 * PAGE, &lent(&space, &same, INTO)?, 0);
        ensure!(done == Ok(4 * PAGE), "{done:?} onto itself");
        let done = view.write_from(0, 4 * PAGE, &lent(&space, &same, FROM)?, 0);
        ensure!(done == Ok(4 * PAGE), "{done:?} from itself");
        ensure!(read(&view, 0, 4 * PAGE)? == right, "other bytes");
        // Overlapping: any of both may be there, and nothing else goes.
        let beside = [segment(there + 9, PAGE)];
        let done = view.read_to(0, PAGE, &lent(&space, &beside, INTO)?, 0);
        ensure!(done == Ok(PAGE), "{done:?} beside itself");
        let rest = read(&view, PAGE + 9, 3 * PAGE - 9)?;
        ensure!(rest == right[PAGE as usize + 9..], "bytes behind it");
        Ok(())
    })
}

/// Takes pages of an object away in every way, until told to stop.
fn harass(owner: &Handle<dyn VmoOwner>, pages: u64, stop: &AtomicBool) {
    for round in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let page = round % pages;
        let _ = match round % 5 {
            0 => owner.cut(page, 1),
            1 => owner.clean(page, pages - page).map(|_| 0),
            2 => owner.commit(page, pages - page),
            3 => owner.evict(0, pages),
            _ => owner
                .set_limit(page)
                .and_then(|()| owner.set_limit(pages))
                .map(|()| 0),
        };
    }
}

/// Copies while another processor changes the program's pages, and a third takes the object's away:
/// each byte is one that was there.
fn changing(lab: &Lab) -> Verdict {
    const PAGES: u64 = 70;
    let Some(spaces) = lab.spaces.as_ref() else {
        return Ok(());
    };
    lab.conserves_memory(|| {
        let owner = Arc::new(object(lab, PAGES, VmoFill::Zero)?);
        let victim = lab.start()?;
        let (stop, wrong) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU32::new(0)),
        );
        for seed in 0..2 {
            let (maker, told) = (spaces.duplicate().map_err(say)?, wrong.clone());
            let view = owner.view(ALL).map_err(say)?;
            copy_in(&victim, move |victim| {
                if let Ok(page) = victim.copy_often(maker, view, seed) {
                    domain_rt::log!("page {page} holds what it must not");
                    told.fetch_add(1, Ordering::SeqCst);
                }
            })?;
        }
        let (object, told) = (owner.clone(), stop.clone());
        let done = Arc::new(AtomicU32::new(0));
        let ended = done.clone();
        thread::spawn("harasses", move || {
            harass(&object, PAGES, &told);
            drop(object);
            ended.store(1, Ordering::SeqCst);
        })
        .map_err(say)?;
        time::sleep(400_000_000);
        stop.store(true, Ordering::SeqCst);
        crate::lab::wait_for("the end", || done.load(Ordering::SeqCst) == 1)?;
        let wrong = wrong.load(Ordering::SeqCst);
        ensure!(wrong == 0, "{wrong} times a byte was not right");
        let died = victim.has_died()?;
        ensure!(!died, "who copies has died");
        victim.end()?;
        settle(lab)
    })
}

type Subject = Handle<dyn interfaces::Subject>;

fn copy_in(victim: &Victim, body: impl FnOnce(Subject) + Send + 'static) -> Verdict {
    let subject = victim.subject.duplicate().map_err(say)?;
    thread::spawn("copies", move || body(subject)).map_err(say)?;
    Ok(())
}

/// Who copies is ended at any moment; then the object is gone before its view, too.
fn dying(lab: &Lab) -> Verdict {
    const PAGES: u64 = 40;
    const ROUNDS: u64 = 20;
    let Some(spaces) = lab.spaces.as_ref() else {
        return Ok(());
    };
    let wrong = Arc::new(AtomicU32::new(0));
    lab.conserves_memory(|| {
        for round in 0..ROUNDS {
            let owner = object(lab, PAGES, VmoFill::Zero)?;
            let mut victims = Vec::new();
            for seed in 0..2 {
                let victim = lab.start()?;
                let view = owner.view(ALL).map_err(say)?;
                let (maker, told) = (spaces.duplicate().map_err(say)?, wrong.clone());
                copy_in(&victim, move |victim| {
                    if victim.copy_often(maker, view, round * 2 + seed).is_ok() {
                        told.fetch_add(1, Ordering::SeqCst);
                    }
                })?;
                victims.push(victim);
            }
            time::sleep(300_000 + round * 41_000);
            if round % 2 == 0 {
                owner.cut(0, PAGES).map_err(say)?;
                drop(owner);
            }
            for victim in &victims {
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
    ensure!(wrong == 0, "{wrong} times a byte was not right");
    Ok(())
}
