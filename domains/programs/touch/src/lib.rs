//! `touch [-c] FILE...`: makes files that are not there, and sets the date of the others to now.
//!
//! No system call sets a date, so the first byte of a file is written again as it is.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{OpenFlags, RVec};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: touch [-c] FILE...
Makes each FILE that is not there, empty; of the others, unless they are empty, sets the date to now.
-c: makes none.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "c")?;
    if options.operands.is_empty() {
        return Err(Stop::usage("a file is missing; `touch --help` says more"));
    }
    for file in &options.operands {
        match touch(env, file, !options.has('c')) {
            Err(error) if options.has('c') && error.is_not_found() => {}
            Err(error) => env.fail(file, &error),
            Ok(()) => {}
        }
    }
    Ok(env.status())
}

fn touch(env: &Env, file: &[u8], create: bool) -> Result<(), Error> {
    let flags = OpenFlags {
        read: true,
        write: true,
        create,
        truncate: false,
        append: false,
        exclusive: false,
    };
    let descriptor = env.with_path(file, |process, path| process.open(path, flags))?;
    let result = rewrite_first_byte(env.process(), descriptor);
    env.process().close(descriptor)?;
    result
}

fn rewrite_first_byte(process: &Handle<dyn Process>, descriptor: u32) -> Result<(), Error> {
    let first = process.read(descriptor, RVec::filled(0, 1)?)?;
    if !first.is_empty() {
        process.seek(descriptor, 0)?;
        process.write(descriptor, &first)?;
    }
    Ok(())
}
