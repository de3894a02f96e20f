//! A locked page table of a program: 2 MiB of its addresses.
//!
//! The lock is a mark in the entry that leads to the table, so two tables of one space share none.
//! Whoever waits for it has interrupts off and serves flushes. An entry that grants less than the
//! one before is seen by others, who take the lock, only after the flush: dropping a [`Table`]
//! flushes first, once for all that was changed, and then unlocks.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::entry::Entry;
use crate::arch::page::{INDEX_BITS, MARKS};
use crate::mem::PAGE_SIZE;
use crate::mem::frames::{FrameKind, Frames, alloc_table};
use crate::mem::paging;
use crate::smp;
use crate::sync::{IrqOff, relax};

/// Pages of a table.
pub(super) const TABLE_PAGES: usize = 1 << INDEX_BITS;

/// In the entry that leads to a table: somebody has it.
const LOCKED: u64 = MARKS[0];

/// A page table that the holder has for himself. Interrupts are off meanwhile.
pub(super) struct Table<'a> {
    root: u64,
    directory: &'a AtomicU64,
    /// Pages of the space's own, and by how many there are more now.
    own: (&'a AtomicUsize, isize),
    /// First and last address whose translation may have to be forgotten.
    stale: Option<(usize, usize)>,
    /// Dropped after `drop` below.
    _irq: IrqOff,
}

impl<'a> Table<'a> {
    /// Waits for the table below `directory`, of the space with the top-level table `root` and
    /// `own` pages that are its own.
    pub(super) fn lock(root: u64, directory: &'a AtomicU64, own: &'a AtomicUsize) -> Self {
        let irq = IrqOff::new();
        while directory.fetch_or(LOCKED, Ordering::Acquire) & LOCKED != 0 {
            while directory.load(Ordering::Relaxed) & LOCKED != 0 {
                smp::poll_flush();
                relax();
            }
        }
        Self {
            root,
            directory,
            own: (own, 0),
            stale: None,
            _irq: irq,
        }
    }

    /// The entry of a page in the table below `directory`, at this moment, without the lock.
    pub(super) fn peek(directory: &AtomicU64, at: usize) -> Entry {
        Entry(paging::below(directory, at).load(Ordering::Acquire))
    }

    /// The entry of a page in this table.
    pub(super) fn get(&self, at: usize) -> Entry {
        Self::peek(self.directory, at)
    }

    /// Of `count` pages of this table from `at` on, the first and the last that have an entry,
    /// counted from `at`.
    pub(super) fn used(&self, at: usize, count: usize) -> Option<(usize, usize)> {
        paging::used_below(self.directory, at, count)
    }

    /// Replaces the entry of a page and gives the one before. What it granted may be used until
    /// this `Table` is dropped; so its frame is given up only after that.
    pub(super) fn put(&mut self, at: usize, new: Entry) -> Entry {
        self.replace(paging::below(self.directory, at), at, new)
    }

    /// Replaces each of `count` entries from that of the page `at` on, which this table has, by
    /// what `new` makes of it: another one of the same frame. Nothing stays nothing.
    pub(super) fn change(&mut self, at: usize, count: usize, new: impl Fn(Entry) -> Entry) {
        let slots = paging::entries_below(self.directory, at, count);
        for (index, slot) in slots.iter().enumerate() {
            let old = Entry(slot.load(Ordering::Acquire));
            if old.is_empty() {
                continue;
            }
            let new = new(old);
            if new.0 != old.0 {
                self.replace(slot, at + index * PAGE_SIZE, new);
            }
        }
    }

    /// Replaces the entry in `slot`, which is that of the page `at`.
    #[inline]
    fn replace(&mut self, slot: &AtomicU64, at: usize, new: Entry) -> Entry {
        let old = Entry(slot.swap(new.0, Ordering::AcqRel));
        if old.grants_more_than(new) {
            let (first, last) = self.stale.unwrap_or((at, at));
            self.stale = Some((first.min(at), last.max(at)));
        }
        self.own.1 += isize::from(new.is_own()) - isize::from(old.is_own());
        old
    }
}

impl Drop for Table<'_> {
    fn drop(&mut self) {
        if let Some((first, last)) = self.stale {
            smp::flush_table(self.root, first, (last - first) / PAGE_SIZE + 1);
        }
        match self.own {
            (_, 0) => {}
            (own, more) => drop(own.fetch_add(more as usize, Ordering::Relaxed)),
        }
        self.directory.fetch_and(!LOCKED, Ordering::Release);
    }
}

/// Up to `N` entries that are in no table, by their index. Each owns a count of its frame; what is
/// left when the batch is dropped is given up. It is made before the [`Table`] and so dropped after
/// it.
pub(super) struct Batch<const N: usize>([u64; N]);

impl<const N: usize> Batch<N> {
    /// No entries.
    pub(super) fn new() -> Self {
        Self([0; N])
    }

    /// Takes an entry that is in no table any more, or not yet.
    pub(super) fn keep(&mut self, index: usize, entry: Entry) {
        debug_assert!(self.0[index] == 0);
        self.0[index] = entry.0;
    }

    /// Gives it out again.
    pub(super) fn take(&mut self, index: usize) -> Entry {
        Entry(core::mem::take(&mut self.0[index]))
    }

    /// Whether there is none of this index.
    pub(super) fn is_empty(&self, index: usize) -> bool {
        self.0[index] == 0
    }
}

impl<const N: usize> Drop for Batch<N> {
    fn drop(&mut self) {
        for value in self.0.into_iter().filter(|value| *value != 0) {
            // SAFETY: who called `keep` had taken the entry out of its table, or never put it into
            // one, and `take` leaves none here.
            drop(unsafe { Entry(value).into_frame() });
        }
    }
}

/// Tests let the allocation of this number from now fail, and all after it; 0: none.
static FAIL: AtomicUsize = AtomicUsize::new(0);

/// Lets the `number`th allocation for an address space fail, counted from 1, and all that follow;
/// with 0 none fails. For tests.
#[cfg(feature = "selftest")]
pub(crate) fn fail_from(number: usize) {
    FAIL.store(number, Ordering::SeqCst);
}

/// Whether a test wants this allocation to fail.
fn fails() -> bool {
    if !cfg!(feature = "selftest") {
        return false;
    }
    let left = FAIL.load(Ordering::SeqCst);
    if left > 1 {
        FAIL.store(left - 1, Ordering::SeqCst);
    }
    left == 1
}

/// A zeroed frame for a page table.
pub(super) fn new_table() -> Option<u64> {
    if fails() { None } else { alloc_table() }
}

/// A frame for a page of a program; its content is whatever was there, unless `zeroed`.
pub(super) fn new_page(zeroed: bool) -> Option<Frames> {
    match (fails(), zeroed) {
        (true, _) => None,
        (_, true) => Frames::alloc_zeroed(1, FrameKind::Untyped),
        (_, false) => Frames::alloc(1, FrameKind::Untyped),
    }
}
