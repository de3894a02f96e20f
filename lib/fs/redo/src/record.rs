//! A change in the log that the next shadow finds, as bytes: a record.
//!
//! | words | what |
//! | --- | --- |
//! | 0 | its number, one more than that of the record before; never 0 |
//! | 1 | bytes of the change, and behind them the lane in the upper half |
//! | 2 | the ticket that it goes by in that lane |
//! | 3 | how many shadows died of it; the highest bit: see [`blamed`] |
//! | 4, 5, 6 | what came of the one before: what kind, as the file system has it, as clients do |
//! | 7 | the sum of all words but this one and word 3; its lowest bit: see [`Record::is_gap`] |
//! | from 8 on | the change, see [`intent`](crate::intent), and zeros |
//!
//! # Whose fault it was
//! A shadow notes what it is about to make before it makes it, so the one after it knows what it
//! died of. Of a change that is asked for the record itself says so: it is the last one. Of one
//! that is made again, after a death of the file system or of the shadow, a [`Mark`] does, which is
//! written before it is made, and cleared when all is made.

use crate::Outcome;
use crate::engine::Lane;

/// Bytes of a record in front of the change.
pub const FRONT: usize = 64;
/// Where in a record the deaths are.
pub const DEATHS_AT: u64 = 24;
/// In the word with the deaths: it is known whether the shadow that noted the change died of it.
const IS_SETTLED: u64 = 1 << 63;

/// What came of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Came {
    /// Nobody knows.
    #[default]
    Unknown,
    /// It was refused.
    Refused,
    /// Its outcome, as the file system has it and as clients do.
    Done([Outcome; 2]),
}

impl Came {
    fn words(self) -> [u64; 3] {
        match self {
            Came::Unknown => [0; 3],
            Came::Refused => [1, 0, 0],
            Came::Done([Outcome::Made(real), Outcome::Made(told)]) => [3, real, told],
            Came::Done([Outcome::Wrote(count), _]) => [4, count, 0],
            Came::Done(_) => [2, 0, 0],
        }
    }

    fn of([kind, first, second]: [u64; 3]) -> Self {
        match kind {
            1 => Came::Refused,
            2 => Came::Done([Outcome::Done; 2]),
            3 => Came::Done([Outcome::Made(first), Outcome::Made(second)]),
            4 => Came::Done([Outcome::Wrote(first); 2]),
            _ => Came::Unknown,
        }
    }
}

/// What stands in front of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub number: u64,
    /// Bytes of the change.
    pub bytes: u32,
    /// The change is too long to be here.
    pub is_gap: bool,
    /// Through which it was asked for.
    pub lane: Option<Lane>,
    /// What it goes by there.
    pub ticket: u64,
    /// The word with the deaths.
    pub deaths: u64,
    /// What came of the change before.
    pub before: Came,
}

impl Record {
    /// Bytes of the whole record, zeros up to a multiple of 8 included.
    pub fn length(&self) -> usize {
        FRONT + (self.bytes as usize).next_multiple_of(8)
    }

    /// Completes the record, whose change stands in its place already. Too few bytes are left as
    /// they are.
    pub fn seal(&self, record: &mut [u8]) {
        let lane = self.lane.map_or(0, |lane| u64::from(lane.get()) << 32);
        let [kind, real, told] = self.before.words();
        let words = [
            self.number,
            u64::from(self.bytes) | lane,
            self.ticket,
            self.deaths,
            kind,
            real,
            told,
            u64::from(self.is_gap),
        ];
        let Some(record) = record.get_mut(..self.length()) else {
            return;
        };
        record[..FRONT].copy_from_slice(words.map(u64::to_le_bytes).as_flattened());
        let sum = sum(record) | words[7];
        record[FRONT - 8..FRONT].copy_from_slice(&sum.to_le_bytes());
    }

    /// What stands in front, if it is that of record `number`. [`is_whole`](Self::is_whole) says
    /// whether it can be believed.
    pub fn read(front: &[u8; FRONT], number: u64) -> Option<Self> {
        let (words, _) = front.as_chunks::<8>();
        let word = |at: usize| u64::from_le_bytes(words[at]);
        (word(0) == number).then(|| Record {
            number,
            bytes: word(1) as u32,
            is_gap: word(7) & 1 != 0,
            lane: Lane::new((word(1) >> 32) as u32),
            ticket: word(2),
            deaths: word(3),
            before: Came::of([word(4), word(5), word(6)]),
        })
    }

    /// Whether these bytes, [`length`](Self::length) many, are the record as it was sealed.
    pub fn is_whole(record: &[u8]) -> bool {
        let noted = record.get(FRONT - 8..FRONT);
        let noted = noted.and_then(|word| word.try_into().ok());
        noted.is_some_and(|noted| u64::from_le_bytes(noted) | 1 == sum(record) | 1)
    }
}

/// A sum over whole words, but the two that are not in it; the lowest bit is 0. Each word is
/// multiplied in.
fn sum(record: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: &[u8; 8]| {
        let product = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        product ^ (product >> 29)
    };
    let (words, _) = record.as_chunks::<8>();
    let start = record.len() as u64;
    let [
        first,
        second,
        third,
        _,
        fifth,
        sixth,
        seventh,
        _,
        change @ ..,
    ] = words
    else {
        return 0;
    };
    let front = [first, second, third, fifth, sixth, seventh];
    let sum = front.into_iter().chain(change).fold(start, mix);
    sum.wrapping_mul(FACTOR) & !1
}

/// Says which record's change is being made again, and how many shadows will have died of it if
/// this one ends before it says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The record's number.
    pub number: u64,
    /// Shadows.
    pub deaths: u8,
}

impl Mark {
    /// As words; those of no mark are 0.
    pub fn words(mark: Option<Self>) -> [u64; 2] {
        mark.map_or([0; 2], |mark| [mark.number, mark.deaths.into()])
    }

    /// From words.
    pub fn of([number, deaths]: [u64; 2]) -> Option<Self> {
        let deaths = deaths.min(u8::MAX.into()) as u8;
        (number != 0).then_some(Mark { number, deaths })
    }
}

/// What the word with the deaths of record `number` is to be, which was left with the word `deaths`
/// and this mark. To be noted before the mark is cleared: it is the same when it is found again.
///
/// Of the last record it is not known whether its shadow died of it, unless that was making others
/// again: then what it had asked for had come to an end.
pub fn blamed(number: u64, deaths: u64, mark: Option<Mark>, is_last: bool) -> u64 {
    match mark {
        Some(mark) if mark.number == number => IS_SETTLED | u64::from(mark.deaths),
        Some(_) if is_last => IS_SETTLED | deaths,
        None if is_last && deaths & IS_SETTLED == 0 => IS_SETTLED | (deaths + 1),
        _ => deaths,
    }
}

/// How many shadows died of a change.
pub fn deaths(word: u64) -> u8 {
    (word & !IS_SETTLED).min(u8::MAX.into()) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    const RECORD: Record = Record {
        number: 7,
        bytes: 61,
        is_gap: false,
        lane: Lane::new(3),
        ticket: 1 << 40,
        deaths: 0,
        before: Came::Done([Outcome::Made(12), Outcome::Made(13)]),
    };

    fn sealed(record: &Record) -> Vec<u8> {
        let mut bytes = vec![0; record.length()];
        bytes[FRONT..FRONT + record.bytes as usize].fill(0xa5);
        record.seal(&mut bytes);
        bytes
    }

    fn read(bytes: &[u8], number: u64) -> Option<Record> {
        Record::read(bytes.first_chunk().unwrap(), number)
    }

    #[test]
    fn a_record_is_the_same_from_its_bytes() {
        for (bytes, is_gap, before) in [
            (61, false, RECORD.before),
            (8, false, Came::Refused),
            (64, false, Came::Done([Outcome::Done; 2])),
            (0, true, Came::Done([Outcome::Wrote(5); 2])),
            (0, true, Came::Unknown),
        ] {
            let record = Record {
                bytes,
                is_gap,
                before,
                ..RECORD
            };
            let bytes = sealed(&record);
            assert!(Record::is_whole(&bytes));
            assert_eq!(read(&bytes, 7), Some(record));
            assert_eq!(read(&bytes, 8), None);
        }
    }

    #[test]
    fn a_record_that_is_not_as_it_was_sealed_is_not_whole() {
        let bytes = sealed(&RECORD);
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            // Deaths are noted later, and whether it is a gap shows in its length.
            let is_free = (192..256).contains(&bit) || bit == 448;
            assert_eq!(Record::is_whole(&wrong), is_free, "bit {bit}");
        }
        // Of a write that broke off the rest is what was there before.
        for written in (0..bytes.len()).step_by(8) {
            for before in [0, 0x5a] {
                let mut torn = vec![before; bytes.len()];
                torn[..written].copy_from_slice(&bytes[..written]);
                assert_eq!(Record::is_whole(&torn), torn == bytes, "{written} {before}");
            }
        }
        for length in 0..bytes.len() {
            assert!(!Record::is_whole(&bytes[..length]), "{length}");
        }
    }

    #[test]
    fn deaths_are_counted_with_the_change_that_was_being_made() {
        let mark = |number, deaths| Some(Mark { number, deaths });
        let of = |number, word, mark, is_last| deaths(blamed(number, word, mark, is_last));
        // The last one is being asked for, and none else.
        assert_eq!(of(5, 0, None, false), 0);
        let last = blamed(6, 0, None, true);
        assert_eq!(deaths(last), 1);
        // Found again it is the same, and so after a death in another one.
        assert_eq!(blamed(6, last, None, true), last);
        assert_eq!(blamed(6, last, mark(5, 1), true), last);
        // One that died in another one had come to an end with the last.
        let settled = blamed(6, 0, mark(5, 1), true);
        assert_eq!(deaths(settled), 0);
        assert_eq!(of(6, settled, None, true), 0);
        assert_eq!(of(5, 0, mark(5, 1), false), 1);
        assert_eq!(of(6, last, mark(6, 2), true), 2);
        assert_eq!(Mark::of(Mark::words(mark(6, 2))), mark(6, 2));
        assert_eq!(Mark::of(Mark::words(None)), None);
    }
}
