//! `yes [TEXT...]`: prints a line again and again, until it is ended or nobody reads it any more.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: yes [TEXT...]
Prints `y`, or the TEXTs, again and again.";
/// About how many bytes are written at once.
const AT_ONCE: usize = 4096;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let words = env.options(USAGE, "")?.operands;
    let mut line = match words.is_empty() {
        true => Vec::from(*b"y"),
        false => words.join(&b' '),
    };
    line.push(b'\n');
    let block = line.repeat((AT_ONCE / line.len()).max(1));
    loop {
        env.write(&block)?;
        env.flush()?;
    }
}
