//! `ls [-alRdrt1] [PATH...]`: lists files and directories, one in a line, sorted by name.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use interfaces::{FileKind, Metadata};
use textutil::date::Date;
use textutil::directory::Kind;
use textutil::listing::{Row, long_lines};
use textutil::options::Options;
use textutil::path::join;
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: ls [-a] [-A] [-l] [-R] [-d] [-r] [-t] [-1] [PATH...]
Lists each PATH, or the working directory, one name in a line.
  -a  names that start with a dot, too    -A  the same, but not . and ..
  -l  with permissions, links, owner, length and date
  -R  directories inside directories, too
  -d  directories themselves, not what is in them
  -t  newest first   -r  in reverse";
/// How deep `-R` goes: the stack is bounded, and so are sane directories.
const MOST_DEPTH: usize = 100;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

/// A name to list, with what is known of the file.
struct Item {
    name: Vec<u8>,
    path: Vec<u8>,
    metadata: Metadata,
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "aAlRdrt1")?;
    let mut paths = options.operands.clone();
    if paths.is_empty() {
        paths = Vec::from([b".".to_vec()]);
    }
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    let mut failed = false;
    for path in &paths {
        match item(env, path, path, !options.has('l')) {
            Ok(item) if is_directory(&item) && !options.has('d') => directories.push(item),
            Ok(item) => files.push(item),
            Err(error) => {
                failed = true;
                env.fail(path, &error);
            }
        }
    }
    sort(&mut files, &options);
    sort(&mut directories, &options);
    show(env, &options, &files)?;
    let headings = paths.len() > 1 || options.has('R');
    let mut first = files.is_empty();
    let mut pending: Vec<(Vec<u8>, usize)> = directories
        .into_iter()
        .rev()
        .map(|item| (item.path, 0))
        .collect();
    while let Some((path, depth)) = pending.pop() {
        if headings {
            heading(env, &path, first)?;
        }
        first = false;
        let inner = directory(env, &options, &path)?;
        if depth < MOST_DEPTH {
            pending.extend(inner.into_iter().rev().map(|path| (path, depth + 1)));
        }
    }
    Ok(if failed { 2 } else { env.status() })
}

fn heading(env: &Env, path: &[u8], first: bool) -> Result<(), Stop> {
    if !first {
        env.write(b"\n")?;
    }
    env.write(path)?;
    env.write(b":\n")
}

fn is_directory(item: &Item) -> bool {
    matches!(item.metadata.kind, FileKind::Directory)
}

/// What is known of a path; of a link itself if `follow` is not set or it leads nowhere.
fn item(env: &Env, name: &[u8], path: &[u8], follow: bool) -> Result<Item, Error> {
    let metadata = match env.metadata(path, follow) {
        Err(error) if follow && error.is_not_found() => env.metadata(path, false),
        other => other,
    };
    Ok(Item {
        name: name.to_vec(),
        path: path.to_vec(),
        metadata: metadata?,
    })
}

/// Lists one directory; the directories inside that `-R` goes on with.
fn directory(env: &Env, options: &Options, path: &[u8]) -> Result<Vec<Vec<u8>>, Stop> {
    let entries = match env.read_directory(path) {
        Ok(entries) => entries,
        Err(error) => {
            env.fail(path, &error);
            return Ok(Vec::new());
        }
    };
    let shown = |name: &[u8]| match name {
        b"." | b".." => options.has('a'),
        [b'.', ..] => options.has('a') || options.has('A'),
        _ => true,
    };
    let names = entries.into_iter().filter(|entry| shown(&entry.name));
    if !['l', 't', 'R']
        .into_iter()
        .any(|letter| options.has(letter))
    {
        let mut names: Vec<Vec<u8>> = names.map(|entry| entry.name).collect();
        names.sort();
        if options.has('r') {
            names.reverse();
        }
        for name in names {
            env.write(&name)?;
            env.write(b"\n")?;
        }
        return Ok(Vec::new());
    }
    let mut items = Vec::new();
    for entry in names {
        match item(env, &entry.name, &join(path, &entry.name), false) {
            Ok(item) => items.push(item),
            Err(error) => env.fail(&join(path, &entry.name), &error),
        }
    }
    sort(&mut items, options);
    if options.has('l') {
        let bytes: u64 = items.iter().map(|item| item.metadata.allocated).sum();
        println!(env, "total {}", bytes.div_ceil(1024))?;
    }
    show(env, options, &items)?;
    let inside = |item: &Item| is_directory(item) && item.name != b"." && item.name != b"..";
    let inner = items
        .into_iter()
        .filter(|item| options.has('R') && inside(item));
    Ok(inner.map(|item| item.path).collect())
}

fn sort(items: &mut [Item], options: &Options) {
    items.sort_by(|a, b| a.name.cmp(&b.name));
    if options.has('t') {
        items.sort_by_key(|item| core::cmp::Reverse(item.metadata.modified));
    }
    if options.has('r') {
        items.reverse();
    }
}

fn show(env: &Env, options: &Options, items: &[Item]) -> Result<(), Stop> {
    if options.has('l') {
        let now = ulib::wall_seconds();
        let rows: Vec<Row> = items.iter().map(|item| row(env, item, now)).collect();
        return env.write(&long_lines(&rows));
    }
    for item in items {
        env.write(&item.name)?;
        env.write(b"\n")?;
    }
    Ok(())
}

fn row(env: &Env, item: &Item, now: u64) -> Row {
    let metadata = &item.metadata;
    let kind = match metadata.kind {
        FileKind::Regular => Kind::Regular,
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::CharacterDevice => Kind::CharacterDevice,
        FileKind::BlockDevice => Kind::BlockDevice,
        FileKind::Pipe => Kind::Pipe,
        FileKind::Socket => Kind::Socket,
    };
    let target = match kind {
        Kind::Symlink => env.read_link(&item.path).ok(),
        _ => None,
    };
    Row {
        kind,
        mode: metadata.mode,
        links: metadata.links,
        user: metadata.user,
        group: metadata.group,
        size: metadata.size,
        date: Date::listed(metadata.modified / 1_000_000_000, now),
        name: item.name.clone(),
        target,
    }
}
