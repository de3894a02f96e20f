//! A directory that is being listed: what of it was asked for and not told yet. So who removes what
//! he is told of misses nothing behind it.

use super::{Disk, Node, fs_error};
use crate::errno::Error;
use alloc::vec::Vec;
use interfaces::RVec;
use linux::files::{self, BLOCK, CHARACTER, DIRECTORY, FIFO, LINK, Named, REGULAR, SOCKET};
use mounts::Seat;
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
    /// How many it does not want to know: it goes on behind them.
    passed: u64,
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
    /// Goes on behind the first `count` names, as they are told by then.
    pub fn behind(count: u64) -> Self {
        Listing {
            passed: count,
            ..Self::default()
        }
    }

    /// How many names lie behind it.
    pub fn count(&self) -> u64 {
        self.count + self.passed
    }

    /// The next names in the form of `getdents64`, as many as `room` bytes have room for; none at
    /// the end.
    pub fn next(&mut self, disk: &Disk, seat: &Seat, room: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        loop {
            let count = files::list(&mut bytes, self.rest(), self.count, room)?;
            self.count += count;
            self.known += count as usize;
            if self.rest().next().is_some() {
                return Ok(bytes);
            }
            let from = self.cookie;
            let told = disk.mount.ask_held(seat, |live| {
                let room = RVec::zeroed(ROOM)?;
                live.fs.read_directory(seat.inode(), from, room)
            });
            let (told, cookie) = told.map_err(fs_error)?;
            if told.is_empty() {
                return Ok(bytes);
            }
            (self.told, self.known, self.cookie) = (Some(told), 0, cookie);
            self.pass();
        }
    }

    /// Leaves out names that the program does not want to know.
    fn pass(&mut self) {
        let there = self
            .rest()
            .take(self.passed.try_into().unwrap_or(usize::MAX));
        let left_out = there.count();
        self.known += left_out;
        self.count += left_out as u64;
        self.passed -= left_out as u64;
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

impl Disk {
    /// The name that a directory has for an inode, if it has one.
    pub fn name_in(&self, directory: &Node, inode: u64) -> Result<Option<Vec<u8>>, Error> {
        let mut from = 0;
        loop {
            let told = self.mount.ask(|live| {
                let room = RVec::zeroed(ROOM)?;
                live.fs.read_directory(directory.inode(), from, room)
            });
            let (told, cookie) = told.map_err(fs_error)?;
            let mut entries = Entries::new(&told);
            let named = entries.find(|it| it.inode == inode && !matches!(it.name, b"." | b".."));
            match named {
                Some(entry) => return Ok(Some(entry.name.to_vec())),
                // The place goes up, so the listing ends.
                None if told.is_empty() || cookie <= from => return Ok(None),
                None => from = cookie,
            }
        }
    }
}
