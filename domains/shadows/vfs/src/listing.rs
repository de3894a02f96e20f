//! Directory listings, in clients' numbers.

use interfaces::{FsError, RVec};
use redo::Front;
use vfs::entries::{Entries, Packer};

use crate::instance::Instance;

/// A listing for clients.
///
/// # Errors
/// No memory.
pub fn translate(front: &mut Front<Instance>, listing: RVec<u8>) -> Result<RVec<u8>, FsError> {
    if front.ids.is_trivial() {
        return Ok(listing);
    }
    let mut translated = RVec::filled(0, listing.len())?;
    let mut packer = Packer::new(&mut translated);
    for entry in Entries::new(&listing) {
        let inode = front.ids.client(entry.inode);
        // There is room: no entry is longer than it was.
        let _ = packer.add(inode, entry.kind, entry.name);
    }
    let filled = packer.filled();
    Ok(translated.truncated(filled))
}
