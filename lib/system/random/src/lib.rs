//! Random numbers for a kernel: [`Seed`]s of a noise source that passed the health tests, and a
//! [`Pool`] that makes as many bytes of them as are wanted.
//!
//! Nothing here asks a clock or a device: words of the source and times are arguments. The order is
//!
//! 1. [`Seed::new`] tests 1,024 bytes of a source and condenses them, without any lock;
//! 2. [`Pool::seed`] mixes the seed in, and the pool is ready;
//! 3. [`Pool::stream`] takes a key out of the pool, in the time of two blocks, for a [`Stream`]
//!    that fills any length without the pool.
//!
//! A pool that never had a seed gives no stream. The key of a pool is replaced before any byte that
//! depends on it is given out (fast key erasure), so who reads a pool learns nothing of the past.
#![no_std]
#![forbid(unsafe_code)]

mod chacha;
pub mod health;
mod pool;

pub use pool::{Pool, RESEED_BYTES, RESEED_NS, SEED_WORDS, Seed, Stream, Unfit};
