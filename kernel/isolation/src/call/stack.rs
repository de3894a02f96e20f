//! Stacks of threads in which a domain died: copied where that is seen, and written to the log by
//! the reaper.
//!
//! Nothing here knows of frames or functions. The log gets, for where the thread was and for each
//! of its call records, instruction pointer, stack pointer and rbp, and those words of the stack
//! that point into code (return addresses are among them) or stand before one and point into the
//! stack (a saved rbp). The host tool unwinds from that with the tables that the compiler wrote
//! into the files with symbols, so that no call pays for a frame pointer: decision 0035.
//!
//! What stands in the log are offsets in images and on the stack, never addresses.
//!
//! A stack that was told shortly before is told in one line, which says of which domain it was told
//! and how often it was there by now: a driver that dies ten times a second would have a kilobyte
//! each time.

use super::thread::{stack_low, top};
use crate::call::Record;
use crate::domain::Reason;
use crate::domain::words::KERNEL;
use crate::klog;
use crate::memory::late::Late;
use crate::platform::{Place, STACK_BYTES, platform};
use abi::stack::{FREE, FULL, NUMBER_SHIFT, Note, PARTS, Part, SAMPLES, TAKEN, Targets, WORDS};
use core::cell::UnsafeCell;
use core::slice::from_raw_parts;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};

/// Stacks that wait for the reaper. A death that finds no room has none in the log.
const NOTES: usize = 4;
/// Words that are copied of what lies between two calls: of its beginning, and of its end if it is
/// longer, as in a recursion without end.
const FIRST: usize = 768;
const LAST: usize = 128;
/// Stacks that are known as told, and how often one comes until it is told whole again: the log
/// keeps its newest lines only.
const KNOWN: usize = 8;
const WHOLE_AGAIN: u64 = 64;

/// A note, and in front of it [`FREE`]; [`TAKEN`] by who fills it; or [`FULL`], and the reaper's or
/// the host's.
#[repr(C)]
pub(crate) struct Slot(AtomicU64, UnsafeCell<Note>);

// SAFETY: the note is used by the one thread that has taken the slot, then by the reaper alone.
unsafe impl Sync for Slot {}

// SAFETY: zeros are a slot that is free, with a note of nothing.
static SLOTS: [Slot; NOTES] = unsafe { core::mem::zeroed() };

/// From the first time that samples are taken. The host finds it by its name.
// SAFETY: as above.
pub(crate) static RING: Late<Slot, SAMPLES> = unsafe { Late::new() };
/// Whether samples are taken, and how many were.
pub(crate) static IS_SAMPLED: AtomicBool = AtomicBool::new(false);
static SAMPLED: AtomicU64 = AtomicU64::new(0);

impl Slot {
    /// Takes it if it is in this state, in which nobody has taken it.
    fn take(&self, state: u64) -> bool {
        let taken = self.0.compare_exchange(state, TAKEN, Acquire, Relaxed);
        state != TAKEN && taken.is_ok()
    }

    /// Notes a stack, and is in this state from then on.
    ///
    /// # Safety
    /// This thread has taken it; else as for [`note`], but the callee's code need not have begun to
    /// run.
    unsafe fn fill(&self, about: u64, place: Place, low: usize, record: *const Record, state: u64) {
        // SAFETY: by the caller's duty.
        unsafe {
            let note = &mut *self.1.get();
            note.about = about;
            copy_parts(note, place, low, record);
        }
        self.0.store(state, Release);
    }
}

/// # Safety
/// As for [`Slot::fill`].
unsafe fn copy_parts(note: &mut Note, mut at: Place, low: usize, mut record: *const Record) {
    (note.parts_used, note.words_used, note.cut) = (0, 0, 0);
    // SAFETY: by the caller's duty the records are linked. They are on the stack, each in the
    // frame of a proxy, so what lies below one is the stack, too.
    unsafe {
        loop {
            let (block, previous) = (&*(*record).domain, (*record).previous);
            // The lowest stands for the kernel, and was not called.
            let end = if previous.is_null() {
                record as usize
            } else {
                (*record).sp
            };
            let start = at.sp.max(low).next_multiple_of(8);
            // A tick may come before the trampoline has written its stack pointer.
            let is_stack = start <= end && end <= record as usize && end - start <= STACK_BYTES;
            let is_right = is_stack && end % 8 == 0;
            if note.parts_used == PARTS || !is_right {
                note.cut = 1 + usize::from(!is_right);
                return;
            }
            let words = (end - start) / 8;
            let first = words.min(FIRST);
            let last = (words - first).min(LAST);
            let image = block.image_start();
            note.parts[note.parts_used] = Part {
                domain: block.id as usize,
                build: block.build.load(Relaxed),
                name: block.name(),
                image: [image, image + block.image_bytes()],
                at,
                copied: [copy(note, start, first), copy(note, end - last * 8, last)],
            };
            note.parts_used += 1;
            if previous.is_null() {
                return;
            }
            at = Place {
                ip: *(end as *const usize),
                sp: end + 8,
                bp: (*record).rbp,
            };
            record = previous;
        }
    }
}

/// Copies `count` words from `start` on, or as many as there is room for.
///
/// # Safety
/// They are the stack's.
unsafe fn copy(note: &mut Note, start: usize, count: usize) -> [usize; 3] {
    let first = note.words_used;
    let count = count.min(WORDS - first);
    // Mostly there is no end apart.
    if count > 0 {
        // SAFETY: by the caller's duty; the note is not on the stack, and has room for so many.
        unsafe {
            let room = note.words.as_mut_ptr().add(first);
            room.copy_from_nonoverlapping(start as *const usize, count);
        }
    }
    note.words_used += count;
    [start, first, count]
}

/// What was told: for each stack what it hashes to, the domain of which it was told, and how often
/// it was there.
#[derive(Default)]
pub(crate) struct Told([(u64, u64, u64); KNOWN], usize);

impl Told {
    /// Notes a stack; of which domain it was told, and how often it was there, if it need not be
    /// told whole.
    fn again(&mut self, hash: u64, dead: u64) -> Option<(u64, u64)> {
        let known = self.0.iter_mut().find(|known| known.0 == hash);
        let Some((_, of, times)) = known else {
            self.0[self.1 % KNOWN] = (hash, dead, 1);
            self.1 += 1;
            return None;
        };
        *times += 1;
        if *times % WHOLE_AGAIN == 0 {
            *of = dead;
            return None;
        }
        Some((*of, *times))
    }
}

/// The same for stacks with the same code in them, whatever the numbers of their domains. Of a part
/// it is where the thread was; of the one that died all code that the stack names. Never 0.
fn hash(note: &Note) -> u64 {
    let code = |part: &Part, word: usize| match platform().text() {
        _ if (part.image[0]..part.image[1]).contains(&word) => (word - part.image[0]) as u64,
        text if text.contains(&word) => !((word - text.start) as u64),
        _ => 0,
    };
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(23);
    let mut all = 1;
    for part in &note.parts[..note.parts_used] {
        all = mix(mix(all, part.build), code(part, part.at.ip));
    }
    let [_, first, count] = note.parts[0].copied[0];
    let words = note.words[first..first + count].iter();
    let words = words.map(|word| code(&note.parts[0], *word));
    words.filter(|word| *word != 0).fold(all, mix) | 1
}

fn write(note: &Note, told: &mut Told) {
    let dead = note.about;
    if let Some((of, times)) = told.again(hash(note), dead) {
        klog!("stack {dead}: as of {of}, {times} times");
        return;
    }
    klog!("stack {dead}: 0 is kernel {:x}", build_of_kernel());
    let base = note.parts[0].at.sp;
    for part in &note.parts[..note.parts_used] {
        let Part {
            domain, name, at, ..
        } = part;
        let to = Targets {
            domain: *domain as u32,
            image: part.image[0]..part.image[1],
            kernel: platform().text(),
            stack: base..base + STACK_BYTES,
        };
        klog!("stack {dead}: {domain} is {name} {:x}", part.build);
        let (ip, bp) = (to.word(at.ip), to.word(at.bp));
        klog!("stack {dead}: in {domain} at {ip} {:x} {bp}", at.sp - base);
        for [start, first, count] in part.copied {
            let words = &note.words[first..first + count];
            to.lines(words, start)
                .for_each(|line| klog!("stack {dead}: {line}"));
        }
    }
    let why = ["", "more calls", "the stack is damaged"][note.cut];
    klog!("stack {dead}: end {why}");
}

/// Notes the stack of a thread inside of a domain that is dead, unless one is noted of it already.
/// Of one that was ended by right only calls are told that came through others: else every program
/// that is ended would leave its stack in the log.
///
/// # Safety
/// `record` is the top record of a thread, whose callee's code has begun to run. The thread is the
/// running one, or stands still; it is at `place`, and the lowest address of its stack is `low`.
pub(crate) unsafe fn note(place: Place, low: usize, record: *const Record) {
    let by_kernel = |record: *const Record| {
        // SAFETY: by the caller's duty; the records below are linked, too, and the last stands for
        // the kernel and has no method.
        unsafe { (*record).previous.is_null() || (*(*record).method).interface == KERNEL }
    };
    // SAFETY: by the caller's duty; the domain is in memory as long as a record names it.
    let (block, below) = unsafe { (&*(*record).domain, (*record).previous) };
    let is_killed = block.reason() == Reason::Killed;
    let by_right = is_killed && (by_kernel(record) || by_kernel(below));
    if by_right || platform().text().is_empty() || block.counters.told.swap(true, Relaxed) {
        return;
    }
    if let Some(slot) = SLOTS.iter().find(|slot| slot.take(FREE)) {
        // SAFETY: this thread has taken the slot; the rest by the caller's duty.
        unsafe { slot.fill(block.id.into(), place, low, record, FULL) };
    }
}

/// Writes the noted stacks to the log. For the reaper alone.
pub(crate) fn tell(told: &mut Told) {
    for Slot(state, note) in &SLOTS {
        if state.load(Acquire) == FULL {
            // SAFETY: a full slot is the reaper's.
            write(unsafe { &*note.get() }, told);
            state.store(FREE, Release);
        }
    }
}

/// A tick has met the running thread at `place`, on a processor that was busy for `ns` nanoseconds:
/// notes its stack for the host if somebody wants that. One that meets another sample half made is
/// lost; its number is missing then.
pub(crate) fn sample(place: Option<Place>, ns: u64) {
    let (Some(place), false) = (place, top().is_null() || !IS_SAMPLED.load(Acquire)) else {
        return;
    };
    let number = SAMPLED.fetch_add(1, Relaxed);
    let slot = &RING.get()[number as usize % SAMPLES];
    if slot.take(slot.0.load(Relaxed)) {
        let state = FULL | (number + 1) << NUMBER_SHIFT;
        // SAFETY: this thread has taken the slot. The tick interrupts the thread whose records
        // these are.
        unsafe { slot.fill(ns, place, stack_low(), top(), state) };
    }
}

/// What tells the kernel from others: its code, hashed, once.
fn build_of_kernel() -> u64 {
    static BUILD: AtomicU64 = AtomicU64::new(0);
    let known = BUILD.load(Relaxed);
    if known != 0 {
        return known;
    }
    let code = platform().text();
    // SAFETY: the kernel's code is mapped for good, and nobody writes there.
    let words = unsafe { from_raw_parts(code.start as *const u64, code.len() / 8) };
    let mix = |hash: u64, word: &u64| (hash ^ word).wrapping_mul(0x100_0000_01b3);
    let build = words.iter().fold(0xcbf2_9ce4_8422_2325, mix);
    BUILD.store(build, Relaxed);
    build
}
