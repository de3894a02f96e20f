//! Threads of programs: registers that the personality does not keep itself, and running them.

use super::Space;
use abi::user::{UserEvent, UserRegisters};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use framework::user::{self, Registers, UserContext, UserMode};
use interfaces::{Handle, RpcError, RpcResult, SpaceError};
use isolation::call::handle::kernel_object_at;
use isolation::call::thread::caller;
use isolation::domain::account::{Charge, Kind};
use isolation::lock::Lock;
use isolation::platform::platform;

/// A thread of a program.
struct UserThread {
    space: Arc<Space>,
    /// `None` while it runs.
    context: Lock<Option<Box<UserContext>>>,
    kicked: AtomicBool,
    _charge: Option<Charge>,
}

struct ThreadObject(Arc<UserThread>);

/// A new thread in a space. The caller pays.
pub(super) fn create(space: &Arc<Space>) -> Result<Handle<dyn interfaces::UserThread>, SpaceError> {
    // It lies in the kernel's heap.
    if !platform().can_note() {
        return Err(RpcError::NoMemory.into());
    }
    let bytes = size_of::<UserThread>() + size_of::<UserContext>();
    let charge = match caller() {
        Some(block) => Some(Charge::new(block, Kind::Notes, bytes).ok_or(RpcError::NoMemory)?),
        None => None,
    };
    let thread = UserThread {
        space: space.clone(),
        context: Lock::new(Some(Box::new(UserContext::new(0, 0)))),
        kicked: AtomicBool::new(false),
        _charge: charge,
    };
    Ok(Handle::<dyn interfaces::UserThread>::new(ThreadObject(
        Arc::new(thread),
    ))?)
}

impl interfaces::UserThread for ThreadObject {
    fn kick(&self) -> RpcResult<()> {
        self.0.kicked.store(true, Ordering::Release);
        Ok(())
    }
}

/// Runs the program of the user thread behind a handle until it traps.
///
/// # Safety
/// `handle` is the data pointer of a live handle.
pub unsafe fn run(handle: *const u8, registers: &mut UserRegisters) -> UserEvent {
    // SAFETY: by the caller's duty.
    let Some(ThreadObject(thread)) = (unsafe { kernel_object_at(handle) }) else {
        return UserEvent::Refused;
    };
    // The handle may go while the program runs.
    thread.clone().run(registers)
}

impl UserThread {
    fn run(&self, registers: &mut UserRegisters) -> UserEvent {
        let Some(mut context) = self.context.lock().take() else {
            return UserEvent::Refused;
        };
        let event = self.enter(&mut context, registers);
        *self.context.lock() = Some(context);
        event
    }

    fn enter(&self, context: &mut UserContext, registers: &mut UserRegisters) -> UserEvent {
        context.set_registers(&to_framework(registers));
        if !context.set_segment_bases(registers.fs_base, registers.gs_base) {
            return UserEvent::Refused;
        }
        if self.kicked.swap(false, Ordering::Acquire) {
            return UserEvent::Kicked;
        }
        let event = UserMode::new(context, &self.space.vm).run();
        to_personality(&context.registers(), registers);
        match event {
            user::UserEvent::Syscall => UserEvent::Syscall,
            user::UserEvent::PageFault {
                address,
                write,
                execute,
            } => UserEvent::PageFault {
                address,
                write,
                execute,
            },
            user::UserEvent::Exception { vector, error_code } => {
                UserEvent::Exception { vector, error_code }
            }
            user::UserEvent::Interrupt => UserEvent::Interrupted,
        }
    }
}

macro_rules! copy {
    ($from:expr => $kind:ident { $($name:ident),* } $(, ..$rest:expr)?) => {
        $kind { $($name: $from.$name,)* $(..$rest)? }
    };
}

fn to_framework(r: &UserRegisters) -> Registers {
    copy!(r => Registers {
        rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, rip, rflags
    })
}

fn to_personality(r: &Registers, to: &mut UserRegisters) {
    *to = copy!(r => UserRegisters {
        rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, rip, rflags
    }, ..*to);
}
