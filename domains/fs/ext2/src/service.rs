//! The `FileSystem` interface over the mounted volume.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use domain_rt::log;
use interfaces::{
    FileKind, FileSystem, FsError, FsStatistics, Handle, Hold, LaneOutcome, Metadata, PageRun,
    RVec, Renaming, RpcResult, Taken, Text, UserBuf, VmoView, Walked,
};
use vfs::entries::{self, Packer};
use vfs::fence;

use crate::errors::Error;
use crate::volume::{Mounted, Volume};

/// Directory entries that are fetched from the library at once.
const ENTRIES_AT_ONCE: usize = 64;

/// The way to the files for one service in front of them.
pub struct Service {
    volume: Arc<Volume>,
    caller: fence::Service,
    /// The directory of files without a name survives a power cut.
    unnamed_is_safe: AtomicBool,
}

impl Service {
    /// Serves `caller` from `volume`.
    pub fn new(volume: Arc<Volume>, caller: fence::Service) -> Self {
        Service {
            volume,
            caller,
            unnamed_is_safe: AtomicBool::new(false),
        }
    }

    /// For what takes no lock to be compared under, since it changes nothing that a later service
    /// could see.
    fn admit(&self) -> Result<(), FsError> {
        Ok(self.volume.fence.admit(self.caller).map_err(Error::from)?)
    }

    fn view<T>(
        &self,
        operation: impl FnMut(&mut Mounted) -> Result<T, ext2::Error>,
    ) -> Result<T, FsError> {
        Ok(self.volume.view(self.caller, operation)?)
    }

    fn change<T>(
        &self,
        operation: impl FnMut(&mut Mounted) -> Result<T, ext2::Error>,
    ) -> Result<T, FsError> {
        Ok(self.volume.change(self.caller, operation)?)
    }
}

impl FileSystem for Service {
    fn root(&self) -> Result<u64, FsError> {
        self.view(|fs| Ok(fs.root())).map(u64::from)
    }

    fn lineage(&self) -> Result<u64, FsError> {
        Err(FsError::Unsupported)
    }

    fn lane(&self, _number: u32) -> Result<Handle<dyn FileSystem>, FsError> {
        Err(FsError::Unsupported)
    }

    fn begin(
        &self,
        _ticket: u64,
        _first: Option<u32>,
        _second: Option<u32>,
    ) -> Result<(), FsError> {
        Err(FsError::Unsupported)
    }

    fn outcome(&self, _ticket: u64) -> Result<Option<LaneOutcome>, FsError> {
        Err(FsError::Unsupported)
    }

    fn metadata(&self, inode: u64) -> Result<Metadata, FsError> {
        let ino = number(inode)?;
        self.view(|fs| fs.getattr(ino)).map(metadata)
    }

    fn lookup(&self, directory: u64, name: &RVec<u8>) -> Result<u64, FsError> {
        let directory = number(directory)?;
        self.view(|fs| fs.lookup(directory, name)).map(u64::from)
    }

    /// Names are remembered by who is in front of it.
    fn walk(&self, _from: u64, _life: Option<u32>, _path: &RVec<u8>) -> Result<Walked, FsError> {
        Err(FsError::Unsupported)
    }

    fn hold(&self, inode: u64, life: Option<u32>) -> Result<Handle<dyn Hold>, FsError> {
        let ino = number(inode)?;
        self.view(|fs| fs.open(ino))?;
        // From here on `held` lets go, also if it is another's number by now.
        let held = Held {
            volume: self.volume.clone(),
            ino,
        };
        if let Some(life) = life
            && self.view(|fs| fs.getattr(ino))?.generation != life
        {
            return Err(FsError::Stale);
        }
        Ok(Handle::<dyn Hold>::new(held)?)
    }

    /// As [`walk`](Self::walk).
    fn take(
        &self,
        _directory: u64,
        _life: Option<u32>,
        _name: &RVec<u8>,
    ) -> Result<Taken, FsError> {
        Err(FsError::Unsupported)
    }

    fn read(&self, inode: u64, offset: u64, mut buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        let ino = number(inode)?;
        self.admit()?;
        let count = self.volume.read(ino, offset, &mut buffer)?;
        Ok(buffer.truncated(count))
    }

    /// Pages are kept by who is in front of it.
    fn pages(&self, _inode: u64) -> Result<Handle<dyn VmoView>, FsError> {
        Err(FsError::Unsupported)
    }

    fn pages_to_change(&self, _inode: u64) -> Result<Handle<dyn VmoView>, FsError> {
        Err(FsError::Unsupported)
    }

    fn prepare(&self, _inode: u64, _page: u64) -> Result<bool, FsError> {
        Err(FsError::Unsupported)
    }

    fn populate(&self, _inode: u64, _first: u64, _count: u64) -> Result<u64, FsError> {
        Err(FsError::Unsupported)
    }

    fn request(&self, _inode: u64, _first: u64, _count: u64) -> Result<u64, FsError> {
        Err(FsError::Unsupported)
    }

    fn load(
        &self,
        inode: u64,
        first: u64,
        count: u64,
        view: Handle<dyn VmoView>,
    ) -> Result<u64, FsError> {
        let ino = number(inode)?;
        Ok(self.volume.load(self.caller, ino, first, count, &view)?)
    }

    fn store(
        &self,
        inode: u64,
        runs: &RVec<PageRun>,
        end: u64,
        modified: u64,
        view: Handle<dyn VmoView>,
    ) -> Result<u64, FsError> {
        let ino = number(inode)?;
        let modified = ext2::Time::from_nanoseconds(modified);
        let volume = &self.volume;
        Ok(volume.store(self.caller, ino, runs, end, modified, &view)?)
    }

    fn write(&self, inode: u64, offset: u64, data: &RVec<u8>) -> Result<u64, FsError> {
        let ino = number(inode)?;
        let (_, count) = self.volume.write(self.caller, ino, Some(offset), data)?;
        Ok(count as u64)
    }

    fn append(&self, inode: u64, data: &RVec<u8>) -> Result<(u64, u64), FsError> {
        let ino = number(inode)?;
        let (end, count) = self.volume.write(self.caller, ino, None, data)?;
        Ok((end, count as u64))
    }

    /// What programs write goes to who keeps pages.
    fn write_from(
        &self,
        _inode: u64,
        _offset: u64,
        _count: u64,
        _from: &UserBuf<'_>,
        _at: u64,
    ) -> Result<u64, FsError> {
        Err(FsError::Unsupported)
    }

    fn append_from(
        &self,
        _inode: u64,
        _count: u64,
        _from: &UserBuf<'_>,
        _at: u64,
    ) -> Result<(u64, u64), FsError> {
        Err(FsError::Unsupported)
    }

    fn truncate(&self, inode: u64, size: u64) -> Result<(), FsError> {
        let ino = number(inode)?;
        Ok(self.volume.truncate(self.caller, ino, size)?)
    }

    fn next_data(&self, inode: u64, offset: u64) -> Result<Option<u64>, FsError> {
        let ino = number(inode)?;
        self.view(|fs| fs.next_data(ino, offset))
    }

    fn next_hole(&self, inode: u64, offset: u64) -> Result<Option<u64>, FsError> {
        let ino = number(inode)?;
        self.view(|fs| fs.next_hole(ino, offset))
    }

    fn punch(&self, inode: u64, offset: u64, length: u64) -> Result<(), FsError> {
        let ino = number(inode)?;
        Ok(self.volume.punch(self.caller, ino, offset, length)?)
    }

    fn create(
        &self,
        directory: u64,
        name: &RVec<u8>,
        kind: FileKind,
        mode: u16,
    ) -> Result<u64, FsError> {
        let directory = number(directory)?;
        let made = match kind {
            FileKind::Regular => self.change(|fs| fs.create(directory, name, mode)),
            FileKind::Directory => self.change(|fs| fs.mkdir(directory, name, mode)),
            _ => Err(FsError::Unsupported),
        };
        made.map(u64::from)
    }

    fn make_node(
        &self,
        directory: u64,
        name: &RVec<u8>,
        kind: FileKind,
        mode: u16,
        device: u32,
    ) -> Result<u64, FsError> {
        let directory = number(directory)?;
        let kind = match kind {
            FileKind::CharacterDevice => ext2::FileKind::CharacterDevice,
            FileKind::BlockDevice => ext2::FileKind::BlockDevice,
            FileKind::Pipe => ext2::FileKind::Pipe,
            FileKind::Socket => ext2::FileKind::Socket,
            _ => return Err(FsError::Invalid),
        };
        self.change(|fs| fs.mknod(directory, name, kind, mode, device))
            .map(u64::from)
    }

    fn symlink(&self, directory: u64, name: &RVec<u8>, target: &RVec<u8>) -> Result<u64, FsError> {
        let directory = number(directory)?;
        self.change(|fs| fs.symlink(directory, name, target))
            .map(u64::from)
    }

    fn read_link(&self, inode: u64, mut buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        let ino = number(inode)?;
        let target = self.view(|fs| fs.readlink(ino))?;
        let count = target.len().min(buffer.len());
        buffer[..count].copy_from_slice(&target[..count]);
        Ok(buffer.truncated(count))
    }

    fn link(&self, directory: u64, name: &RVec<u8>, inode: u64) -> Result<(), FsError> {
        let (directory, ino) = (number(directory)?, number(inode)?);
        self.change(|fs| fs.link(ino, directory, name))
    }

    fn unlink(&self, directory: u64, name: &RVec<u8>) -> Result<(), FsError> {
        let directory = number(directory)?;
        self.change(|fs| fs.unlink(directory, name))
    }

    fn unnamed(&self, makes: bool) -> Result<Option<u64>, FsError> {
        let mut found = self.view(|fs| fs.unnamed(false))?;
        if !makes {
            return Ok(found.map(u64::from));
        }
        if found.is_none() {
            found = self.change(|fs| fs.unnamed(true))?;
        }
        // Who asks notes its number. An instance before this one may have died before it was safe.
        if !self.unnamed_is_safe.load(Ordering::Relaxed) {
            self.volume.commit().map_err(Error::from)?;
            self.unnamed_is_safe.store(true, Ordering::Relaxed);
        }
        Ok(found.map(u64::from))
    }

    fn remove_directory(&self, directory: u64, name: &RVec<u8>) -> Result<(), FsError> {
        let directory = number(directory)?;
        self.change(|fs| fs.rmdir(directory, name))
    }

    fn rename(
        &self,
        from: u64,
        name: &RVec<u8>,
        to: u64,
        new_name: &RVec<u8>,
        how: Renaming,
    ) -> Result<(), FsError> {
        let (from, to) = (number(from)?, number(to)?);
        self.change(|fs| match how {
            Renaming::Replace => fs.rename(from, name, to, new_name),
            Renaming::New => fs.rename_to_new(from, name, to, new_name),
            // Without a journal a power cut could leave one of the two without a name.
            Renaming::Exchange if !fs.has_journal() => {
                Err(ext2::Error::Invalid("exchange without a journal"))
            }
            Renaming::Exchange => fs.exchange(from, name, to, new_name),
        })
    }

    fn read_directory(
        &self,
        inode: u64,
        cookie: u64,
        mut buffer: RVec<u8>,
    ) -> Result<(RVec<u8>, u64), FsError> {
        let ino = number(inode)?;
        let (filled, next) = self.view(|fs| list(fs, ino, cookie, &mut buffer))?;
        Ok((buffer.truncated(filled), next))
    }

    fn set_mode(&self, inode: u64, mode: u16) -> Result<(), FsError> {
        let ino = number(inode)?;
        self.change(|fs| fs.chmod(ino, mode))
    }

    fn set_owner(&self, inode: u64, user: Option<u32>, group: Option<u32>) -> Result<(), FsError> {
        let ino = number(inode)?;
        self.change(|fs| fs.chown(ino, user, group))
    }

    fn set_times(
        &self,
        inode: u64,
        accessed: Option<u64>,
        modified: Option<u64>,
    ) -> Result<(), FsError> {
        let ino = number(inode)?;
        let [accessed, modified] =
            [accessed, modified].map(|time| time.map(ext2::Time::from_nanoseconds));
        self.change(|fs| fs.set_times(ino, accessed, modified))
    }

    fn statistics(&self) -> Result<FsStatistics, FsError> {
        let (stat, read_only, kind) = self.view(|fs| {
            let kind = if fs.has_journal() { "ext3" } else { "ext2" };
            Ok((fs.statfs()?, fs.is_read_only(), kind))
        })?;
        Ok(FsStatistics {
            kind: Text::new(kind),
            block_size: stat.block_size,
            blocks: stat.blocks,
            free_blocks: stat.free_blocks,
            inodes: stat.inodes,
            free_inodes: stat.free_inodes,
            read_only,
        })
    }

    fn commit(&self) -> Result<(), FsError> {
        self.admit()?;
        Ok(self.volume.commit().map_err(Error::from)?)
    }

    /// A commit is one of everything, which callers share.
    fn commit_inode(
        &self,
        inode: u64,
        _from: u64,
        _end: u64,
        data_only: bool,
    ) -> Result<(), FsError> {
        match data_only && self.flush_content(inode)? {
            true => Ok(()),
            false => self.commit(),
        }
    }

    fn flush_content(&self, inode: u64) -> Result<bool, FsError> {
        let ino = number(inode)?;
        self.admit()?;
        Ok(self.volume.flush_content(ino).map_err(Error::from)?)
    }

    fn sync(&self) -> Result<(), FsError> {
        self.admit()?;
        Ok(self.volume.sync().map_err(Error::from)?)
    }
}

/// Packs entries from position `cookie` on; how many bytes, and the next position.
fn list(
    fs: &mut Mounted,
    ino: u32,
    cookie: u64,
    buffer: &mut [u8],
) -> Result<(usize, u64), ext2::Error> {
    let mut packer = Packer::new(buffer);
    let mut next = cookie;
    loop {
        let batch = fs.readdir(ino, next, ENTRIES_AT_ONCE)?;
        if batch.is_empty() {
            return Ok((packer.filled(), next));
        }
        for entry in batch {
            if packer.add(entry.ino.into(), packed_kind(entry.kind), &entry.name) {
                next = entry.next;
                continue;
            }
            return match packer.filled() {
                // Not even one entry fits, which must not look like the end.
                0 => Err(ext2::Error::Invalid("no entry fits into the buffer")),
                filled => Ok((filled, next)),
            };
        }
    }
}

/// Keeps an inode open in the library while the handle lives.
struct Held {
    volume: Arc<Volume>,
    ino: u32,
}

impl Hold for Held {
    fn inode(&self) -> RpcResult<u64> {
        Ok(self.ino.into())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(error) = self.volume.close(self.ino) {
            log!("letting go of inode {}: {error}", self.ino);
        }
    }
}

/// The library's inode number.
fn number(inode: u64) -> Result<u32, FsError> {
    u32::try_from(inode).map_err(|_| FsError::NotFound)
}

fn metadata(of: ext2::Attributes) -> Metadata {
    Metadata {
        inode: of.ino.into(),
        kind: file_kind(of.kind),
        mode: of.mode,
        links: of.links.into(),
        size: of.size,
        allocated: u64::from(of.sectors) * ext2::SECTOR_SIZE as u64,
        modified: of.mtime.to_nanoseconds(),
        accessed: of.atime.to_nanoseconds(),
        changed: of.ctime.to_nanoseconds(),
        user: of.uid,
        group: of.gid,
        device: of.device,
        generation: of.generation,
    }
}

fn file_kind(kind: ext2::FileKind) -> FileKind {
    match kind {
        ext2::FileKind::Regular => FileKind::Regular,
        ext2::FileKind::Directory => FileKind::Directory,
        ext2::FileKind::Symlink => FileKind::Symlink,
        ext2::FileKind::CharacterDevice => FileKind::CharacterDevice,
        ext2::FileKind::BlockDevice => FileKind::BlockDevice,
        ext2::FileKind::Pipe => FileKind::Pipe,
        ext2::FileKind::Socket => FileKind::Socket,
    }
}

fn packed_kind(kind: Option<ext2::FileKind>) -> u8 {
    match kind {
        Some(ext2::FileKind::Regular) => entries::REGULAR,
        Some(ext2::FileKind::Directory) => entries::DIRECTORY,
        Some(ext2::FileKind::Symlink) => entries::SYMLINK,
        Some(ext2::FileKind::CharacterDevice) => entries::CHARACTER_DEVICE,
        Some(ext2::FileKind::BlockDevice) => entries::BLOCK_DEVICE,
        Some(ext2::FileKind::Pipe) => entries::PIPE,
        Some(ext2::FileKind::Socket) => entries::SOCKET,
        None => entries::OTHER,
    }
}
