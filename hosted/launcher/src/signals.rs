//! Signals: faults, ticks, and standing still.
//!
//! All handlers run on an alternate stack, so that a thread that has used up its own is caught.
//! They look first whether the thread runs core code at all. A fault or tick does more than look
//! only when the interrupted code is a domain's: such a thread holds no lock, neither of the core
//! nor of the C library.

use crate::launch::core;
use crate::threads::{current, park};
use hosted_core::{DIVIDE, EXCEPTION, INVALID_OPCODE, PAGE_FAULT, STACK_OVERFLOW};
use std::ptr::null_mut;

/// Bytes of a thread's alternate stack.
const ALTERNATE: usize = 64 * 1024;
/// Nanoseconds of processor time between two ticks.
const TICK: i64 = isolation::death::kill::TICK_MS as i64 * 1_000_000;

fn stop_signal() -> i32 {
    libc::SIGRTMIN() + 1
}

fn tick_signal() -> i32 {
    libc::SIGRTMIN() + 2
}

/// Ends the wait of a thread that waits for a word, and does nothing else.
fn wake_signal() -> i32 {
    libc::SIGRTMIN() + 3
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// Installs all handlers. Called once.
pub fn install() {
    for signal in [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
    ] {
        handle(signal, on_fault, 0);
    }
    // The program's own system calls do not notice that their thread was stopped.
    handle(stop_signal(), on_stop, libc::SA_RESTART);
    handle(tick_signal(), on_tick, libc::SA_RESTART);
    handle(wake_signal(), on_wake, 0);
}

fn handle(signal: i32, handler: Handler, more: i32) {
    // SAFETY: the action is filled in completely (a zero mask blocks nothing but the signal
    // itself).
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | more;
        if signal == libc::SIGTRAP {
            // A stepped thread stands still in this handler, and nowhere deeper.
            libc::sigaddset(&mut action.sa_mask, stop_signal());
            libc::sigaddset(&mut action.sa_mask, tick_signal());
        }
        libc::sigaction(signal, &action, null_mut());
    }
}

/// Lets stop and tick through on the running thread.
pub fn unblock() {
    // SAFETY: changes the mask of the running thread, whose handlers are installed.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, stop_signal());
        libc::sigaddset(&mut set, tick_signal());
        libc::sigaddset(&mut set, wake_signal());
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, null_mut());
    }
}

/// Sends the stop signal to thread `number` of this process.
pub fn send_stop(number: i32) {
    send(number, stop_signal());
}

/// Ends the wait of thread `number`, if it waits.
pub fn send_wake(number: i32) {
    send(number, wake_signal());
}

fn send(number: i32, signal: i32) {
    // SAFETY: signals change no memory by themselves; a thread that is gone is an error without
    // effect.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), number, signal) };
}

/// Has the running thread, which is `number`, interrupted whenever it has used up a tick of
/// processor time. Without timers left, loops in its domains are not found out.
pub fn start_ticks(number: i32) -> Option<libc::timer_t> {
    let interval = libc::timespec {
        tv_sec: 0,
        tv_nsec: TICK,
    };
    // SAFETY: event and timer are filled in completely.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = tick_signal();
        event.sigev_notify_thread_id = number;
        let mut timer = null_mut();
        if libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer) != 0 {
            return None;
        }
        let times = libc::itimerspec {
            it_interval: interval,
            it_value: interval,
        };
        libc::timer_settime(timer, 0, &times, null_mut());
        Some(timer)
    }
}

/// The address of the registers in a signal's context.
///
/// # Safety
/// `context` is what a handler was called with.
unsafe fn registers(context: *mut libc::c_void) -> usize {
    // SAFETY: by the caller's duty.
    unsafe { (&raw mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs) as usize }
}

/// Runs `body` and leaves the C library's error number as it was.
fn keeping_errno(body: impl FnOnce()) {
    // SAFETY: the running thread's own word.
    unsafe {
        let number = *libc::__errno_location();
        body();
        *libc::__errno_location() = number;
    }
}

extern "C" fn on_stop(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(thread) = current() else { return };
    // SAFETY: a handler's context.
    keeping_errno(|| park(thread, unsafe { registers(context) }));
}

extern "C" fn on_wake(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

extern "C" fn on_tick(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(thread) = current() else { return };
    // SAFETY: a handler's context, on a thread of the core.
    keeping_errno(|| unsafe { (core().tick)(registers(context), thread.used_since_tick()) });
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let mut is_handled = false;
    if let Some(thread) = current() {
        // SAFETY: the system passes both.
        let (address, registers) = unsafe { ((*info).si_addr() as usize, registers(context)) };
        // SAFETY: as above.
        let is_step = signal == libc::SIGTRAP && unsafe { (*info).si_code } == libc::TRAP_TRACE;
        // SAFETY: the registers of the handler's context.
        if is_step && unsafe { crate::step::stepped(registers) } {
            return;
        }
        let reason = match signal {
            libc::SIGFPE => DIVIDE,
            libc::SIGILL => INVALID_OPCODE,
            libc::SIGTRAP => EXCEPTION,
            _ if thread.is_stack_end(address) => STACK_OVERFLOW,
            _ => PAGE_FAULT,
        };
        // SAFETY: a handler's context, on a thread of the core.
        keeping_errno(|| is_handled = unsafe { (core().fault)(registers, reason, address) } != 0);
        if !is_handled {
            report(signal, address, registers);
        }
    }
    if !is_handled {
        // Back to what the system does by default, as soon as the handler returns.
        // SAFETY: a valid signal and action.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Says what is known of a fault that is no domain's.
fn report(signal: i32, address: usize, registers: usize) {
    // SAFETY: the registers of the handler's context.
    let registers = unsafe { &*(registers as *const hosted_core::Registers) };
    let (ip, sp) = (registers.rip as usize, registers.rsp);
    let place = ip.wrapping_sub(crate::launch::core_start());
    eprintln!(
        "signal {signal} outside of every domain: address {address:#x}, rip {ip:#x} (core + {place:#x}), rsp {sp:#x}"
    );
}

/// The stack that the handlers of one thread run on.
pub struct AlternateStack {
    memory: *mut libc::c_void,
    former: libc::stack_t,
}

impl AlternateStack {
    /// Gives the running thread one; `None` if there is no memory.
    pub fn new() -> Option<AlternateStack> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, which becomes the thread's alternate stack.
        unsafe {
            let memory = libc::mmap(null_mut(), ALTERNATE, rights, flags, -1, 0);
            if memory == libc::MAP_FAILED {
                return None;
            }
            let stack = libc::stack_t {
                ss_sp: memory,
                ss_flags: 0,
                ss_size: ALTERNATE,
            };
            let mut former: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(&stack, &mut former);
            Some(AlternateStack { memory, former })
        }
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        // SAFETY: the thread's former stack is still there: the standard library keeps it to the
        // thread's end.
        unsafe {
            libc::sigaltstack(&self.former, null_mut());
            libc::munmap(self.memory, ALTERNATE);
        }
    }
}
