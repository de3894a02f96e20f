//! Short strings by value: names in interfaces, without an allocation.

use crate::exchange::{Exchangeable, Plain};
use core::fmt;

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
    use core::fmt::Write;

    #[test]
    fn cuts_at_a_character_boundary() {
        assert_eq!(Text::<4>::new("abcé").as_str(), "abc");
        assert_eq!(Text::<5>::new("abcé").as_str(), "abcé");
    }

    #[test]
    fn write_keeps_what_fits() {
        let mut text = Text::<6>::empty();
        write!(text, "{}-{}", 123, 4567).expect("writing to a Text never fails");
        assert_eq!(text.as_str(), "123-45");
    }
}
