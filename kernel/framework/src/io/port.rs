//! Device registers in I/O space.

use core::ops::RangeInclusive;

use super::claim::{Claim, Claims};
use super::{IoError, check_access};

pub use crate::arch::ports::PortWord;

use crate::arch::{ports, serial};
use crate::log;

static CLAIMS: Claims = Claims::new();

/// A range of ports. Dropping it lets others acquire it.
pub struct IoPort {
    first: u16,
    count: u16,
    _claim: Claim,
}

impl IoPort {
    /// Acquires `count` ports from `first` on. Acquiring those of the console silences the kernel
    /// there until they are dropped.
    pub fn acquire(first: u16, count: u16) -> Result<Self, IoError> {
        let last = first
            .checked_add(count.wrapping_sub(1))
            .ok_or(IoError::BadRange)?;
        if count == 0 {
            return Err(IoError::BadRange);
        }
        if sensitive(first, last) {
            return Err(IoError::Sensitive);
        }
        let claim = CLAIMS.claim(first.into(), count.into())?;
        let port = Self {
            first,
            count,
            _claim: claim,
        };
        if port.is_console() {
            log::use_console(false);
        }
        Ok(port)
    }

    /// Whether the range has a port of the console.
    fn is_console(&self) -> bool {
        overlap(
            self.first,
            self.first + (self.count - 1),
            &serial::CONSOLE.ports(),
        )
    }

    /// The first port.
    pub fn first(&self) -> u16 {
        self.first
    }

    /// The number of ports.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Reads the port at `offset` from the first as 8, 16 or 32 bits.
    pub fn read<T: PortWord>(&self, offset: u16) -> Result<T, IoError> {
        check_access::<T>(offset.into(), self.count.into())?;
        // SAFETY: the range is claimed, not sensitive, and the access is inside it.
        Ok(unsafe { T::input(self.first + offset) })
    }

    /// Writes the port at `offset` from the first as 8, 16 or 32 bits.
    pub fn write<T: PortWord>(&self, offset: u16, value: T) -> Result<(), IoError> {
        check_access::<T>(offset.into(), self.count.into())?;
        // SAFETY: as in `read`.
        unsafe { value.output(self.first + offset) };
        Ok(())
    }
}

impl Drop for IoPort {
    fn drop(&mut self) {
        if self.is_console() {
            log::init_console();
        }
    }
}

/// Whether any of the ports could break the kernel, or is the log's.
fn sensitive(first: u16, last: u16) -> bool {
    ports::could_break(first, last)
        || log::has_mirror() && overlap(first, last, &serial::MIRROR.ports())
}

/// Whether one of the ports is in `range`.
fn overlap(first: u16, last: u16, range: &RangeInclusive<u16>) -> bool {
    first <= *range.end() && *range.start() <= last
}
