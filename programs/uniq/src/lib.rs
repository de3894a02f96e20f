//! `uniq [-c] [-d] [-u] [FILE]`: drops lines that are the same as the line before.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use interfaces::RVec;
use textutil::options::Options;
use textutil::order::Compared;
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: uniq [-c] [-d] [-u] [-i] [-f FIELDS] [-s BYTES] [-w BYTES] [FILE [OUTPUT]]
Prints one of each run of equal lines of FILE (`-` or none: standard input), or writes them to OUTPUT.
  -c  with their number   -d  only lines that are repeated   -u  only lines that are not
  -i  small letters are as large ones   -f, -s  without so many fields, and bytes, in front   -w  not more bytes than these";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "cduif:s:w:")?;
    let (file, output) = match options.operands.as_slice() {
        [] => (&b"-"[..], None),
        [file] => (file.as_slice(), None),
        [file, output] => (file.as_slice(), Some(output).filter(|it| *it != b"-")),
        _ => return Err(Stop::usage("two files at most; `uniq --help` says more")),
    };
    let compared = Compared {
        fields: number(&options, 'f')?.unwrap_or(0),
        bytes: number(&options, 's')?.unwrap_or(0),
        most: number(&options, 'w')?,
        fold: options.has('i'),
    };
    let about = |error| Stop::about(file, error);
    let mut reader = env.input(file).map_err(about)?;
    let mut out = match output {
        Some(path) => {
            let writer = env.create(path);
            Some(writer.map_err(|error| Stop::about(path, error))?)
        }
        None => None,
    };
    let (mut run, mut count, mut line) = (Vec::new(), 0_u64, Vec::new());
    loop {
        line.clear();
        let more = reader.read_line(&mut line).map_err(about)? > 0;
        line.truncate(line.strip_suffix(b"\n").unwrap_or(&line).len());
        if more && count > 0 && compared.are_equal(&line, &run) {
            count += 1;
            continue;
        }
        let shown = shown(&options, &run, count);
        match &mut out {
            None => env.write(&shown)?,
            Some(out) => out
                .write(&RVec::from_slice(&shown)?)
                .map_err(|error| Stop::about(output.map_or(b"", |it| it), error))?,
        }
        if !more {
            return Ok(0);
        }
        core::mem::swap(&mut run, &mut line);
        count = 1;
    }
}

fn number(options: &Options, letter: char) -> Result<Option<usize>, Stop> {
    let Some(text) = options.value(letter) else {
        return Ok(None);
    };
    let number = core::str::from_utf8(text)
        .ok()
        .and_then(|it| it.parse().ok());
    let wrong = || Stop::about(text, Error::text("invalid number"));
    number.map(Some).ok_or_else(wrong)
}

/// What is printed of a run of `count` lines.
fn shown(options: &Options, line: &[u8], count: u64) -> Vec<u8> {
    let hidden = (options.has('d') && count == 1) || (options.has('u') && count > 1);
    if count == 0 || hidden {
        return Vec::new();
    }
    let number = match options.has('c') {
        true => alloc::format!("{count:>7} "),
        false => String::new(),
    };
    [number.as_bytes(), line, b"\n"].concat()
}
