//! `rmdir PATH...`: removes empty directories.
#![no_std]
#![forbid(unsafe_code)]

use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: rmdir PATH...
Removes empty directories.";

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
        return Err(Stop::usage("a path is missing; `rmdir --help` says more"));
    }
    for path in &options.operands {
        if let Err(error) = env.with_path(path, |process, path| process.remove_directory(path)) {
            env.fail(path, &error);
        }
    }
    Ok(env.status())
}
