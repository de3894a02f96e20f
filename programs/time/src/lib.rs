//! `time [-p] COMMAND [ARGUMENT...]`: runs a program and tells how long that took, and how much
//! processor time.
#![no_std]
#![forbid(unsafe_code)]

use ulib::{Env, Handle, Process, Program, RpcResult, Stop, command};

const USAGE: &str = "
usage: time [-p] COMMAND [ARGUMENT...]
Runs COMMAND and writes to the standard error, in seconds: the time that passed; the processor time of COMMAND's own
code and its children's; the processor time of others on their behalf.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let arguments = env.arguments();
    let end = command::options_end(arguments, b"");
    env.options_of(&arguments[..end], USAGE, "p")?;
    if end == arguments.len() {
        return Err(Stop::usage("a command is missing; `time --help` says more"));
    }
    let before = ulib::nanoseconds_since_boot();
    let status = command::run(env, &arguments[end..])?;
    let took = ulib::nanoseconds_since_boot() - before;
    // The command is the only child there ever was.
    let times = env.process().times()?;
    let shown = [
        ("real", took),
        ("user", times.children_user),
        ("sys", times.children_system),
    ];
    for (name, nanoseconds) in shown {
        let hundredths = nanoseconds / 10_000_000;
        env.report(format_args!(
            "{name} {}.{:02}",
            hundredths / 100,
            hundredths % 100
        ));
    }
    Ok(status)
}
