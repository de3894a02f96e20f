//! `hog [PART...]`: takes all memory, in every form in which a program can have it, all processor
//! time and the log, at once and for as long as it is let live. For tests of what others then still
//! get.
//!
//! It is made to stay alive: what it needs itself it has before it begins, and being refused is no
//! reason to end. It never gives anything back.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod greed;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use domain_rt::{log, thread, time};
use interfaces::{Job, RVec, SpawnRequest, Text};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

use greed::{Greed, PARTS};

const USAGE: &str = "
usage: hog [-q] [-c N] [-t N] [PART...]
Takes all that it can get, and keeps it: heap, shared (objects on the shared heap), pipes, files (in /tmp); only the
parts that are named, or all. Besides, N threads (-t, 1000) spin and fill the log, and N children (-c, 4) do the same
with a tenth of the threads. When it can get no more, or after ten seconds, it says so (not with -q), and goes on.";

/// Path of the image, for children.
const PATH: &[u8] = b"/boot/testing/hog";
/// Steps of a spinning thread between two lines in the log.
const STEPS: u32 = 20_000;
/// Nanoseconds between two looks whether all has been taken.
const LOOK: u64 = 10_000_000;
/// Nanoseconds after which that is taken for granted.
const HURRY: u64 = 10_000_000_000;
/// Bytes of the line that says so.
const LINE: usize = 120;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

/// What the threads share.
struct Shared {
    /// All threads are there: take.
    takes: AtomicBool,
    /// Everything has been taken: spin.
    spins: AtomicBool,
    /// Parts that can get no more.
    full: AtomicU32,
    /// What each of [`PARTS`] has got.
    got: [AtomicU32; PARTS.len()],
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "qc:t:")?;
    let threads = number(options.value('t'), 1000)?;
    let children = number(options.value('c'), 4)?;
    let parts = chosen(&options.operands)?;
    let shared = Arc::new(Shared {
        takes: AtomicBool::new(false),
        spins: AtomicBool::new(false),
        full: AtomicU32::new(0),
        got: Default::default(),
    });
    // While there is memory for it.
    let mut line = RVec::filled(b' ', LINE)?;
    let greeds = parts.iter().map(|part| Ok((*part, Greed::new(env)?)));
    let greeds = greeds.collect::<Result<Vec<_>, Error>>()?;
    let born = (0..children).take_while(|_| bear(env, threads / 10).is_ok());
    let born = born.count();
    let takers = greeds.into_iter();
    let takers = takers.filter_map(|(part, greed)| take_in_thread(&shared, part, greed).ok());
    let wanted = takers.count() as u32;
    let mut spinning = 0;
    while spinning < threads && spin_in_thread(&shared).is_ok() {
        spinning += 1;
    }
    shared.takes.store(true, Ordering::Relaxed);
    let begin = time::now();
    while shared.full.load(Ordering::Relaxed) < wanted && time::now() - begin < HURRY {
        time::sleep(LOOK);
    }
    if !options.has('q') {
        describe(&mut line, &shared, spinning, born);
        // Who writes it may have no memory for that at once.
        while env.process().write(1, &line).is_err() {
            time::sleep(LOOK);
        }
    }
    shared.spins.store(true, Ordering::Relaxed);
    spin(&shared)
}

fn number(text: Option<&[u8]>, default: u64) -> Result<u64, Stop> {
    let Some(text) = text else {
        return Ok(default);
    };
    let number = core::str::from_utf8(text).ok();
    let number = number.and_then(|text| text.parse().ok());
    number.ok_or(Stop::usage("-c and -t are followed by numbers"))
}

/// The places in [`PARTS`] of those that are named; all if none is.
fn chosen(names: &[Vec<u8>]) -> Result<Vec<usize>, Stop> {
    if names.is_empty() {
        return Ok((0..PARTS.len()).collect());
    }
    let place = |name: &Vec<u8>| PARTS.iter().position(|part| part.name.as_bytes() == name);
    let places: Option<Vec<usize>> = names.iter().map(place).collect();
    places.ok_or(Stop::usage(USAGE.trim_ascii()))
}

/// Starts a child that does the same, but has no children.
fn bear(env: &Env, threads: u64) -> Result<(), Error> {
    let mut count = Text::<20>::empty();
    let _ = write!(count, "{threads}");
    let arguments = [
        PATH,
        b"\0-q\0-c\x000\0-t\0",
        count.as_str().as_bytes(),
        b"\0",
    ]
    .concat();
    env.process().spawn(SpawnRequest {
        path: RVec::from_slice(PATH)?,
        arguments: RVec::from_slice(&arguments)?,
        environment: RVec::from_slice(&[])?,
        descriptors: [0, 1, 2],
        background: true,
        job: Job::Same,
    })?;
    Ok(())
}

/// Makes a thread that takes a part as soon as all threads are there.
fn take_in_thread(shared: &Arc<Shared>, part: usize, greed: Greed) -> RpcResult<()> {
    let shared = shared.clone();
    thread::spawn("hog", move || {
        while !shared.takes.load(Ordering::Relaxed) {
            time::sleep(LOOK);
        }
        take_all(&shared, part, greed)
    })
}

/// Makes a thread that spins as soon as everything else has been taken.
fn spin_in_thread(shared: &Arc<Shared>) -> RpcResult<()> {
    let shared = shared.clone();
    thread::spawn("hog", move || {
        while !shared.spins.load(Ordering::Relaxed) {
            time::sleep(LOOK);
        }
        spin(&shared)
    })
}

/// Spins for ever, and writes to the log.
fn spin(shared: &Shared) -> ! {
    let mut lines = 0u64;
    loop {
        for _ in 0..STEPS {
            core::hint::black_box(shared.spins.load(Ordering::Relaxed));
        }
        lines += 1;
        log!("line {lines} of a thread that fills the log as fast as it can");
    }
}

/// Takes a part until there is no more of it, says so once, and goes on trying.
fn take_all(shared: &Shared, part: usize, mut greed: Greed) -> ! {
    let mut is_full = false;
    loop {
        if (PARTS[part].take)(&mut greed) {
            shared.got[part].fetch_add(1, Ordering::Relaxed);
            continue;
        }
        if greed.is_content_with_less() {
            continue;
        }
        if !is_full {
            is_full = true;
            shared.full.fetch_add(1, Ordering::Relaxed);
        }
        thread::yield_now();
    }
}

/// Writes into `line` what was got, without asking for memory.
fn describe(line: &mut RVec<u8>, shared: &Shared, spinning: u64, born: usize) {
    let mut text = Text::<LINE>::empty();
    let _ = write!(text, "hog: all taken: {spinning} threads, {born} children");
    for (part, got) in PARTS.iter().zip(&shared.got) {
        let _ = write!(text, ", {} {}", got.load(Ordering::Relaxed), part.name);
    }
    let text = text.as_str().as_bytes();
    let length = text.len().min(LINE - 1);
    line[..length].copy_from_slice(&text[..length]);
    line[LINE - 1] = b'\n';
}
