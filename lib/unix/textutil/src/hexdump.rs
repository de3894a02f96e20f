//! Lines of hexadecimal numbers, as `hexdump` prints them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// Bytes in a line.
const WIDTH: usize = 16;

/// A dump of bytes that come in pieces. Lines like the one before are shown as one `*`.
#[derive(Debug, Default)]
pub struct Dump {
    /// With single bytes and characters, rather than numbers of two bytes.
    canonical: bool,
    /// Every line is shown.
    all: bool,
    offset: u64,
    pending: Vec<u8>,
    last: Option<Vec<u8>>,
    starred: bool,
}

impl Dump {
    /// A dump of nothing yet; `canonical` with characters, `all` with lines like the one before.
    pub fn new(canonical: bool, all: bool) -> Self {
        Dump {
            canonical,
            all,
            ..Dump::default()
        }
    }

    /// Lines for a further piece.
    pub fn add(&mut self, piece: &[u8]) -> String {
        let mut text = String::new();
        self.pending.extend_from_slice(piece);
        let pending = core::mem::take(&mut self.pending);
        let (lines, rest) = pending.as_chunks::<WIDTH>();
        for line in lines {
            self.line(line, &mut text);
        }
        self.pending = rest.to_vec();
        text
    }

    /// The last lines.
    pub fn finish(&mut self) -> String {
        let mut text = String::new();
        let rest = core::mem::take(&mut self.pending);
        if !rest.is_empty() {
            self.line(&rest, &mut text);
        }
        if self.offset > 0 {
            self.put_offset(&mut text);
            text.push('\n');
        }
        text
    }

    fn line(&mut self, bytes: &[u8], text: &mut String) {
        let again = !self.all && self.last.as_deref() == Some(bytes);
        if !again {
            self.put_offset(text);
            match self.canonical {
                true => put_canonical(bytes, text),
                false => put_pairs(bytes, text),
            }
            self.last = Some(bytes.to_vec());
        } else if !self.starred {
            text.push_str("*\n");
        }
        self.starred = again;
        self.offset += bytes.len() as u64;
    }

    fn put_offset(&self, text: &mut String) {
        let width = if self.canonical { 8 } else { 7 };
        // Writing to a String cannot fail.
        let _ = write!(text, "{:0width$x}", self.offset);
    }
}

fn put_canonical(bytes: &[u8], text: &mut String) {
    for at in 0..WIDTH {
        text.push_str(if at % 8 == 0 { "  " } else { " " });
        let _ = match bytes.get(at) {
            Some(byte) => write!(text, "{byte:02x}"),
            None => write!(text, "  "),
        };
    }
    text.push_str("  |");
    text.extend(bytes.iter().map(|&byte| match byte {
        b' '..=b'~' => char::from(byte),
        _ => '.',
    }));
    text.push_str("|\n");
}

/// Numbers of two bytes, little-endian; blanks to the full width at the end.
fn put_pairs(bytes: &[u8], text: &mut String) {
    for pair in bytes.chunks(2) {
        let high = pair.get(1).copied().unwrap_or(0);
        let _ = write!(text, " {high:02x}{:02x}", pair[0]);
    }
    let missing = WIDTH / 2 - bytes.len().div_ceil(2);
    text.extend(core::iter::repeat_n(' ', missing * 5));
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(canonical: bool, all: bool, bytes: &[u8]) -> String {
        let mut dump = Dump::new(canonical, all);
        let mut text: String = bytes.chunks(7).map(|piece| dump.add(piece)).collect();
        text += &dump.finish();
        text
    }

    #[test]
    fn lines() {
        assert_eq!(
            dump(true, false, b"hello\n\xff 12345678 x"),
            "00000000  68 65 6c 6c 6f 0a ff 20  31 32 33 34 35 36 37 38  |hello.. 12345678|\n\
             00000010  20 78                                             | x|\n00000012\n"
        );
        assert_eq!(
            dump(false, false, b"abc"),
            "0000000 6261 0063                              \n0000003\n"
        );
    }

    #[test]
    fn lines_that_are_the_same() {
        let text = dump(false, false, &[0; 64]);
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), ["*", "0000040"]);
        assert_eq!(dump(false, true, &[0; 64]).lines().count(), 5);
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(dump(true, false, b""), "");
        assert_eq!(dump(false, true, b""), "");
    }

    #[test]
    fn a_short_line_is_not_taken_for_the_one_before() {
        assert_eq!(dump(true, false, &[0; 20]).lines().count(), 3);
    }
}
