//! `tail [-n [+]LINES] [-c [+]BYTES] [FILE...]`: prints the last lines (10) or bytes of files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use textutil::tail::{Tail, parse_amount};
use ulib::{Env, Error, Handle, Process, Program, Reader, RpcResult, Stop};

const USAGE: &str = "
usage: tail [-n LINES | -LINES | -c BYTES] [-q] [-v] [FILE...]
Prints the last 10 (or LINES) lines, or BYTES bytes, of each FILE; `-` or none is the standard input.
With a `+` before the number: everything from that line or byte on, counted from 1.
Several files get headings; -q: never, -v: always.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let arguments: Vec<Vec<u8>> = env.arguments().iter().map(|it| modern(it)).collect();
    let options = env.options_of(&arguments, USAGE, "n:c:qv")?;
    let (text, bytes) = match (options.value('c'), options.value('n')) {
        (Some(text), _) => (text, true),
        (None, text) => (text.unwrap_or(b"10"), false),
    };
    let amount = parse_amount(text, bytes)
        .ok_or_else(|| Stop::about(text, Error::text("invalid number")))?;
    let mut files = options.operands.clone();
    if files.is_empty() {
        files = Vec::from([b"-".to_vec()]);
    }
    let headings = options.has('v') || (files.len() > 1 && !options.has('q'));
    let mut first = true;
    for file in &files {
        match env.input(file) {
            Ok(reader) => {
                if headings {
                    heading(env, file, first)?;
                }
                first = false;
                if let Err(error) = show(env, reader, Tail::new(amount))? {
                    env.fail(file, &error);
                }
            }
            Err(error) => env.fail(file, &error),
        }
    }
    Ok(env.status())
}

/// `-5` as `-n5`.
fn modern(argument: &[u8]) -> Vec<u8> {
    match argument {
        [b'-', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            [b"-n", digits].concat()
        }
        _ => argument.to_vec(),
    }
}

fn heading(env: &Env, file: &[u8], first: bool) -> Result<(), Stop> {
    let name = if file == b"-" {
        b"standard input"
    } else {
        file
    };
    env.write(if first { b"==> " } else { b"\n==> " })?;
    env.write(name)?;
    env.write(b" <==\n")
}

/// Prints the end of one file; an error of the file inside, one of the output outside.
fn show(env: &Env, mut reader: Reader, mut tail: Tail) -> Result<Result<(), Error>, Stop> {
    loop {
        let piece = match reader.fill() {
            Ok(piece) => piece,
            Err(error) => return Ok(Err(error)),
        };
        if piece.is_empty() {
            env.write(tail.finish())?;
            return Ok(Ok(()));
        }
        env.write(tail.add(piece))?;
        let taken = piece.len();
        reader.consume(taken);
    }
}
