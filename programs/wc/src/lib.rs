//! `wc [-lwc] [FILE...]`: counts lines, words and bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use textutil::count::{Counter, Counts, width};
use textutil::options::Options;
use ulib::{Env, Error, Handle, Process, Program, Reader, RpcResult, Stop, print};

const USAGE: &str = "
usage: wc [-l] [-w] [-c] [FILE...]
Counts the lines (-l), words (-w) and bytes (-c) of each FILE; without options all three.
`-`, or no FILE, is the standard input.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

/// Which counts are printed.
struct Columns {
    lines: bool,
    words: bool,
    bytes: bool,
}

impl Columns {
    fn new(options: &Options) -> Self {
        let all = !['l', 'w', 'c', 'm']
            .into_iter()
            .any(|letter| options.has(letter));
        Columns {
            lines: all || options.has('l'),
            words: all || options.has('w'),
            bytes: all || options.has('c') || options.has('m'),
        }
    }

    fn count(&self) -> usize {
        [self.lines, self.words, self.bytes]
            .into_iter()
            .filter(|&shown| shown)
            .count()
    }
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "lwcm")?;
    let columns = Columns::new(&options);
    if options.operands.is_empty() {
        return standard_input(env, &columns);
    }
    let width = match options.operands.len() == 1 && columns.count() == 1 {
        true => 1,
        false => width_for(env, &options.operands),
    };
    let mut total = Counts::default();
    for file in &options.operands {
        match env
            .input(file)
            .and_then(|mut reader| count(&mut reader, columns.words))
        {
            Ok(counts) => {
                total += counts;
                line(env, &columns, &counts, width, Some(file))?;
            }
            Err(error) => env.fail(file, &error),
        }
    }
    if options.operands.len() > 1 {
        line(env, &columns, &total, width, Some(b"total"))?;
    }
    Ok(env.status())
}

fn standard_input(env: &Env, columns: &Columns) -> Result<i32, Stop> {
    let mut reader = env.stdin();
    let counts = count(&mut reader, columns.words)?;
    let width = match columns.count() {
        1 => 1,
        _ => width(counts.bytes, !reader.is_file()),
    };
    line(env, columns, &counts, width, None)?;
    Ok(0)
}

/// The width of the columns, which depends on the lengths of all files.
fn width_for(env: &Env, files: &[Vec<u8>]) -> usize {
    let (mut total, mut unknown) = (0, false);
    for file in files {
        match env.metadata(file, true) {
            Ok(metadata) if file != b"-" => {
                let regular = matches!(metadata.kind, interfaces::FileKind::Regular);
                total += if regular { metadata.size } else { 0 };
                unknown |= !regular;
            }
            _ => unknown |= file == b"-",
        }
    }
    width(total, unknown)
}

fn count(reader: &mut Reader, words: bool) -> Result<Counts, Error> {
    let mut counter = Counter::default();
    loop {
        let bytes = reader.fill()?;
        if bytes.is_empty() {
            return Ok(counter.counts());
        }
        match words {
            true => counter.add(bytes),
            false => counter.add_lines(bytes),
        }
        let taken = bytes.len();
        reader.consume(taken);
    }
}

fn line(
    env: &Env,
    columns: &Columns,
    counts: &Counts,
    width: usize,
    name: Option<&[u8]>,
) -> Result<(), Stop> {
    let all = [
        (columns.lines, counts.lines),
        (columns.words, counts.words),
        (columns.bytes, counts.bytes),
    ];
    let shown = all.iter().filter(|(shown, _)| *shown);
    let numbers: Vec<String> = shown
        .map(|(_, number)| alloc::format!("{number:>width$}"))
        .collect();
    print!(env, "{}", numbers.join(" "))?;
    if let Some(name) = name {
        env.write(b" ")?;
        env.write(name)?;
    }
    env.write(b"\n")
}
