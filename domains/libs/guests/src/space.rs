//! An address space as the memory of a Linux program.
//!
//! [`Space`] is one in which there are pages of zeros alone. Who maps files makes a
//! [`Memory`] of its own of the functions here.

use domain_rt::user;
use interfaces::{AddressSpace, Handle, Protection, RpcError, SpaceError};
use linux::errno::{EFAULT, EINVAL, ENOMEM, Error};
use linux::memory::{EXECUTE, Memory, PAGE, READ, WRITE};

/// What a program sees of an error.
pub fn error(error: SpaceError) -> Error {
    match error {
        SpaceError::Rpc(RpcError::NoMemory) => ENOMEM,
        SpaceError::NotMapped | SpaceError::Object(_) => EFAULT,
        _ => EINVAL,
    }
}

/// What may be done with pages, from the bits of `mprotect`.
pub fn protection(bits: u64) -> Protection {
    Protection {
        read: bits & READ != 0,
        write: bits & WRITE != 0,
        execute: bits & EXECUTE != 0,
    }
}

/// Goes through a range in as many calls as it takes.
fn all(
    at: u64,
    bytes: u64,
    step: impl Fn(u64, u64) -> Result<u64, SpaceError>,
) -> Result<(), Error> {
    let (mut done, count) = (0, bytes.div_ceil(PAGE));
    while done < count {
        done += match step(at + done * PAGE, count - done).map_err(error)? {
            0 => return Err(EINVAL),
            more => more,
        };
    }
    Ok(())
}

/// As [`Memory::map_zero`].
///
/// # Errors
/// Likewise.
pub fn map_zero(
    space: &Handle<dyn AddressSpace>,
    at: u64,
    bytes: u64,
    bits: u64,
) -> Result<(), Error> {
    let pages = bytes.div_ceil(PAGE);
    space.map_zero(at, pages, protection(bits)).map_err(error)
}

/// As [`Memory::unmap`].
///
/// # Errors
/// Likewise.
pub fn unmap(space: &Handle<dyn AddressSpace>, at: u64, bytes: u64) -> Result<(), Error> {
    all(at, bytes, |at, count| space.unmap(at, count))
}

/// As [`Memory::protect`].
///
/// # Errors
/// Likewise.
pub fn protect(
    space: &Handle<dyn AddressSpace>,
    at: u64,
    bytes: u64,
    bits: u64,
) -> Result<(), Error> {
    let to = protection(bits);
    all(at, bytes, |at, count| space.protect(at, count, to))
}

/// Gives back pages that are the program's own, and leaves what is mapped.
///
/// # Errors
/// `EINVAL`: addresses that no program has.
pub fn discard(space: &Handle<dyn AddressSpace>, at: u64, bytes: u64) -> Result<(), Error> {
    all(at, bytes, |at, count| space.discard(at, count))
}

/// A space with pages of zeros.
pub struct Space(pub Handle<dyn AddressSpace>);

impl Memory for Space {
    fn peek(&self, at: u64, bytes: &mut [u8]) -> usize {
        user::read(&self.0, at, bytes)
    }

    fn poke(&self, at: u64, bytes: &[u8]) -> usize {
        user::write(&self.0, at, bytes)
    }

    fn compare_exchange(&self, at: u64, old: u32, new: u32) -> Option<u32> {
        user::compare_exchange(&self.0, at, old, new)
    }

    fn touch(&self, at: u64, write: bool) -> Result<(), Error> {
        self.0.touch(at, write).map_err(error)
    }

    fn map_zero(&self, at: u64, bytes: u64, bits: u64) -> Result<(), Error> {
        map_zero(&self.0, at, bytes, bits)
    }

    fn unmap(&self, at: u64, bytes: u64) -> Result<(), Error> {
        unmap(&self.0, at, bytes)
    }

    fn protect(&self, at: u64, bytes: u64, bits: u64) -> Result<(), Error> {
        protect(&self.0, at, bytes, bits)
    }
}
