//! Ring 3: address spaces ([`VmSpace`]), registers ([`UserContext`]) and running until a trap
//! ([`UserMode`]).
//!
//! User programs see untyped frames only, so nothing they write can break a kernel invariant. The
//! kernel reaches their memory through the direct map, never through user mappings (SMAP).

mod entry;
mod mode;
mod space;
mod table;

pub use crate::arch::types::UserEvent;
pub use crate::arch::user::{Registers, USER_END, UserContext};
pub use entry::{Mapped, Sharing, UserProt};
pub use mode::UserMode;
pub use space::{VmError, VmSpace};
#[cfg(feature = "selftest")]
pub(crate) use table::fail_from;
