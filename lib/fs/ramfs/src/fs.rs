//! [`RamFs`]: inodes, their content and attributes.

use alloc::vec::Vec;

use crate::content::{Content, MAX_SIZE};
use crate::journal::{Journal, Need};
use crate::names::Names;
use crate::record::{INODE_BYTES, Image, Record};
use crate::store::{DataOf, PAGE, Store};
use crate::{BLOCK, Error, Result};

/// What an inode takes from the budget, in bytes.
pub(crate) const INODE_COST: u64 = 256;

/// What the object of a file takes from the budget beside its pages.
pub(crate) const OBJECT_COST: u64 = 256;

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

/// What is known of an inode. Times are the caller's.
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
    /// Tells the inodes apart that have had its number in this instance.
    pub life: u32,
}

/// What an inode has in it.
pub(crate) enum Body<O> {
    File(Content<O>),
    Directory { names: Names, parent: u64 },
    Symlink(Vec<u8>),
}

impl<O> Body<O> {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Body::File(_) => Kind::Regular,
            Body::Directory { .. } => Kind::Directory,
            Body::Symlink(_) => Kind::Symlink,
        }
    }
}

pub(crate) struct Inode<O> {
    pub(crate) body: Body<O>,
    pub(crate) mode: u16,
    pub(crate) links: u32,
    /// How often it is held.
    pub(crate) holds: u32,
    pub(crate) accessed: u64,
    pub(crate) modified: u64,
    pub(crate) changed: u64,
    /// See [`Attributes::life`].
    pub(crate) life: u32,
}

impl<O> Inode<O> {
    pub(crate) fn new(body: Body<O>, mode: u16, now: u64) -> Self {
        Inode {
            body,
            mode: mode & 0o7777,
            links: 0,
            holds: 0,
            accessed: now,
            modified: now,
            changed: now,
            life: 0,
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

/// A file system in memory, which the next instance finds again.
pub struct RamFs<S: Store> {
    pub(crate) store: S,
    pub(crate) journal: Journal<S::Object>,
    pub(crate) limits: Limits,
    /// Bytes of the budget that are taken.
    pub(crate) used: u64,
    /// Bytes that a snapshot would have, but for its beginning.
    pub(crate) noted: u64,
    /// Added to an inode's place, except the root's: so that numbers of another life of this file
    /// system lead to nothing here.
    pub(crate) base: u64,
    pub(crate) inodes: Vec<Option<Inode<S::Object>>>,
    pub(crate) free: Vec<usize>,
    pub(crate) count: u64,
    /// The life of the inode that was made last.
    pub(crate) lives: u32,
    pub(crate) is_short: fn() -> bool,
    /// Not everything is kept by whom the store has for that.
    pub(crate) is_unkept: bool,
}

impl<S: Store> RamFs<S> {
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
            Body::File(content) => (content.size(), content.pages() * PAGE),
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
            life: of.life,
        })
    }

    /// Begins to count lives behind `last`: those of an instance that was before are told apart
    /// from those of this one if this is another number each time.
    pub fn count_lives_from(&mut self, last: u32) {
        let inodes = self.inodes.iter_mut().filter_map(Option::as_mut);
        self.lives = inodes.fold(last, |last, inode| {
            inode.life = last.wrapping_add(1);
            inode.life
        });
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

    /// Reads from `offset` into `room`, which becomes as long as what was read: shorter only at the
    /// end.
    ///
    /// # Errors
    /// `NotFound`, `IsDirectory`, `Invalid` for what is no file; `Broken`.
    pub fn read(&self, inode: u64, offset: u64, room: DataOf<S>) -> Result<DataOf<S>> {
        match &self.get(inode)?.body {
            Body::File(content) => content.read(offset, room),
            Body::Directory { .. } => Err(Error::IsDirectory),
            Body::Symlink(_) => Err(Error::Invalid),
        }
    }

    /// Writes at `offset`; how many bytes, fewer than given only if there is no room for more. If
    /// this instance dies meanwhile a part of the bytes may be there.
    ///
    /// # Errors
    /// `NoSpace` if not one byte fits; `TooLarge`; as [`read`](Self::read).
    pub fn write(&mut self, inode: u64, offset: u64, data: &DataOf<S>, now: u64) -> Result<usize> {
        self.content(inode)?;
        let end = offset.checked_add(data.len() as u64);
        if end.is_none_or(|end| end > MAX_SIZE) {
            return Err(Error::TooLarge);
        }
        if data.is_empty() {
            return Ok(0);
        }
        self.begin(Need::Growth)?;
        self.give_object(inode)?;
        let most = match (self.is_short)() {
            true => 0,
            false => self.limits.bytes.saturating_sub(self.used) / PAGE,
        };
        let written = self.content(inode)?.write(offset, data, most);
        let noted = written.and_then(|wrote| {
            self.used += wrote.pages * PAGE;
            self.note_write(inode, offset + wrote.count as u64, now)?;
            Ok(wrote.count)
        });
        if noted.is_err() {
            self.take_back(inode);
        }
        noted
    }

    /// Sees to it that a file has an object.
    fn give_object(&mut self, inode: u64) -> Result<()> {
        if self.content(inode)?.object().is_some() {
            return Ok(());
        }
        if (self.is_short)() {
            return Err(Error::NoSpace);
        }
        self.check_budget(OBJECT_COST)?;
        let object = self.store.make()?;
        self.content(inode)?.give(object);
        self.used += OBJECT_COST;
        let kept = self.keep(inode);
        if kept.is_err() {
            self.take_back(inode);
        }
        kept
    }

    /// Notes what was written up to `end`.
    fn note_write(&mut self, inode: u64, end: u64, now: u64) -> Result<()> {
        let of = self.get(inode)?;
        let Body::File(content) = &of.body else {
            return Err(Error::Invalid);
        };
        let size = content.size().max(end);
        let is_known = size == content.size() && content.is_noted;
        if !is_known || (of.modified, of.changed) != (now, now) {
            self.journal.append(&Record::Written { inode, size, now })?;
        }
        let content = self.content(inode)?;
        content.is_noted = true;
        content.set_size(size)?;
        self.get_mut(inode)?.touch(now);
        Ok(())
    }

    /// After a write that failed: takes away what nobody will read.
    fn take_back(&mut self, inode: u64) {
        let Ok(content) = self.content(inode) else {
            return;
        };
        let mut freed = content.trim().unwrap_or(0) * PAGE;
        let is_unused = content.object().is_some() && !content.is_noted;
        if is_unused {
            freed = content.pages() * PAGE + freed + OBJECT_COST;
            content.take();
        }
        self.refund(freed);
        if is_unused {
            self.forget(inode);
        }
    }

    /// Sets the size of a file: cuts it, or lets it grow by a hole.
    ///
    /// # Errors
    /// `TooLarge`; as [`read`](Self::read).
    pub fn truncate(&mut self, inode: u64, size: u64, now: u64) -> Result<()> {
        if size > MAX_SIZE {
            return Err(Error::TooLarge);
        }
        self.content(inode)?;
        self.begin(Need::Change)?;
        self.content(inode)?.clear_to(size)?;
        self.journal.append(&Record::Resized { inode, size, now })?;
        self.get_mut(inode)?.touch(now);
        let less = self.content(inode)?.set_size(size)?;
        self.refund(less * PAGE);
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
    /// `NotFound`; `NoSpace`, `Broken`.
    pub fn set_mode(&mut self, inode: u64, mode: u16, now: u64) -> Result<()> {
        self.get(inode)?;
        self.begin(Need::Change)?;
        self.journal.append(&Record::Mode { inode, mode, now })?;
        self.put_mode(inode, mode, now)
    }

    pub(crate) fn put_mode(&mut self, inode: u64, mode: u16, now: u64) -> Result<()> {
        let of = self.get_mut(inode)?;
        of.mode = mode & 0o7777;
        of.changed = now;
        Ok(())
    }

    /// Sets the times of last access and last change of the content; `None` leaves one as it is.
    ///
    /// # Errors
    /// As [`set_mode`](Self::set_mode).
    pub fn set_times(
        &mut self,
        inode: u64,
        accessed: Option<u64>,
        modified: Option<u64>,
        now: u64,
    ) -> Result<()> {
        let of = self.get(inode)?;
        let accessed = accessed.unwrap_or(of.accessed);
        let times = [accessed, modified.unwrap_or(of.modified), now];
        self.begin(Need::Change)?;
        self.journal.append(&Record::Times { inode, times })?;
        self.put_times(inode, times)
    }

    pub(crate) fn put_times(&mut self, inode: u64, times: [u64; 3]) -> Result<()> {
        let of = self.get_mut(inode)?;
        [of.accessed, of.modified, of.changed] = times;
        Ok(())
    }

    /// Before a change: room for its record, and a snapshot if one is due.
    pub(crate) fn begin(&mut self, need: Need) -> Result<()> {
        if self.journal.is_due(self.noted) && !(self.is_short)() {
            self.begin_anew();
        }
        self.journal.make_room(need)
    }

    /// Whether `bytes` more fit into the budget.
    pub(crate) fn check_budget(&self, bytes: u64) -> Result<()> {
        match self.used + bytes > self.limits.bytes {
            true => Err(Error::NoSpace),
            false => Ok(()),
        }
    }

    /// Gives `bytes` back to the budget.
    pub(crate) fn refund(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Makes sure that there is room for another inode; its place.
    pub(crate) fn prepare_inode(&mut self) -> Result<usize> {
        if self.count >= self.limits.inodes {
            return Err(Error::NoSpace);
        }
        let place = match self.free.last() {
            Some(&place) => place,
            None => self.inodes.len(),
        };
        self.prepare_inode_at(place)
    }

    /// As [`prepare_inode`](Self::prepare_inode), for a place where none is.
    pub(crate) fn prepare_inode_at(&mut self, place: usize) -> Result<usize> {
        let places = self.inodes.len().max(place + 1);
        let more = places - self.inodes.len();
        self.inodes.try_reserve(more).map_err(|_| Error::NoSpace)?;
        // Enough for every inode to become free.
        let room = places.saturating_sub(self.free.len());
        self.free.try_reserve(room).map_err(|_| Error::NoSpace)?;
        Ok(place)
    }

    /// Puts in a new inode at a place that was prepared, which takes `extra` bytes beside itself;
    /// its number.
    pub(crate) fn add(&mut self, place: usize, inode: Inode<S::Object>, extra: u64) -> u64 {
        if self.free.last() == Some(&place) {
            self.free.pop();
        }
        while self.inodes.len() <= place {
            self.inodes.push(None);
        }
        self.lives = self.lives.wrapping_add(1);
        let life = self.lives;
        self.inodes[place] = Some(Inode { life, ..inode });
        self.used += INODE_COST + extra;
        self.noted += INODE_BYTES + extra;
        self.count += 1;
        self.number(place)
    }

    /// Frees an inode that nobody holds and that has no name.
    pub(crate) fn reap(&mut self, inode: u64) {
        let Some(place) = self.place(inode) else {
            return;
        };
        let unused = |of: &mut Inode<S::Object>| of.links == 0 && of.holds == 0;
        let Some(gone) = self.inodes[place].take_if(unused) else {
            return;
        };
        let (extra, of_object) = match &gone.body {
            Body::File(content) if content.object().is_some() => {
                (0, content.pages() * PAGE + OBJECT_COST)
            }
            Body::File(_) | Body::Directory { .. } => (0, 0),
            Body::Symlink(target) => (target.len() as u64, 0),
        };
        self.refund(INODE_COST + extra + of_object);
        self.noted -= INODE_BYTES + extra;
        // There always is room but while a journal is read, when nobody takes from this list.
        if self.free.len() < self.free.capacity() {
            self.free.push(place);
        }
        self.count -= 1;
        if of_object > 0 {
            self.forget(inode);
        }
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

    pub(crate) fn get(&self, inode: u64) -> Result<&Inode<S::Object>> {
        let place = self.place(inode).ok_or(Error::NotFound)?;
        self.inodes[place].as_ref().ok_or(Error::NotFound)
    }

    pub(crate) fn get_mut(&mut self, inode: u64) -> Result<&mut Inode<S::Object>> {
        let place = self.place(inode).ok_or(Error::NotFound)?;
        self.inodes[place].as_mut().ok_or(Error::NotFound)
    }

    pub(crate) fn content(&mut self, inode: u64) -> Result<&mut Content<S::Object>> {
        match &mut self.get_mut(inode)?.body {
            Body::File(content) => Ok(content),
            Body::Directory { .. } => Err(Error::IsDirectory),
            Body::Symlink(_) => Err(Error::Invalid),
        }
    }

    pub(crate) fn number(&self, place: usize) -> u64 {
        match place {
            ROOT => 1,
            place => self.base + place as u64,
        }
    }

    pub(crate) fn place(&self, inode: u64) -> Option<usize> {
        let place = self.place_of(inode)?;
        let is_one = place < self.inodes.len() && self.number(place) == inode;
        is_one.then_some(place)
    }

    /// The place that an inode of this number has if there is one.
    pub(crate) fn place_of(&self, inode: u64) -> Option<usize> {
        match inode {
            1 => Some(ROOT),
            inode => usize::try_from(inode.checked_sub(self.base)?).ok(),
        }
    }

    /// What a snapshot says of an inode.
    pub(crate) fn image<'a>(number: u64, of: &'a Inode<S::Object>) -> Image<'a> {
        let (size, has_object, target) = match &of.body {
            Body::File(content) => (content.size(), content.is_noted, &[][..]),
            Body::Directory { .. } => (0, false, &[][..]),
            Body::Symlink(target) => (0, false, &target[..]),
        };
        Image {
            inode: number,
            kind: of.body.kind(),
            mode: of.mode,
            times: [of.accessed, of.modified, of.changed],
            size,
            has_object,
            target,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Fault, Object};
    use alloc::format;

    /// A store that forgets all that is written to it.
    struct Nowhere;

    impl Store for Nowhere {
        type Object = Nowhere;
        fn make(&self) -> core::result::Result<Nowhere, Fault> {
            Ok(Nowhere)
        }
        fn put(&self, _: u64, _: &Nowhere) -> core::result::Result<(), Fault> {
            Ok(())
        }
        fn get(&self, _: u64) -> core::result::Result<Option<Nowhere>, Fault> {
            Ok(None)
        }
        fn next(&self, _: u64) -> core::result::Result<Option<u64>, Fault> {
            Ok(None)
        }
        fn remove(&self, _: u64) -> core::result::Result<(), Fault> {
            Ok(())
        }
    }

    impl Object for Nowhere {
        type Data = Vec<u8>;
        fn read(&self, _: u64, _: Vec<u8>, _: usize) -> core::result::Result<Vec<u8>, Fault> {
            Err(Fault::Broken)
        }
        fn read_bytes(&self, _: u64, _: &mut [u8]) -> core::result::Result<(), Fault> {
            Err(Fault::Broken)
        }
        fn write(&self, _: u64, data: &Vec<u8>) -> core::result::Result<usize, Fault> {
            Ok(data.len())
        }
        fn write_bytes(&self, _: u64, bytes: &[u8]) -> core::result::Result<usize, Fault> {
            Ok(bytes.len())
        }
        fn cut(&self, _: u64) -> core::result::Result<(), Fault> {
            Ok(())
        }
        fn pages(&self) -> core::result::Result<u64, Fault> {
            Ok(0)
        }
        fn has(&self, _: u64) -> core::result::Result<bool, Fault> {
            Ok(false)
        }
        fn shorten(data: Vec<u8>, _: usize) -> Vec<u8> {
            data
        }
    }

    #[test]
    fn many_files_leave_no_places_behind() {
        let limits = Limits {
            bytes: 1 << 30,
            inodes: 1 << 20,
        };
        let files = RamFs::new(Nowhere, limits, 7, 0);
        let mut files = files.expect("there is memory");
        let root = files.root();
        let name = |number: u32| format!("file {number}");
        let rooms = |files: &RamFs<Nowhere>| files.inodes.capacity().max(files.free.capacity());
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

    /// What a snapshot would have is what it has; and who removes much is rid of its records.
    #[test]
    fn the_journal_is_as_long_as_what_there_is() {
        let limits = Limits {
            bytes: 1 << 30,
            inodes: 1 << 20,
        };
        let mut files = RamFs::new(Nowhere, limits, 7, 0).expect("there is memory");
        let begin = files.journal.length() - files.noted;
        let name = |number: u32| format!("name {number}").into_bytes();
        for number in 0..20_000 {
            let made = match number % 3 {
                0 => files.create(1, &name(number), Kind::Directory, 0o755, 0),
                1 => files.symlink(1, &name(number), b"anywhere", 0),
                _ => files.create(1, &name(number), Kind::Regular, 0o644, 0),
            };
            made.expect("there is room");
        }
        let snapshot = files.snapshot().expect("there is memory");
        assert_eq!(snapshot.length(), files.noted + begin);
        assert!(files.journal.length() < 2 * files.noted);
        for number in 100..20_000 {
            let gone = match number % 3 {
                0 => files.remove_directory(1, &name(number), 0),
                _ => files.unlink(1, &name(number), 0),
            };
            gone.expect("it is there");
        }
        let snapshot = files.snapshot().expect("there is memory");
        assert_eq!(snapshot.length(), files.noted + begin);
        assert!(files.journal.length() < 300_000);
    }
}
