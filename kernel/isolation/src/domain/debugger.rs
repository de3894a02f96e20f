//! Where a debugger learns that images come and go.
//!
//! Its script (`lab/gdb`) has a breakpoint here; whatever else it wants to know it reads from the
//! kernel's tables, by their names in the debug information. It finds the symbols of an image by
//! what stands in memory, so nothing has to be told of them.

use super::ControlBlock;
use core::hint::black_box;

/// What has happened to an image.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Change {
    /// It is in its place, and none of its code has run.
    Placed = 1,
    /// Its domain is gone, and it is about to be kept or unmapped.
    Left = 2,
    /// Its domain has died, and all that it had is still there.
    Died = 3,
}

/// Does nothing but be called, when the image of `block` has changed.
#[inline(never)]
pub(crate) extern "C" fn image_changes(change: Change, block: &ControlBlock) {
    // All of the block is meant: else the compiler passes the parts that are used.
    black_box((change, core::ptr::from_ref(block)));
}
