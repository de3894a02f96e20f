//! The clock page: eight words from which whoever can read the processor's counter makes the time,
//! without a call.
//!
//! | word | what |
//! | --- | --- |
//! | 0 | the sequence: odd while the others are being written, and another one afterwards |
//! | 1 | [`COUNTER`], if the counter tells the time at all; [`STEADY`], if the processor promises that it runs at one rate, on all processors alike and whatever they do |
//! | 2 | the counter's value at the base |
//! | 3 | the multiplier: nanoseconds per count, times 2^shift |
//! | 4 | the shift, below 64 |
//! | 5 | nanoseconds since boot at the base |
//! | 6 | nanoseconds since 1970 at the base |
//! | 7 | 0 |
//!
//! All words have 64 bits, little endian. Where [`COUNTER`] is missing words 2 to 6 mean nothing,
//! and who wants the time has to ask for it.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

/// Words of the page that have a meaning.
pub const WORDS: usize = 8;
/// The counter tells the time.
pub const COUNTER: u64 = 1;
/// The processor promises that the counter runs at one rate on all processors.
pub const STEADY: u64 = 2;

const NS_PER_SECOND: u64 = 1_000_000_000;
/// How often a reader looks again before it gives up: a writer takes some instructions.
const LOOKS: usize = 1000;

/// How the time comes of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The counter at the base.
    pub base: u64,
    /// Nanoseconds per count, times 2^shift.
    pub multiplier: u64,
    /// Below 64.
    pub shift: u32,
    /// Nanoseconds since boot at the base.
    pub monotonic: u64,
    /// Nanoseconds since 1970 at the base.
    pub wall: u64,
    /// See [`STEADY`].
    pub is_steady: bool,
}

impl Clock {
    /// Nanoseconds from the base to where the counter is `counter`; 0 before the base, where a
    /// processor's counter may be that is a little behind.
    fn past(&self, counter: u64) -> u64 {
        let counts = counter.wrapping_sub(self.base);
        if counts > i64::MAX as u64 {
            return 0;
        }
        let product = u128::from(counts) * u128::from(self.multiplier);
        (product >> (self.shift % 64)) as u64
    }

    /// Nanoseconds since boot when the counter is `counter`.
    pub fn monotonic(&self, counter: u64) -> u64 {
        self.monotonic.wrapping_add(self.past(counter))
    }

    /// Seconds since 1970, and nanoseconds, when the counter is `counter`.
    pub fn wall(&self, counter: u64) -> (u64, u64) {
        let ns = self.wall.wrapping_add(self.past(counter));
        (ns / NS_PER_SECOND, ns % NS_PER_SECOND)
    }

    fn words(&self) -> [u64; WORDS - 1] {
        let steady = if self.is_steady { STEADY } else { 0 };
        let flags = COUNTER | steady;
        let shift = u64::from(self.shift);
        [
            flags,
            self.base,
            self.multiplier,
            shift,
            self.monotonic,
            self.wall,
            0,
        ]
    }
}

/// Has `put` write the words of a page that says `clock`, or without one that the counter is of no
/// use: each with its number, in this order, the sequence once before the others and once after
/// them. `sequence` is that of the page before, and 0 of a new one. Returns the page's sequence.
pub fn write(sequence: u64, clock: Option<&Clock>, mut put: impl FnMut(usize, u64)) -> u64 {
    let odd = sequence | 1;
    put(0, odd);
    let words = clock.map_or([0; WORDS - 1], Clock::words);
    for (index, word) in words.into_iter().enumerate() {
        put(index + 1, word);
    }
    let even = odd.wrapping_add(1);
    put(0, even);
    even
}

/// Why a page told no clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoClock {
    /// It says that the counter is of no use.
    NoCounter,
    /// It was being written at each look.
    Busy,
}

/// What a page says, of which `word` reads a word at a time, in the order in which it is asked.
///
/// # Errors
/// [`NoClock`].
pub fn read(mut word: impl FnMut(usize) -> u64) -> Result<Clock, NoClock> {
    for _ in 0..LOOKS {
        let sequence = word(0);
        let mut words = [0; WORDS];
        for (index, place) in words.iter_mut().enumerate().skip(1) {
            *place = word(index);
        }
        if sequence.is_multiple_of(2) && word(0) == sequence {
            return clock_of(&words).ok_or(NoClock::NoCounter);
        }
    }
    Err(NoClock::Busy)
}

/// The clock of a page's words; `None`: the counter is of no use.
fn clock_of(words: &[u64; WORDS]) -> Option<Clock> {
    let [_, flags, base, multiplier, shift, monotonic, wall, _] = *words;
    (flags & COUNTER != 0).then_some(Clock {
        base,
        multiplier,
        shift: (shift % 64) as u32,
        monotonic,
        wall,
        is_steady: flags & STEADY != 0,
    })
}
