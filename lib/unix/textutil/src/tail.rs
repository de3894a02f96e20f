//! The end of a text that comes in pieces, as `tail` prints it.

use alloc::vec::Vec;

/// Bytes that are kept before it is looked whether all of them are needed.
const SLACK: usize = 256 * 1024;

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many lines at the end.
    LastLines(u64),
    /// So many bytes at the end.
    LastBytes(u64),
    /// Everything behind so many lines.
    AfterLines(u64),
    /// Everything behind so many bytes.
    AfterBytes(u64),
}

/// Reads `[+-]number`, of bytes or of lines. `None` if it is not that.
pub fn parse_amount(text: &[u8], bytes: bool) -> Option<Amount> {
    let (from_start, digits) = match text {
        [b'+', digits @ ..] => (true, digits),
        [b'-', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = core::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match (from_start, bytes) {
        (false, false) => Amount::LastLines(number),
        (false, true) => Amount::LastBytes(number),
        (true, false) => Amount::AfterLines(number.saturating_sub(1)),
        (true, true) => Amount::AfterBytes(number.saturating_sub(1)),
    })
}

/// A text of which the end is wanted.
#[derive(Debug)]
pub struct Tail {
    amount: Amount,
    kept: Vec<u8>,
    limit: usize,
}

impl Tail {
    /// Nothing yet.
    pub fn new(amount: Amount) -> Self {
        Tail {
            amount,
            kept: Vec::new(),
            limit: SLACK,
        }
    }

    /// Goes on with a further piece; what of it is to be printed at once.
    pub fn add<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        match &mut self.amount {
            Amount::AfterLines(left) => skip_lines(piece, left),
            Amount::AfterBytes(left) => {
                let skipped = usize::try_from(*left).map_or(piece.len(), |it| it.min(piece.len()));
                *left -= skipped as u64;
                &piece[skipped..]
            }
            Amount::LastLines(_) | Amount::LastBytes(_) => {
                self.kept.extend_from_slice(piece);
                if self.kept.len() > self.limit {
                    self.trim();
                    self.limit = self.kept.len().saturating_mul(2).max(SLACK);
                }
                &[]
            }
        }
    }

    /// What is to be printed at the end.
    pub fn finish(&mut self) -> &[u8] {
        self.trim();
        &self.kept
    }

    fn trim(&mut self) {
        let start = match self.amount {
            Amount::LastLines(lines) => last_lines(&self.kept, lines),
            Amount::LastBytes(bytes) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                self.kept.len().saturating_sub(bytes)
            }
            Amount::AfterLines(_) | Amount::AfterBytes(_) => 0,
        };
        self.kept.drain(..start);
    }
}

/// `piece` without its first `left` lines, which are counted down.
fn skip_lines<'a>(mut piece: &'a [u8], left: &mut u64) -> &'a [u8] {
    while *left > 0 {
        let Some(at) = piece.iter().position(|&byte| byte == b'\n') else {
            return &[];
        };
        piece = &piece[at + 1..];
        *left -= 1;
    }
    piece
}

/// Where the last `lines` lines of `text` start; a line break at the very end starts no line.
fn last_lines(text: &[u8], lines: u64) -> usize {
    let Some(before) = lines.checked_sub(1) else {
        return text.len();
    };
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let breaks = body.iter().enumerate().rev();
    let mut breaks = breaks.filter(|(_, byte)| **byte == b'\n');
    let before = usize::try_from(before).unwrap_or(usize::MAX);
    breaks.nth(before).map_or(0, |(at, _)| at + 1)
}

/// What is left out at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// So many lines.
    Lines(u64),
    /// So many bytes.
    Bytes(u64),
}

/// `text` without its end.
pub fn without_end(text: &[u8], before: Before) -> &[u8] {
    let end = match before {
        Before::Lines(lines) => last_lines(text, lines),
        Before::Bytes(bytes) => {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            text.len().saturating_sub(bytes)
        }
    };
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings() {
        let text = b"a\nbc\nd";
        assert_eq!(without_end(text, Before::Lines(0)), text);
        assert_eq!(without_end(text, Before::Lines(1)), b"a\nbc\n");
        assert_eq!(without_end(text, Before::Lines(2)), b"a\n");
        assert_eq!(without_end(text, Before::Lines(9)), b"");
        assert_eq!(without_end(text, Before::Bytes(3)), b"a\nb");
        assert_eq!(without_end(text, Before::Bytes(u64::MAX)), b"");
        assert_eq!(without_end(b"", Before::Lines(1)), b"");
    }

    fn tail(amount: &str, bytes: bool, text: &str) -> alloc::string::String {
        let mut tail = Tail::new(parse_amount(amount.as_bytes(), bytes).unwrap());
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(3) {
            out.extend_from_slice(tail.add(piece));
        }
        out.extend_from_slice(tail.finish());
        alloc::string::String::from_utf8(out).unwrap()
    }

    #[test]
    fn ends() {
        assert_eq!(tail("2", false, "a\nbcd\nefg\n"), "bcd\nefg\n");
        assert_eq!(tail("2", false, "a\nbcd\nefg"), "bcd\nefg");
        assert_eq!(tail("-2", true, "a\nbcd\n"), "d\n");
        assert_eq!(tail("+2", false, "a\nbcd\nefg"), "bcd\nefg");
        assert_eq!(tail("+3", true, "a\nbcd"), "bcd");
    }

    #[test]
    fn a_long_text_is_not_kept() {
        let mut tail = Tail::new(Amount::LastLines(1));
        for _ in 0..10_000 {
            tail.add(&[b"x".repeat(100), b"\n".to_vec()].concat());
        }
        assert!(tail.kept.capacity() < 4 * SLACK);
        assert_eq!(tail.finish().len(), 101);
    }

    #[test]
    fn nothing_and_more_than_there_is() {
        assert_eq!(tail("0", false, "a\nb\n"), "");
        assert_eq!(tail("0", true, "ab"), "");
        assert_eq!(tail("9", false, "a\nb"), "a\nb");
        assert_eq!(tail("18446744073709551615", true, "ab"), "ab");
        assert_eq!(tail("+9", false, "a\nb"), "");
        assert_eq!(tail("+9", true, "ab"), "");
        assert_eq!(tail("+0", false, "ab"), "ab");
    }

    #[test]
    fn what_is_no_amount() {
        for text in ["", "+", "-", "x", "1x", "++1", "18446744073709551616"] {
            assert_eq!(parse_amount(text.as_bytes(), false), None, "{text}");
        }
    }
}
