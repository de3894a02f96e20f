//! Random numbers that are the same for the same seed (Marsaglia's xorshift64): enough for test
//! data.

use alloc::vec::Vec;

/// A source of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The source number `number` of `seed`.
    pub fn new(seed: u64, number: u64) -> Self {
        let mixed = (seed ^ number.rotate_left(32)).wrapping_add(1);
        let mut random = Random(mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // The first numbers of neighbouring seeds are alike.
        (0..8).for_each(|_| _ = random.draw());
        random
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.draw() >> 11) % limit.max(1)
    }

    /// One of `items`, if there is any.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len() as u64) as usize)
    }

    /// `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend(self.draw().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}
