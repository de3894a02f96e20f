//! The options text that the manifest gives to this domain: see `ext2.idl`.

use alloc::vec::Vec;

/// Bytes of content of files that are kept in memory if nothing else is said.
const DEFAULT_CACHE: usize = 8 << 20;
/// Bytes of blocks that are kept in memory if nothing else is said.
const DEFAULT_BUFFERS: usize = 8 << 20;

/// What the options say.
pub struct Settings<'a> {
    /// Mount read-only.
    pub read_only: bool,
    /// Write also to a disk without a journal.
    pub writes_unjournaled: bool,
    /// Budget of the page cache.
    pub cache_bytes: usize,
    /// Budget of the library's blocks: metadata, and content that is not on the disk yet.
    pub buffer_bytes: usize,
    /// How long the lock is held is told at each sync.
    pub tells_held: bool,
    /// Words that mean nothing.
    pub unknown: Vec<&'a [u8]>,
}

/// An amount of memory.
#[derive(Clone, Copy)]
enum Amount {
    Bytes(usize),
    /// Hundredths of the memory that was free at the start.
    Percent(usize),
}

impl<'a> Settings<'a> {
    /// Reads the text.
    pub fn parse(text: &'a [u8]) -> Self {
        let mut settings = Settings {
            read_only: false,
            writes_unjournaled: false,
            cache_bytes: DEFAULT_CACHE,
            buffer_bytes: DEFAULT_BUFFERS,
            tells_held: false,
            unknown: Vec::new(),
        };
        let (mut cache, mut free) = (Amount::Bytes(DEFAULT_CACHE), None);
        for word in text
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
        {
            let value = |name: &[u8]| word.strip_prefix(name).and_then(amount);
            match (value(b"cache="), value(b"buffers="), value(b"free-memory=")) {
                (Some(said), _, _) => cache = said,
                (_, Some(Amount::Bytes(said)), _) => settings.buffer_bytes = said,
                (_, _, Some(Amount::Bytes(said))) => free = Some(said),
                _ if word == b"ro" => settings.read_only = true,
                _ if word == b"rw" => settings.writes_unjournaled = true,
                _ if word == b"held" => settings.tells_held = true,
                _ => settings.unknown.push(word),
            }
        }
        settings.cache_bytes = match (cache, free) {
            (Amount::Bytes(bytes), _) => bytes,
            (Amount::Percent(part), Some(free)) => free / 100 * part.min(100),
            (Amount::Percent(_), None) => DEFAULT_CACHE,
        };
        settings
    }
}

/// A number of bytes, perhaps with `K` or `M` behind it, or of hundredths with `%`.
fn amount(text: &[u8]) -> Option<Amount> {
    let number = |digits: &[u8]| core::str::from_utf8(digits).ok()?.parse::<usize>().ok();
    let (digits, unit) = match text.split_last()? {
        (b'%', digits) => return number(digits).map(Amount::Percent),
        (b'K' | b'k', digits) => (digits, 1 << 10),
        (b'M' | b'm', digits) => (digits, 1 << 20),
        _ => (text, 1),
    };
    number(digits)?.checked_mul(unit).map(Amount::Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_all_words() {
        let settings = Settings::parse(b" ro  cache=2M\nbuffers=12345");
        assert!(settings.read_only && settings.unknown.is_empty());
        assert!(!settings.writes_unjournaled && Settings::parse(b"rw").writes_unjournaled);
        assert_eq!(settings.cache_bytes, 2 << 20);
        assert_eq!(settings.buffer_bytes, 12345);
        assert_eq!(Settings::parse(b"").cache_bytes, DEFAULT_CACHE);
    }

    #[test]
    fn a_part_of_the_memory_needs_to_know_how_much_there_is() {
        let part = |text: &[u8]| Settings::parse(text).cache_bytes;
        assert_eq!(part(b"cache=25% free-memory=400000"), 100_000);
        assert_eq!(part(b"free-memory=400000 cache=900%"), 400_000);
        assert_eq!(part(b"cache=25%"), DEFAULT_CACHE);
        assert_eq!(part(b"free-memory=400000"), DEFAULT_CACHE);
    }

    #[test]
    fn reports_what_means_nothing() {
        let text = b"wr cache= cache=M cache=-1 cache=99999999999999999999 cache=99999999999999999K buffers=5% cache=%";
        let settings = Settings::parse(text);
        assert_eq!(settings.unknown.len(), 8);
        assert!(!settings.read_only);
        assert_eq!(settings.cache_bytes, DEFAULT_CACHE);
    }
}
