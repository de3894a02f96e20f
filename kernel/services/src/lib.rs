//! The kernel's own objects behind `abi/interfaces/system.idl`: loader, images, domains, monitor, memory.
//!
//! They are ordinary interface objects whose domain is the kernel, so that calls to them go through the same
//! proxies as all others. Everything here is safe code over `isolation`. The hosted platform uses it, too.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(feature = "audit")]
mod auditor;
mod loader;
mod memory;
mod monitor;

#[cfg(feature = "audit")]
pub use auditor::Auditor;
pub use loader::ImageLoader;
pub use memory::KernelMemory;
pub use monitor::{Control, KernelMonitor, Machine};

use interfaces::{CrashReason, DomainState};
use isolation::{Reason, State};

/// The interface's name for a state.
fn state_of(state: State) -> DomainState {
    match state {
        State::Starting => DomainState::Starting,
        State::Running => DomainState::Running,
        State::Dying => DomainState::Dying,
        State::Gone => DomainState::Gone,
    }
}

/// The interface's name for a reason.
fn reason_of(reason: Reason) -> CrashReason {
    match reason {
        Reason::None => CrashReason::None,
        Reason::Panic => CrashReason::Panic,
        Reason::PageFault => CrashReason::PageFault,
        Reason::StackOverflow => CrashReason::StackOverflow,
        Reason::DivideError => CrashReason::DivideError,
        Reason::InvalidOpcode => CrashReason::InvalidOpcode,
        Reason::Exception => CrashReason::Exception,
        Reason::Hang => CrashReason::Hang,
        Reason::Killed => CrashReason::Killed,
        Reason::Exited => CrashReason::Exited,
        Reason::OverBudget => CrashReason::OverBudget,
    }
}
