//! What is done with the first instance: files that had only a hidden name are removed, since
//! nobody holds them any more, unless an instance of this domain before has left them to this one.

use alloc::vec::Vec;
use domain_rt::log;
use interfaces::{FsError, RVec};
use redo::Target;
use vfs::entries::Entries;

use crate::instance::Instance;

/// Bytes of directory entries that are asked for at once.
const LISTING: usize = 16 * 1024;

/// Removes all hidden names.
///
/// # Errors
/// The file system's, unless it is read-only.
pub fn remove_hidden(instance: &Instance) -> Result<(), FsError> {
    let (fs, root) = (instance.fs(), instance.root());
    let names = hidden(instance)?;
    if names.is_empty() || fs.statistics()?.read_only {
        return Ok(());
    }
    for (_, name) in &names {
        fs.unlink(root, &RVec::from_slice(name)?)?;
    }
    log!(
        "removed {} files that were open without a name",
        names.len()
    );
    fs.sync()
}

/// Files that have nothing but a hidden name: inode and the number in the name.
///
/// # Errors
/// The file system's.
pub fn numbered(instance: &Instance) -> Result<Vec<(u64, u64)>, FsError> {
    let mut numbers = Vec::new();
    for (inode, name) in hidden(instance)? {
        let fs = instance.fs();
        if fs.metadata(inode)?.links > 1 {
            // It was just being replaced, and was not.
            fs.unlink(instance.root(), &RVec::from_slice(&name)?)?;
        } else if let Some(number) = redo::orphan_number(&name) {
            numbers.push((inode, number));
        }
    }
    Ok(numbers)
}

/// Inodes and hidden names.
fn hidden(instance: &Instance) -> Result<Vec<(u64, Vec<u8>)>, FsError> {
    let mut names = Vec::new();
    let mut position = 0;
    loop {
        let buffer = RVec::filled(0, LISTING)?;
        let (listing, next) = instance
            .fs()
            .read_directory(instance.root(), position, buffer)?;
        if listing.is_empty() {
            return Ok(names);
        }
        let entries = Entries::new(&listing).filter(|entry| redo::is_orphan_name(entry.name));
        names.extend(entries.map(|entry| (entry.inode, entry.name.to_vec())));
        position = next;
    }
}
