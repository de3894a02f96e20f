//! Cuts shell source into tokens. Words keep their inner structure ([`Part`](crate::ast::Part)s),
//! so that quotes need not be looked at again when the word is expanded; they are read in
//! [`word`](crate::word).

use crate::MOST_NESTING;
use crate::ast::{Document, Part, Word};
use crate::error::{Reason, SyntaxError};
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word.
    Word(Word),
    /// `| || & && ; ;; < > >> << <<- <& >& ( )`
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
const OPERATORS: [&str; 17] = [
    "<<-", "<<", "<>", ";;", "&&", "||", ">>", ">&", "<&", ">|", "|", "&", ";", "<", ">", "(", ")",
];

/// A here-document whose text stands behind the end of the line.
pub(crate) struct Pending {
    /// The line that ends it.
    pub delimiter: Vec<u8>,
    /// `<<-`: tabs in front of each line go away.
    pub strip: bool,
    /// The delimiter was quoted: nothing in the text is special.
    pub literal: bool,
    /// Where the text goes.
    pub document: Document,
}

/// Reads tokens from source text.
pub(crate) struct Lexer<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) at: usize,
    /// How deep what is read now is nested, in words and commands.
    pub(crate) depth: usize,
    /// The source is whole: its end also ends a here-document.
    pub(crate) whole: bool,
    pending: Vec<Pending>,
}

impl<'a> Lexer<'a> {
    /// A lexer at byte `at` of `text`.
    pub fn new(text: &'a [u8], at: usize) -> Self {
        Lexer {
            text,
            at,
            depth: 0,
            whole: false,
            pending: Vec::new(),
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
            None => {
                self.read_documents()?;
                Kind::End
            }
            Some(b'\n') => {
                self.at += 1;
                self.read_documents()?;
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

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(crate) fn looking_at(&self, what: &[u8]) -> bool {
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
        let found = OPERATORS
            .into_iter()
            .find(|operator| self.looking_at(operator.as_bytes()));
        match found {
            Some("<>") => Err(self.error(self.at, Reason::Unsupported("`<>` is"))),
            Some(operator) => {
                self.at += operator.len();
                Ok(Some(operator))
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
                Ok(number @ 0..=9) => {
                    self.at += digits;
                    Ok(Kind::Number(number))
                }
                _ => Err(self.error(self.at, Reason::BadDescriptor(number.to_string()))),
            };
        }
        Ok(Kind::Word(self.word(crate::word::Place::Command)?))
    }

    /// Goes one level deeper.
    pub(crate) fn enter(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        match self.depth > MOST_NESTING {
            true => Err(self.error(self.at, Reason::TooDeep)),
            false => Ok(()),
        }
    }

    /// Notes a here-document that begins at the next line.
    pub fn expect_document(&mut self, pending: Pending) {
        self.pending.push(pending);
    }

    fn read_documents(&mut self) -> Result<(), SyntaxError> {
        for pending in core::mem::take(&mut self.pending) {
            let text = self.document_text(&pending)?;
            let word = match pending.literal {
                true => Word {
                    parts: Vec::from([Part::Text {
                        bytes: text,
                        quoted: true,
                    }]),
                },
                false => Lexer::inner(self.depth, &text).quoted_text()?,
            };
            *pending.document.borrow_mut() = word;
        }
        Ok(())
    }

    /// A lexer for a text inside another one, which is nested as deep as `depth` says.
    pub(crate) fn inner(depth: usize, text: &'a [u8]) -> Self {
        let mut lexer = Lexer::new(text, 0);
        lexer.depth = depth;
        lexer
    }

    /// The lines up to the delimiter.
    fn document_text(&mut self, pending: &Pending) -> Result<Vec<u8>, SyntaxError> {
        let start = self.at;
        let mut text = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            if rest.is_empty() {
                return match self.whole {
                    true => Ok(text),
                    false => Err(self.error(start, Reason::Unterminated("here-document"))),
                };
            }
            let end = rest.iter().position(|&byte| byte == b'\n');
            let end = end.map_or(rest.len(), |end| end + 1);
            self.at += end;
            let mut line = &rest[..end];
            while pending.strip && line.first() == Some(&b'\t') {
                line = &line[1..];
            }
            if line.strip_suffix(b"\n").unwrap_or(line) == pending.delimiter {
                return Ok(text);
            }
            text.extend_from_slice(line);
        }
    }
}

/// A place for a here-document's text.
pub(crate) fn new_document() -> Document {
    Rc::new(RefCell::new(Word::default()))
}
