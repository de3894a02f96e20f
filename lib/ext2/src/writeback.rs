//! Writing dirty blocks to the device in a safe order, in runs.
//!
//! One write-back goes through these phases, with a flush of the device between them:
//!
//! 1. the superblock says that changes are under way;
//! 2. content of files, and bitmaps in which what was freed is still used;
//! 3. indirect blocks and fresh directory blocks;
//! 4. inodes;
//! 5. directory entries;
//! 6. bitmaps in which the freed is free, and counters.
//!
//! So whatever is pointed at was written before the pointer, and what is freed was forgotten by
//! everyone before: a power cut at any point leaves at worst blocks and inodes that nobody owns,
//! entries that name no inode, and wrong counters. A file system with a journal has other phases, see
//! `journal`.

use crate::bitmap;
use crate::bytes::{put_u16, put_u32, u16_at};
use crate::cache::Kind;
use crate::device::BlockDevice;
use crate::error::Result;
use crate::layout::{STATE_ERROR, STATE_VALID, field};
use crate::store::Store;

/// Bitmaps with waiting frees that lead to a write-back.
const PENDING_MAX: usize = 64;

impl<D: BlockDevice> Store<D> {
    /// Makes room for one more operation: writes when dirty blocks or waiting frees are beyond
    /// their share of the budget.
    pub(crate) fn balance(&mut self) -> Result<()> {
        let share = self.cache.capacity() / 4;
        let running = self.dirty_metadata();
        let most = self
            .journal
            .as_ref()
            .map_or(share, |journal| share.min(journal.transaction_share()));
        if self.needs_checkpoint(running) {
            self.checkpoint()?;
        } else if running > most || self.pending.len() > PENDING_MAX {
            self.write_back()?;
        } else if self.cache.dirty_count(Kind::Data) > 2 * share {
            self.write_kind(Kind::Data)?;
        }
        self.cache.shrink();
        Ok(())
    }

    /// Whether the log, or the cache's share for what is in it, is nearly full.
    fn needs_checkpoint(&self, running: usize) -> bool {
        let logged = self.cache.dirty_count(Kind::Logged);
        self.journal.as_ref().is_some_and(|journal| {
            running + logged > self.cache.capacity() / 2
                || journal.is_short(running, self.layout.block_size)
        })
    }

    /// How many blocks of metadata are dirty and not in the journal.
    pub(crate) fn dirty_metadata(&self) -> usize {
        Kind::METADATA
            .iter()
            .map(|kind| self.cache.dirty_count(*kind))
            .sum()
    }

    /// Writes everything that is dirty, in the order above and without the flush at the end; or
    /// commits the running transaction of the journal.
    ///
    /// # Errors
    /// Device errors: what was not written stays dirty, and a later call tries again.
    pub(crate) fn write_back(&mut self) -> Result<()> {
        if self.journal.is_some() {
            return self.commit_log();
        }
        if self.dirty_metadata() == 0 {
            self.write_kind(Kind::Data)?;
            return Ok(());
        }
        self.leave_rest()?;
        let data = self.write_kind(Kind::Data)?;
        let bitmaps = self.write_kind(Kind::Bitmap)?;
        self.flush_if(data || bitmaps)?;
        for kind in [Kind::Map, Kind::Inode, Kind::Directory] {
            let wrote = self.write_kind(kind)?;
            self.flush_if(wrote)?;
        }
        self.pending.clear();
        self.write_kind(Kind::Bitmap)?;
        self.write_kind(Kind::Counters)?;
        Ok(())
    }

    /// Writes everything and returns when it is on the medium. If no orphan is left, the superblock
    /// then says again what it said at mount.
    ///
    /// # Errors
    /// As [`write_back`](Self::write_back).
    pub(crate) fn sync(&mut self, orphans: bool, now: i64) -> Result<()> {
        if self.journal.is_some() {
            return self.rest_log(orphans, now);
        }
        self.write_back()?;
        self.device.flush()?;
        if self.at_rest || orphans {
            return Ok(());
        }
        let found = self.layout.state;
        let state = if self.damaged {
            found & !STATE_VALID | STATE_ERROR
        } else {
            found
        };
        self.edit_super(|sb| {
            put_u16(sb, field::STATE, state);
            put_u32(sb, field::WRITE_TIME, now as u32);
        })?;
        self.write_kind(Kind::Counters)?;
        self.device.flush()?;
        self.at_rest = true;
        Ok(())
    }

    /// Says on disk that changes are under way.
    fn leave_rest(&mut self) -> Result<()> {
        if !self.at_rest {
            return Ok(());
        }
        let (first, now) = (!self.counted, self.mount_time);
        self.edit_super(|sb| {
            let state = u16_at(sb, field::STATE) & !STATE_VALID;
            put_u16(sb, field::STATE, state);
            if first {
                let count = u16_at(sb, field::MOUNT_COUNT).saturating_add(1);
                put_u16(sb, field::MOUNT_COUNT, count);
                put_u32(sb, field::MOUNT_TIME, now as u32);
            }
        })?;
        self.counted = true;
        let block = self.layout.superblock().number();
        self.write_run(Kind::Counters, block, 1)?;
        self.device.flush()?;
        self.at_rest = false;
        Ok(())
    }

    /// Changes the superblock outside of a transaction: only fields that no transaction changes.
    fn edit_super(&mut self, edit: impl FnOnce(&mut [u8])) -> Result<()> {
        let block = self.layout.superblock();
        let at = self.layout.superblock_at();
        self.load_run(block, 1)?;
        if let Some(data) = self.cache.get_dirty(block.number(), Kind::Counters) {
            edit(&mut data[at..]);
        }
        Ok(())
    }

    fn flush_if(&mut self, wrote: bool) -> Result<()> {
        if wrote {
            self.device.flush()?;
        }
        Ok(())
    }

    /// Writes all dirty blocks of a kind, neighbours in one request. Returns whether there were
    /// any.
    pub(crate) fn write_kind(&mut self, kind: Kind) -> Result<bool> {
        let most = self.run_blocks();
        let mut from = 0;
        let mut wrote = false;
        while let Some((start, count)) = self.cache.dirty_run(kind, from, most) {
            self.write_run(kind, start, count)?;
            from = start + count as u32;
            wrote = true;
        }
        Ok(wrote)
    }

    /// Writes `count` cached blocks from `start` on. Bitmaps with waiting frees stay dirty.
    fn write_run(&mut self, kind: Kind, start: u32, count: usize) -> Result<()> {
        let size = self.layout.block_size;
        let mut buffer = self.take_staging(count * size);
        for (number, space) in (start..).zip(buffer.chunks_exact_mut(size)) {
            space.copy_from_slice(self.cache.peek(number).expect("dirty blocks are cached"));
            if let Some(mask) = self.pending.mask(number) {
                bitmap::merge(space, mask);
            }
        }
        let result = self.device.write(self.sector(start), &buffer);
        self.writes += 1;
        self.staging = buffer;
        result?;
        for number in (start..).take(count) {
            if kind != Kind::Bitmap || self.pending.mask(number).is_none() {
                self.cache.mark_clean(number);
            }
        }
        Ok(())
    }
}
