//! Command-line options as POSIX has them: `-a -b`, `-ab`, `-n 5`, `-n5`, `--`; options may also
//! stand behind operands.

use alloc::vec::Vec;
use core::fmt;

/// A command line taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    flags: Vec<(u8, Option<Vec<u8>>)>,
    /// What is not an option, in order.
    pub operands: Vec<Vec<u8>>,
    /// `--help` was given.
    pub help: bool,
}

/// Why a command line makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// There is no such option.
    Unknown(Vec<u8>),
    /// The option needs a value.
    MissingValue(char),
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Unknown(option) => {
                write!(
                    f,
                    "unknown option `{}`",
                    alloc::string::String::from_utf8_lossy(option)
                )
            }
            OptionError::MissingValue(option) => write!(f, "option `-{option}` needs a value"),
        }
    }
}

impl Options {
    /// Takes `arguments` (without the program's name) apart. `known` lists the option letters; a
    /// letter with a colon behind it has a value. A lone `-` is an operand.
    ///
    /// # Errors
    /// The first option that is not known or has no value.
    pub fn parse(arguments: &[Vec<u8>], known: &str) -> Result<Self, OptionError> {
        let mut options = Options::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_slice() {
                b"--" => {
                    options.operands.extend(rest.cloned());
                    break;
                }
                b"--help" => options.help = true,
                [b'-', b'-', ..] => return Err(OptionError::Unknown(argument.clone())),
                [b'-', letters @ ..] if !letters.is_empty() => {
                    options.letters(letters, known, &mut rest)?;
                }
                _ => options.operands.push(argument.clone()),
            }
        }
        Ok(options)
    }

    fn letters(
        &mut self,
        letters: &[u8],
        known: &str,
        rest: &mut core::slice::Iter<'_, Vec<u8>>,
    ) -> Result<(), OptionError> {
        for (index, &letter) in letters.iter().enumerate() {
            let found = known
                .bytes()
                .position(|other| other == letter && other != b':');
            let Some(found) = found else {
                return Err(OptionError::Unknown(Vec::from([b'-', letter])));
            };
            if known.as_bytes().get(found + 1) != Some(&b':') {
                self.flags.push((letter, None));
                continue;
            }
            let attached = &letters[index + 1..];
            let value = match attached.is_empty() {
                true => rest.next().cloned(),
                false => Some(attached.to_vec()),
            };
            let value = value.ok_or(OptionError::MissingValue(char::from(letter)))?;
            self.flags.push((letter, Some(value)));
            break;
        }
        Ok(())
    }

    /// Whether the option was given.
    pub fn has(&self, letter: char) -> bool {
        self.flags
            .iter()
            .any(|(flag, _)| char::from(*flag) == letter)
    }

    /// The option's value; of several the last.
    pub fn value(&self, letter: char) -> Option<&[u8]> {
        let mut given = self.flags.iter().rev();
        given
            .find(|(flag, _)| char::from(*flag) == letter)?
            .1
            .as_deref()
    }

    /// All values of an option that may be given several times.
    pub fn values(&self, letter: char) -> impl Iterator<Item = &[u8]> {
        let given = self
            .flags
            .iter()
            .filter(move |(flag, _)| char::from(*flag) == letter);
        given.filter_map(|(_, value)| value.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str, known: &str) -> Result<Options, OptionError> {
        let arguments: Vec<Vec<u8>> = line
            .split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect();
        Options::parse(&arguments, known)
    }

    #[test]
    fn letters_values_and_operands() {
        let options = parse("-ab x -n 5 y -m7 - -- -z", "abn:m:").unwrap();
        assert!(options.has('a') && options.has('b') && !options.has('z'));
        assert_eq!(
            (options.value('n'), options.value('m')),
            (Some(&b"5"[..]), Some(&b"7"[..]))
        );
        assert_eq!(options.operands, [&b"x"[..], b"y", b"-", b"-z"]);
        assert_eq!(parse("-an5", "an:").unwrap().value('n'), Some(&b"5"[..]));
        assert_eq!(parse("-n1 -n2", "n:").unwrap().value('n'), Some(&b"2"[..]));
        assert!(parse("--help", "").unwrap().help);
        assert!(!parse("-- --help", "").unwrap().help);
    }

    #[test]
    fn unknown_options_are_named() {
        assert_eq!(parse("-ax", "a"), Err(OptionError::Unknown(b"-x".to_vec())));
        assert_eq!(
            parse("--long", "a"),
            Err(OptionError::Unknown(b"--long".to_vec()))
        );
        assert_eq!(parse("-:", "n:"), Err(OptionError::Unknown(b"-:".to_vec())));
        assert_eq!(parse("a -n", "n:"), Err(OptionError::MissingValue('n')));
    }
}
