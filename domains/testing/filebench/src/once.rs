//! Threads that rename and add to a file each: every change is made once, whoever dies meanwhile.

use alloc::format;
use core::sync::atomic::{AtomicU64, Ordering};

use domain_rt::{thread, time};
use interfaces::{DomainControl, Monitor, OpenFlags, RVec};
use ulib::{Env, Error, Handle, Process, READ, Stop};

use crate::threads;

const MOST: u64 = 255;
/// Renamings of each thread, and bytes that it adds.
const ROUNDS: u64 = 12;
/// A domain is made to crash each time when so many more have been made by all.
const EVERY: u64 = 600;
/// How long it may take until that is noticed, in nanoseconds.
const LOOK: u64 = 2_000_000;
/// Renamings and writes of all threads.
static MADE: AtomicU64 = AtomicU64::new(0);
const ADD: OpenFlags = OpenFlags {
    read: false,
    write: true,
    create: true,
    append: true,
    ..READ
};

/// How many threads the option asks for.
///
/// # Errors
/// It makes no sense.
pub fn parse(text: &[u8]) -> Result<u64, Stop> {
    let number = core::str::from_utf8(text).ok();
    match number.and_then(|text| text.parse().ok()) {
        Some(threads @ 1..=MOST) => Ok(threads),
        _ => Err(Stop::usage("-e is followed by a number from 1 to 255")),
    }
}

/// The work of all threads, while `domain` crashes, if one is named.
///
/// # Errors
/// One of theirs: a change that failed, or was not made once.
pub fn each_once(env: &Env, count: u64, domain: Option<&[u8]>) -> Result<(), Stop> {
    if let Some(domain) = domain {
        let (monitor, control) = (env.service("monitor")?, env.service("control")?);
        let domain = domain.to_vec();
        let all = 2 * count * ROUNDS;
        thread::spawn("trouble", move || trouble(&monitor, &control, &domain, all))?;
    }
    threads::at_once(env.process(), count, work).map_err(crate::stop)
}

/// Has a domain crash as the threads go on, so that each life of it makes as many changes on a slow
/// machine as on a fast one.
fn trouble(
    monitor: &Handle<dyn Monitor>,
    control: &Handle<dyn DomainControl>,
    domain: &[u8],
    all: u64,
) {
    let mut next = EVERY / 2;
    while next < all {
        time::sleep(LOOK);
        if MADE.load(Ordering::Relaxed) < next {
            continue;
        }
        // One that is just being started again is let be.
        let found = ulib::find_domain(monitor, domain).ok();
        let found = found.and_then(|info| control.domain(info.id).ok()?);
        if found.is_some_and(|domain| domain.crash_next_call().is_ok()) {
            next += EVERY;
        }
    }
}

/// The work of one: its file is called by the number of the round, and has a byte of each.
fn work(process: &Handle<dyn Process>, thread: u64) -> Result<(), Error> {
    let name = |round: u64| -> Result<RVec<u8>, Error> {
        Ok(RVec::from_slice(format!("{thread}-{round}").as_bytes())?)
    };
    for round in 0..ROUNDS {
        let file = process.open(&name(round)?, ADD)?;
        let written = process.write(file, &RVec::from_slice(&[round as u8])?)?;
        process.close(file)?;
        if written != 1 {
            return Err(Error::text("the disk is full"));
        }
        MADE.fetch_add(1, Ordering::Relaxed);
        process.rename(&name(round)?, &name(round + 1)?)?;
        MADE.fetch_add(1, Ordering::Relaxed);
    }
    let file = process.open(&name(ROUNDS)?, READ)?;
    let content = process.read(file, RVec::filled(0, 2 * ROUNDS as usize)?)?;
    process.close(file)?;
    match content.iter().copied().eq(0..ROUNDS as u8) {
        true => Ok(()),
        false => Err(Error::text("a byte is missing, or there twice")),
    }
}
