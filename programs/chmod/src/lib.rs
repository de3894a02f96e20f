//! `chmod MODE FILE...`: changes the permission bits of files. They are kept and shown, not
//! enforced; only a script must be executable to be started by its name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use interfaces::{FileKind, Metadata};
use textutil::path::join;
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: chmod [-R] MODE FILE...
MODE is octal, or [ugoa]*[-+=][rwxX]* with commas between. -R: with all that is in directories.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    // A mode such as -w looks like options: only -R is one.
    let arguments = env.arguments();
    let recursive = arguments.first().is_some_and(|it| it == b"-R");
    if arguments.iter().any(|it| it == b"--help") {
        env.options(USAGE, "")?;
    }
    let [mode, files @ ..] = &arguments[usize::from(recursive)..] else {
        return Err(Stop::usage("a mode is missing; `chmod --help` says more"));
    };
    if files.is_empty() {
        return Err(Stop::usage("a file is missing; `chmod --help` says more"));
    }
    let Some(mode) = textutil::mode::Change::parse(mode) else {
        return Err(Stop::about(mode, Error::text("invalid mode")));
    };
    let mut todo: Vec<Vec<u8>> = files.iter().rev().cloned().collect();
    while let Some(file) = todo.pop() {
        match change(env, &file, &mode) {
            Ok(of) if recursive && matches!(of.kind, FileKind::Directory) => {
                let entries = match env.read_directory(&file) {
                    Ok(entries) => entries,
                    Err(error) => {
                        env.fail(&file, &error);
                        continue;
                    }
                };
                let names = entries.into_iter().map(|entry| entry.name);
                let names = names.filter(|name| name != b"." && name != b"..");
                todo.extend(names.map(|name| join(&file, &name)));
            }
            Ok(_) => {}
            Err(error) => env.fail(&file, &error),
        }
    }
    Ok(env.status())
}

fn change(env: &Env, file: &[u8], mode: &textutil::mode::Change) -> Result<Metadata, Error> {
    let of = env.metadata(file, true)?;
    let is_directory = matches!(of.kind, FileKind::Directory);
    let new = mode.apply(of.mode, is_directory);
    env.with_path(file, |process, path| process.set_mode(path, new))?;
    Ok(of)
}
