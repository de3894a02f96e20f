//! The `FileSystem` interface. All inodes are clients' numbers.

use alloc::sync::Arc;
use gate::Passage;
use interfaces::{
    FileKind, FileSystem, FsError, FsStatistics, Handle, Hold, LaneOutcome, Metadata, PageRun,
    RVec, Renaming, RpcResult, UserBuf, VmoView, Walked,
};
use redo::intent::SETTING;
use redo::{Action, Engine, Host as _, Kind, Lane, Order, Outcome};
use respawn::Buffer;

use crate::instance::{self, Instance};
use crate::lanes;
use crate::listing;
use crate::pages::{Data, Pages, copied};
use crate::shadow::Shadow;

/// Pages of the disk that a change of names may take, and one of content besides its own.
const BESIDES: u64 = 4;

/// What the domain offers.
pub struct Service {
    pub(crate) shadow: Arc<Shadow>,
    passage: Arc<Passage>,
    pub(crate) pages: Arc<Pages>,
    /// Who calls comes through this one.
    lane: Option<Lane>,
}

impl Service {
    /// Serves `shadow`. Every call goes through `passage`.
    pub fn new(shadow: Arc<Shadow>, passage: Arc<Passage>, pages: Arc<Pages>) -> Self {
        Service {
            shadow,
            passage,
            pages,
            lane: None,
        }
    }

    /// Makes a change about one or two inodes.
    fn change(&self, action: Action<RVec<u8>, Setting>, on: [u64; 2]) -> Result<Outcome, FsError> {
        let order = Order::new(action, on);
        let shadow = &*self.shadow;
        shadow.carry_out(self.lane, order, |engine, order| {
            engine.change(shadow, order)
        })
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

    /// Sees to it that a write of the old way finds its blocks.
    fn keep_room(&self, data: &RVec<u8>) -> Result<(), FsError> {
        let pages = data.len() as u64 / 4096;
        self.pages.keep_room(&self.shadow, pages + BESIDES)
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

    fn append_to(&self, inode: u64, data: Content<'_>) -> Result<(u64, u64), FsError> {
        if self.shadow.is_lasting() {
            let mut engine = self.shadow.engine();
            return engine.append_lent(&*self.shadow, inode, data.bytes());
        }
        let data = data.into_own()?;
        let append = |engine: &mut Engine<Instance>| engine.append(&*self.shadow, inode, data);
        self.shadow.by_lane(self.lane, append)
    }
}

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

/// What can be set of an inode. It is remembered, and set again by whatever instance comes next.
pub enum Setting {
    /// The permission bits.
    Mode(u16),
    /// Owner and group; `None`: stays.
    Owner {
        /// The owner.
        user: Option<u32>,
        /// The group.
        group: Option<u32>,
    },
    /// So many bytes from there on are zeros, and take no room.
    Hole {
        /// Where.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// Times in nanoseconds since 1970; `None`: stays.
    Times {
        /// Of the last access.
        accessed: Option<u64>,
        /// Of the last change of the content.
        modified: Option<u64>,
    },
}

impl Setting {
    /// As bytes, in a place of zeros: which one, and two words, each behind a mark that it is
    /// there.
    pub fn pack(&self, place: &mut [u8; SETTING]) {
        let (code, words) = match *self {
            Setting::Mode(mode) => (1, [Some(mode.into()), None]),
            Setting::Times { accessed, modified } => (2, [accessed, modified]),
            Setting::Owner { user, group } => (3, [user, group].map(|id| id.map(u64::from))),
            Setting::Hole { offset, length } => (4, [Some(offset), Some(length)]),
        };
        place[0] = code;
        for (word, place) in words.into_iter().zip(place[8..].chunks_exact_mut(16)) {
            place[0] = word.is_some().into();
            place[8..].copy_from_slice(&word.unwrap_or(0).to_le_bytes());
        }
    }

    /// The same again; `None`: these are not such bytes.
    pub fn unpack(bytes: &[u8; SETTING]) -> Option<Self> {
        let mut words = bytes[8..].chunks_exact(16).map(|word| {
            let (mark, word) = (word[0], word[8..].try_into());
            word.ok().filter(|_| mark != 0).map(u64::from_le_bytes)
        });
        let words = [words.next()?, words.next()?];
        match (bytes[0], words) {
            (1, [mode, _]) => Some(Setting::Mode(mode?.try_into().ok()?)),
            (2, [accessed, modified]) => Some(Setting::Times { accessed, modified }),
            (3, [user, group]) => Some(Setting::Owner {
                user: user.map(u32::try_from).transpose().ok()?,
                group: group.map(u32::try_from).transpose().ok()?,
            }),
            (4, [offset, length]) => Some(Setting::Hole {
                offset: offset?,
                length: length?,
            }),
            _ => None,
        }
    }

    /// The time of the last change of the content, if it is set.
    fn modified(&self) -> Option<u64> {
        match *self {
            Setting::Mode(_) | Setting::Owner { .. } | Setting::Hole { .. } => None,
            Setting::Times { modified, .. } => modified,
        }
    }

    /// Sets it of the inode `real`, in the numbers of `fs`.
    ///
    /// # Errors
    /// The file system's.
    pub fn perform(&self, fs: &Handle<dyn FileSystem>, real: u64) -> Result<(), FsError> {
        match *self {
            Setting::Mode(mode) => fs.set_mode(real, mode),
            Setting::Owner { user, group } => fs.set_owner(real, user, group),
            Setting::Hole { offset, length } => fs.punch(real, offset, length),
            Setting::Times { accessed, modified } => fs.set_times(real, accessed, modified),
        }
    }
}

// Every method that reaches the file system takes a pass first, so that it waits while the file
// system is replaced.
impl FileSystem for Service {
    fn root(&self) -> Result<u64, FsError> {
        Ok(self.shadow.root())
    }

    fn lineage(&self) -> Result<u64, FsError> {
        self.shadow.lineage().ok_or(FsError::Unsupported)
    }

    fn lane(&self, number: u32) -> Result<Handle<dyn FileSystem>, FsError> {
        let lane = self.shadow.lane(number)?;
        Ok(Handle::<dyn FileSystem>::new(Service {
            shadow: self.shadow.clone(),
            passage: self.passage.clone(),
            pages: self.pages.clone(),
            lane: Some(lane),
        })?)
    }

    fn begin(&self, ticket: u64) -> Result<(), FsError> {
        self.shadow.begin(self.lane, ticket)
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

    fn walk(&self, from: u64, path: &RVec<u8>) -> Result<Walked, FsError> {
        let _pass = self.passage.enter()?;
        self.follow(from, path)
    }

    fn hold(&self, inode: u64) -> Result<Handle<dyn Hold>, FsError> {
        let _pass = self.passage.enter()?;
        let client = lanes::client_of(self.lane);
        self.shadow.count_client(inode, client);
        let held = Held {
            shadow: self.shadow.clone(),
            pages: self.pages.clone(),
            inode,
            client,
        };
        // From here on `held` gives the hold back, also if there is no such inode.
        self.told_of(inode)?;
        Ok(Handle::<dyn Hold>::new(held)?)
    }

    fn read(&self, inode: u64, offset: u64, buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        let _pass = self.passage.enter()?;
        let buffer = match self.pages.read(&self.shadow, inode, offset, buffer)? {
            Ok(read) => return Ok(read),
            Err(unread) => unread,
        };
        let mut buffer = Buffer::new(buffer);
        self.shadow.ask(inode, |instance, real| {
            instance.fs().read(real, offset, buffer.take()?)
        })
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
        self.pages.request(inode, first, count)
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
        let own = Data::Own(data);
        if let Some((_, count)) = self.pages.write(&self.shadow, inode, Some(offset), &own)? {
            return Ok(count);
        }
        self.write_old_way(inode, offset, Content::Lent(data))
    }

    fn append(&self, inode: u64, data: &RVec<u8>) -> Result<(u64, u64), FsError> {
        let _pass = self.passage.enter()?;
        let own = Data::Own(data);
        let appended = self.pages.append(&self.shadow, inode, &own, self.lane)?;
        if let Some(appended) = appended {
            return Ok(appended);
        }
        self.append_old_way(inode, Content::Lent(data))
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

    fn append_from(
        &self,
        inode: u64,
        count: u64,
        from: &UserBuf<'_>,
        at: u64,
    ) -> Result<(u64, u64), FsError> {
        let _pass = self.passage.enter()?;
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

    fn truncate(&self, inode: u64, size: u64) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        let change = || {
            self.change(Action::Truncate { size }, [inode; 2])?;
            Ok(())
        };
        self.pages.truncate(&self.shadow, inode, size, change)
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

    fn create(
        &self,
        directory: u64,
        name: &RVec<u8>,
        kind: FileKind,
        mode: u16,
    ) -> Result<u64, FsError> {
        let _pass = self.passage.enter()?;
        let kind = match kind {
            FileKind::Regular => Kind::File,
            FileKind::Directory => Kind::Directory,
            _ => return Err(FsError::Unsupported),
        };
        let name = self.new_name(directory, name)?;
        self.make(Action::Create { name, kind, mode }, directory)
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
        let node = instance::node(kind, mode, device)?;
        let name = self.new_name(directory, name)?;
        self.make(Action::Node { name, node }, directory)
    }

    fn symlink(&self, directory: u64, name: &RVec<u8>, target: &RVec<u8>) -> Result<u64, FsError> {
        let _pass = self.passage.enter()?;
        let name = self.new_name(directory, name)?;
        let target = RVec::from_slice(target)?;
        self.make(Action::Symlink { name, target }, directory)
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
        let name = self.new_name(directory, name)?;
        self.pages.keep_room(&self.shadow, BESIDES)?;
        self.change(Action::Link { name }, [directory, inode])
            .map(|_| ())
    }

    fn unlink(&self, directory: u64, name: &RVec<u8>) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        let name = self.old_name(directory, name)?;
        let order = Order::new(Action::Unlink { name }, [directory; 2]);
        let shadow = &*self.shadow;
        let unlink = |engine: &mut Engine<Instance>, order: &mut Order<Instance>| {
            engine.unlink(shadow, order)
        };
        self.pages.part_by(shadow, self.lane, order, unlink)
    }

    fn remove_directory(&self, directory: u64, name: &RVec<u8>) -> Result<(), FsError> {
        let _pass = self.passage.enter()?;
        let name = self.old_name(directory, name)?;
        let order = Order::new(Action::RemoveDirectory { name }, [directory; 2]);
        let shadow = &*self.shadow;
        shadow.carry_out(self.lane, order, |engine, order| {
            engine.remove_directory(shadow, order)
        })
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
            engine.rename(shadow, order, how)
        };
        self.pages.part_by(shadow, self.lane, order, rename)
    }

    fn read_directory(
        &self,
        inode: u64,
        cookie: u64,
        buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), FsError> {
        let _pass = self.passage.enter()?;
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

/// Keeps an inode while a client has it open.
struct Held {
    shadow: Arc<Shadow>,
    pages: Arc<Pages>,
    inode: u64,
    client: usize,
}

impl Hold for Held {
    fn inode(&self) -> RpcResult<u64> {
        Ok(self.inode)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.pages
            .release_of(&self.shadow, self.inode, Some(self.client));
    }
}
