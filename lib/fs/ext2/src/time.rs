//! Times of inodes. A record of 128 bytes has whole seconds up to 2038; a larger one has the second
//! half of a time in a word of its own (ext4, "Inode Timestamps"): two more bits of the seconds,
//! and above them nanoseconds.

use crate::bytes::{put_u32, u16_at, u32_at};

/// Nanoseconds of a second.
const SECOND: u32 = 1_000_000_000;
/// Where the second half of the time of creation is, and its first half.
const CREATED: (usize, usize) = (144, 148);

/// A time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970, rounded down.
    pub seconds: i64,
    /// The rest, less than a second.
    pub nanoseconds: u32,
}

impl Time {
    /// A whole second.
    pub const fn at(seconds: i64) -> Self {
        Time {
            seconds,
            nanoseconds: 0,
        }
    }

    /// From nanoseconds since 1970.
    pub const fn from_nanoseconds(nanoseconds: u64) -> Self {
        Time {
            seconds: (nanoseconds / SECOND as u64) as i64,
            nanoseconds: (nanoseconds % SECOND as u64) as u32,
        }
    }

    /// Nanoseconds since 1970; 0 for a time before, and the most that there is for one too late.
    pub fn to_nanoseconds(self) -> u64 {
        match u64::try_from(self.seconds) {
            Ok(seconds) => seconds
                .saturating_mul(SECOND.into())
                .saturating_add(self.nanoseconds.into()),
            Err(_) => 0,
        }
    }

    /// Reads the time at `at`, with its second half at `extra` where the record has it. More
    /// nanoseconds than a second has are taken for the most that it has.
    #[inline]
    pub(crate) fn decode(raw: &[u8], at: usize, extra: usize) -> Self {
        let low = i64::from(u32_at(raw, at) as i32);
        if !has_extra(raw, extra) {
            return Time::at(low);
        }
        let more = u32_at(raw, extra);
        Time {
            seconds: low + (i64::from(more & 3) << 32),
            nanoseconds: (more >> 2).min(SECOND - 1),
        }
    }

    /// Stores the time. What the record has no room for is left out; a time beyond what it can say
    /// becomes the last or first one that it can.
    #[inline]
    pub(crate) fn encode(self, raw: &mut [u8], at: usize, extra: usize) {
        let first = i64::from(i32::MIN);
        if has_extra(raw, extra) {
            let seconds = self.seconds.clamp(first, first + (1 << 34) - 1);
            let low = seconds as i32;
            let epoch = ((seconds - i64::from(low)) >> 32) as u32;
            put_u32(raw, at, low as u32);
            put_u32(raw, extra, epoch | self.nanoseconds.min(SECOND - 1) << 2);
        } else {
            let near = self.seconds.clamp(first, i32::MAX.into());
            put_u32(raw, at, near as i32 as u32);
        }
    }

    /// Stores it as the time of creation, if the record has a place for that.
    pub(crate) fn encode_created(self, raw: &mut [u8]) {
        if has_extra(raw, CREATED.1) {
            self.encode(raw, CREATED.0, CREATED.1);
        }
    }
}

/// Whether a record has the second half of a time.
#[inline]
fn has_extra(raw: &[u8], extra: usize) -> bool {
    raw.len() > 128 && 128 + usize::from(u16_at(raw, 128)) >= extra + 4 && raw.len() >= extra + 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::put_u16;

    fn again(time: Time, raw: &mut [u8]) -> Time {
        time.encode(raw, 16, 136);
        Time::decode(raw, 16, 136)
    }

    #[test]
    fn a_large_record_has_nanoseconds_and_times_beyond_2038() {
        let mut raw = [0u8; 256];
        put_u16(&mut raw, 128, 32);
        for seconds in [0, -1, 1_700_000_000, 5_000_000_000, i64::from(i32::MAX) + 1] {
            for nanoseconds in [0, 1, 123_456_789, SECOND - 1] {
                let time = Time {
                    seconds,
                    nanoseconds,
                };
                assert_eq!(again(time, &mut raw), time);
            }
        }
    }

    #[test]
    fn a_time_out_of_reach_becomes_the_nearest() {
        let mut raw = [0u8; 256];
        put_u16(&mut raw, 128, 32);
        let last = i64::from(i32::MIN) + (1 << 34) - 1;
        assert_eq!(again(Time::at(i64::MAX), &mut raw), Time::at(last));
        assert_eq!(
            again(Time::at(i64::MIN), &mut raw),
            Time::at(i32::MIN.into())
        );
    }

    #[test]
    fn a_lying_extra_size_reads_nothing_outside() {
        let mut raw = [0u8; 256];
        put_u16(&mut raw, 128, u16::MAX);
        assert_eq!(Time::decode(&raw, 16, 136), Time::at(0));
        // As many nanoseconds as the field can say are more than a second.
        put_u32(&mut raw, 136, u32::MAX);
        assert_eq!(Time::decode(&raw, 16, 136).nanoseconds, SECOND - 1);
        let mut small = [0u8; 128];
        let late = Time::from_nanoseconds(5_000_000_000_123_456_789);
        assert_eq!(again(late, &mut small), Time::at(i32::MAX.into()));
        let mut short = [0u8; 256];
        put_u16(&mut short, 128, 4);
        let time = Time::from_nanoseconds(1_700_000_000_000_000_001);
        assert_eq!(again(time, &mut short), Time::at(1_700_000_000));
    }

    #[test]
    fn nanoseconds_there_and_back() {
        for nanoseconds in [0, 999_999_999, 1_000_000_000, u64::MAX] {
            let time = Time::from_nanoseconds(nanoseconds);
            assert_eq!(time.to_nanoseconds(), nanoseconds);
        }
        assert_eq!(Time::at(-1).to_nanoseconds(), 0);
        assert_eq!(Time::at(i64::MAX).to_nanoseconds(), u64::MAX);
    }
}
