//! `xargs [-0rt] [-n COUNT] [-I TEXT] [COMMAND [ARGUMENT...]]`: runs a program with arguments from
//! its input.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use textutil::words::{lines, split, split_at};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, command};

const USAGE: &str = "
usage: xargs [-0] [-r] [-t] [-n COUNT] [-I TEXT] [COMMAND [ARGUMENT...]]
Runs COMMAND (echo) with the words of the standard input behind its arguments.
  -0  words end in zero bytes   -r  not at all without words   -t  shows what is run
  -n COUNT  with so many words each time   -I TEXT  once for each line, which takes the place of TEXT";

/// Most bytes of words for one run.
const MOST_BYTES: usize = 128 * 1024;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let arguments = env.arguments();
    let end = command::options_end(arguments, b"nIsPL");
    let options = env.options_of(&arguments[..end], USAGE, "0rtn:I:")?;
    let echo = [b"echo".to_vec()];
    let command = match &arguments[end..] {
        [] => &echo[..],
        command => command,
    };
    let input = env
        .stdin()
        .read_to_end()
        .map_err(|error| Stop::about(b"-", error))?;
    let count = match options.value('n') {
        None => usize::MAX,
        Some(text) => match core::str::from_utf8(text)
            .ok()
            .and_then(|it| it.parse().ok())
        {
            Some(count @ 1..) => count,
            _ => return Err(Stop::usage("-n: a number above 0 is needed")),
        },
    };
    let words = match (options.has('0'), options.value('I')) {
        (true, _) => split_at(&input, 0),
        (_, Some(_)) => lines(&input),
        _ => split(&input).ok_or_else(|| Stop::usage("unmatched quote"))?,
    };
    let runs: Vec<Vec<Vec<u8>>> = match options.value('I') {
        Some(place) => words
            .iter()
            .map(|word| replaced(command, place, word))
            .collect(),
        None => batches(command, words, count, options.has('r')),
    };
    let mut status = 0;
    for run in runs {
        if options.has('t') {
            env.complain(format_args!(
                "{}",
                alloc::string::String::from_utf8_lossy(&run.join(&b' '))
            ));
        }
        match command::run(env, &run)? {
            0 => {}
            stop @ (126 | 127) => return Ok(stop),
            255 => return Ok(124),
            _ => status = 123,
        }
    }
    Ok(status)
}

/// The command with `word` wherever `place` stands.
fn replaced(command: &[Vec<u8>], place: &[u8], word: &[u8]) -> Vec<Vec<u8>> {
    let one = |argument: &Vec<u8>| {
        let mut text = Vec::new();
        let mut rest = argument.as_slice();
        while !rest.is_empty() {
            match rest.strip_prefix(place).filter(|_| !place.is_empty()) {
                Some(behind) => {
                    text.extend_from_slice(word);
                    rest = behind;
                }
                None => {
                    text.push(rest[0]);
                    rest = &rest[1..];
                }
            }
        }
        text
    };
    command.iter().map(one).collect()
}

/// The command with the words behind it, as often as they need.
fn batches(
    command: &[Vec<u8>],
    words: Vec<Vec<u8>>,
    count: usize,
    not_without: bool,
) -> Vec<Vec<Vec<u8>>> {
    let mut runs = Vec::new();
    let mut run = command.to_vec();
    let mut bytes = 0;
    for word in words {
        let full = run.len() - command.len() >= count || bytes + word.len() > MOST_BYTES;
        if full && run.len() > command.len() {
            runs.push(core::mem::replace(&mut run, command.to_vec()));
            bytes = 0;
        }
        bytes += word.len() + 1;
        run.push(word);
    }
    if run.len() > command.len() || (runs.is_empty() && !not_without) {
        runs.push(run);
    }
    runs
}
