//! Directory listings, in clients' numbers and without hidden names.

use interfaces::{FsError, RVec};
use redo::Front;
use vfs::entries::{Entries, Packer};

use crate::instance::Instance;

/// A listing for clients. `in_root`: it is the root directory's, which has the hidden names.
///
/// # Errors
/// No memory.
pub fn translate(
    front: &mut Front<Instance>,
    listing: RVec<u8>,
    in_root: bool,
) -> Result<RVec<u8>, FsError> {
    let hides = in_root && front.has_orphans();
    if front.ids.is_trivial() && !hides {
        return Ok(listing);
    }
    let mut translated = RVec::filled(0, listing.len())?;
    let mut packer = Packer::new(&mut translated);
    for entry in Entries::new(&listing) {
        if in_root && redo::is_orphan_name(entry.name) {
            continue;
        }
        let inode = front.ids.client(entry.inode);
        // There is room: no entry is longer than it was.
        let _ = packer.add(inode, entry.kind, entry.name);
    }
    let filled = packer.filled();
    Ok(translated.truncated(filled))
}
