//! What a machine may use of the rest of the framework. `cargo xtask check` sees that nothing in
//! the folder of a machine names anything else outside of [`crate::arch`].
//!
//! First what the machine calls because something happened, then what it needs for its work.

pub(super) use crate::boot::boot_main;
pub(super) use crate::fault::{halts, handle as fault};
pub(super) use crate::irq::count_unexpected;
pub(super) use crate::irq::line::handle as line_raised;
pub(super) use crate::smp::{arrive, request_arrived};
pub(super) use crate::task::exit_from_entry as thread_returned;
pub(super) use crate::time::timer_fired;
pub(super) use crate::trace::tell;

pub(super) use crate::acpi::platform as firmware;
pub(super) use crate::acpi::{Override, Polarity as OverridePolarity, Trigger as OverrideTrigger};
pub(super) use crate::boot::start_info::Boot;
pub(super) use crate::io::Word;
pub(super) use crate::kprintln;
pub(super) use crate::mem::kspace::{Cache, Window};
pub(super) use crate::mem::map::{Kind, MemoryMap, Range};
pub(super) use crate::mem::{NoMemory, PAGE_SIZE, alloc_stack, phys_to_virt};
pub(super) use crate::sync::{SpinLock, relax};
pub(super) use crate::time::now_ns;
pub(super) use acpi_tables::{GenericAddress, SPACE_MEMORY};
