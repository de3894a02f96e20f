//! `date [-u] [-d @SECONDS] [+FORMAT]`: prints the date and time, in UTC.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use textutil::clock::format;
use textutil::date::parse;
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: date [-u] [-d DATE] [+FORMAT]
Prints the date and time in UTC; DATE: such as 2024-02-29 12:30:00, or @SECONDS since the start of 1970.
  %Y %y %C year   %m %b %B month   %d %e %j day   %H %I %k %l %M %S %N %p %P time   %a %A %u %w day of the week
  %F %D %x date   %T %R %r %X time   %c both   %s seconds since 1970   %Z %z zone   %n %t %% line break, tab, percent sign
  %-d: without zeros or blanks in front; %_d: with blanks; %0e: with zeros";

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
        Some(text) => {
            let seconds = parse(text, ulib::wall_seconds());
            seconds.ok_or_else(|| Stop::about(text, Error::text("invalid date")))?
        }
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
