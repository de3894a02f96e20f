//! Ring 3: address spaces ([`VmSpace`]), and running a thread of a program until it traps
//! ([`UserThread`]; with all its registers, [`UserContext`] and [`UserMode`]).
//!
//! User programs see untyped frames only, so nothing they write can break a kernel invariant. The
//! kernel reaches their memory by copies alone: `copy` has SMAP lifted for one at a time, and else
//! the direct map is the way.

mod copy;
mod entry;
mod mode;
mod space;
mod table;
mod thread;

pub use crate::arch::user::{Registers, USER_END};
pub use abi::user::UserEvent;
pub use entry::{Mapped, Sharing, UserProt};
pub use mode::{UserContext, UserMode};
pub use space::{VmError, VmSpace};
#[cfg(feature = "selftest")]
pub(crate) use table::fail_from;
pub use thread::UserThread;
pub(crate) use thread::leave;
