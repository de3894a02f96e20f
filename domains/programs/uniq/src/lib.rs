//! `uniq [-c] [-d] [-u] [FILE]`: drops lines that are the same as the line before.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use textutil::options::Options;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, print};

const USAGE: &str = "
usage: uniq [-c] [-d] [-u] [FILE]
Prints one of each run of equal lines of FILE (`-` or none: standard input).
  -c  with their number   -d  only lines that are repeated   -u  only lines that are not";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "cdu")?;
    let file = match options.operands.as_slice() {
        [] => &b"-"[..],
        [file] => file,
        _ => return Err(Stop::usage("one file at most; `uniq --help` says more")),
    };
    let about = |error| Stop::about(file, error);
    let mut reader = env.input(file).map_err(about)?;
    let (mut run, mut count, mut line) = (Vec::new(), 0_u64, Vec::new());
    loop {
        line.clear();
        let more = reader.read_line(&mut line).map_err(about)? > 0;
        line.truncate(line.strip_suffix(b"\n").unwrap_or(&line).len());
        if more && count > 0 && line == run {
            count += 1;
            continue;
        }
        show(env, &options, &run, count)?;
        if !more {
            return Ok(0);
        }
        core::mem::swap(&mut run, &mut line);
        count = 1;
    }
}

/// Prints a run of `count` lines, if it is one to print.
fn show(env: &Env, options: &Options, line: &[u8], count: u64) -> Result<(), Stop> {
    let hidden = (options.has('d') && count == 1) || (options.has('u') && count > 1);
    if count == 0 || hidden {
        return Ok(());
    }
    if options.has('c') {
        print!(env, "{count:>7} ")?;
    }
    env.write(line)?;
    env.write(b"\n")
}
