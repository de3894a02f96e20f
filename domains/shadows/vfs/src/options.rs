//! The options text that the manifest gives to this domain: see `vfs.idl`.

use domain_rt::log;

/// Bytes in the log if nothing else is said.
const DEFAULT: usize = 16 << 20;
/// Bytes of pages of files if nothing else is said.
const DEFAULT_PAGES: usize = 32 << 20;

/// Bytes of a file that is written through the file system, if nothing else is said.
const DEFAULT_SMALL: usize = 64 << 10;

/// What the options say.
pub struct Settings {
    /// How many bytes of changes are remembered at most.
    pub log: usize,
    /// What the file system acknowledges survives its crash.
    pub is_lasting: bool,
    /// How many bytes of pages of files are kept at most.
    pub pages: usize,
    /// How long the lock for changes is held is told at each sync.
    pub tells_held: bool,
    /// How many bytes a file may have that is written through the file system.
    pub small: usize,
}

/// Reads the text.
pub fn parse(text: &[u8]) -> Settings {
    let mut settings = Settings {
        log: DEFAULT,
        is_lasting: false,
        pages: DEFAULT_PAGES,
        tells_held: false,
        small: DEFAULT_SMALL,
    };
    for word in text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
    {
        let value = |name: &[u8]| word.strip_prefix(name).and_then(size);
        let numbers = [value(b"log="), value(b"pages="), value(b"small=")];
        match (word, numbers) {
            (b"lasting", _) => settings.is_lasting = true,
            (b"held", _) => settings.tells_held = true,
            (_, [Some(said), ..]) => settings.log = said,
            (_, [_, Some(said), _]) => settings.pages = said,
            (_, [.., Some(said)]) => settings.small = said,
            _ => log!(
                "option not understood: {}",
                alloc::string::String::from_utf8_lossy(word)
            ),
        }
    }
    settings
}

/// A number of bytes, perhaps with `K` or `M` behind it.
fn size(text: &[u8]) -> Option<usize> {
    let (digits, unit) = match text.split_last()? {
        (b'K' | b'k', digits) => (digits, 1 << 10),
        (b'M' | b'm', digits) => (digits, 1 << 20),
        _ => (text, 1),
    };
    let number: usize = core::str::from_utf8(digits).ok()?.parse().ok()?;
    number.checked_mul(unit)
}
