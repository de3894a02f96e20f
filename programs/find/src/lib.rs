//! `find [PATH...] [EXPRESSION]`: finds files, and does something with them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{FileKind, Metadata};
use shell::{PatternByte, matches, matches_text};
use textutil::directory::Kind;
use textutil::path::{base_name, join};
use textutil::search::{Nonsense, Search, Test};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, command};

const USAGE: &str = "
usage: find [PATH...] [EXPRESSION]
Goes through all files at and below each PATH, or the working directory, by name, and prints those for which EXPRESSION
holds. Questions, of which all must hold where `-o` does not stand between them; `!` and ( ) as usual:
  -name PATTERN, -iname   the name matches, with * ? [a-z]     -path PATTERN   the whole path does
  -type f|d|l|b|c|p|s     file, directory, link, devices, ...  -empty          nothing is in it
  -size [+-]N[ckMG]       so many blocks of 512 bytes, bytes, KiB ...; more (+), less (-)
  -newer FILE             changed later than FILE              -true, -false
What is done, instead of printing at the end:
  -print, -print0   -delete   -prune (not what is in it)   -exec COMMAND {} ;   -exec COMMAND {} +
Where to look: -maxdepth N, -mindepth N; -depth: what is in a directory comes before it.";

/// Most bytes of paths that a command gets at once.
const MOST_BYTES: usize = 64 * 1024;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    if env.arguments().first().is_some_and(|it| it == b"--help") {
        return env.options_of(&env.arguments()[..1], USAGE, "").map(|_| 0);
    }
    let search = Search::parse(env.arguments()).map_err(|Nonsense(word)| {
        Stop::usage(&alloc::format!(
            "`{}` is not known, or lacks what belongs behind it; `find --help` says more",
            String::from_utf8_lossy(&word)
        ))
    })?;
    let mut walk = Walk {
        env,
        search: &search,
        waiting: search.together.iter().map(|_| Vec::new()).collect(),
        failed: false,
    };
    for path in &search.paths {
        match env.metadata(path, false) {
            Ok(metadata) => walk.tree(path, kind(&metadata.kind))?,
            Err(error) => env.fail(path, &error),
        }
    }
    for number in 0..search.together.len() {
        walk.run_waiting(number)?;
    }
    Ok(if walk.failed { 1 } else { env.status() })
}

/// A byte before patterns and names alike: with it no name starts with a dot, which would be
/// special.
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

fn fits(pattern: &[u8], text: &[u8]) -> bool {
    matches(&pattern_bytes(pattern), &[&[BEFORE], text].concat())
}

/// A file on the way.
struct Found {
    path: Vec<u8>,
    kind: Kind,
    depth: usize,
    /// What is in it has been gone through.
    left: bool,
}

/// What the questions about a file have led to.
#[derive(Default)]
struct Outcome {
    pruned: bool,
}

struct Walk<'a> {
    env: &'a Env,
    search: &'a Search,
    /// Paths for the commands that are run for many.
    waiting: Vec<Vec<Vec<u8>>>,
    /// A command that was run for many has failed.
    failed: bool,
}

impl Walk<'_> {
    fn tree(&mut self, path: &[u8], kind: Kind) -> Result<(), Stop> {
        let mut pending = Vec::from([Found {
            path: path.to_vec(),
            kind,
            depth: 0,
            left: false,
        }]);
        while let Some(mut found) = pending.pop() {
            let goes_in = found.kind == Kind::Directory && found.depth < self.search.depth.1;
            if found.left || !(goes_in && self.search.inside_first) {
                let outcome = self.look(&found)?;
                if found.left || !goes_in || outcome.pruned {
                    continue;
                }
            }
            let (path, depth) = (found.path.clone(), found.depth + 1);
            if self.search.inside_first {
                found.left = true;
                pending.push(found);
            }
            self.inside(&path, depth, &mut pending);
        }
        Ok(())
    }

    /// Adds what is in a directory, the last name first.
    fn inside(&mut self, path: &[u8], depth: usize, pending: &mut Vec<Found>) {
        let mut entries = match self.env.read_directory(path) {
            Ok(entries) => entries,
            Err(error) => return self.env.fail(path, &error),
        };
        entries.retain(|entry| entry.name != b"." && entry.name != b"..");
        entries.sort_by(|a, b| b.name.cmp(&a.name));
        pending.extend(entries.into_iter().map(|entry| Found {
            path: join(path, &entry.name),
            kind: entry.kind,
            depth,
            left: false,
        }));
    }

    fn look(&mut self, found: &Found) -> Result<Outcome, Stop> {
        let mut outcome = Outcome::default();
        if found.depth >= self.search.depth.0 {
            let search = self.search;
            search
                .wanted
                .holds(&mut |test| self.ask(test, found, &mut outcome))?;
        }
        Ok(outcome)
    }

    fn ask(&mut self, test: &Test, found: &Found, outcome: &mut Outcome) -> Result<bool, Stop> {
        Ok(match test {
            Test::Name { pattern, any_case } => match any_case {
                false => fits(pattern, base_name(&found.path)),
                true => fits(
                    &pattern.to_ascii_lowercase(),
                    &base_name(&found.path).to_ascii_lowercase(),
                ),
            },
            Test::Path(pattern) => {
                let path = [&[BEFORE], found.path.as_slice()].concat();
                matches_text(&pattern_bytes(pattern), &path)
            }
            Test::Kind(letters) => letters.contains(&letter(found.kind)),
            Test::Size(order, number, unit) => self
                .metadata(found)
                .is_some_and(|it| it.size.div_ceil(*unit).cmp(number) == *order),
            Test::Newer(file) => {
                let other = self.env.metadata(file, true);
                let other = other.map_err(|error| Stop::about(file, error))?;
                self.metadata(found)
                    .is_some_and(|it| it.modified > other.modified)
            }
            Test::Empty => self.is_empty(found),
            Test::Print(end) => {
                self.env.write(&found.path)?;
                self.env.write(&[*end])?;
                true
            }
            Test::Delete => self.delete(found),
            Test::Prune => {
                outcome.pruned = true;
                true
            }
            Test::Run { command, together } => self.run(command, *together, &found.path)?,
            Test::Always(holds) => *holds,
        })
    }

    /// What else is known of a file; `None`, after a message, if it is gone.
    fn metadata(&self, found: &Found) -> Option<Metadata> {
        let metadata = self.env.metadata(&found.path, false);
        let told = metadata.map_err(|error| self.env.fail(&found.path, &error));
        told.ok()
    }

    fn is_empty(&self, found: &Found) -> bool {
        match found.kind {
            Kind::Regular => self.metadata(found).is_some_and(|it| it.size == 0),
            Kind::Directory => match self.env.read_directory(&found.path) {
                Ok(entries) => entries.iter().all(|it| it.name == b"." || it.name == b".."),
                Err(error) => {
                    self.env.fail(&found.path, &error);
                    false
                }
            },
            _ => false,
        }
    }

    fn delete(&self, found: &Found) -> bool {
        // As its Unix namesake: it would not be right to remove where one stands.
        if found.path == b"." {
            return true;
        }
        let removed = self
            .env
            .with_path(&found.path, |process, path| match found.kind {
                Kind::Directory => process.remove_directory(path),
                _ => process.unlink(path),
            });
        if let Err(error) = &removed {
            self.env.fail(&found.path, error);
        }
        removed.is_ok()
    }

    fn run(
        &mut self,
        command: &[Vec<u8>],
        together: Option<usize>,
        path: &[u8],
    ) -> Result<bool, Stop> {
        if let Some(number) = together {
            self.waiting[number].push(path.to_vec());
            let bytes: usize = self.waiting[number].iter().map(|it| it.len() + 1).sum();
            if bytes > MOST_BYTES {
                self.run_waiting(number)?;
            }
            return Ok(true);
        }
        let with_path = |argument: &Vec<u8>| replaced(argument, path);
        let command: Vec<Vec<u8>> = command.iter().map(with_path).collect();
        Ok(command::run(self.env, &command)? == 0)
    }

    /// Runs a command for all that wait for it.
    fn run_waiting(&mut self, number: usize) -> Result<(), Stop> {
        let paths = core::mem::take(&mut self.waiting[number]);
        if paths.is_empty() {
            return Ok(());
        }
        let command = [self.search.together[number].clone(), paths].concat();
        self.failed |= command::run(self.env, &command)? != 0;
        Ok(())
    }
}

fn kind(kind: &FileKind) -> Kind {
    match kind {
        FileKind::Regular => Kind::Regular,
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::CharacterDevice => Kind::CharacterDevice,
        FileKind::BlockDevice => Kind::BlockDevice,
        FileKind::Pipe => Kind::Pipe,
        FileKind::Socket => Kind::Socket,
    }
}

fn letter(kind: Kind) -> u8 {
    match kind {
        Kind::Regular => b'f',
        Kind::Directory => b'd',
        Kind::Symlink => b'l',
        Kind::CharacterDevice => b'c',
        Kind::BlockDevice => b'b',
        Kind::Pipe => b'p',
        Kind::Socket => b's',
        Kind::Other => 0,
    }
}

/// The argument with `path` wherever `{}` stands.
fn replaced(argument: &[u8], path: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut rest = argument;
    while let Some((&first, behind)) = rest.split_first() {
        match rest.strip_prefix(b"{}") {
            Some(behind) => {
                text.extend_from_slice(path);
                rest = behind;
            }
            None => {
                text.push(first);
                rest = behind;
            }
        }
    }
    text
}
