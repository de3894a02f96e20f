//! Reads words: quotes, and what begins with `$` or a backquote.

use crate::ast::{AlternativeKind, Operation, Parameter, Part, Word};
use crate::error::{Reason, SyntaxError};
use crate::lexer::Lexer;
use crate::parser::Parser;
use alloc::string::ToString;
use alloc::vec::Vec;

/// Where a word stands, which says how it ends and what is special in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a command: up to a blank or operator.
    Command,
    /// In `${NAME-word}`: up to `}`.
    Braces,
    /// In `"${NAME-word}"`: up to `}`; a single quote is nothing special.
    QuotedBraces,
}

impl Lexer<'_> {
    /// A word, up to (without) what ends it.
    pub fn word(&mut self, place: Place) -> Result<Word, SyntaxError> {
        self.enter()?;
        let mut parts = Parts::default();
        let quoted = place == Place::QuotedBraces;
        while let Some(byte) = self.peek() {
            match byte {
                b'}' if place != Place::Command => break,
                b' ' | b'\t' | b'\r' | b'\n' | b'|' | b'&' | b';' | b'<' | b'>' | b'(' | b')'
                    if place == Place::Command =>
                {
                    break;
                }
                b'\'' if !quoted => self.single_quoted(&mut parts)?,
                b'"' => self.double_quoted(&mut parts)?,
                b'\\' if quoted => self.escaped_in_quotes(&mut parts, b"$`\"\\}"),
                b'\\' => self.escaped(&mut parts),
                b'$' | b'`' => self.expansion(&mut parts, quoted)?,
                _ => {
                    parts.push(byte, quoted);
                    self.at += 1;
                }
            }
        }
        self.depth -= 1;
        Ok(parts.finish())
    }

    /// All the rest as a text in which only `$`, backquotes and backslashes are special.
    pub fn quoted_text(&mut self) -> Result<Word, SyntaxError> {
        let mut parts = Parts::default();
        parts.quoted(b"");
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.escaped_in_quotes(&mut parts, b"$`\\"),
                b'$' | b'`' => self.expansion(&mut parts, true)?,
                _ => {
                    parts.push(byte, true);
                    self.at += 1;
                }
            }
        }
        Ok(parts.finish())
    }

    fn single_quoted(&mut self, parts: &mut Parts) -> Result<(), SyntaxError> {
        let rest = &self.text[self.at + 1..];
        let Some(len) = rest.iter().position(|&byte| byte == b'\'') else {
            return Err(self.error(self.at, Reason::Unterminated("single quote (')")));
        };
        parts.quoted(&rest[..len]);
        self.at += len + 2;
        Ok(())
    }

    fn double_quoted(&mut self, parts: &mut Parts) -> Result<(), SyntaxError> {
        let start = self.at;
        self.at += 1;
        // Only quotes with nothing in them make a word of themselves: `"$@"` may stand for none at
        // all.
        if self.peek() == Some(b'"') {
            parts.quoted(b"");
        }
        loop {
            match self.peek() {
                None => return Err(self.error(start, Reason::Unterminated("double quote (\")"))),
                Some(b'"') => break,
                Some(b'\\') => self.escaped_in_quotes(parts, b"$`\"\\"),
                Some(b'$' | b'`') => self.expansion(parts, true)?,
                Some(byte) => {
                    parts.push(byte, true);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(())
    }

    /// `\` outside quotes: the next byte is itself; a line break vanishes.
    fn escaped(&mut self, parts: &mut Parts) {
        self.at += 1;
        match self.peek() {
            Some(b'\n') => self.at += 1,
            Some(byte) => {
                parts.push(byte, true);
                self.at += 1;
            }
            None => parts.push(b'\\', true),
        }
    }

    /// `\` in double quotes: only in front of one of `special` and a line break does it mean
    /// anything.
    fn escaped_in_quotes(&mut self, parts: &mut Parts, special: &[u8]) {
        self.at += 1;
        match self.peek() {
            Some(b'\n') => self.at += 1,
            Some(byte) if special.contains(&byte) => {
                parts.push(byte, true);
                self.at += 1;
            }
            _ => parts.push(b'\\', true),
        }
    }

    /// At `$` or a backquote.
    fn expansion(&mut self, parts: &mut Parts, quoted: bool) -> Result<(), SyntaxError> {
        if self.peek() == Some(b'`') {
            let text = self.backquoted(quoted)?;
            parts.part(Part::Command { text, quoted });
        } else if let Some(end) = self.arithmetic_end() {
            let mut inner = Lexer::inner(self.depth, &self.text[self.at + 3..end]);
            inner.enter()?;
            let expression = inner.quoted_text()?;
            self.at = end + 2;
            parts.part(Part::Arithmetic { expression, quoted });
        } else if self.looking_at(b"$(") {
            let text = self.substitution()?;
            parts.part(Part::Command { text, quoted });
        } else if self.looking_at(b"${") {
            let part = self.braced(quoted)?;
            parts.part(part);
        } else {
            self.at += 1;
            match self.parameter(false) {
                Some(name) => parts.part(Part::Parameter {
                    name,
                    quoted,
                    operation: Operation::Plain,
                }),
                None => parts.push(b'$', true),
            }
        }
        Ok(())
    }

    fn backquoted(&mut self, quoted: bool) -> Result<Vec<u8>, SyntaxError> {
        let start = self.at;
        let mut text = Vec::new();
        self.at += 1;
        loop {
            match (self.peek(), self.text.get(self.at + 1)) {
                (None, _) => return Err(self.error(start, Reason::Unterminated("backquote (`)"))),
                (Some(b'`'), _) => break,
                (Some(b'\\'), Some(&next))
                    if matches!(next, b'`' | b'\\' | b'$') || (quoted && next == b'"') =>
                {
                    text.push(next);
                    self.at += 2;
                }
                (Some(byte), _) => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(text)
    }

    /// At `$((` that is closed by `))`: where that stands. Otherwise it is a substitution that
    /// begins with `(`.
    fn arithmetic_end(&self) -> Option<usize> {
        if !self.looking_at(b"$((") {
            return None;
        }
        let mut open = 0;
        for (offset, byte) in self.text[self.at + 3..].iter().enumerate() {
            match byte {
                b'(' => open += 1,
                b')' if open > 0 => open -= 1,
                b')' => {
                    let end = self.at + 3 + offset;
                    return (self.text.get(end + 1) == Some(&b')')).then_some(end);
                }
                _ => {}
            }
        }
        None
    }

    /// At `$(`: the text up to the `)` that ends the commands.
    fn substitution(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let start = self.at;
        self.enter()?;
        let mut inner = Lexer::new(self.text, start + 2);
        inner.depth = self.depth;
        inner.whole = self.whole;
        let end = Parser::new(inner)?.up_to_parenthesis(start)?;
        self.depth -= 1;
        self.at = end + 1;
        Ok(self.text[start + 2..end].to_vec())
    }

    /// At `${`.
    fn braced(&mut self, quoted: bool) -> Result<Part, SyntaxError> {
        let start = self.at;
        self.at += 2;
        let bad = self.error(start, Reason::BadParameter);
        let length = self.peek() == Some(b'#') && !self.looking_at(b"#}");
        if length {
            self.at += 1;
        }
        let name = match (self.parameter(true), length) {
            (Some(name), _) => name,
            // `${#-word}`, `${#%pattern}`: the count after all.
            (None, true) => Parameter::Count,
            (None, false) => return Err(self.or_unterminated(start, bad)),
        };
        let counted = length && name != Parameter::Count;
        let operation = match counted {
            true => Operation::Length,
            false => self.operation(quoted)?,
        };
        match self.peek() {
            Some(b'}') => self.at += 1,
            _ => return Err(self.or_unterminated(start, bad)),
        }
        Ok(Part::Parameter {
            name,
            quoted,
            operation,
        })
    }

    /// `bad`, unless the source just ends here.
    fn or_unterminated(&self, start: usize, bad: SyntaxError) -> SyntaxError {
        match self.peek() {
            None => self.error(start, Reason::Unterminated("brace (${)")),
            Some(_) => bad,
        }
    }

    fn operation(&mut self, quoted: bool) -> Result<Operation, SyntaxError> {
        let or_empty = self.looking_at(b":");
        let sign = self.text.get(self.at + usize::from(or_empty)).copied();
        let kind = match sign {
            Some(b'-') => AlternativeKind::Default,
            Some(b'=') => AlternativeKind::Assign,
            Some(b'?') => AlternativeKind::Require,
            Some(b'+') => AlternativeKind::Instead,
            Some(sign @ (b'#' | b'%')) if !or_empty => return self.cut(sign),
            _ => return Ok(Operation::Plain),
        };
        self.at += usize::from(or_empty) + 1;
        let place = match quoted {
            true => Place::QuotedBraces,
            false => Place::Braces,
        };
        Ok(Operation::Alternative {
            kind,
            or_empty,
            word: self.word(place)?,
        })
    }

    fn cut(&mut self, sign: u8) -> Result<Operation, SyntaxError> {
        let longest = self.looking_at(&[sign, sign]);
        self.at += 1 + usize::from(longest);
        Ok(Operation::Cut {
            suffix: sign == b'%',
            longest,
            pattern: self.word(Place::Braces)?,
        })
    }

    /// What stands behind `$`; `None` (and nothing read) if it is nothing that a `$` can stand
    /// before.
    fn parameter(&mut self, braced: bool) -> Option<Parameter> {
        let rest = &self.text[self.at..];
        let (parameter, len) = match *rest.first()? {
            b'?' => (Parameter::Status, 1),
            b'$' => (Parameter::Pid, 1),
            b'!' => (Parameter::Background, 1),
            b'#' => (Parameter::Count, 1),
            b'-' => (Parameter::Flags, 1),
            b'@' => (Parameter::Each, 1),
            b'*' => (Parameter::Joined, 1),
            b'0'..=b'9' => {
                let most = if braced { rest.len() } else { 1 };
                let digits = rest[..most]
                    .iter()
                    .take_while(|byte| byte.is_ascii_digit())
                    .count();
                let number = core::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
                (Parameter::Positional(number), digits)
            }
            _ => {
                let name = leading_name(rest)?;
                (Parameter::Named(name.to_string()), name.len())
            }
        };
        self.at += len;
        Some(parameter)
    }
}

/// The variable name that `text` starts with.
pub(crate) fn leading_name(text: &[u8]) -> Option<&str> {
    let first = *text.first()?;
    if !(first.is_ascii_alphabetic() || first == b'_') {
        return None;
    }
    let len = text
        .iter()
        .take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_')
        .count();
    core::str::from_utf8(&text[..len]).ok()
}

/// `text` if it is a variable name and nothing else.
pub(crate) fn whole_name(text: &[u8]) -> Option<&str> {
    leading_name(text).filter(|name| name.len() == text.len())
}

/// Parts being collected; neighbouring text of the same kind is joined.
#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn push(&mut self, byte: u8, quote: bool) {
        match self.0.last_mut() {
            Some(Part::Text { bytes, quoted }) if *quoted == quote => bytes.push(byte),
            _ => self.0.push(Part::Text {
                bytes: Vec::from([byte]),
                quoted: quote,
            }),
        }
    }

    fn quoted(&mut self, text: &[u8]) {
        match self.0.last_mut() {
            Some(Part::Text {
                bytes,
                quoted: true,
            }) => bytes.extend_from_slice(text),
            _ => self.0.push(Part::Text {
                bytes: text.to_vec(),
                quoted: true,
            }),
        }
    }

    fn part(&mut self, part: Part) {
        self.0.push(part);
    }

    fn finish(self) -> Word {
        Word { parts: self.0 }
    }
}
