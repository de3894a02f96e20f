//! `dirname PATH...`: prints paths without their last parts.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: dirname PATH...
Prints each PATH without its last part.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "")?;
    if options.operands.is_empty() {
        return Err(Stop::usage("a path is missing; `dirname --help` says more"));
    }
    for path in &options.operands {
        env.write(directory(path))?;
        env.write(b"\n")?;
    }
    Ok(0)
}

/// POSIX, `dirname`: slashes at the end do not count, and those before the last part go with it.
fn directory(path: &[u8]) -> &[u8] {
    let end = |path: &[u8]| path.iter().rposition(|&byte| byte != b'/').map(|at| at + 1);
    let Some(last) = end(path) else {
        return if path.is_empty() { b"." } else { b"/" };
    };
    match path[..last].iter().rposition(|&byte| byte == b'/') {
        None => b".",
        Some(slash) => match end(&path[..slash]) {
            Some(end) => &path[..end],
            None => b"/",
        },
    }
}
