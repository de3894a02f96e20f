//! Text that comes from domains, made fit for the log: whoever writes a line cannot make it look
//! like two, or like one that somebody else wrote, nor send the terminal commands.

use abi::Text;
use core::fmt::{self, Write};

/// Shows a text with every control character as a question mark.
pub(crate) struct Clean<'a>(pub(crate) &'a str);

impl fmt::Display for Clean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.0.split(|c: char| c.is_control() && c != '\t');
        f.write_str(parts.next().unwrap_or(""))?;
        parts.try_for_each(|part| f.write_char('?').and_then(|()| f.write_str(part)))
    }
}

/// A name without control characters.
pub(crate) fn clean(name: &str) -> Text<32> {
    let mut text = Text::empty();
    let _ = write!(text, "{}", Clean(name));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_pass() {
        assert_eq!(clean("a\nb\r\x1b[2Jc").as_str(), "a?b??[2Jc");
        assert_eq!(clean("\u{9b}1m").as_str(), "?1m");
        assert_eq!(clean("h\u{e9}llo\tyou").as_str(), "h\u{e9}llo\tyou");
        assert_eq!(clean("").as_str(), "");
    }
}
