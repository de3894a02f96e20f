//! The options text that the manifest gives to this domain: see `keep.idl`.

use domain_rt::log;

/// Keys of a room if nothing else is said.
const DEFAULT: usize = 1024;
/// Most keys of a room.
const MOST: usize = 1 << 24;

/// How many keys each room has.
pub fn keys(text: &[u8]) -> usize {
    let mut keys = DEFAULT;
    for word in text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
    {
        let number = word
            .strip_prefix(b"keys=")
            .and_then(|digits| core::str::from_utf8(digits).ok()?.parse().ok())
            .filter(|&number| number <= MOST);
        match number {
            Some(said) => keys = said,
            None => log!(
                "option not understood: {}",
                alloc::string::String::from_utf8_lossy(word)
            ),
        }
    }
    keys
}
