//! The private heap of a domain: objects inside pages that the kernel gave and recorded.
//!
//! Objects of up to 32 KiB come from [`Lists`]; larger ones are runs of pages of their own and go
//! back to the kernel when they are freed. When the domain dies the kernel takes all runs back
//! without running a destructor.
//!
//! Where two threads have met at the lists once, small objects come from a [`Magazine`] of their
//! processor's from then on, and the lists are asked for some at a time. Who finds no memory
//! empties all magazines first, and while the reserve is in use none is filled.
//!
//! ```text
//!   locks: a magazine, then the lists
//! ```
//!
//! A domain that serves others sets a reserve aside when it starts ([`crate::memory::reserve`]).
//! When the kernel gives no more memory, small objects are cut from it; when half of it is gone,
//! the kernel is told, and lets only those calls in that free. Calls that are under way go on from
//! the rest. The reserve is filled again, and the domain opened, as soon as there is memory: that
//! is looked for when something is freed, and now and then when a call is refused.

use crate::lists::{LARGEST, Lists, Magazine, PAGE, RUN, RUN_PAGES, Spare, class_of};
use crate::processors::{PARTS, Part, PerProcessor};
use crate::sync::{Mutex, MutexGuard};
use abi::RpcError;
use abi::api::api;
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How long the kernel is not asked to find memory after it found none, in nanoseconds: only for
/// what it has at once.
const PATIENCE: u64 = 10_000_000;

/// The allocator of the image.
#[global_allocator]
static HEAP: Heap = Heap {
    lists: Mutex::new(Lists::EMPTY),
    crowded: AtomicBool::new(false),
    lacking: AtomicBool::new(false),
    refused: AtomicU64::new(0),
    tried: AtomicU64::new(0),
};

/// By themselves, since they are zeros at first, of which an image has no copy.
static MAGAZINES: PerProcessor<Mutex<Magazine>> =
    PerProcessor([const { Part(Mutex::new(Magazine::EMPTY)) }; PARTS]);

struct Heap {
    /// Who waits for it sleeps. Where those who waited gave way again and again, and were many, the
    /// holder had its turn only when all of them had used as much time as it had.
    lists: Mutex<Lists>,
    /// Two threads have met at the lists: from now on magazines are used.
    crowded: AtomicBool,
    /// Something of the reserve is missing.
    lacking: AtomicBool,
    /// When the kernel last had no memory.
    refused: AtomicU64,
    /// When the reserve was last to be filled.
    tried: AtomicU64,
}

/// The class of a small object, or `None` for one with pages of its own.
fn class(layout: Layout) -> Option<usize> {
    class_of(layout.size().max(layout.align()))
}

impl Heap {
    fn with<R>(&self, work: impl FnOnce(&mut Lists) -> R) -> R {
        work(&mut self.lists.lock_briefly())
    }

    /// The magazine that small objects of a class come from, and go to. `None`: the lists are for
    /// that, also where another thread has been taken off with the magazine in hand.
    fn magazine(&self, class: usize) -> Option<MutexGuard<'_, Magazine>> {
        let is_used = self.crowded.load(Ordering::Relaxed)
            && Magazine::has(class)
            && !self.lacking.load(Ordering::Relaxed);
        is_used.then(|| MAGAZINES.mine().try_lock())?
    }

    /// The lists, and a note if somebody else has them.
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.try_lock().unwrap_or_else(|| {
            self.crowded.store(true, Ordering::Relaxed);
            self.lists.lock_briefly()
        })
    }

    /// A small object, or null.
    fn take(&self, class: usize) -> *mut u8 {
        let Some(mut magazine) = self.magazine(class) else {
            return self.lists().take(class);
        };
        match magazine.take(class) {
            object if object.is_null() => magazine.fill(class, &mut self.lists()),
            object => object,
        }
    }

    /// Takes a small object back; whether so much is free that some is worth to be given back.
    ///
    /// # Safety
    /// As that of [`Lists::put`].
    unsafe fn put(&self, class: usize, object: *mut u8) -> bool {
        let Some(mut magazine) = self.magazine(class) else {
            let mut lists = self.lists();
            // SAFETY: by the caller's duty.
            unsafe { lists.put(class, object) };
            return lists.has_much();
        };
        // SAFETY: by the caller's duty.
        if !unsafe { magazine.put(class, object) } {
            return false;
        }
        let mut lists = self.lists();
        magazine.empty(class, &mut lists);
        lists.has_much()
    }

    /// Has the lists have what is in magazines.
    fn empty_magazines(&self) {
        if self.crowded.load(Ordering::Relaxed) {
            for magazine in MAGAZINES.all() {
                magazine.lock_briefly().empty_all(&mut self.lists());
            }
        }
    }

    /// A small object when the lists have none: from a new run, or from what is left.
    #[cold]
    #[inline(never)]
    fn refill(&self, class: usize) -> *mut u8 {
        let whole = self.with(Lists::take_whole);
        let run = whole.unwrap_or_else(|| self.run());
        if run.is_null() {
            // What others have at hand is enough, perhaps.
            self.empty_magazines();
        }
        let (object, lacking, short) = self.with(|lists| {
            let object = if run.is_null() {
                lists.scrape(class)
            } else {
                // SAFETY: a new run of pages.
                unsafe { lists.add_run(run) };
                lists.take(class)
            };
            (object, lists.lacks_spare(), lists.is_short())
        });
        if lacking {
            self.lacking.store(true, Ordering::Relaxed);
        }
        if short {
            (api().short_of_memory)(1);
        }
        object
    }

    /// A run of the kernel's, or null.
    fn run(&self) -> *mut u8 {
        let refused = self.refused.load(Ordering::Relaxed);
        // Only then, because the clock costs as much as the run.
        if refused != 0 && (api().now)().saturating_sub(refused) < PATIENCE {
            return (api().pages_alloc_now)(RUN_PAGES);
        }
        let run = (api().pages_alloc)(RUN_PAGES);
        let refused = if run.is_null() { (api().now)() } else { 0 };
        self.refused.store(refused, Ordering::Relaxed);
        run
    }

    /// Fills the reserve with what can be had at once, and has the domain opened if that is enough.
    fn restock(&self) {
        let merge = |lists: &mut Lists| {
            if lists.lacks_spare() && lists.is_worth_a_merge() {
                lists.merge();
            }
            lists.lacks_spare()
        };
        while self.with(merge) {
            let run = (api().pages_alloc_now)(RUN_PAGES);
            if run.is_null() {
                break;
            }
            if self.with(|lists| lists.keep_spare(run)) == Spare::NotWanted {
                // Others filled it meanwhile.
                // SAFETY: the run that came just now.
                unsafe { (api().pages_free)(run, RUN_PAGES) };
                break;
            }
        }
        // Who takes from the reserve after this says so after this.
        let (lacking, short) = self.with(|lists| (lists.lacks_spare(), lists.is_short()));
        self.lacking.store(lacking, Ordering::Relaxed);
        if !short {
            (api().short_of_memory)(0);
            if self.with(|lists| lists.is_short()) {
                (api().short_of_memory)(1);
            }
        }
    }

    /// Joins what is free, and gives whole runs back to the kernel.
    #[cold]
    #[inline(never)]
    fn give_back(&self) {
        self.empty_magazines();
        self.with(|lists| {
            if lists.has_much() {
                lists.merge();
            }
        });
        while let Some(run) = self.with(Lists::take_whole) {
            // SAFETY: a run of the kernel's that nobody uses.
            unsafe { (api().pages_free)(run, RUN_PAGES) };
        }
    }

    /// Something was freed while some of the reserve is missing.
    #[cold]
    #[inline(never)]
    fn look_for_memory(&self) {
        let (now, tried) = ((api().now)(), self.tried.load(Ordering::Relaxed));
        let late = now.saturating_sub(tried) >= PATIENCE;
        let mine = self
            .tried
            .compare_exchange(tried, now, Ordering::Relaxed, Ordering::Relaxed);
        if late && mine.is_ok() {
            self.restock();
        }
    }
}

/// Has `runs` runs in reserve from now on.
///
/// # Errors
/// [`RpcError::NoMemory`]; what there is stays in reserve.
pub fn reserve(runs: usize) -> Result<(), RpcError> {
    HEAP.with(|lists| lists.want_spare(runs));
    while HEAP.with(|lists| lists.lacks_spare()) {
        let run = HEAP.run();
        if run.is_null() {
            return Err(RpcError::NoMemory);
        }
        if HEAP.with(|lists| lists.keep_spare(run)) == Spare::NotWanted {
            // SAFETY: the run that came just now.
            unsafe { (api().pages_free)(run, RUN_PAGES) };
        }
    }
    Ok(())
}

/// Whether some of the reserve is used.
pub fn is_short() -> bool {
    HEAP.lacking.load(Ordering::Relaxed)
}

/// What the kernel calls when the domain is short of memory and somebody was refused for that.
pub extern "C" fn restock(_: *mut u8) {
    HEAP.restock();
}

// SAFETY: every object is aligned to its class's size (runs are aligned to their own size, which is
// at least that) or to a page, and given to one owner at a time.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match class(layout) {
            Some(class) => {
                let object = self.take(class);
                if object.is_null() {
                    return self.refill(class);
                }
                object
            }
            // Runs are aligned to a page; a power of two of pages is aligned to itself.
            None if layout.align() > PAGE => (api().pages_alloc)(
                layout
                    .size()
                    .max(layout.align())
                    .div_ceil(PAGE)
                    .next_power_of_two(),
            ),
            None => (api().pages_alloc)(layout.size().div_ceil(PAGE)),
        }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        match class(layout) {
            Some(class) => {
                // SAFETY: it came from `alloc` with this layout.
                if unsafe { self.put(class, object) } {
                    self.give_back();
                }
            }
            // SAFETY: the start of a run; the kernel knows its length.
            None => unsafe { (api().pages_free)(object, layout.size().div_ceil(PAGE)) },
        }
        if self.lacking.load(Ordering::Relaxed) {
            self.look_for_memory();
        }
    }
}

const _: () = assert!(LARGEST <= RUN / 2, "a run holds two of the largest");
