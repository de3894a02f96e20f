//! `diff [-uqs] FILE FILE`: compares files line by line.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::vec::Vec;
use interfaces::FileKind;
use textutil::clock::format as format_date;
use textutil::diff::{normal, unified};
use textutil::path::{base_name, join};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: diff [-u] [-q] [-s] FILE FILE
Shows how the first file becomes the second; of a directory, the file of the other's name in it. -u: with three lines
around each change; -q: only whether they differ; -s: also when they do not. Status 0: the same, 1: not, 2: trouble.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "uqs")?;
    let [first, second] = options.operands.as_slice() else {
        return Err(Stop::usage("two files are needed; `diff --help` says more"));
    };
    let first_path = in_directory(env, first, second);
    let second_path = in_directory(env, second, first);
    let (old, new) = match (read(env, &first_path), read(env, &second_path)) {
        (Some(old), Some(new)) => (old, new),
        _ => return Ok(2),
    };
    let names = [&first_path[..], b" and ", &second_path].concat();
    if old == new {
        if options.has('s') {
            env.write(&[b"Files ", &names[..], b" are identical\n"].concat())?;
        }
        return Ok(0);
    }
    if options.has('q') || old.contains(&0) || new.contains(&0) {
        let kind: &[u8] = if options.has('q') {
            b"Files "
        } else {
            b"Binary files "
        };
        env.write(&[kind, &names, b" differ\n"].concat())?;
        return Ok(1);
    }
    if options.has('u') {
        env.write(&header(env, b"--- ", &first_path))?;
        env.write(&header(env, b"+++ ", &second_path))?;
        env.write(&unified(&old, &new, 3))?;
    } else {
        env.write(&normal(&old, &new))?;
    }
    Ok(1)
}

/// `path`, or if that is a directory the file in it that is called as `other` is.
fn in_directory(env: &Env, path: &[u8], other: &[u8]) -> Vec<u8> {
    let of = env.metadata(path, true);
    match of.is_ok_and(|of| matches!(of.kind, FileKind::Directory)) {
        true => join(path, base_name(other)),
        false => path.to_vec(),
    }
}

fn read(env: &Env, path: &[u8]) -> Option<Vec<u8>> {
    match env.input(path).and_then(|mut reader| reader.read_to_end()) {
        Ok(text) => Some(text),
        Err(error) => {
            env.fail(path, &error);
            None
        }
    }
}

/// A line that names a file and its date.
fn header(env: &Env, sign: &[u8], path: &[u8]) -> Vec<u8> {
    let modified = env.metadata(path, true).map_or(0, |of| of.modified);
    let (seconds, rest) = (modified / 1_000_000_000, modified % 1_000_000_000);
    let date = format_date(b"%Y-%m-%d %H:%M:%S", seconds).unwrap_or_default();
    [sign, path, format!("\t{date}.{rest:09} +0000\n").as_bytes()].concat()
}
