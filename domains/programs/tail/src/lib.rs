//! `tail [-n [+]LINES] [-c [+]BYTES] [FILE...]`: prints the last lines (10) or bytes of files.
#![no_std]
#![forbid(unsafe_code)]

use textutil::tail::{Tail, parse_amount};
use ulib::ends;
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
    let options = env.options_of(&ends::arguments(env, true), USAGE, "n:c:qv")?;
    let (text, bytes) = match (options.value('c'), options.value('n')) {
        (Some(text), _) => (text, true),
        (None, text) => (text.unwrap_or(b"10"), false),
    };
    let amount = parse_amount(text, bytes)
        .ok_or_else(|| Stop::about(text, Error::text("invalid number")))?;
    ends::each_file(env, &options, |reader| show(env, reader, Tail::new(amount)))
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
