//! What the gate of block queues writes to a disk, and how it knows what it must read there.
//!
//! Every sector that is written has a *stamp* over its whole length: its own number, and the
//! *generation* of the write, a number that is never used twice by whoever writes. What must be on
//! the disk stands in a [`ledger`] that outlives who writes: for each sector the generation that
//! was submitted last, which may be there, and that which was acknowledged last, which must be
//! there or a later one.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

/// Bytes of a sector.
pub const SECTOR: usize = 512;
/// Sectors that are written to, from the first of the disk on.
pub const REGION: u64 = 512;

/// Where things stand in the ledger, in bytes. Numbers have eight.
pub mod ledger {
    use super::REGION;

    /// The next generation.
    pub const NEXT: u64 = 0;
    /// How often somebody began to write.
    pub const LIVES: u64 = 8;
    /// Requests that were answered as they should.
    pub const ANSWERS: u64 = 16;
    /// Not 0: whoever writes is to come to an end.
    pub const STOP: u64 = 24;
    /// Not 0: something was wrong.
    pub const WRONG: u64 = 32;
    /// Not 0: it came to its end.
    pub const ENDED: u64 = 40;
    /// Generations that were submitted, by sector.
    pub const SUBMITTED: u64 = 4096;
    /// Generations that were acknowledged, by sector.
    pub const ACKNOWLEDGED: u64 = SUBMITTED + 8 * REGION;
    /// Its length in pages.
    pub const PAGES: u64 = (ACKNOWLEDGED + 8 * REGION).div_ceil(4096);
}

/// Why a sector is not as it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is no stamp, or parts of two.
    Torn,
    /// It is the stamp of another sector.
    OfSector(u64),
}

/// A word of a stamp.
fn word(sector: u64, generation: u64, index: usize) -> u64 {
    match index {
        _ if generation == 0 => 0,
        0 => sector,
        1 => generation,
        _ => (sector << 40 ^ generation ^ (index as u64) << 20)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(index as u32),
    }
}

/// Writes the stamp of a sector; generation 0 is a sector that was never written, all zeros.
pub fn stamp(sector: u64, generation: u64, bytes: &mut [u8]) {
    for (index, bytes) in bytes.chunks_exact_mut(8).take(SECTOR / 8).enumerate() {
        bytes.copy_from_slice(&word(sector, generation, index).to_le_bytes());
    }
}

/// The generation of the stamp of `sector`.
///
/// # Errors
/// See [`Wrong`].
pub fn generation(sector: u64, bytes: &[u8]) -> Result<u64, Wrong> {
    let words = || {
        let words = bytes.chunks_exact(8).take(SECTOR / 8);
        words.map(|bytes| {
            bytes
                .iter()
                .rev()
                .fold(0, |all, byte| all << 8 | u64::from(*byte))
        })
    };
    let (named, generation) = (words().next(), words().nth(1));
    let (Some(named), Some(generation)) = (named, generation) else {
        return Err(Wrong::Torn);
    };
    let whole = |sector| {
        let expected = (0..SECTOR / 8).map(move |index| word(sector, generation, index));
        words().eq(expected)
    };
    match whole(sector) {
        true => Ok(generation),
        false if whole(named) => Err(Wrong::OfSector(named)),
        false => Err(Wrong::Torn),
    }
}

/// Whether a generation may be found that was neither acknowledged after nor submitted before.
pub fn is_possible(found: u64, acknowledged: u64, submitted: u64) -> bool {
    found == acknowledged || (acknowledged < found && found <= submitted)
}

/// The sum over a region (FNV-1a over bytes), continued from `sum`; at first [`SUM`].
pub fn sum(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The sum over nothing.
pub const SUM: u64 = 0xcbf2_9ce4_8422_2325;

/// Random numbers (xorshift), the same for the same seed.
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(sector: u64, number: u64) -> [u8; SECTOR] {
        let mut bytes = [0xee; SECTOR];
        stamp(sector, number, &mut bytes);
        bytes
    }

    #[test]
    fn a_stamp_tells_its_generation() {
        for (sector, number) in [(0, 0), (0, 1), (511, 7), (3, u64::MAX)] {
            assert_eq!(generation(sector, &stamped(sector, number)), Ok(number));
        }
    }

    #[test]
    fn what_is_no_stamp_is_found() {
        assert_eq!(generation(3, &[0xee; SECTOR]), Err(Wrong::Torn));
        assert_eq!(generation(3, &stamped(4, 9)), Err(Wrong::OfSector(4)));
        for at in [0, 8, 16, 100, SECTOR - 1] {
            let mut bytes = stamped(3, 9);
            bytes[at] ^= 1;
            assert!(generation(3, &bytes).is_err(), "byte {at}");
        }
        let (mut mixed, other) = (stamped(3, 9), stamped(3, 8));
        mixed[256..].copy_from_slice(&other[256..]);
        assert_eq!(generation(3, &mixed), Err(Wrong::Torn));
        assert_eq!(generation(3, &[0; 8]), Err(Wrong::Torn));
    }

    #[test]
    fn only_what_was_not_overtaken_is_possible() {
        assert!(is_possible(4, 4, 4) && is_possible(4, 4, 9) && is_possible(9, 4, 9));
        assert!(!is_possible(3, 4, 9) && !is_possible(10, 4, 9) && !is_possible(9, 4, 4));
    }
}
