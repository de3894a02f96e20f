//! `ln [-sfn] TARGET... [NAME|DIRECTORY]`: gives files other names, or makes symbolic links.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use interfaces::{FileKind, RVec};
use textutil::path::{base_name, join};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: ln [-s] [-f] [-n] TARGET [NAME]
       ln [-s] [-f] TARGET... DIRECTORY
Gives the file TARGET the NAME (by default its own, here), too.
  -s  makes a symbolic link   -f  removes what has the name   -n  a link to a directory is not gone into";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "sfnv")?;
    let (targets, place): (&[Vec<u8>], &[u8]) = match options.operands.as_slice() {
        [] => return Err(Stop::usage("a target is missing; `ln --help` says more")),
        [target] => (core::slice::from_ref(target), b"."),
        [targets @ .., place] => (targets, place),
    };
    let into = env.metadata(place, !options.has('n'));
    let into = into.is_ok_and(|of| matches!(of.kind, FileKind::Directory));
    if targets.len() > 1 && !into {
        return Err(Stop::about(place, Error::text("Not a directory")));
    }
    for target in targets {
        let name = match into {
            true => join(place, base_name(target)),
            false => place.to_vec(),
        };
        if options.has('f')
            && env.metadata(&name, false).is_ok()
            && let Err(error) = env.with_path(&name, |process, path| process.unlink(path))
        {
            env.fail(&name, &error);
            continue;
        }
        if let Err(error) = link(env, target, &name, options.has('s')) {
            env.fail(&name, &error);
        }
    }
    Ok(env.status())
}

fn link(env: &Env, target: &[u8], name: &[u8], symbolic: bool) -> Result<(), Error> {
    let shared = RVec::from_slice(target)?;
    env.with_path(name, |process, path| match symbolic {
        true => process.symlink(path, &shared),
        false => process.link(&shared, path),
    })
}
