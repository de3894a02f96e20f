//! The options text that the manifest gives to this domain: see `ramfs.idl`.

use alloc::vec::Vec;

/// Bytes at most if nothing else is said.
const DEFAULT: u64 = 16 << 20;

/// What the options say.
pub struct Settings<'a> {
    /// The most bytes.
    pub bytes: u64,
    /// Words that mean nothing.
    pub unknown: Vec<&'a [u8]>,
}

impl<'a> Settings<'a> {
    /// Reads the text.
    pub fn parse(text: &'a [u8]) -> Self {
        let mut settings = Settings {
            bytes: DEFAULT,
            unknown: Vec::new(),
        };
        for word in text
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
        {
            match word.strip_prefix(b"size=").and_then(size) {
                Some(bytes) => settings.bytes = bytes,
                None => settings.unknown.push(word),
            }
        }
        settings
    }
}

/// A number of bytes, perhaps with `K` or `M` behind it.
fn size(text: &[u8]) -> Option<u64> {
    let (digits, unit) = match text.split_last()? {
        (b'K' | b'k', digits) => (digits, 1 << 10),
        (b'M' | b'm', digits) => (digits, 1 << 20),
        _ => (text, 1),
    };
    let number: u64 = core::str::from_utf8(digits).ok()?.parse().ok()?;
    number.checked_mul(unit)
}
