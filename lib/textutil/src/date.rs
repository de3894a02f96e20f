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

    /// As `ls -l` shows it when it is now `now`: with the time of day if it is less than half a year ago,
    /// otherwise with the year.
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

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn year_length(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn month_length(year: u64, month: usize) -> u64 {
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
}
