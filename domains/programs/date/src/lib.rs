//! `date [-u] [-d @SECONDS] [+FORMAT]`: prints the date and time, in UTC.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use textutil::clock::format;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: date [-u] [-d @SECONDS] [+FORMAT]
Prints the date and time in UTC; -d: so many seconds after the start of 1970.
  %Y %y year   %m %b %B month   %d %e day   %H %M %S time   %a %A %u %w day of the week
  %F %D date   %T %R time   %s seconds since 1970   %Z %z zone   %n %t %% line break, tab, percent sign";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "ud:")?;
    let seconds = match options.value('d') {
        Some(text) => seconds(text).ok_or_else(|| Stop::usage("-d: @SECONDS is needed"))?,
        None => ulib::wall_seconds(),
    };
    let pattern = match options.operands.as_slice() {
        [] => &b"%a %b %e %H:%M:%S %Z %Y"[..],
        [pattern] => pattern
            .strip_prefix(b"+")
            .ok_or_else(|| Stop::usage("the date cannot be set; `date --help` says more"))?,
        _ => return Err(Stop::usage("one format at most; `date --help` says more")),
    };
    let text = format(pattern, seconds);
    let text = text.ok_or_else(|| Stop::usage("unknown format; `date --help` says more"))?;
    println!(env, "{text}")?;
    Ok(0)
}

fn seconds(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text.strip_prefix(b"@")?)
        .ok()?
        .parse()
        .ok()
}
