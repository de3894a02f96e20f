//! The journal: ext3's, in the JBD2 format, behind [`Transaction`](crate::transaction).
//!
//! # Terms
//! The *log* is a ring of positions in the file of inode 8; position 0 holds the journal's
//! superblock. A block's *home* is where it belongs in the file system. The *running*
//! transaction collects what the operations since the last commit changed; to *commit* is to write
//! it to the log; to *checkpoint* is to write home what is in the log, which makes the log empty.
//! The file system is *at rest* when the log is empty and its superblock says so.
//!
//! # States of a metadata block in the cache
//! | state | kind in the cache | the log has | home has |
//! | --- | --- | --- | --- |
//! | clean | none | perhaps an old copy | the content |
//! | running | its kind | perhaps an old copy | something older |
//! | written | `Writing` | perhaps the content | something older |
//! | logged | `Logged` | the content | something older |
//!
//! A checkpoint commits first, so no content older than that in the cache is ever needed.
//!
//! # Order of writes
//! - Leaving rest: the superblock's `needs_recovery` flag; flush.
//! - Commit: content of files, and into the log revokes, descriptors and copies; flush; the commit
//!   block; flush. From there on what was committed survives, and what was freed can be used again.
//! - Checkpoint: all logged blocks go home; flush; the journal's superblock lets the log start
//!   where the next transaction will; flush. Only now the log's old blocks may be overwritten.
//! - Rest: commit and checkpoint, but the log starts nowhere; then the flag is cleared; flush.
//!
//! # Revokes
//! A freed block of which the log has a copy is revoked in the same transaction, so that replay
//! does not put the copy over what the block holds by then. It cannot be used again before that
//! transaction is committed, so no transaction both revokes a block and has a copy of it.
//!
//! # A commit that others do not wait for
//! `flight` copies the running transaction, which is then written without the file system. Until it
//! is known that it was, what it freed stays in use, its blocks are neither written home nor
//! evicted, and no other commit begins. What it revokes and has copies of counts for the log from
//! the start: a block that is freed meanwhile is revoked by the next transaction.
//!
//! # Failures
//! A commit that fails leaves the running transaction as it is. If its commit block may have
//! reached the medium, that block is overwritten before the next commit is begun (`torn`): it will
//! have the same sequence, and an old commit block must not complete half of a new transaction.

mod checkpoint;
mod commit;
mod flight;
mod format;
mod log;
mod open;
mod recovery;

use alloc::collections::{BTreeMap, BTreeSet};

pub use flight::Commit;
pub(crate) use flight::Flight;
pub(crate) use log::Log;
pub use open::has_journal;
pub(crate) use recovery::LogCopy;
pub use recovery::Replayed;

/// What the journal's superblock on the medium says about the start of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// There is nothing to replay.
    Nowhere,
    /// Where the first transaction since the last checkpoint stands, or will stand.
    Known,
    /// One of these or something older: it was being written.
    Uncertain,
}

/// The state of the journal of a writable mount.
pub(crate) struct Journal {
    log: Log,
    /// The position of the next transaction.
    head: u32,
    /// Positions in use since the last checkpoint.
    used: u32,
    /// The sequence of the next transaction.
    sequence: u32,
    /// What the journal's superblock on disk says.
    start: Start,
    /// Blocks of which the log has copies that replay would use.
    logged: BTreeSet<u32>,
    /// Blocks that the running transaction revokes.
    revoked: BTreeSet<u32>,
    /// Where a commit block may stand whose transaction failed.
    torn: Option<u32>,
}

/// Where replay finds the newest content of blocks, by home.
pub(crate) type Copies = BTreeMap<u32, LogCopy>;

impl Journal {
    /// The state over an empty log.
    fn new(log: Log) -> Self {
        Journal {
            head: log.superblock.first(),
            used: 0,
            sequence: log.superblock.sequence(),
            start: Start::Nowhere,
            logged: BTreeSet::new(),
            revoked: BTreeSet::new(),
            torn: None,
            log,
        }
    }

    /// Takes the positions up to `end`, that of a commit block, for the next transaction.
    fn advance(&mut self, end: u32) {
        let next = self.log.advance(end, 1);
        let capacity = self.log.capacity();
        self.used += (next + capacity - self.head) % capacity;
        self.head = next;
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Positions that a transaction of so many copies and revokes takes.
    fn needed(&self, copies: usize, revokes: usize, block_size: usize) -> usize {
        copies
            + copies.div_ceil(format::tags_per_block(block_size))
            + revokes.div_ceil(format::revokes_per_block(block_size))
            + 1
    }

    /// Positions that are free.
    fn free(&self) -> usize {
        (self.log.capacity() - self.used) as usize
    }

    /// Copies in a running transaction that lead to a commit.
    pub(crate) fn transaction_share(&self) -> usize {
        self.log.capacity() as usize / 4
    }

    /// Whether the running transaction still fits when it gets `copies` copies more, and frees the
    /// runs of blocks `freed`.
    pub(crate) fn fits(&self, copies: usize, freed: &[(u32, u32)], block_size: usize) -> bool {
        let revokes: usize = freed
            .iter()
            .map(|(start, count)| self.logged.range(*start..start + count).count())
            .sum();
        self.needed(copies, self.revoked.len() + revokes, block_size) < self.free()
    }

    /// Whether a checkpoint is due before the running transaction of `copies` copies grows.
    pub(crate) fn is_short(&self, copies: usize, block_size: usize) -> bool {
        let need = self.needed(copies, self.revoked.len(), block_size);
        self.free() < need + self.transaction_share()
    }

    /// Notes that `count` blocks from `start` on were freed.
    pub(crate) fn revoke(&mut self, start: u32, count: u32) {
        self.revoked.extend(self.logged.range(start..start + count));
    }

    /// Notes that a block has metadata again.
    pub(crate) fn unrevoke(&mut self, block: u32) {
        self.revoked.remove(&block);
    }
}
