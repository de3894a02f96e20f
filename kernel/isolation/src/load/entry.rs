//! The functions that the kernel offers to the runtime in every domain; `abi::api` has their
//! contracts.
//!
//! They are called straight, without a proxy: the caller is whatever domain the top record names.
//! Each looks first whether enough stack is left for the kernel; a domain that has used up its
//! stack dies right there, so that the kernel never runs into a guard page.

use crate::call::end::{KERNEL_RESERVE, check_stack, crash_here, leave_if_dead, out_of_stack};
use crate::call::handle;
use crate::call::thread::{current, current_id, spawn_in, stack_left};
use crate::death::kill::leave_if_late;
use crate::domain::budget;
use crate::domain::quota::LINE;
use crate::domain::text::Clean;
use crate::domain::words::Crash;
use crate::domain::{self, ControlBlock, Reason};
use crate::klog;
use crate::memory::heap::OBJECTS;
use crate::platform::{Deadline, WaitResult, platform};
use abi::RpcError;
use abi::api::{
    Api, BRIEF, CAS_FAULT, INTERRUPTIBLE, NO_DEADLINE, SPAWN_REFUSED, WAIT_INTERRUPTED,
    WAIT_MISMATCH, WAIT_TIMED_OUT, WAIT_WOKEN,
};
use abi::user::{UserEvent, UserRegisters};
use core::ptr::{NonNull, null_mut};
use core::slice::{from_raw_parts, from_raw_parts_mut};
use core::sync::atomic::AtomicU32;

/// Longest message of a panic or log line that is kept, in bytes.
const LONGEST_TEXT: usize = 1024;

/// The table that every domain gets. What callers of the `unsafe` ones owe is in [`Api`].
pub const API: Api = Api {
    shared_alloc,
    shared_free,
    pages_alloc,
    pages_free,
    panic,
    log,
    now,
    wall,
    wait,
    wake,
    yield_now,
    spawn,
    is_kernel_object,
    self_id,
    pages_alloc_now,
    short_of_memory,
    user_run,
    user_read,
    user_write,
    user_cas32,
    user_load32,
    user_vector,
    user_set_vector,
};

/// What every function does first that only a domain's own code calls: a thread of a dead domain
/// leaves here, where it owns nothing of the kernel's, instead of waiting to be caught in its own
/// code; so does one whose time is used up.
#[inline]
fn check_in() {
    check_stack();
    leave_if_dead();
    leave_if_late();
}

extern "C" fn shared_alloc(bytes: usize) -> *mut u8 {
    check_in();
    // SAFETY: a domain that a record names is not freed.
    let block = unsafe { &*current() };
    budget::allocate(&OBJECTS, bytes, block).map_or(null_mut(), NonNull::as_ptr)
}

unsafe extern "C" fn shared_free(object: *mut u8) {
    check_stack();
    if let Some(object) = NonNull::new(object) {
        // SAFETY: an `RRef` or `RVec` that is being dropped owned it.
        unsafe { OBJECTS.free(object) };
    }
}

extern "C" fn pages_alloc(count: usize) -> *mut u8 {
    check_in();
    let block = domain::find(current_id());
    block
        .and_then(|block| block.take_pages(count))
        .map_or(null_mut(), NonNull::as_ptr)
}

extern "C" fn pages_alloc_now(count: usize) -> *mut u8 {
    check_in();
    let block = domain::find(current_id());
    block
        .and_then(|block| block.take_pages_now(count))
        .map_or(null_mut(), NonNull::as_ptr)
}

extern "C" fn short_of_memory(short: u32) {
    check_in();
    // SAFETY: a domain that a record names is not freed.
    unsafe { (*current()).set_short(short != 0) };
}

unsafe extern "C" fn pages_free(pages: *mut u8, _count: usize) {
    check_stack();
    if let (Some(block), Some(pages)) = (domain::find(current_id()), NonNull::new(pages)) {
        block.give_pages(pages);
    }
}

/// Text that a domain lent for the length of a call.
///
/// # Safety
/// `text` is valid for `len` bytes.
unsafe fn borrowed<'a>(text: *const u8, len: usize) -> &'a str {
    // SAFETY: by the caller's duty; cutting keeps it valid.
    let bytes = unsafe { core::slice::from_raw_parts(text, len.min(LONGEST_TEXT)) };
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    }
}

unsafe extern "C" fn panic(
    message: *const u8,
    len: usize,
    file: *const u8,
    file_len: usize,
    line: u32,
) -> ! {
    if stack_left() < KERNEL_RESERVE {
        out_of_stack();
    }
    // SAFETY: the runtime passes two texts of its own.
    let (message, file) = unsafe { (borrowed(message, len), borrowed(file, file_len)) };
    crash_here(Reason::Panic, &Crash::of_panic(message, file, line))
}

unsafe extern "C" fn log(text: *const u8, len: usize) {
    check_in();
    // SAFETY: the runtime passes a text of its own.
    let text = unsafe { borrowed(text, len) };
    // SAFETY: a domain that a record names is not freed.
    let block = unsafe { &*current() };
    text.lines().for_each(|line| say(block, line));
}

/// Writes a line of a domain's to the log, unless it has written too many of late.
fn say(block: &ControlBlock, line: &str) {
    let name = block.name();
    let bytes = name.as_str().len() + line.len() + LINE as usize;
    let Some(lost) = block.take_line(bytes) else {
        return;
    };
    block.tell_lost(lost);
    klog!("{name}: {}", Clean(line));
}

extern "C" fn now() -> u64 {
    // The bare machine reads its clock with next to no stack; a Linux process asks the C library.
    #[cfg(feature = "hosted")]
    check_stack();
    platform().now()
}

extern "C" fn wall() -> u64 {
    check_in();
    platform().wall()
}

unsafe extern "C" fn wait(word: *const AtomicU32, expected: u32, deadline: u64, how: u32) -> u32 {
    check_stack();
    let deadline = (deadline != NO_DEADLINE).then_some(deadline);
    loop {
        leave_if_dead();
        crate::call::thread::rests();
        // SAFETY: the runtime passes a word of its own domain, which is alive as long as this
        // thread is inside it.
        let word = unsafe { &*word };
        let result = match how {
            BRIEF => platform().wait(word, expected, None),
            _ => crate::platform::wait(word, expected, deadline),
        };
        leave_if_dead();
        match result {
            WaitResult::Woken => return WAIT_WOKEN,
            WaitResult::Mismatch => return WAIT_MISMATCH,
            WaitResult::TimedOut => return WAIT_TIMED_OUT,
            WaitResult::Interrupted if how == INTERRUPTIBLE => return WAIT_INTERRUPTED,
            WaitResult::Interrupted => {}
        }
    }
}

unsafe extern "C" fn wake(word: *const AtomicU32, count: u32) -> u32 {
    check_stack();
    // SAFETY: as in `wait`. Only the address is used.
    platform().wake(unsafe { &*word }, count)
}

extern "C" fn yield_now() {
    check_in();
    crate::platform::yield_now();
    leave_if_dead();
}

unsafe extern "C" fn spawn(
    entry: extern "C" fn(*mut u8),
    data: *mut u8,
    name: *const u8,
    len: usize,
    runtime: u64,
    period: u64,
    stack: usize,
) -> u64 {
    check_in();
    // SAFETY: the runtime passes a text of its own.
    let name = unsafe { borrowed(name, len) };
    let deadline = (period != 0).then_some(Deadline { runtime, period });
    let Some(block) = domain::find(current_id()) else {
        return 0;
    };
    match spawn_in(&block, name, entry, data, deadline, stack) {
        Ok(id) => id,
        Err(RpcError::Refused) => SPAWN_REFUSED,
        Err(_) => 0,
    }
}

unsafe extern "C" fn is_kernel_object(data: *const u8) -> u32 {
    // SAFETY: the data pointer of a handle that the caller holds.
    u32::from(unsafe { handle::is_kernel_object(data) })
}

unsafe extern "C" fn user_run(
    thread: *const u8,
    registers: *mut UserRegisters,
    event: *mut UserEvent,
) {
    // SAFETY: by the caller's duty: the runtime passes a handle and two places of its own.
    let (registers, event) = unsafe { (&mut *registers, &mut *event) };
    let mut has_run = false;
    loop {
        check_in();
        crate::call::thread::rests();
        // SAFETY: as above; the handle is lent for the call.
        unsafe { platform().run_user(thread, registers, event) };
        match event {
            UserEvent::Interrupted => has_run = true,
            // Somebody else was faster after an interrupt.
            UserEvent::Refused if has_run => return *event = UserEvent::Kicked,
            _ => return,
        }
    }
}

// Copies take less time than a look at what may be the matter with the thread, and it is met in its
// own code right after: so they look at its stack only.

unsafe extern "C" fn user_read(space: *const u8, at: u64, bytes: *mut u8, length: usize) -> usize {
    check_stack();
    // SAFETY: by the caller's duty: the runtime passes a handle, and bytes that are lent to it.
    unsafe { platform().read_user(space, at, from_raw_parts_mut(bytes, length)) }
}

unsafe extern "C" fn user_write(
    space: *const u8,
    at: u64,
    bytes: *const u8,
    length: usize,
) -> usize {
    check_stack();
    // SAFETY: as above.
    unsafe { platform().write_user(space, at, from_raw_parts(bytes, length)) }
}

unsafe extern "C" fn user_cas32(space: *const u8, at: u64, old: u32, new: u32) -> u64 {
    check_stack();
    // SAFETY: as above.
    let found = unsafe { platform().exchange_user(space, at, old, new) };
    found.map_or(CAS_FAULT, u64::from)
}

unsafe extern "C" fn user_load32(space: *const u8, at: u64) -> u64 {
    check_stack();
    // SAFETY: as above.
    let found = unsafe { platform().load_user(space, at) };
    found.map_or(CAS_FAULT, u64::from)
}

unsafe extern "C" fn user_vector(thread: *const u8, bytes: *mut u8, length: usize) -> usize {
    check_in();
    // SAFETY: by the caller's duty: the runtime passes a handle, and bytes that are lent to it.
    unsafe { platform().vector_of_user(thread, from_raw_parts_mut(bytes, length)) }
}

unsafe extern "C" fn user_set_vector(thread: *const u8, bytes: *const u8, length: usize) -> u32 {
    check_in();
    // SAFETY: as above.
    u32::from(unsafe { platform().set_vector_of_user(thread, from_raw_parts(bytes, length)) })
}

extern "C" fn self_id() -> u32 {
    current_id()
}
