//! `basename PATH [SUFFIX]`: prints the last part of a path.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use textutil::path::base_name;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: basename PATH [SUFFIX]
       basename -a [-s SUFFIX] PATH...
Prints the last part of each PATH, without SUFFIX if it ends so.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "as:")?;
    let many = options.has('a') || options.value('s').is_some();
    let (paths, suffix) = match options.operands.as_slice() {
        [] => {
            return Err(Stop::usage(
                "a path is missing; `basename --help` says more",
            ));
        }
        [path, suffix] if !many => (core::slice::from_ref(path), suffix.as_slice()),
        [_, _, ..] if !many => return Err(Stop::usage("one path and one suffix at most")),
        paths => (paths, options.value('s').unwrap_or_default()),
    };
    for path in paths {
        let name = match path.iter().all(|&byte| byte == b'/') && !path.is_empty() {
            true => b"/",
            false => base_name(path),
        };
        let short = name.strip_suffix(suffix).filter(|it| !it.is_empty());
        env.write(short.unwrap_or(name))?;
        env.write(b"\n")?;
    }
    Ok(0)
}
