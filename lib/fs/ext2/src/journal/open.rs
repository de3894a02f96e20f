//! Opening a file system: its superblock, and its journal if it has one.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::bytes::{put_u32, u32_at};
use crate::device::{BlockDevice, SECTOR_SIZE};
use crate::error::{Error, Result};
use crate::features::INCOMPAT_RECOVER;
use crate::group::GroupPlaces;
use crate::journal::recovery::{Reader, Replayed};
use crate::journal::{Journal, Log};
use crate::layout::{Layout, SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE, field};
use crate::store::{Room, Store};

/// Where the superblock lies.
const SUPERBLOCK_SECTOR: u64 = (SUPERBLOCK_OFFSET / SECTOR_SIZE) as u64;

impl<D: BlockDevice> Store<D> {
    /// Opens the file system on `device` with a cache of `budget` bytes. If its journal needs
    /// recovery it is replayed: on the device, or if `read_only` in memory.
    ///
    /// # Errors
    /// As [`FileSystem::mount`](crate::FileSystem::mount).
    pub(crate) fn open(device: D, room: Room, read_only: bool) -> Result<(Self, Option<Replayed>)> {
        let layout = read_layout(&device, read_only)?;
        let mut store = Store::new(device, layout, room, read_only);
        if !layout.journal || (read_only && !layout.needs_recovery) {
            return Ok((store, None));
        }
        let log = store.open_log()?;
        if let Some(set) = log.superblock.unknown_features() {
            return Err(match layout.needs_recovery {
                true => Error::Unsupported(set),
                false => Error::OnlyReadable(set),
            });
        }
        let replayed = if !layout.needs_recovery {
            store.start_journal(log)?;
            return Ok((store, None));
        } else if read_only {
            store.recover_in_memory(&log)?
        } else {
            let replayed = store.recover(log)?;
            store = store.reopen(room)?;
            replayed
        };
        Ok((store, (replayed.transactions > 0).then_some(replayed)))
    }

    /// Lets the journal begin with an empty log. What is in a log although the file system was at
    /// rest is older than that, and is thrown away.
    fn start_journal(&mut self, mut log: Log) -> Result<()> {
        if log.superblock.start() != 0 {
            let complete = Reader::new(self, &log).scan()?;
            self.empty_log(&mut log, complete)?;
        }
        self.log_error = log.superblock.has_error();
        self.journal_blocks = log.spans();
        self.journal = Some(Box::new(Journal::new(log)));
        Ok(())
    }

    /// Replays the log on the device, empties it, and says in the superblock that this was done.
    fn recover(&mut self, mut log: Log) -> Result<Replayed> {
        let reader = Reader::new(self, &log);
        let transactions = reader.scan()?;
        let copies = reader.gather(transactions)?;
        self.replay(&copies)?;
        self.device.flush()?;
        self.empty_log(&mut log, transactions)?;
        self.stamp_super(|sb| {
            let features = u32_at(sb, field::INCOMPAT) & !INCOMPAT_RECOVER;
            put_u32(sb, field::INCOMPAT, features);
        })?;
        self.device.flush()?;
        Ok(Replayed {
            transactions,
            blocks: copies.len(),
        })
    }

    /// Lets the log start nowhere. The next sequence is one that no block in it can have: of the
    /// transaction behind the last complete one there may be a part.
    fn empty_log(&mut self, log: &mut Log, transactions: u32) -> Result<()> {
        let sequence = log.superblock.sequence();
        let next = sequence.wrapping_add(transactions).wrapping_add(1);
        self.write_log_start(log, 0, next)?;
        Ok(self.device.flush()?)
    }

    /// Opens the file system again after its journal was replayed: everything may be different.
    fn reopen(self, room: Room) -> Result<Self> {
        let layout = read_layout(&self.device, false)?;
        if layout.needs_recovery || !layout.journal {
            return Err(Error::Corrupt("superblock in the journal"));
        }
        let mut store = Store::new(self.device, layout, room, false);
        let log = store.open_log()?;
        store.start_journal(log)?;
        Ok(store)
    }

    /// Lets reading see the newest copies in the log instead of their homes.
    fn recover_in_memory(&mut self, log: &Log) -> Result<Replayed> {
        let reader = Reader::new(self, log);
        let transactions = reader.scan()?;
        self.overlay = reader.gather(transactions)?;
        let (block, at) = (self.layout.superblock(), self.layout.superblock_at());
        self.cache = self.cache.emptied();
        self.places = GroupPlaces::default();
        self.overhead = None;
        let sb = self.block(block)?[at..at + SUPERBLOCK_SIZE].to_vec();
        let layout = Layout::parse(&sb, self.device.sectors(), true)?;
        if layout.block_size != self.layout.block_size {
            return Err(Error::Corrupt("superblock in the journal"));
        }
        self.layout = layout;
        Ok(Replayed {
            transactions,
            blocks: self.overlay.len(),
        })
    }

    /// Changes the superblock on the device and the copy in the cache, outside of any transaction.
    /// The log must be empty. All fields that are changed so are in the first sector, which is
    /// written whole or not at all.
    pub(super) fn stamp_super(&mut self, edit: impl Fn(&mut [u8])) -> Result<()> {
        let mut sb = read_super(&self.device)?;
        edit(&mut sb);
        self.writes += 1;
        self.device.write(SUPERBLOCK_SECTOR, &sb)?;
        let (block, at) = (self.layout.superblock(), self.layout.superblock_at());
        if let Some(cached) = self.cache.peek_mut(block.number()) {
            edit(&mut cached[at..at + SUPERBLOCK_SIZE]);
        }
        Ok(())
    }
}

/// Whether the file system on `device` has a journal, which a writable mount would use.
///
/// # Errors
/// As [`FileSystem::mount`](crate::FileSystem::mount), of what the superblock says.
pub fn has_journal<D: BlockDevice>(device: &D) -> Result<bool> {
    Ok(read_layout(device, true)?.journal)
}

fn read_layout<D: BlockDevice>(device: &D, read_only: bool) -> Result<Layout> {
    let sb = read_super(device)?;
    Layout::parse(&sb, device.sectors(), read_only)
}

fn read_super<D: BlockDevice>(device: &D) -> Result<Vec<u8>> {
    if device.sectors() < SUPERBLOCK_SECTOR + (SUPERBLOCK_SIZE / SECTOR_SIZE) as u64 {
        return Err(Error::NotExt2("the device is too small for a superblock"));
    }
    let mut sb = vec![0; SUPERBLOCK_SIZE];
    device.read(SUPERBLOCK_SECTOR, &mut sb)?;
    Ok(sb)
}
