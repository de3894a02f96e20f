//! Cuts shell source into tokens. Words keep their inner structure ([`Part`]s), so that quotes need not be
//! looked at again when the word is expanded.

use crate::MOST_NESTING;
use crate::ast::{Alternative, Parameter, Part, Word};
use crate::error::{Reason, SyntaxError};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word.
    Word(Word),
    /// `| || & && ; < > >> <& >& ( )`
    Operator(&'static str),
    /// A descriptor number right in front of `<` or `>`.
    Number(usize),
    /// The end of a line.
    Newline,
    /// The end of the source.
    End,
}

/// A token with its place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// What it is.
    pub kind: Kind,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset behind its last byte.
    pub end: usize,
}

/// The longest first, so that `&&` is not read as two `&`.
const OPERATORS: [&str; 14] = [
    "<<", ";;", "&&", "||", ">>", ">&", "<&", ">|", "|", "&", ";", "<", ">", "(",
];

/// Reads tokens from source text.
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of `text`.
    pub fn new(text: &'a [u8]) -> Self {
        Lexer {
            text,
            at: 0,
            depth: 0,
        }
    }

    /// An error at byte `offset`.
    pub fn error(&self, offset: usize, reason: Reason) -> SyntaxError {
        let before = &self.text[..offset.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let incomplete = matches!(reason, Reason::Unterminated(_));
        SyntaxError {
            line,
            reason,
            incomplete,
        }
    }

    /// The next token.
    pub fn next(&mut self) -> Result<Token, SyntaxError> {
        self.skip_blanks();
        let start = self.at;
        let kind = match self.peek() {
            None => Kind::End,
            Some(b'\n') => {
                self.at += 1;
                Kind::Newline
            }
            Some(_) => match self.operator()? {
                Some(operator) => Kind::Operator(operator),
                None => self.word_or_number()?,
            },
        };
        Ok(Token {
            kind,
            start,
            end: self.at,
        })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn looking_at(&self, what: &[u8]) -> bool {
        self.text[self.at..].starts_with(what)
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'\\') if self.looking_at(b"\\\n") => self.at += 2,
                Some(b'#') => {
                    let rest = &self.text[self.at..];
                    self.at += rest
                        .iter()
                        .position(|&byte| byte == b'\n')
                        .unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn operator(&mut self) -> Result<Option<&'static str>, SyntaxError> {
        if self.looking_at(b")") {
            self.at += 1;
            return Ok(Some(")"));
        }
        let found = OPERATORS
            .into_iter()
            .find(|operator| self.looking_at(operator.as_bytes()));
        match found {
            Some("<<") => {
                Err(self.error(self.at, Reason::Unsupported("here-documents (`<<`) are")))
            }
            Some(operator) => {
                self.at += operator.len();
                Ok(Some(if operator == ">|" { ">" } else { operator }))
            }
            None => Ok(None),
        }
    }

    fn word_or_number(&mut self) -> Result<Kind, SyntaxError> {
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && matches!(rest.get(digits), Some(b'<' | b'>')) {
            let number = String::from_utf8_lossy(&rest[..digits]);
            return match number.parse() {
                Ok(number @ 0..=2) => {
                    self.at += digits;
                    Ok(Kind::Number(number))
                }
                _ => Err(self.error(self.at, Reason::BadDescriptor(number.to_string()))),
            };
        }
        Ok(Kind::Word(self.word(false)?))
    }

    /// A word up to a blank or operator, or up to (without) `}` if it stands `in_braces`.
    fn word(&mut self, in_braces: bool) -> Result<Word, SyntaxError> {
        self.enter()?;
        let mut parts = Parts::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'}' if in_braces => break,
                b' ' | b'\t' | b'\r' | b'\n' | b'|' | b'&' | b';' | b'<' | b'>' | b'(' | b')'
                    if !in_braces =>
                {
                    break;
                }
                b'\'' => self.single_quoted(&mut parts)?,
                b'"' => self.double_quoted(&mut parts)?,
                b'\\' => self.escaped(&mut parts),
                b'$' | b'`' => self.expansion(&mut parts, false)?,
                _ => {
                    parts.push(byte, false);
                    self.at += 1;
                }
            }
        }
        self.depth -= 1;
        Ok(parts.finish())
    }

    fn enter(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        match self.depth > MOST_NESTING {
            true => Err(self.error(self.at, Reason::TooDeep)),
            false => Ok(()),
        }
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
        parts.quoted(b"");
        loop {
            match self.peek() {
                None => return Err(self.error(start, Reason::Unterminated("double quote (\")"))),
                Some(b'"') => break,
                Some(b'\\') => self.escaped_in_quotes(parts),
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

    /// `\` in double quotes: only in front of `$`, a backquote, `"`, `\` and a line break is it special.
    fn escaped_in_quotes(&mut self, parts: &mut Parts) {
        self.at += 1;
        match self.peek() {
            Some(b'\n') => self.at += 1,
            Some(byte @ (b'$' | b'`' | b'"' | b'\\')) => {
                parts.push(byte, true);
                self.at += 1;
            }
            _ => parts.push(b'\\', true),
        }
    }

    /// At `$` or a backquote.
    fn expansion(&mut self, parts: &mut Parts, quoted: bool) -> Result<(), SyntaxError> {
        if self.peek() == Some(b'`') {
            let text = self.backquoted()?;
            parts.part(Part::Command { text, quoted });
        } else if self.looking_at(b"$((") {
            return Err(self.error(self.at, Reason::Unsupported("arithmetic (`$((`) is")));
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
                    alternative: None,
                }),
                None => parts.push(b'$', true),
            }
        }
        Ok(())
    }

    fn backquoted(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let start = self.at;
        let mut text = Vec::new();
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.error(start, Reason::Unterminated("backquote (`)"))),
                Some(b'`') => break,
                Some(b'\\') if matches!(self.text.get(self.at + 1), Some(b'`' | b'\\' | b'$')) => {
                    text.push(self.text[self.at + 1]);
                    self.at += 2;
                }
                Some(byte) => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Ok(text)
    }

    /// At `$(`: the text up to the matching `)`.
    fn substitution(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let start = self.at;
        self.at += 2;
        let inside = self.at;
        self.skip_to_parenthesis(start)?;
        Ok(self.text[inside..self.at - 1].to_vec())
    }

    /// Goes on to behind the `)` that closes what was opened at `start`, over quotes and inner pairs.
    pub fn skip_to_parenthesis(&mut self, start: usize) -> Result<(), SyntaxError> {
        let mut open = 1;
        while open > 0 {
            match self.peek() {
                None => return Err(self.error(start, Reason::Unterminated("parenthesis"))),
                Some(b'(') => open += 1,
                Some(b')') => open -= 1,
                Some(b'\\') => self.at += 1,
                Some(b'\'') => {
                    self.single_quoted(&mut Parts::default())?;
                    continue;
                }
                Some(b'"') => {
                    self.enter()?;
                    self.double_quoted(&mut Parts::default())?;
                    self.depth -= 1;
                    continue;
                }
                Some(_) => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// At `${`.
    fn braced(&mut self, quoted: bool) -> Result<Part, SyntaxError> {
        let start = self.at;
        self.at += 2;
        let bad = self.error(start, Reason::BadParameter);
        let name = self.parameter(true).ok_or(bad.clone())?;
        let alternative = self.alternative()?;
        match self.peek() {
            Some(b'}') => self.at += 1,
            None => return Err(self.error(start, Reason::Unterminated("brace (${)"))),
            Some(_) => return Err(bad),
        }
        Ok(Part::Parameter {
            name,
            quoted,
            alternative,
        })
    }

    fn alternative(&mut self) -> Result<Option<Alternative>, SyntaxError> {
        let or_empty = self.looking_at(b":");
        let sign = self.text.get(self.at + usize::from(or_empty));
        let (Some(b'-') | Some(b'+')) = sign else {
            return Ok(None);
        };
        let if_set = sign == Some(&b'+');
        self.at += usize::from(or_empty) + 1;
        Ok(Some(Alternative {
            or_empty,
            if_set,
            word: self.word(true)?,
        }))
    }

    /// What stands behind `$`; `None` (and nothing read) if it is nothing that a `$` can stand before.
    fn parameter(&mut self, braced: bool) -> Option<Parameter> {
        let rest = &self.text[self.at..];
        let (parameter, len) = match *rest.first()? {
            b'?' => (Parameter::Status, 1),
            b'$' => (Parameter::Pid, 1),
            b'!' => (Parameter::Background, 1),
            b'#' => (Parameter::Count, 1),
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
