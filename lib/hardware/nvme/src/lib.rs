//! NVM Express for drivers, as far as it is pure logic.
//!
//! Read chapters 3 (registers), 4 (queues, commands, PRP) and 5 (admin commands) of the
//! specification "NVM Express Base 1.4" first; its section numbers stand at the lines that obey
//! them. What the 2.0 family has split into several documents is the same here. Nothing here
//! touches a machine: memory that a controller shares comes in as [`queue::Memory`], its registers
//! as [`registers::Registers`], so that all of it runs on the host against controllers that lie.
//!
//! - [`registers`]: what the controller can do, reset, start, doorbells;
//! - [`command`]: submission queue entries;
//! - [`status`]: how a command ended;
//! - [`queue`]: a pair of a submission and a completion queue;
//! - [`prp`]: where the bytes of a command are;
//! - [`identify`], [`smart`]: data structures that the controller writes;
//! - [`admin`]: the admin queue, and what is done with it.
//!
//! A controller is not trusted: whatever it writes is checked before it is used, and everything
//! that the driver needs to know of its own commands is kept where the controller cannot write.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod admin;
pub mod command;
pub mod identify;
pub mod prp;
pub mod queue;
pub mod registers;
#[cfg(test)]
mod simulated;
pub mod smart;
pub mod status;

/// Bytes of a memory page as the controller is told (CC.MPS is 0), and of the unit of its limits.
pub const PAGE: usize = 4096;

/// A little-endian number of `N` bytes, 16 at most, at `offset` of `bytes`; what lies outside is
/// zeros.
fn number<const N: usize>(bytes: &[u8], offset: usize) -> u128 {
    let field = bytes.get(offset..offset + N).unwrap_or(&[]);
    let value = field.iter().rev();
    value.fold(0, |value, byte| value << 8 | u128::from(*byte))
}
