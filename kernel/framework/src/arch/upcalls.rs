//! What a machine may use of the rest of the framework. `cargo xtask check` sees that nothing in
//! the folder of a machine names anything else outside of [`crate::arch`].

pub(super) use crate::boot::boot_stack_guard;
pub(super) use crate::fault::handle as fault;
pub(super) use crate::kprintln;
pub(super) use crate::mem::{NoMemory, alloc_stack};
pub(super) use crate::task::exit_from_entry as thread_returned;
