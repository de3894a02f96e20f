//! `cmp [-s] FILE1 [FILE2]`: compares two files byte by byte.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use ulib::{Env, Error, Handle, Process, Program, Reader, RpcResult, Stop, println};

const USAGE: &str = "
usage: cmp [-s] FILE1 [FILE2]
Tells where two files differ first; `-` or no FILE2 is the standard input. -s: status only.
Status 0: they are equal, 1: they differ, 2: an error.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

/// What two files have in common at their starts.
struct Equal {
    bytes: u64,
    lines: u64,
    ends_line: bool,
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "s")?;
    let (a, b) = match options.operands.as_slice() {
        [a] => (a.as_slice(), &b"-"[..]),
        [a, b] => (a.as_slice(), b.as_slice()),
        _ => return Err(Stop::usage("one or two files; `cmp --help` says more")),
    };
    let silent = options.has('s');
    let mut first = env.input(a).map_err(|error| with_status_2(a, error))?;
    let mut second = env.input(b).map_err(|error| with_status_2(b, error))?;
    let mut equal = Equal {
        bytes: 0,
        lines: 0,
        ends_line: false,
    };
    loop {
        let left = first.fill().map_err(|error| with_status_2(a, error))?;
        let right = second.fill().map_err(|error| with_status_2(b, error))?;
        let common = left.iter().zip(right).take_while(|(a, b)| a == b).count();
        equal.add(&left[..common]);
        let (more_left, more_right) = (common < left.len(), common < right.len());
        match (left.is_empty(), right.is_empty()) {
            (true, true) => return Ok(0),
            (true, false) => return ended(env, a, &equal, silent),
            (false, true) => return ended(env, b, &equal, silent),
            _ if more_left && more_right => return differ(env, a, b, &equal, silent),
            _ => {}
        }
        consume(&mut first, &mut second, common);
    }
}

fn consume(first: &mut Reader, second: &mut Reader, count: usize) {
    first.consume(count);
    second.consume(count);
}

impl Equal {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.ends_line = bytes.last().map_or(self.ends_line, |&byte| byte == b'\n');
    }
}

fn differ(env: &Env, a: &[u8], b: &[u8], equal: &Equal, silent: bool) -> Result<i32, Stop> {
    if !silent {
        let (a, b) = (String::from_utf8_lossy(a), String::from_utf8_lossy(b));
        let (byte, line) = (equal.bytes + 1, equal.lines + 1);
        println!(env, "{a} {b} differ: byte {byte}, line {line}")?;
    }
    Ok(1)
}

/// Tells that `file` is the start of the other one.
fn ended(env: &Env, file: &[u8], equal: &Equal, silent: bool) -> Result<i32, Stop> {
    let name = String::from_utf8_lossy(file);
    let bytes = equal.bytes;
    match (silent, bytes, equal.ends_line) {
        (true, ..) => {}
        (_, 0, _) => env.complain(format_args!("EOF on {name} which is empty")),
        (_, _, true) => {
            let line = equal.lines;
            env.complain(format_args!(
                "EOF on {name} after byte {bytes}, line {line}"
            ));
        }
        (_, _, false) => {
            let line = equal.lines + 1;
            env.complain(format_args!(
                "EOF on {name} after byte {bytes}, in line {line}"
            ));
        }
    }
    Ok(1)
}

fn with_status_2(file: &[u8], error: Error) -> Stop {
    match Stop::about(file, error) {
        Stop::Fault { subject, error, .. } => Stop::Fault {
            subject,
            error,
            status: 2,
        },
        quiet => quiet,
    }
}
