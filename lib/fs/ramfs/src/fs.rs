//! [`RamFs`]: inodes, their content and attributes.

use alloc::vec::Vec;

use crate::content::{Content, MAX_SIZE, PIECE};
use crate::names::Names;
use crate::{BLOCK, Error, Result};

/// What an inode takes from the budget, in bytes.
pub(crate) const INODE_COST: u64 = 256;

/// The root directory's place among the inodes.
const ROOT: usize = 0;

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
}

/// How much there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in all.
    pub bytes: u64,
    /// Inodes.
    pub inodes: u64,
}

/// How much there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Blocks of [`BLOCK`] bytes in all.
    pub blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Inodes in all.
    pub inodes: u64,
    /// Free inodes.
    pub free_inodes: u64,
}

/// What is known of an inode. Times are in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub inode: u64,
    /// What it is.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u16,
    /// Number of links.
    pub links: u32,
    /// Length in bytes.
    pub size: u64,
    /// Bytes of memory that its content takes.
    pub memory: u64,
    /// Last access. Reading does not change it.
    pub accessed: u64,
    /// Last change of the content.
    pub modified: u64,
    /// Last change of the inode.
    pub changed: u64,
}

/// What an inode has in it.
pub(crate) enum Body {
    File(Content),
    Directory { names: Names, parent: u64 },
    Symlink(Vec<u8>),
}

impl Body {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Body::File(_) => Kind::Regular,
            Body::Directory { .. } => Kind::Directory,
            Body::Symlink(_) => Kind::Symlink,
        }
    }
}

pub(crate) struct Inode {
    pub(crate) body: Body,
    pub(crate) mode: u16,
    pub(crate) links: u32,
    /// How often it is held.
    holds: u32,
    accessed: u64,
    modified: u64,
    pub(crate) changed: u64,
}

impl Inode {
    pub(crate) fn new(body: Body, mode: u16, now: u64) -> Self {
        Inode {
            body,
            mode: mode & 0o7777,
            links: 0,
            holds: 0,
            accessed: now,
            modified: now,
            changed: now,
        }
    }

    /// Notes that the content has changed.
    pub(crate) fn touch(&mut self, now: u64) {
        (self.modified, self.changed) = (now, now);
    }
}

/// Has `list` keep room for no more than `room` items, if there is memory to move it.
fn tighten<T>(list: &mut Vec<T>, room: usize) {
    let mut smaller = Vec::new();
    if smaller.try_reserve_exact(room.max(list.len())).is_ok() {
        smaller.append(list);
        *list = smaller;
    }
}

/// A file system in memory.
pub struct RamFs {
    limits: Limits,
    /// Bytes of the budget that are taken.
    used: u64,
    /// Added to an inode's place, except the root's: so that numbers of another life of this file
    /// system lead to nothing here.
    base: u64,
    inodes: Vec<Option<Inode>>,
    free: Vec<usize>,
    count: u64,
    is_short: fn() -> bool,
}

impl RamFs {
    /// An empty file system. `base`: where numbers of inodes start, other than the root's, which
    /// is 1.
    pub fn new(limits: Limits, base: u64, now: u64) -> Self {
        let body = Body::Directory {
            names: Names::default(),
            parent: 1,
        };
        let root = Inode {
            links: 2,
            ..Inode::new(body, 0o1777, now)
        };
        RamFs {
            limits,
            used: INODE_COST,
            base: base.max(2),
            inodes: Vec::from([Some(root)]),
            free: Vec::new(),
            count: 1,
            is_short: || false,
        }
    }

    /// Has files not grow while memory `is_short`, which is asked often.
    pub fn spare_memory(&mut self, is_short: fn() -> bool) {
        self.is_short = is_short;
    }

    /// The inode of the root directory.
    pub fn root(&self) -> u64 {
        self.number(ROOT)
    }

    /// How much room there is.
    pub fn room(&self) -> Room {
        Room {
            blocks: self.limits.bytes / BLOCK,
            free_blocks: self.limits.bytes.saturating_sub(self.used) / BLOCK,
            inodes: self.limits.inodes,
            free_inodes: self.limits.inodes.saturating_sub(self.count),
        }
    }

    /// What is known of an inode.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn attributes(&self, inode: u64) -> Result<Attributes> {
        let of = self.get(inode)?;
        let (size, memory) = match &of.body {
            Body::File(content) => (content.size(), content.memory()),
            Body::Directory { names, .. } => (BLOCK, names.len() as u64),
            Body::Symlink(target) => (target.len() as u64, 0),
        };
        Ok(Attributes {
            inode,
            kind: of.body.kind(),
            mode: of.mode,
            links: of.links,
            size,
            memory: memory.next_multiple_of(BLOCK),
            accessed: of.accessed,
            modified: of.modified,
            changed: of.changed,
        })
    }

    /// Keeps an inode from being freed until as many calls of [`release`](Self::release).
    ///
    /// # Errors
    /// `NotFound`.
    pub fn hold(&mut self, inode: u64) -> Result<()> {
        let of = self.get_mut(inode)?;
        of.holds = of.holds.saturating_add(1);
        Ok(())
    }

    /// Ends one [`hold`](Self::hold). The last one frees an inode without a name.
    pub fn release(&mut self, inode: u64) {
        if let Ok(of) = self.get_mut(inode) {
            of.holds = of.holds.saturating_sub(1);
            self.reap(inode);
        }
    }

    /// Reads from `offset`; how many bytes, fewer than asked for only at the end.
    ///
    /// # Errors
    /// `NotFound`, `IsDirectory`, `Invalid` for what is no file.
    pub fn read(&self, inode: u64, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match &self.get(inode)?.body {
            Body::File(content) => Ok(content.read(offset, buffer)),
            Body::Directory { .. } => Err(Error::IsDirectory),
            Body::Symlink(_) => Err(Error::Invalid),
        }
    }

    /// Writes at `offset`; how many bytes, fewer than given only if there is no room for more.
    ///
    /// # Errors
    /// `NoSpace` if not one byte fits; `TooLarge`; as [`read`](Self::read).
    pub fn write(&mut self, inode: u64, offset: u64, data: &[u8], now: u64) -> Result<usize> {
        self.content(inode)?;
        let end = offset.checked_add(data.len() as u64);
        if end.is_none_or(|end| end > MAX_SIZE) {
            return Err(Error::TooLarge);
        }
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let length = ((PIECE - at % PIECE) as usize).min(data.len() - done);
            match self.write_piece(inode, at, &data[done..done + length], now) {
                Ok(()) => done += length,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    fn write_piece(&mut self, inode: u64, at: u64, data: &[u8], now: u64) -> Result<()> {
        let most = match (self.is_short)() {
            true => 0,
            false => self.limits.bytes.saturating_sub(self.used),
        };
        let more = self.content(inode)?.write_piece(at, data, most)?;
        self.used += more;
        self.get_mut(inode)?.touch(now);
        Ok(())
    }

    /// Sets the size of a file: cuts it, or lets it grow by a hole.
    ///
    /// # Errors
    /// `TooLarge`; as [`read`](Self::read).
    pub fn truncate(&mut self, inode: u64, size: u64, now: u64) -> Result<()> {
        if size > MAX_SIZE {
            return Err(Error::TooLarge);
        }
        let less = self.content(inode)?.set_size(size);
        self.used -= less;
        self.get_mut(inode)?.touch(now);
        Ok(())
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `NotFound`, `Invalid` if it is none.
    pub fn read_link(&self, inode: u64) -> Result<&[u8]> {
        match &self.get(inode)?.body {
            Body::Symlink(target) => Ok(target),
            _ => Err(Error::Invalid),
        }
    }

    /// Sets the permission bits.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn set_mode(&mut self, inode: u64, mode: u16, now: u64) -> Result<()> {
        let of = self.get_mut(inode)?;
        of.mode = mode & 0o7777;
        of.changed = now;
        Ok(())
    }

    /// Sets the times of last access and last change of the content; `None` leaves one as it is.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn set_times(
        &mut self,
        inode: u64,
        accessed: Option<u64>,
        modified: Option<u64>,
        now: u64,
    ) -> Result<()> {
        let of = self.get_mut(inode)?;
        of.accessed = accessed.unwrap_or(of.accessed);
        of.modified = modified.unwrap_or(of.modified);
        of.changed = now;
        Ok(())
    }

    /// Takes `bytes` from the budget.
    pub(crate) fn charge(&mut self, bytes: u64) -> Result<()> {
        let used = self.used + bytes;
        if used > self.limits.bytes {
            return Err(Error::NoSpace);
        }
        self.used = used;
        Ok(())
    }

    /// Gives `bytes` back to the budget.
    pub(crate) fn refund(&mut self, bytes: u64) {
        self.used -= bytes;
    }

    /// Puts in a new inode, which takes `extra` bytes beside itself; its number.
    pub(crate) fn add(&mut self, inode: Inode, extra: u64) -> Result<u64> {
        if self.count >= self.limits.inodes {
            return Err(Error::NoSpace);
        }
        // Enough for every inode to become free.
        let room = (self.inodes.len() + 1).saturating_sub(self.free.len());
        self.inodes.try_reserve(1).map_err(|_| Error::NoSpace)?;
        self.free.try_reserve(room).map_err(|_| Error::NoSpace)?;
        self.charge(INODE_COST + extra)?;
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.inodes.push(None);
                self.inodes.len() - 1
            }
        };
        self.inodes[place] = Some(inode);
        self.count += 1;
        Ok(self.number(place))
    }

    /// Frees an inode that nobody holds and that has no name.
    pub(crate) fn reap(&mut self, inode: u64) {
        let Some(place) = self.place(inode) else {
            return;
        };
        let unused = |of: &mut Inode| of.links == 0 && of.holds == 0;
        let Some(gone) = self.inodes[place].take_if(unused) else {
            return;
        };
        let extra = match &gone.body {
            Body::File(content) => content.memory(),
            Body::Directory { .. } => 0,
            Body::Symlink(target) => target.len() as u64,
        };
        self.refund(INODE_COST + extra);
        self.free.push(place);
        self.count -= 1;
        self.shrink();
    }

    /// Gives back the places behind the last inode when few are used: otherwise whoever once made
    /// many files leaves their places behind for good. Looked at seldom, since it reads the list of
    /// free places.
    fn shrink(&mut self) {
        let most = self.inodes.len() as u64 / 4;
        if !self.count.is_power_of_two() || self.count > most {
            return;
        }
        let end = self.inodes.iter().rposition(Option::is_some);
        let end = end.map_or(0, |last| last + 1);
        if end < self.inodes.len() {
            self.inodes.truncate(end);
            self.free.retain(|place| *place < end);
            tighten(&mut self.inodes, end);
            // Each inode has room to become free.
            tighten(&mut self.free, end);
        }
    }

    pub(crate) fn get(&self, inode: u64) -> Result<&Inode> {
        let place = self.place(inode).ok_or(Error::NotFound)?;
        self.inodes[place].as_ref().ok_or(Error::NotFound)
    }

    pub(crate) fn get_mut(&mut self, inode: u64) -> Result<&mut Inode> {
        let place = self.place(inode).ok_or(Error::NotFound)?;
        self.inodes[place].as_mut().ok_or(Error::NotFound)
    }

    fn content(&mut self, inode: u64) -> Result<&mut Content> {
        match &mut self.get_mut(inode)?.body {
            Body::File(content) => Ok(content),
            Body::Directory { .. } => Err(Error::IsDirectory),
            Body::Symlink(_) => Err(Error::Invalid),
        }
    }

    fn number(&self, place: usize) -> u64 {
        match place {
            ROOT => 1,
            place => self.base + place as u64,
        }
    }

    fn place(&self, inode: u64) -> Option<usize> {
        let place = match inode {
            1 => ROOT,
            inode => usize::try_from(inode.checked_sub(self.base)?).ok()?,
        };
        let is_one = place < self.inodes.len() && self.number(place) == inode;
        is_one.then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn many_files_leave_no_places_behind() {
        let limits = Limits {
            bytes: 1 << 30,
            inodes: 1 << 20,
        };
        let mut files = RamFs::new(limits, 7, 0);
        let root = files.root();
        let name = |number: u32| format!("file {number}");
        let rooms = |files: &RamFs| files.inodes.capacity().max(files.free.capacity());
        for _ in 0..2 {
            for number in 0..10_000 {
                let made = files.create(root, name(number).as_bytes(), Kind::Regular, 0o644, 0);
                made.expect("there is room");
            }
            assert!(rooms(&files) >= 10_000);
            for number in (3..10_000).rev() {
                let gone = files.unlink(root, name(number).as_bytes(), 0);
                gone.expect("it is there");
            }
            assert!(rooms(&files) < 100, "room for {}", rooms(&files));
            for number in 0..3 {
                assert!(files.lookup(root, name(number).as_bytes()).is_ok());
                files
                    .unlink(root, name(number).as_bytes(), 0)
                    .expect("it is there");
            }
        }
        assert_eq!(files.count, 1);
    }
}
