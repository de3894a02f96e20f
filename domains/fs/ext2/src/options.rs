//! The options text that the manifest gives to this domain: see `ext2.idl`.

use alloc::vec::Vec;

/// Bytes of blocks that are kept in memory if nothing else is said.
const DEFAULT_CACHE: usize = 8 << 20;

/// What the options say.
pub struct Settings<'a> {
    /// Mount read-only.
    pub read_only: bool,
    /// Budget of the block cache.
    pub cache_bytes: usize,
    /// Words that mean nothing.
    pub unknown: Vec<&'a [u8]>,
}

impl<'a> Settings<'a> {
    /// Reads the text.
    pub fn parse(text: &'a [u8]) -> Self {
        let mut settings = Settings {
            read_only: false,
            cache_bytes: DEFAULT_CACHE,
            unknown: Vec::new(),
        };
        for word in text
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
        {
            let size = word.strip_prefix(b"cache=").and_then(parse_size);
            match (word, size) {
                (b"ro", _) => settings.read_only = true,
                (_, Some(size)) => settings.cache_bytes = size,
                _ => settings.unknown.push(word),
            }
        }
        settings
    }
}

/// A number of bytes, perhaps with `K` or `M` behind it.
fn parse_size(text: &[u8]) -> Option<usize> {
    let (digits, unit) = match text.split_last()? {
        (b'K' | b'k', digits) => (digits, 1 << 10),
        (b'M' | b'm', digits) => (digits, 1 << 20),
        _ => (text, 1),
    };
    let number: usize = core::str::from_utf8(digits).ok()?.parse().ok()?;
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_all_words() {
        let settings = Settings::parse(b" ro  cache=2M\n");
        assert!(settings.read_only && settings.unknown.is_empty());
        assert_eq!(settings.cache_bytes, 2 << 20);
        assert_eq!(Settings::parse(b"cache=12345").cache_bytes, 12345);
        assert_eq!(Settings::parse(b"").cache_bytes, DEFAULT_CACHE);
    }

    #[test]
    fn reports_what_means_nothing() {
        let text =
            b"rw cache= cache=M cache=-1 cache=99999999999999999999 cache=99999999999999999K";
        let settings = Settings::parse(text);
        assert_eq!(settings.unknown.len(), 6);
        assert!(!settings.read_only);
        assert_eq!(settings.cache_bytes, DEFAULT_CACHE);
    }
}
