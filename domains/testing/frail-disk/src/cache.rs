//! Sectors that were read or written not long ago, each with a checksum.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// Bytes of a sector.
pub const SECTOR: usize = 512;
/// Sectors that are kept.
const MOST: usize = 128;

struct Entry {
    bytes: Box<[u8; SECTOR]>,
    sum: u64,
    used: u64,
}

/// The cache.
pub struct Cache {
    entries: BTreeMap<u64, Entry>,
    clock: u64,
}

/// A checksum (FNV-1a over words).
fn sum_of(bytes: &[u8; SECTOR]) -> u64 {
    let words = bytes.chunks_exact(8);
    words.fold(0xcbf2_9ce4_8422_2325, |sum, word| {
        let word = word.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        (sum ^ word).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Cache {
    /// An empty one.
    pub fn new() -> Self {
        Cache {
            entries: BTreeMap::new(),
            clock: 0,
        }
    }

    /// Fills `buffer` if all its sectors are here; whether they are.
    ///
    /// # Panics
    /// If a sector is not what it was when it was kept.
    pub fn read(&mut self, sector: u64, buffer: &mut [u8]) -> bool {
        self.clock += 1;
        for (sector, buffer) in (sector..).zip(buffer.chunks_exact_mut(SECTOR)) {
            let Some(entry) = self.entries.get_mut(&sector) else {
                return false;
            };
            assert_eq!(sum_of(&entry.bytes), entry.sum, "sector {sector} is broken");
            entry.used = self.clock;
            buffer.copy_from_slice(&entry.bytes[..]);
        }
        true
    }

    /// A write of `count` sectors begins.
    pub fn forget(&mut self, sector: u64, count: usize) {
        for sector in sector..sector + count as u64 {
            self.entries.remove(&sector);
        }
    }

    /// Keeps what was read or written.
    pub fn keep(&mut self, sector: u64, data: &[u8]) {
        self.clock += 1;
        for (sector, data) in (sector..).zip(data.chunks_exact(SECTOR)) {
            let mut bytes = Box::new([0; SECTOR]);
            bytes.copy_from_slice(data);
            let sum = sum_of(&bytes);
            let used = self.clock;
            self.entries.insert(sector, Entry { bytes, sum, used });
        }
        while self.entries.len() > MOST {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(sector, _)| *sector) else {
                return;
            };
            self.entries.remove(&oldest);
        }
    }
}
