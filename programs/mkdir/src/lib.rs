//! `mkdir [-p] PATH...`: makes directories.
#![no_std]
#![forbid(unsafe_code)]

use interfaces::{FileKind, Metadata};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: mkdir [-p] PATH...
Makes directories. -p: also those above them, and no error if they are there already.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "p")?;
    if options.operands.is_empty() {
        return Err(Stop::usage("a path is missing; `mkdir --help` says more"));
    }
    for path in &options.operands {
        let made = match options.has('p') {
            true => make_all(env, path),
            false => make(env, path),
        };
        if let Err(error) = made {
            env.fail(path, &error);
        }
    }
    Ok(env.status())
}

fn make(env: &Env, path: &[u8]) -> Result<(), Error> {
    env.with_path(path, |process, path| process.make_directory(path))
}

fn make_all(env: &Env, path: &[u8]) -> Result<(), Error> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let ends = slashes
        .map(|(at, _)| at)
        .filter(|&at| at > 0)
        .chain([path.len()]);
    for end in ends {
        let part = &path[..end];
        match env.metadata(part, true) {
            Ok(Metadata {
                kind: FileKind::Directory,
                ..
            }) => {}
            Ok(_) => return Err(Error::text("File exists")),
            Err(error) if error.is_not_found() => make(env, part)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
