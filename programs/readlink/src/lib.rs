//! `readlink [-f] [-n] FILE...`: prints where symbolic links lead.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use textutil::path::{base_name, directory_name, join};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: readlink [-f] [-n] FILE...
Prints where each symbolic link leads. -f: the path without any link in it; all but the last part must exist.
-n: no line break behind.";

/// Most links on the way to a file.
const LINKS: usize = 40;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "fn")?;
    if options.operands.is_empty() {
        return Err(Stop::usage(
            "a file is missing; `readlink --help` says more",
        ));
    }
    let mut failed = false;
    for file in &options.operands {
        let target = match options.has('f') {
            true => canonical(env, file),
            false => env.read_link(file),
        };
        // As elsewhere, it fails without a word.
        let Ok(target) = target else {
            failed = true;
            continue;
        };
        env.write(&target)?;
        if !options.has('n') {
            env.write(b"\n")?;
        }
    }
    Ok(i32::from(failed))
}

/// The path of `file` without links, `.` and `..`.
fn canonical(env: &Env, file: &[u8]) -> Result<Vec<u8>, Error> {
    let mut done = match file.first() {
        Some(b'/') => Vec::new(),
        _ => env.process().working_directory()?.to_vec(),
    };
    let mut todo: Vec<Vec<u8>> = parts(file);
    let mut links = 0;
    while let Some(part) = todo.pop() {
        if part == b".." {
            done = directory_name(&done).to_vec();
            continue;
        }
        let next = join(if done.is_empty() { b"/" } else { &done }, &part);
        match env.read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > LINKS {
                    return Err(Error::text("Too many levels of symbolic links"));
                }
                if target.starts_with(b"/") {
                    done.clear();
                }
                todo.extend(parts(&target));
            }
            Err(_) => {
                if !todo.is_empty() {
                    env.metadata(&next, true)?;
                }
                done = next;
            }
        }
    }
    if done.is_empty() {
        done.push(b'/');
    }
    debug_assert!(!base_name(&done).contains(&0), "a name has no zero byte");
    Ok(done)
}

/// The names in a path, the last first.
fn parts(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|&byte| byte == b'/').rev();
    let names = names.filter(|name| !name.is_empty() && *name != b".");
    names.map(<[u8]>::to_vec).collect()
}
