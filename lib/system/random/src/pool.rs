//! Seeds, the pool and its streams.
//!
//! The pool is one key. Two things happen to it, both by the block function F of ChaCha20:
//!
//! - *mixing in* 32 bytes: the key becomes the first half of F(key), XOR those bytes. What was
//!   unknown of either stays unknown, so input that an attacker chose does no harm.
//! - *taking out* a stream: the key becomes the first half of F(key), the stream's key the second.
//!
//! F cannot be turned back, and no key is used twice.

use crate::chacha::{BLOCK, KEY_WORDS, Key, block, bytes};
use crate::health::{Failure, Tests};
use core::hint::black_box;

/// Words of a source that make a seed: the 1,024 bytes that SP 800-90B, section 4.3, wants tested
/// before the first use. At one bit in each byte that is four times what a key holds.
pub const SEED_WORDS: usize = 128;
/// A seed is wanted again after so many nanoseconds: a minute.
pub const RESEED_NS: u64 = 60_000_000_000;
/// A seed is wanted again after so many bytes.
pub const RESEED_BYTES: u64 = 1 << 26;

/// Why words of a source make no seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// They are fewer than [`SEED_WORDS`]: the source has no more now.
    Short,
    /// The source is broken.
    Failed(Failure),
}

/// A key whose memory is overwritten when it is no longer needed. The compiler could leave a plain
/// store out; that it does not do so through `black_box` is its habit and no promise. Copies in
/// registers and on stacks are not overwritten.
struct Secret(Key);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0 = [0; KEY_WORDS];
        black_box(&mut self.0);
    }
}

impl Secret {
    const EMPTY: Self = Secret([0; KEY_WORDS]);

    /// Replaces the key; the other half of what came of it.
    fn step(&mut self) -> Secret {
        let made = block(&self.0, 0, [0; 3]);
        let mut other = Self::EMPTY;
        self.0.copy_from_slice(&made[..KEY_WORDS]);
        other.0.copy_from_slice(&made[KEY_WORDS..]);
        other
    }

    /// Mixes four words in, or fewer.
    fn mix(&mut self, input: &[u64]) {
        self.step();
        for (pair, word) in self.0.chunks_exact_mut(2).zip(input) {
            pair[0] ^= *word as u32;
            pair[1] ^= (*word >> 32) as u32;
        }
    }
}

/// What a tested source gave, condensed to a key.
pub struct Seed(Secret);

impl Seed {
    /// Tests `words` of a source and condenses them, with what nobody vouches for (`extra`: times
    /// and the like), which is credited with nothing.
    ///
    /// # Errors
    /// [`Unfit`]; nothing of the words should be used then.
    pub fn new(words: &[u64], extra: &[u64]) -> Result<Self, Unfit> {
        let mut tests = Tests::default();
        for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
            tests.look(byte).map_err(Unfit::Failed)?;
        }
        if words.len() < SEED_WORDS {
            return Err(Unfit::Short);
        }
        let mut key = Secret::EMPTY;
        for input in words.chunks(4).chain(extra.chunks(4)) {
            key.mix(input);
        }
        key.step();
        Ok(Seed(key))
    }
}

/// The state of the generator. It can be neither copied nor shown.
pub struct Pool {
    key: Secret,
    /// When the last seed came; `None`: none ever did.
    seeded: Option<u64>,
    /// Bytes that streams were taken for since then.
    given: u64,
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl Pool {
    /// A pool that is not ready.
    pub const fn new() -> Self {
        Pool {
            key: Secret::EMPTY,
            seeded: None,
            given: 0,
        }
    }

    /// Whether it ever had a seed.
    pub fn is_ready(&self) -> bool {
        self.seeded.is_some()
    }

    /// Whether a seed is wanted, at `now` in nanoseconds.
    pub fn wants_seed(&self, now: u64) -> bool {
        let is_old = |seeded| now.saturating_sub(seeded) >= RESEED_NS;
        self.seeded.is_none_or(is_old) || self.given >= RESEED_BYTES
    }

    /// Mixes a seed in: from now on the pool is ready, and unknown to whoever knew it before.
    pub fn seed(&mut self, seed: &Seed, now: u64) {
        self.key.step();
        for (word, other) in self.key.0.iter_mut().zip(seed.0.0) {
            *word ^= other;
        }
        (self.seeded, self.given) = (Some(now), 0);
    }

    /// A stream for `length` bytes; `None` while the pool is not ready. `salt` need not be secret:
    /// it lets two copies of a pool, as a machine that was started twice from one picture of its
    /// memory has, part where their salts differ.
    pub fn stream(&mut self, salt: u64, length: usize) -> Option<Stream> {
        self.seeded?;
        self.key.mix(&[salt]);
        self.given = self.given.saturating_add(length as u64);
        Some(Stream(self.key.step()))
    }
}

/// The right to fill one buffer with bytes that nobody else gets.
pub struct Stream(Secret);

impl Stream {
    /// Fills `buffer`, whatever was in it.
    pub fn fill(mut self, buffer: &mut [u8]) {
        // The key is replaced on the way, too, so the count of blocks stays far below its end.
        for part in buffer.chunks_mut(64 * BLOCK) {
            let key = self.0.step();
            for (counter, place) in (0..).zip(part.chunks_mut(BLOCK)) {
                let made = bytes(&block(&key.0, counter, [0; 3]));
                place.copy_from_slice(&made[..place.len()]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
