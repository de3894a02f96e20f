//! The text of options.

/// The size if nothing is said, in bytes.
const DEFAULT_SIZE: u64 = 16 << 20;
/// The largest size that makes sense in memory, in bytes.
const LARGEST_SIZE: u64 = 1 << 40;

/// The size of the disk in bytes; `None` if something is not understood.
pub fn size(text: &[u8]) -> Option<u64> {
    let mut size = DEFAULT_SIZE;
    for word in core::str::from_utf8(text).ok()?.split_whitespace() {
        size = bytes(word.strip_prefix("size=")?)?;
    }
    Some(size)
}

fn bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().ok()?;
    number
        .checked_mul(unit)
        .filter(|&bytes| bytes <= LARGEST_SIZE)
}
