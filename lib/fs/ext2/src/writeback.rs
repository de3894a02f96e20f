//! Writing dirty blocks to the device in a safe order, in runs.
//!
//! One write-back goes through these phases, with a flush of the device between them:
//!
//! 1. the superblock says that changes are under way;
//! 2. content of files; bitmaps in which what was freed is still used;
//! 3. indirect blocks and fresh directory blocks;
//! 4. inodes;
//! 5. directory entries;
//! 6. blocks of inodes once more, if 4. had some of them as they were: those whose name a rename
//!    gave to another (see `replaced`);
//! 7. counters;
//! 8. bitmaps in which the freed is free.
//!
//! So whatever is pointed at was written before the pointer, and what is freed was forgotten by
//! everyone before: a power cut at any point leaves at worst blocks and inodes that nobody owns,
//! entries that name no inode, and wrong counters. All metadata goes to the device in one call, so
//! where the device outlives a crash of the file system ([`BlockDevice::write_groups`]), the crash
//! leaves the state before a write-back or the one after it. A file system with a journal has other
//! phases, see `journal`.

use alloc::vec::Vec;

use crate::bitmap;
use crate::bytes::{put_u16, put_u32, u16_at};
use crate::cache::Kind;
use crate::device::{BlockDevice, Group, list, zeroes};
use crate::error::Result;
use crate::layout::{STATE_ERROR, STATE_VALID, field};
use crate::replaced;
use crate::store::Store;

/// Bitmaps with waiting frees that lead to a write-back.
const PENDING_MAX: usize = 64;
/// The most bytes of one request to write.
const REQUEST_BYTES: usize = 512 * 1024;

impl<D: BlockDevice> Store<D> {
    /// Makes room for one more operation: writes when dirty blocks or waiting frees are beyond
    /// their share of the budget.
    pub(crate) fn balance(&mut self) -> Result<()> {
        let share = self.cache.capacity() / 4;
        let running = self.dirty_metadata();
        let most = match &self.journal {
            Some(journal) => share.min(journal.transaction_share()),
            // Bitmaps are written twice, and an operation changes some more.
            None => share.min(self.device.group_bytes() / self.layout.block_size / 2),
        };
        if self.needs_checkpoint(running) {
            self.checkpoint()?;
        } else if running > most
            || self.pending.len() > PENDING_MAX
            || self.replaced.len() > replaced::MOST
        {
            self.write_back()?;
        } else if self.cache.dirty_count(Kind::Data) > 2 * share {
            self.write_kind(Kind::Data)?;
        }
        self.cache.shrink();
        Ok(())
    }

    /// Whether the log, or the cache's share for what is in it, is nearly full.
    fn needs_checkpoint(&self, running: usize) -> bool {
        let logged = self.cache.dirty_count(Kind::Logged) + self.cache.dirty_count(Kind::Writing);
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
            self.write_content()?;
            return Ok(());
        }
        self.leave_rest()?;
        let data = self.write_content()?;
        let groups = self.metadata_in_order(data)?;
        self.writes += groups
            .iter()
            .map(|group| group.extents.len() as u64)
            .sum::<u64>();
        self.device.write_groups(groups)?;
        self.pending.clear();
        self.replaced.clear();
        for kind in Kind::METADATA {
            while let Some((start, length)) = self.cache.dirty_run(kind, 0, usize::MAX) {
                (start..start + length as u32).for_each(|block| self.cache.mark_clean(block));
            }
        }
        Ok(())
    }

    /// All dirty metadata, as it is to be written. `after_content`: content of files was written
    /// and not flushed.
    fn metadata_in_order(&self, after_content: bool) -> Result<Vec<Group>> {
        let mut groups = Vec::new();
        if after_content && self.cache.dirty_count(Kind::Bitmap) == 0 {
            groups.push(Group {
                extents: Vec::new(),
                data: Vec::new(),
                flush: true,
            });
        }
        for kind in [Kind::Bitmap, Kind::Map, Kind::Inode, Kind::Directory] {
            let mut from = 0;
            while let Some((runs, next)) = self.dirty_runs(kind, from) {
                groups.push(self.group(&runs, Freed::StillUsed)?);
                from = next;
            }
            // Harmless where this kind has none: those before it end with a flush already.
            if let Some(last) = groups.last_mut() {
                last.flush = true;
            }
        }
        let again = list(self.replaced.blocks()?.into_iter().map(|block| (block, 1)))?;
        if !again.is_empty() {
            let mut last = self.group(&again, Freed::Free)?;
            last.flush = true;
            groups.push(last);
        }
        // A count is never smaller than what the bitmap has: see `recount`.
        let mut from = 0;
        while let Some((runs, next)) = self.dirty_runs(Kind::Counters, from) {
            groups.push(self.group(&runs, Freed::Free)?);
            from = next;
        }
        let freed = list(self.pending.bitmaps().map(|block| (block, 1)))?;
        if let (Some(last), false) = (groups.last_mut(), freed.is_empty()) {
            last.flush = true;
        }
        let most = REQUEST_BYTES / self.layout.block_size;
        for runs in freed.chunks(most) {
            groups.push(self.group(runs, Freed::Free)?);
        }
        Ok(groups)
    }

    /// The cached blocks of `runs` for one request.
    fn group(&self, runs: &[(u32, usize)], freed: Freed) -> Result<Group> {
        let size = self.layout.block_size;
        let mut data = zeroes(blocks_of(runs).count() * size, 0)?;
        self.copy_blocks(runs, freed, &mut data);
        Ok(Group {
            extents: self.extents(runs),
            data,
            flush: false,
        })
    }

    /// Writes everything and returns when it is on the medium.
    ///
    /// # Errors
    /// As [`write_back`](Self::write_back).
    pub(crate) fn write_back_to_medium(&mut self) -> Result<()> {
        self.write_back()?;
        Ok(self.device.flush()?)
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
        self.write_back_to_medium()?;
        if !self.has_to_tell() || orphans {
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
        self.damage_is_noted |= self.damaged;
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
        self.write_runs(&[(block, 1)])?;
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

    /// Sees to it that all content of files is with the device, that of others, too. Returns
    /// whether there was any that may not be on the medium.
    pub(crate) fn write_content(&mut self) -> Result<bool> {
        let own = self.write_kind(Kind::Data)?;
        Ok(self.device.await_content()? || own)
    }

    /// Writes all dirty blocks of a kind, neighbours in one extent, many extents in one request.
    /// Returns whether there were any.
    pub(crate) fn write_kind(&mut self, kind: Kind) -> Result<bool> {
        let mut from = 0;
        while let Some((runs, next)) = self.dirty_runs(kind, from) {
            self.write_runs(&runs)?;
            from = next;
        }
        Ok(from > 0)
    }

    /// Runs of dirty blocks of a kind from number `from` on, as many as make a request, and the
    /// number to go on from. None if there are none.
    fn dirty_runs(&self, kind: Kind, from: u32) -> Option<(Vec<(u32, usize)>, u32)> {
        let most = REQUEST_BYTES / self.layout.block_size;
        let mut runs = Vec::new();
        let (mut next, mut count) = (from, 0);
        while count < most {
            let Some((start, length)) = self.cache.dirty_run(kind, next, most - count) else {
                break;
            };
            runs.push((start, length));
            next = start + length as u32;
            count += length;
        }
        (!runs.is_empty()).then_some((runs, next))
    }

    /// Writes the cached blocks of `runs`.
    fn write_runs(&mut self, runs: &[(u32, usize)]) -> Result<()> {
        let extents = self.extents(runs);
        let cached = |number| self.cache.peek(number).expect("dirty blocks are cached");
        let result = self
            .device
            .write_pieces(&extents, &mut blocks_of(runs).map(cached));
        self.writes += extents.len() as u64;
        result?;
        blocks_of(runs).for_each(|number| self.cache.mark_clean(number));
        Ok(())
    }

    /// Fills `buffer` with the cached blocks of `runs`.
    fn copy_blocks(&self, runs: &[(u32, usize)], freed: Freed, buffer: &mut [u8]) {
        let size = self.layout.block_size;
        for (number, space) in blocks_of(runs).zip(buffer.chunks_exact_mut(size)) {
            space.copy_from_slice(self.cache.peek(number).expect("dirty blocks are cached"));
            if freed == Freed::StillUsed
                && let Some(mask) = self.pending.mask(number)
            {
                bitmap::merge(space, mask);
            }
            if freed == Freed::StillUsed {
                self.replaced.restore(number, space);
            }
        }
    }

    /// Where `runs` are on the device.
    fn extents(&self, runs: &[(u32, usize)]) -> Vec<(u64, usize)> {
        let size = self.layout.block_size;
        let place = |(start, count): &(u32, usize)| (self.sector(*start), count * size);
        runs.iter().map(place).collect()
    }
}

/// What a bitmap says of that which was freed since the last write-back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Freed {
    StillUsed,
    Free,
}

/// The numbers of the blocks of `runs`.
fn blocks_of(runs: &[(u32, usize)]) -> impl Iterator<Item = u32> {
    runs.iter()
        .flat_map(|(start, count)| (*start..).take(*count))
}
