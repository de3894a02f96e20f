//! `du [-ashck] [PATH...]`: shows how much room directories and files take.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::BTreeSet;
use alloc::string::ToString;
use alloc::vec::Vec;
use interfaces::FileKind;
use textutil::path::join;
use textutil::table::human_bytes;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: du [-a] [-s] [-h] [-c] [-b] [PATH...]
Shows how much room each directory in PATH (.) takes, in KiB. A file with several names counts once.
  -a  files, too   -s  only each PATH   -h  larger units   -b  lengths in bytes   -c  the sum of all";

/// Deepest directory.
const DEEPEST: usize = 64;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

struct Count<'a> {
    env: &'a Env,
    files: bool,
    directories: bool,
    human: bool,
    lengths: bool,
    seen: BTreeSet<u64>,
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "ashcbk")?;
    let here = [b".".to_vec()];
    let paths = match options.operands.as_slice() {
        [] => &here,
        paths => paths,
    };
    let mut count = Count {
        env,
        files: options.has('a'),
        directories: !options.has('s'),
        human: options.has('h'),
        lengths: options.has('b'),
        seen: BTreeSet::new(),
    };
    let mut sum = 0;
    for path in paths {
        sum += count.path(path, 0)?;
    }
    if options.has('c') {
        count.show(sum, b"total")?;
    }
    Ok(env.status())
}

impl Count<'_> {
    fn show(&self, bytes: u64, path: &[u8]) -> Result<(), Stop> {
        let text = match (self.lengths, self.human) {
            (true, _) => bytes.to_string(),
            (_, true) => human_bytes(bytes),
            _ => bytes.div_ceil(1024).to_string(),
        };
        self.env
            .write(&[text.as_bytes(), b"\t", path, b"\n"].concat())
    }

    /// Counts what is at a path, and shows it as far as it is to be shown.
    fn path(&mut self, path: &[u8], depth: usize) -> Result<u64, Stop> {
        let of = match self.env.metadata(path, false) {
            Ok(of) => of,
            Err(error) => {
                self.env.fail(path, &error);
                return Ok(0);
            }
        };
        let is_directory = matches!(of.kind, FileKind::Directory);
        if !is_directory && of.links > 1 && !self.seen.insert(of.inode) {
            return Ok(0);
        }
        let mut bytes = if self.lengths { of.size } else { of.allocated };
        if is_directory {
            bytes += self.directory(path, depth)?;
        }
        if depth == 0 || (is_directory && self.directories) || (!is_directory && self.files) {
            self.show(bytes, path)?;
        }
        Ok(bytes)
    }

    fn directory(&mut self, path: &[u8], depth: usize) -> Result<u64, Stop> {
        if depth >= DEEPEST {
            self.env.fail(path, &ulib::Error::text("too deep"));
            return Ok(0);
        }
        let entries = match self.env.read_directory(path) {
            Ok(entries) => entries,
            Err(error) => {
                self.env.fail(path, &error);
                return Ok(0);
            }
        };
        let names = entries.into_iter().map(|entry| entry.name);
        let mut names: Vec<Vec<u8>> = names.filter(|it| it != b"." && it != b"..").collect();
        names.sort();
        let mut bytes = 0;
        for name in names {
            bytes += self.path(&join(path, &name), depth + 1)?;
        }
        Ok(bytes)
    }
}
