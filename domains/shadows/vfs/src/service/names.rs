//! Names, given, taken and listed. Hidden ones are nobody's: there are none, and none can be given.

use interfaces::{FileKind, FsError, RVec, Renaming};
use redo::{Action, Engine, Kind, Order, Outcome};
use respawn::Buffer;

use super::{BESIDES, Service};
use crate::instance::{self, Instance};
use crate::listing;
use crate::setting::Setting;

impl Service {
    /// See `FileSystem::create`.
    pub(super) fn make_file(
        &self,
        directory: u64,
        name: &RVec<u8>,
        kind: FileKind,
        mode: u16,
    ) -> Result<u64, FsError> {
        let kind = match kind {
            FileKind::Regular => Kind::File,
            FileKind::Directory => Kind::Directory,
            _ => return Err(FsError::Unsupported),
        };
        let name = self.new_name(directory, name)?;
        self.make(Action::Create { name, kind, mode }, directory)
    }

    /// See `FileSystem::make_node`.
    pub(super) fn make_special(
        &self,
        directory: u64,
        name: &RVec<u8>,
        kind: FileKind,
        mode: u16,
        device: u32,
    ) -> Result<u64, FsError> {
        let node = instance::node(kind, mode, device)?;
        let name = self.new_name(directory, name)?;
        self.make(Action::Node { name, node }, directory)
    }

    /// See `FileSystem::symlink`.
    pub(super) fn make_symlink(
        &self,
        directory: u64,
        name: &RVec<u8>,
        target: &RVec<u8>,
    ) -> Result<u64, FsError> {
        let name = self.new_name(directory, name)?;
        let target = RVec::from_slice(target)?;
        self.make(Action::Symlink { name, target }, directory)
    }

    /// Makes an inode.
    fn make(&self, action: Action<RVec<u8>, Setting>, directory: u64) -> Result<u64, FsError> {
        self.pages.keep_room(&self.shadow, BESIDES)?;
        match self.change(action, [directory; 2])? {
            Outcome::Made(inode) => {
                self.pages.forget(&self.shadow, inode);
                self.shadow.note_new_numbers();
                Ok(inode)
            }
            _ => Err(FsError::Device),
        }
    }

    /// See `FileSystem::link`.
    pub(super) fn give_name(
        &self,
        directory: u64,
        name: &RVec<u8>,
        inode: u64,
    ) -> Result<(), FsError> {
        let name = self.new_name(directory, name)?;
        self.pages.keep_room(&self.shadow, BESIDES)?;
        self.change(Action::Link { name }, [directory, inode])
            .map(|_| ())
    }

    /// See `FileSystem::unlink`.
    pub(super) fn remove_name(&self, directory: u64, name: &RVec<u8>) -> Result<(), FsError> {
        let name = self.old_name(directory, name)?;
        let order = Order::new(Action::Unlink { name }, [directory; 2]);
        let shadow = &*self.shadow;
        let unlink = |engine: &mut Engine<Instance>, order: &mut Order<Instance>| {
            self.expect_lives(engine, [directory; 2])?;
            engine.unlink(shadow, order)
        };
        self.pages.part_by(shadow, self.lane, order, unlink)
    }

    /// See `FileSystem::remove_directory`.
    pub(super) fn remove_empty(&self, directory: u64, name: &RVec<u8>) -> Result<(), FsError> {
        let name = self.old_name(directory, name)?;
        let order = Order::new(Action::RemoveDirectory { name }, [directory; 2]);
        let shadow = &*self.shadow;
        shadow.carry_out(self.lane, order, |engine, order| {
            self.expect_lives(engine, [directory; 2])?;
            engine.remove_directory(shadow, order)
        })
    }

    /// See `FileSystem::rename`.
    pub(super) fn move_name(
        &self,
        from: u64,
        name: &RVec<u8>,
        to: u64,
        new_name: &RVec<u8>,
        how: Renaming,
    ) -> Result<(), FsError> {
        let name = self.old_name(from, name)?;
        let new_name = self.new_name(to, new_name)?;
        self.pages.keep_room(&self.shadow, BESIDES)?;
        let (how, action) = match how {
            Renaming::Replace => (redo::Renaming::Replace, Action::Rename { name, new_name }),
            Renaming::New => (redo::Renaming::New, Action::Rename { name, new_name }),
            Renaming::Exchange => (redo::Renaming::Replace, Action::Exchange { name, new_name }),
        };
        let order = Order::new(action, [from, to]);
        let shadow = &*self.shadow;
        let rename = |engine: &mut Engine<Instance>, order: &mut Order<Instance>| {
            self.expect_lives(engine, [from, to])?;
            engine.rename(shadow, order, how)
        };
        self.pages.part_by(shadow, self.lane, order, rename)
    }

    /// See `FileSystem::read_directory`.
    pub(super) fn list(
        &self,
        inode: u64,
        cookie: u64,
        buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), FsError> {
        let in_root = inode == self.shadow.root();
        let mut buffer = Buffer::new(buffer);
        let mut position = cookie;
        loop {
            let answer = self.shadow.ask_for_numbers(
                inode,
                |instance, real| instance.fs().read_directory(real, position, buffer.take()?),
                |front, (listing, next)| {
                    let is_end = listing.is_empty();
                    let listing = listing::translate(front, listing, in_root)?;
                    Ok::<_, FsError>((listing, next, is_end))
                },
            )?;
            let (listing, next, is_end) = answer?;
            self.shadow.note_new_numbers();
            // Nothing but hidden names must not look like the end.
            if is_end || !listing.is_empty() {
                return Ok((listing, next));
            }
            position = next;
        }
    }

    /// Whether a name is one that nobody is to see.
    pub(crate) fn is_hidden(&self, directory: u64, name: &[u8]) -> bool {
        directory == self.shadow.root() && redo::is_orphan_name(name)
    }

    /// Our own copy of a name that is to be given.
    fn new_name(&self, directory: u64, name: &RVec<u8>) -> Result<RVec<u8>, FsError> {
        match self.is_hidden(directory, name) {
            true => Err(FsError::BadName),
            false => Ok(RVec::from_slice(name)?),
        }
    }

    /// Our own copy of a name that is to be there.
    fn old_name(&self, directory: u64, name: &RVec<u8>) -> Result<RVec<u8>, FsError> {
        match self.is_hidden(directory, name) {
            true => Err(FsError::NotFound),
            false => Ok(RVec::from_slice(name)?),
        }
    }
}
