//! `mv SOURCE... TARGET`: moves or renames files and directories; to another file system by
//! copying.
#![no_std]
#![forbid(unsafe_code)]

mod across;

use interfaces::{Errno, FileKind, FsError, Metadata, RVec};
use textutil::path::{base_name, join};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: mv SOURCE TARGET
       mv SOURCE... DIRECTORY
Moves or renames files and directories.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let operands = env.options(USAGE, "f")?.operands;
    let Some((target, sources)) = operands.split_last().filter(|(_, it)| !it.is_empty()) else {
        return Err(Stop::usage(
            "a source and a target are needed; `mv --help` says more",
        ));
    };
    let metadata = env.metadata(target, true);
    let into = matches!(
        metadata,
        Ok(Metadata {
            kind: FileKind::Directory,
            ..
        })
    );
    if sources.len() > 1 && !into {
        return Err(Stop::about(target, Error::text("Not a directory")));
    }
    for source in sources {
        let moved = match into {
            true => rename(env, source, &join(target, base_name(source))),
            false => rename(env, source, target),
        };
        if let Err(error) = moved {
            env.fail(source, &error);
        }
    }
    Ok(env.status())
}

fn rename(env: &Env, from: &[u8], to: &[u8]) -> Result<(), Error> {
    env.metadata(from, false)?;
    let (source, target) = (RVec::from_slice(from)?, RVec::from_slice(to)?);
    match env.process().rename(&source, &target) {
        Err(Errno::Fs(FsError::CrossDevice)) => across::move_across(env, from, to, 0),
        renamed => Ok(renamed?),
    }
}
