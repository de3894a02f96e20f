//! `rm [-r] [-f] PATH...`: removes files and, with `-r`, directories with all that is in them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use interfaces::{FileKind, Metadata};
use textutil::path::{base_name, join};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: rm [-r] [-f] PATH...
Removes files; with -r also directories with all that is in them. -f: no message about what is not there.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

/// What is still to be removed.
enum Job {
    /// Whatever is there.
    Tree(Vec<u8>),
    /// A directory that is empty by now.
    Empty(Vec<u8>),
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "rRfd")?;
    let recursive = options.has('r') || options.has('R');
    if options.operands.is_empty() && !options.has('f') {
        return Err(Stop::usage("a path is missing; `rm --help` says more"));
    }
    for path in &options.operands {
        if matches!(base_name(path), b"/" | b"." | b"..") {
            env.fail(path, &Error::text("refusing to remove this directory"));
            continue;
        }
        remove(env, path, recursive, options.has('f'));
    }
    Ok(env.status())
}

/// Removes a path; says what could not be removed.
fn remove(env: &Env, path: &[u8], recursive: bool, force: bool) {
    let mut jobs = Vec::from([Job::Tree(path.to_vec())]);
    while let Some(job) = jobs.pop() {
        let (path, done) = match &job {
            Job::Empty(path) => (
                path,
                env.with_path(path, |process, path| process.remove_directory(path)),
            ),
            Job::Tree(path) => (path, remove_one(env, path, recursive, &mut jobs)),
        };
        match done {
            Err(error) if !(force && error.is_not_found()) => env.fail(path, &error),
            _ => {}
        }
    }
}

/// Removes a file; for a directory adds what has to be removed first.
fn remove_one(env: &Env, path: &[u8], recursive: bool, jobs: &mut Vec<Job>) -> Result<(), Error> {
    if !matches!(
        env.metadata(path, false)?,
        Metadata {
            kind: FileKind::Directory,
            ..
        }
    ) {
        return env.with_path(path, |process, path| process.unlink(path));
    }
    if !recursive {
        return Err(Error::text("Is a directory"));
    }
    let entries = env.read_directory(path)?;
    jobs.push(Job::Empty(path.to_vec()));
    let inside = entries
        .into_iter()
        .filter(|entry| entry.name != b"." && entry.name != b"..");
    jobs.extend(inside.map(|entry| Job::Tree(join(path, &entry.name))));
    Ok(())
}
