//! Random numbers: never the same for two, in any length, whoever dies meanwhile.

use crate::lab::{Lab, say, settle};
use crate::{Test, Verdict, ensure};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use domain_rt::{thread, time};
use interfaces::{Handle, RVec, Random, RandomError};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("random-never-twice", never_twice),
    ("random-lengths", lengths),
    ("random-among-dying-domains", dying),
];

/// The most bytes of one call, as the interface says.
const MOST: usize = 65_536;
/// A part of so many bytes comes twice with a chance that nobody will see.
const PART: usize = 16;

fn maker(lab: &Lab) -> Result<&Handle<dyn Random>, String> {
    let maker = lab.random.as_ref();
    maker.ok_or_else(|| "nobody makes random numbers".into())
}

fn fill(random: &Handle<dyn Random>, length: usize) -> Result<Vec<u8>, String> {
    let buffer = RVec::filled(0, length).map_err(say)?;
    Ok(random.fill(buffer).map_err(why)?.to_vec())
}

fn why(error: RandomError) -> String {
    match error {
        RandomError::Rpc(error) => say(error),
        RandomError::NotReady => "not ready".into(),
        RandomError::TooLong => "too long".into(),
    }
}

/// Notes all parts of `bytes`; an error if one is known.
fn note(known: &mut BTreeSet<[u8; PART]>, bytes: &[u8]) -> Verdict {
    let (parts, _) = bytes.as_chunks::<PART>();
    for part in parts {
        ensure!(known.insert(*part), "{part:x?} came twice");
    }
    Ok(())
}

/// Two domains and this one, in turns and at once, never get the same bytes.
fn never_twice(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let random = maker(lab)?;
        ensure!(random.is_ready().map_err(say)?, "it is not ready");
        let mut known = BTreeSet::new();
        let victims = [lab.start()?, lab.start()?];
        for _ in 0..8 {
            for victim in &victims {
                let random = random.duplicate().map_err(say)?;
                let buffer = RVec::filled(0, 4096).map_err(say)?;
                let filled = victim.subject.fill_often(random, buffer, 3).map_err(why)?;
                note(&mut known, &filled)?;
            }
            note(&mut known, &fill(random, 4096)?)?;
        }
        for victim in victims {
            victim.domain.kill().map_err(say)?;
            victim.gone()?;
        }
        Ok(())
    })
}

/// Every length up to the bound is filled to its end; beyond it none.
fn lengths(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let random = maker(lab)?;
        for length in [0, 1, 63, 64, 65, 4096, 4097, MOST - 1, MOST] {
            let bytes = fill(random, length)?;
            ensure!(bytes.len() == length, "{} of {length}", bytes.len());
            note(&mut BTreeSet::new(), &bytes)?;
            let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
            ensure!(zeros < 8, "{zeros} zeros at the end of {length}");
        }
        for length in [MOST + 1, 4 * MOST] {
            let buffer = RVec::filled(7, length).map_err(say)?;
            let answer = random.fill(buffer);
            let is_refused = matches!(answer, Err(RandomError::TooLong));
            ensure!(is_refused, "{length} bytes were taken");
        }
        fill(random, 16).map(drop)
    })
}

/// Who dies while he is given bytes leaves the generator to others.
fn dying(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let mut known = BTreeSet::new();
        for round in 0..10 {
            let random = maker(lab)?;
            let victim = lab.start()?;
            let theirs = random.duplicate().map_err(say)?;
            let subject = victim.subject.duplicate().map_err(say)?;
            let buffer = RVec::filled(0, MOST).map_err(say)?;
            thread::spawn("of a victim", move || {
                let _ = subject.fill_often(theirs, buffer, u64::MAX);
            })
            .map_err(say)?;
            time::sleep(100_000 + round * 137_000);
            note(&mut known, &fill(random, 4096)?)?;
            victim.domain.kill().map_err(say)?;
            victim.gone()?;
            note(&mut known, &fill(random, 4096)?)?;
        }
        settle(lab)
    })
}
