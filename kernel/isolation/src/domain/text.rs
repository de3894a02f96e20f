//! Text that comes from domains, made fit for the log: whoever writes a line cannot make it look
//! like two, nor send the terminal commands. Whose line it is says the name in front of it, which
//! is one of [`abi::Text::name`].

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

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;

    #[test]
    fn control_characters_do_not_pass() {
        let clean = |text| Clean(text).to_string();
        assert_eq!(clean("a\nb\r\x1b[2Jc"), "a?b??[2Jc");
        assert_eq!(clean("\u{9b}1m"), "?1m");
        assert_eq!(clean("h\u{e9}llo\tyou"), "h\u{e9}llo\tyou");
        assert_eq!(clean(""), "");
    }
}
