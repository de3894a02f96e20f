//! What personalities share that run Linux programs in ring 3, on top of `lib/unix/linux`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`space`] | an address space of the kernel's as a program's memory |
//! | [`archive`] | the boot archive as a tree of files |
//! | [`signals`], [`handlers`] | what others tell a thread, and what a process does at signals |
//! | [`workers`] | threads that run programs' threads |
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod archive;
pub mod handlers;
pub mod signals;
pub mod space;
pub mod workers;
