//! Decimal fractions as exact integers, for `seq` and `sleep`.

use core::fmt;

/// The most digits behind the point.
const MOST_PLACES: u32 = 18;

/// A decimal fraction: `digits` divided by ten to the power of `places`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// All digits, as one number.
    pub digits: i128,
    /// How many of them stand behind the point.
    pub places: u32,
}

impl Decimal {
    /// Reads `[-+]digits[.digits]`. `None` if it is not that, or too long.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let mut number = Decimal {
            digits: 0,
            places: 0,
        };
        let (mut behind_point, mut any) = (false, false);
        for &byte in rest {
            match byte {
                b'.' if !behind_point => behind_point = true,
                b'0'..=b'9' => {
                    any = true;
                    let digit = i128::from(byte - b'0');
                    number.digits = number.digits.checked_mul(10)?.checked_add(digit)?;
                    number.places += u32::from(behind_point);
                }
                _ => return None,
            }
        }
        let fits = number.places <= MOST_PLACES && number.digits < i128::from(u64::MAX) * 1000;
        if negative {
            number.digits = -number.digits;
        }
        (any && fits).then_some(number)
    }

    /// The same number with `places` (not fewer than it has) digits behind the point.
    pub fn with_places(self, places: u32) -> Self {
        let more = places.saturating_sub(self.places);
        let digits = self.digits.saturating_mul(10_i128.saturating_pow(more));
        Decimal {
            digits,
            places: self.places + more,
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10_u128.pow(self.places.min(MOST_PLACES));
        let sign = if self.digits < 0 { "-" } else { "" };
        let digits = self.digits.unsigned_abs();
        let width = self.places as usize;
        match width {
            0 => write!(f, "{sign}{digits}"),
            _ => write!(f, "{sign}{}.{:0width$}", digits / unit, digits % unit),
        }
    }
}

/// The duration that `text` (seconds with a fraction, or with a unit `s`, `m`, `h`, `d`) names, in
/// nanoseconds. `None` if it names none or is negative.
pub fn duration(text: &[u8]) -> Option<u64> {
    let (number, seconds) = match text {
        [number @ .., b's'] => (number, 1),
        [number @ .., b'm'] => (number, 60),
        [number @ .., b'h'] => (number, 3600),
        [number @ .., b'd'] => (number, 86_400),
        _ => (text, 1),
    };
    let number = Decimal::parse(number)?;
    let scaled = u128::try_from(number.digits)
        .ok()?
        .checked_mul(seconds * 1_000_000_000)?;
    u64::try_from(scaled / 10_u128.pow(number.places)).ok()
}

/// The numbers of `seq first step last`.
pub struct Sequence {
    next: Decimal,
    step: i128,
    last: i128,
}

impl Sequence {
    /// From `first` to `last` in steps of `step`, all shown with the same number of places. `None`
    /// if the step is zero.
    pub fn new(first: Decimal, step: Decimal, last: Decimal) -> Option<Self> {
        let places = first.places.max(step.places);
        // The last may have more places than are shown: compare in its own, by rounding towards the
        // start.
        let all = places.max(last.places);
        let scale = 10_i128.pow(all - places);
        let last = last.with_places(all).digits;
        let last = if step.digits > 0 {
            last.div_euclid(scale)
        } else {
            -((-last).div_euclid(scale))
        };
        let step = step.with_places(places).digits;
        (step != 0).then(|| Sequence {
            next: first.with_places(places),
            step,
            last,
        })
    }

    /// The widest number's length, for `seq -w`.
    pub fn width(&self) -> usize {
        let end = Decimal {
            digits: self.last,
            places: self.next.places,
        };
        let length = |number: Decimal| alloc::format!("{number}").len();
        length(self.next).max(length(end))
    }
}

impl Iterator for Sequence {
    type Item = Decimal;

    fn next(&mut self) -> Option<Decimal> {
        let number = self.next;
        let past = match self.step > 0 {
            true => number.digits > self.last,
            false => number.digits < self.last,
        };
        if past {
            return None;
        }
        self.next.digits = number.digits.saturating_add(self.step);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    fn seq(first: &str, step: &str, last: &str) -> String {
        let parse = |text: &str| Decimal::parse(text.as_bytes()).unwrap();
        let numbers = Sequence::new(parse(first), parse(step), parse(last)).unwrap();
        numbers
            .map(|number| number.to_string())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn sequences() {
        assert_eq!(seq("1", "1", "3"), "1 2 3");
        assert_eq!(seq("1", "0.5", "2"), "1.0 1.5 2.0");
        assert_eq!(seq("3", "-1", "1"), "3 2 1");
        assert_eq!(seq("-0.1", "0.1", "0.1"), "-0.1 0.0 0.1");
        assert_eq!(seq("1", "1", "2.9"), "1 2");
        assert_eq!(seq("2", "-1", "-0.5"), "2 1 0");
    }

    #[test]
    fn sequences_of_none() {
        assert_eq!(seq("2", "1", "1"), "");
        assert_eq!(seq("1", "-1", "2"), "");
        let one = Decimal::parse(b"1").unwrap();
        assert!(Sequence::new(one, Decimal::parse(b"0.0").unwrap(), one).is_none());
    }

    #[test]
    fn durations() {
        assert_eq!(duration(b"1"), Some(1_000_000_000));
        assert_eq!(duration(b".25"), Some(250_000_000));
        assert_eq!(duration(b"1.5m"), Some(90_000_000_000));
        assert_eq!(duration(b"0"), Some(0));
    }

    #[test]
    fn what_is_no_number() {
        for text in [
            "",
            "-",
            ".",
            "1.2.3",
            "a",
            "1x",
            "--1",
            "99999999999999999999999999999999999999999",
            "1.0000000000000000000001",
        ] {
            assert_eq!(Decimal::parse(text.as_bytes()), None, "{text}");
        }
        for text in ["", "s", "-1", "1y", "99999999999999d"] {
            assert_eq!(duration(text.as_bytes()), None, "{text}");
        }
    }
}
