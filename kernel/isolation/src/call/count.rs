//! Counts of calls, by caller, callee and method: nothing until somebody switches them on.
//!
//! Every interface has two proxies: one that carries out a call, and one that counts and then has
//! the first carry it out. A handle's method table is a copy of one of theirs
//! ([`ProxyEntry`](crate::ProxyEntry)), and switching copies the other over it. So a call pays
//! nothing while calls are not counted. (A caller that has looked up a method before a loop goes on
//! with the one that it found.)
//!
//! While calls are counted, one instruction relative to GS adds to the count of this processor
//! ([`abi::words::Counts`]). Which count that is depends on the names of caller and callee and on
//! the method: the first call through a proxy by its holder looks for it in the [`Book`] and notes
//! the place in the proxy. One call in [`EVERY`] is timed, on each processor the first. What does
//! not fit into the book is counted together, under no name.
//!
//! Whoever holds a [`Tracing`] has all calls be timed and noted besides, whatever is counted.
//!
//! [`met`] is apart from that and always there: at each tick, which domain was inside which.

use super::end::KERNEL_RESERVE;
use super::handle::{Proxy, proxy_entry, registry};
use super::stack;
use super::thread::{current, current_id, previous_id, stack_left, top};
use crate::domain::trace;
use crate::lock::Lock;
use crate::memory::late::Late;
use crate::platform::platform;
use abi::bounds::MOST_METHODS;
use abi::events::{CALL, RETURN};
use abi::words::{CELLS, COUNTS};
use abi::{RpcResult, Text};
use core::iter::empty;
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use interfaces::{CallCount, CallEvent, CallSample, Counting};

/// [`Proxy::place`] before the first call. Its lower half is nobody's number.
pub(super) const NOWHERE: u64 = u32::MAX as u64;
/// Of so many calls one is timed.
const EVERY: u64 = 512;
/// Calls are timed whose number has none of these bits.
static UNTIMED: AtomicU64 = AtomicU64::new(EVERY - 1);

/// Counts a call of method number `METHOD` through `proxy`, which is about to begin: where, from
/// GS, and whether it is to be timed.
///
/// # Safety
/// For generated proxies: the thread has a root record, and the interface has such a method.
#[inline(always)]
pub unsafe fn begin<const METHOD: usize>(proxy: &Proxy) -> (usize, bool) {
    // Every interface has that many cells from its place on, so the one of this method is the
    // processor's own.
    const { assert!(METHOD < MOST_METHODS, "an interface has too many methods") };
    let mut place = proxy.place.load(Relaxed);
    // SAFETY: not null, by the caller's duty; the domain that runs this is in memory.
    let caller = unsafe { (*(*top()).domain).id };
    if place as u32 != caller {
        place = first_place(proxy);
    }
    let place = (place >> 32) as usize + METHOD * 8;
    let mut rest: u64;
    // SAFETY: a place in the book's count of cells, which lie behind GS on every platform. Only
    // code on this processor (or thread) writes there, and only one instruction does.
    unsafe {
        core::arch::asm!(
            "mov {rest}, gs:[{place}]", "inc qword ptr gs:[{place}]", "and {rest}, [rip + {untimed}]",
            rest = out(reg) rest, place = in(reg) place, untimed = sym UNTIMED, options(nostack))
    };
    (place, rest == 0)
}

/// The time at which a call of method `method` through `proxy` begins that is timed, in
/// nanoseconds. `words` is what a trace notes of its arguments. 0: the caller has too little stack
/// left for it, and the call is not timed.
#[cold]
#[inline(never)]
pub fn begun(proxy: &Proxy, method: u32, words: &[u64]) -> u64 {
    if stack_left() < KERNEL_RESERVE {
        return 0;
    }
    // SAFETY: the proxy names it, so it is in memory.
    let callee = unsafe { (*proxy.domain()).id };
    let domains = [current_id(), callee];
    let words = words.iter().copied();
    trace::note(CALL | method << 16, domains, proxy.interface, words)
}

/// The lower half is the caller's number, the upper half where its calls of the proxy's first
/// method are counted.
#[cold]
#[inline(never)]
fn first_place(proxy: &Proxy) -> u64 {
    // SAFETY: both are in memory: one runs this, the other is named by the proxy.
    let (caller, callee) = unsafe { (&*current(), &*proxy.domain()) };
    let mut cell = 0;
    if stack_left() >= KERNEL_RESERVE {
        let names = [caller.name(), callee.name()];
        cell = BOOK.lock().first_cell(names, proxy.interface);
    }
    let place = ((COUNTS + cell * 8) as u64) << 32 | u64::from(caller.id);
    proxy.place.store(place, Relaxed);
    place
}

/// Notes the end of a call through `proxy` that was counted at `place` and began at `begun` if that
/// is not 0, or failed with an `RpcError`.
#[cold]
#[inline(never)]
pub fn end(proxy: &Proxy, place: usize, begun: u64, failed: bool) {
    if begun != 0 {
        // SAFETY: the proxy names it, so it is in memory.
        let callee = unsafe { (*proxy.domain()).id };
        let what = RETURN | u32::from(failed) << 16;
        trace::note(what, [current_id(), callee], begun, empty());
    }
    let Some(sheet) = SHEETS.get().get((place - COUNTS) / 8) else {
        return;
    };
    sheet.errors.fetch_add(failed.into(), Relaxed);
    if begun != 0 {
        let took = platform().now().saturating_sub(begun);
        let bits = (took | 1).ilog2() as usize;
        sheet.ns.fetch_add(took, Relaxed);
        sheet.latency[bits.min(LATENCIES - 1)].fetch_add(1, Relaxed);
    }
}

/// Powers of two of nanoseconds that are told apart.
const LATENCIES: usize = 32;

/// What is known of the calls in one cell besides their number.
struct Sheet {
    errors: AtomicU64,
    ns: AtomicU64,
    latency: [AtomicU32; LATENCIES],
    /// Calls that were counted before the last reset: others write the counts themselves.
    before: AtomicU64,
}

/// From the first time that counting is switched on.
// SAFETY: zeros are a sheet.
static SHEETS: Late<Sheet, CELLS> = unsafe { Late::new() };

/// Cells that are together: the methods of one interface, between two domains.
#[derive(Clone, Copy)]
struct Row {
    names: [Text<32>; 2],
    interface: u64,
    first: usize,
}

/// Which cells count what. The first row is for calls that have none.
struct Book {
    rows: [Row; 512],
    count: usize,
    cells: usize,
}

/// Cells of the first row: as many as an interface has methods at the most.
const OTHERS: usize = MOST_METHODS;

static BOOK: Lock<Book> = Lock::new(Book {
    rows: [Row {
        names: [Text::empty(); 2],
        interface: 0,
        first: 0,
    }; 512],
    count: 1,
    cells: OTHERS,
});

impl Book {
    /// The first cell of the row for this interface between domains of these names.
    fn first_cell(&mut self, names: [Text<32>; 2], interface: u64) -> usize {
        let mut rows = self.rows[1..self.count].iter();
        if let Some(row) = rows.find(|row| row.interface == interface && row.names == names) {
            return row.first;
        }
        let methods = proxy_entry(interface).map_or(0, |entry| entry.methods());
        let first = self.cells;
        if self.count == self.rows.len() || first + methods > CELLS {
            return 0;
        }
        self.rows[self.count] = Row {
            names,
            interface,
            first,
        };
        self.count += 1;
        self.cells += methods;
        first
    }
}

/// How calls are to be counted, and how many [`Tracing`]s there are. What is done follows from
/// both.
static WANTED: Lock<(Counting, usize)> = Lock::new((Counting::Off, 0));

/// Switches counting on or off, or begins anew.
///
/// # Errors
/// [`RpcError::NoMemory`] for what is noted.
pub fn set(how: Counting) -> RpcResult<()> {
    if how != Counting::Off {
        SHEETS.make()?;
    }
    if how == Counting::Profiled {
        stack::RING.make()?;
    }
    if how == Counting::Traced {
        trace::RING.make()?;
    }
    if how == Counting::Reset {
        reset();
    } else {
        want(|(wanted, _)| *wanted = how);
    }
    Ok(())
}

/// Has calls be traced until it is dropped, without what threads and interrupts do.
pub struct Tracing {
    /// The first event that is its.
    first: u64,
}

impl Tracing {
    /// Begins.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`] for what is noted.
    pub fn new() -> RpcResult<Self> {
        SHEETS.make()?;
        trace::RING.make()?;
        let first = trace::written();
        want(|(_, tracings)| *tracings += 1);
        Ok(Tracing { first })
    }

    /// Copies what events from number `from` on say of calls of domain `id`, or to it: how many
    /// events that are, the number behind them, and how many were lost before.
    pub fn calls(&self, from: u64, id: u32, room: &mut [CallEvent]) -> (usize, u64, u64) {
        trace::calls(from.max(self.first), id, room)
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        want(|(_, tracings)| *tracings -= 1);
    }
}

/// Does what is wanted after this change.
fn want(change: impl FnOnce(&mut (Counting, usize))) {
    // One after the other: else half of the tables could be left as the other wanted them.
    let mut wanted = WANTED.lock();
    change(&mut wanted);
    let (how, tracings) = *wanted;
    let is_traced = how == Counting::Traced || tracings > 0;
    let is_timed = is_traced || how == Counting::Timed;
    UNTIMED.store(if is_timed { 0 } else { EVERY - 1 }, Relaxed);
    for entry in registry() {
        entry.install(match is_timed || how == Counting::On {
            true => entry.counting,
            false => entry.plain,
        });
    }
    stack::IS_SAMPLED.store(how == Counting::Profiled, Release);
    let watcher: fn(u32, u64) = |kind, value| {
        trace::note(kind, [current_id(), 0], value, empty());
    };
    trace::switch(is_traced, (how == Counting::Traced).then_some(watcher));
    drop(wanted);
    if how == Counting::Traced {
        trace::note_states();
    }
}

/// Without a lock, because it takes long. What is counted meanwhile may be lost.
fn reset() {
    for (cell, sheet) in SHEETS.get().iter().enumerate() {
        sheet.before.store(platform().counted(cell), Relaxed);
        sheet.errors.store(0, Relaxed);
        sheet.ns.store(0, Relaxed);
        let latency = sheet.latency.iter();
        latency.for_each(|count| count.store(0, Relaxed));
    }
}

/// What was counted in the first cell from number `from` on in which something was.
pub fn counted(from: usize) -> Option<CallCount> {
    let mut cells = SHEETS.get().iter().enumerate().skip(from);
    let (cell, sheet, calls) = cells.find_map(|(cell, sheet)| {
        // This first: the other never falls.
        let before = sheet.before.load(Relaxed);
        let calls = platform().counted(cell).saturating_sub(before);
        (calls != 0).then_some((cell, sheet, calls))
    })?;
    let book = BOOK.lock();
    let rows = &book.rows[..book.count];
    let row = rows[rows.partition_point(|row| row.first <= cell) - 1];
    Some(CallCount {
        index: cell as u32,
        caller: row.names[0],
        callee: row.names[1],
        interface: row.interface,
        method: (cell - row.first) as u32,
        calls,
        errors: sheet.errors.load(Relaxed),
        ns: sheet.ns.load(Relaxed),
        latency: sheet.latency.each_ref().map(|count| count.load(Relaxed)),
    })
}

/// Samples that are kept.
const SAMPLES: usize = 1024;
/// Caller and callee, and nanoseconds. A reader may meet one half of two samples: it counts many.
static MET: [[AtomicU64; 2]; SAMPLES] = [const { [const { AtomicU64::new(0) }; 2] }; SAMPLES];
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// A tick has met the running thread where it is, on a processor that was busy for `ns`
/// nanoseconds.
pub(crate) fn meet(ns: u64) {
    let ids = u64::from(previous_id().unwrap_or(0)) << 32 | u64::from(current_id());
    let [both, time] = &MET[TAKEN.fetch_add(1, Relaxed) as usize % SAMPLES];
    both.store(ids, Relaxed);
    time.store(ns, Relaxed);
}

/// The first sample that is kept of those from number `from` on.
pub fn met(from: u64) -> Option<CallSample> {
    let taken = TAKEN.load(Relaxed);
    let number = from.max(taken.saturating_sub(SAMPLES as u64));
    let [both, ns] = &MET[number as usize % SAMPLES];
    let both = both.load(Relaxed);
    (number < taken).then_some(CallSample {
        number,
        caller: (both >> 32) as u32,
        callee: both as u32,
        ns: ns.load(Relaxed),
    })
}
