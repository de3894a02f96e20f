//! A directory that is being listed: what of it was asked for and not told yet. So who removes what
//! he is told of misses nothing behind it.

use super::Disk;
use crate::errno::Error;
use alloc::vec::Vec;
use interfaces::RVec;
use linux::files::{self, BLOCK, CHARACTER, DIRECTORY, FIFO, LINK, Named, REGULAR, SOCKET};
use vfs::entries::{self, Entries};

/// Bytes of directory entries that are asked for at once.
const ROOM: usize = 16 << 10;

/// Where a listing is.
#[derive(Default)]
pub struct Listing {
    /// Names that the file system has told, and how many of them the program knows.
    told: Option<RVec<u8>>,
    known: usize,
    /// Where the file system goes on.
    cookie: u64,
    /// How many names the program knows in all.
    count: u64,
}

fn kind_of(kind: u8) -> u32 {
    match kind {
        entries::REGULAR => REGULAR,
        entries::DIRECTORY => DIRECTORY,
        entries::SYMLINK => LINK,
        entries::CHARACTER_DEVICE => CHARACTER,
        entries::BLOCK_DEVICE => BLOCK,
        entries::PIPE => FIFO,
        entries::SOCKET => SOCKET,
        _ => 0,
    }
}

impl Listing {
    /// The next names in the form of `getdents64`, as many as `room` bytes have room for; none at
    /// the end.
    pub fn next(&mut self, disk: &Disk, path: &[u8], room: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        loop {
            let count = files::list(&mut bytes, self.rest(), self.count, room)?;
            self.count += count;
            self.known += count as usize;
            if self.rest().next().is_some() {
                return Ok(bytes);
            }
            let from = self.cookie;
            let (told, cookie) = disk.with(path, true, |of| {
                disk.ask(|fs| {
                    let room = RVec::zeroed(ROOM)?;
                    fs.read_directory(of.inode, from, room)
                })
            })?;
            if told.is_empty() {
                return Ok(bytes);
            }
            (self.told, self.known, self.cookie) = (Some(told), 0, cookie);
        }
    }

    /// Names that the program does not know.
    fn rest(&self) -> impl Iterator<Item = Named<'_>> {
        let told = self.told.as_ref().map_or(&[][..], |told| &told[..]);
        let rest = Entries::new(told).skip(self.known);
        rest.map(|entry| Named {
            name: entry.name,
            kind: kind_of(entry.kind),
            inode: entry.inode,
        })
    }
}
