//! The log as a file: where its positions lie on the device, and its superblock.

use alloc::vec;
use alloc::vec::Vec;

use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::inode::FileKind;
use crate::journal::format::{LENGTH_MAX, SUPERBLOCK_SIZE, Superblock};
use crate::store::Store;
use crate::time::Time;
use crate::transaction::Transaction;

/// The inode of the journal.
const INODE: u32 = 8;

/// Positions that follow each other also on the device.
#[derive(Clone, Copy, Debug)]
struct Run {
    position: u32,
    block: u32,
}

/// The log. Every position lies on a block of its own that is not part of the file system's tables.
pub(crate) struct Log {
    /// In the order of positions; each reaches to the next.
    runs: Vec<Run>,
    /// How many blocks they have.
    blocks: u32,
    pub(crate) superblock: Superblock,
}

impl Log {
    /// Positions that transactions can use.
    pub(crate) fn capacity(&self) -> u32 {
        self.superblock.length() - self.superblock.first()
    }

    /// Where all blocks of its file lie: the first of each run and the one behind it, sorted.
    pub(crate) fn spans(&self) -> Vec<(u32, u32)> {
        spans_of(&self.runs, self.blocks)
    }

    /// The block of position `at`, which exists.
    pub(crate) fn block(&self, at: u32) -> u32 {
        let n = self.runs.partition_point(|run| run.position <= at);
        let run = self.runs[n - 1];
        run.block + (at - run.position)
    }

    /// The position `count` behind `at`; the log is a ring.
    pub(crate) fn advance(&self, at: u32, count: u32) -> u32 {
        let first = self.superblock.first();
        first + (at - first + count) % self.capacity()
    }
}

impl<D: BlockDevice> Store<D> {
    /// Finds the journal and reads its superblock.
    ///
    /// # Errors
    /// `Corrupt`, `Journal` if there is none that can be used; device errors.
    pub(super) fn open_log(&mut self) -> Result<Log> {
        if self.layout.journal_inode != INODE {
            return Err(match self.layout.journal_inode {
                0 => Error::Journal("it is on another device"),
                _ => Error::Corrupt("number of the journal's inode"),
            });
        }
        let (runs, blocks) = Transaction::begin(self, Time::default()).map_log()?;
        let mut raw = vec![0; SUPERBLOCK_SIZE];
        let first = runs
            .first()
            .ok_or(Error::Corrupt("journal without blocks"))?;
        self.device.read(self.sector(first.block), &mut raw)?;
        let superblock = Superblock::parse(raw, self.layout.block_size, blocks)?;
        Ok(Log {
            runs,
            blocks,
            superblock,
        })
    }

    /// Writes the journal's superblock with a new start (0: nowhere) and sequence. No flush.
    pub(super) fn write_log_start(
        &mut self,
        log: &mut Log,
        start: u32,
        sequence: u32,
    ) -> Result<()> {
        let sector = self.sector(log.block(0));
        self.writes += 1;
        let raw = log.superblock.set_start(start, sequence);
        Ok(self.device.write(sector, raw)?)
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// The runs of the journal's file, and how many blocks they have: no more than a journal may
    /// have, so the work is bounded.
    fn map_log(&mut self) -> Result<(Vec<Run>, u32)> {
        let layout = self.layout();
        let inode = match self.inode_record(INODE)? {
            Some(inode) if inode.kind == FileKind::Regular && inode.links > 0 => inode,
            _ => return Err(Error::Corrupt("inode of the journal")),
        };
        let blocks = inode.size / layout.block_size as u64;
        let blocks = blocks.min(layout.blocks.min(LENGTH_MAX).into()) as u32;
        let mut runs: Vec<Run> = Vec::new();
        let mut position = 0;
        while position < blocks {
            let run = self.find_run(&inode, position.into(), blocks - position)?;
            for n in 0..run.count {
                self.check_owned(run.nth(n, &layout)?)?;
            }
            let block = run.nth(0, &layout)?.number();
            let continues = runs
                .last()
                .is_some_and(|last| last.block + (position - last.position) == block);
            if !continues {
                runs.push(Run { position, block });
            }
            position += run.count;
        }
        check_apart(&runs, blocks)?;
        Ok((runs, blocks))
    }
}

/// Where runs that have `blocks` blocks together lie: the first block of each and the one behind
/// it, sorted.
fn spans_of(runs: &[Run], blocks: u32) -> Vec<(u32, u32)> {
    let ends = runs.iter().skip(1).map(|run| run.position);
    let mut spans: Vec<(u32, u32)> = runs
        .iter()
        .zip(ends.chain([blocks]))
        .map(|(run, end)| (run.block, run.block + (end - run.position)))
        .collect();
    spans.sort_unstable();
    spans
}

/// Checks that no block is twice in the runs, which have `blocks` blocks together.
fn check_apart(runs: &[Run], blocks: u32) -> Result<()> {
    match spans_of(runs, blocks)
        .windows(2)
        .any(|pair| pair[0].1 > pair[1].0)
    {
        true => Err(Error::Corrupt("block that is twice in the journal")),
        false => Ok(()),
    }
}
