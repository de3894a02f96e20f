//! A kernel in 100 lines: the framework alone, without domains. `docs/guide/write-a-kernel.md`
//! explains it. On the host the crate builds to an empty program, so that
//! workspace-wide commands work.

#![forbid(unsafe_code)]
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod kernel;

#[cfg(not(target_os = "none"))]
fn main() {}
