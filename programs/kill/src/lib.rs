//! `kill PID...`: ends processes.
#![no_std]
#![forbid(unsafe_code)]

use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: kill PID...
Ends processes. There are no signals: -9 and other signals are accepted, and all do the same; -0 only looks whether
the processes are there.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let mut arguments = env.arguments();
    let mut only_look = false;
    if let [first, rest @ ..] = arguments
        && is_signal(first)
    {
        arguments = rest;
        only_look = first == b"-0";
    }
    let pids = env.options_of(arguments, USAGE, "")?.operands;
    if pids.is_empty() {
        return Err(Stop::usage(
            "a process number is missing; `kill --help` says more",
        ));
    }
    for text in &pids {
        let pid = core::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok());
        let killed = match pid {
            Some(pid) if only_look => look(env, pid),
            Some(pid) => env.process().kill(pid).map_err(Error::from),
            None => Err(Error::text("not a process number")),
        };
        if let Err(error) = killed {
            env.fail(text, &error);
        }
    }
    Ok(env.status())
}

fn look(env: &Env, pid: u32) -> Result<(), Error> {
    for index in 0.. {
        match env.process().process(index)? {
            Some(info) if info.pid == pid => break,
            Some(_) => {}
            None => return Err(Error::text("No such process")),
        }
    }
    Ok(())
}

/// `-9`, `-KILL`.
fn is_signal(argument: &[u8]) -> bool {
    match argument {
        [b'-', rest @ ..] if !rest.is_empty() => {
            rest.iter().all(u8::is_ascii_digit) || rest.iter().all(u8::is_ascii_uppercase)
        }
        _ => false,
    }
}
