//! Arithmetic at the ends of the numbers, and readers of a page that is being written.

extern crate std;

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::vec::Vec;

/// A counter of 2.5 GHz: 0.4 ns per count.
const CLOCK: Clock = Clock {
    base: 1 << 40,
    multiplier: (1 << 32) * 2 / 5,
    shift: 32,
    monotonic: 0,
    wall: 1_790_000_000 * NS_PER_SECOND,
    is_steady: true,
};

fn page(clock: Option<&Clock>) -> [u64; WORDS] {
    let mut words = [u64::MAX; WORDS];
    write(0, clock, |index, word| words[index] = word);
    words
}

#[test]
fn counts_become_nanoseconds() {
    let at = |counts: u64| CLOCK.monotonic(CLOCK.base + counts);
    assert_eq!((at(0), at(2), at(3)), (0, 0, 1));
    // A second, and a year of them: the multiplier is rounded down by less than a billionth.
    assert_eq!(at(2_500_000_000), 999_999_999);
    let year = 365 * 86_400;
    let short = year * NS_PER_SECOND - at(year * 2_500_000_000);
    assert!(short < year, "{short} ns short in a year");
    let (seconds, ns) = CLOCK.wall(CLOCK.base + 2_500_000_003);
    assert_eq!((seconds, ns), (1_790_000_001, 0));
}

#[test]
fn a_counter_that_is_behind_stands_at_the_base() {
    for behind in [1, 1000, CLOCK.base] {
        assert_eq!(CLOCK.monotonic(CLOCK.base - behind), 0);
        assert_eq!(CLOCK.wall(CLOCK.base - behind), (1_790_000_000, 0));
    }
    // Also where it wraps.
    let late = Clock {
        base: u64::MAX - 10,
        multiplier: 1 << 32,
        ..CLOCK
    };
    assert_eq!(late.monotonic(u64::MAX), 10);
    assert_eq!(late.monotonic(9), 20);
    assert_eq!(late.monotonic(u64::MAX - 11), 0);
}

#[test]
fn time_never_goes_back_whatever_the_page_says() {
    // What somebody makes up gives nonsense, and no panic.
    for multiplier in [0, 1, u64::MAX] {
        for shift in [0, 32, 63] {
            let clock = Clock {
                multiplier,
                shift,
                monotonic: u64::MAX,
                wall: u64::MAX,
                ..CLOCK
            };
            for counter in [0, 1 << 40, u64::MAX >> 1, u64::MAX] {
                let _ = clock.monotonic(counter);
                let (_, ns) = clock.wall(counter);
                assert!(ns < NS_PER_SECOND);
            }
        }
    }
    let mut before = 0;
    for counts in (0..50_000_000).step_by(997) {
        let now = CLOCK.monotonic(CLOCK.base + counts);
        assert!(now >= before, "{now} after {before}");
        before = now;
    }
}

#[test]
fn what_is_written_is_read() {
    let words = page(Some(&CLOCK));
    assert_eq!(words[0], 2);
    assert_eq!(read(|index| words[index]), Ok(CLOCK));
    let unsteady = Clock {
        is_steady: false,
        ..CLOCK
    };
    let words = page(Some(&unsteady));
    assert_eq!(read(|index| words[index]), Ok(unsteady));
    let none = page(None);
    assert_eq!(read(|index| none[index]), Err(NoClock::NoCounter));
    // A page of zeros was never written, and says so, too.
    assert_eq!(read(|_| 0), Err(NoClock::NoCounter));
    // A shift of whatever size does no harm.
    let mut wild = words;
    wild[4] = u64::MAX;
    assert_eq!(read(|index| wild[index]).map(|clock| clock.shift), Ok(63));
}

#[test]
fn a_writer_that_stops_in_the_middle_is_noticed() {
    let mut puts = Vec::new();
    write(0, Some(&CLOCK), |index, word| puts.push((index, word)));
    let mut words = page(None);
    for (index, word) in &puts[..puts.len() - 1] {
        words[*index] = *word;
        assert_eq!(read(|index| words[index]), Err(NoClock::Busy));
    }
    words[0] = puts[puts.len() - 1].1;
    assert_eq!(read(|index| words[index]), Ok(CLOCK));
}

/// Readers beside a writer get one clock or another, and no mix.
#[test]
fn readers_beside_a_writer_get_whole_clocks() {
    let words: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
    let ends = AtomicBool::new(false);
    let of = |round: u64| Clock {
        base: round,
        multiplier: round,
        shift: (round % 64) as u32,
        monotonic: round,
        wall: round,
        is_steady: round % 2 == 1,
    };
    let put = |index: usize, word| words[index].store(word, Ordering::SeqCst);
    write(0, Some(&of(0)), put);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ends.load(Ordering::SeqCst) {
                    match read(|index| words[index].load(Ordering::SeqCst)) {
                        Ok(clock) => assert_eq!(clock, of(clock.base), "a mix"),
                        Err(why) => assert_eq!(why, NoClock::Busy),
                    }
                }
            });
        }
        let mut sequence = 2;
        for round in 1..20_000 {
            sequence = write(sequence, Some(&of(round)), put);
        }
        assert_eq!(sequence, 2 * 20_000);
        ends.store(true, Ordering::SeqCst);
    });
}
