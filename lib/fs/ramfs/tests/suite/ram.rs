//! The file system over memory of the test, with slices for data.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use ramfs::{Error, Kind, Limits, Opened, RamFs};

use crate::memory::Memory;

/// The file system under test.
pub struct Ram(RamFs<Memory>);

impl Ram {
    /// An empty one.
    pub fn new(limits: Limits, base: u64, now: u64) -> Self {
        Ram::over(Memory::default(), limits, base, now)
    }

    /// An empty one, in this store.
    pub fn over(store: Memory, limits: Limits, base: u64, now: u64) -> Self {
        Ram(RamFs::new(store, limits, base, now).expect("there is memory"))
    }

    /// What the one before has left.
    pub fn again(store: &Memory, limits: Limits) -> Self {
        match RamFs::open(store.clone(), limits) {
            Ok(Opened::Files(files)) => Ram(files),
            Ok(Opened::Nothing(_)) => panic!("nothing is left"),
            Ok(Opened::Damaged(_, at)) => panic!("damage at {at}"),
            Err(error) => panic!("{error:?}"),
        }
    }

    pub fn write(
        &mut self,
        inode: u64,
        offset: u64,
        data: &[u8],
        now: u64,
    ) -> Result<usize, Error> {
        self.0.write(inode, offset, &data.to_vec(), now)
    }

    pub fn read(&self, inode: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let read = self.0.read(inode, offset, buffer.to_vec())?;
        buffer[..read.len()].copy_from_slice(&read);
        Ok(read.len())
    }

    /// Everything that can be seen, by paths. Without `numbers`: but for numbers of inodes and
    /// places in directories.
    pub fn seen(&self, numbers: bool) -> Seen {
        let mut seen = Seen::default();
        self.look(self.root(), "", numbers, &mut seen);
        if !numbers {
            seen.lines.sort();
        }
        seen
    }

    fn look(&self, directory: u64, path: &str, numbers: bool, seen: &mut Seen) {
        let above = self.lookup(directory, b"..").expect("a directory");
        let above = if numbers { above } else { 0 };
        seen.lines.push(format!(
            "{path}/ {} {above}",
            self.about(directory, numbers)
        ));
        let mut entries = Vec::new();
        let mut place = 0;
        let end = self.list(directory, 2, |inode, _, name| {
            entries.push((0, inode, name.to_vec()));
            true
        });
        end.expect("a directory");
        if numbers {
            // Where each is: the position that a listing which stops at it gives back.
            for entry in &mut entries {
                let stops = |_: u64, _: Kind, _: &[u8]| false;
                entry.0 = self.list(directory, 2 + place, stops).expect("a directory");
                place = entry.0 - 1;
            }
        }
        for (next, inode, name) in entries {
            let path = format!("{path}/{}", String::from_utf8_lossy(&name));
            seen.lines
                .push(format!("{path} {next} {}", self.about(inode, numbers)));
            match self.attributes(inode).expect("listed").kind {
                Kind::Directory => self.look(inode, &path, numbers, seen),
                Kind::Symlink => {
                    let target = self.read_link(inode).expect("a link").to_vec();
                    seen.contents.insert(path, target);
                }
                Kind::Regular => {
                    let size = self.attributes(inode).expect("listed").size;
                    let mut content = vec![7; size.min(1 << 20) as usize + 1];
                    let length = self.read(inode, 0, &mut content).expect("a file");
                    content.truncate(length);
                    seen.contents.insert(path, content);
                }
            }
        }
    }

    fn about(&self, inode: u64, numbers: bool) -> String {
        let of = self.attributes(inode).expect("there");
        let inode = if numbers { inode } else { 0 };
        format!(
            "{inode} {:?} {:o} {} {} {} {} {}",
            of.kind, of.mode, of.links, of.size, of.accessed, of.modified, of.changed
        )
    }
}

/// What can be seen of a file system.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// A line for each name.
    pub lines: Vec<String>,
    /// Content of files and targets of links, by path.
    pub contents: BTreeMap<String, Vec<u8>>,
}

impl Deref for Ram {
    type Target = RamFs<Memory>;
    fn deref(&self) -> &RamFs<Memory> {
        &self.0
    }
}

impl DerefMut for Ram {
    fn deref_mut(&mut self) -> &mut RamFs<Memory> {
        &mut self.0
    }
}
