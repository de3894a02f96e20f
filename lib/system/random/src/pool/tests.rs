//! Pools with sources that are good, broken, or silent.

extern crate std;
use super::*;
use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

/// A source that a test can foretell: SplitMix64.
fn words(mut state: u64, count: usize) -> Vec<u64> {
    let next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    core::iter::repeat_with(next).take(count).collect()
}

fn good(words: &[u64], extra: &[u64]) -> Seed {
    Seed::new(words, extra).unwrap_or_else(|why| panic!("{why:?}"))
}

fn seed(number: u64) -> Seed {
    good(&words(number, SEED_WORDS), &[])
}

fn ready(number: u64) -> Pool {
    let mut pool = Pool::new();
    pool.seed(&seed(number), 0);
    pool
}

fn take(pool: &mut Pool, salt: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    pool.stream(salt, length)
        .expect("it is ready")
        .fill(&mut bytes);
    bytes
}

fn why(words: &[u64]) -> Option<Unfit> {
    Seed::new(words, &[]).err()
}

#[test]
fn without_a_seed_there_is_nothing() {
    let mut pool = Pool::new();
    assert!(!pool.is_ready() && pool.wants_seed(0));
    assert!(pool.stream(1, 16).is_none());
    assert!(pool.stream(2, 0).is_none());
}

#[test]
fn broken_sources_make_no_seed() {
    let stuck = Some(Unfit::Failed(Failure::Stuck));
    // The answer of processors whose instruction fails and says that it did not.
    assert_eq!(why(&[u64::MAX; SEED_WORDS]), stuck);
    assert_eq!(why(&[0; SEED_WORDS]), stuck);
    // Good at first, and then stuck.
    let mut late = words(1, SEED_WORDS);
    late[SEED_WORDS - 5..].fill(u64::MAX);
    assert_eq!(why(&late), stuck);
    // Six of eight bytes are zero, but never many in a row.
    let biased: Vec<u64> = words(1, SEED_WORDS)
        .into_iter()
        .map(|word| word & 0x00ff_0000_00ff_0000)
        .collect();
    assert_eq!(why(&biased), Some(Unfit::Failed(Failure::Biased)));
}

#[test]
fn a_source_that_ends_early_makes_no_seed() {
    assert_eq!(why(&[]), Some(Unfit::Short));
    assert_eq!(why(&words(1, SEED_WORDS - 1)), Some(Unfit::Short));
    assert_eq!(why(&words(1, SEED_WORDS)), None);
    let broken = Some(Unfit::Failed(Failure::Stuck));
    assert_eq!(why(&[u64::MAX; 4]), broken, "a short one is tested, too");
}

#[test]
fn every_bit_of_a_seed_counts() {
    let mut known = BTreeSet::new();
    known.insert(take(&mut ready(1), 0, 32));
    for at in 0..SEED_WORDS {
        for bit in [0, 31, 32, 63] {
            let mut altered = words(1, SEED_WORDS);
            altered[at] ^= 1 << bit;
            let mut pool = Pool::new();
            pool.seed(&good(&altered, &[]), 0);
            assert!(known.insert(take(&mut pool, 0, 32)), "word {at}, bit {bit}");
        }
    }
    let mut pool = Pool::new();
    let with = good(&words(1, SEED_WORDS), &[5]);
    pool.seed(&with, 0);
    assert!(known.insert(take(&mut pool, 0, 32)), "the extra word");
}

#[test]
fn equal_pools_part_by_their_salts() {
    let (mut one, mut other) = (ready(1), ready(1));
    assert_eq!(take(&mut one, 7, 64), take(&mut other, 7, 64));
    assert_ne!(take(&mut one, 8, 64), take(&mut other, 9, 64));
    assert_ne!(
        take(&mut one, 10, 64),
        take(&mut other, 10, 64),
        "and stay so"
    );
}

#[test]
fn a_seed_changes_what_follows() {
    let (mut one, mut other) = (ready(1), ready(1));
    other.seed(&seed(2), 0);
    assert_ne!(take(&mut one, 0, 64), take(&mut other, 0, 64));
    let mut third = ready(3);
    third.seed(&seed(2), 0);
    assert_ne!(
        take(&mut third, 0, 64),
        take(&mut other, 0, 64),
        "the old key counts"
    );
}

#[test]
fn a_seed_is_wanted_at_each_bound() {
    let mut pool = ready(1);
    assert!(!pool.wants_seed(RESEED_NS - 1));
    assert!(pool.wants_seed(RESEED_NS));
    pool.seed(&seed(2), RESEED_NS);
    assert!(!pool.wants_seed(RESEED_NS));
    assert!(!pool.wants_seed(0), "a clock that goes back is not old age");
    let most = usize::try_from(RESEED_BYTES).expect("64 bits");
    pool.stream(0, most - 1);
    assert!(!pool.wants_seed(RESEED_NS));
    pool.stream(0, 1);
    assert!(pool.wants_seed(RESEED_NS));
    assert!(pool.stream(0, usize::MAX).is_some(), "it goes on meanwhile");
    pool.seed(&seed(3), RESEED_NS);
    assert!(!pool.wants_seed(RESEED_NS));
}

#[test]
fn all_lengths_are_filled_and_nothing_comes_twice() {
    let mut pool = ready(1);
    for length in [0, 1, 15, 63, 64, 65, 4095, 4096, 4097, 70_000] {
        let bytes = take(&mut pool, 0, length);
        let zeros = bytes.iter().filter(|byte| **byte == 0).count();
        assert!(zeros <= length / 64 + 3, "{zeros} zeros of {length}");
    }
    let mut known = BTreeSet::new();
    for _ in 0..8 {
        for part in take(&mut pool, 0, 70_000).chunks_exact(16) {
            assert!(known.insert(part.to_vec()));
        }
    }
}

#[test]
fn what_is_left_of_a_pool_makes_nothing_that_was_given() {
    let mut pool = ready(1);
    let given = take(&mut pool, 0, 64);
    let left: Vec<u8> = pool
        .key
        .0
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    assert!(
        !given
            .windows(8)
            .any(|part| left.windows(8).any(|other| part == other))
    );
    let again = bytes(&block(&pool.key.0, 0, [0; 3]));
    assert_ne!(again[..], given[..]);
}
