//! Device registers as capabilities: memory ([`IoMem`]) and ports ([`IoPort`]).
//!
//! A range can be acquired once at a time and only if nothing in it could break the kernel: RAM,
//! interrupt controllers, timers and power registers are refused. Accesses are bounds-checked and
//! volatile; an error never touches the device.

mod claim;
#[cfg(target_os = "none")]
mod mem;
#[cfg(target_os = "none")]
mod port;

#[cfg(target_os = "none")]
pub use mem::IoMem;
#[cfg(target_os = "none")]
pub use port::{IoPort, PortWord};

/// Why a range was refused or an access not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoError {
    /// The range is empty, too large or beyond the address space.
    BadRange,
    /// The range contains something that only the kernel may touch.
    Sensitive,
    /// Somebody has a part of the range already.
    Taken,
    /// No memory for the mapping or for the record of it.
    NoMemory,
    /// The access passes the end of the range.
    OutOfRange,
    /// The access is not aligned to its size.
    Misaligned,
}

mod sealed {
    //! Keeps [`super::Word`] to the types below.
    pub trait Sealed {}
}

/// A number that registers are read and written as.
pub trait Word: sealed::Sealed + Copy {}

impl sealed::Sealed for u8 {}
impl sealed::Sealed for u16 {}
impl sealed::Sealed for u32 {}
impl sealed::Sealed for u64 {}
impl Word for u8 {}
impl Word for u16 {}
impl Word for u32 {}
impl Word for u64 {}

/// Checks an access of `T` at `offset` in `bytes` bytes.
pub(crate) fn check_access<T: Word>(offset: usize, bytes: usize) -> Result<(), IoError> {
    let size = core::mem::size_of::<T>();
    if offset.checked_add(size).is_none_or(|end| end > bytes) {
        return Err(IoError::OutOfRange);
    }
    if !offset.is_multiple_of(size) {
        return Err(IoError::Misaligned);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_checked() {
        assert_eq!(check_access::<u32>(4, 8), Ok(()));
        assert_eq!(check_access::<u32>(8, 8), Err(IoError::OutOfRange));
        assert_eq!(check_access::<u32>(5, 16), Err(IoError::Misaligned));
        assert_eq!(check_access::<u64>(usize::MAX, 8), Err(IoError::OutOfRange));
        assert_eq!(check_access::<u8>(0, 0), Err(IoError::OutOfRange));
    }
}
