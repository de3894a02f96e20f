//! `grep [-FEivnclqowxhHs] PATTERN [FILE...]`: prints the lines that match a pattern.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use textutil::options::Options;
use textutil::pattern::{Pattern, Syntax};
use ulib::{Env, Error, Handle, Process, Program, Reader, RpcResult, Stop, print, println};

const USAGE: &str = "
usage: grep [OPTION...] PATTERN [FILE...]
Prints the lines of each FILE (`-` or none: standard input) that match PATTERN, a basic regular expression.
  -E  extended expression      -F  plain text           -e PATTERN  several patterns
  -i  ignore case              -v  lines without match  -x  whole lines
  -n  line numbers             -c  count only           -l  names of files only
  -o  the matching parts only  -q  nothing, status only  -w  whole words
  -h  no file names            -H  file names           -s  no messages about files
Status 0: a line matched, 1: none, 2: an error.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

struct Search {
    patterns: Vec<Pattern>,
    options: Options,
    names: bool,
}

fn main(env: &Env) -> Result<i32, Stop> {
    let mut options = env.options(USAGE, "EFGivnclqowxhHse:")?;
    let syntax = match (options.has('F'), options.has('E')) {
        (true, _) => Syntax::Fixed,
        (_, true) => Syntax::Extended,
        _ => Syntax::Basic,
    };
    let mut texts: Vec<Vec<u8>> = options.values('e').map(<[u8]>::to_vec).collect();
    if texts.is_empty() {
        if options.operands.is_empty() {
            return Err(Stop::usage("a pattern is missing; `grep --help` says more"));
        }
        texts.push(options.operands.remove(0));
    }
    let mut patterns = Vec::new();
    for text in texts
        .iter()
        .flat_map(|text| text.split(|&byte| byte == b'\n'))
    {
        let pattern = match options.has('w') {
            true => Pattern::words(text, syntax, options.has('i')),
            false => Pattern::new(text, syntax, options.has('i')),
        };
        patterns.push(pattern.map_err(|error| Stop::usage(&alloc::format!("{error}")))?);
    }
    let mut files = core::mem::take(&mut options.operands);
    if files.is_empty() {
        files = Vec::from([b"-".to_vec()]);
    }
    let names = (files.len() > 1 || options.has('H')) && !options.has('h');
    search_all(
        env,
        &Search {
            patterns,
            options,
            names,
        },
        &files,
    )
}

fn search_all(env: &Env, search: &Search, files: &[Vec<u8>]) -> Result<i32, Stop> {
    let (mut found, mut failed) = (false, false);
    for file in files {
        let result = match env.input(file) {
            Ok(reader) => search.file(env, file, reader)?,
            Err(error) => Err(error),
        };
        match result {
            Ok(count) => found |= count > 0,
            Err(error) => {
                failed = true;
                if !search.options.has('s') {
                    env.fail(file, &error);
                }
            }
        }
        if found && search.options.has('q') {
            return Ok(0);
        }
    }
    Ok(match (failed, found) {
        (true, _) => 2,
        (false, found) => i32::from(!found),
    })
}

impl Search {
    fn matches(&self, line: &[u8]) -> bool {
        let whole = self.options.has('x');
        let matching = |pattern: &Pattern| match whole {
            true => pattern.is_whole_match(line),
            false => pattern.is_match(line),
        };
        self.patterns.iter().any(matching) != self.options.has('v')
    }

    /// How many lines of a file were selected; an error of the file inside, one of the output
    /// outside.
    fn file(&self, env: &Env, file: &[u8], mut reader: Reader) -> Result<Result<u64, Error>, Stop> {
        let mut line = Vec::new();
        let (mut number, mut count) = (0_u64, 0);
        let only_whether = self.options.has('q') || self.options.has('l');
        loop {
            line.clear();
            match reader.read_line(&mut line) {
                Ok(0) => break,
                Ok(_) => number += 1,
                Err(error) => return Ok(Err(error)),
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            if !self.matches(text) {
                continue;
            }
            count += 1;
            if only_whether {
                break;
            }
            if !self.options.has('c') {
                self.selected(env, file, number, text)?;
            }
        }
        if self.options.has('l') && count > 0 && !self.options.has('q') {
            println!(env, "{}", display_name(file))?;
        } else if self.options.has('c') && !only_whether {
            self.prefix(env, file, None)?;
            println!(env, "{count}")?;
        }
        Ok(Ok(count))
    }

    fn selected(&self, env: &Env, file: &[u8], number: u64, text: &[u8]) -> Result<(), Stop> {
        if !self.options.has('o') {
            self.prefix(env, file, Some(number))?;
            env.write(text)?;
            return env.write(b"\n");
        }
        if self.options.has('v') {
            return Ok(());
        }
        let mut from = 0;
        loop {
            let found = self.patterns.iter().filter_map(|it| it.find(text, from));
            let leftmost = found.min_by_key(|range| (range.start, usize::MAX - range.end));
            let Some(range) = leftmost else { return Ok(()) };
            if !range.is_empty() {
                self.prefix(env, file, Some(number))?;
                env.write(&text[range.clone()])?;
                env.write(b"\n")?;
            }
            from = range.end.max(range.start + 1);
        }
    }

    fn prefix(&self, env: &Env, file: &[u8], number: Option<u64>) -> Result<(), Stop> {
        if self.names {
            print!(env, "{}:", display_name(file))?;
        }
        match number.filter(|_| self.options.has('n')) {
            Some(number) => print!(env, "{number}:"),
            None => Ok(()),
        }
    }
}

fn display_name(file: &[u8]) -> String {
    match file {
        b"-" => String::from("(standard input)"),
        _ => String::from_utf8_lossy(file).into_owned(),
    }
}
