//! `find [PATH...] [-name PATTERN] [-type f|d|l] [-maxdepth N]`: finds files by name and kind.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use interfaces::FileKind;
use shell::{PatternByte, matches};
use textutil::directory::Kind;
use textutil::path::{base_name, join};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: find [PATH...] [-name PATTERN] [-type f|d|l] [-maxdepth N]
Prints the path of each file at and below each PATH, or the working directory, sorted by name.
  -name PATTERN  whose name matches, with * ? [a-z]
  -type f|d|l    files, directories, symbolic links
  -maxdepth N    not deeper than N directories";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

/// What is looked for.
struct Wanted {
    names: Vec<Vec<PatternByte>>,
    kinds: Vec<Kind>,
    depth: usize,
}

fn main(env: &Env) -> Result<i32, Stop> {
    let (paths, wanted) = match env.arguments().iter().any(|it| it == b"--help") {
        true => return env.options(USAGE, "nametypdxhfl").map(|_| 0),
        false => arguments(env.arguments())?,
    };
    for path in &paths {
        match env.metadata(path, false) {
            Ok(metadata) => walk(env, path, kind(metadata.kind), &wanted)?,
            Err(error) => env.fail(path, &error),
        }
    }
    Ok(env.status())
}

fn kind(kind: FileKind) -> Kind {
    match kind {
        FileKind::Regular => Kind::Regular,
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::Other => Kind::Other,
    }
}

fn arguments(arguments: &[Vec<u8>]) -> Result<(Vec<Vec<u8>>, Wanted), Stop> {
    let start = arguments.iter().position(|it| it.starts_with(b"-"));
    let (paths, tests) = arguments.split_at(start.unwrap_or(arguments.len()));
    let mut wanted = Wanted {
        names: Vec::new(),
        kinds: Vec::new(),
        depth: usize::MAX,
    };
    let mut tests = tests.iter();
    while let Some(test) = tests.next() {
        if test == b"-print" {
            continue;
        }
        let value = tests.next().map(Vec::as_slice);
        match (test.as_slice(), value) {
            (b"-name", Some(pattern)) => wanted.names.push(pattern_bytes(pattern)),
            (b"-type", Some(b"f")) => wanted.kinds.push(Kind::Regular),
            (b"-type", Some(b"d")) => wanted.kinds.push(Kind::Directory),
            (b"-type", Some(b"l")) => wanted.kinds.push(Kind::Symlink),
            (b"-maxdepth", Some(number)) => wanted.depth = depth(number)?,
            (test, _) => {
                return Err(Stop::usage(&alloc::format!(
                    "`{}` is not known or lacks its value; `find --help` says more",
                    String::from_utf8_lossy(test)
                )));
            }
        }
    }
    let paths = match paths {
        [] => Vec::from([b".".to_vec()]),
        paths => paths.to_vec(),
    };
    Ok((paths, wanted))
}

fn depth(text: &[u8]) -> Result<usize, Stop> {
    let number = core::str::from_utf8(text).ok();
    let number = number.and_then(|text| text.parse().ok());
    number.ok_or_else(|| Stop::usage("-maxdepth: invalid number"))
}

/// A byte before patterns and names alike: with it no name starts with a dot, which would be special.
const BEFORE: u8 = b'/';

/// A pattern in which a backslash takes the meaning from the byte behind it.
fn pattern_bytes(text: &[u8]) -> Vec<PatternByte> {
    let mut pattern = Vec::from([(BEFORE, false)]);
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        pattern.push(match byte {
            b'\\' => (*bytes.next().unwrap_or(&byte), false),
            _ => (byte, true),
        });
    }
    pattern
}

impl Wanted {
    fn has(&self, path: &[u8], kind: Kind) -> bool {
        let name = [&[BEFORE], base_name(path)].concat();
        self.names.iter().all(|pattern| matches(pattern, &name))
            && self.kinds.iter().all(|&wanted| wanted == kind)
    }
}

/// Prints what is wanted of `path` and what is below it.
fn walk(env: &Env, path: &[u8], kind: Kind, wanted: &Wanted) -> Result<(), Stop> {
    let mut pending = Vec::from([(path.to_vec(), kind, 0)]);
    while let Some((path, kind, depth)) = pending.pop() {
        if wanted.has(&path, kind) {
            env.write(&path)?;
            env.write(b"\n")?;
        }
        if kind != Kind::Directory || depth >= wanted.depth {
            continue;
        }
        let mut entries = match env.read_directory(&path) {
            Ok(entries) => entries,
            Err(error) => {
                env.fail(&path, &error);
                continue;
            }
        };
        entries.retain(|entry| entry.name != b"." && entry.name != b"..");
        entries.sort_by(|a, b| b.name.cmp(&a.name));
        let below = entries.into_iter();
        pending.extend(below.map(|it| (join(&path, &it.name), it.kind, depth + 1)));
    }
    Ok(())
}
