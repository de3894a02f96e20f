//! A commit that is written while the file system goes on (see the module's text above).

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::cache::Kind;
use crate::device::{BlockDevice, DeviceError, Group, list};
use crate::error::Result;
use crate::journal::{Journal, Start};
use crate::pending::Pending;
use crate::store::Store;
use crate::unsettled::Unsettled;

/// Waits until a commit was written, and says how that ended.
type Wait = Box<dyn Fn() -> core::result::Result<(), DeviceError> + Send>;

/// A commit that was begun, see [`FileSystem::begin_commit`](crate::FileSystem::begin_commit).
pub struct Commit {
    /// Which transaction, if there was anything to write.
    sequence: Option<u32>,
    groups: Vec<Group>,
}

impl Commit {
    /// Writes it to the device that the file system is on, and returns when it is on the medium.
    ///
    /// # Errors
    /// Device errors; it may be on the medium or not.
    pub fn write<D: BlockDevice + ?Sized>(
        &self,
        device: &D,
    ) -> core::result::Result<(), DeviceError> {
        self.groups
            .iter()
            .try_for_each(|group| group.write_to(device))
    }
}

/// What is known of the commit that is being written.
pub(crate) struct Flight {
    sequence: u32,
    wait: Wait,
    /// Its blocks, with the kinds that they had.
    blocks: Vec<(u32, Kind)>,
    /// The blocks that it revokes.
    revoked: BTreeSet<u32>,
    /// What it frees.
    frees: Pending,
    /// Inodes that need it for their content to be found.
    unsettled: Unsettled,
    /// Where it starts, and how much of the log was in use before.
    head: u32,
    used: u32,
    /// The position of its commit block.
    end: u32,
}

impl Flight {
    /// What it frees: nobody can have it yet.
    pub(crate) fn frees(&self) -> &Pending {
        &self.frees
    }

    /// Whether content of an inode is not found before it is written.
    pub(crate) fn settles(&self, ino: u32) -> bool {
        self.unsettled.has(ino)
    }
}

/// Something that only makes the device flush.
fn flush() -> Result<Vec<Group>> {
    let flush = Group {
        extents: Vec::new(),
        data: Vec::new(),
        flush: true,
    };
    Ok(list(core::iter::once(flush))?)
}

impl<D: BlockDevice> Store<D> {
    /// Begins a commit, see [`FileSystem::begin_commit`](crate::FileSystem::begin_commit).
    ///
    /// # Errors
    /// Device errors; nothing was begun.
    pub(crate) fn begin_flight(&mut self, wait: Wait) -> Result<Option<Commit>> {
        // If it failed, what it was to write is in this one.
        let _ = self.land();
        let Some(mut journal) = self.journal.take() else {
            return Ok(None);
        };
        let result = self.launch(&mut journal, wait);
        self.journal = Some(journal);
        result.map(Some)
    }

    fn launch(&mut self, journal: &mut Journal, wait: Wait) -> Result<Commit> {
        self.write_content()?;
        if self.dirty_metadata() == 0 && journal.torn.is_none() {
            return Ok(Commit {
                sequence: None,
                groups: flush()?,
            });
        }
        self.leave_rest_for_log()?;
        self.erase_torn(journal)?;
        self.start_log(journal)?;
        let kinds = Kind::METADATA.into_iter();
        let of = |kind| {
            self.cache
                .dirty_blocks(kind)
                .map(move |block| (block, kind))
        };
        let mut blocks = list(kinds.flat_map(of))?;
        blocks.sort_unstable_by_key(|(block, _)| *block);
        let numbers = list(blocks.iter().map(|(block, _)| *block))?;
        let (mut groups, end) = self.keep_transaction(journal, &numbers)?;
        if let Some(last) = groups.last_mut() {
            last.flush = true;
        }
        let (sector, data) = self.commit_block(journal, end)?;
        groups.try_reserve(1).map_err(|_| DeviceError::NoMemory)?;
        groups.push(Group {
            extents: list(core::iter::once((sector, data.len())))?,
            data,
            flush: true,
        });
        self.writes += 1;
        Ok(self.take_off(journal, blocks, groups, end, wait))
    }

    /// Notes that a transaction is being written. Nothing can fail from here on.
    fn take_off(
        &mut self,
        journal: &mut Journal,
        blocks: Vec<(u32, Kind)>,
        groups: Vec<Group>,
        end: u32,
        wait: Wait,
    ) -> Commit {
        let sequence = journal.sequence;
        let (head, used) = (journal.head, journal.used);
        journal.advance(end);
        let revoked = core::mem::take(&mut journal.revoked);
        for block in &revoked {
            journal.logged.remove(block);
        }
        for (block, _) in &blocks {
            journal.logged.insert(*block);
            self.cache.mark_writing(*block);
        }
        self.flight = Some(Flight {
            sequence,
            wait,
            blocks,
            revoked,
            frees: core::mem::take(&mut self.pending),
            unsettled: core::mem::take(&mut self.unsettled),
            head,
            used,
            end,
        });
        Commit {
            sequence: Some(sequence),
            groups,
        }
    }

    /// Waits for the commit that is being written, if there is one, and ends it.
    pub(super) fn land(&mut self) -> core::result::Result<(), DeviceError> {
        let Some(flight) = self.flight.take() else {
            return Ok(());
        };
        let result = (flight.wait)();
        self.end_flight(flight, result);
        result
    }

    /// Ends `commit`, which was written with this result, unless it was waited for.
    pub(crate) fn finish_flight(
        &mut self,
        commit: &Commit,
        result: core::result::Result<(), DeviceError>,
    ) {
        let its_own = |flight: &mut Flight| commit.sequence == Some(flight.sequence);
        if let Some(flight) = self.flight.take_if(its_own) {
            self.end_flight(flight, result);
        }
    }

    fn end_flight(&mut self, flight: Flight, result: core::result::Result<(), DeviceError>) {
        let Some(mut journal) = self.journal.take() else {
            return;
        };
        match result {
            Ok(()) => self.note_landing(&mut journal, &flight),
            Err(_) => self.undo_flight(&mut journal, flight),
        }
        self.journal = Some(journal);
    }

    /// It is on the medium. What was not changed again is to be written home from now on.
    fn note_landing(&mut self, journal: &mut Journal, flight: &Flight) {
        journal.start = Start::Known;
        for (block, _) in &flight.blocks {
            if self.cache.is_writing(*block) {
                self.cache.mark_logged(*block);
            }
        }
        self.commits += 1;
    }

    /// It may be on the medium or not: all that it was to write belongs to the running transaction
    /// again, which will stand in the same place.
    fn undo_flight(&mut self, journal: &mut Journal, flight: Flight) {
        for (block, kind) in flight.blocks {
            if self.cache.is_writing(block) {
                self.cache.mark_clean(block);
                self.cache.get_dirty(block, kind);
            }
        }
        journal.logged.extend(&flight.revoked);
        journal.revoked.extend(flight.revoked);
        (journal.head, journal.used) = (flight.head, flight.used);
        journal.sequence = flight.sequence;
        journal.torn = Some(flight.end);
        self.pending.absorb(flight.frees);
        self.unsettled.absorb(flight.unsettled);
    }
}
