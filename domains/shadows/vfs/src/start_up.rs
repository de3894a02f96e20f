//! What is done with the first instance: files that had only a hidden name are removed, since
//! nobody holds them any more.

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
    for name in &names {
        fs.unlink(root, &RVec::from_slice(name)?)?;
    }
    log!(
        "removed {} files that were open without a name",
        names.len()
    );
    fs.sync()
}

fn hidden(instance: &Instance) -> Result<Vec<Vec<u8>>, FsError> {
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
        names.extend(entries.map(|entry| entry.name.to_vec()));
        position = next;
    }
}
