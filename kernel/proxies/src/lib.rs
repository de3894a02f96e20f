//! The proxies: what stands between caller and callee at every call from one domain to another.
//!
//! `idlc` writes one invocation of `isolation::proxy!` for each interface, and [`REGISTRY`], in
//! which the kernel finds the proxy of an interface by its number when a handle crosses. What a
//! proxy does is in that macro, by hand; `cargo run -p idlc -- emit proxies` shows what is
//! generated.
// A method has as many arguments as its interface says.
#![allow(clippy::too_many_arguments)]
// What is traced of an argument is a `u64`, also where the argument is one.
#![allow(clippy::unnecessary_cast)]
#![no_std]

include!(concat!(env!("OUT_DIR"), "/proxies.rs"));
