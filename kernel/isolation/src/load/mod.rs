//! From a signed image file to a running domain ([`loader`]; [`elf`] and [`verify`] are its parts),
//! and the functions that the kernel offers to the
//! runtime in it ([`entry`]).

pub mod elf;
pub mod entry;
pub mod loader;
pub mod verify;
