//! Calendar dates from seconds since 1970, in UTC.

use alloc::string::String;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A date and time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The year.
    pub year: u64,
    /// The month, from 0.
    pub month: usize,
    /// The day of the month, from 1.
    pub day: u64,
    /// The hour.
    pub hour: u64,
    /// The minute.
    pub minute: u64,
    /// The second.
    pub second: u64,
}

impl Date {
    /// The date `seconds` after the start of 1970.
    pub fn from_seconds(seconds: u64) -> Self {
        let mut days = seconds / 86_400;
        let mut year = 1970 + days / 146_097 * 400;
        days %= 146_097;
        while days >= year_length(year) {
            days -= year_length(year);
            year += 1;
        }
        let mut month = 0;
        while days >= month_length(year, month) {
            days -= month_length(year, month);
            month += 1;
        }
        let time = seconds % 86_400;
        let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
        Date {
            year,
            month,
            day: days + 1,
            hour,
            minute,
            second,
        }
    }

    /// As `ls -l` shows it when it is now `now`: with the time of day if it is less than half a
    /// year ago, otherwise with the year.
    pub fn listed(seconds: u64, now: u64) -> String {
        const HALF_YEAR: u64 = 31_556_952 / 2;
        let date = Date::from_seconds(seconds);
        let month = MONTHS[date.month];
        match seconds <= now && now - seconds < HALF_YEAR {
            true => alloc::format!("{month} {:2} {:02}:{:02}", date.day, date.hour, date.minute),
            false => alloc::format!("{month} {:2}  {}", date.day, date.year),
        }
    }
}

/// The seconds since 1970 of a date in UTC: `@SECONDS`, `now`, or `YYYY-MM-DD`, with `hh:mm` or
/// `hh:mm:ss` behind a blank or `T`, and `Z` or `UTC` behind that. `None` if it is none, or
/// before 1970.
pub fn parse(text: &[u8], now: u64) -> Option<u64> {
    let text = core::str::from_utf8(text).ok()?.trim();
    if text == "now" {
        return Some(now);
    }
    if let Some(seconds) = text.strip_prefix('@') {
        return seconds.parse().ok();
    }
    let text = text.strip_suffix("UTC").unwrap_or(text);
    let text = text.strip_suffix('Z').unwrap_or(text).trim_end();
    let (date, time) = match text.split_once([' ', 'T']) {
        Some((date, time)) => (date, time),
        None => (text, "00:00"),
    };
    let numbers = |text: &str, sign: char| -> Option<[u64; 3]> {
        let mut all = [0; 3];
        let mut count = 0;
        for part in text.split(sign) {
            let digits = !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
            *all.get_mut(count)? = part.parse().ok().filter(|_| digits)?;
            count += 1;
        }
        (count >= 2).then_some(all)
    };
    seconds_of(numbers(date, '-')?, numbers(time, ':')?)
}

/// The seconds since 1970 of `[[CC]YY]MMDDhhmm[.ss]`; without a year that of `now`. `None` if it is
/// none.
pub fn parse_stamp(text: &[u8], now: u64) -> Option<u64> {
    let text = core::str::from_utf8(text).ok()?;
    let (digits, second) = text.split_once('.').unwrap_or((text, "00"));
    let all_digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    if !all_digits(digits) || !all_digits(second) || second.len() != 2 {
        return None;
    }
    let (year, rest) = digits.split_at(digits.len().checked_sub(8)?);
    let year = match year.len() {
        0 => Date::from_seconds(now).year,
        2 => match year.parse().ok()? {
            year @ 69..=99 => 1900 + year,
            year => 2000 + year,
        },
        4 => year.parse().ok()?,
        _ => return None,
    };
    let two = |at: usize| rest.get(at..at + 2)?.parse::<u64>().ok();
    let time = [two(4)?, two(6)?, second.parse().ok()?];
    seconds_of([year, two(0)?, two(2)?], time)
}

/// The seconds since 1970 of a year, month and day (from 1), and hour, minute and second.
fn seconds_of([year, month, day]: [u64; 3], [hour, minute, second]: [u64; 3]) -> Option<u64> {
    let month = usize::try_from(month).ok()?.checked_sub(1)?;
    let valid = (1970..10_000).contains(&year)
        && month < 12
        && (1..=month_length(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    let years: u64 = (1970..year.min(10_000)).map(year_length).sum();
    let months: u64 = (0..month.min(11))
        .map(|month| month_length(year, month))
        .sum();
    valid.then(|| (years + months + day - 1) * 86_400 + hour * 3600 + minute * 60 + second)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn year_length(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

pub(crate) fn month_length(year: u64, month: usize) -> u64 {
    match month {
        1 if is_leap(year) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seconds: u64) -> String {
        let date = Date::from_seconds(seconds);
        let Date {
            year,
            month,
            day,
            hour,
            minute,
            second,
        } = date;
        alloc::format!(
            "{year}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}",
            month + 1
        )
    }

    #[test]
    fn dates() {
        assert_eq!(text(0), "1970-01-01 00:00:00");
        assert_eq!(text(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(text(1_709_251_199), "2024-02-29 23:59:59");
        assert_eq!(text(4_107_542_400), "2100-03-01 00:00:00");
        assert_eq!(text(1_798_761_599), "2026-12-31 23:59:59");
    }

    #[test]
    fn the_largest_number_does_no_harm() {
        assert!(Date::from_seconds(u64::MAX).year > 500_000_000_000);
    }

    #[test]
    fn listed() {
        assert_eq!(Date::listed(951_782_400, 951_782_460), "Feb 29 00:00");
        assert_eq!(Date::listed(951_782_400, 4_107_542_400), "Feb 29  2000");
        assert_eq!(Date::listed(951_782_400, 951_782_399), "Feb 29  2000");
    }

    #[test]
    fn dates_are_read() {
        for (text, seconds) in [
            ("@5", 5),
            ("now", 77),
            ("1970-01-01", 0),
            ("2024-02-29 12:30:00", 1_709_209_800),
            ("2024-02-29T12:30:01Z", 1_709_209_801),
            ("2000-01-01 00:00 UTC", 946_684_800),
        ] {
            assert_eq!(parse(text.as_bytes(), 77), Some(seconds), "{text}");
        }
        for (text, seconds) in [
            ("202402291230", 1_709_209_800),
            ("2402291230.05", 1_709_209_805),
            ("01010000", 0),
        ] {
            assert_eq!(parse_stamp(text.as_bytes(), 77), Some(seconds), "{text}");
        }
        for text in [
            "",
            "2023-02-29",
            "2024-13-01",
            "1969-12-31",
            "x",
            "2024-1",
            "@-1",
        ] {
            assert_eq!(parse(text.as_bytes(), 77), None, "{text}");
        }
        for text in ["", "1", "0230", "02300000", "20240229123", "202402291230.5"] {
            assert_eq!(parse_stamp(text.as_bytes(), 77), None, "{text}");
        }
    }
}
