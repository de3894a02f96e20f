//! `sha256sum [-c] [FILE...]`: prints the SHA-256 sums of files, or checks those that it printed
//! before.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use textutil::sha256::{Sha256, hexadecimal, parse_sum_line, sum_line};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: sha256sum [FILE...]
       sha256sum -c [FILE...]
Prints the SHA-256 sum of each FILE; `-` or none is the standard input.
With -c the FILEs hold lines that this program printed; says which of the files named there are unchanged.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "cbt")?;
    let mut files = options.operands.clone();
    if files.is_empty() {
        files = Vec::from([b"-".to_vec()]);
    }
    for file in &files {
        match options.has('c') {
            true => check(env, file)?,
            false => match digest(env, file) {
                Ok(digest) => env.write(&sum_line(&digest, file))?,
                Err(error) => env.fail(file, &error),
            },
        }
    }
    Ok(env.status())
}

fn digest(env: &Env, file: &[u8]) -> Result<[u8; 32], Error> {
    let mut reader = env.input(file)?;
    let mut sum = Sha256::new();
    loop {
        let bytes = reader.fill()?;
        if bytes.is_empty() {
            return Ok(sum.finish());
        }
        sum.update(bytes);
        let taken = bytes.len();
        reader.consume(taken);
    }
}

fn check(env: &Env, list: &[u8]) -> Result<(), Stop> {
    let mut reader = env.input(list).map_err(|error| Stop::about(list, error))?;
    let mut line = Vec::new();
    let (mut checked, mut wrong) = (0_u64, 0_u64);
    while reader
        .read_line(&mut line)
        .map_err(|error| Stop::about(list, error))?
        > 0
    {
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if let Some((expected, name)) = parse_sum_line(text) {
            checked += 1;
            let verdict = match digest(env, &name) {
                Ok(digest)
                    if hexadecimal(&digest)
                        .as_bytes()
                        .eq_ignore_ascii_case(expected) =>
                {
                    "OK"
                }
                Ok(_) => {
                    wrong += 1;
                    "FAILED"
                }
                Err(error) => {
                    env.fail(&name, &error);
                    "FAILED open or read"
                }
            };
            let name = String::from_utf8_lossy(&name);
            ulib::println!(env, "{name}: {verdict}")?;
        }
        line.clear();
    }
    if checked == 0 {
        return Err(Stop::about(
            list,
            Error::text("no properly formatted checksum lines found"),
        ));
    }
    if wrong > 0 {
        env.complain(format_args!(
            "WARNING: {wrong} computed checksum(s) did NOT match"
        ));
    }
    Ok(())
}
