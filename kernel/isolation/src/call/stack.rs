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

use crate::call::Record;
use crate::domain::words::KERNEL;
use crate::domain::{self, Reason};
use crate::klog;
use crate::platform::{Place, STACK_BYTES, platform};
use abi::Text;
use abi::stack::{Line, Targets, Word};
use core::cell::UnsafeCell;
use core::slice::from_raw_parts;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Stacks that wait for the reaper. A death that finds no room has none in the log.
const NOTES: usize = 4;
/// Words that are copied of a stack, and calls.
const WORDS: usize = 2048;
const PARTS: usize = 16;
/// Words that are copied of what lies between two calls: of its beginning, and of its end if it is
/// longer, as in a recursion without end.
const FIRST: usize = 768;
const LAST: usize = 128;

/// What a thread did in one domain: from a call to the one that was made from there.
#[derive(Clone, Copy)]
struct Part {
    domain: u32,
    image: (usize, usize),
    at: Place,
    /// Its first and its last words: where they were, and which of the note's words they are now.
    copied: [(usize, usize, usize); 2],
}

struct Note {
    /// The number of the domain that died.
    dead: u32,
    name: Text<32>,
    build: u64,
    parts: [Part; PARTS],
    count: usize,
    words: [usize; WORDS],
    used: usize,
    /// Why it does not lead to the thread's first function.
    cut: &'static str,
}

/// A place for a note: [`FREE`]; [`TAKEN`] by who fills it; or [`FULL`], and the reaper's.
struct Slot(AtomicU32, UnsafeCell<Note>);

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const FULL: u32 = 2;

// SAFETY: the note is used by the one thread that has taken the slot, then by the reaper alone.
unsafe impl Sync for Slot {}

static SLOTS: [Slot; NOTES] =
    [const { Slot(AtomicU32::new(FREE), UnsafeCell::new(Note::EMPTY)) }; NOTES];

impl Note {
    const EMPTY: Note = Note {
        dead: 0,
        name: Text::empty(),
        build: 0,
        parts: [Part {
            domain: 0,
            image: (0, 0),
            at: Place {
                ip: 0,
                sp: 0,
                bp: 0,
            },
            copied: [(0, 0, 0); 2],
        }; PARTS],
        count: 0,
        words: [0; WORDS],
        used: 0,
        cut: "",
    };

    /// # Safety
    /// As for [`note`].
    unsafe fn fill(&mut self, place: Place, low: usize, mut record: *const Record) {
        (self.count, self.used, self.cut) = (0, 0, "");
        let mut at = place;
        // SAFETY: by the caller's duty the records are linked, and what lies between them is the
        // thread's stack.
        unsafe {
            while !(*record).previous.is_null() {
                let (block, end) = (&*(*record).domain, (*record).sp);
                let start = at.sp.max(low).next_multiple_of(8);
                if end < start || end - start > STACK_BYTES || self.count == PARTS {
                    self.cut = if self.count == PARTS {
                        "more calls"
                    } else {
                        "the stack is damaged"
                    };
                    return;
                }
                let words = (end - start) / 8;
                let first = words.min(FIRST);
                let last = (words - first).min(LAST);
                self.parts[self.count] = Part {
                    domain: block.id,
                    image: (
                        block.image_start(),
                        block.image_start() + block.image_bytes(),
                    ),
                    at,
                    copied: [self.copy(start, first), self.copy(end - last * 8, last)],
                };
                self.count += 1;
                at = Place {
                    ip: *(end as *const usize),
                    sp: end + 8,
                    bp: (*record).rbp,
                };
                record = (*record).previous;
            }
        }
    }

    /// Copies `count` words from `start` on, or as many as there is room for.
    ///
    /// # Safety
    /// They are the stack's.
    unsafe fn copy(&mut self, start: usize, count: usize) -> (usize, usize, usize) {
        let first = self.used;
        let count = count.min(WORDS - first);
        // SAFETY: by the caller's duty; the note is not on the stack, and has room for so many.
        unsafe {
            let room = self.words.as_mut_ptr().add(first);
            room.copy_from_nonoverlapping(start as *const usize, count);
        }
        self.used += count;
        (start, first, count)
    }

    fn tell(&self) {
        let dead = self.dead;
        let parts = &self.parts[..self.count];
        klog!("stack {dead}: 0 is kernel {:x}", build_of_kernel());
        // It may be gone by now; who called it seldom is.
        klog!("stack {dead}: {dead} is {} {:x}", self.name, self.build);
        for (number, part) in parts.iter().enumerate() {
            let known = |other: &Part| other.domain == part.domain;
            let is_new = part.domain != dead && !parts[..number].iter().any(known);
            if let Some(block) = domain::find(part.domain).filter(|_| is_new) {
                let (name, build) = (block.name(), block.build());
                klog!("stack {dead}: {} is {name} {build:x}", part.domain);
            }
        }
        let base = parts.first().map_or(0, |part| part.at.sp);
        for part in parts {
            let Place { ip, sp, bp } = part.at;
            let to = Targets {
                domain: part.domain,
                image: part.image.0..part.image.1,
                kernel: platform().text(),
                stack: base..base + STACK_BYTES,
            };
            let [ip, bp] = [ip, bp].map(|word| Word(&to, word));
            klog!(
                "stack {dead}: in {} at {ip} {:x} {bp}",
                part.domain,
                sp - base
            );
            for (start, first, count) in part.copied {
                let words = &self.words[first..first + count];
                Line::all(&to, words, start).for_each(|line| klog!("stack {dead}: {line}"));
            }
        }
        klog!("stack {dead}: end {}", self.cut);
    }
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
    let take = |slot: &&Slot| {
        slot.0
            .compare_exchange(FREE, TAKEN, Acquire, Relaxed)
            .is_ok()
    };
    if let Some(Slot(state, note)) = SLOTS.iter().find(take) {
        // SAFETY: this thread has taken the slot; the rest by the caller's duty.
        unsafe {
            let note = &mut *note.get();
            note.fill(place, low, record);
            (note.dead, note.name, note.build) = (block.id, block.name(), block.build());
        }
        state.store(FULL, Release);
    }
}

/// Writes the noted stacks to the log. For the reaper alone.
pub(crate) fn tell() {
    for Slot(state, note) in &SLOTS {
        if state.load(Acquire) == FULL {
            // SAFETY: a full slot is the reaper's.
            unsafe { (*note.get()).tell() };
            state.store(FREE, Release);
        }
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
