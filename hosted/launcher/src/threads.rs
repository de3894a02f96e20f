//! Threads that run core and domain code: their blocks behind the GS register, waiting
//! ([`wait()`]), and stopping the world ([`park`], [`stop_world`]).
//!
//! The word `state` of a thread says how it stands to somebody who wants the world to stand still:
//! - `BLOCKED`: it waits, or is about to; it touches nothing that a visitor looks at until it has
//!   taken the bit off again, which it cannot while `HOLD` is set;
//! - `HOLD`: somebody wants it to stand still. A blocked thread does so already; any other gets the
//!   stop signal;
//! - `PARKED`: it stands in the handler of that signal, with its registers published.
//!
//! A thread may be stopped anywhere, also while it holds a lock of the core or of the C library:
//! whoever has stopped the world takes no lock and allocates nothing until the world goes on, and a
//! thread in such a place is only looked at, never moved, since its instruction pointer is outside
//! of every domain.

mod stop;
mod wait;

use crate::launch::processor_time;
use crate::memory;
use crate::signals::{self, AlternateStack};
use hosted_core::{Counts, ThreadWords, words};
use std::cell::Cell;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub use stop::{park, stop_world};
pub use wait::{now, wait, wake, wall};

const BLOCKED: u32 = 1;
const HOLD: u32 = 2;
const PARKED: u32 = 4;

/// Bytes of stack below that which domains and core may use, for the launcher's own functions.
const HOST_STACK: usize = 64 * 1024;
/// Looks at a thread before a stopper goes to sleep.
const PATIENCE: u32 = 2000;

/// A thread that runs core and domain code.
#[repr(C)]
pub struct Thread {
    /// What GS points to.
    pub words: ThreadWords,
    /// Bits; see above.
    state: AtomicU32,
    /// Its wait is to end with [`INTERRUPTED`](hosted_core::INTERRUPTED).
    interrupt: AtomicU32,
    /// Address of its registers while it is parked.
    registers: AtomicUsize,
    /// Linux's number of it.
    number: i32,
    /// Lowest address of its stack, guard page excluded.
    stack: usize,
    /// Its processor time at its last tick, in nanoseconds. Its own.
    at_tick: AtomicU64,
    /// Calls that it has counted.
    counts: Counts,
}

const _: () = assert!(std::mem::offset_of!(Thread, counts) == words::COUNTS);

/// Calls that were counted by threads that have ended.
static ENDED: Counts = Counts([const { AtomicU64::new(0) }; words::CELLS]);

/// The address of a thread that is in the registry.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry(*const Thread);

// SAFETY: a thread takes its entry off before its block goes, and readers hold the registry's lock.
unsafe impl Send for Entry {}

static REGISTRY: Mutex<Vec<Entry>> = Mutex::new(Vec::new());
static ARRIVALS: AtomicU32 = AtomicU32::new(0);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);
static NEXT_NUMBER: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The running thread's block; null if it runs no core code. Without a destructor, so that
    /// signal handlers may read it.
    static CURRENT: Cell<*const Thread> = const { Cell::new(null()) };
}

fn registry() -> MutexGuard<'static, Vec<Entry>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The running thread's block, if it runs core code.
pub fn current() -> Option<&'static Thread> {
    // SAFETY: the pointer is null or that of the block that `Membership` keeps until it has cleared
    // it.
    unsafe { CURRENT.get().as_ref() }
}

impl Thread {
    /// Whether `address` is at the end of its stack: in the guard page or in what the launcher
    /// needs.
    pub fn is_stack_end(&self, address: usize) -> bool {
        (self.stack.saturating_sub(HOST_STACK)..self.words.stack_low.load(Ordering::Relaxed))
            .contains(&address)
    }

    /// Nanoseconds of processor time that it, the running thread, has used since it last asked.
    pub fn used_since_tick(&self) -> u64 {
        let now = processor_time(1);
        now.saturating_sub(self.at_tick.swap(now, Ordering::Relaxed))
    }
}

/// Sleeps while the word at `word` is `expected`; 0 or the error number.
///
/// # Safety
/// `word` is the address of four bytes that stay mapped.
unsafe fn futex_wait(word: usize, expected: u32, deadline: Option<&libc::timespec>) -> i32 {
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    let deadline = deadline.map_or(null(), std::ptr::from_ref);
    // SAFETY: by the caller's duty. The deadline is absolute, on the monotonic clock.
    unsafe {
        let result = libc::syscall(
            libc::SYS_futex,
            word,
            operation,
            expected,
            deadline,
            0,
            libc::FUTEX_BITSET_MATCH_ANY,
        );
        if result == 0 {
            0
        } else {
            *libc::__errno_location()
        }
    }
}

fn futex_wake(word: usize, count: u32) -> u32 {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    let count = count.min(i32::MAX as u32);
    // SAFETY: waking uses the address as a name only.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word, operation, count) };
    u32::try_from(woken).unwrap_or(0)
}

fn address_of(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word) as usize
}

// ------------------------------------------------------------------------------------------- life

/// The right of a Linux thread to run core code. Dropping it takes the thread off the registry.
pub struct Membership {
    thread: Box<Thread>,
    timer: Option<libc::timer_t>,
    _stack: AlternateStack,
}

impl Membership {
    /// Makes the running thread one that may run core code, on so many bytes of its stack at the
    /// most; `None` if there is no memory for it, or if it may already.
    pub fn new(most: usize) -> Option<Membership> {
        if current().is_some() {
            return None;
        }
        let alternate = AlternateStack::new()?;
        let stack = stack_of_this_thread()?;
        // The C library may have given it the larger stack of a thread that has ended.
        let here = (&raw const stack) as usize;
        let stack_low = here.saturating_sub(most).max(stack + HOST_STACK);
        let thread = Box::new(Thread {
            words: ThreadWords {
                stack_low: stack_low.into(),
                number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed).into(),
                ..ThreadWords::new()
            },
            state: AtomicU32::new(0),
            interrupt: AtomicU32::new(0),
            registers: AtomicUsize::new(0),
            // SAFETY: asks for a number.
            number: unsafe { libc::gettid() },
            stack,
            at_tick: AtomicU64::new(processor_time(1)),
            counts: Counts([const { AtomicU64::new(0) }; words::CELLS]),
        });
        let own = (&raw const *thread) as usize;
        thread.words.own.store(own, Ordering::Relaxed);
        set_gs(own).then_some(())?;
        CURRENT.set(own as *const Thread);
        registry().push(Entry(own as *const Thread));
        signals::unblock();
        let timer = signals::start_ticks(thread.number);
        Some(Membership {
            thread,
            timer,
            _stack: alternate,
        })
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            // SAFETY: the timer was made for this thread.
            unsafe { libc::timer_delete(timer) };
        }
        let own = Entry(&raw const *self.thread);
        {
            let mut registry = registry();
            for (sum, count) in ENDED.0.iter().zip(&self.thread.counts.0) {
                sum.fetch_add(count.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            registry.retain(|entry| *entry != own);
        }
        // From here on signals for it are ignored.
        CURRENT.set(null());
    }
}

/// The lowest address of the running thread's stack.
fn stack_of_this_thread() -> Option<usize> {
    // SAFETY: the C library fills the attributes in, which are then read and destroyed.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut start, mut size) = (null_mut(), 0);
        let known = libc::pthread_attr_getstack(&attributes, &mut start, &mut size);
        libc::pthread_attr_destroy(&mut attributes);
        (known == 0).then_some(start as usize)
    }
}

/// Makes GS point to `address`; whether that went well.
fn set_gs(address: usize) -> bool {
    const ARCH_SET_GS: i32 = 0x1001;
    // SAFETY: nothing in a Linux process on x86-64 uses GS but the core.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, address) == 0 }
}

/// See [`hosted_core::Host::spawn`].
///
/// # Safety
/// `entry` is the address of an `extern "C" fn(usize)` that may be called with `argument`.
pub unsafe extern "C" fn spawn(entry: usize, argument: usize, stack: usize) -> u64 {
    if !memory::reserve(stack) {
        return 0;
    }
    // SAFETY: by the caller's duty.
    let entry: extern "C" fn(usize) = unsafe { std::mem::transmute(entry) };
    let body = move || {
        match Membership::new(stack) {
            Some(membership) => {
                entry(argument);
                drop(membership);
            }
            None => crate::abort("a thread could not be set up"),
        }
        memory::release(stack);
    };
    let started = std::thread::Builder::new()
        .stack_size(stack + HOST_STACK)
        .spawn(body);
    match started {
        Ok(_) => NEXT_ID.fetch_add(1, Ordering::Relaxed),
        Err(_) => {
            memory::release(stack);
            0
        }
    }
}

/// See [`hosted_core::Host::counted`].
pub extern "C" fn counted(cell: usize) -> u64 {
    let registry = registry();
    // SAFETY: a thread takes its entry off, under the lock, before its block goes.
    let threads = registry.iter().map(|entry| unsafe { &(*entry.0).counts });
    let all = threads
        .chain([&ENDED])
        .filter_map(|counts| counts.0.get(cell));
    all.map(|count| count.load(Ordering::Relaxed)).sum()
}

/// How many threads run core code.
pub fn count() -> usize {
    registry().len()
}

/// Waits until only `most` threads run core code, or until the time is up; whether it is so.
pub fn wait_for_count(most: usize, until: Instant) -> bool {
    while count() > most {
        if Instant::now() > until {
            return false;
        }
        std::thread::yield_now();
    }
    true
}
