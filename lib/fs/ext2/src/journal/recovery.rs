//! Reading a log that was left by a power cut, or by others who write this format.
//!
//! Three passes: the first finds where the log ends (`scan`), the second finds the newest copy of
//! each block that was not revoked (`gather`), the third copies (`replay`). A transaction without
//! its commit block does not count. No pass goes around the ring more than once, and what is
//! remembered is bounded by the number of copies, so by the size of the log.

use alloc::vec;
use alloc::vec::Vec;

use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::journal::format::{self, BlockType};
use crate::journal::{Copies, Log};
use crate::layout::Layout;
use crate::store::Store;

/// What was found in the journal when the file system was mounted, and is now in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Transactions that were complete.
    pub transactions: u32,
    /// Blocks of which they had a copy that counts.
    pub blocks: usize,
}

/// The newest copy of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogCopy {
    /// The block on the device that has the copy.
    pub(crate) block: u32,
    escaped: bool,
}

impl LogCopy {
    /// Makes what was read of the copy the content of the block.
    pub(crate) fn restore(&self, data: &mut [u8]) {
        if self.escaped {
            format::unescape(data);
        }
    }
}

/// One thing in the log, as a pass comes to it.
enum Piece {
    /// A copy of block `home` at position `at`.
    Copy { home: u32, escaped: bool, at: u32 },
    /// A revoke block at position `at`.
    Revoke { at: u32 },
    /// The end of a transaction.
    Commit,
}

/// A log being read.
pub(super) struct Reader<'a, D> {
    store: &'a Store<D>,
    log: &'a Log,
}

impl<'a, D: BlockDevice> Reader<'a, D> {
    /// A reader of `log` on the device of `store`.
    pub(super) fn new(store: &'a Store<D>, log: &'a Log) -> Self {
        Reader { store, log }
    }

    /// How many transactions are complete.
    ///
    /// # Errors
    /// Device errors.
    pub(super) fn scan(&self) -> Result<u32> {
        self.walk(u32::MAX, |_, _| Ok(()))
    }

    /// The newest copies in the first `transactions` transactions.
    ///
    /// # Errors
    /// `Corrupt` if the log does not fit to the file system; device errors.
    pub(super) fn gather(&self, transactions: u32) -> Result<Copies> {
        let mut copies = Copies::new();
        let mut revokes = Vec::new();
        self.walk(transactions, |reader, piece| {
            match piece {
                Piece::Copy { home, escaped, at } => {
                    check_home(home, &reader.store.layout)?;
                    let block = reader.log.block(at);
                    copies.insert(home, LogCopy { block, escaped });
                }
                Piece::Revoke { at } => revokes.push(at),
                // All copies gathered so far are of this transaction or older ones.
                Piece::Commit => {
                    for at in revokes.drain(..) {
                        reader.revoke(&mut copies, at)?;
                    }
                }
            }
            Ok(())
        })?;
        let own = (0..self.log.superblock.length()).map(|at| self.log.block(at));
        match own.into_iter().any(|block| copies.contains_key(&block)) {
            true => Err(Error::Corrupt("copy of the journal in the journal")),
            false => Ok(copies),
        }
    }

    /// Removes what the revoke block at `at` names.
    fn revoke(&self, copies: &mut Copies, at: u32) -> Result<()> {
        let block = self.read(at)?;
        for home in format::revokes(&block)? {
            copies.remove(&home);
        }
        Ok(())
    }

    fn read(&self, at: u32) -> Result<Vec<u8>> {
        let mut block = vec![0; self.store.layout.block_size];
        let sector = self.store.sector(self.log.block(at));
        self.store.device.read(sector, &mut block)?;
        Ok(block)
    }

    /// Shows `visit` the log from its start, up to the end of `most` transactions or of the log.
    /// Returns how many transactions are complete.
    fn walk(&self, most: u32, mut visit: impl FnMut(&Self, Piece) -> Result<()>) -> Result<u32> {
        let mut at = self.log.superblock.start();
        let mut left = if at == 0 { 0 } else { self.log.capacity() };
        let mut complete = 0;
        while complete < most && left > 0 {
            let block = self.read(at)?;
            let expected = self.log.superblock.sequence().wrapping_add(complete);
            let found = match format::header(&block) {
                Some((found, sequence)) if sequence == expected => found,
                _ => break,
            };
            let mut length = 1;
            match found {
                BlockType::Descriptor => {
                    for tag in format::tags(&block) {
                        let at = self.log.advance(at, length);
                        let (home, escaped) = (tag.home, tag.escaped);
                        visit(self, Piece::Copy { home, escaped, at })?;
                        length += 1;
                    }
                }
                BlockType::Revoke => visit(self, Piece::Revoke { at })?,
                BlockType::Commit => {
                    complete += 1;
                    visit(self, Piece::Commit)?;
                }
            }
            left = left.saturating_sub(length);
            at = self.log.advance(at, length);
        }
        Ok(complete)
    }
}

/// Checks that a block of the log belongs to the file system. Its superblock may be one.
fn check_home(home: u32, layout: &Layout) -> Result<()> {
    match home == layout.first_data_block {
        true => Ok(()),
        false => layout
            .block(home, "block in the journal outside the file system")
            .map(|_| ()),
    }
}

impl<D: BlockDevice> Store<D> {
    /// Copies everything in `copies` home, in the order of homes, neighbours in one request. No
    /// flush.
    ///
    /// # Errors
    /// Device errors.
    pub(super) fn replay(&mut self, copies: &Copies) -> Result<()> {
        let list: Vec<(u32, LogCopy)> = copies.iter().map(|(home, copy)| (*home, *copy)).collect();
        let mut rest = &list[..];
        while let Some((home, copy)) = rest.first() {
            let run = rest
                .iter()
                .take(self.run_blocks())
                .zip(0..)
                .take_while(|((h, c), n)| *h == home + n && c.block == copy.block + n)
                .count();
            let (now, later) = rest.split_at(run);
            self.replay_run(*home, now)?;
            rest = later;
        }
        Ok(())
    }

    /// Copies blocks that follow each other in the log and at home.
    fn replay_run(&mut self, home: u32, run: &[(u32, LogCopy)]) -> Result<()> {
        let size = self.layout.block_size;
        let mut buffer = self.take_staging(run.len() * size)?;
        let from = self.sector(run[0].1.block);
        let mut result = self.device.read(from, &mut buffer);
        if result.is_ok() {
            for ((_, copy), data) in run.iter().zip(buffer.chunks_exact_mut(size)) {
                copy.restore(data);
            }
            result = self.device.write(self.sector(home), &buffer);
        }
        self.reads += 1;
        self.writes += 1;
        self.staging = buffer;
        Ok(result?)
    }
}
