//! Ring 3: address spaces ([`VmSpace`]), registers ([`UserContext`]) and running until a trap
//! ([`UserMode`]).
//!
//! User programs see untyped frames only, so nothing they write can break a kernel invariant. The
//! kernel reaches their memory through the direct map, never through user mappings (SMAP).

mod context;
mod mode;
mod space;

pub(crate) use mode::save_frame;

pub use context::{Registers, UserContext};
pub use mode::{UserEvent, UserMode};
pub use space::{UserProt, VmError, VmSpace};

/// User addresses are below this.
pub const USER_END: usize = 0x0000_7fff_ffff_f000;
