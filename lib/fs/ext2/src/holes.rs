//! Holes in files: where they are, and making them. Blocks that are taken out of a file are free
//! again, and what a file has there are zeros.

use core::iter::{once, repeat_n};

use crate::blockmap::Path;
use crate::bytes::u32_at;
use crate::device::{BlockDevice, zeroes};
use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::inode::Inode;
use crate::transaction::Transaction;

/// Blocks that one transaction takes out of a file at most, and runs that it looks at.
const STEP: u32 = 2048;
const STEP_RUNS: u32 = 128;

impl<D: BlockDevice> FileSystem<D> {
    /// The first byte from `offset` on that is no part of a hole; `None` if there is none.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn next_data(&mut self, ino: u32, offset: u64) -> Result<Option<u64>> {
        self.view(|tx| tx.seek(ino, offset, false))
            .map(|(at, size)| (at < size).then_some(at))
    }

    /// The first byte from `offset` on that is part of a hole; the end of the file counts as one.
    /// `None` if `offset` is not in the file.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn next_hole(&mut self, ino: u32, offset: u64) -> Result<Option<u64>> {
        self.view(|tx| tx.seek(ino, offset, true))
            .map(|(at, size)| (offset < size).then_some(at.min(size)))
    }

    /// Makes `length` bytes from `offset` on zeros, as far as there is a file, and frees the blocks
    /// that lie among them. The size stays.
    ///
    /// # Errors
    /// `ReadOnly`; as [`read`](Self::read). After a device error a part may be done; doing it again
    /// does the rest.
    pub fn punch(&mut self, ino: u32, mut offset: u64, mut length: u64) -> Result<()> {
        loop {
            let done = self.punch_some(ino, offset, length)?;
            offset = offset.saturating_add(done);
            length -= done;
            if length == 0 {
                return Ok(());
            }
        }
    }

    /// As [`punch`](Self::punch), as far as one transaction goes; how many of the bytes are done.
    /// Whoever shares the file system lets others in between two of them, and has the file
    /// [`open`](Self::open) meanwhile.
    ///
    /// # Errors
    /// As [`punch`](Self::punch).
    pub fn punch_some(&mut self, ino: u32, offset: u64, length: u64) -> Result<u64> {
        self.finish_cut(ino)?;
        let size = self.view(|tx| tx.file(ino))?.size;
        let (end, block) = (
            offset.saturating_add(length).min(size),
            self.store.layout.block_size as u64,
        );
        if offset >= end {
            return Ok(length);
        }
        // In the last block what lies behind the end of the file means nothing.
        let last = if end == size {
            end.div_ceil(block)
        } else {
            end / block
        };
        let first = offset.div_ceil(block);
        // What is cleared ends where the hole does: zeros up to the end of the last block would
        // make the file longer.
        let front = end.min(first * block);
        self.clear(ino, offset, front)?;
        let at = self.update(|tx| tx.punch_step(ino, first, last))?;
        if at < last {
            return Ok(at * block - offset);
        }
        self.clear(ino, front.max(last * block), end)?;
        Ok(length)
    }

    /// Writes zeros to `from..to`, a part of one block, unless that is a hole.
    fn clear(&mut self, ino: u32, from: u64, to: u64) -> Result<()> {
        let block = self.store.layout.block_size as u64;
        let is_there = |tx: &mut Transaction<'_, D>| {
            let inode = tx.file(ino)?;
            Ok(tx.find_run(&inode, from / block, 1)?.start.is_some())
        };
        if from >= to || !self.view(is_there)? {
            return Ok(());
        }
        let zeros = zeroes((to - from) as usize, 0)?;
        match self.write(ino, from, &zeros)? {
            written if written == zeros.len() => Ok(()),
            _ => Err(Error::NoSpace),
        }
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// Where the next hole, or the next data, begins from `offset` on, and the file's size.
    fn seek(&mut self, ino: u32, offset: u64, hole: bool) -> Result<(u64, u64)> {
        let inode = self.file(ino)?;
        let block = self.layout().block_size as u64;
        let mut at = offset;
        while at < inode.size {
            let run = match self.find_run(&inode, at / block, u32::MAX) {
                // A size beyond what pointers reach: there is nothing.
                Err(Error::FileTooLarge) if hole => break,
                Err(Error::FileTooLarge) => return Ok((inode.size, inode.size)),
                run => run?,
            };
            if run.start.is_none() == hole {
                break;
            }
            at = (at / block + u64::from(run.count)) * block;
        }
        Ok((at, inode.size))
    }

    /// Takes blocks of `from..to` out of a file; how far it came.
    fn punch_step(&mut self, ino: u32, from: u64, to: u64) -> Result<u64> {
        let layout = self.layout();
        let mut inode = self.file(ino)?;
        let (mut at, mut left, mut runs) = (from, STEP, STEP_RUNS);
        while at < to && left > 0 && runs > 0 {
            let most = (to - at).min(left.into()) as u32;
            let run = match self.find_run(&inode, at, most) {
                Err(Error::FileTooLarge) => {
                    at = to;
                    break;
                }
                run => run?,
            };
            if let Some(start) = run.start {
                self.forget_pointers(&mut inode, at, run.count)?;
                self.free_run(start.number(), run.count)?;
                inode.remove_blocks(run.count, &layout);
                left -= run.count;
            }
            runs -= 1;
            at += u64::from(run.count);
        }
        inode.mtime = self.now;
        inode.ctime = self.now;
        self.put_inode(&inode)?;
        Ok(at)
    }

    /// Makes `count` pointers from that of block `logical` on, which stand in one array, zero. An
    /// indirect block that has no others goes.
    fn forget_pointers(&mut self, inode: &mut Inode, logical: u64, count: u32) -> Result<()> {
        let layout = self.layout();
        let path = Path::to(logical, layout.pointers() as u64)?;
        let mut arrays = [None; 4];
        for level in 1..=path.depth {
            let pointer = self.pointer(inode, arrays[level - 1], path.index[level - 1])?;
            let block = layout.block(pointer, "indirect block outside the device")?;
            self.check_owned(block)?;
            arrays[level] = Some(block);
        }
        let (array, index) = (arrays[path.depth], path.index[path.depth]);
        self.set_pointers(inode, array, index, repeat_n(0, count as usize))?;
        for level in (1..=path.depth).rev() {
            let Some(array) = arrays[level] else { break };
            let is_used = |raw: &[u8]| u32_at(raw, 0) != 0;
            if self.read(array)?.chunks_exact(4).any(is_used) {
                break;
            }
            self.free_run(array.number(), 1)?;
            inode.remove_blocks(1, &layout);
            let (array, index) = (arrays[level - 1], path.index[level - 1]);
            self.set_pointers(inode, array, index, once(0))?;
        }
        Ok(())
    }
}
