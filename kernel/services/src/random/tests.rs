//! Generators whose source breaks, is silent, or comes late.

use super::*;
use core::sync::atomic::{AtomicU32, AtomicU64};

const GOOD: u32 = 0;
const SILENT: u32 = 1;
const STUCK: u32 = 2;
/// It has a few words, and then none.
const SHORT: u32 = 3;

#[derive(Default)]
struct Source {
    state: AtomicU32,
    asked: AtomicU64,
    told: AtomicU32,
    now: AtomicU64,
}

impl Noise for Source {
    fn words(&self, words: &mut [u64]) -> usize {
        let count = match self.state.load(Ordering::Relaxed) {
            SILENT => 0,
            SHORT => words.len() - 1,
            _ => words.len(),
        };
        for word in &mut words[..count] {
            let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
            *word = match self.state.load(Ordering::Relaxed) {
                STUCK => u64::MAX,
                _ => u64::from_le_bytes(core::array::from_fn(|at| {
                    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (7 * at)) as u8
                })),
            };
        }
        count
    }

    fn jitter(&self) -> u64 {
        0
    }

    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn broken(&self, _: Unfit) {
        self.told.fetch_add(1, Ordering::Relaxed);
    }
}

fn source(state: u32) -> Source {
    let source = Source::default();
    source.state.store(state, Ordering::Relaxed);
    source
}

fn is_ready(generator: &Generator, source: &Source) -> bool {
    let mut buffer = [0; 32];
    let filled = generator.fill(source, &mut buffer);
    assert!(filled.is_ok() || buffer == [0; 32], "bytes with an error");
    match filled {
        Ok(()) => true,
        Err(RandomError::NotReady) => false,
        Err(_) => panic!("another error"),
    }
}

#[test]
fn a_broken_source_gives_nothing_and_is_told_once() {
    let (generator, source) = (Generator::new(), source(STUCK));
    assert!(!is_ready(&generator, &source) && !is_ready(&generator, &source));
    assert_eq!(source.told.load(Ordering::Relaxed), 1);
    // It is not believed any more, whatever it says now.
    source.state.store(GOOD, Ordering::Relaxed);
    assert!(!is_ready(&generator, &source));
}

#[test]
fn a_silent_source_is_asked_again() {
    let (generator, source) = (Generator::new(), source(SILENT));
    assert!(!is_ready(&generator, &source));
    source.state.store(SHORT, Ordering::Relaxed);
    for _ in 0..20 {
        assert!(!is_ready(&generator, &source), "short ones do not add up");
    }
    source.state.store(GOOD, Ordering::Relaxed);
    assert!(is_ready(&generator, &source));
    assert_eq!(source.told.load(Ordering::Relaxed), 0);
}

#[test]
fn a_seeded_generator_outlives_its_source() {
    let (generator, source) = (Generator::new(), source(GOOD));
    assert!(is_ready(&generator, &source));
    let asked = source.asked.load(Ordering::Relaxed);
    assert!(is_ready(&generator, &source));
    assert_eq!(
        source.asked.load(Ordering::Relaxed),
        asked,
        "before its time"
    );
    source.now.store(::random::RESEED_NS, Ordering::Relaxed);
    assert!(is_ready(&generator, &source));
    assert!(source.asked.load(Ordering::Relaxed) > asked, "seeded anew");
    source.now.store(2 * ::random::RESEED_NS, Ordering::Relaxed);
    source.state.store(STUCK, Ordering::Relaxed);
    assert!(is_ready(&generator, &source) && is_ready(&generator, &source));
    assert_eq!(source.told.load(Ordering::Relaxed), 1);
}

#[test]
fn buffers_that_are_too_long_are_refused() {
    let (generator, source) = (Generator::new(), source(GOOD));
    let mut buffer = alloc::vec![0; MOST_BYTES + 1];
    let long = generator.fill(&source, &mut buffer);
    assert!(matches!(long, Err(RandomError::TooLong)));
    assert!(buffer.iter().all(|byte| *byte == 0));
    assert!(generator.fill(&source, &mut buffer[..MOST_BYTES]).is_ok());
    assert!(generator.fill(&source, &mut []).is_ok());
}
