//! Short strings by value: names in interfaces, without an allocation.

use crate::exchange::{Exchangeable, Plain};
use core::fmt::{self, Write};

/// A string of at most `N` bytes (`N` <= 65,535), stored inline. Always valid UTF-8. The host reads
/// some from the kernel's memory: first the length, then the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Text<const N: usize> {
    len: u16,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    /// The empty string.
    pub const fn empty() -> Self {
        Text {
            len: 0,
            bytes: [0; N],
        }
    }

    /// A copy of `text`, cut at the last character boundary that fits into `N` bytes.
    pub fn new(text: &str) -> Self {
        let mut end = text.len().min(N);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; N];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Text {
            len: end as u16,
            bytes,
        }
    }

    /// `text` as a name that can stand in front of a line of the log. Only letters and digits of
    /// any script and the punctuation of ASCII are left, without the colon; all else becomes a
    /// question mark, and so does an empty text. So a name sends no commands to a terminal, and
    /// with a colon behind it it is no beginning of a line that has a space before its colon: those
    /// are the kernel's own.
    pub fn name(text: &str) -> Self {
        let is_fit = |c: char| c.is_alphanumeric() || c.is_ascii_punctuation() && c != ':';
        let mut name = Text::empty();
        for c in Text::<N>::new(text).as_str().chars() {
            // A question mark takes no more room than what it stands for.
            let _ = name.write_char(if is_fit(c) { c } else { '?' });
        }
        match name.is_empty() {
            true => Text::new("?"),
            false => name,
        }
    }

    /// The string.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or("")
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Text::empty()
    }
}

impl<const N: usize> From<&str> for Text<N> {
    fn from(text: &str) -> Self {
        Text::new(text)
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    /// Appends what fits; the rest is dropped silently, so that `write!` into a name never fails.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let at = usize::from(self.len);
        let count = text.floor_char_boundary(N - at);
        self.bytes[at..at + count].copy_from_slice(&text.as_bytes()[..count]);
        self.len = (at + count) as u16;
        Ok(())
    }
}

// SAFETY: bytes and a length, no pointer; a bitwise copy is a whole value.
unsafe impl<const N: usize> Plain for Text<N> {}
// SAFETY: nothing in it is owned, so there is nothing to transfer.
unsafe impl<const N: usize> Exchangeable for Text<N> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_a_character_boundary() {
        assert_eq!(Text::<4>::new("abcé").as_str(), "abc");
        assert_eq!(Text::<5>::new("abcé").as_str(), "abcé");
    }

    #[test]
    fn a_name_is_no_line_of_somebody_else() {
        for (text, name) in [
            ("virtio-blk", "virtio-blk"),
            ("ext2-vdb.1_[x]", "ext2-vdb.1_[x]"),
            ("gr\u{fc}n", "gr\u{fc}n"),
            ("stack 9", "stack?9"),
            ("kernel panic: cpu 0", "kernel?panic??cpu?0"),
            ("a\nb\r\t\x1b[2Jc\u{9b}1m", "a?b???[2Jc?1m"),
            ("\u{202e}txt\u{a0}\u{2028}", "?txt??"),
            ("", "?"),
        ] {
            assert_eq!(Text::<32>::name(text).as_str(), name);
        }
        assert_eq!(Text::<4>::name("abc\u{e9}d").as_str(), "abc");
    }

    #[test]
    fn write_keeps_what_fits() {
        let mut text = Text::<6>::empty();
        write!(text, "{}-{}", 123, 4567).expect("writing to a Text never fails");
        assert_eq!(text.as_str(), "123-45");
    }
}
