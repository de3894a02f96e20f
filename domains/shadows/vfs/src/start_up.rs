//! What is done with the first instance: files that had only a hidden name are removed, since
//! nobody holds them any more, unless an instance of this domain before has left them to this one.
//!
//! Hidden names are those in the directory that the file system has for them. No user can make one:
//! he reaches that directory by no name.

use alloc::vec::Vec;
use domain_rt::log;
use interfaces::{FsError, RVec};
use redo::{Severity, Target};
use vfs::entries::Entries;

use crate::instance::Instance;

/// Bytes of directory entries that are asked for at once.
const LISTING: usize = 16 * 1024;

/// Hidden names that are looked at: more than there are files open. A disk may have any number, if
/// somebody has made it so.
const MOST: usize = 16 * 1024;

/// Hidden names, and where they are.
#[derive(Default)]
struct Hidden {
    directory: u64,
    /// Inodes and names.
    names: Vec<(u64, Vec<u8>)>,
}

/// Removes all hidden names. What the file system would not remove stays, and is said: a disk is
/// used for what else there is on it.
///
/// # Errors
/// There is no working file system.
pub fn remove_hidden(instance: &Instance) -> Result<(), FsError> {
    match remove_all(instance) {
        Err(error) if is_answer(&error) => {
            log!("files that were open without a name are left: {error:?}");
            Ok(())
        }
        removed => removed,
    }
}

/// Whether the file system itself says so, and would say so again.
fn is_answer(error: &FsError) -> bool {
    matches!(
        Instance::severity(error),
        Severity::Answer | Severity::Missing
    )
}

fn remove_all(instance: &Instance) -> Result<(), FsError> {
    let fs = instance.fs();
    let Hidden { directory, names } = hidden(instance)?;
    if names.is_empty() || fs.statistics()?.read_only {
        return Ok(());
    }
    let (mut removed, mut left) = (0, 0);
    for (_, name) in &names {
        match fs.unlink(directory, &RVec::from_slice(name)?) {
            Ok(()) => removed += 1,
            Err(error) if is_answer(&error) => left += 1,
            Err(error) => return Err(error),
        }
    }
    log!("removed {removed} files that were open without a name");
    if left > 0 {
        log!("{left} names of such files cannot be removed");
    }
    fs.sync()
}

/// Files that have nothing but a hidden name: inode and the number that it is.
///
/// # Errors
/// The file system's.
pub fn numbered(instance: &Instance) -> Result<Vec<(u64, u64)>, FsError> {
    let mut numbers = Vec::new();
    let Hidden { directory, names } = hidden(instance)?;
    for (inode, name) in names {
        let fs = instance.fs();
        if fs.metadata(inode)?.links > 1 {
            // It was just being replaced, and was not.
            fs.unlink(directory, &RVec::from_slice(&name)?)?;
        } else if let Some(number) = redo::hidden_number(&name) {
            numbers.push((inode, number));
        }
    }
    Ok(numbers)
}

fn hidden(instance: &Instance) -> Result<Hidden, FsError> {
    let fs = instance.fs();
    let directory = match fs.unnamed(false) {
        Ok(Some(directory)) => directory,
        Ok(None) | Err(FsError::Unsupported) => return Ok(Hidden::default()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    let mut position = 0;
    loop {
        let buffer = RVec::filled(0, LISTING)?;
        let (listing, next) = fs.read_directory(directory, position, buffer)?;
        if listing.is_empty() || names.len() >= MOST {
            return Ok(Hidden { directory, names });
        }
        let entries = Entries::new(&listing).filter(|entry| !matches!(entry.name, b"." | b".."));
        names.extend(entries.map(|entry| (entry.inode, entry.name.to_vec())));
        position = next;
    }
}
