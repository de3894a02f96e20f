//! The builtins that print and read: `echo`, `printf`, `read`, `getopts`.

use crate::builtin::{Outcome, number};
use crate::expand::Environment as _;
use crate::fields::{USUAL_SEPARATORS, is_blank};
use crate::function::variable_name;
use crate::launch::lossy;
use crate::run::{Flow, Shell};
use crate::system::{System, Unwritten};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use textutil::printf::{self, Printed};

/// Status of a shell that writes to nobody.
const BROKEN_PIPE: i32 = 141;

impl<S: System> Shell<S> {
    /// Writes to the standard output. If nobody reads it the shell ends, so that no loop runs for
    /// ever; a person's shell goes on. Any other error is told, and is the command's.
    pub(crate) fn put(&mut self, text: &[u8]) -> Flow {
        if text.is_empty() {
            return Flow::Next;
        }
        match self.write_to(1, text) {
            None => Flow::Next,
            Some(Unwritten::NoReader) => self.fatal(BROKEN_PIPE),
            Some(Unwritten::Failed(why)) => {
                self.complain(&format!("write error: {why}"));
                self.status = 1;
                Flow::Next
            }
        }
    }

    /// What `echo` or `printf` prints.
    pub(crate) fn printed(name: &[u8], arguments: &[Vec<u8>]) -> Result<Printed, (i32, String)> {
        if name == b"echo" {
            return Ok(printf::echo(arguments));
        }
        let arguments = match arguments.split_first() {
            Some((first, rest)) if first == b"--" => rest,
            _ => arguments,
        };
        match arguments.split_first() {
            Some((format, rest)) => Ok(printf::printf(format, rest)),
            None => Err((2, "a format is needed".to_string())),
        }
    }

    /// Prints it, and says what was wrong with it.
    pub(crate) fn put_printed(&mut self, name: &[u8], printed: Printed) -> Flow {
        self.status = i32::from(!printed.errors.is_empty());
        let flow = self.put(&printed.text);
        for error in printed.errors {
            self.complain(&format!("{}: {error}", lossy(name)));
        }
        flow
    }

    /// `read [-r] [-p PROMPT] NAME...`: a line of standard input into variables, the rest of it
    /// into the last.
    pub(crate) fn read(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let (mut raw, mut names) = (false, arguments);
        loop {
            names = match names {
                [option, rest @ ..] if option == b"-r" => {
                    raw = true;
                    rest
                }
                [option, prompt, rest @ ..] if option == b"-p" => {
                    self.write_to(2, prompt);
                    rest
                }
                [option, rest @ ..] if option == b"--" => rest,
                _ => break,
            };
        }
        if names.is_empty() {
            return Err((2, "arg count".to_string()));
        }
        for name in names {
            variable_name(name)?;
        }
        let Some(input) = self.descriptors[0] else {
            return Err((2, "the standard input is closed".to_string()));
        };
        let (line, ended) = self.read_logical_line(input, raw);
        let separators = self.variable("IFS");
        let separators = separators.unwrap_or_else(|| USUAL_SEPARATORS.to_vec());
        let values = split_line(&line, &separators, names.len());
        let values = values.into_iter().chain(core::iter::repeat(Vec::new()));
        for (name, value) in names.iter().zip(values) {
            let name = variable_name(name)?;
            self.assign(name, value).map_err(|error| (2, error))?;
        }
        self.status = i32::from(!ended);
        Ok(Flow::Next)
    }

    /// A line as bytes, each with whether a backslash stood before it; one at the end joins the
    /// next line.
    fn read_logical_line(&mut self, input: u32, raw: bool) -> (Vec<(u8, bool)>, bool) {
        let mut line = Vec::new();
        loop {
            let (text, ended) = self.system.read_from(input);
            if raw {
                return (text.into_iter().map(|byte| (byte, false)).collect(), ended);
            }
            let mut bytes = text.into_iter();
            let mut goes_on = false;
            while let Some(byte) = bytes.next() {
                match byte {
                    b'\\' => match bytes.next() {
                        Some(next) => line.push((next, true)),
                        None => goes_on = true,
                    },
                    _ => line.push((byte, false)),
                }
            }
            if !(goes_on && ended) {
                return (line, ended);
            }
        }
    }

    /// `getopts LETTERS NAME [ARGUMENT...]`
    pub(crate) fn getopts(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let [letters, name, rest @ ..] = arguments else {
            return Err((2, "letters and a variable name are needed".to_string()));
        };
        let name = variable_name(name)?.to_string();
        let all = match rest {
            [] => self.positional.get(1..).unwrap_or_default().to_vec(),
            rest => rest.to_vec(),
        };
        let index = self.variable("OPTIND").and_then(|text| number(&text));
        let index = index.and_then(|index| usize::try_from(index).ok());
        let mut index = index.unwrap_or(1).max(1);
        let mut at = self.option_at.max(1);
        let argument = all
            .get(index - 1)
            .filter(|it| it.len() > 1 && it[0] == b'-');
        let Some(argument) = argument.filter(|it| *it != b"--") else {
            let passed = all.get(index - 1).is_some_and(|it| it == b"--");
            self.keep_option(&name, b"?", index + usize::from(passed), 0)?;
            self.status = 1;
            return Ok(Flow::Next);
        };
        let letter = argument.get(at).copied().unwrap_or(b'?');
        at += 1;
        let mut value = None;
        let place = letters.iter().position(|&it| it == letter && it != b':');
        let wants = place.is_some_and(|place| letters.get(place + 1) == Some(&b':'));
        if wants && at < argument.len() {
            value = Some(argument[at..].to_vec());
        }
        if wants || at >= argument.len() {
            (index, at) = (index + 1, 0);
        }
        if wants && value.is_none() {
            value = all.get(index - 1).cloned();
            index += 1;
        }
        let silent = letters.first() == Some(&b':');
        let found = match (place, wants && value.is_none()) {
            (Some(_), false) => letter,
            (Some(_), true) if silent => b':',
            _ => b'?',
        };
        self.set_or_unset(
            "OPTARG",
            match (found == letter, silent) {
                (true, _) => Some(value.unwrap_or_default()),
                (false, true) => Some(Vec::from([letter])),
                (false, false) => None,
            },
        )?;
        if found != letter && !silent {
            let what = if place.is_some() {
                "No arg for"
            } else {
                "Illegal option"
            };
            self.complain(&format!("{what} -{}", char::from(letter)));
        }
        self.keep_option(&name, &[found], index, at)?;
        Ok(Flow::Next)
    }

    fn keep_option(
        &mut self,
        name: &str,
        value: &[u8],
        index: usize,
        at: usize,
    ) -> Result<(), (i32, String)> {
        self.assign(name, value.to_vec())
            .map_err(|error| (2, error))?;
        let index = index.to_string().into_bytes();
        self.assign("OPTIND", index).map_err(|error| (2, error))?;
        self.option_at = at;
        Ok(())
    }

    fn set_or_unset(&mut self, name: &str, value: Option<Vec<u8>>) -> Result<(), (i32, String)> {
        match value {
            Some(value) => self.assign(name, value).map_err(|error| (2, error)),
            None => {
                self.variables.remove(name);
                Ok(())
            }
        }
    }
}

/// The fields of a line for `count` variables; the last has all the rest (POSIX, `read`).
fn split_line(line: &[(u8, bool)], separators: &[u8], count: usize) -> Vec<Vec<u8>> {
    let separates = |&(byte, escaped): &(u8, bool)| !escaped && separators.contains(&byte);
    let blank = |it: &(u8, bool)| separates(it) && is_blank(it.0);
    let text = |part: &[(u8, bool)]| part.iter().map(|it| it.0).collect::<Vec<u8>>();
    let skip = |rest: &[(u8, bool)]| rest.iter().take_while(|it| blank(it)).count();
    let mut rest = &line[skip(line)..];
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(separates).unwrap_or(rest.len());
        if fields.len() + 1 == count {
            fields.push(text(last_field(rest, end, &blank, &separates)));
            break;
        }
        fields.push(text(&rest[..end]));
        rest = &rest[end..];
        rest = &rest[skip(rest)..];
        if rest.first().is_some_and(separates) {
            rest = &rest[1..];
            rest = &rest[skip(rest)..];
        }
    }
    fields
}

/// What the last variable gets: the rest without blanks at its end, and without one other separator
/// if that ends the only field in it.
fn last_field<'a>(
    rest: &'a [(u8, bool)],
    first_end: usize,
    blank: &impl Fn(&(u8, bool)) -> bool,
    separates: &impl Fn(&(u8, bool)) -> bool,
) -> &'a [(u8, bool)] {
    let trim = |part: &'a [(u8, bool)]| {
        let end = part.iter().rposition(|it| !blank(it));
        &part[..end.map_or(0, |end| end + 1)]
    };
    let rest = trim(rest);
    let only_field = rest.len() <= first_end + 1 || {
        let gap = &rest[first_end.min(rest.len())..];
        gap.iter().filter(|it| !blank(it)).count() == 1
    };
    match rest.split_last() {
        Some((last, before)) if only_field && separates(last) => trim(before),
        _ => rest,
    }
}
