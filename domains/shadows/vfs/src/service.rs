//! The `FileSystem` interface. All inodes are clients' numbers.
//!
//! Every method that reaches the file system takes a pass first, so that it waits while the file
//! system is replaced. What it does then is in `names`, `content` and `holding`, in `walking`, and
//! in the [`pages`](crate::pages).

mod content;
mod holding;
mod names;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use gate::Passage;
use interfaces::{
    FileKind, FileSystem, FsError, FsStatistics, Handle, Hold, LaneOutcome, Metadata, PageRun,
    RVec, Renaming, Taken, UserBuf, VmoView, Walked,
};
use redo::{Action, Engine, Lane, Order, Outcome};
use respawn::Buffer;

use crate::instance::Instance;
use crate::pages::Pages;
use crate::setting::Setting;
use crate::shadow::Shadow;
use crate::walking::expect_alone;

/// Pages of the disk that a change of names may take, and one of content besides its own.
const BESIDES: u64 = 4;

/// What the domain offers.
pub struct Service {
    pub(crate) shadow: Arc<Shadow>,
    passage: Arc<Passage>,
    pub(crate) pages: Arc<Pages>,
    /// Who calls comes through this one.
    lane: Option<Lane>,
    /// In which lives the inodes are to be that the next change names.
    lives: [AtomicU64; 2],
}

/// Any life of a number, where one is noted in a word; another bit of it says that it is one.
const ANY: u64 = 0;
const IS_ONE: u64 = 1 << 32;

impl Service {
    /// Serves `shadow`. Every call goes through `passage`.
    pub fn new(shadow: Arc<Shadow>, passage: Arc<Passage>, pages: Arc<Pages>) -> Self {
        Service {
            shadow,
            passage,
            pages,
            lane: None,
            lives: Default::default(),
        }
    }

    /// Makes a change about one or two inodes.
    fn change(&self, action: Action<RVec<u8>, Setting>, on: [u64; 2]) -> Result<Outcome, FsError> {
        let order = Order::new(action, on);
        let shadow = &*self.shadow;
        shadow.carry_out(self.lane, order, |engine, order| {
            self.expect_lives(engine, on)?;
            engine.change(shadow, order)
        })
    }

    /// Fails unless what a change names is in the lives that were said when it began.
    fn expect_lives(&self, engine: &mut Engine<Instance>, on: [u64; 2]) -> Result<(), FsError> {
        for (inode, life) in on.into_iter().zip(&self.lives) {
            let life = match life.swap(ANY, Ordering::Relaxed) {
                ANY => continue,
                life => life as u32,
            };
            expect_alone(&self.shadow, engine, inode, Some(life))?;
        }
        Ok(())
    }

    /// Sets something of an inode.
    fn set(&self, setting: Setting, inode: u64) -> Result<(), FsError> {
        let modified = setting.modified();
        let set = || {
            self.change(Action::Set(setting), [inode; 2])?;
            Ok(())
        };
        match modified {
            Some(modified) => self.pages.set_time(inode, modified, set),
            None => set(),
        }
    }
}

impl FileSystem for Service {
    fn root(&self) -> Result<u64, FsError> {
        Ok(self.shadow.root())
    }

    fn lineage(&self) -> Result<u64, FsError> {
        self.shadow.lineage().ok_or(FsError::Unsupported)
    }

    fn lane(&self, number: u32) -> Result<Handle<dyn FileSystem>, FsError> {
        let lane = match number {
            0 => None,
            number => Some(self.shadow.lane(number)?),
        };
        Ok(Handle::<dyn FileSystem>::new(Service {
            shadow: self.shadow.clone(),
            passage: self.passage.clone(),
            pages: self.pages.clone(),
            lane,
            lives: Default::default(),
        })?)
    }

    fn begin(&self, ticket: u64, first: Option<u32>, second: Option<u32>) -> Result<(), FsError> {
        for (at, life) in self.lives.iter().zip([first, second]) {
            let life = life.map_or(ANY, |life| IS_ONE | u64::from(life));
            at.store(life, Ordering::Relaxed);
        }
        match self.lane {
            Some(_) => self.shadow.begin(self.lane, ticket),
            None => Ok(()),
        }
    }

    fn outcome(&self, ticket: u64) -> Result<Option<LaneOutcome>, FsError> {
        self.shadow.outcome(self.lane, ticket)
    }

    fn metadata(&self, inode: u64) -> Result<Metadata, FsError> {
        let _pass = self.passage.enter()?;
        self.known_of(inode)
    }

    fn lookup(&self, directory: u64, name: &RVec<u8>) -> Result<u64, FsError> {
        let _pass = self.passage.enter()?;
        self.look_up(directory, name)?.ok_or(FsError::NotFound)
    }

    fn walk(&self, from: u64, life: Option<u32>, path: &RVec<u8>) -> Result<Walked, FsError> {
        let _pass = self.passage.enter()?;
        self.follow(from, life, path)
    }

    fn hold(&self, inode: u64, life: Option<u32>) -> Result<Handle<dyn Hold>, FsError> {
        let _pass = self.passage.enter()?;
        self.hold_for_client(inode, life)
    }

    fn take(&self, directory: u64, life: Option<u32>, name: &RVec<u8>) -> Result<Taken, FsError> {
        let _pass = self.passage.enter()?;
        self.take_for_client(directory, life, name)
    }

    fn read(&self, inode: u64, offset: u64, buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        let _pass = self.passage.enter()?;
        self.get(inode, offset, buffer)
    }

    fn pages(&self, inode: u64) -> Result<Handle<dyn VmoView>, FsError> {
        let _pass = self.passage.enter()?;
        self.pages.view(&self.shadow, inode)
    }

    fn pages_to_change(&self, inode: u64) -> Result<Handle<dyn VmoView>, FsError> {
        let _pass = self.passage.enter()?;
        self.pages.view_to_change(&self.shadow, inode)
    }

    fn prepare(&self, inode: u64, page: u64) -> Result<bool, FsError> {
        let _pass = self.passage.enter()?;
        self.pages.prepare(&self.shadow, inode, page)
    }

    fn populate(&self, inode: u64, first: u64, count: u64) -> Result<u64, FsError> {
        let _pass = self.passage.enter()?;
        self.pages.populate(&self.shadow, inode, first, count)
    }

    fn request(&self, inode: u64, first: u64, count: u64) -> Result<u64, FsError> {
        self.pages.request(&self.passage, inode, first, count)
    }

    /// It is for this domain alone: a view that is not the kernel's could keep a thread that others
    /// wait for.
    fn load(
        &self,
        _inode: u64,
        _first: u64,
        _count: u64,
        _view: Handle<dyn VmoView>,
    ) -> Result<u64, FsError> {
        Err(FsError::Unsupported)
    }

    /// As [`load`](Self::load).
    fn store(
        &self,
        _inode: u64,
        _runs: &RVec<PageRun>,
        _end: u64,
        _modified: u64,
        _view: Handle<dyn VmoView>,
    ) -> Result<u64, FsError> {
        Err(FsError::Unsupported)
    }

    fn write(&self, inode: u64, offset: u64, data: &RVec<u8>) -> Result<u64, FsError> {
        let _pass = self.passage.enter()?;
        self.put(inode, offset, data)
    }

    fn append(&self, inode: u64, data: &RVec<u8>) -> Result<(u64, u64), FsError> {
        let _pass = self.passage.enter()?;
        self.put_behind(inode, data)
    }

    fn write_from(
        &self,
        inode: u64,
        offset: u64,
        count: u64,
        from: &UserBuf<'_>,
        at: u64,
    ) -> Result<u64, FsError> {
        let _pass = self.passage.enter()?;
        self.put_from(inode, offset, count, from, at)
    }

    fn append_from(
        &self,
        inode: u64,
        count: u64,
        from: &UserBuf<'_>,
        at: u64,
    ) -> Result<(u64, u64), FsError> {
        let _pass = self.passage.enter()?;
        self.put_behind_from(inode, count, from, at)
    }

    fn truncate(&self, inode: u64, size: u64) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        self.cut(inode, size)
    }

    fn next_data(&self, inode: u64, offset: u64) -> Result<Option<u64>, FsError> {
        let _pass = self.passage.enter()?;
        self.pages.next_data(&self.shadow, inode, offset)
    }

    fn next_hole(&self, inode: u64, offset: u64) -> Result<Option<u64>, FsError> {
        let _pass = self.passage.enter()?;
        self.pages.next_hole(&self.shadow, inode, offset)
    }

    fn punch(&self, inode: u64, offset: u64, length: u64) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        self.make_hole(inode, offset, length)
    }

    fn create(
        &self,
        directory: u64,
        name: &RVec<u8>,
        kind: FileKind,
        mode: u16,
    ) -> Result<u64, FsError> {
        let _pass = self.passage.enter()?;
        self.make_file(directory, name, kind, mode)
    }

    fn make_node(
        &self,
        directory: u64,
        name: &RVec<u8>,
        kind: FileKind,
        mode: u16,
        device: u32,
    ) -> Result<u64, FsError> {
        let _pass = self.passage.enter()?;
        self.make_special(directory, name, kind, mode, device)
    }

    fn symlink(&self, directory: u64, name: &RVec<u8>, target: &RVec<u8>) -> Result<u64, FsError> {
        let _pass = self.passage.enter()?;
        self.make_symlink(directory, name, target)
    }

    fn read_link(&self, inode: u64, buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        let _pass = self.passage.enter()?;
        let mut buffer = Buffer::new(buffer);
        self.shadow.ask(inode, |instance, real| {
            instance.fs().read_link(real, buffer.take()?)
        })
    }

    fn link(&self, directory: u64, name: &RVec<u8>, inode: u64) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        self.give_name(directory, name, inode)
    }

    fn unlink(&self, directory: u64, name: &RVec<u8>) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        self.remove_name(directory, name)
    }

    /// It is for this domain alone.
    fn unnamed(&self, _makes: bool) -> Result<Option<u64>, FsError> {
        Err(FsError::Unsupported)
    }

    fn remove_directory(&self, directory: u64, name: &RVec<u8>) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        self.remove_empty(directory, name)
    }

    fn rename(
        &self,
        from: u64,
        name: &RVec<u8>,
        to: u64,
        new_name: &RVec<u8>,
        how: Renaming,
    ) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        self.move_name(from, name, to, new_name, how)
    }

    fn read_directory(
        &self,
        inode: u64,
        cookie: u64,
        buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), FsError> {
        let _pass = self.passage.enter()?;
        self.list(inode, cookie, buffer)
    }

    fn set_mode(&self, inode: u64, mode: u16) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        self.set(Setting::Mode(mode), inode)
    }

    fn set_owner(&self, inode: u64, user: Option<u32>, group: Option<u32>) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        self.set(Setting::Owner { user, group }, inode)
    }

    fn set_times(
        &self,
        inode: u64,
        accessed: Option<u64>,
        modified: Option<u64>,
    ) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        self.set(Setting::Times { accessed, modified }, inode)
    }

    fn statistics(&self) -> Result<FsStatistics, FsError> {
        let _pass = self.passage.enter()?;
        let root = self.shadow.root();
        let mut of = self
            .shadow
            .ask(root, |instance, _| instance.fs().statistics())?;
        let promised = self.pages.promised() / u64::from(of.block_size.max(1));
        of.free_blocks = of.free_blocks.saturating_sub(promised);
        Ok(of)
    }

    fn commit(&self) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        self.pages.commit(&self.shadow)
    }

    fn commit_inode(
        &self,
        inode: u64,
        from: u64,
        end: u64,
        data_only: bool,
    ) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        match data_only {
            true => self.pages.commit_data(&self.shadow, inode, from..end),
            false => self.pages.commit_inode(&self.shadow, inode),
        }
    }

    /// Pages are kept here.
    fn flush_content(&self, _inode: u64) -> Result<bool, FsError> {
        Err(FsError::Unsupported)
    }

    fn sync(&self) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        if self.pages.is_used() {
            self.pages.commit(&self.shadow)?;
        }
        self.shadow.meter.tell();
        let synced = self.shadow.engine().sync(&*self.shadow);
        self.shadow.meter.reset();
        synced
    }
}
