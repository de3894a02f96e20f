//! `tr [-c] [-d] [-s] SET1 [SET2]`: translates, deletes and squeezes bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use textutil::options::Options;
use textutil::translate::{Translation, complement, parse_set};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: tr [-c] SET1 SET2    each byte in SET1 becomes the one in its place in SET2
       tr [-c] -d SET1      bytes in SET1 are left out
       tr [-c] -s SET1      of equal bytes of SET1 in a row one is left
       tr [-c] -s SET1 SET2, tr [-c] -ds SET1 SET2    first the one, then -s with SET2
Copies the standard input to the standard output. -c: all bytes but those in SET1.
Sets are bytes, ranges a-z, classes [:upper:], and \\n \\t \\\\ \\012.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let mut translation = translation(&env.options(USAGE, "cCds")?)?;
    let mut reader = env.stdin();
    loop {
        let piece = reader.fill()?;
        if piece.is_empty() {
            return Ok(0);
        }
        env.write(&translation.apply(piece))?;
        let taken = piece.len();
        reader.consume(taken);
    }
}

fn translation(options: &Options) -> Result<Translation, Stop> {
    let mut sets = Vec::new();
    for text in &options.operands {
        sets.push(parse_set(text).ok_or_else(|| {
            Stop::usage(&alloc::format!(
                "`{}` is not a set; `tr --help` says more",
                String::from_utf8_lossy(text)
            ))
        })?);
    }
    if let Some(first) = sets.first_mut()
        && (options.has('c') || options.has('C'))
    {
        *first = complement(first);
    }
    let mut translation = Translation::default();
    match (options.has('d'), options.has('s'), sets.as_slice()) {
        (true, false, [set]) => translation.delete(set),
        (true, true, [deleted, squeezed]) => {
            translation.delete(deleted);
            translation.squeeze(squeezed);
        }
        (false, true, [set]) => translation.squeeze(set),
        (false, squeezed, [from, to]) if !to.is_empty() || from.is_empty() => {
            translation.translate(from, to);
            translation.squeeze(if squeezed { to } else { &[] });
        }
        _ => return Err(Stop::usage("wrong number of sets; `tr --help` says more")),
    }
    Ok(translation)
}
