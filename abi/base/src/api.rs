//! The functions that the kernel offers to the runtime inside every domain, and the entry block.
//!
//! All of them are `extern "C"` with integers and pointers only. They give a domain nothing but its
//! own memory, its own threads, the time and a line in the log; everything else comes through
//! handles. Each runs in kernel text, checks that enough stack is left for it, and does not return
//! into a domain that died meanwhile.

use crate::handle::AnyHandle;
use crate::rref::RVec;
use crate::user::{UserEvent, UserRegisters};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU32;

/// `deadline` value for [`Api::wait`] that means: none.
pub const NO_DEADLINE: u64 = u64::MAX;

/// [`Api::wait`]: another thread woke this one.
pub const WAIT_WOKEN: u32 = 0;
/// [`Api::wait`]: the word did not hold the expected value.
pub const WAIT_MISMATCH: u32 = 1;
/// [`Api::wait`]: the deadline passed.
pub const WAIT_TIMED_OUT: u32 = 2;
/// [`Api::wait`]: a domain on whose behalf the thread waits was ended.
pub const WAIT_INTERRUPTED: u32 = 3;

/// How [`Api::wait`] waits: until it is woken, or it is time.
pub const UNINTERRUPTED: u32 = 0;
/// How [`Api::wait`] waits: also until a domain on whose behalf it does dies.
pub const INTERRUPTIBLE: u32 = 1;
/// How [`Api::wait`] waits: as [`UNINTERRUPTED`] and without a deadline, for who goes on without
/// anybody's help, as the holder of the heap's lock does. A drop that does so has not waited.
pub const BRIEF: u32 = 2;

/// Bytes of stack that a thread has where nothing else is asked for, and the most that it can have.
pub const USUAL_STACK: usize = 128 * 1024;
/// Bytes of stack that it has at the least: what has to be left for a call, and half of that again.
pub const SMALLEST_STACK: usize = 48 * 1024;

/// [`Api::spawn`]: the deadline is refused.
pub const SPAWN_REFUSED: u64 = u64::MAX;

/// [`Api::user_cas32`]: nothing was compared. No word holds it.
pub const CAS_FAULT: u64 = u64::MAX;

/// The table of kernel functions.
///
/// # Safety
/// Each function that is `unsafe` says what its caller has to see to. What a function does on
/// behalf of a domain it does for whoever calls it, so that the table itself is no secret.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Api {
    /// An object of at least `bytes` bytes on the shared heap, aligned to 64, owned by the running
    /// domain; null if there is no memory. One of more than
    /// [`LARGEST_SLOT`](crate::shared::LARGEST_SLOT) bytes is zero, any other has undefined
    /// content.
    pub shared_alloc: extern "C" fn(bytes: usize) -> *mut u8,
    /// Frees such an object.
    ///
    /// # Safety
    /// `object` came from [`shared_alloc`](Self::shared_alloc), here or in a domain that moved it
    /// here, and nobody uses it any more.
    pub shared_free: unsafe extern "C" fn(object: *mut u8),
    /// `count` pages of 4,096 zero bytes for the private heap; null if there is no memory or
    /// budget.
    pub pages_alloc: extern "C" fn(count: usize) -> *mut u8,
    /// Gives such pages back, as many as were asked for.
    ///
    /// # Safety
    /// `pages` came from one call for `count` pages, and nobody uses them any more.
    pub pages_free: unsafe extern "C" fn(pages: *mut u8, count: usize),
    /// Ends the domain: `message` is what the panic said, `file` and `line` where.
    ///
    /// # Safety
    /// `message` is valid for reading `len` bytes, `file` for `file_len`.
    pub panic: unsafe extern "C" fn(
        message: *const u8,
        len: usize,
        file: *const u8,
        file_len: usize,
        line: u32,
    ) -> !,
    /// Writes a line to the kernel's log, after the domain's name.
    ///
    /// # Safety
    /// `text` is valid for reading `len` bytes during the call.
    pub log: unsafe extern "C" fn(text: *const u8, len: usize),
    /// Nanoseconds since boot.
    pub now: extern "C" fn() -> u64,
    /// Seconds since 1970-01-01 UTC.
    pub wall: extern "C" fn() -> u64,
    /// Blocks while `*word == expected`, until woken or until `deadline` (nanoseconds since boot).
    /// `how` is one of [`UNINTERRUPTED`], [`INTERRUPTIBLE`] and [`BRIEF`].
    ///
    /// # Safety
    /// `word` points to an atomic word that stays during the call.
    pub wait:
        unsafe extern "C" fn(word: *const AtomicU32, expected: u32, deadline: u64, how: u32) -> u32,
    /// Wakes up to `count` threads that wait for `word`; how many.
    ///
    /// # Safety
    /// `word` points to an atomic word that stays during the call.
    pub wake: unsafe extern "C" fn(word: *const AtomicU32, count: u32) -> u32,
    /// Lets another thread run.
    pub yield_now: extern "C" fn(),
    /// Starts a thread of this domain in `entry(data)`; its id, or 0 if there is no memory or
    /// budget. If `period` is not 0 it asks for `runtime` nanoseconds of processor time in each
    /// `period` nanoseconds, or the answer is [`SPAWN_REFUSED`]. It has `stack` bytes of stack,
    /// from [`SMALLEST_STACK`] to [`USUAL_STACK`].
    ///
    /// # Safety
    /// `entry` may be called with `data`, once and by another thread, at any later time, unless the
    /// result is 0 or [`SPAWN_REFUSED`]. `name` is valid for reading `len` bytes during the call.
    pub spawn: unsafe extern "C" fn(
        entry: extern "C" fn(*mut u8),
        data: *mut u8,
        name: *const u8,
        len: usize,
        runtime: u64,
        period: u64,
        stack: usize,
    ) -> u64,
    /// 1 if `data` is the data pointer of a handle to an object of the kernel itself, otherwise 0.
    ///
    /// # Safety
    /// `data` is the data pointer of a live handle.
    pub is_kernel_object: unsafe extern "C" fn(data: *const u8) -> u32,
    /// The number of this domain instance.
    pub self_id: extern "C" fn() -> u32,
    /// As [`pages_alloc`](Self::pages_alloc), but asks nobody to give memory back, and so does not
    /// wait.
    pub pages_alloc_now: extern "C" fn(count: usize) -> *mut u8,
    /// Says whether (not 0) the domain is short of memory. While it is, the kernel lets only those
    /// calls in that are marked `#[frees]`.
    pub short_of_memory: extern "C" fn(short: u32),
    /// Runs the program of the user thread behind `thread` until it traps, with these registers;
    /// stores why, and the registers as it has left them.
    ///
    /// # Safety
    /// `thread` is the data pointer of a live handle; `registers` and `event` are valid for reading
    /// and writing during the call, and nobody else uses them.
    pub user_run: unsafe extern "C" fn(
        thread: *const u8,
        registers: *mut UserRegisters,
        event: *mut UserEvent,
    ),
    /// Copies `length` bytes to `bytes` from the memory of the program of the address space behind
    /// `space`, from its address `at` on. Says how many were, up to the first page that the program
    /// may not read now.
    ///
    /// # Safety
    /// `space` is the data pointer of a live handle; `bytes` are valid for writing during the call,
    /// and nobody else uses them.
    pub user_read:
        unsafe extern "C" fn(space: *const u8, at: u64, bytes: *mut u8, length: usize) -> usize,
    /// Copies `length` bytes from `bytes` to the memory of the program, likewise, up to the first
    /// page that it may not write to now.
    ///
    /// # Safety
    /// `space` is the data pointer of a live handle; `bytes` are valid for reading during the call,
    /// and nobody writes to them.
    pub user_write:
        unsafe extern "C" fn(space: *const u8, at: u64, bytes: *const u8, length: usize) -> usize,
    /// Puts `new` into the word at the program's address `at`, a multiple of four, if it holds
    /// `old`. What it held, or [`CAS_FAULT`]: the program may not write there now.
    ///
    /// # Safety
    /// `space` is the data pointer of a live handle.
    pub user_cas32: unsafe extern "C" fn(space: *const u8, at: u64, old: u32, new: u32) -> u64,
    /// Reads the word at the program's address `at`, a multiple of four, in one step. What it
    /// holds, or [`CAS_FAULT`]: the program may not read there now.
    ///
    /// # Safety
    /// `space` is the data pointer of a live handle.
    pub user_load32: unsafe extern "C" fn(space: *const u8, at: u64) -> u64,
    /// Copies what the program of the user thread behind `thread` has in its vector registers to
    /// `bytes`, in the form in which the processor keeps it; says how many bytes that takes. Where
    /// `length` is less, nothing is copied. 0: somebody runs it now.
    ///
    /// # Safety
    /// `thread` is the data pointer of a live handle; `bytes` are valid for writing during the
    /// call, and nobody else uses them.
    pub user_vector:
        unsafe extern "C" fn(thread: *const u8, bytes: *mut u8, length: usize) -> usize,
    /// Sets what the program finds in these registers, in the same form. 1, or 0: the processor
    /// would refuse it, or somebody runs it now; then all stays as it is.
    ///
    /// # Safety
    /// `thread` is the data pointer of a live handle; `bytes` are valid for reading during the
    /// call, and nobody writes to them.
    pub user_set_vector:
        unsafe extern "C" fn(thread: *const u8, bytes: *const u8, length: usize) -> u32,
}

/// What the kernel passes to the entry point of a domain image.
#[repr(C)]
pub struct EntryArgs {
    /// The ABI fingerprint of the kernel; compared before anything else is looked at.
    pub fingerprint: [u8; 32],
    /// The kernel's functions.
    pub api: Api,
    /// What the domain was granted, in the order of its declaration. The entry takes them.
    pub grants: *mut Option<AnyHandle>,
    /// How many.
    pub grant_count: usize,
    /// The text of options from the manifest. The entry takes it.
    pub options: *mut Option<RVec<u8>>,
    /// Where to put what the domain offers, in the order of its declaration.
    pub offers: *mut Option<AnyHandle>,
    /// Room for how many.
    pub offer_count: usize,
    /// Out: the address of a function of the domain's runtime that panics inside the domain.
    pub crash: usize,
    /// Out: the address of a function of the domain's runtime that looks whether it is still short
    /// of memory; 0: none.
    pub restock: usize,
}

/// Entry result: the domain runs.
pub const ENTRY_OK: u64 = 0;
/// Entry result: the image was built for another kernel.
pub const ENTRY_FINGERPRINT: u64 = 1;
/// Entry result: a grant is missing or of the wrong interface.
pub const ENTRY_GRANTS: u64 = 2;
/// Entry result: the domain's own start function gave an error.
pub const ENTRY_FAILED: u64 = 3;

struct ApiCell(UnsafeCell<MaybeUninit<Api>>);

// SAFETY: written once before the image's other code runs (`set_api`), only read afterwards.
unsafe impl Sync for ApiCell {}

static API: ApiCell = ApiCell(UnsafeCell::new(MaybeUninit::uninit()));

/// The kernel's functions.
#[inline(always)]
pub fn api() -> &'static Api {
    // SAFETY: every image calls `set_api` in its entry, before any code that can get here.
    unsafe { (*API.0.get()).assume_init_ref() }
}

/// Makes the kernel's functions known to this image.
///
/// # Safety
/// Called once, first thing in the image, while nothing else of it runs.
pub unsafe fn set_api(api: Api) {
    // SAFETY: nothing else runs, so nobody reads.
    unsafe { (*API.0.get()).write(api) };
}
