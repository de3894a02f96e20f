//! `sort [-nrubsfcC] [-t BYTE] [-k KEY] [FILE...]`: sorts lines.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use interfaces::RVec;
use textutil::options::Options;
use textutil::order::{Key, Manner, Order};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: sort [OPTION...] [FILE...]
Prints the lines of all FILEs (`-` or none: standard input) in order.
  -n  by number      -r  in reverse      -u  one of equal lines only      -f  small letters as large ones
  -b  without regard to blanks at the start      -s  lines with equal keys stay in their order
  -k FIRST[.BYTE][,LAST[.BYTE]]  by these fields, counted from 1; n, r, f and b behind a number: for this key only
  -t BYTE  what stands between fields; otherwise blanks      -o FILE  into FILE, which may be one that is read
  -c  only tells whether the lines are in order, and which is not; -C: by the status alone
  -m  the FILEs are in order (which changes nothing)";

/// About how many bytes are written at once.
const CHUNK: usize = 64 * 1024;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "nrubsfmcCk:t:o:")?;
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
    if options.has('c') || options.has('C') {
        return Ok(check(env, &options, &order, &lines));
    }
    lines.sort_by(|a, b| order.compare(a, b));
    if options.has('u') {
        lines.dedup_by(|a, b| order.compare(a, b).is_eq());
    }
    match options.value('o') {
        Some(file) => {
            write_to(env, file, &lines).map_err(|error| with_status_2(file, error))?;
        }
        None => {
            for line in lines {
                env.write(line)?;
                env.write(b"\n")?;
            }
        }
    }
    Ok(0)
}

fn write_to(env: &Env, file: &[u8], lines: &[&[u8]]) -> Result<(), Error> {
    let mut writer = env.create(file)?;
    let mut text = Vec::new();
    for line in lines {
        text.extend_from_slice(line);
        text.push(b'\n');
        if text.len() > CHUNK {
            writer.write(&RVec::from_slice(&text)?)?;
            text.clear();
        }
    }
    writer.write(&RVec::from_slice(&text)?)?;
    writer.close()
}

/// Whether the lines are in order; the status.
fn check(env: &Env, options: &Options, order: &Order, lines: &[&[u8]]) -> i32 {
    let wrong = |pair: &&[&[u8]]| match order.compare(pair[0], pair[1]) {
        Ordering::Greater => true,
        Ordering::Equal => options.has('u'),
        Ordering::Less => false,
    };
    let Some(at) = lines.windows(2).position(|pair| wrong(&pair)) else {
        return 0;
    };
    if options.has('c') {
        let file = options.operands.first().map_or(&b"-"[..], |file| file);
        let text = |bytes| String::from_utf8_lossy(bytes);
        let (file, line) = (text(file), text(lines[at + 1]));
        env.complain(format_args!("{file}:{}: disorder: {line}", at + 2));
    }
    1
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
            fold: options.has('f'),
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
