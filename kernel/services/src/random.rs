//! `Random`: random numbers for domains that were granted them.
//!
//! What is done with the noise stands in `lib/system/random`; here are the lock and the order. The
//! pool is locked, with interrupts off, only while a key is taken out or mixed in, a few blocks;
//! the source is asked and tested, and buffers are filled, without any lock.

pub use ::random::Unfit;
use ::random::{Pool, SEED_WORDS, Seed};
use core::sync::atomic::{AtomicBool, Ordering};
use interfaces::{RVec, Random, RandomError, RpcResult};
use isolation::lock::Lock;

/// The most bytes that one call fills.
pub const MOST_BYTES: usize = 65_536;
/// Between so many words the clock is read, whose jitter is mixed in and credited with nothing.
const WORDS_BETWEEN: usize = 16;

/// Where noise comes from.
pub trait Noise: Send + Sync + 'static {
    /// Puts words of the source into `words`, from the first on; how many. Fewer, if it has no more
    /// now or there is none. May be called by many at a time.
    fn words(&self, words: &mut [u64]) -> usize;
    /// The finest clock there is, for its jitter.
    fn jitter(&self) -> u64;
    /// Nanoseconds since boot.
    fn now(&self) -> u64;
    /// Told once, when the source fails its tests. It is not asked again.
    fn broken(&self, why: Unfit);
}

/// A pool that all can use.
pub struct Generator {
    pool: Lock<Pool>,
    is_broken: AtomicBool,
}

/// That of the kernel.
static GENERATOR: Generator = Generator::new();

impl Generator {
    const fn new() -> Self {
        Generator {
            pool: Lock::new(Pool::new()),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Has the pool seeded, if it wants that and the source has something; whether it is ready.
    fn prepare<N: Noise>(&self, noise: &N) -> bool {
        let wants = self.pool.lock().wants_seed(noise.now());
        if wants && !self.is_broken.load(Ordering::Relaxed) {
            match gather(noise) {
                Ok(seed) => self.pool.lock().seed(&seed, noise.now()),
                Err(Unfit::Short) => {}
                Err(why) => {
                    if !self.is_broken.swap(true, Ordering::Relaxed) {
                        noise.broken(why);
                    }
                }
            }
        }
        self.pool.lock().is_ready()
    }

    fn fill<N: Noise>(&self, noise: &N, buffer: &mut [u8]) -> Result<(), RandomError> {
        if buffer.len() > MOST_BYTES {
            return Err(RandomError::TooLong);
        }
        self.prepare(noise);
        let stream = self.pool.lock().stream(noise.jitter(), buffer.len());
        stream.ok_or(RandomError::NotReady)?.fill(buffer);
        Ok(())
    }
}

/// A tested seed of the source.
fn gather<N: Noise>(noise: &N) -> Result<Seed, Unfit> {
    let mut words = [0; SEED_WORDS];
    let mut times = [0; SEED_WORDS / WORDS_BETWEEN];
    let mut count = 0;
    for (some, time) in words.chunks_mut(WORDS_BETWEEN).zip(&mut times) {
        let got = noise.words(some);
        count += got;
        *time = noise.jitter();
        if got < some.len() {
            break;
        }
    }
    Seed::new(&words[..count], &times)
}

/// Random numbers of the machine's noise.
pub struct KernelRandom<N>(pub N);

impl<N: Noise> Random for KernelRandom<N> {
    fn is_ready(&self) -> RpcResult<bool> {
        Ok(GENERATOR.prepare(&self.0))
    }

    fn fill(&self, mut buffer: RVec<u8>) -> Result<RVec<u8>, RandomError> {
        GENERATOR.fill(&self.0, &mut buffer)?;
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests;
