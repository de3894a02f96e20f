//! Who has which range: a list in which no two ranges overlap. Tested on the host.

use alloc::vec::Vec;

use super::IoError;
use crate::spin::IrqLock;

/// The ranges in use, as (first, last) pairs.
pub(super) struct Claims(IrqLock<Vec<(u64, u64)>>);

impl Claims {
    /// No range is in use.
    pub const fn new() -> Self {
        Self(IrqLock::new(Vec::new()))
    }

    /// Claims `bytes` addresses from `first` on.
    pub fn claim(&'static self, first: u64, bytes: u64) -> Result<Claim, IoError> {
        if bytes == 0 {
            return Err(IoError::BadRange);
        }
        let last = first.checked_add(bytes - 1).ok_or(IoError::BadRange)?;
        let mut ranges = self.0.lock();
        if ranges
            .iter()
            .any(|range| range.0 <= last && first <= range.1)
        {
            return Err(IoError::Taken);
        }
        ranges.try_reserve(1).map_err(|_| IoError::NoMemory)?;
        ranges.push((first, last));
        Ok(Claim {
            claims: self,
            first,
        })
    }
}

/// A range in use; dropping it frees the range.
pub(super) struct Claim {
    claims: &'static Claims,
    first: u64,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.0.lock().retain(|range| range.0 != self.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_claims_are_refused_until_dropped() {
        static CLAIMS: Claims = Claims::new();
        let first = CLAIMS.claim(100, 10).ok().unwrap();
        for (start, bytes) in [(100, 10), (95, 6), (109, 1), (0, 1000)] {
            assert_eq!(CLAIMS.claim(start, bytes).err(), Some(IoError::Taken));
        }
        let second = CLAIMS.claim(110, 10).ok().unwrap();
        drop(first);
        assert!(CLAIMS.claim(100, 10).is_ok());
        assert!(CLAIMS.claim(110, 1).is_err());
        drop(second);
    }

    #[test]
    fn impossible_ranges_are_refused() {
        static CLAIMS: Claims = Claims::new();
        assert_eq!(CLAIMS.claim(5, 0).err(), Some(IoError::BadRange));
        assert_eq!(CLAIMS.claim(u64::MAX, 2).err(), Some(IoError::BadRange));
        assert!(CLAIMS.claim(u64::MAX, 1).is_ok());
    }
}
