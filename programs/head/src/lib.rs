//! `head [-n LINES] [-c BYTES] [FILE...]`: prints the first lines (10) or bytes of files.
#![no_std]
#![forbid(unsafe_code)]

use textutil::tail::{Before, without_end};
use ulib::ends;
use ulib::{Env, Error, Handle, Process, Program, Reader, RpcResult, Stop};

const USAGE: &str = "
usage: head [-n LINES | -LINES | -c BYTES] [-q] [-v] [FILE...]
Prints the first 10 (or LINES) lines, or BYTES bytes, of each FILE; `-` or none is the standard input.
With a `-` before the number: all but so many at the end.
Several files get headings; -q: never, -v: always.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

#[derive(Clone, Copy)]
enum Amount {
    Lines(u64),
    Bytes(u64),
    /// All but so many lines, or bytes.
    AllBut(Before),
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options_of(&ends::arguments(env, false), USAGE, "n:c:qv")?;
    let amount = match (options.value('c'), options.value('n')) {
        (Some([b'-', bytes @ ..]), _) => Amount::AllBut(Before::Bytes(number(bytes)?)),
        (Some(bytes), _) => Amount::Bytes(number(bytes)?),
        (None, Some([b'-', lines @ ..])) => Amount::AllBut(Before::Lines(number(lines)?)),
        (None, Some(lines)) => Amount::Lines(number(lines)?),
        (None, None) => Amount::Lines(10),
    };
    ends::each_file(env, &options, |reader| show(env, reader, amount))
}

fn number(text: &[u8]) -> Result<u64, Stop> {
    let number = core::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    number.ok_or_else(|| Stop::about(text, Error::text("invalid number")))
}

/// Prints the beginning of one file; an error of the file inside, one of the output outside.
fn show(env: &Env, mut reader: Reader, amount: Amount) -> Result<Result<(), Error>, Stop> {
    let mut left = amount;
    if let Amount::AllBut(before) = amount {
        return all_but(env, reader, before);
    }
    loop {
        let bytes = match reader.fill() {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(error)),
        };
        let taken = match left {
            Amount::Lines(lines) => first_lines(bytes, lines),
            Amount::Bytes(count) => bytes
                .len()
                .min(usize::try_from(count).unwrap_or(usize::MAX)),
            Amount::AllBut(_) => 0,
        };
        if taken == 0 {
            return Ok(Ok(()));
        }
        let piece = &bytes[..taken];
        left = match left {
            Amount::Lines(lines) => Amount::Lines(lines - count_lines(piece)),
            Amount::Bytes(count) => Amount::Bytes(count - taken as u64),
            all_but => all_but,
        };
        env.write(piece)?;
        reader.consume(taken);
    }
}

/// Prints a file without its end, which is known only when it has been read.
fn all_but(env: &Env, mut reader: Reader, before: Before) -> Result<Result<(), Error>, Stop> {
    let text = match reader.read_to_end() {
        Ok(text) => text,
        Err(error) => return Ok(Err(error)),
    };
    env.write(without_end(&text, before))?;
    Ok(Ok(()))
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// How many of `bytes` belong to the first `lines` lines.
fn first_lines(bytes: &[u8], lines: u64) -> usize {
    if lines == 0 {
        return 0;
    }
    let mut breaks = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let last = breaks.nth(usize::try_from(lines - 1).unwrap_or(usize::MAX));
    last.map_or(bytes.len(), |(at, _)| at + 1)
}
