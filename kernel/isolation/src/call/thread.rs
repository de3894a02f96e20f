//! The words that belong to the running thread, and the threads that domains create.
//!
//! The GS register points to a block that begins with [`abi::words::ThreadWords`], on every
//! platform. The platform saves and loads the top call record and the end of the stack when it
//! switches threads.

use crate::call::{Method, Record, UNBOUNDED, guarded, internal};
use crate::domain::account::thread_bytes;
use crate::domain::group::{Group, Promise};
use crate::domain::times::word;
use crate::domain::{self, ControlBlock, kernel_block};
use crate::memory::relief;
use crate::platform::{Attributes, Deadline, PAGE, STACK_BYTES, platform};
use abi::api::SMALLEST_STACK;
use abi::{RpcError, words};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The top call record of the running thread.
#[inline(always)]
pub fn top() -> *mut Record {
    word::<{ words::TOP }>() as *mut Record
}

/// Replaces it.
///
/// # Safety
/// `record` is a record on this thread's stack (or null) whose `previous` chain is intact.
#[inline(always)]
pub unsafe fn set_top(record: *mut Record) {
    // SAFETY: see above. The default memory clobber keeps the record's own stores before this one.
    unsafe {
        core::arch::asm!("mov gs:[{word}], {}", in(reg) record, word = const words::TOP, options(nostack, preserves_flags))
    };
}

/// The lowest address of the running thread's stack.
#[inline(always)]
pub fn stack_low() -> usize {
    word::<{ words::STACK_LOW }>()
}

/// Bytes of stack between here and the end.
#[inline(always)]
pub fn stack_left() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mov {}, rsp", out(reg) sp, options(nostack, preserves_flags, nomem))
    };
    sp.saturating_sub(stack_low())
}

/// The domain whose code runs: the callee of the top record. Null while a kernel thread has made no
/// call.
#[inline(always)]
pub fn current() -> *const ControlBlock {
    let top = top();
    if top.is_null() {
        return kernel_block();
    }
    // SAFETY: the top record lives on this thread's stack.
    unsafe { (*top).domain }
}

/// The number of the domain whose code runs.
#[inline(always)]
pub fn current_id() -> u32 {
    // SAFETY: a domain that a record names is not freed.
    unsafe { (*current()).id }
}

/// The domain that starts another: the one whose code runs, or that called the kernel object whose
/// code runs. `None`: the kernel.
pub(crate) fn starter() -> Option<Arc<ControlBlock>> {
    match current_id() {
        abi::shared::KERNEL_OWNER => caller(),
        id => domain::find(id),
    }
}

/// The number of the domain that called the kernel object whose code runs; 0: the kernel itself.
pub fn caller_id() -> u32 {
    previous_id().unwrap_or(abi::shared::KERNEL_OWNER)
}

/// The domain that called the kernel object whose code runs.
pub fn caller() -> Option<Arc<ControlBlock>> {
    domain::find(previous_id()?)
}

/// The number of the domain that called the one whose code runs; `None`: nobody has.
pub(crate) fn previous_id() -> Option<u32> {
    let top = top();
    // SAFETY: records of the running thread; the block that one names is not freed.
    unsafe {
        let previous = (!top.is_null()).then(|| (*top).previous)?;
        (!previous.is_null()).then(|| (*(*previous).domain).id)
    }
}

/// The lowest record of every chain, which stands for the kernel, and who pays for the thread.
#[repr(C)]
struct Root {
    record: Record,
    /// The group that is charged with the thread's time, of which this has a share; null: the
    /// kernel. Only the thread itself and the ticks that interrupt it use it.
    payer: AtomicPtr<Group>,
}

impl Root {
    /// Has `payer` pay from now on.
    fn set_payer(&self, payer: Option<Arc<Group>>) {
        let new = payer.map_or(null_mut(), |payer| Arc::into_raw(payer).cast_mut());
        let old = self.payer.swap(new, Ordering::Relaxed);
        if !old.is_null() {
            // SAFETY: a share that an earlier call put there. No tick of this thread is at it: one
            // that interrupted the thread before the swap is over.
            drop(unsafe { Arc::from_raw(old) });
        }
    }
}

/// Runs `body` on a thread that belongs to the kernel, with the root record that calls into domains
/// need.
pub fn with_root<R>(body: impl FnOnce() -> R) -> R {
    with_payer(None, body)
}

/// As [`with_root`], on a thread whose time is charged to `payer`.
pub(crate) fn with_payer<R>(payer: Option<Arc<Group>>, body: impl FnOnce() -> R) -> R {
    let mut root = MaybeUninit::<Root>::zeroed();
    let root = root.as_mut_ptr();
    // SAFETY: zero is a valid `Root`; it stays on this frame until `body` has returned, when the
    // chain is empty again.
    unsafe {
        (*root).record.domain = kernel_block();
        (*root).set_payer(payer);
        set_top(root.cast());
        let result = body();
        set_top(null_mut());
        (*root).set_payer(None);
        result
    }
}

/// The lowest record of the running thread; `None`: it has made no call.
fn root() -> Option<*const Root> {
    let mut record = top();
    // SAFETY: the running thread's records. There are no more than fit on its stack.
    unsafe {
        while !record.is_null() && !(*record).previous.is_null() {
            record = (*record).previous;
        }
    }
    (!record.is_null()).then_some(record.cast_const().cast())
}

/// Charges the group that pays for the running thread with `ns` nanoseconds of processor time. For
/// ticks.
pub(crate) fn charge(ns: u64) {
    let Some(root) = root() else { return };
    // SAFETY: nobody calls a domain without a root below, and the root has a share of the group.
    unsafe {
        if let Some(payer) = (*root).payer.load(Ordering::Relaxed).as_ref() {
            payer.charge_time(ns);
        }
    }
}

/// Whether the code that runs is another's than a domain's of the group `group`: whether the thread
/// with the top record `top` may hold what others wait for. For the platform, which asks with
/// interrupts off.
///
/// # Safety
/// `top` is the top record of a thread that is on this processor, and not null.
pub unsafe fn is_in_service(top: *const Record, group: u64) -> bool {
    // SAFETY: by the caller's duty; a domain that a record names is not freed.
    let domain = unsafe { &*(*top).domain };
    domain.group().map_or(0, |own| own.id) != group
}

/// Charges the processor time of the running thread, from now on and for good, to the group of
/// `block`.
///
/// # Errors
/// [`RpcError::Refused`] unless the caller, a domain that has called a kernel object, has created
/// the thread itself: nobody can have those pay who call him. And if the group has more weight than
/// the caller's, who would get more than its part by it.
pub fn give_to(block: &ControlBlock) -> Result<(), RpcError> {
    // SAFETY: the running thread's records; that of a call is below that of the kernel object.
    let is_own = unsafe {
        let caller = (*top()).previous;
        !caller.is_null() && is_own_thread((*caller).method)
    };
    if !is_own {
        return Err(RpcError::Refused);
    }
    let weight = |block: &ControlBlock| block.group().map_or(u32::MAX, |group| group.weight);
    let own = caller().map_or(0, |caller| weight(&caller));
    if own < weight(block) {
        return Err(RpcError::Refused);
    }
    if let Some(root) = root() {
        // SAFETY: nobody calls a domain without a root below.
        unsafe { (*root).set_payer(block.group().cloned()) };
    }
    platform().join_group(&block.attributes());
    Ok(())
}

struct Start {
    block: Arc<ControlBlock>,
    entry: extern "C" fn(*mut u8),
    data: *mut u8,
    /// Bytes of its stack.
    stack: usize,
    /// Given back when the thread has ended.
    _promise: Option<Promise>,
}

static THREAD: Method = internal("thread", UNBOUNDED);

/// Whether `method` stands for a thread that runs in the domain that created it.
pub(crate) fn is_own_thread(method: *const Method) -> bool {
    core::ptr::eq(method, &raw const THREAD)
}

/// The running thread is about to wait. For a thread that its domain created the time until now
/// counts no more: only how long it runs without waiting can be bounded.
pub(crate) fn rests() {
    let top = top();
    // SAFETY: the running thread's top record; only the thread itself and its ticks use the count.
    unsafe {
        if !top.is_null() && (*top).ticks != 0 && is_own_thread((*top).method) {
            (*top).ticks = 0;
        }
    }
}

/// Starts a thread of the domain `block` in `entry(data)`, with or without a deadline; its number.
/// Its stack has `stack` bytes, or what is nearest of that which a stack may have.
///
/// # Errors
/// [`RpcError::NoMemory`] when memory or the domain's thread budget is used up.
/// [`RpcError::Refused`] if the deadline makes no sense, is more than the group's limit leaves, or
/// cannot be kept (also for lack of memory then).
pub fn spawn_in(
    block: &Arc<ControlBlock>,
    name: &str,
    entry: extern "C" fn(*mut u8),
    data: *mut u8,
    deadline: Option<Deadline>,
    stack: usize,
) -> Result<u64, RpcError> {
    let stack = stack
        .clamp(SMALLEST_STACK, STACK_BYTES)
        .next_multiple_of(PAGE);
    // What is noted of it lies in the kernel's heap.
    if !platform().can_note() {
        return Err(RpcError::NoMemory);
    }
    let promise = deadline.map(|deadline| {
        let group = block.group().ok_or(RpcError::Refused)?;
        Promise::new(group, deadline)
    });
    let promise = promise.transpose()?;
    block.take_thread(stack)?;
    let start = Box::into_raw(Box::new(Start {
        block: block.clone(),
        entry,
        data,
        stack,
        _promise: promise,
    }));
    let attributes = Attributes {
        deadline,
        stack,
        ..block.attributes()
    };
    let spawn = || {
        let may_take = block.may_take(thread_bytes(stack) / PAGE);
        may_take
            .then(|| platform().spawn(name, run, start as usize, &attributes))
            .flatten()
    };
    // Nobody is asked for memory because a deadline cannot be kept.
    let spawned = match deadline {
        Some(_) => spawn().ok_or(RpcError::Refused),
        None => relief::or_wait(stack, spawn).ok_or(RpcError::NoMemory),
    };
    spawned.inspect_err(|_| {
        // SAFETY: the thread was not started, so the box is still ours.
        let start = unsafe { Box::from_raw(start) };
        start.block.give_thread(start.stack);
    })
}

/// The first function of every domain thread.
extern "C" fn run(argument: usize) {
    // SAFETY: `spawn_in` made the box and gave it to this thread alone.
    let start = unsafe { Box::from_raw(argument as *mut Start) };
    with_payer(start.block.group().cloned(), || {
        // A crash of the domain ends the thread like a return does; there is nobody to tell.
        // SAFETY: entry and data come from the domain's runtime, which made them for each other.
        let _ = unsafe { guarded(&start.block, &THREAD, start.entry, start.data) };
    });
    start
        .block
        .thread_ended(platform().thread_ns(), start.stack);
}
