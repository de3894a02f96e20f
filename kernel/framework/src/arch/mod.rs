//! The processor: registers, traps, per-processor data. One submodule per architecture.

mod x86_64;

pub use x86_64::*;
