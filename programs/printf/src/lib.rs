//! `printf FORMAT [ARGUMENT...]`: prints arguments in a format.
#![no_std]
#![forbid(unsafe_code)]

use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: printf FORMAT [ARGUMENT...]
Prints FORMAT with the arguments in place of %s %d %u %o %x %X %c %b %f, again while there are more.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let arguments = match env.arguments() {
        [first, rest @ ..] if first == b"--" => rest,
        all => all,
    };
    let Some((format, rest)) = arguments.split_first() else {
        return Err(Stop::usage(
            "a format is missing; `printf --help` says more",
        ));
    };
    if format == b"--help" {
        env.write(USAGE.trim_ascii().as_bytes())?;
        env.write(b"\n")?;
        return Ok(0);
    }
    let printed = textutil::printf::printf(format, rest);
    env.write(&printed.text)?;
    for error in &printed.errors {
        env.complain(format_args!("{error}"));
    }
    Ok(env.status())
}
