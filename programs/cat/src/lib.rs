//! `cat [FILE...]`: prints files one after the other; `-` or none is the standard input.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use ulib::{Env, Handle, Process, Program, Reader, RpcResult, Stop};

const USAGE: &str = "
usage: cat [FILE...]
Prints the files one after the other. `-`, or no FILE, is the standard input.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let mut files = env.options(USAGE, "u")?.operands;
    if files.is_empty() {
        files = Vec::from([b"-".to_vec()]);
    }
    for file in &files {
        match env.input(file) {
            Ok(reader) => copy(env, file, reader)?,
            Err(error) => env.fail(file, &error),
        }
    }
    Ok(env.status())
}

fn copy(env: &Env, file: &[u8], mut reader: Reader) -> Result<(), Stop> {
    loop {
        match reader.shared() {
            Ok(Some(chunk)) => env.write_shared(chunk)?,
            Ok(None) => return Ok(()),
            Err(error) => {
                env.fail(file, &error);
                return Ok(());
            }
        }
    }
}
