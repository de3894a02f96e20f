//! Arguments being put together: field splitting (POSIX, shell command language, 2.6.5).

use crate::expand::ExpandError;
use crate::glob::PatternByte;
use alloc::string::String;
use alloc::vec::Vec;

/// What an expansion is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Arguments: unquoted values are split, and patterns in them are active.
    Split,
    /// One text.
    Single,
    /// One pattern: what is special in unquoted values stays so.
    Pattern,
}

/// The separators if `IFS` is not set.
pub(crate) const USUAL_SEPARATORS: &[u8] = b" \t\n";

/// Arguments being put together.
pub(crate) struct Fields {
    done: Vec<Vec<PatternByte>>,
    open: Option<Vec<PatternByte>>,
    mode: Mode,
    /// How many bytes more it may become.
    room: usize,
    separators: Vec<u8>,
    /// A blank has just ended a field: a separator that is no blank belongs to the same gap.
    in_gap: bool,
}

/// Whether the byte is a separator that counts only once in a row.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

impl Fields {
    /// None yet; they may become `room` bytes. `separators` as in `IFS`.
    pub fn new(mode: Mode, room: usize, separators: Option<Vec<u8>>) -> Self {
        Fields {
            done: Vec::new(),
            open: None,
            mode,
            room,
            separators: separators.unwrap_or_else(|| USUAL_SEPARATORS.to_vec()),
            in_gap: false,
        }
    }

    /// How many bytes more there may be.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Whether there may be several.
    pub fn is_splitting(&self) -> bool {
        self.mode == Mode::Split
    }

    /// What stands between the parameters in `"$*"`.
    pub fn joiner(&self) -> &[u8] {
        &self.separators[..self.separators.len().min(1)]
    }

    /// All of them.
    pub fn finish(mut self) -> Vec<Vec<PatternByte>> {
        self.done.extend(self.open);
        self.done
    }

    /// Ends the field that is open.
    pub fn end_field(&mut self) {
        self.done.extend(self.open.take());
        self.in_gap = false;
    }

    fn take_room(&mut self, text: &[u8]) -> Result<(), ExpandError> {
        let room = self.room.checked_sub(text.len());
        self.room = room.ok_or_else(|| {
            ExpandError(String::from(
                "the command becomes too long when it is expanded",
            ))
        })?;
        Ok(())
    }

    /// Adds text that stays in one piece. It makes an argument even if it is empty.
    ///
    /// # Errors
    /// There is too much.
    pub fn text(&mut self, text: &[u8], active: bool) -> Result<(), ExpandError> {
        self.take_room(text)?;
        self.in_gap = false;
        let open = self.open.get_or_insert_default();
        open.extend(text.iter().map(|&byte| (byte, active)));
        Ok(())
    }

    /// Adds what a parameter or substitution gave.
    ///
    /// # Errors
    /// There is too much.
    pub fn value(&mut self, value: &[u8], quoted: bool) -> Result<(), ExpandError> {
        match (quoted, self.mode) {
            (false, Mode::Split) => {
                self.take_room(value)?;
                self.split(value);
                Ok(())
            }
            (false, Mode::Pattern) => self.text(value, true),
            _ => self.text(value, false),
        }
    }

    fn split(&mut self, text: &[u8]) {
        for &byte in text {
            if !self.separators.contains(&byte) {
                self.open.get_or_insert_default().push((byte, true));
                self.in_gap = false;
            } else if is_blank(byte) {
                if self.open.is_some() {
                    self.end_field();
                    self.in_gap = true;
                }
            } else if core::mem::take(&mut self.in_gap) {
                // The blank before it has ended the field already.
            } else {
                self.done.push(self.open.take().unwrap_or_default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;

    fn split(text: &str, separators: &str) -> Vec<String> {
        let mut fields = Fields::new(Mode::Split, 100, Some(separators.as_bytes().to_vec()));
        fields.value(text.as_bytes(), false).unwrap();
        let text = |field: Vec<PatternByte>| field.iter().map(|byte| byte.0).collect();
        let texts = fields.finish().into_iter().map(text);
        texts.map(|it| String::from_utf8(it).unwrap()).collect()
    }

    #[test]
    fn splits_as_posix_says() {
        for (text, separators, expected) in [
            ("  a  b ", " \t\n", &["a", "b"][..]),
            ("a:b", ":", &["a", "b"]),
            ("a::b", ":", &["a", "", "b"]),
            (":a:", ":", &["", "a"]),
            ("a : b", ": ", &["a", "b"]),
            ("a : : b", ": ", &["a", "", "b"]),
            ("a b:c", ":", &["a b", "c"]),
            ("a b", "", &["a b"]),
            ("", ":", &[]),
            ("  ", " ", &[]),
        ] {
            let expected: Vec<String> = expected.iter().map(|&it| it.to_owned()).collect();
            assert_eq!(split(text, separators), expected, "{text:?} {separators:?}");
        }
    }

    #[test]
    fn refuses_what_is_too_long() {
        let mut fields = Fields::new(Mode::Single, 3, None);
        assert!(fields.text(b"abc", true).is_ok());
        assert!(fields.text(b"d", true).is_err());
        assert!(fields.value(b"d", false).is_err());
    }
}
