//! Names, given, taken and listed.

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
        let name = RVec::from_slice(name)?;
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
        let name = RVec::from_slice(name)?;
        self.make(Action::Node { name, node }, directory)
    }

    /// See `FileSystem::symlink`.
    pub(super) fn make_symlink(
        &self,
        directory: u64,
        name: &RVec<u8>,
        target: &RVec<u8>,
    ) -> Result<u64, FsError> {
        let name = RVec::from_slice(name)?;
        let target = RVec::from_slice(target)?;
        self.make(Action::Symlink { name, target }, directory)
    }

    /// Makes an inode.
    fn make(&self, action: Action<RVec<u8>, Setting>, directory: u64) -> Result<u64, FsError> {
        self.pages.keep_room(&self.shadow, BESIDES)?;
        match self.change(action, [directory; 2])? {
            Outcome::Made(inode) => {
                // Others may have found it, and have written to it already.
                self.pages.forget_unheld(&self.shadow, inode);
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
        let name = RVec::from_slice(name)?;
        self.pages.keep_room(&self.shadow, BESIDES)?;
        self.change(Action::Link { name }, [directory, inode])
            .map(|_| ())
    }

    /// See `FileSystem::unlink`.
    pub(super) fn remove_name(&self, directory: u64, name: &RVec<u8>) -> Result<(), FsError> {
        let name = RVec::from_slice(name)?;
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
        let name = RVec::from_slice(name)?;
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
        let name = RVec::from_slice(name)?;
        let new_name = RVec::from_slice(new_name)?;
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
        let mut buffer = Buffer::new(buffer);
        let answer = self.shadow.ask_for_numbers(
            inode,
            |instance, real| instance.fs().read_directory(real, cookie, buffer.take()?),
            |front, (listing, next)| Ok::<_, FsError>((listing::translate(front, listing)?, next)),
        )?;
        self.shadow.note_new_numbers();
        answer
    }
}
