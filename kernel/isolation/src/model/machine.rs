//! The machine of the tests. Pages that are given back are kept until the scene is over, poisoned,
//! so that whoever looks at them afterwards is noticed; each must have been taken, and comes back
//! once.

use super::threads;
use crate::platform::{Attributes, ImageSpace, PAGE, Platform, Protection, ThreadView, WaitResult};
use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::alloc::Layout;
use std::boxed::Box;
use std::collections::BTreeMap;
use std::string::String;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::vec::Vec;

/// What the pages and threads of the scene have shown.
struct Ledger {
    live: BTreeMap<usize, usize>,
    freed: Vec<(usize, usize)>,
    wrong: Option<String>,
}

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger {
    live: BTreeMap::new(),
    freed: Vec::new(),
    wrong: None,
});
static CLOCK: AtomicU64 = AtomicU64::new(1);

fn ledger() -> MutexGuard<'static, Ledger> {
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that something happened which must not. The first such thing is reported by [`verdict`].
pub fn wrong(what: fmt::Arguments<'_>) {
    ledger().wrong.get_or_insert_with(|| std::format!("{what}"));
}

/// What [`wrong`] was told, if anything.
pub fn verdict() -> Option<String> {
    ledger().wrong.take()
}

/// Whether the page at `start` is somebody's.
pub fn is_live(start: usize) -> bool {
    ledger().live.contains_key(&start)
}

/// Runs of pages that are somebody's.
pub fn live_runs() -> usize {
    ledger().live.len()
}

/// Really frees what was given back.
pub fn settle() {
    for (start, count) in core::mem::take(&mut ledger().freed) {
        // SAFETY: from `pages`, given back, and the scene that might have looked at it is over.
        unsafe { std::alloc::dealloc(start as *mut u8, layout(count)) };
    }
}

/// Has so many nanoseconds pass.
pub fn pass(ns: u64) {
    CLOCK.fetch_add(ns, Ordering::Relaxed);
}

/// Puts this crate on top of this machine, once in the process.
pub fn set_up() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: nothing has used the shared heap yet, and no domain exists.
        unsafe { abi::api::set_api(crate::load::entry::API) };
        crate::set_platform(&MACHINE);
        crate::call::handle::set_registry(super::domains::REGISTRY);
    });
}

std::thread_local! {
    /// Nothing can be spared, as the thread that sets it sees it.
    pub static SHORT: Cell<bool> = const { Cell::new(false) };
    /// What happens when the thread that sets it wakes somebody next.
    pub static AT_WAKE: Cell<Option<fn()>> = const { Cell::new(None) };
}

struct Machine;

static MACHINE: Machine = Machine;

fn layout(count: usize) -> Layout {
    let align = if count.is_power_of_two() {
        count * PAGE
    } else {
        PAGE
    };
    Layout::from_size_align(count * PAGE, align).expect("a small layout")
}

impl Platform for Machine {
    fn pages(&self, count: usize) -> Option<NonNull<u8>> {
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout(count)) })?;
        ledger().live.insert(start.as_ptr() as usize, count);
        Some(start)
    }

    unsafe fn free_pages(&self, start: NonNull<u8>, count: usize) {
        threads::point();
        let address = start.as_ptr() as usize;
        let mut ledger = ledger();
        let known = ledger.live.remove(&address);
        ledger.freed.push((address, count));
        drop(ledger);
        if known != Some(count) {
            return wrong(format_args!(
                "pages were freed that nobody had: {count}, {known:?}"
            ));
        }
        if threads::in_model() {
            // SAFETY: they are nobody's any more.
            unsafe { start.as_ptr().write_bytes(0xdd, count * PAGE) };
        } else {
            settle();
        }
    }

    fn image_space(&self, pages: usize) -> Option<Box<dyn ImageSpace>> {
        Some(Box::new(Space {
            start: self.pages(pages)?,
            pages,
        }))
    }

    fn spawn(
        &self,
        _: &str,
        entry: extern "C" fn(usize),
        argument: usize,
        _: &Attributes,
    ) -> Option<u64> {
        super::scenes::detach(threads::spawn(move || entry(argument)));
        Some(1)
    }

    fn wait(&self, word: &AtomicU32, expected: u32, deadline: Option<u64>) -> WaitResult {
        let over = || word.load(Ordering::Acquire) != expected || super::is_over();
        threads::block(&over, deadline.is_some())
    }

    fn wake(&self, _: &AtomicU32, _: u32) -> u32 {
        if let Some(happens) = AT_WAKE.take() {
            happens();
        }
        threads::unblock();
        0
    }

    fn memory(&self) -> usize {
        usize::MAX
    }

    fn can_spare(&self, _: usize) -> bool {
        !SHORT.get()
    }

    fn can_note(&self) -> bool {
        !SHORT.get()
    }

    fn yield_now(&self) {
        threads::spin();
    }

    fn thread_ns(&self) -> u64 {
        0
    }

    fn now(&self) -> u64 {
        CLOCK.fetch_add(1, Ordering::Relaxed)
    }

    fn wall(&self) -> u64 {
        0
    }

    fn log(&self, line: fmt::Arguments<'_>) {
        if std::env::var_os("TREFOIL_MODEL_LOG").is_some() {
            std::eprintln!("{line}");
        }
    }

    fn stop_world(&self, visit: &mut dyn FnMut(&mut ThreadView<'_>)) {
        threads::stop(visit);
    }

    fn stop_devices(&self, _: u32) {}
}

/// Stands for the code of a domain.
struct Space {
    start: NonNull<u8>,
    pages: usize,
}

// SAFETY: plain memory; who may touch what is the isolation half's affair.
unsafe impl Send for Space {}
// SAFETY: as above.
unsafe impl Sync for Space {}

impl ImageSpace for Space {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn pages(&self) -> usize {
        self.pages
    }

    fn protect(&self, _: usize, _: usize, _: Protection) {}
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: they came from `pages`, and the domain is cleared away.
        unsafe { MACHINE.free_pages(self.start, self.pages) };
    }
}
