//! Words to arguments: parameters, substitutions and arithmetic are replaced, unquoted results are
//! split, and patterns become the paths that match them (POSIX, shell command language, 2.6).

use crate::MOST_EXPANDED;
use crate::arithmetic::{self, Variables};
use crate::ast::{AlternativeKind, Operation, Parameter, Part, Word};
use crate::fields::{Fields, Mode};
use crate::glob::{self, PatternByte};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// What expansion needs to know.
pub trait Environment {
    /// The value of a variable.
    fn variable(&self, name: &str) -> Option<Vec<u8>>;
    /// Sets a variable.
    ///
    /// # Errors
    /// It cannot be set; why.
    fn set_variable(&mut self, name: &str, value: Vec<u8>) -> Result<(), ExpandError>;
    /// `$0`, `$1` ...
    fn positional(&self, index: usize) -> Option<Vec<u8>>;
    /// `$#`
    fn count(&self) -> usize;
    /// `$?`, `$$` or `$!`; `None` if there is none yet.
    fn special(&self, parameter: &Parameter) -> Option<i64>;
    /// `$-`
    fn flags(&self) -> Vec<u8>;
    /// Whether a parameter without a value is an error (`set -u`).
    fn unset_is_error(&self) -> bool;
    /// Whether patterns stay as they are (`set -f`).
    fn no_patterns(&self) -> bool;
    /// Runs a command and gives its output.
    ///
    /// # Errors
    /// Why it could not be run.
    fn substitute(&mut self, command: &[u8]) -> Result<Vec<u8>, ExpandError>;
    /// The names in a directory (empty: the working directory); none if it cannot be read.
    fn list(&mut self, directory: &[u8]) -> Vec<Vec<u8>>;
}

/// Why a word has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandError(pub String);

impl fmt::Display for ExpandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The arguments that `words` stand for.
///
/// # Errors
/// Something in them has no value.
pub fn expand_words(
    words: &[Word],
    environment: &mut dyn Environment,
) -> Result<Vec<Vec<u8>>, ExpandError> {
    let mut arguments = Vec::new();
    let mut room = MOST_EXPANDED;
    for word in words {
        let mut expansion = Expansion::new(Mode::Split, room, environment);
        expansion.whole_word(word)?;
        room = expansion.fields.room();
        let fields = expansion.fields.finish();
        let no_patterns = environment.no_patterns();
        for field in fields {
            let paths = match glob::has_wildcard(&field) && !no_patterns {
                true => glob::paths(&field, &mut |directory| environment.list(directory)),
                false => None,
            };
            arguments.extend(paths.unwrap_or_else(|| Vec::from([plain(&field)])));
        }
    }
    Ok(arguments)
}

/// The text that `word` stands for where there can be only one, as in an assignment: not split, and
/// without patterns.
///
/// # Errors
/// As [`expand_words`].
pub fn expand_one(word: &Word, environment: &mut dyn Environment) -> Result<Vec<u8>, ExpandError> {
    let mut expansion = Expansion::new(Mode::Single, MOST_EXPANDED, environment);
    expansion.whole_word(word)?;
    Ok(plain(&expansion.fields.finish().concat()))
}

/// The value that `word` stands for in an assignment: as [`expand_one`], with a `~` also behind
/// each `:` (POSIX, 2.6.1).
///
/// # Errors
/// As [`expand_words`].
pub fn expand_value(
    word: &Word,
    environment: &mut dyn Environment,
) -> Result<Vec<u8>, ExpandError> {
    let has_tilde =
        |part: &Part| matches!(part, Part::Text { bytes, quoted: false } if bytes.contains(&b'~'));
    match environment.variable("HOME") {
        Some(home) if word.parts.iter().any(has_tilde) => {
            let parts = word.parts.iter().enumerate();
            let parts = parts.flat_map(|(index, part)| match part {
                Part::Text {
                    bytes,
                    quoted: false,
                } => {
                    let is_last = index + 1 == word.parts.len();
                    with_homes(bytes, index == 0, is_last, &home)
                }
                other => Vec::from([other.clone()]),
            });
            let word = Word {
                parts: parts.collect(),
            };
            expand_one(&word, environment)
        }
        _ => expand_one(word, environment),
    }
}

/// An unquoted text, in which `home` takes the place of each `~` between the start of the word or a
/// `:` and a `/`, a `:` or the end of the word.
fn with_homes(text: &[u8], is_first: bool, is_last: bool, home: &[u8]) -> Vec<Part> {
    let part = |bytes: &[u8], quoted| Part::Text {
        bytes: bytes.to_vec(),
        quoted,
    };
    let count = text.split(|&byte| byte == b':').count();
    let mut parts = Vec::new();
    for (index, piece) in text.split(|&byte| byte == b':').enumerate() {
        if index > 0 {
            parts.push(part(b":", false));
        }
        let starts = index > 0 || is_first;
        let ends = index + 1 < count || is_last;
        match piece.strip_prefix(b"~").filter(|_| starts) {
            Some(rest) if rest.first() == Some(&b'/') || rest.is_empty() && ends => {
                parts.extend([part(home, true), part(rest, false)]);
            }
            _ => parts.push(part(piece, false)),
        }
    }
    parts
}

/// The pattern that `word` stands for.
///
/// # Errors
/// As [`expand_words`].
pub fn expand_pattern(
    word: &Word,
    environment: &mut dyn Environment,
) -> Result<Vec<PatternByte>, ExpandError> {
    let mut expansion = Expansion::new(Mode::Pattern, MOST_EXPANDED, environment);
    expansion.whole_word(word)?;
    Ok(expansion.fields.finish().concat())
}

fn plain(field: &[PatternByte]) -> Vec<u8> {
    field.iter().map(|byte| byte.0).collect()
}

/// A word being expanded.
struct Expansion<'a> {
    fields: Fields,
    environment: &'a mut dyn Environment,
}

impl<'a> Expansion<'a> {
    fn new(mode: Mode, room: usize, environment: &'a mut dyn Environment) -> Self {
        let separators = environment.variable("IFS");
        Expansion {
            fields: Fields::new(mode, room, separators),
            environment,
        }
    }

    /// A word with a `~` in front, if it has one.
    fn whole_word(&mut self, word: &Word) -> Result<(), ExpandError> {
        let mut first = None;
        if let Some(Part::Text {
            bytes,
            quoted: false,
        }) = word.parts.first()
            && let Some(rest) = bytes.strip_prefix(b"~")
            && matches!(
                (rest.first(), word.parts.len()),
                (Some(b'/'), _) | (None, 1)
            )
            && let Some(home) = self.environment.variable("HOME")
        {
            self.fields.text(&home, false)?;
            first = Some(rest);
        }
        match first {
            Some(rest) => {
                self.fields.text(rest, true)?;
                self.parts(&word.parts[1..], false, false)
            }
            None => self.parts(&word.parts, false, false),
        }
    }

    /// Parts, `in_quotes` or not. As the word of `${NAME-word}` their plain text is split as well.
    fn parts(
        &mut self,
        parts: &[Part],
        in_quotes: bool,
        alternative: bool,
    ) -> Result<(), ExpandError> {
        for part in parts {
            match part {
                Part::Text { bytes, quoted } => match *quoted || in_quotes {
                    true => self.fields.text(bytes, false)?,
                    false if alternative => self.fields.value(bytes, false)?,
                    false => self.fields.text(bytes, true)?,
                },
                Part::Command { text, quoted } => {
                    let mut output = self.environment.substitute(text)?;
                    let end = output.iter().rposition(|&byte| byte != b'\n');
                    output.truncate(end.map_or(0, |end| end + 1));
                    // An argument cannot have a zero byte in it.
                    output.retain(|&byte| byte != 0);
                    self.fields.value(&output, *quoted || in_quotes)?;
                }
                Part::Arithmetic { expression, quoted } => {
                    let value = self.arithmetic(expression)?;
                    self.fields.value(&decimal(value), *quoted || in_quotes)?;
                }
                Part::Parameter {
                    name,
                    quoted,
                    operation,
                } => self.parameter(name, *quoted || in_quotes, operation)?,
            }
        }
        Ok(())
    }

    fn arithmetic(&mut self, expression: &Word) -> Result<i64, ExpandError> {
        let text = expand_one(expression, self.environment)?;
        let mut variables = Through(self.environment);
        arithmetic::evaluate(&text, &mut variables).map_err(ExpandError)
    }

    fn parameter(
        &mut self,
        name: &Parameter,
        quoted: bool,
        operation: &Operation,
    ) -> Result<(), ExpandError> {
        match operation {
            Operation::Plain => self.plain_value(name, quoted),
            Operation::Length => {
                let value = self.needed_value(name)?;
                self.fields.value(&decimal(length(&value)), quoted)
            }
            Operation::Alternative {
                kind,
                or_empty,
                word,
            } => self.alternative(name, quoted, *kind, *or_empty, word),
            Operation::Cut {
                suffix,
                longest,
                pattern,
            } => {
                let value = self.needed_value(name)?;
                let pattern = expand_pattern(pattern, self.environment)?;
                let rest = glob::cut(&pattern, &value, *suffix, *longest);
                self.fields.value(rest, quoted)
            }
        }
    }

    fn plain_value(&mut self, name: &Parameter, quoted: bool) -> Result<(), ExpandError> {
        let separate = match name {
            Parameter::Each => self.fields.is_splitting(),
            Parameter::Joined => self.fields.is_splitting() && !quoted,
            _ => false,
        };
        if !separate {
            let value = self.needed_value(name)?;
            return self.fields.value(&value, quoted);
        }
        for index in 1..=self.environment.count() {
            if index > 1 {
                self.fields.end_field();
            }
            let value = self.environment.positional(index).unwrap_or_default();
            self.fields.value(&value, quoted)?;
        }
        Ok(())
    }

    fn alternative(
        &mut self,
        name: &Parameter,
        quoted: bool,
        kind: AlternativeKind,
        or_empty: bool,
        word: &Word,
    ) -> Result<(), ExpandError> {
        let set = match self.value_of(name) {
            Some(value) => !(or_empty && value.is_empty()),
            None => false,
        };
        match (kind, set) {
            (AlternativeKind::Instead, true) | (AlternativeKind::Default, false) => {
                self.parts(&word.parts, quoted, true)
            }
            (AlternativeKind::Instead, false) => match quoted {
                true => self.fields.text(b"", false),
                false => Ok(()),
            },
            (_, true) => self.plain_value(name, quoted),
            (AlternativeKind::Assign, false) => {
                let value = expand_one(word, self.environment)?;
                let Parameter::Named(variable) = name else {
                    return Err(ExpandError("bad variable name in `${...=...}`".to_string()));
                };
                self.environment.set_variable(variable, value.clone())?;
                self.fields.value(&value, quoted)
            }
            (AlternativeKind::Require, false) => {
                let message = expand_one(word, self.environment)?;
                let message = match message.is_empty() {
                    true => "parameter not set or null".to_string(),
                    false => String::from_utf8_lossy(&message).into_owned(),
                };
                Err(ExpandError(alloc::format!("{}: {message}", name_of(name))))
            }
        }
    }

    /// The value, or nothing, unless that is an error.
    fn needed_value(&self, name: &Parameter) -> Result<Vec<u8>, ExpandError> {
        match self.value_of(name) {
            Some(value) => Ok(value),
            None if self.environment.unset_is_error()
                && !matches!(name, Parameter::Each | Parameter::Joined) =>
            {
                let name = name_of(name);
                Err(ExpandError(alloc::format!("{name}: parameter not set")))
            }
            None => Ok(Vec::new()),
        }
    }

    fn value_of(&self, name: &Parameter) -> Option<Vec<u8>> {
        let environment = &*self.environment;
        match name {
            Parameter::Named(name) => environment.variable(name),
            Parameter::Positional(index) => environment.positional(*index),
            Parameter::Count => Some(decimal(environment.count() as i64)),
            Parameter::Flags => Some(environment.flags()),
            Parameter::Status | Parameter::Pid | Parameter::Background => {
                environment.special(name).map(decimal)
            }
            Parameter::Each | Parameter::Joined => {
                let all = (1..=environment.count()).filter_map(|i| environment.positional(i));
                let all: Vec<Vec<u8>> = all.collect();
                let between = match name {
                    Parameter::Joined => self.fields.joiner(),
                    _ => &b" "[..],
                };
                (!all.is_empty()).then(|| all.join(between))
            }
        }
    }
}

/// The variables of an environment, for expressions.
struct Through<'a>(&'a mut dyn Environment);

impl Variables for Through<'_> {
    fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.0.variable(name)
    }

    fn set(&mut self, name: &str, value: i64) -> Result<(), String> {
        let set = self.0.set_variable(name, decimal(value));
        set.map_err(|error| error.0)
    }
}

/// What `${#NAME}` counts: bytes, as dash does.
fn length(value: &[u8]) -> i64 {
    value.len() as i64
}

fn name_of(name: &Parameter) -> String {
    match name {
        Parameter::Named(name) => name.clone(),
        Parameter::Positional(index) => index.to_string(),
        Parameter::Status => "?".to_string(),
        Parameter::Pid => "$".to_string(),
        Parameter::Background => "!".to_string(),
        Parameter::Count => "#".to_string(),
        Parameter::Flags => "-".to_string(),
        Parameter::Each => "@".to_string(),
        Parameter::Joined => "*".to_string(),
    }
}

fn decimal(value: i64) -> Vec<u8> {
    value.to_string().into_bytes()
}
