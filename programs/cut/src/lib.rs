//! `cut -f LIST [-d BYTE] [-s] [FILE...]`, `cut -c LIST [FILE...]`: prints parts of lines.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use textutil::fields::Selection;
use ulib::{Env, Error, Handle, Process, Program, Reader, RpcResult, Stop};

const USAGE: &str = "
usage: cut -f LIST [-d BYTE] [-s] [FILE...]
       cut -c LIST [FILE...]
Prints fields (-f) or bytes (-c, -b) of each line of each FILE; `-` or none is the standard input.
LIST is numbers and ranges with commas between them, counted from 1: 1,3-5,7-
  -d BYTE  what stands between fields; otherwise a tab   -s  no lines without it";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

/// What is printed of a line.
struct Cut {
    selection: Selection,
    /// What stands between fields; bytes are selected otherwise.
    separator: Option<u8>,
    separated_only: bool,
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "f:c:b:d:s")?;
    let bytes = options.value('c').or(options.value('b'));
    let separator = match options.value('d') {
        Some(&[separator]) => separator,
        Some(_) => return Err(Stop::usage("-d: one byte is needed")),
        None => b'\t',
    };
    let (list, separator) = match (options.value('f'), bytes) {
        (Some(list), None) => (list, Some(separator)),
        (None, Some(list)) => (list, None),
        _ => return Err(Stop::usage("one of -f, -c and -b; `cut --help` says more")),
    };
    let selection = Selection::parse(list);
    let cut = Cut {
        selection: selection.ok_or_else(|| Stop::usage("invalid list; `cut --help` says more"))?,
        separator,
        separated_only: options.has('s'),
    };
    let mut files = options.operands.clone();
    if files.is_empty() {
        files = Vec::from([b"-".to_vec()]);
    }
    for file in &files {
        let result = match env.input(file) {
            Ok(reader) => cut.file(env, reader)?,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            env.fail(file, &error);
        }
    }
    Ok(env.status())
}

impl Cut {
    /// Prints one file; an error of the file inside, one of the output outside.
    fn file(&self, env: &Env, mut reader: Reader) -> Result<Result<(), Error>, Stop> {
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader.read_line(&mut line) {
                Ok(0) => return Ok(Ok(())),
                Ok(_) => {}
                Err(error) => return Ok(Err(error)),
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let part = match self.separator {
                None => self.selection.bytes(text),
                Some(separator) => match self.selection.fields(text, separator) {
                    Some(fields) => fields,
                    None if self.separated_only => continue,
                    None => text.to_vec(),
                },
            };
            env.write(&part)?;
            env.write(b"\n")?;
        }
    }
}
