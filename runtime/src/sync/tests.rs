//! Waits that are interrupted, with a kernel that does nothing else.

use super::{Condvar, FREE, Mutex, Wait};
use abi::api::{Api, WAIT_INTERRUPTED, set_api};
use abi::user::{UserEvent, UserRegisters};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The word that was waited for last, and that of which somebody was woken last.
static WAITED: AtomicUsize = AtomicUsize::new(0);
static WOKEN: AtomicUsize = AtomicUsize::new(0);

/// The holder lets go and wakes the caller, who is interrupted at that moment.
unsafe extern "C" fn wait(word: *const AtomicU32, _: u32, _: u64, _: u32) -> u32 {
    // SAFETY: a word of the test's.
    unsafe { (*word).store(FREE, Ordering::SeqCst) };
    WAITED.store(word.addr(), Ordering::SeqCst);
    WAIT_INTERRUPTED
}

unsafe extern "C" fn wake(word: *const AtomicU32, _: u32) -> u32 {
    WOKEN.store(word.addr(), Ordering::SeqCst);
    0
}

extern "C" fn no_bytes(_: usize) -> *mut u8 {
    unreachable!()
}
unsafe extern "C" fn no_free(_: *mut u8) {
    unreachable!()
}
unsafe extern "C" fn no_pages_free(_: *mut u8, _: usize) {
    unreachable!()
}
unsafe extern "C" fn no_panic(_: *const u8, _: usize, _: *const u8, _: usize, _: u32) -> ! {
    unreachable!()
}
unsafe extern "C" fn no_log(_: *const u8, _: usize) {
    unreachable!()
}
extern "C" fn no_time() -> u64 {
    unreachable!()
}
extern "C" fn no_yield() {
    unreachable!()
}
unsafe extern "C" fn no_spawn(
    _: extern "C" fn(*mut u8),
    _: *mut u8,
    _: *const u8,
    _: usize,
    _: u64,
    _: u64,
    _: usize,
) -> u64 {
    unreachable!()
}
unsafe extern "C" fn no_object(_: *const u8) -> u32 {
    unreachable!()
}
extern "C" fn no_id() -> u32 {
    unreachable!()
}
extern "C" fn no_shortage(_: u32) {
    unreachable!()
}
unsafe extern "C" fn no_run(_: *const u8, _: *mut UserRegisters, _: *mut UserEvent) {
    unreachable!()
}
unsafe extern "C" fn no_read(_: *const u8, _: u64, _: *mut u8, _: usize) -> usize {
    unreachable!()
}
unsafe extern "C" fn no_write(_: *const u8, _: u64, _: *const u8, _: usize) -> usize {
    unreachable!()
}
unsafe extern "C" fn no_cas(_: *const u8, _: u64, _: u32, _: u32) -> u64 {
    unreachable!()
}

unsafe extern "C" fn no_load(_: *const u8, _: u64) -> u64 {
    unreachable!()
}
unsafe extern "C" fn no_vector(_: *const u8, _: *mut u8, _: usize) -> usize {
    unreachable!()
}
unsafe extern "C" fn no_setting(_: *const u8, _: *const u8, _: usize) -> u32 {
    unreachable!()
}

const KERNEL: Api = Api {
    shared_alloc: no_bytes,
    shared_free: no_free,
    pages_alloc: no_bytes,
    pages_free: no_pages_free,
    panic: no_panic,
    log: no_log,
    now: no_time,
    wall: no_time,
    wait,
    wake,
    yield_now: no_yield,
    spawn: no_spawn,
    is_kernel_object: no_object,
    self_id: no_id,
    pages_alloc_now: no_bytes,
    short_of_memory: no_shortage,
    user_run: no_run,
    user_read: no_read,
    user_write: no_write,
    user_cas32: no_cas,
    user_load32: no_load,
    user_vector: no_vector,
    user_set_vector: no_setting,
};

/// One test, as there is one kernel.
#[test]
fn who_is_interrupted_passes_the_wake_up_on() {
    // SAFETY: no other test of this crate uses a kernel.
    unsafe { set_api(KERNEL) };
    let lock = Mutex::new(());
    core::mem::forget(lock.lock());
    assert!(lock.lock_interruptible().is_none(), "it was interrupted");
    let waited = WAITED.load(Ordering::SeqCst);
    assert_eq!(waited, (&raw const lock.state).addr());
    assert_eq!(
        WOKEN.load(Ordering::SeqCst),
        waited,
        "who waits too is not woken"
    );
    let bell = Condvar::new();
    let (guard, how) = bell.wait(lock.lock());
    assert_eq!(how, Wait::Interrupted);
    let waited = WAITED.load(Ordering::SeqCst);
    assert_eq!(waited, (&raw const bell.count).addr());
    assert_eq!(
        WOKEN.load(Ordering::SeqCst),
        waited,
        "who waits too is not woken"
    );
    drop(guard);
}
