//! The ledger, which outlives this domain.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use interfaces::{Handle, RVec, VmoView};
use queuework::ledger;

/// The ledger, behind its view.
pub struct Ledger(pub Handle<dyn VmoView>);

impl Ledger {
    /// Numbers from byte `offset` on.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn read(&self, offset: u64, count: usize) -> Result<Vec<u64>, String> {
        let room = RVec::filled(0u8, 8 * count).map_err(|error| format!("{error}"))?;
        let read = self.0.read(offset, room);
        let (bytes, _) = read.map_err(|error| format!("the ledger: {error:?}"))?;
        let words = bytes.chunks_exact(8);
        Ok(words
            .map(|word| {
                word.iter()
                    .rev()
                    .fold(0, |all, byte| all << 8 | u64::from(*byte))
            })
            .collect())
    }

    /// One number.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn number(&self, offset: u64) -> Result<u64, String> {
        let numbers = self.read(offset, 1)?;
        numbers.first().copied().ok_or_else(|| "no number".into())
    }

    /// Writes `count` times a number.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write(&self, offset: u64, number: u64, count: u64) -> Result<(), String> {
        let bytes: Vec<u8> = (0..count).flat_map(|_| number.to_le_bytes()).collect();
        let bytes = RVec::from_slice(&bytes).map_err(|error| format!("{error}"))?;
        let written = self.0.write(offset, &bytes);
        written
            .map(drop)
            .map_err(|error| format!("the ledger: {error:?}"))
    }

    /// A generation that nobody has used; one of a group is odd.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn generation(&self, of_group: bool) -> Result<u64, String> {
        let next = self.number(ledger::NEXT)?;
        self.write(ledger::NEXT, next + 1, 1)?;
        Ok(2 * next + u64::from(of_group))
    }

    /// Counts one more.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn count(&self, offset: u64, more: u64) -> Result<u64, String> {
        let sum = self.number(offset)? + more;
        self.write(offset, sum, 1)?;
        Ok(sum)
    }
}
