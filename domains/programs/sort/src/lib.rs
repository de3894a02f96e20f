//! `sort [-nrubs] [-t BYTE] [-k KEY] [FILE...]`: sorts lines.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use textutil::options::Options;
use textutil::order::{Key, Manner, Order};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: sort [OPTION...] [FILE...]
Prints the lines of all FILEs (`-` or none: standard input) in order.
  -n  by number      -r  in reverse      -u  one of equal lines only
  -b  without regard to blanks at the start      -s  lines with equal keys stay in their order
  -k FIRST[,LAST]  by these fields, counted from 1; n, r and b behind a number: for this key only
  -t BYTE  what stands between fields; otherwise blanks";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "nrubsk:t:")?;
    let order = order(&options)?;
    let mut files = options.operands.clone();
    if files.is_empty() {
        files = Vec::from([b"-".to_vec()]);
    }
    let mut text = Vec::new();
    for file in &files {
        append(env, file, &mut text).map_err(|error| with_status_2(file, error))?;
    }
    let body = text.strip_suffix(b"\n").unwrap_or(&text);
    if text.is_empty() {
        return Ok(0);
    }
    let mut lines: Vec<&[u8]> = body.split(|&byte| byte == b'\n').collect();
    lines.sort_by(|a, b| order.compare(a, b));
    if options.has('u') {
        lines.dedup_by(|a, b| order.compare(a, b).is_eq());
    }
    for line in lines {
        env.write(line)?;
        env.write(b"\n")?;
    }
    Ok(0)
}

fn order(options: &Options) -> Result<Order, Stop> {
    let mut keys = Vec::new();
    for text in options.values('k') {
        let key = Key::parse(text);
        keys.push(key.ok_or_else(|| Stop::usage("-k: a key is FIRST[,LAST], counted from 1"))?);
    }
    let separator = match options.value('t') {
        Some(&[separator]) => Some(separator),
        Some(_) => return Err(Stop::usage("-t: one byte is needed")),
        None => None,
    };
    Ok(Order {
        keys,
        separator,
        manner: Manner {
            numeric: options.has('n'),
            reverse: options.has('r'),
            blanks: options.has('b'),
        },
        keys_only: options.has('u') || options.has('s'),
    })
}

/// Appends a file to `text`, which then ends with a line break unless it is empty.
fn append(env: &Env, file: &[u8], text: &mut Vec<u8>) -> Result<(), Error> {
    let mut reader = env.input(file)?;
    while reader.read_line(text)? > 0 {}
    if text.last().is_some_and(|&byte| byte != b'\n') {
        text.push(b'\n');
    }
    Ok(())
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
