//! Content of files: reading with read-ahead, writing, truncating, targets of symbolic links.

use alloc::vec::Vec;

use crate::blockmap::Run;
use crate::bytes::u32_at;
use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::features::RO_LARGE_FILE;
use crate::fs::{FileSystem, STREAMS};
use crate::inode::{FAST_LINK, FileKind, Inode};
use crate::layout::field;
use crate::transaction::Transaction;

/// Where content of a file is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the device, and nothing newer in memory: `bytes` bytes, whole blocks, from `sector` on.
    Device {
        /// The first sector.
        sector: u64,
        /// Length in bytes; what lies behind the end of the file means nothing.
        bytes: usize,
    },
    /// Not in one place: `read` it.
    Elsewhere,
}

/// Blocks that one transaction of a write maps at most.
pub(crate) const WRITE_BLOCKS: u64 = 256;

impl<D: BlockDevice> FileSystem<D> {
    /// Reads from a file at byte `offset`. Returns how many bytes were read: fewer than asked for
    /// only at the end of the file, 0 beyond it. Access times are not kept.
    ///
    /// # Errors
    /// `NotFound`, `IsDirectory`, `Invalid` for what is no file; `Corrupt`; device errors.
    pub fn read(&mut self, ino: u32, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let inode = self.view(|tx| tx.file(ino))?;
        let left = inode.size.saturating_sub(offset);
        let length = left.min(buf.len() as u64) as usize;
        if length == 0 {
            return Ok(0);
        }
        let size = self.store.layout.block_size as u64;
        let ahead = self.read_ahead(
            &inode,
            offset / size,
            (offset + length as u64).div_ceil(size),
        );
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let space = &mut buf[done..length];
            done += self.view(|tx| tx.read_run(&inode, at, ahead, space))?;
        }
        Ok(length)
    }

    /// Where content of a file lies, for a caller with a cache of its own: the size of the file,
    /// and where the bytes from `offset` on, a multiple of the block size, are to be had. The
    /// answer is right until the file changes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn locate(&mut self, ino: u32, offset: u64, most: usize) -> Result<(u64, Place)> {
        let inode = self.view(|tx| tx.file(ino))?;
        let layout = self.store.layout;
        let size = layout.block_size as u64;
        let left = inode.size.saturating_sub(offset).min(most as u64);
        if !offset.is_multiple_of(size) || left == 0 || !self.store.overlay.is_empty() {
            return Ok((inode.size, Place::Elsewhere));
        }
        let most = left.div_ceil(size) as u32;
        let run = match self.view(|tx| tx.find_run(&inode, offset / size, most)) {
            Err(Error::FileTooLarge) => return Ok((inode.size, Place::Elsewhere)),
            run => run?,
        };
        let Some(start) = run.start.map(|block| block.number()) else {
            return Ok((inode.size, Place::Elsewhere));
        };
        let count = (start..start + run.count)
            .take_while(|block| !self.store.cache.contains(*block))
            .count();
        let place = match count {
            0 => Place::Elsewhere,
            count => Place::Device {
                sector: self.store.sector(start),
                bytes: count * layout.block_size,
            },
        };
        Ok((inode.size, place))
    }

    /// How many blocks from the first on a reader of the blocks `first..end` should have loaded in
    /// one request: more than it asked for if it goes on where it stopped before.
    fn read_ahead(&mut self, inode: &Inode, first: u64, end: u64) -> u64 {
        let known = self
            .streams
            .iter()
            .position(|(ino, next)| *ino == inode.ino && (*next == first || *next == first + 1));
        let sequential = first == 0 || known.is_some();
        let slot = known.unwrap_or(self.next_stream);
        if known.is_none() {
            self.next_stream = (self.next_stream + 1) % STREAMS;
        }
        self.streams[slot] = (inode.ino, end);
        let file_end = inode.size.div_ceil(self.store.layout.block_size as u64);
        let window = if sequential {
            end.max(first + self.store.run_blocks() as u64)
        } else {
            end
        };
        window.min(file_end)
    }

    /// Writes to a file at byte `offset`; what lies between its end and `offset` becomes a hole.
    /// Returns how many bytes were written: fewer than asked for if the space ended, or the device
    /// failed, behind those.
    ///
    /// # Errors
    /// `NoSpace` if not one byte could be written; `FileTooLarge`, `ReadOnly`; as
    /// [`read`](Self::read).
    pub fn write(&mut self, ino: u32, offset: u64, buf: &[u8]) -> Result<usize> {
        self.finish_cut(ino)?;
        let size = self.store.layout.block_size as u64;
        let mut done = 0;
        while done < buf.len() {
            let at = offset.checked_add(done as u64).ok_or(Error::FileTooLarge)?;
            // What is changed in one go cannot be given up: half of what the cache is made for.
            let blocks = WRITE_BLOCKS.min(self.store.cache.capacity() as u64 / 2);
            let most = (blocks * size - at % size).min((buf.len() - done) as u64) as usize;
            match self.write_chunk(ino, at, &buf[done..done + most]) {
                Ok(count) => done += count,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Writes at the end of a file. Returns where, and how many bytes were written.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn append(&mut self, ino: u32, buf: &[u8]) -> Result<(u64, usize)> {
        let end = self.view(|tx| tx.file(ino))?.size;
        Ok((end, self.write(ino, end, buf)?))
    }

    /// Writes what one transaction can map. `buf` is not empty.
    fn write_chunk(&mut self, ino: u32, at: u64, buf: &[u8]) -> Result<usize> {
        let (runs, count) = self.update(|tx| tx.map_write(ino, at, buf.len()))?;
        let layout = self.store.layout;
        let size = layout.block_size;
        let mut within = at as usize % size;
        let mut rest = &buf[..count];
        let blocks = runs
            .iter()
            .flat_map(|run| (0..run.count).map(move |n| (run, n)));
        for (run, n) in blocks {
            let (now, later) = rest.split_at(rest.len().min(size - within));
            let block = run.nth(n, &layout)?;
            if now.len() == size {
                self.store.put_data(block, now);
            } else {
                let data = self.store.data_mut(block, run.fresh)?;
                data[within..within + now.len()].copy_from_slice(now);
            }
            rest = later;
            within = 0;
        }
        Ok(count)
    }

    /// Sets the size of a file: cuts it, or lets it grow by a hole.
    ///
    /// # Errors
    /// `FileTooLarge`, `ReadOnly`; as [`read`](Self::read). After a device error in the middle of a
    /// large cut the size is set, and what is left is freed by the next change of the file, at
    /// unmount, or by the next mount.
    pub fn truncate(&mut self, ino: u32, size: u64) -> Result<()> {
        self.begin_truncate(ino, size)?;
        self.finish_cut(ino)
    }

    /// As [`truncate`](Self::truncate), as far as one transaction goes: the size is set. Whether
    /// all that is cut off is free; if not, [`cut_some`](Self::cut_some) goes on. Whoever shares
    /// the file system lets others in between, and has the file [`open`](Self::open) meanwhile.
    ///
    /// # Errors
    /// As [`truncate`](Self::truncate).
    pub fn begin_truncate(&mut self, ino: u32, size: u64) -> Result<bool> {
        self.finish_cut(ino)?;
        let is_done = self.update(|tx| tx.set_size(ino, size))?;
        if !is_done {
            self.store.cut.insert(ino);
        }
        Ok(is_done)
    }

    /// Frees more of what was cut off, if there is any, in one transaction; whether all is free.
    ///
    /// # Errors
    /// As [`truncate`](Self::truncate).
    pub fn cut_some(&mut self, ino: u32) -> Result<bool> {
        if self.store.cut.contains(&ino) && self.update(|tx| tx.cut_orphan(ino))? {
            self.store.cut.remove(&ino);
        }
        Ok(!self.store.cut.contains(&ino))
    }

    /// Finishes a truncation that takes several transactions.
    pub(crate) fn finish_cut(&mut self, ino: u32) -> Result<()> {
        while !self.cut_some(ino)? {}
        Ok(())
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// `NotFound`, `Invalid` if it is no symbolic link; `Corrupt`; device errors.
    pub fn readlink(&mut self, ino: u32) -> Result<Vec<u8>> {
        self.view(|tx| tx.link_target(ino))
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// The inode of a regular file.
    pub(crate) fn file(&mut self, ino: u32) -> Result<Inode> {
        let inode = self.inode(ino)?;
        match inode.kind {
            FileKind::Regular => Ok(inode),
            FileKind::Directory => Err(Error::IsDirectory),
            _ => Err(Error::Invalid("not a regular file")),
        }
    }

    /// Reads from the run of blocks at byte `at` into `buf`, which ends inside the file. Blocks are
    /// loaded up to block `ahead`.
    fn read_run(&mut self, inode: &Inode, at: u64, ahead: u64, buf: &mut [u8]) -> Result<usize> {
        let size = self.layout().block_size;
        let (logical, within) = (at / size as u64, at as usize % size);
        let most = ahead.saturating_sub(logical).clamp(1, u32::MAX.into()) as u32;
        let run = match self.find_run(inode, logical, most) {
            // A size beyond what pointers reach: there is nothing, so zeroes.
            Err(Error::FileTooLarge) => Run {
                start: None,
                count: most,
                fresh: false,
            },
            other => other?,
        };
        let bytes = run.count as u64 * size as u64 - within as u64;
        let length = bytes.min(buf.len() as u64) as usize;
        if run.start.is_none() {
            buf[..length].fill(0);
            return Ok(length);
        }
        self.copy_run(&run, within, &mut buf[..length])?;
        Ok(length)
    }

    /// Copies from a run of blocks, from byte `within` of it on.
    fn copy_run(&mut self, run: &Run, mut within: usize, buf: &mut [u8]) -> Result<()> {
        let layout = self.layout();
        let mut rest = buf;
        let mut n = 0;
        while !rest.is_empty() {
            let block = run.nth(n, &layout)?;
            self.store.load_run(block, (run.count - n) as usize)?;
            let (now, later) = rest.split_at_mut(rest.len().min(layout.block_size - within));
            now.copy_from_slice(&self.store.block(block)?[within..within + now.len()]);
            rest = later;
            within = 0;
            n += 1;
        }
        Ok(())
    }

    /// Prepares a write of `length` bytes at `at`: allocates, loads what will be overwritten in
    /// part, sets size and times. Returns the blocks and how many bytes they take.
    fn map_write(&mut self, ino: u32, at: u64, length: usize) -> Result<(Vec<Run>, usize)> {
        let layout = self.layout();
        let size = layout.block_size as u64;
        let mut inode = self.file(ino)?;
        let end = at.saturating_add(length as u64);
        if end > self.max_size() {
            return Err(Error::FileTooLarge);
        }
        if at > inode.size {
            self.clear_tail(&inode)?;
        }
        let blocks = (end.div_ceil(size) - at / size) as u32;
        let runs = self.fill_runs(&mut inode, at / size, blocks)?;
        let mapped: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
        let count = (mapped * size - at % size).min(length as u64);
        let end = at + count;
        self.load_edges(&runs, !at.is_multiple_of(size), !end.is_multiple_of(size))?;
        self.grow(&mut inode, end)?;
        inode.mtime = self.now;
        inode.ctime = self.now;
        self.put_inode(&inode)?;
        Ok((runs, count as usize))
    }

    /// Loads the first and the last block of a write where they are not overwritten as a whole, so
    /// that the write cannot fail after its transaction.
    fn load_edges(&mut self, runs: &[Run], first: bool, last: bool) -> Result<()> {
        let layout = self.layout();
        let edges = [(first, runs.first(), true), (last, runs.last(), false)];
        for (partial, run, front) in edges {
            if let Some(run) = run.filter(|run| partial && !run.fresh) {
                let n = if front { 0 } else { run.count - 1 };
                self.store.load_run(run.nth(n, &layout)?, 1)?;
            }
        }
        Ok(())
    }

    /// The largest size that a file may get.
    pub(crate) fn max_size(&self) -> u64 {
        let layout = self.layout();
        let limit = if layout.dynamic {
            u64::MAX
        } else {
            i32::MAX as u64
        };
        layout.max_file_size().min(limit)
    }

    /// Makes the size of a file at least `size`; notes in the superblock that there is a large
    /// file.
    pub(crate) fn grow(&mut self, inode: &mut Inode, size: u64) -> Result<()> {
        inode.size = inode.size.max(size);
        if inode.size > i32::MAX as u64 {
            let layout = self.layout();
            let at = layout.superblock_at() + field::RO_COMPAT;
            let features = u32_at(self.read(layout.superblock())?, at);
            if features & RO_LARGE_FILE == 0 {
                self.set_super_field(field::RO_COMPAT, features | RO_LARGE_FILE)?;
            }
        }
        Ok(())
    }

    /// Clears what lies behind the end of a file in its last block, before the file grows over it.
    /// This is content nobody can see, so it needs no transaction.
    pub(crate) fn clear_tail(&mut self, inode: &Inode) -> Result<()> {
        let size = self.layout().block_size as u64;
        let within = (inode.size % size) as usize;
        if within == 0 || inode.size > self.layout().max_file_size() {
            return Ok(());
        }
        if let Some(block) = self.find_run(inode, inode.size / size, 1)?.start {
            self.check_owned(block)?;
            if self.store.block(block)?[within..]
                .iter()
                .any(|byte| *byte != 0)
            {
                self.store.data_mut(block, false)?[within..].fill(0);
            }
        }
        Ok(())
    }

    /// Sets the size of a file. Returns whether all that is cut off is freed; if not the file is an
    /// orphan, and `cut_orphan` goes on.
    fn set_size(&mut self, ino: u32, size: u64) -> Result<bool> {
        let mut inode = self.file(ino)?;
        if size > self.max_size() {
            return Err(Error::FileTooLarge);
        }
        let old = inode.size;
        let mut done = true;
        if size > old {
            self.clear_tail(&inode)?;
            self.grow(&mut inode, size)?;
        } else {
            inode.size = size;
            done = self.shrink(&mut inode, size.div_ceil(self.layout().block_size as u64))?;
        }
        if !done && inode.links > 0 {
            self.add_orphan(&mut inode)?;
        }
        inode.mtime = self.now;
        inode.ctime = self.now;
        self.put_inode(&inode)?;
        Ok(done)
    }

    /// The target of the symbolic link `ino`: in the inode if it is short, else in a block.
    fn link_target(&mut self, ino: u32) -> Result<Vec<u8>> {
        let layout = self.layout();
        let inode = self.inode(ino)?;
        if inode.kind != FileKind::Symlink {
            return Err(Error::Invalid("not a symbolic link"));
        }
        let length = inode.size;
        if !inode.has_blocks(&layout) {
            return match length < FAST_LINK as u64 {
                true => Ok(inode.pointer_bytes()[..length as usize].to_vec()),
                false => Err(Error::Corrupt("size of a symbolic link")),
            };
        }
        if length > layout.block_size as u64 {
            return Err(Error::Corrupt("size of a symbolic link"));
        }
        let run = self.find_run(&inode, 0, 1)?;
        let block = run.nth(0, &layout)?;
        Ok(self.read(block)?[..length as usize].to_vec())
    }
}
