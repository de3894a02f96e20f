//! Writing the running transaction to the log.

use alloc::vec::Vec;

use crate::bytes::{put_u16, put_u32, u16_at, u32_at};
use crate::cache::Kind;
use crate::device::{BlockDevice, DeviceError, Group, list, zeroes};
use crate::error::Result;
use crate::features::INCOMPAT_RECOVER;
use crate::journal::format::{self, Tag};
use crate::journal::{Journal, Log, Start};
use crate::layout::field;
use crate::store::Store;

/// Collects blocks for consecutive positions of the log, and writes those together that are
/// neighbours on the device.
pub(super) struct Writer<'a, D> {
    store: &'a mut Store<D>,
    log: &'a Log,
    /// The position of the next block.
    at: u32,
    /// Where on the device the collected blocks start.
    start: u32,
    collected: Vec<u8>,
    /// Where what is collected goes instead of to the device.
    kept: Option<Vec<Group>>,
}

impl<'a, D: BlockDevice> Writer<'a, D> {
    fn new(store: &'a mut Store<D>, log: &'a Log, at: u32) -> Self {
        Writer {
            store,
            log,
            at,
            start: 0,
            collected: Vec::new(),
            kept: None,
        }
    }

    /// Adds a block, which `fill` makes of zeroes.
    fn add(&mut self, fill: impl FnOnce(&mut [u8], &Store<D>)) -> Result<()> {
        let size = self.store.layout.block_size;
        let block = self.log.block(self.at);
        let count = self.collected.len() / size;
        let continues = self.start + count as u32 == block;
        if count > 0 && (!continues || count >= self.store.run_blocks()) {
            self.write()?;
        }
        if self.collected.is_empty() {
            self.start = block;
        }
        let from = self.collected.len();
        self.collected
            .try_reserve(size)
            .map_err(|_| DeviceError::NoMemory)?;
        self.collected.resize(from + size, 0);
        fill(&mut self.collected[from..], self.store);
        self.at = self.log.advance(self.at, 1);
        Ok(())
    }

    /// Writes what is collected, or keeps it.
    fn write(&mut self) -> Result<()> {
        if self.collected.is_empty() {
            return Ok(());
        }
        let sector = self.store.sector(self.start);
        self.store.writes += 1;
        let Some(kept) = &mut self.kept else {
            self.store.device.write(sector, &self.collected)?;
            self.collected.clear();
            return Ok(());
        };
        let data = core::mem::take(&mut self.collected);
        let extents = list(core::iter::once((sector, data.len())))?;
        kept.try_reserve(1).map_err(|_| DeviceError::NoMemory)?;
        kept.push(Group {
            extents,
            data,
            flush: false,
        });
        Ok(())
    }

    /// Adds revokes, descriptors and copies.
    fn add_transaction(&mut self, journal: &Journal, blocks: &[u32]) -> Result<()> {
        let size = self.store.layout.block_size;
        let (sequence, uuid) = (journal.sequence, journal.log.superblock.uuid());
        let revoked = list(journal.revoked.iter().copied())?;
        for numbers in revoked.chunks(format::revokes_per_block(size)) {
            self.add(|block, _| format::put_revokes(block, sequence, numbers))?;
        }
        for numbers in blocks.chunks(format::tags_per_block(size)) {
            let tags: Vec<Tag> = numbers.iter().map(|home| self.store.tag(*home)).collect();
            self.add(|block, _| format::put_tags(block, sequence, &uuid, &tags))?;
            for home in numbers {
                self.add(|block, store| {
                    block.copy_from_slice(store.running(*home));
                    format::escape(block);
                })?;
            }
        }
        self.write()
    }
}

impl<D: BlockDevice> Store<D> {
    /// Makes everything that was changed survive a power cut: the content of files on the device,
    /// metadata in the log.
    ///
    /// # Errors
    /// Device errors: nothing is lost in memory, and a later call tries again.
    pub(crate) fn commit_log(&mut self) -> Result<()> {
        // If it failed, what it was to write is written here.
        let _ = self.land();
        self.write_content()?;
        let Some(mut journal) = self.journal.take() else {
            return Ok(());
        };
        let result = match self.dirty_metadata() == 0 && journal.torn.is_none() {
            true => self.device.flush().map_err(Into::into),
            false => self.commit(&mut journal),
        };
        self.journal = Some(journal);
        result
    }

    fn commit(&mut self, journal: &mut Journal) -> Result<()> {
        self.leave_rest_for_log()?;
        self.erase_torn(journal)?;
        self.start_log(journal)?;
        let kinds = Kind::METADATA.iter();
        let mut blocks = list(kinds.flat_map(|kind| self.cache.dirty_blocks(*kind)))?;
        blocks.sort_unstable();
        let end = self.write_transaction(journal, &blocks)?;
        self.device.flush()?;
        journal.start = Start::Known;
        journal.torn = Some(end);
        self.write_commit_block(journal, end)?;
        self.device.flush()?;
        journal.torn = None;
        self.note_commit(journal, &blocks, end);
        Ok(())
    }

    /// Says on disk that the journal is in use.
    pub(super) fn leave_rest_for_log(&mut self) -> Result<()> {
        if !self.at_rest {
            return Ok(());
        }
        let (first, now) = (!self.counted, self.mount_time);
        self.stamp_super(|sb| {
            let features = u32_at(sb, field::INCOMPAT) | INCOMPAT_RECOVER;
            put_u32(sb, field::INCOMPAT, features);
            if first {
                let count = u16_at(sb, field::MOUNT_COUNT).saturating_add(1);
                put_u16(sb, field::MOUNT_COUNT, count);
                put_u32(sb, field::MOUNT_TIME, now as u32);
            }
        })?;
        self.counted = true;
        self.device.flush()?;
        self.at_rest = false;
        Ok(())
    }

    /// Lets the log start at the next transaction, if the superblock does not say where it starts.
    /// One that says something else must be gone before the log is written, one that says nothing
    /// only before the commit block.
    pub(super) fn start_log(&mut self, journal: &mut Journal) -> Result<()> {
        let before = journal.start;
        if before == Start::Known {
            return Ok(());
        }
        journal.start = Start::Uncertain;
        self.write_log_start(&mut journal.log, journal.head, journal.sequence)?;
        if before == Start::Uncertain {
            self.device.flush()?;
        }
        Ok(())
    }

    /// Overwrites the commit block of a transaction that failed.
    pub(super) fn erase_torn(&mut self, journal: &mut Journal) -> Result<()> {
        if let Some(at) = journal.torn {
            let mut writer = Writer::new(self, &journal.log, at);
            writer.add(|_, _| ())?;
            writer.write()?;
            self.device.flush()?;
            journal.torn = None;
        }
        Ok(())
    }

    /// Writes revokes, descriptors and copies; returns the position behind them.
    fn write_transaction(&mut self, journal: &Journal, blocks: &[u32]) -> Result<u32> {
        let mut writer = Writer::new(self, &journal.log, journal.head);
        writer.add_transaction(journal, blocks)?;
        Ok(writer.at)
    }

    /// What is to be written for a transaction, without its commit block, whose position is
    /// returned.
    pub(super) fn keep_transaction(
        &mut self,
        journal: &Journal,
        blocks: &[u32],
    ) -> Result<(Vec<Group>, u32)> {
        let mut writer = Writer::new(self, &journal.log, journal.head);
        writer.kept = Some(Vec::new());
        writer.add_transaction(journal, blocks)?;
        let at = writer.at;
        Ok((writer.kept.unwrap_or_default(), at))
    }

    /// The content of a block of the running transaction.
    fn running(&self, block: u32) -> &[u8] {
        self.cache.peek(block).expect("dirty blocks are cached")
    }

    /// The tag of a block of the running transaction.
    fn tag(&self, home: u32) -> Tag {
        let mut first = [0; 4];
        first.copy_from_slice(&self.running(home)[..4]);
        let escaped = format::escape(&mut first);
        Tag { home, escaped }
    }

    fn write_commit_block(&mut self, journal: &Journal, at: u32) -> Result<()> {
        let (sector, block) = self.commit_block(journal, at)?;
        self.writes += 1;
        Ok(self.device.write(sector, &block)?)
    }

    /// The commit block of the next transaction, at position `at`: where it goes, and its content.
    pub(super) fn commit_block(&self, journal: &Journal, at: u32) -> Result<(u64, Vec<u8>)> {
        let mut block = zeroes(self.layout.block_size, 0)?;
        format::put_commit(&mut block, journal.sequence, self.mount_time);
        Ok((self.sector(journal.log.block(at)), block))
    }

    /// Notes that the transaction is committed. `end` is the position of its commit block.
    fn note_commit(&mut self, journal: &mut Journal, blocks: &[u32], end: u32) {
        journal.advance(end);
        for block in core::mem::take(&mut journal.revoked) {
            journal.logged.remove(&block);
        }
        journal.logged.extend(blocks);
        for block in blocks {
            self.cache.mark_logged(*block);
        }
        self.pending.clear();
        self.unsettled = Default::default();
        self.commits += 1;
    }
}
