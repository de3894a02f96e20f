//! The interfaces between domains: everything that the `.idl` files define, as Rust.
//!
//! The files in this folder hold what domains have in common; each domain declares its entry in an
//! `.idl` file beside its own source. `idlc` checks all of them and generates this crate's content:
//! the types that cross, the traits that domains implement and call (through [`Handle`]), and in
//! [`domains`] one module for each entry. To read it as a manual, run
//! `cargo xtask idlc manual`.
//!
//! The only `unsafe` here is generated: it states that a type may cross, which `idlc` has proved.
#![no_std]
#![deny(unsafe_code)]

pub mod entry;
mod failure;

/// What `idlc` wrote.
#[allow(unsafe_code, clippy::all)]
mod generated {
    use crate::*;
    use abi::handle::ObjectOf;

    include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));
}

pub use abi::{
    AnyHandle, Exchangeable, Handle, Interface, Plain, RRef, RVec, RpcError, RpcResult, Text,
    Transfer, UserBuf, UserDirection, UserSegment,
};
pub use entry::EntryError;
pub use failure::Failure;
pub use generated::*;
