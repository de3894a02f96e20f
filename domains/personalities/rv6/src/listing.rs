//! Listing a directory: what the file system has in it, and then the mount points that it does not
//! have.

use alloc::vec::Vec;
use interfaces::{FsError, RVec};
use respawn::Buffer;
use vfs::entries::{DIRECTORY, Packer};

use crate::held::Held;
use crate::volumes::{Volume, Volumes};

/// How far the listing has come.
pub enum Listing {
    /// At a position as the file system counts.
    Files(u64),
    /// These mount points are left.
    Mounts(Vec<Vec<u8>>),
}

impl Default for Listing {
    fn default() -> Self {
        Listing::Files(0)
    }
}

impl Listing {
    /// The next entries; none at the end.
    ///
    /// # Errors
    /// The file system's; `Invalid` if not one entry fits into the buffer.
    pub fn next(
        &mut self,
        volumes: &Volumes,
        held: &Held,
        buffer: RVec<u8>,
    ) -> Result<RVec<u8>, FsError> {
        let mut buffer = buffer;
        if let Listing::Files(position) = self {
            let size = buffer.len();
            let (listed, next) = files(held, *position, buffer)?;
            if !listed.is_empty() {
                *position = next;
                return Ok(listed);
            }
            *self = Listing::Mounts(volumes.mounted_names(held.node())?);
            buffer = RVec::filled(0, size)?;
        }
        match self {
            Listing::Mounts(names) => mounts(names, held.node().inode, buffer),
            Listing::Files(_) => Ok(buffer.truncated(0)),
        }
    }
}

/// What the file system lists from a position on, and the next position.
fn files(held: &Held, position: u64, mut buffer: RVec<u8>) -> Result<(RVec<u8>, u64), FsError> {
    let node = held.node();
    if node.volume != Volume::EMPTY {
        let mut buffer = Buffer::new(buffer);
        return held.ask(|live| live.fs.read_directory(node.inode, position, buffer.take()?));
    }
    // The empty root directory.
    let mut packer = Packer::new(&mut buffer);
    let mut next = position;
    for (name, at) in [&b"."[..], b".."].into_iter().zip(0..) {
        if at == next && packer.add(node.inode, DIRECTORY, name) {
            next += 1;
        }
    }
    let filled = packer.filled();
    Ok((buffer.truncated(filled), next))
}

/// Packs as many of `names` as fit, and takes them out. They are listed with the inode of the
/// directory that they are in: what is mounted there has numbers of its own, which mean nothing
/// here.
fn mounts(names: &mut Vec<Vec<u8>>, inode: u64, mut buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
    let mut packer = Packer::new(&mut buffer);
    while let Some(name) = names.last() {
        if !packer.add(inode, DIRECTORY, name) {
            break;
        }
        names.pop();
    }
    match packer.filled() {
        0 if !names.is_empty() => Err(FsError::Invalid),
        filled => Ok(buffer.truncated(filled)),
    }
}
