//! Parts of lines, as `cut` selects them.

use alloc::vec::Vec;

/// Which numbers (of fields or bytes, counted from 1) are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    ranges: Vec<(usize, usize)>,
}

impl Selection {
    /// Reads numbers and ranges `3`, `2-5`, `2-`, `-5`, with commas between them. `None` if it is
    /// not that.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let ranges = text.split(|&byte| byte == b',').map(range);
        Some(Selection {
            ranges: ranges.collect::<Option<_>>()?,
        })
    }

    /// Whether `number` is selected.
    pub fn has(&self, number: usize) -> bool {
        self.ranges
            .iter()
            .any(|&(first, last)| (first..=last).contains(&number))
    }

    /// The selected bytes of `line`.
    pub fn bytes(&self, line: &[u8]) -> Vec<u8> {
        let selected = line.iter().enumerate().filter(|(at, _)| self.has(at + 1));
        selected.map(|(_, &byte)| byte).collect()
    }

    /// The selected fields of `line`, with separators between them; `None` if there is no separator
    /// in it.
    pub fn fields(&self, line: &[u8], separator: u8) -> Option<Vec<u8>> {
        if !line.contains(&separator) {
            return None;
        }
        let fields = line.split(|&byte| byte == separator).enumerate();
        let selected = fields.filter(|(at, _)| self.has(at + 1));
        let selected: Vec<&[u8]> = selected.map(|(_, field)| field).collect();
        Some(selected.join(&separator))
    }
}

fn range(text: &[u8]) -> Option<(usize, usize)> {
    let Some(dash) = text.iter().position(|&byte| byte == b'-') else {
        let only = number(text)?;
        return Some((only, only));
    };
    let (first, last) = (&text[..dash], &text[dash + 1..]);
    let range = match (first.is_empty(), last.is_empty()) {
        (true, true) => return None,
        (true, false) => (1, number(last)?),
        (false, true) => (number(first)?, usize::MAX),
        (false, false) => (number(first)?, number(last)?),
    };
    (range.0 <= range.1).then_some(range)
}

fn number(text: &[u8]) -> Option<usize> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = core::str::from_utf8(text).ok()?.parse().ok()?;
    (number > 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Selection {
        Selection::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn selects() {
        assert_eq!(list("1,3-4,6-").bytes(b"abcdefgh"), b"acdfgh");
        assert_eq!(list("-2").bytes(b"abc"), b"ab");
        assert_eq!(list("3,1").fields(b"a:b:c:d", b':').unwrap(), b"a:c");
        assert_eq!(list("2-").fields(b"a::c", b':').unwrap(), b":c");
    }

    #[test]
    fn what_is_not_there_is_empty() {
        assert_eq!(list("5-9").bytes(b"abc"), b"");
        assert_eq!(list("5").fields(b"a:b", b':').unwrap(), b"");
        assert_eq!(list("1").fields(b"ab", b':'), None);
    }

    #[test]
    fn what_is_no_list() {
        for text in ["", "0", "-", "x", "3-2", "1,,2", "1-2-3", "+1", "0-1", "1,"] {
            assert_eq!(Selection::parse(text.as_bytes()), None, "{text}");
        }
    }
}
