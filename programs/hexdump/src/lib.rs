//! `hexdump [-C] [-v] [-n BYTES] [FILE...]`: prints files in hexadecimal.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use textutil::hexdump::Dump;
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: hexdump [-C] [-v] [-n BYTES] [FILE...]
Prints all FILEs (`-` or none: standard input), as one, as numbers of two bytes, low byte first.
  -C  as single bytes and characters   -v  lines like the one before, too   -n BYTES  not more than these";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "Cvn:")?;
    let mut left = match options.value('n') {
        Some(text) => number(text)?,
        None => usize::MAX,
    };
    let mut files = options.operands.clone();
    if files.is_empty() {
        files = Vec::from([b"-".to_vec()]);
    }
    let mut dump = Dump::new(options.has('C'), options.has('v'));
    for file in &files {
        if let Err(error) = show(env, file, &mut dump, &mut left)? {
            env.fail(file, &error);
        }
    }
    env.write(dump.finish().as_bytes())?;
    Ok(env.status())
}

fn number(text: &[u8]) -> Result<usize, Stop> {
    let number = core::str::from_utf8(text).ok();
    let number = number.and_then(|text| text.parse().ok());
    number.ok_or_else(|| Stop::about(text, Error::text("invalid number")))
}

/// Dumps one file; an error of the file inside, one of the output outside.
fn show(
    env: &Env,
    file: &[u8],
    dump: &mut Dump,
    left: &mut usize,
) -> Result<Result<(), Error>, Stop> {
    let mut reader = match env.input(file) {
        Ok(reader) => reader,
        Err(error) => return Ok(Err(error)),
    };
    while *left > 0 {
        let piece = match reader.fill() {
            Ok(piece) => &piece[..piece.len().min(*left)],
            Err(error) => return Ok(Err(error)),
        };
        if piece.is_empty() {
            break;
        }
        env.write(dump.add(piece).as_bytes())?;
        let taken = piece.len();
        *left -= taken;
        reader.consume(taken);
    }
    Ok(Ok(()))
}
