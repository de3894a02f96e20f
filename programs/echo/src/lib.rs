//! `echo [-n] [TEXT...]`: prints its arguments, separated by blanks; with `-n` without a line break
//! behind.
#![no_std]
#![forbid(unsafe_code)]

use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let (line_break, words) = match env.arguments() {
        [first, rest @ ..] if first == b"-n" => (&b""[..], rest),
        all => (&b"\n"[..], all),
    };
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            env.write(b" ")?;
        }
        env.write(word)?;
    }
    env.write(line_break)?;
    Ok(0)
}
