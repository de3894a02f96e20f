//! Words to arguments: parameters and substitutions are replaced, unquoted results are split at blanks, and
//! patterns become the paths that match them.

use crate::MOST_EXPANDED;
use crate::ast::{Alternative, Parameter, Part, Word};
use crate::glob::{self, PatternByte};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// What expansion needs to know.
pub trait Environment {
    /// The value of a variable.
    fn variable(&self, name: &str) -> Option<Vec<u8>>;
    /// `$0`, `$1` ...
    fn positional(&self, index: usize) -> Option<Vec<u8>>;
    /// `$#`
    fn count(&self) -> usize;
    /// `$?`, `$$` or `$!`; `None` if there is none yet.
    fn special(&self, parameter: &Parameter) -> Option<i64>;
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
/// A substitution could not be run.
pub fn expand_words(
    words: &[Word],
    environment: &mut dyn Environment,
) -> Result<Vec<Vec<u8>>, ExpandError> {
    let mut arguments = Vec::new();
    let mut room = MOST_EXPANDED;
    for word in words {
        let mut fields = Fields::new(true, room);
        fields.word(word, false, environment)?;
        room = fields.room;
        for field in fields.finish() {
            let paths = match glob::has_wildcard(&field) {
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
/// A substitution could not be run.
pub fn expand_one(word: &Word, environment: &mut dyn Environment) -> Result<Vec<u8>, ExpandError> {
    let mut fields = Fields::new(false, MOST_EXPANDED);
    fields.word(word, false, environment)?;
    let fields: Vec<Vec<u8>> = fields.finish().iter().map(|field| plain(field)).collect();
    Ok(fields.join(&b' '))
}

fn plain(field: &[PatternByte]) -> Vec<u8> {
    field.iter().map(|byte| byte.0).collect()
}

/// Arguments being put together.
struct Fields {
    done: Vec<Vec<PatternByte>>,
    open: Option<Vec<PatternByte>>,
    splitting: bool,
    /// How many bytes more it may become.
    room: usize,
}

impl Fields {
    fn new(splitting: bool, room: usize) -> Self {
        Fields {
            done: Vec::new(),
            open: None,
            splitting,
            room,
        }
    }

    /// Takes room for `text`.
    fn take_room(&mut self, text: &[u8]) -> Result<(), ExpandError> {
        self.room = self.room.checked_sub(text.len()).ok_or_else(too_long)?;
        Ok(())
    }

    fn finish(mut self) -> Vec<Vec<PatternByte>> {
        self.done.extend(self.open);
        self.done
    }

    /// Adds text that stays in one piece. It makes an argument even if it is empty.
    fn text(&mut self, text: &[u8], active: bool) {
        let open = self.open.get_or_insert_default();
        open.extend(text.iter().map(|&byte| (byte, active)));
    }

    /// Adds text that is split at blanks.
    fn split(&mut self, text: &[u8]) {
        for &byte in text {
            if matches!(byte, b' ' | b'\t' | b'\n') {
                self.done.extend(self.open.take());
            } else {
                self.open.get_or_insert_default().push((byte, true));
            }
        }
    }

    fn value(&mut self, value: &[u8], quoted: bool) {
        match quoted || !self.splitting {
            true => self.text(value, false),
            false => self.split(value),
        }
    }

    fn word(
        &mut self,
        word: &Word,
        in_quotes: bool,
        environment: &mut dyn Environment,
    ) -> Result<(), ExpandError> {
        for part in &word.parts {
            match part {
                Part::Text { bytes, quoted } => {
                    self.take_room(bytes)?;
                    self.text(bytes, !(*quoted || in_quotes));
                }
                Part::Command { text, quoted } => {
                    let mut output = environment.substitute(text)?;
                    while output.last() == Some(&b'\n') {
                        output.pop();
                    }
                    self.take_room(&output)?;
                    self.value(&output, *quoted || in_quotes);
                }
                Part::Parameter {
                    name,
                    quoted,
                    alternative,
                } => {
                    let quoted = *quoted || in_quotes;
                    self.parameter(name, quoted, alternative.as_ref(), environment)?;
                }
            }
        }
        Ok(())
    }

    fn parameter(
        &mut self,
        name: &Parameter,
        quoted: bool,
        alternative: Option<&Alternative>,
        environment: &mut dyn Environment,
    ) -> Result<(), ExpandError> {
        let value = value_of(name, environment);
        if let Some(alternative) = alternative {
            let set = match &value {
                Some(value) => !(alternative.or_empty && value.is_empty()),
                None => false,
            };
            if set == alternative.if_set {
                return self.word(&alternative.word, quoted, environment);
            }
            if alternative.if_set {
                return Ok(());
            }
        }
        let value = value.unwrap_or_default();
        self.take_room(&value)?;
        match (name, quoted && self.splitting) {
            (Parameter::Each, true) => self.each(environment),
            _ => self.value(&value, quoted),
        }
        Ok(())
    }

    /// `"$@"`: each positional parameter is an argument; none make none.
    fn each(&mut self, environment: &mut dyn Environment) {
        for index in 1..=environment.count() {
            if index > 1 {
                self.done.extend(self.open.take());
            }
            self.text(&environment.positional(index).unwrap_or_default(), false);
        }
    }
}

fn too_long() -> ExpandError {
    ExpandError(String::from(
        "the command becomes too long when it is expanded",
    ))
}

fn value_of(name: &Parameter, environment: &mut dyn Environment) -> Option<Vec<u8>> {
    match name {
        Parameter::Named(name) => environment.variable(name),
        Parameter::Positional(index) => environment.positional(*index),
        Parameter::Count => Some(decimal(environment.count() as i64)),
        Parameter::Status | Parameter::Pid | Parameter::Background => {
            environment.special(name).map(decimal)
        }
        Parameter::Each | Parameter::Joined => {
            let all = (1..=environment.count()).filter_map(|index| environment.positional(index));
            let all: Vec<Vec<u8>> = all.collect();
            (!all.is_empty()).then(|| all.join(&b' '))
        }
    }
}

fn decimal(value: i64) -> Vec<u8> {
    alloc::format!("{value}").into_bytes()
}
