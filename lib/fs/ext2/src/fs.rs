//! [`FileSystem`]: mounting, unmounting, and what all operations share.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::cache::Kind;
use crate::device::{BlockDevice, DeviceError};
use crate::error::{Error, Result};
use crate::journal::{Commit, Replayed};
use crate::layout::{ROOT, STATE_ERROR, STATE_VALID, field};
use crate::store::{Room, Store};
use crate::time::Time;
use crate::transaction::Transaction;
use crate::trust::Trust;

/// How to mount.
pub struct Options {
    /// No write reaches the device.
    pub read_only: bool,
    /// Bytes of blocks to keep in memory. No less than 128 blocks are kept.
    pub cache_budget_bytes: usize,
    /// Whether memory is short now. While it is, few blocks are kept, and no names. It is asked
    /// often, so it must be quick.
    pub memory_is_short: fn() -> bool,
    /// The time.
    pub clock: Box<dyn Fn() -> Time + Send>,
}

/// What `statfs` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Bytes in a block.
    pub block_size: u32,
    /// Blocks that files can have in all.
    pub blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Free blocks without those that are kept for the super-user.
    pub available_blocks: u64,
    /// Inodes in all.
    pub inodes: u64,
    /// Free inodes.
    pub free_inodes: u64,
    /// The longest name, in bytes.
    pub name_max: u32,
}

/// What the file system has done so far, and how full its cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Read requests to the device.
    pub device_reads: u64,
    /// Write requests to the device.
    pub device_writes: u64,
    /// Transactions written to the journal.
    pub commits: u64,
    /// Blocks in the cache.
    pub cached_blocks: usize,
    /// Blocks that the cache may hold.
    pub cache_capacity: usize,
}

/// Sequential readers that are recognised at the same time.
pub(crate) const STREAMS: usize = 8;

/// A mounted ext2 file system.
///
/// Files are named by inode number. The numbers come from [`root`](Self::root), `lookup` and
/// `readdir`. A caller that keeps one for longer than a call holds it with [`open`](Self::open): an
/// inode that is removed while open stays usable until the last `close`.
///
/// Changes are in memory until `sync` (or `fsync`) returns, or until the budget forces them out. A
/// file system that is dropped without `unmount` is like one whose power was cut. With a journal
/// that means: each operation happened or did not, the later ones only if the earlier ones did.
pub struct FileSystem<D: BlockDevice> {
    pub(crate) store: Store<D>,
    clock: Box<dyn Fn() -> Time + Send>,
    /// Where the last sequential readers stopped: inode and block.
    pub(crate) streams: [(u32, u64); STREAMS],
    pub(crate) next_stream: usize,
    replayed: Option<Replayed>,
}

impl<D: BlockDevice> FileSystem<D> {
    /// Mounts the file system on `device`. An image that was not unmounted cleanly is mounted too,
    /// see [`was_clean`](Self::was_clean): then free blocks and inodes are counted, and interrupted
    /// removals and truncations finished. Block groups that contradict themselves are not changed,
    /// see [`take_distrusted`](Self::take_distrusted). A journal that needs it is replayed, see
    /// [`replayed`](Self::replayed); for a read-only mount in memory only. Nothing else is changed
    /// by mounting.
    ///
    /// # Errors
    /// `NotExt2`, `Corrupt`, `BlockSize`, `Unsupported`, `OnlyReadable`, `Journal` say what is
    /// wrong with the image; device errors.
    pub fn mount(device: D, options: Options) -> Result<Self> {
        let room = Room {
            bytes: options.cache_budget_bytes,
            is_short: options.memory_is_short,
        };
        let (mut store, replayed) = Store::open(device, room, options.read_only)?;
        if !store.read_only {
            store.trust = Trust::new(store.layout.groups)?;
        }
        store.mount_time = (options.clock)().seconds;
        let mut fs = FileSystem {
            store,
            clock: options.clock,
            streams: [(0, 0); STREAMS],
            next_stream: 0,
            replayed,
        };
        fs.view(|tx| tx.directory(ROOT))
            .map_err(|error| match error {
                Error::NotFound | Error::NotDirectory => Error::Corrupt("root directory"),
                other => other,
            })?;
        fs.find_unnamed()?;
        match fs.recount().and_then(|()| fs.finish_orphans()) {
            // The change that met the corruption made the mount read-only; reading may still work.
            Ok(()) | Err(Error::Corrupt(_)) => Ok(fs),
            Err(error) => Err(error),
        }
    }

    /// Finishes removals and truncations that were interrupted.
    fn finish_orphans(&mut self) -> Result<()> {
        if self.store.read_only {
            return Ok(());
        }
        for _ in 0..self.store.layout.inodes {
            let first = match self.view(|tx| tx.first_orphan())? {
                0 => break,
                ino => ino,
            };
            self.reap(first)?;
        }
        Ok(())
    }

    /// Frees the orphan `ino` and its content, or cuts it to its size.
    pub(crate) fn reap(&mut self, ino: u32) -> Result<()> {
        while !self.update(|tx| tx.finish_orphan(ino))? {}
        self.store.cut.remove(&ino);
        Ok(())
    }

    /// Runs a reading operation.
    pub(crate) fn view<T>(
        &mut self,
        operation: impl FnOnce(&mut Transaction<'_, D>) -> Result<T>,
    ) -> Result<T> {
        operation(&mut Transaction::begin(&mut self.store, Time::default()))
    }

    /// Runs a changing operation: all of it happens or nothing. If space is short while freed
    /// blocks wait for a write-back, that is done and the operation tried again. Corruption
    /// makes the file system read-only.
    pub(crate) fn update<T>(
        &mut self,
        mut operation: impl FnMut(&mut Transaction<'_, D>) -> Result<T>,
    ) -> Result<T> {
        if self.store.read_only {
            return Err(Error::ReadOnly);
        }
        // That is no part of the operation, and may write.
        let defers = core::mem::take(&mut self.store.defers);
        self.store.balance()?;
        self.store.defers = defers;
        let mut result = self.attempt(&mut operation);
        let full = matches!(result, Err(Error::NoSpace | Error::NoInodes));
        if full && self.store.has_frees() {
            self.store.stay();
            self.store.write_back()?;
            result = self.attempt(&mut operation);
        }
        if matches!(result, Err(Error::Corrupt(_))) {
            self.store.damaged = true;
            self.store.read_only = true;
        }
        result
    }

    /// Runs a changing operation in a transaction; again, in an empty journal, if it does not fit.
    fn attempt<T>(
        &mut self,
        operation: &mut impl FnMut(&mut Transaction<'_, D>) -> Result<T>,
    ) -> Result<T> {
        if let Some(value) = self.attempt_once(operation)? {
            return Ok(value);
        }
        self.store.stay();
        self.store.checkpoint()?;
        self.attempt_once(operation)?.ok_or(Error::NoSpace)
    }

    fn attempt_once<T>(
        &mut self,
        operation: &mut impl FnMut(&mut Transaction<'_, D>) -> Result<T>,
    ) -> Result<Option<T>> {
        let now = (self.clock)();
        let mut transaction = Transaction::begin(&mut self.store, now);
        let value = operation(&mut transaction)?;
        Ok(transaction.commit().then_some(value))
    }

    /// Makes everything survive a power cut: the cheapest way to. With a journal that is one
    /// transaction; without, everything goes to its place, in an order that keeps the image
    /// consistent. The image is not marked as clean.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn commit(&mut self) -> Result<()> {
        self.store.stay();
        match self.store.journal {
            Some(_) => self.store.commit_log(),
            None => self.store.write_back_to_medium(),
        }
    }

    /// Begins a commit that is written without the file system, which others use meanwhile: the
    /// content of files is given to the device, and copied is what goes to the journal. Who asked
    /// then calls [`Commit::write`], once, and says with
    /// [`finish_commit`](Self::finish_commit) what became of it. What is changed after this call is
    /// for the next commit. `None` if there is no journal.
    ///
    /// At times the file system cannot go on without knowing the result: it then calls `wait`,
    /// which is to wait until `write` has returned, and to return the same.
    ///
    /// # Errors
    /// Device errors, also `NoMemory` for the copies: nothing was begun. Where
    /// [`commit`](Self::commit) does the same it needs no such memory.
    pub fn begin_commit(
        &mut self,
        wait: impl Fn() -> core::result::Result<(), DeviceError> + Send + 'static,
    ) -> Result<Option<Commit>> {
        self.store.stay();
        self.store.begin_flight(Box::new(wait))
    }

    /// Ends a commit that was begun, with the result of [`Commit::write`]. One that failed is part
    /// of the next, which begins as if this had not been.
    pub fn finish_commit(
        &mut self,
        commit: &Commit,
        result: core::result::Result<(), DeviceError>,
    ) {
        self.store.finish_flight(commit, result);
    }

    /// Has the device write the content of files, without waiting until that is on the medium; how
    /// many bytes there were. What follows, a flush and [`commit`](Self::commit), then takes less
    /// time.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn write_content(&mut self) -> Result<usize> {
        self.store.stay();
        let blocks = self.store.cache.dirty_count(Kind::Data);
        self.store.write_kind(Kind::Data)?;
        Ok(blocks * self.store.layout.block_size)
    }

    /// Brings everything to the medium, and to its place there. Afterwards the image is marked as
    /// clean, if it was at mount and no removed inode is open.
    ///
    /// # Errors
    /// Device errors: what could not be written stays in memory; another `sync` tries again.
    pub fn sync(&mut self) -> Result<()> {
        self.store.stay();
        let orphans = !self.store.read_only && self.view(|tx| tx.first_orphan())? != 0;
        let now = (self.clock)();
        self.store.sync(orphans, now.seconds)
    }

    /// Makes the content and the metadata of `ino` survive a power cut; now those of all others
    /// too, see [`commit`](Self::commit).
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn fsync(&mut self, _ino: u32) -> Result<()> {
        self.commit()
    }

    /// Makes the content of `ino` survive a power cut, and what it is found by; not its times.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn fdatasync(&mut self, ino: u32) -> Result<()> {
        match self.is_settled(ino) {
            true => {
                self.write_content()?;
                Ok(self.store.device.flush()?)
            }
            false => self.commit(),
        }
    }

    /// Whether content of `ino` that is on the medium is found there after a power cut, as all that
    /// it is found by has been committed. Without a journal nobody knows.
    pub fn is_settled(&self, ino: u32) -> bool {
        let flight = self.store.flight.as_ref();
        self.store.journal.is_some()
            && !self.store.unsettled.has(ino)
            && !flight.is_some_and(|flight| flight.settles(ino))
    }

    /// Closes everything that is open, finishes removals, and syncs. After success only reading is
    /// possible.
    ///
    /// # Errors
    /// As [`sync`](Self::sync); the file system is then still mounted.
    pub fn unmount(&mut self) -> Result<()> {
        self.store.stay();
        self.store.open.clear();
        if let Err(error @ Error::Device(_)) = self.finish_orphans() {
            return Err(error);
        }
        self.sync()?;
        self.store.read_only = true;
        Ok(())
    }

    /// Gives the device back. Changes since the last `sync` are lost; see
    /// [`unmount`](Self::unmount).
    pub fn into_device(self) -> D {
        self.store.device
    }

    /// The inode of the root directory.
    pub fn root(&self) -> u32 {
        ROOT
    }

    /// Whether no change is possible: asked for at mount, or since a change met corruption.
    pub fn is_read_only(&self) -> bool {
        self.store.read_only
    }

    /// Whether the image was unmounted cleanly before this mount. If not, files may be missing that
    /// were not synced, and the host's `e2fsck` should see it; it is never marked clean by this
    /// library. A journal that had to be replayed makes it clean.
    pub fn was_clean(&self) -> bool {
        let state = self.store.layout.state & (STATE_VALID | STATE_ERROR);
        state == STATE_VALID && !self.store.log_error
    }

    /// Whether there is a journal that changes are written to.
    pub fn has_journal(&self) -> bool {
        self.store.journal.is_some()
    }

    /// What the mount found in the journal and replayed; `None` if it was empty.
    pub fn replayed(&self) -> Option<Replayed> {
        self.replayed
    }

    /// Holds an inode: it stays usable, though removed, until as many calls of
    /// [`close`](Self::close).
    ///
    /// # Errors
    /// `NotFound` if it is not in use; device errors.
    pub fn open(&mut self, ino: u32) -> Result<()> {
        self.view(|tx| tx.inode(ino))?;
        *self.store.open.entry(ino).or_insert(0) += 1;
        Ok(())
    }

    /// Ends one [`open`](Self::open). The last one frees an inode that was removed meanwhile.
    ///
    /// # Errors
    /// `Invalid` if it is not open. Device errors: it is closed, and is freed at unmount or by the
    /// next mount.
    pub fn close(&mut self, ino: u32) -> Result<()> {
        self.store.stay();
        let count = self
            .store
            .open
            .get_mut(&ino)
            .ok_or(Error::Invalid("inode is not open"))?;
        *count -= 1;
        if *count > 0 {
            return Ok(());
        }
        self.store.open.remove(&ino);
        let left = self
            .view(|tx| tx.inode_record(ino))?
            .is_some_and(|inode| inode.links == 0);
        match left && !self.store.read_only {
            true => self.reap(ino),
            false => Ok(()),
        }
    }

    /// The inodes that were freed since this was last asked (and perhaps some that were not): what
    /// their content was means nothing any more.
    pub fn take_freed(&mut self) -> Vec<u32> {
        core::mem::take(&mut self.store.freed)
    }

    /// Sizes and free space.
    ///
    /// # Errors
    /// Device errors.
    pub fn statfs(&mut self) -> Result<Stat> {
        let layout = self.store.layout;
        let overhead = *self.store.overhead.get_or_insert_with(|| layout.overhead());
        let free = self.view(|tx| tx.super_field(field::FREE_BLOCKS))?;
        let free_inodes = self.view(|tx| tx.super_field(field::FREE_INODES))?;
        Ok(Stat {
            block_size: layout.block_size as u32,
            blocks: u64::from(layout.blocks).saturating_sub(overhead),
            free_blocks: free.into(),
            available_blocks: free.saturating_sub(layout.reserved_blocks).into(),
            inodes: layout.inodes.into(),
            free_inodes: free_inodes.into(),
            name_max: crate::dirent::NAME_MAX as u32,
        })
    }

    /// Requests to the device so far, and the state of the cache.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            device_reads: self.store.reads,
            device_writes: self.store.writes,
            commits: self.store.commits,
            cached_blocks: self.store.cache.len(),
            cache_capacity: self.store.cache.full_capacity(),
        }
    }
}
