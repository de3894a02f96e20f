//! Programs in ring 3, for personalities.

pub use abi::user::{UserEvent, UserRegisters};

use abi::api::api;
use abi::{Handle, Interface};

/// Runs the program of a user thread with these registers until it traps; why, and then the
/// registers are as it has left them. Only the thread that is meant takes time for it: no budget of
/// a call counts what the program does.
///
/// The handle is one that [`AddressSpace::thread`](interfaces::AddressSpace::thread) gave; with any
/// other the answer is [`UserEvent::Refused`].
pub fn run<I: ?Sized + Interface>(thread: &Handle<I>, registers: &mut UserRegisters) -> UserEvent {
    let mut event = UserEvent::Refused;
    // SAFETY: the handle is live while it is borrowed, and both others are lent for the call.
    unsafe { (api().user_run)(thread.as_raw().data, registers, &raw mut event) };
    event
}
