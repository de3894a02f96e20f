//! Moving to another file system: a copy of everything, and then the original goes.

use interfaces::{Errno, FileKind, FsError, Metadata, RVec};
use textutil::path::join;
use ulib::{Env, Error};

/// How deep directories may be nested.
const MOST_DEPTH: usize = 100;

/// Moves what is at `from` to `to`, where nothing is but perhaps a file. What is in the way of that
/// leaves what was not moved where it was.
///
/// # Errors
/// The file systems'.
pub fn move_across(env: &Env, from: &[u8], to: &[u8], depth: usize) -> Result<(), Error> {
    if depth > MOST_DEPTH {
        return Err(Error::text("nested too deep"));
    }
    let of = env.metadata(from, false)?;
    match of.kind {
        FileKind::Directory => return move_directory(env, from, to, &of, depth),
        FileKind::Regular => copy_file(env, from, to, &of)?,
        FileKind::Symlink => {
            let (target, to) = (
                RVec::from_slice(&env.read_link(from)?)?,
                RVec::from_slice(to)?,
            );
            env.process().symlink(&to, &target)?;
        }
        _ => return Err(Errno::Fs(FsError::Unsupported).into()),
    }
    env.with_path(from, |process, path| process.unlink(path))
}

fn move_directory(
    env: &Env,
    from: &[u8],
    to: &[u8],
    of: &Metadata,
    depth: usize,
) -> Result<(), Error> {
    env.with_path(to, |process, path| process.make_directory(path))?;
    for entry in env.read_directory(from)? {
        if entry.name != b"." && entry.name != b".." {
            let (from, to) = (join(from, &entry.name), join(to, &entry.name));
            move_across(env, &from, &to, depth + 1)?;
        }
    }
    keep_attributes(env, to, of)?;
    env.with_path(from, |process, path| process.remove_directory(path))
}

fn copy_file(env: &Env, from: &[u8], to: &[u8], of: &Metadata) -> Result<(), Error> {
    let mut reader = env.open(from)?;
    let mut writer = env.create(to)?;
    while let Some(chunk) = reader.shared()? {
        writer.write(chunk)?;
    }
    writer.close()?;
    keep_attributes(env, to, of)
}

fn keep_attributes(env: &Env, path: &[u8], of: &Metadata) -> Result<(), Error> {
    env.with_path(path, |process, path| {
        process.set_mode(path, of.mode)?;
        process.set_modified(path, of.modified)
    })
}
