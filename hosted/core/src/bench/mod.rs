//! Benchmarks (P1 to P9 of the benchmark list) on the hosted platform, in native ticks of the
//! time-stamp counter: hot, on a pinned thread.
//!
//! A figure of a call is one call with the loop around it; the empty loop is a figure of its own.
//! Every figure goes to the launcher round by round, and what comes of that is the launcher's
//! affair.
//!
//! - [`calls`]: calls (P1 to P3);
//! - [`deaths`]: crash, restart, reclaim (P4, P5);
//! - [`disk`]: throughput of a block device whose driver crashes (P6);
//! - [`hash`]: a hash table in a domain (P7);
//! - [`net`]: packets through a driver (P8, P9);
//! - [`scaling`]: calls from many threads;
//! - [`respawn`]: restarts the driver behind a shadow.

mod calls;
mod deaths;
mod disk;
mod hash;
mod net;
mod respawn;
mod scaling;

use crate::host::{bytes, host};
use crate::machine::named;
use abi::{AnyHandle, Handle, RVec};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::arch::x86_64::{_mm_lfence, _rdtsc};
use hosted_core::Figure;
use interfaces::{Interface, Subject};
use isolation::domain::Limits;
use isolation::load::loader::{self, Instance, MOST_GRANTS, Prepared};

/// Calls in one round.
const CALLS: u64 = 1000;
/// Rounds of calls.
const ROUNDS: usize = 4000;

/// A benchmark: its name, and what it does.
type Bench = (&'static str, fn() -> Result<(), String>);

const ALL: [Bench; 7] = [
    ("calls", calls::calls),
    ("recovery", deaths::recovery),
    ("reclaim", deaths::reclaim),
    ("hash", hash::hash),
    ("nullnet", net::nullnet),
    ("scaling", scaling::scaling),
    ("disk", disk::disk),
];

/// See [`hosted_core::Core::bench`].
///
/// # Safety
/// `names` is the address of `len` bytes.
pub unsafe extern "C" fn run(names: usize, len: usize) -> u32 {
    // SAFETY: by the caller's duty.
    let names = core::str::from_utf8(unsafe { bytes(names, len) }).unwrap_or("");
    isolation::call::thread::with_root(|| match run_all(names) {
        Ok(()) => 0,
        Err(why) => {
            crate::log::print(format_args!("bench {why}"));
            1
        }
    })
}

/// Runs the benchmarks that `names` names, all without names.
fn run_all(names: &str) -> Result<(), String> {
    let wanted = |name: &str| names.is_empty() || names.split(' ').any(|word| word == name);
    for (name, bench) in ALL.into_iter().filter(|(name, _)| wanted(name)) {
        bench().map_err(|why| format!("{name}: {why}"))?;
    }
    let count = names
        .split(' ')
        .find_map(|word| word.strip_prefix("lives="));
    count.map_or(Ok(()), |count| deaths::lives(count.parse().unwrap_or(0)))
}

pub(crate) fn say(error: impl core::fmt::Debug) -> String {
    format!("{error:?}")
}

/// The time-stamp counter, when all before has been done.
fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has both; neither touches memory.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

/// Tells the launcher what was measured: one value a round, each to be divided by `divisor`.
fn tell(id: &str, name: &str, unit: &str, values: &[u64], divisor: u64) {
    if values.is_empty() {
        return;
    }
    let figure = Figure {
        id: [id.as_ptr() as usize, id.len()],
        name: [name.as_ptr() as usize, name.len()],
        unit: [unit.as_ptr() as usize, unit.len()],
        values: [values.as_ptr() as usize, values.len()],
        divisor,
    };
    // SAFETY: the figure, its texts and its values are lent for the call.
    unsafe { (host().figure)((&raw const figure) as usize) };
}

/// Measures one call of `work`.
#[inline(always)]
fn measure(id: &str, name: &str, mut work: impl FnMut()) {
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = tsc();
        for _ in 0..CALLS {
            work();
        }
        rounds.push(tsc() - start);
    }
    tell(id, name, "ticks", &rounds, CALLS);
}

pub(crate) fn prepare(name: &str) -> Result<Prepared, String> {
    let file = named(name).ok_or_else(|| format!("no {name} among the images"))?;
    loader::prepare(RVec::from_slice(file.content).map_err(say)?).map_err(say)
}

/// Starts `image`, whose first port gets `grant`, with these options; the instance and what it
/// offers.
fn launch<I: Interface + ?Sized>(
    image: &Prepared,
    grant: Option<AnyHandle>,
    options: Option<&str>,
) -> Result<(Instance, Handle<I>), String> {
    let mut grants = [const { None }; MOST_GRANTS];
    grants[0] = grant;
    let limits = Limits::default();
    let options = RVec::from_slice(options.unwrap_or_default().as_bytes()).map_err(say)?;
    let mut instance = image.start("bench", limits, grants, options).map_err(say)?;
    let service = instance.offers[0].take().ok_or("no service")?;
    let service = service
        .downcast()
        .map_err(|_| String::from("the service is something else"))?;
    Ok((instance, service))
}

pub(crate) type Started = (Instance, Handle<dyn Subject>);

pub(crate) fn start(image: &Prepared, next: Option<AnyHandle>) -> Result<Started, String> {
    launch(image, next, None)
}
