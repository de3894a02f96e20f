//! The vocabulary that the kernel and every domain share.
//!
//! Kernel and domain images are compiled apart and meet only through the types of this crate and
//! the interfaces that `idlc` generates on top of them. All of it is therefore part of the ABI
//! fingerprint: two images whose fingerprints differ never run together.
//!
//! - [`RRef`] and [`RVec`]: owned objects on the shared heap ([`shared`] has the layout of that
//!   heap);
//! - [`Handle`] and [`AnyHandle`]: owned references to interfaces;
//! - [`Exchangeable`]: what may cross from one domain to another, and [`Transfer`], how it does;
//! - [`RpcError`]: why a call did not come to its end;
//! - [`bounds`]: how much of everything an interface may have;
//! - [`api`]: the functions that the kernel offers to the runtime inside every domain, and the
//!   entry block;
//! - [`events`]: what the kernel notes while calls are traced;
//! - [`hex`]: numbers that the build passes;
//! - [`image`]: the header in front of every domain image;
//! - [`UserBuf`]: memory of a program, lent for the time of a call;
//! - [`words`]: the words of the running thread, behind the GS register.
//!
//! Everything that a domain's own (safe) code can reach here is safe to call. What only the
//! generated proxies and the kernel may use is an `unsafe fn`, which the build bans from domain
//! sources.
#![no_std]

extern crate alloc;

pub mod api;
pub mod bounds;
pub mod events;
pub mod exchange;
pub mod handle;
pub mod hex;
pub mod image;
mod numbered;
pub mod rpc;
pub mod rref;
pub mod shared;
pub mod stack;
pub mod text;
pub mod user;
mod userbuf;
pub mod words;

pub use exchange::{Exchangeable, Plain, Transfer};
pub use handle::{AnyHandle, Handle, Interface};
pub use rpc::{RpcError, RpcResult};
pub use rref::{RRef, RVec};
pub use text::Text;
pub use userbuf::{UserBuf, UserDirection, UserSegment};
