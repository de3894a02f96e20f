//! `touch [-c] [-d DATE|-t STAMP|-r FILE] FILE...`: sets the date of files, and makes those that
//! are not there.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use interfaces::OpenFlags;
use textutil::date::{parse, parse_stamp};
use ulib::{Env, Error, Handle, Process, Program, READ, RpcResult, Stop};

/// Of a second.
const NANOSECONDS: u64 = 1_000_000_000;

const USAGE: &str = "
usage: touch [-c] [-d DATE] [-t STAMP] [-r FILE] FILE...
Sets the date of each FILE to now, and makes it, empty, if it is not there.
  -c  makes none   -r FILE  the date of that file
  -d DATE  such as 2024-02-29 12:30:00 (UTC) or @SECONDS   -t STAMP  [[CC]YY]MMDDhhmm[.ss]";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "cd:t:r:am")?;
    if options.operands.is_empty() {
        return Err(Stop::usage("a file is missing; `touch --help` says more"));
    }
    let now = ulib::wall_seconds();
    let wrong = |text: &[u8]| Stop::about(text, Error::text("invalid date"));
    let whole = |seconds: u64| seconds.saturating_mul(NANOSECONDS);
    let time = match (options.value('d'), options.value('t'), options.value('r')) {
        (Some(text), ..) => parse(text, now).map(whole).ok_or_else(|| wrong(text))?,
        (_, Some(text), _) => parse_stamp(text, now)
            .map(whole)
            .ok_or_else(|| wrong(text))?,
        (_, _, Some(file)) => match env.metadata(file, true) {
            Ok(of) => of.modified,
            Err(error) => return Err(Stop::about(file, error)),
        },
        _ => ulib::file_time(),
    };
    for file in &options.operands {
        match touch(env, file, !options.has('c'), time) {
            Err(error) if options.has('c') && error.is_not_found() => {}
            Err(error) => env.fail(file, &error),
            Ok(()) => {}
        }
    }
    Ok(env.status())
}

fn touch(env: &Env, file: &[u8], create: bool, time: u64) -> Result<(), Error> {
    if create && env.metadata(file, true).is_err_and(|it| it.is_not_found()) {
        let flags = OpenFlags {
            read: false,
            write: true,
            create: true,
            ..READ
        };
        let descriptor = env.with_path(file, |process, path| process.open(path, flags))?;
        env.process().close(descriptor)?;
    }
    env.with_path(file, |process, path| process.set_modified(path, time))
}
