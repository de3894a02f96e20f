//! The options text that the manifest gives to this domain: see `vfs.idl`.

use domain_rt::log;

/// Bytes in the log if nothing else is said.
const DEFAULT: usize = 16 << 20;

/// How many bytes of changes are remembered at most.
pub fn log_bytes(text: &[u8]) -> usize {
    let mut bytes = DEFAULT;
    for word in text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
    {
        match word.strip_prefix(b"log=").and_then(size) {
            Some(said) => bytes = said,
            None => log!(
                "option not understood: {}",
                alloc::string::String::from_utf8_lossy(word)
            ),
        }
    }
    bytes
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
