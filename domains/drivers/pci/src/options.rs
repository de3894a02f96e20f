//! The text of options.

use alloc::format;
use alloc::string::String;

/// What can be set.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Physical addresses (start, length) for regions that firmware left without one.
    pub window: Option<(u64, u64)>,
}

impl Options {
    /// Reads the text.
    ///
    /// # Errors
    /// The word that is not understood.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let text = core::str::from_utf8(text).map_err(|_| String::from("not UTF-8"))?;
        let mut options = Options::default();
        for word in text.split_whitespace() {
            let window = word.strip_prefix("window=").and_then(pair);
            options.window =
                Some(window.ok_or_else(|| format!("`{word}`: expected window=ADDRESS,BYTES"))?);
        }
        Ok(options)
    }
}

fn pair(text: &str) -> Option<(u64, u64)> {
    let (first, second) = text.split_once(',')?;
    Some((number(first)?, number(second)?))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
