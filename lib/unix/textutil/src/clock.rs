//! Dates and times as text, as `date` formats them, in UTC and English.

use crate::date::{Date, month_length};
use alloc::string::String;

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The moment `seconds` after the start of 1970 in the words of `pattern`, with `%Y` and so on.
/// `None` if a letter behind a `%` is not known, or `pattern` is no UTF-8.
pub fn format(pattern: &[u8], seconds: u64) -> Option<String> {
    let mut text = String::new();
    let mut letters = core::str::from_utf8(pattern).ok()?.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '%' => text += &conversion(&mut letters, seconds)?,
            letter => text.push(letter),
        }
    }
    Some(text)
}

/// What stands behind a `%`: perhaps `-` for no padding, `_` for blanks or `0` for zeros, and a
/// letter.
fn conversion(letters: &mut core::str::Chars<'_>, seconds: u64) -> Option<String> {
    let (flag, letter) = match letters.next()? {
        flag @ ('-' | '_' | '0') => (Some(flag), letters.next()?),
        letter => (None, letter),
    };
    let text = field(letter, seconds)?;
    let digits = text.trim_start_matches(['0', ' ']);
    let numeric = "CdeHIjklmMSsuwyY".contains(letter);
    Some(match flag {
        Some(_) if !numeric => text,
        Some('-') if digits.is_empty() => String::from("0"),
        Some('-') => String::from(digits),
        Some(flag) => {
            let padding = if flag == '0' { '0' } else { ' ' };
            // One digit stays, if they are all zeros.
            let kept = digits.len().max(1);
            let (front, digits) = text.split_at(text.len() - kept);
            front
                .chars()
                .map(|_| padding)
                .chain(digits.chars())
                .collect()
        }
        None => text,
    })
}

fn field(letter: char, seconds: u64) -> Option<String> {
    let date = Date::from_seconds(seconds);
    let (day, month) = (DAYS[weekday(seconds)], MONTHS[date.month]);
    Some(match letter {
        'Y' => alloc::format!("{}", date.year),
        'y' => alloc::format!("{:02}", date.year % 100),
        'm' => alloc::format!("{:02}", date.month + 1),
        'd' => alloc::format!("{:02}", date.day),
        'e' => alloc::format!("{:>2}", date.day),
        'H' => alloc::format!("{:02}", date.hour),
        'M' => alloc::format!("{:02}", date.minute),
        'S' => alloc::format!("{:02}", date.second),
        'C' => alloc::format!("{:02}", date.year / 100),
        'I' => alloc::format!("{:02}", (date.hour + 11) % 12 + 1),
        'j' => alloc::format!("{:03}", day_of_year(&date) + 1),
        'k' => alloc::format!("{:>2}", date.hour),
        'l' => alloc::format!("{:>2}", (date.hour + 11) % 12 + 1),
        'N' => String::from("000000000"),
        'p' => String::from(if date.hour < 12 { "AM" } else { "PM" }),
        'P' => String::from(if date.hour < 12 { "am" } else { "pm" }),
        'c' => format(b"%a %b %e %H:%M:%S %Y", seconds)?,
        'r' => format(b"%I:%M:%S %p", seconds)?,
        'x' => format(b"%m/%d/%y", seconds)?,
        'X' => format(b"%H:%M:%S", seconds)?,
        's' => alloc::format!("{seconds}"),
        'u' => alloc::format!("{}", (weekday(seconds) + 6) % 7 + 1),
        'w' => alloc::format!("{}", weekday(seconds)),
        'A' => String::from(day),
        'a' => String::from(&day[..3]),
        'B' => String::from(month),
        'b' | 'h' => String::from(&month[..3]),
        'F' => format(b"%Y-%m-%d", seconds)?,
        'T' => format(b"%H:%M:%S", seconds)?,
        'R' => format(b"%H:%M", seconds)?,
        'D' => format(b"%m/%d/%y", seconds)?,
        'Z' => String::from("UTC"),
        'z' => String::from("+0000"),
        'n' => String::from("\n"),
        't' => String::from("\t"),
        '%' => String::from("%"),
        _ => return None,
    })
}

/// The day of the year, from 0.
fn day_of_year(date: &Date) -> u64 {
    let months = (0..date.month).map(|month| month_length(date.year, month));
    months.sum::<u64>() + date.day - 1
}

/// The day of the week, from 0 for Sunday: 1970 started on a Thursday.
fn weekday(seconds: u64) -> usize {
    let days = seconds / 86_400 % 7;
    ((days + 4) % 7) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pattern: &str, seconds: u64) -> String {
        format(pattern.as_bytes(), seconds).unwrap()
    }

    #[test]
    fn dates() {
        assert_eq!(
            text("%a %b %e %H:%M:%S %Z %Y", 0),
            "Thu Jan  1 00:00:00 UTC 1970"
        );
        assert_eq!(text("%F %T", 951_782_399), "2000-02-28 23:59:59");
        assert_eq!(text("%A %B %d %u%w", 951_782_400), "Tuesday February 29 22");
        assert_eq!(text("%D %R %s %u", 3 * 86_400), "01/04/70 00:00 259200 7");
        assert_eq!(text("100%%ä", 0), "100%ä");
        assert_eq!(
            text("%j %C %I %k %l %p", 1_709_210_096),
            "060 20 12 12 12 PM"
        );
        assert_eq!(text("%r|%c", 0), "12:00:00 AM|Thu Jan  1 00:00:00 1970");
        assert_eq!(text("%-d %_m %-H %0e %-a", 0), "1  1 0 01 Thu");
    }

    #[test]
    fn what_is_no_pattern() {
        for pattern in [&b"%"[..], b"%Q", b"a%", b"%-", b"%\xc3", b"\xff"] {
            assert_eq!(format(pattern, 0), None, "{pattern:?}");
        }
    }

    #[test]
    fn the_largest_number_does_no_harm() {
        assert!(text("%F %A", u64::MAX).ends_with("day"));
        assert_eq!(text("", u64::MAX), "");
    }
}
