//! A file, a symbolic link and a directory are replaced by renames all the time, while threads go
//! by their names: none of them is ever missing, and none is another.

use core::sync::atomic::{AtomicU64, Ordering};

use domain_rt::log;
use interfaces::{Errno, FsError, OpenFlags, RVec};
use ulib::{Error, Handle, Process, READ};

use crate::threads;

/// What is done with the names, each by a thread of its own.
const WAYS: [(&str, Way); 8] = [
    ("open", open),
    ("metadata", metadata),
    ("set-mode", set_mode),
    ("set-time", set_time),
    ("link", link),
    ("read-link", read_link),
    ("through-link", through_link),
    ("create-in", create_in),
];

/// Does it once; whether all was right.
type Way = fn(&Handle<dyn Process>) -> Result<bool, Errno>;

/// How often each does, in all.
static LOOKS: AtomicU64 = AtomicU64::new(0);
/// How many have not ended.
static LEFT: AtomicU64 = AtomicU64::new(0);
/// How often something was missing, or wrong.
static MISSING: [AtomicU64; WAYS.len()] = [const { AtomicU64::new(0) }; WAYS.len()];
static WRONG: [AtomicU64; WAYS.len()] = [const { AtomicU64::new(0) }; WAYS.len()];
/// How often something was replaced.
static REPLACED: AtomicU64 = AtomicU64::new(0);

const NEW: OpenFlags = OpenFlags {
    read: false,
    write: true,
    create: true,
    truncate: true,
    ..READ
};

/// What the file has in it.
const CONTENT: &[u8] = b"whole";

/// Has all threads do their parts so many times; for each its name, and how often something was
/// missing and wrong, and how often something was replaced in all.
///
/// # Errors
/// One of theirs.
pub fn replaced(
    process: &Handle<dyn Process>,
    looks: u64,
) -> Result<(impl Iterator<Item = (&'static str, u64, u64)>, u64), Error> {
    LOOKS.store(looks, Ordering::Relaxed);
    LEFT.store(WAYS.len() as u64, Ordering::Relaxed);
    replace_all(process)?;
    threads::at_once(
        process,
        WAYS.len() as u64 + 1,
        |process, thread| match (thread as usize).checked_sub(1) {
            Some(way) => look(process, way),
            None => replace(process),
        },
    )?;
    let said = WAYS.iter().zip(MISSING.iter().zip(&WRONG));
    let said = said.map(|((name, _), (missing, wrong))| {
        let [missing, wrong] = [missing, wrong].map(|count| count.load(Ordering::Relaxed));
        (*name, missing, wrong)
    });
    Ok((said, REPLACED.load(Ordering::Relaxed)))
}

/// Replaces until all others have ended.
fn replace(process: &Handle<dyn Process>) -> Result<(), Error> {
    while LEFT.load(Ordering::Relaxed) > 0 {
        replace_all(process)?;
        REPLACED.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn replace_all(process: &Handle<dyn Process>) -> Result<(), Error> {
    let file = process.open(&name(b"file.new")?, NEW)?;
    process.write(file, &name(CONTENT)?)?;
    process.close(file)?;
    process.rename(&name(b"file.new")?, &name(b"file")?)?;
    process.symlink(&name(b"link.new")?, &name(b"file")?)?;
    process.rename(&name(b"link.new")?, &name(b"link")?)?;
    process.make_directory(&name(b"folder.new")?)?;
    match process.rename(&name(b"folder.new")?, &name(b"folder")?) {
        Err(Errno::Fs(FsError::NotEmpty)) => Ok(process.remove_directory(&name(b"folder.new")?)?),
        renamed => Ok(renamed?),
    }
}

fn look(process: &Handle<dyn Process>, way: usize) -> Result<(), Error> {
    let result = (0..LOOKS.load(Ordering::Relaxed)).try_for_each(|_| {
        match WAYS[way].1(process) {
            Ok(true) => {}
            Ok(false) => drop(WRONG[way].fetch_add(1, Ordering::Relaxed)),
            Err(Errno::Fs(FsError::NotFound | FsError::Stale)) => {
                MISSING[way].fetch_add(1, Ordering::Relaxed);
            }
            // Another error is of another inode.
            Err(error) => {
                WRONG[way].fetch_add(1, Ordering::Relaxed);
                log!("{}: {error:?}", WAYS[way].0);
            }
        }
        Ok(())
    });
    LEFT.fetch_sub(1, Ordering::Relaxed);
    result
}

fn name(path: &[u8]) -> Result<RVec<u8>, Errno> {
    Ok(RVec::from_slice(path)?)
}

/// Whether a file has what it is to have.
fn is_whole(process: &Handle<dyn Process>, path: &[u8]) -> Result<bool, Errno> {
    let file = process.open(&name(path)?, READ)?;
    let read = process.read(file, RVec::filled(0, 16)?);
    process.close(file)?;
    Ok(&read?[..] == CONTENT)
}

fn open(process: &Handle<dyn Process>) -> Result<bool, Errno> {
    is_whole(process, b"file")
}

fn metadata(process: &Handle<dyn Process>) -> Result<bool, Errno> {
    let of = process.metadata(&name(b"file")?, true)?;
    Ok(of.size == CONTENT.len() as u64)
}

fn set_mode(process: &Handle<dyn Process>) -> Result<bool, Errno> {
    process.set_mode(&name(b"file")?, 0o600)?;
    Ok(true)
}

fn set_time(process: &Handle<dyn Process>) -> Result<bool, Errno> {
    process.set_modified(&name(b"file")?, 1_000_000_000)?;
    Ok(true)
}

fn link(process: &Handle<dyn Process>) -> Result<bool, Errno> {
    process.link(&name(b"file")?, &name(b"other")?)?;
    let is_right = is_whole(process, b"other")?;
    process.unlink(&name(b"other")?)?;
    Ok(is_right)
}

fn read_link(process: &Handle<dyn Process>) -> Result<bool, Errno> {
    let target = process.read_link(&name(b"link")?, RVec::filled(0, 16)?)?;
    Ok(&target[..] == b"file")
}

fn through_link(process: &Handle<dyn Process>) -> Result<bool, Errno> {
    is_whole(process, b"link")
}

/// As long as it has a file in it the directory cannot be replaced.
fn create_in(process: &Handle<dyn Process>) -> Result<bool, Errno> {
    let path = b"folder/inside";
    let file = process.open(&name(path)?, NEW)?;
    process.close(file)?;
    process.unlink(&name(path)?)?;
    Ok(true)
}
