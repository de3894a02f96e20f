//! Threads of programs: registers that the personality does not keep itself, and running them.

use super::Space;
use abi::user::{UserEvent, UserRegisters};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use framework::user;
use interfaces::{Handle, RpcError, RpcResult, SpaceError, UserThread};
use isolation::call::handle::kernel_object_at;
use isolation::call::thread::caller;
use isolation::domain::account::{Charge, Kind};
use isolation::platform::platform;

/// A thread of a program.
struct Program {
    space: Arc<Space>,
    thread: user::UserThread,
    kicked: AtomicBool,
    _charge: Option<Charge>,
}

struct ThreadObject(Arc<Program>);

/// A new thread in a space. The caller pays.
pub(super) fn create(space: &Arc<Space>) -> Result<Handle<dyn UserThread>, SpaceError> {
    // It lies in the kernel's heap.
    if !platform().can_note() {
        return Err(RpcError::NoMemory.into());
    }
    let bytes = size_of::<Program>() + user::UserThread::bytes();
    let charge = match caller() {
        Some(block) => Some(Charge::new(block, Kind::Notes, bytes).ok_or(RpcError::NoMemory)?),
        None => None,
    };
    let program = Program {
        space: space.clone(),
        thread: user::UserThread::new(),
        kicked: AtomicBool::new(false),
        _charge: charge,
    };
    Ok(Handle::<dyn UserThread>::new(ThreadObject(Arc::new(
        program,
    )))?)
}

impl UserThread for ThreadObject {
    fn kick(&self) -> RpcResult<()> {
        self.0.kicked.store(true, Ordering::SeqCst);
        self.0.thread.interrupt();
        Ok(())
    }
}

/// Runs the program of the user thread behind a handle until it traps.
///
/// # Safety
/// `handle` is the data pointer of a handle that is live until this returns: whoever calls has
/// borrowed it, and what a domain owns is taken back only when no thread is in it any more.
#[inline]
pub unsafe fn run(handle: *const u8, registers: &mut UserRegisters) -> UserEvent {
    // SAFETY: by the caller's duty.
    match unsafe { kernel_object_at(handle) } {
        Some(ThreadObject(program)) => program.run(registers),
        None => UserEvent::Refused,
    }
}

/// Copies out the vector registers of the program of the user thread behind a handle; how many
/// bytes they take, or 0.
///
/// # Safety
/// As of [`run`].
pub unsafe fn vector(handle: *const u8, bytes: &mut [u8]) -> usize {
    // SAFETY: by the caller's duty.
    let thread = unsafe { kernel_object_at(handle) };
    thread.map_or(0, |ThreadObject(program)| program.thread.vector(bytes))
}

/// Sets them; whether they can be so.
///
/// # Safety
/// As of [`run`].
pub unsafe fn set_vector(handle: *const u8, bytes: &[u8]) -> bool {
    // SAFETY: by the caller's duty.
    let thread = unsafe { kernel_object_at(handle) };
    thread.is_some_and(|ThreadObject(program)| program.thread.set_vector(bytes))
}

impl Program {
    #[inline]
    fn run(&self, registers: &mut UserRegisters) -> UserEvent {
        let may = || !self.kicked.load(Ordering::Acquire);
        match self.thread.run(&self.space.vm, registers, may) {
            UserEvent::Interrupted if self.kicked.swap(false, Ordering::SeqCst) => {
                UserEvent::Kicked
            }
            event => event,
        }
    }
}
