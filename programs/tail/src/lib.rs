//! `tail [-f] [-n [+]LINES] [-c [+]BYTES] [FILE...]`: prints the last lines (10) or bytes of files.
#![no_std]
#![forbid(unsafe_code)]

use textutil::tail::{Tail, parse_amount};
use ulib::ends;
use ulib::{Env, Error, Handle, Process, Program, Reader, RpcResult, Stop};

const USAGE: &str = "
usage: tail [-n LINES | -LINES | -c BYTES] [-f] [-q] [-v] [FILE...]
Prints the last 10 (or LINES) lines, or BYTES bytes, of each FILE; `-` or none is the standard input.
With a `+` before the number: everything from that line or byte on, counted from 1.
-f: goes on with what is appended, until Ctrl-C; for one file. Several files get headings; -q: never, -v: always.";
/// How long to wait before a file is looked at again, in nanoseconds.
const PAUSE: u64 = 200_000_000;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options_of(&ends::arguments(env, true), USAGE, "n:c:fqv")?;
    let follow = options.has('f');
    if follow && options.operands.len() > 1 {
        return Err(Stop::usage("-f is for one file"));
    }
    let (text, bytes) = match (options.value('c'), options.value('n')) {
        (Some(text), _) => (text, true),
        (None, text) => (text.unwrap_or(b"10"), false),
    };
    let amount = parse_amount(text, bytes)
        .ok_or_else(|| Stop::about(text, Error::text("invalid number")))?;
    ends::each_file(env, &options, |mut reader| {
        let shown = show(env, &mut reader, Tail::new(amount))?;
        // What is behind the end of a pipe or the console is nothing.
        match follow && shown.is_ok() && reader.is_file() {
            true => go_on(env, &mut reader),
            false => Ok(shown),
        }
    })
}

/// Prints what is appended to a file, until that fails.
fn go_on(env: &Env, reader: &mut Reader) -> Result<Result<(), Error>, Stop> {
    loop {
        env.flush()?;
        env.process()
            .sleep(PAUSE)
            .map_err(|errno| Stop::about(b"sleep", errno))?;
        loop {
            let taken = match reader.fill() {
                Ok([]) => break,
                Ok(piece) => {
                    env.write(piece)?;
                    piece.len()
                }
                Err(error) => return Ok(Err(error)),
            };
            reader.consume(taken);
        }
    }
}

/// Prints the end of one file; an error of the file inside, one of the output outside.
fn show(env: &Env, reader: &mut Reader, mut tail: Tail) -> Result<Result<(), Error>, Stop> {
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
