//! The call chain: how control enters a domain and always finds its way out.
//!
//! ARCHITECTURE.md, "The life of a call", tells it as a story; decision 0001 says why it is so. A
//! proxy keeps a [`Record`] in its stack frame and links it into the thread's chain (publish), then
//! tests that the callee is alive, then calls through a small naked trampoline that writes the
//! callee-saved registers, the stack pointer and the return slot into the record and jumps on. The
//! method returns straight to the proxy. If the callee dies instead, the thread is put back to
//! where the trampoline was called, but into a *stub* that returns a valid `Err(DomainCrashed)` of
//! the method's own type. There is no unwinder and no function that returns twice.
//!
//! States of a record: linked (from [`enter`] to [`leave`]); while linked, [`CALLER_DEAD`] and
//! [`CALLEE_DEAD`] may be set on it by the thread itself (in [`crate::death::kill`]) or while the
//! world is stopped. Then the proxy drops the result, and goes on unwinding ([`unwind_further`])
//! instead of returning into a dead domain, or gives an error instead of what a dead domain
//! returned.

pub mod handle;

use crate::domain::thread::{set_top, stack_low, top};
use crate::domain::{ALIVE, CRASH_NEXT, ControlBlock};
use crate::platform::Landing;
use abi::{Exchangeable, RpcError};
use core::arch::{asm, naked_asm};
use core::mem::{MaybeUninit, offset_of};
use core::sync::atomic::{AtomicU32, Ordering};

/// One call from a domain (or the kernel) into a domain, on the stack of the calling thread.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Record {
    /// The record below it in the chain.
    pub previous: *mut Record,
    /// The callee.
    pub domain: *const ControlBlock,
    /// [`CALLER_DEAD`], [`CALLEE_DEAD`], [`COUNTED`] and [`DROP`], or 0.
    pub state: u32,
    /// Scheduler ticks that were spent in the callee itself.
    pub ticks: u32,
    /// Why something could not cross, as [`note_failure`] wrote it; 0: everything could.
    failure: u32,
    /// Stack pointer at the trampoline: it points to the return address into the proxy.
    sp: usize,
    rbx: usize,
    rbp: usize,
    r12: usize,
    r13: usize,
    r14: usize,
    r15: usize,
    /// First argument register: the return slot, where the result is returned in memory.
    rdi: usize,
    /// What is called.
    pub method: *const Method,
}

/// Record state: the domain that made this call is dead; do not return into it.
pub const CALLER_DEAD: u32 = 1;
/// Record state: the callee has died while the call was under way. What it still returned is
/// dropped.
pub const CALLEE_DEAD: u32 = 4;
/// Record state: the call counts as one of those that are under way in a domain with a budget for
/// them.
pub const COUNTED: u32 = 2;
/// Record state: the call is the drop of an object whose last handle went elsewhere.
pub(crate) const DROP: u32 = 8;

/// A budget of no limit.
pub const UNBOUNDED: u32 = u32::MAX;

/// What is known of a method at compile time.
#[derive(Debug)]
pub struct Method {
    /// Returns `Err(DomainCrashed)` of the method's own result type.
    stub: *const (),
    /// The interface's name.
    pub interface: &'static str,
    /// The method's name.
    pub name: &'static str,
    /// How long the callee's own code may run, in milliseconds; 0: as the domain's default says.
    pub budget: u32,
    /// It is let into a domain that is short of memory: it takes next to none, and perhaps gives
    /// some back.
    pub frees: bool,
}

// SAFETY: immutable; the pointer is a function's address.
unsafe impl Sync for Method {}

impl Method {
    /// For the generated proxies. `stub` is a function of the method's signature without arguments.
    pub const fn new(
        stub: *const (),
        interface: &'static str,
        name: &'static str,
        budget: u32,
        frees: bool,
    ) -> Self {
        Method {
            stub,
            interface,
            name,
            budget,
            frees,
        }
    }

    /// What stands for the interface in calls that the kernel itself makes.
    pub(crate) const KERNEL: &'static str = "kernel";

    /// For calls that the kernel itself makes through [`guarded`].
    pub const fn internal(name: &'static str, budget: u32) -> Self {
        Method {
            stub: guarded_stub as *const (),
            interface: Self::KERNEL,
            name,
            budget,
            frees: true,
        }
    }
}

/// Stack that must be left for a call. A callee that needs no more than this less what the kernel's
/// own functions need cannot be made to overflow by a caller who has used up the rest; and every
/// kernel object makes do with it.
pub const CALL_RESERVE: usize = 32 * 1024;

/// Defines a function that is called where something is not as usual. It preserves all registers,
/// so that the way around it, which every call goes, need not keep anything in places that survive
/// it.
macro_rules! off_the_path {
    ($(#[$attribute:meta])* pub unsafe fn $name:ident($($argument:tt)*) -> $result:ty $body:block) => {
        $(#[$attribute])*
        #[cfg(target_os = "none")]
        #[cold]
        #[inline(never)]
        pub unsafe extern "rust-cold" fn $name($($argument)*) -> $result $body

        $(#[$attribute])*
        #[cfg(not(target_os = "none"))]
        #[cold]
        #[inline(never)]
        pub unsafe fn $name($($argument)*) -> $result $body
    };
}

/// Links `record` for a call into `block`. Returns whether the call may be made; if not, [`admit`]
/// must follow, which has the last word. [`leave`] ends it.
///
/// # Safety
/// `record` is valid for writes, in the caller's frame, until `leave`.
#[inline(always)]
pub unsafe fn enter(record: *mut Record, block: *const ControlBlock) -> bool {
    // Before anything is linked: if what follows runs into the guard page, the caller is to blame.
    if stack_is_low(record) {
        return false;
    }
    // SAFETY: see above; `block` is alive in memory as long as the proxy that names it.
    unsafe {
        (*record).previous = top();
        (*record).domain = block;
        (*record).state = 0;
        (*record).ticks = 0;
        (*record).failure = 0;
        #[cfg(test)]
        if crate::sync::is_broken(crate::sync::Broken::TestFirst) {
            let alive = (*block).alive.load(Ordering::Relaxed) == ALIVE;
            crate::sync::spin();
            set_top(record);
            return alive;
        }
        set_top(record);
        // A killer clears `alive` and then stops every processor; whoever published before that
        // stop is seen by it, whoever publishes after it sees `alive` cleared. So plain accesses
        // are enough.
        (*block).alive.load(Ordering::Relaxed) == ALIVE
    }
}

/// Whether too little stack is left below `record` for a call.
#[inline(always)]
fn stack_is_low(record: *const Record) -> bool {
    // Signed: in a Linux process there is some stack below the lowest that may be used.
    ((record as usize).wrapping_sub(stack_low()) as isize) < CALL_RESERVE as isize
}

/// How a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// As it should.
    Returned,
    /// The callee died meanwhile: its result counts for nothing, the caller gets an error.
    CalleeDied,
    /// The caller died meanwhile, and perhaps the callee as well: [`unwind_further`] must follow.
    CallerDied,
}

/// Unlinks `record`. Returns whether that is all; if not, [`outcome`] must follow.
///
/// # Safety
/// `record` is the top record, linked by [`enter`].
#[inline(always)]
pub unsafe fn leave(record: *mut Record) -> bool {
    // SAFETY: see above. Volatile, because another processor may have written it while the world
    // stood.
    unsafe {
        set_top((*record).previous);
        crate::sync::point();
        (&raw const (*record).state).read_volatile() == 0
    }
}

off_the_path! {
    /// Looks again at what [`enter`] said no to: why the call of `method` cannot be made, or
    /// nothing if it can, because it only has to be counted, or frees memory in a domain that is
    /// short of it. Also carries out a crash that was asked for.
    ///
    /// # Safety
    /// `enter` said no to just these. The record is linked afterwards if the call can be made,
    /// otherwise not.
    pub unsafe fn admit(
        record: *mut Record,
        block: *const ControlBlock,
        method: &'static Method,
    ) -> Option<RpcError> {
        if stack_is_low(record) {
            return Some(RpcError::StackLow);
        }
        // SAFETY: the record is linked and the block in memory, by the caller's duty.
        unsafe {
            let error = admit_linked(record, block, method)?;
            // Not linked any more. Who is refused for want of memory has the domain look for some,
            // now and then.
            let again = error == RpcError::NoMemory && crate::death::kill::restock(&*block);
            if !again || enter(record, block) {
                return (!again).then_some(error);
            }
            admit_linked(record, block, method)
        }
    }
}

/// Why the call of `record` cannot be made; the record is not linked any more then.
///
/// # Safety
/// As that of [`admit`], and enough stack is left.
unsafe fn admit_linked(
    record: *mut Record,
    block: *const ControlBlock,
    method: &Method,
) -> Option<RpcError> {
    // SAFETY: the record is linked and the block in memory, by the caller's duty.
    unsafe {
        let error = match (*block).admit(method.frees) {
            Ok(false) => return None,
            Ok(true) => {
                // One instruction, because the world may be stopped before or after it, and the
                // state changed.
                AtomicU32::from_ptr(&raw mut (*record).state).fetch_or(COUNTED, Ordering::Relaxed);
                return None;
            }
            Err(error) => error,
        };
        if !leave(record) && outcome(record) == Outcome::CallerDied {
            unwind_further(record);
        }
        if (*block).alive.load(Ordering::Relaxed) == CRASH_NEXT {
            crate::death::kill::crash_as_asked(&*block);
        }
        Some(error)
    }
}

off_the_path! {
    /// How the call of `record` has ended, which is not as usual. Ends its count if it was counted.
    ///
    /// # Safety
    /// [`leave`] has just said that there is more to do for `record`, whose frame still stands.
    pub unsafe fn outcome(record: *const Record) -> Outcome {
        // SAFETY: by the caller's duty. The callee's block is in memory: the caller, from whom the
        // thread has not returned, holds the proxy that names it.
        unsafe {
            let state = (&raw const (*record).state).read_volatile();
            if state & COUNTED != 0 {
                (*(*record).domain).give_call();
            }
            if state & CALLEE_DEAD != 0 {
                crate::death::kill::has_left();
            }
            match state {
                _ if state & CALLER_DEAD != 0 => Outcome::CallerDied,
                _ if state & CALLEE_DEAD != 0 => Outcome::CalleeDied,
                _ => Outcome::Returned,
            }
        }
    }
}

/// Notes that something could not cross in the call of the top record.
pub(crate) fn note_failure(error: RpcError) {
    let top = top();
    // SAFETY: values cross only while the record of their call is linked; only its own thread uses
    // the field.
    unsafe { (*top).failure = u32::from(error.number()) };
}

/// Forgets what [`note_failure`] noted in the top record.
pub(crate) fn clear_failure() {
    // SAFETY: as in `note_failure`.
    unsafe { (*top()).failure = 0 };
}

/// What [`note_failure`] noted in `record`, if anything.
///
/// # Safety
/// `record` is linked.
pub unsafe fn failure(record: *const Record) -> Option<RpcError> {
    // SAFETY: see above. Only `note_failure` writes the field, and 0 is no error's number.
    RpcError::from_number(u64::from(unsafe { (*record).failure }))
}

/// Whether values of this type can hold handles, so that not all of one may be able to cross.
#[inline(always)]
pub const fn has_handles<T: Exchangeable>(_: &T) -> bool {
    T::HANDLES
}

/// Whether [`note_failure`] noted something in `record`.
///
/// # Safety
/// `record` is linked.
#[inline(always)]
pub unsafe fn has_failed(record: *const Record) -> bool {
    // SAFETY: see above.
    unsafe { (*record).failure != 0 }
}

off_the_path! {
    /// Ends a call in which a value could not be handed over: leaves `record`; what was noted in
    /// it.
    ///
    /// # Safety
    /// `record` is the top record, and what was to be handed over has been dropped.
    pub unsafe fn give_up(record: *mut Record) -> RpcError {
        // SAFETY: by the caller's duty.
        unsafe {
            let error = failure(record).unwrap_or(RpcError::Refused);
            if !leave(record) && outcome(record) == Outcome::CallerDied {
                unwind_further(record);
            }
            error
        }
    }
}

/// Goes on unwinding after `record` was left and its caller found dead.
///
/// # Safety
/// `record` was just unlinked by [`leave`] and its frame still stands.
#[cold]
#[inline(never)]
pub unsafe fn unwind_further(record: *mut Record) -> ! {
    // SAFETY: the caller is a dead domain, so it was entered through a record, which is now the
    // top.
    unsafe { resume((*record).previous) }
}

impl Record {
    /// The registers with which the thread leaves the callee through the error stub.
    pub fn landing(&self) -> Landing {
        // SAFETY: the trampoline wrote the method before the callee could run.
        let ip = unsafe { (*self.method).stub } as usize;
        let saved = [self.rbx, self.rbp, self.r12, self.r13, self.r14, self.r15];
        Landing {
            ip,
            sp: self.sp,
            rdi: self.rdi,
            saved,
        }
    }
}

/// Leaves the callee of `record`, the top record, through its error stub.
///
/// # Safety
/// The thread is inside the callee, or in kernel code on its behalf that owns nothing.
pub unsafe fn resume(record: *mut Record) -> ! {
    // SAFETY: the trampoline filled the record; the frames above `sp` are the callee's and dead,
    // the one at `sp` is the proxy's and stands. Clearing the direction flag is what every function
    // may expect.
    unsafe {
        asm!(
            "cld",
            "mov rbx, [rax + {rbx}]", "mov rbp, [rax + {rbp}]", "mov r12, [rax + {r12}]",
            "mov r13, [rax + {r13}]", "mov r14, [rax + {r14}]", "mov r15, [rax + {r15}]",
            "mov rdi, [rax + {rdi}]", "mov rsp, [rax + {sp}]", "mov rax, [rax + {method}]",
            "jmp [rax + {stub}]",
            in("rax") record,
            rbx = const offset_of!(Record, rbx), rbp = const offset_of!(Record, rbp),
            r12 = const offset_of!(Record, r12), r13 = const offset_of!(Record, r13),
            r14 = const offset_of!(Record, r14), r15 = const offset_of!(Record, r15),
            rdi = const offset_of!(Record, rdi), sp = const offset_of!(Record, sp),
            method = const offset_of!(Record, method), stub = const offset_of!(Method, stub),
            options(noreturn),
        )
    }
}

#[doc(hidden)]
pub mod offsets {
    //! Offsets in [`Record`](super::Record) for the trampolines of [`proxy!`](crate::proxy).
    use super::{Record, offset_of};
    pub const SP: usize = offset_of!(Record, sp);
    pub const RBX: usize = offset_of!(Record, rbx);
    pub const RBP: usize = offset_of!(Record, rbp);
    pub const R12: usize = offset_of!(Record, r12);
    pub const R13: usize = offset_of!(Record, r13);
    pub const R14: usize = offset_of!(Record, r14);
    pub const R15: usize = offset_of!(Record, r15);
    pub const RDI: usize = offset_of!(Record, rdi);
    pub const METHOD: usize = offset_of!(Record, method);
}

/// What was passed to [`guarded_as`] with the mark that `record` has.
///
/// # Safety
/// The record is linked, and has a mark.
pub(crate) unsafe fn data_of(record: *const Record) -> *mut u8 {
    // SAFETY: by the caller's duty.
    unsafe { (*record).rdi as *mut u8 }
}

/// Calls `function(data)` inside the domain `block`, for the kernel itself: entry points, threads,
/// drops.
///
/// # Errors
/// [`RpcError::DomainCrashed`] if the domain was dead or died in the call, [`RpcError::StackLow`].
///
/// # Safety
/// `function` and `data` belong together and to that domain. If the domain dies in the call, the
/// caller still owns whatever `data` points to.
pub unsafe fn guarded(
    block: &ControlBlock,
    method: &'static Method,
    function: unsafe extern "C" fn(*mut u8),
    data: *mut u8,
) -> Result<(), RpcError> {
    // SAFETY: by the caller's duty.
    unsafe { guarded_as(0, block, method, function, data) }
}

/// As [`guarded`], with `mark` in the record's state while the call is under way.
///
/// # Errors
/// As [`guarded`].
///
/// # Safety
/// As for [`guarded`].
pub(crate) unsafe fn guarded_as(
    mark: u32,
    block: &ControlBlock,
    method: &'static Method,
    function: unsafe extern "C" fn(*mut u8),
    data: *mut u8,
) -> Result<(), RpcError> {
    let mut record = MaybeUninit::<Record>::uninit();
    let record = record.as_mut_ptr();
    // SAFETY: the record is in this frame. The kernel calls this, so that a dead caller is found
    // out later, when the kernel returns to it.
    unsafe {
        if !enter(record, block) {
            if stack_is_low(record) {
                return Err(RpcError::StackLow);
            }
            // A crash that was asked for is for the next call of a domain.
            if block.alive.load(Ordering::Relaxed) == crate::domain::DEAD {
                leave(record);
                return Err(RpcError::DomainCrashed);
            }
        }
        if mark != 0 {
            // What a mark says of the data holds from here on. One instruction, as in `admit`.
            (*record).rdi = data as usize;
            AtomicU32::from_ptr(&raw mut (*record).state).fetch_or(mark, Ordering::Relaxed);
        }
        let crashed = guarded_trampoline(data, function, method);
        if !leave(record) {
            outcome(record);
        }
        if crashed == 0 {
            Ok(())
        } else {
            Err(RpcError::DomainCrashed)
        }
    }
}

/// Fills the top record and calls `function(data)`; 0. Through the stub it returns 1.
///
/// # Safety
/// The top record was linked by [`enter`] for this call, and that of [`guarded`] holds.
#[unsafe(naked)]
unsafe extern "C" fn guarded_trampoline(
    data: *mut u8,
    function: unsafe extern "C" fn(*mut u8),
    method: *const Method,
) -> u64 {
    naked_asm!(
        "mov rax, gs:[{top}]",
        "mov [rax + {sp}], rsp", "mov [rax + {rbx}], rbx", "mov [rax + {rbp}], rbp",
        "mov [rax + {r12}], r12", "mov [rax + {r13}], r13", "mov [rax + {r14}], r14",
        "mov [rax + {r15}], r15", "mov [rax + {rdi}], rdi", "mov [rax + {method}], rdx",
        "sub rsp, 8",
        "call rsi",
        "add rsp, 8",
        "xor eax, eax",
        "ret",
        top = const abi::words::TOP, sp = const offsets::SP, rbx = const offsets::RBX, rbp = const offsets::RBP,
        r12 = const offsets::R12, r13 = const offsets::R13, r14 = const offsets::R14,
        r15 = const offsets::R15, rdi = const offsets::RDI, method = const offsets::METHOD,
    )
}

/// The error stub of [`guarded_trampoline`].
///
/// # Safety
/// Only [`resume`] and landings lead here, with the registers that the trampoline saved.
#[unsafe(naked)]
unsafe extern "C" fn guarded_stub() {
    naked_asm!("mov eax, 1", "ret")
}

/// Writes a proxy for one interface: a type over [`Proxy`](crate::Proxy) that implements the
/// interface's trait.
///
/// `idlc` emits the invocations; see `kernel/proxies`. For each method: `moved` names the arguments
/// that own something, `budget` is [`Method::budget`], `frees` is [`Method::frees`].
#[macro_export]
macro_rules! proxy {
    ($proxy:ident : $interface:path, $label:literal {
        $( fn $method:ident(&self $(, $argument:ident : $type:ty)* $(,)?) -> $result:ty ; moved [$($moved:ident),*] ; budget $budget:expr ; frees $frees:expr ; )*
    }) => {
        /// The proxy of the interface; generated.
        #[repr(transparent)]
        pub struct $proxy($crate::Proxy);

        impl $proxy {
            /// The method table of this proxy as a trait object.
            pub fn vtable() -> *const () {
                let none: *const dyn $interface = core::ptr::null::<$proxy>();
                // SAFETY: a trait object pointer is two words, data and method table (see
                // `abi::handle`).
                let raw: $crate::abi::handle::RawHandle = unsafe { core::mem::transmute(none) };
                raw.vtable
            }
        }

        impl $interface for $proxy {
            $(
                #[allow(unused_mut)]
                #[inline(never)]
                fn $method(&self $(, mut $argument: $type)*) -> $result {
                    fn stub() -> $result {
                        Err($crate::abi::RpcError::DomainCrashed.into())
                    }
                    static METHOD: $crate::Method =
                        $crate::Method::new(stub as *const (), $label, stringify!($method), $budget, $frees);
                    fn forward(proxy: &$crate::Proxy $(, $argument: $type)*) -> $result {
                        // SAFETY: the proxy was made for an object of this interface.
                        let object: &dyn $interface = unsafe { core::mem::transmute(proxy.inner()) };
                        object.$method($($argument),*)
                    }
                    #[unsafe(naked)]
                    unsafe extern "C" fn trampoline() {
                        core::arch::naked_asm!(
                            "mov rax, gs:[{top}]",
                            "lea r11, [rip + {info}]",
                            "mov [rax + {sp}], rsp", "mov [rax + {rbx}], rbx", "mov [rax + {rbp}], rbp",
                            "mov [rax + {r12}], r12", "mov [rax + {r13}], r13", "mov [rax + {r14}], r14",
                            "mov [rax + {r15}], r15", "mov [rax + {rdi}], rdi", "mov [rax + {method}], r11",
                            "jmp {forward}",
                            info = sym METHOD, forward = sym forward, top = const $crate::abi::words::TOP,
                            sp = const $crate::call::offsets::SP, rbx = const $crate::call::offsets::RBX,
                            rbp = const $crate::call::offsets::RBP, r12 = const $crate::call::offsets::R12,
                            r13 = const $crate::call::offsets::R13, r14 = const $crate::call::offsets::R14,
                            r15 = const $crate::call::offsets::R15, rdi = const $crate::call::offsets::RDI,
                            method = const $crate::call::offsets::METHOD,
                        )
                    }
                    let proxy = &self.0;
                    let block = proxy.domain();
                    let mut record = core::mem::MaybeUninit::<$crate::Record>::uninit();
                    let record = record.as_mut_ptr();
                    // SAFETY: the record is in this frame, linked by `enter` and unlinked on every
                    // way out. The trampoline has the signature that it is given here: it only
                    // saves registers and jumps to `forward`. What is transferred really crosses,
                    // in the direction given.
                    unsafe {
                        if !$crate::call::enter(record, block)
                            && let Some(error) = $crate::call::admit(record, block, &METHOD)
                        {
                            return Err(error.into());
                        }
                        (*block).count_call();
                        // What crosses has one owner at every moment, and whoever that is stays in
                        // memory as long as the record is linked: so everything is handed over, or
                        // dropped if that cannot be done, between `enter` and `leave`.
                        $(
                            let inward = $crate::call::handle::inward(record, block);
                            let _ = $crate::abi::Exchangeable::transfer(&mut $moved, &inward);
                        )*
                        if (false $(|| $crate::call::has_handles(&$moved))*)
                            && $crate::call::has_failed(record)
                        {
                            $( drop($moved); )*
                            return Err($crate::call::give_up(record).into());
                        }
                        let call: unsafe fn(&$crate::Proxy $(, $type)*) -> $result =
                            core::mem::transmute(trampoline as *const ());
                        // Taken apart and put together again, so that no part is read wider than
                        // the callee has written it: the processor cannot forward such a store to
                        // the load.
                        let result = match call(proxy $(, $argument)*) {
                            Ok(mut value) => {
                                let outward = $crate::call::handle::outward(record);
                                let _ = $crate::abi::Exchangeable::transfer(&mut value, &outward);
                                Ok(value)
                            }
                            Err(mut error) => {
                                let outward = $crate::call::handle::outward(record);
                                let _ = $crate::abi::Exchangeable::transfer(&mut error, &outward);
                                Err(error)
                            }
                        };
                        if $crate::call::has_handles(&result) && $crate::call::has_failed(record) {
                            drop(result);
                            return Err($crate::call::give_up(record).into());
                        }
                        if $crate::call::leave(record) {
                            return result;
                        }
                        match $crate::call::outcome(record) {
                            $crate::call::Outcome::Returned => result,
                            $crate::call::Outcome::CalleeDied => {
                                drop(result);
                                Err($crate::abi::RpcError::DomainCrashed.into())
                            }
                            $crate::call::Outcome::CallerDied => {
                                drop(result);
                                $crate::call::unwind_further(record)
                            }
                        }
                    }
                }
            )*
        }
    };
}
