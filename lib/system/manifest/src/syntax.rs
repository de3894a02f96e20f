//! The file format: a subset of TOML.
//!
//! There are comments (`#`), table headers (`[a.b]`, bare keys only), and `key = value` with a
//! value that is a string (`"..."` with the escapes `\" \\ \n \t`), an integer (decimal or `0x`,
//! `_` between digits), `true` or `false`, an array of strings, or an inline table. Arrays and
//! inline tables may run over several lines and may end in a comma. A value in an inline table is a
//! string, an integer or a boolean, so nothing nests deeper, and the parser needs no recursion.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// What is wrong with a manifest, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The line, counted from 1.
    pub line: u32,
    /// What is wrong and what was expected.
    pub message: String,
}

impl Error {
    /// An error at a line.
    pub fn new(line: u32, message: impl Into<String>) -> Self {
        Error {
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl core::error::Error for Error {}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A string.
    String(String),
    /// An integer.
    Integer(i64),
    /// A boolean.
    Bool(bool),
    /// An array of strings.
    Strings(Vec<String>),
    /// An inline table of simple values.
    Table(Vec<Entry>),
}

impl Value {
    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::String(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Bool(_) => "a boolean",
            Value::Strings(_) => "an array",
            Value::Table(_) => "an inline table",
        }
    }
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Value,
    /// The line of the key.
    pub line: u32,
}

/// A table header with what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The parts of the header, as `["domain", "pci"]`.
    pub path: Vec<String>,
    /// The line of the header.
    pub line: u32,
    /// Its entries, in order.
    pub entries: Vec<Entry>,
}

/// Reads a file into its sections, in order.
///
/// # Errors
/// The first thing that is not in the format, or a key or header that comes twice.
pub fn parse(text: &str) -> Result<Vec<Section>, Error> {
    let mut reader = Reader {
        rest: text,
        line: 1,
    };
    let mut sections: Vec<Section> = Vec::new();
    loop {
        reader.skip_blank();
        let Some(next) = reader.peek() else {
            return Ok(sections);
        };
        if next == '[' {
            let section = reader.header()?;
            if let Some(first) = sections.iter().find(|other| other.path == section.path) {
                let name = section.path.join(".");
                return Err(Error::new(
                    section.line,
                    format!("table [{name}] was there in line {} already", first.line),
                ));
            }
            sections.push(section);
        } else {
            let entry = reader.entry()?;
            reader.end_of_line()?;
            let Some(section) = sections.last_mut() else {
                let message = format!(
                    "expected a table header such as [boot] before the key `{}`",
                    entry.key
                );
                return Err(Error::new(entry.line, message));
            };
            insert(&mut section.entries, entry)?;
        }
    }
}

fn insert(entries: &mut Vec<Entry>, entry: Entry) -> Result<(), Error> {
    match entries.iter().find(|other| other.key == entry.key) {
        Some(first) => Err(Error::new(
            entry.line,
            format!(
                "key `{}` was there in line {} already",
                entry.key, first.line
            ),
        )),
        None => {
            entries.push(entry);
            Ok(())
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: u32,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        self.line += u32::from(next == '\n');
        Some(next)
    }

    fn eat(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.next();
        }
        there
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.next();
        }
    }

    fn skip_comment(&mut self) {
        if self.peek() == Some('#') {
            while !matches!(self.peek(), None | Some('\n')) {
                self.next();
            }
        }
    }

    /// Skips spaces, line ends and comments.
    fn skip_blank(&mut self) {
        while let Some(next) = self.peek() {
            match next {
                ' ' | '\t' | '\r' | '\n' => drop(self.next()),
                '#' => self.skip_comment(),
                _ => return,
            }
        }
    }

    /// An error that says what is there instead of what was expected.
    fn expected(&self, what: &str) -> Error {
        let there = match self.peek() {
            None => "the end of the file".to_owned(),
            Some('\n' | '\r') => "the end of the line".to_owned(),
            Some(other) => format!("`{other}`"),
        };
        Error::new(self.line, format!("expected {what}, found {there}"))
    }

    fn expect(&mut self, wanted: char, why: &str) -> Result<(), Error> {
        if self.eat(wanted) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{wanted}` {why}")))
        }
    }

    fn end_of_line(&mut self) -> Result<(), Error> {
        self.skip_spaces();
        self.skip_comment();
        self.eat('\r');
        if self.peek().is_none() || self.eat('\n') {
            Ok(())
        } else {
            Err(self.expected("the end of the line"))
        }
    }

    /// The longest run of characters that a bare key may have.
    fn bare(&mut self) -> String {
        let end = self
            .rest
            .find(|c: char| !is_bare(c))
            .unwrap_or(self.rest.len());
        let (bare, rest) = self.rest.split_at(end);
        self.rest = rest;
        bare.to_owned()
    }

    fn key(&mut self) -> Result<String, Error> {
        let key = self.bare();
        if key.is_empty() {
            Err(self.expected("a name of letters, digits, `-` and `_`"))
        } else {
            Ok(key)
        }
    }

    fn header(&mut self) -> Result<Section, Error> {
        let line = self.line;
        self.expect('[', "at the start of a table header")?;
        let mut path = Vec::new();
        loop {
            path.push(self.key()?);
            if !self.eat('.') {
                break;
            }
        }
        self.expect(']', "at the end of the table header")?;
        self.end_of_line()?;
        Ok(Section {
            path,
            line,
            entries: Vec::new(),
        })
    }

    /// `key = value`, with any value.
    fn entry(&mut self) -> Result<Entry, Error> {
        let (key, line) = self.key_and_equals()?;
        let value = match self.peek() {
            Some('[') => self.array()?,
            Some('{') => self.table()?,
            _ => self.simple()?,
        };
        Ok(Entry { key, value, line })
    }

    fn key_and_equals(&mut self) -> Result<(String, u32), Error> {
        let line = self.line;
        let key = self.key()?;
        self.skip_spaces();
        self.expect('=', &format!("after the key `{key}`"))?;
        self.skip_spaces();
        Ok((key, line))
    }

    fn simple(&mut self) -> Result<Value, Error> {
        match self.peek() {
            Some('"') => Ok(Value::String(self.string()?)),
            Some(c) if is_bare(c) => self.word(),
            _ => {
                Err(self.expected("a value (a string in double quotes, an integer, true or false)"))
            }
        }
    }

    fn word(&mut self) -> Result<Value, Error> {
        let line = self.line;
        let word = self.bare();
        match word.as_str() {
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            _ => {}
        }
        let message = || {
            let hint = "expected a string in double quotes, an integer, true or false";
            Error::new(line, format!("{hint}, found `{word}`"))
        };
        integer(&word).map(Value::Integer).ok_or_else(message)
    }

    fn string(&mut self) -> Result<String, Error> {
        let line = self.line;
        self.expect('"', "at the start of a string")?;
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape()?),
                None | Some('\n') => {
                    return Err(Error::new(
                        line,
                        "the string is not closed: expected `\"` on the same line",
                    ));
                }
                Some(other) => text.push(other),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let escaped = match self.peek() {
            Some(same @ ('"' | '\\')) => same,
            Some('n') => '\n',
            Some('t') => '\t',
            _ => return Err(self.expected("`\"`, `\\`, `n` or `t` after `\\`")),
        };
        self.next();
        Ok(escaped)
    }

    fn array(&mut self) -> Result<Value, Error> {
        self.expect('[', "at the start of an array")?;
        let mut values = Vec::new();
        loop {
            self.skip_blank();
            if self.eat(']') {
                return Ok(Value::Strings(values));
            }
            if self.peek() != Some('"') {
                return Err(self.expected("a string in double quotes or `]` in the array"));
            }
            values.push(self.string()?);
            self.skip_blank();
            if !self.eat(',') && self.peek() != Some(']') {
                return Err(self.expected("`,` or `]` in the array"));
            }
        }
    }

    fn table(&mut self) -> Result<Value, Error> {
        self.expect('{', "at the start of an inline table")?;
        let mut entries = Vec::new();
        loop {
            self.skip_blank();
            if self.eat('}') {
                return Ok(Value::Table(entries));
            }
            let (key, line) = self.key_and_equals()?;
            let value = self.simple()?;
            insert(&mut entries, Entry { key, value, line })?;
            self.skip_blank();
            if !self.eat(',') && self.peek() != Some('}') {
                return Err(self.expected("`,` or `}` in the inline table"));
            }
        }
    }
}

fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// An integer as manifests write it: decimal or `0x`, `_` between the digits.
pub(crate) fn integer(word: &str) -> Option<i64> {
    let (negative, digits) = word
        .strip_prefix('-')
        .map_or((false, word), |digits| (true, digits));
    let (radix, digits) = digits
        .strip_prefix("0x")
        .map_or((10, digits), |digits| (16, digits));
    if digits.starts_with(['_', '-', '+']) || digits.ends_with('_') {
        return None;
    }
    let digits: String = digits.chars().filter(|&c| c != '_').collect();
    let value = i64::from_str_radix(&digits, radix).ok()?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests;
