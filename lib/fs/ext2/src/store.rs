//! Blocks on the device, through the cache: loading in runs, and content of files. The order of
//! writes is in `writeback`; metadata changes only in a `transaction`.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use crate::cache::{Cache, Kind, Reading};
use crate::device::{BlockDevice, DeviceError, SECTOR_SIZE};
use crate::dirindex::Indexes;
use crate::dirnotes::Notes;
use crate::error::Result;
use crate::group::GroupPlaces;
use crate::journal::{Copies, Flight, Journal};
use crate::layout::{Block, Layout, STATE_ERROR};
use crate::pending::Pending;
use crate::replaced::Replaced;
use crate::trust::Trust;
use crate::unsettled::Unsettled;

/// The largest request to the device, in bytes.
const RUN_BYTES: usize = 128 * 1024;
/// Bytes of the cache's budget for which the indexes of directories may have a name: about a fifth.
const BYTES_PER_NAME: usize = 64;
/// The smallest cache, in blocks.
const CACHE_MIN: usize = 128;

/// How large the cache may be.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    /// Bytes of blocks.
    pub(crate) bytes: usize,
    /// Whether memory is short: then it may have few blocks.
    pub(crate) is_short: fn() -> bool,
}

/// A device with its cache.
pub(crate) struct Store<D> {
    pub(crate) device: D,
    pub(crate) layout: Layout,
    pub(crate) cache: Cache,
    /// Frees that are not complete on disk.
    pub(crate) pending: Pending,
    /// Inodes that must not end on the disk before their names lead to others.
    pub(crate) replaced: Replaced,
    /// Inodes that need the next commit for their content to be found.
    pub(crate) unsettled: Unsettled,
    /// Names of large directories.
    pub(crate) indexes: Indexes,
    /// What [`Layout::overhead`] has said.
    pub(crate) overhead: Option<u64>,
    /// Where the tables of some groups lie.
    pub(crate) places: GroupPlaces,
    /// Which groups may be changed.
    pub(crate) trust: Trust,
    /// Blocks of the journal: the first of each run and the one behind it, sorted.
    pub(crate) journal_blocks: Vec<(u32, u32)>,
    /// What is remembered of directory blocks.
    pub(crate) notes: Notes,
    /// The group in which a file got its first block last, and the place behind what it got.
    pub(crate) next_file: Option<(u32, u32)>,
    /// Inodes that are in use from outside, with the number of uses.
    pub(crate) open: BTreeMap<u32, u32>,
    /// Inodes that were freed and not yet told of, see `FileSystem::take_freed`.
    pub(crate) freed: Vec<u32>,
    /// The directory of files without a name, if there is one.
    pub(crate) unnamed: Option<u32>,
    /// Files whose truncation is not finished: they have blocks behind their end.
    pub(crate) cut: BTreeSet<u32>,
    /// No change is allowed: asked for at mount, or corruption was found.
    pub(crate) read_only: bool,
    /// Corruption was found by a change, or a group that is not trusted.
    pub(crate) damaged: bool,
    /// The superblock on disk says so.
    pub(crate) damage_is_noted: bool,
    /// The state field on disk is as it was at mount: no change is under way there.
    pub(crate) at_rest: bool,
    /// This mount was counted in the superblock.
    pub(crate) counted: bool,
    /// When it was mounted, seconds since 1970.
    pub(crate) mount_time: i64,
    /// The journal, if there is one and the mount is writable.
    pub(crate) journal: Option<Box<Journal>>,
    /// The commit that is being written.
    pub(crate) flight: Option<Flight>,
    /// Blocks whose newest content is in a journal that is not replayed, because the mount is
    /// read-only.
    pub(crate) overlay: Copies,
    /// The journal says that there was an error.
    pub(crate) log_error: bool,
    /// Transactions written to the journal.
    pub(crate) commits: u64,
    /// Requests made to the device.
    pub(crate) reads: u64,
    /// Requests made to the device.
    pub(crate) writes: u64,
    /// An operation that has done nothing is given up for blocks that are not cached.
    pub(crate) defers: bool,
    /// What it was given up for, and its bytes.
    pub(crate) missing: Option<(Reading, usize)>,
    /// A buffer for requests of several blocks, see `take_staging`.
    pub(crate) staging: Vec<u8>,
}

impl<D: BlockDevice> Store<D> {
    /// A store with an empty cache.
    pub(crate) fn new(device: D, layout: Layout, room: Room, read_only: bool) -> Self {
        let Room { bytes, is_short } = room;
        let capacity = (bytes / layout.block_size).max(CACHE_MIN);
        Store {
            device,
            layout,
            cache: Cache::new(capacity, is_short),
            pending: Pending::default(),
            replaced: Replaced::default(),
            unsettled: Unsettled::default(),
            indexes: Indexes::new(capacity * layout.block_size / BYTES_PER_NAME, is_short),
            overhead: None,
            places: GroupPlaces::default(),
            trust: Trust::default(),
            journal_blocks: Vec::new(),
            notes: Notes::default(),
            next_file: None,
            open: BTreeMap::new(),
            unnamed: None,
            freed: Vec::new(),
            cut: BTreeSet::new(),
            read_only,
            damaged: false,
            damage_is_noted: layout.state & STATE_ERROR != 0,
            at_rest: true,
            counted: false,
            mount_time: 0,
            journal: None,
            flight: None,
            overlay: Copies::new(),
            log_error: false,
            commits: 0,
            reads: 0,
            writes: 0,
            defers: false,
            missing: None,
            staging: Vec::new(),
        }
    }

    /// Whether the superblock has to say something else than on disk, where no change is under way:
    /// that the host is to look at everything.
    pub(crate) fn has_to_tell(&self) -> bool {
        !self.at_rest || (self.damaged && !self.damage_is_noted)
    }

    /// What was freed by the commit that is being written.
    pub(crate) fn written_frees(&self) -> Option<&Pending> {
        self.flight.as_ref().map(Flight::frees)
    }

    /// Whether something that was freed can be used after a write-back.
    pub(crate) fn has_frees(&self) -> bool {
        let written = self.written_frees();
        !self.pending.is_empty() || written.is_some_and(|frees| !frees.is_empty())
    }

    /// The most blocks of one request to the device.
    pub(crate) fn run_blocks(&self) -> usize {
        (RUN_BYTES / self.layout.block_size).min(self.cache.reserve())
    }

    /// The sector where a block starts.
    pub(crate) fn sector(&self, block: u32) -> u64 {
        u64::from(block) * (self.layout.block_size / SECTOR_SIZE) as u64
    }

    /// The content of a block, read if it is not cached.
    pub(crate) fn block(&mut self, block: Block) -> Result<&[u8]> {
        let place = match self.cache.find(block.number()) {
            Some(place) => place,
            None => {
                self.load_run(block, 1)?;
                let loaded = self.cache.find(block.number());
                loaded.expect("the newest blocks are never evicted")
            }
        };
        Ok(self.cache.content(place))
    }

    /// Makes sure that `block` is cached, and reads with it, in one request, those of the
    /// `count` blocks from there on that follow without a cached one between.
    pub(crate) fn load_run(&mut self, block: Block, count: usize) -> Result<()> {
        let first = block.number();
        if self.cache.contains(first) {
            return Ok(());
        }
        let most = count.clamp(1, self.run_blocks()) as u32;
        let end = first.saturating_add(most).min(self.layout.blocks);
        let missing = (first..end)
            .take_while(|block| !self.cache.contains(*block))
            .count();
        if self.gives_up_for(first, missing as u32) {
            return Err(DeviceError::Unavailable.into());
        }
        let size = self.layout.block_size;
        let (missing, mut buffer) = match self.take_staging(missing * size) {
            Ok(buffer) => (missing, buffer),
            Err(_) => (1, self.take_staging(size)?),
        };
        let end = first + missing as u32;
        let mut result = self.device.read(self.sector(first), &mut buffer);
        self.reads += 1;
        for (number, copy) in self.overlay.range(first..end) {
            let at = (number - first) as usize * size;
            let data = &mut buffer[at..at + size];
            let read = self.device.read(self.sector(copy.block), data);
            copy.restore(data);
            result = result.and(read);
        }
        if result.is_ok() {
            // Backwards, so that the block that was asked for is the newest.
            for (number, data) in (first..end).zip(buffer.chunks_exact(size)).rev() {
                self.cache.insert_clean(number, data);
            }
        }
        self.staging = buffer;
        Ok(result?)
    }

    /// The staging buffer, `len` bytes long. The caller puts it back.
    ///
    /// # Errors
    /// [`DeviceError::NoMemory`].
    pub(crate) fn take_staging(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut buffer = core::mem::take(&mut self.staging);
        buffer.clear();
        buffer
            .try_reserve_exact(len)
            .map_err(|_| DeviceError::NoMemory)?;
        buffer.resize(len, 0);
        Ok(buffer)
    }

    /// Makes `data` the content of a file's block.
    pub(crate) fn put_data(&mut self, block: Block, data: &[u8]) {
        match self.cache.get_dirty(block.number(), Kind::Data) {
            Some(present) => present.copy_from_slice(data),
            None => self
                .cache
                .insert_dirty(block.number(), data.into(), Kind::Data),
        }
    }

    /// The content of a file's block for change. `fresh` says that it is newly allocated: then it
    /// is zeroes and not read.
    pub(crate) fn data_mut(&mut self, block: Block, fresh: bool) -> Result<&mut [u8]> {
        let number = block.number();
        if fresh {
            if self.cache.contains(number) {
                let data = self
                    .cache
                    .get_dirty(number, Kind::Data)
                    .expect("it is cached");
                data.fill(0);
            } else {
                let zeroes = vec![0; self.layout.block_size].into();
                self.cache.insert_dirty(number, zeroes, Kind::Data);
            }
        } else {
            self.load_run(block, 1)?;
        }
        Ok(self
            .cache
            .get_dirty(number, Kind::Data)
            .expect("the newest blocks are never evicted"))
    }
}
