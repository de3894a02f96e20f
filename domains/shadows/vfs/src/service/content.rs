//! Content, in pages where the file has some, or else the old way: see [`pages`](crate::pages).

use interfaces::{FsError, RVec, UserBuf};
use redo::{Action, Engine, Outcome};
use respawn::Buffer;

use super::{BESIDES, Service};
use crate::instance::Instance;
use crate::pages::{Data, copied};
use crate::setting::Setting;

/// What is written the old way.
enum Content<'a> {
    Lent(&'a RVec<u8>),
    /// Ours, for the log of changes.
    Own(RVec<u8>),
}

impl Content<'_> {
    fn bytes(&self) -> &RVec<u8> {
        match self {
            Content::Lent(data) => data,
            Content::Own(data) => data,
        }
    }

    fn into_own(self) -> Result<RVec<u8>, FsError> {
        match self {
            Content::Lent(data) => Ok(RVec::from_slice(data)?),
            Content::Own(data) => Ok(data),
        }
    }
}

impl Service {
    /// See `FileSystem::read`.
    pub(super) fn get(
        &self,
        inode: u64,
        offset: u64,
        buffer: RVec<u8>,
    ) -> Result<RVec<u8>, FsError> {
        let buffer = match self.pages.read(&self.shadow, inode, offset, buffer)? {
            Ok(read) => return Ok(read),
            Err(unread) => unread,
        };
        let mut buffer = Buffer::new(buffer);
        self.shadow.ask(inode, |instance, real| {
            instance.fs().read(real, offset, buffer.take()?)
        })
    }

    /// See `FileSystem::write`.
    pub(super) fn put(&self, inode: u64, offset: u64, data: &RVec<u8>) -> Result<u64, FsError> {
        let own = Data::Own(data);
        if let Some((_, count)) = self.pages.write(&self.shadow, inode, Some(offset), &own)? {
            return Ok(count);
        }
        self.write_old_way(inode, offset, Content::Lent(data))
    }

    /// See `FileSystem::append`.
    pub(super) fn put_behind(&self, inode: u64, data: &RVec<u8>) -> Result<(u64, u64), FsError> {
        let own = Data::Own(data);
        let appended = self.pages.append(&self.shadow, inode, &own, self.lane)?;
        if let Some(appended) = appended {
            return Ok(appended);
        }
        self.append_old_way(inode, Content::Lent(data))
    }

    /// See `FileSystem::write_from`.
    pub(super) fn put_from(
        &self,
        inode: u64,
        offset: u64,
        count: u64,
        from: &UserBuf<'_>,
        at: u64,
    ) -> Result<u64, FsError> {
        let data = Data::of_program(from, at, count);
        let written = self.pages.write(&self.shadow, inode, Some(offset), &data)?;
        if let Some((_, count)) = written {
            return Ok(count);
        }
        match copied(from, at, count)? {
            bytes if bytes.is_empty() => Ok(0),
            bytes => self.write_old_way(inode, offset, Content::Own(bytes)),
        }
    }

    /// See `FileSystem::append_from`.
    pub(super) fn put_behind_from(
        &self,
        inode: u64,
        count: u64,
        from: &UserBuf<'_>,
        at: u64,
    ) -> Result<(u64, u64), FsError> {
        let data = Data::of_program(from, at, count);
        let appended = self.pages.append(&self.shadow, inode, &data, self.lane)?;
        if let Some(appended) = appended {
            return Ok(appended);
        }
        match copied(from, at, count)? {
            bytes if bytes.is_empty() => Ok((0, 0)),
            bytes => self.append_old_way(inode, Content::Own(bytes)),
        }
    }

    /// See `FileSystem::truncate`.
    pub(super) fn cut(&self, inode: u64, size: u64) -> Result<(), FsError> {
        let change = || {
            self.change(Action::Truncate { size }, [inode; 2])?;
            Ok(())
        };
        self.pages.truncate(&self.shadow, inode, size, change)
    }

    /// See `FileSystem::punch`.
    pub(super) fn make_hole(&self, inode: u64, offset: u64, length: u64) -> Result<(), FsError> {
        self.pages.keep_room(&self.shadow, BESIDES)?;
        let punch = || {
            // Nothing behind the end is written to.
            let size = self.known_of(inode)?.size;
            let length = length.min(size.saturating_sub(offset));
            let hole = Setting::Hole { offset, length };
            self.change(Action::Set(hole), [inode; 2])?;
            Ok((offset, length))
        };
        let punched = self.pages.write_old_way(&self.shadow, inode, punch);
        punched.map(|_| ())
    }

    fn write_old_way(&self, inode: u64, offset: u64, data: Content<'_>) -> Result<u64, FsError> {
        self.keep_room(data.bytes())?;
        let write = || Ok((offset, self.write_to(inode, offset, data)?));
        let written = self.pages.write_old_way(&self.shadow, inode, write);
        written.map(|(_, count)| count)
    }

    fn append_old_way(&self, inode: u64, data: Content<'_>) -> Result<(u64, u64), FsError> {
        self.keep_room(data.bytes())?;
        let append = || self.append_to(inode, data);
        self.pages.write_old_way(&self.shadow, inode, append)
    }

    fn write_to(&self, inode: u64, offset: u64, data: Content<'_>) -> Result<u64, FsError> {
        if self.shadow.is_lasting() {
            let mut engine = self.shadow.engine();
            return engine.write_lent(&*self.shadow, inode, offset, data.bytes());
        }
        let data = data.into_own()?;
        match self.change(Action::Write { offset, data }, [inode; 2])? {
            Outcome::Wrote(count) => Ok(count),
            _ => Err(FsError::Device),
        }
    }

    fn append_to(&self, inode: u64, data: Content<'_>) -> Result<(u64, u64), FsError> {
        if self.shadow.is_lasting() {
            let mut engine = self.shadow.engine();
            return engine.append_lent(&*self.shadow, inode, data.bytes());
        }
        let data = data.into_own()?;
        let append = |engine: &mut Engine<Instance>| engine.append(&*self.shadow, inode, data);
        self.shadow.by_lane(self.lane, append)
    }

    /// Sees to it that a write of the old way finds its blocks.
    fn keep_room(&self, data: &RVec<u8>) -> Result<(), FsError> {
        let pages = data.len() as u64 / 4096;
        self.pages.keep_room(&self.shadow, pages + BESIDES)
    }
}
