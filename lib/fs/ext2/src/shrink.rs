//! Taking blocks away from the end of a file, in bounded steps, so that no transaction grows with
//! the size of a file.

use alloc::vec::Vec;

use crate::blockmap::DIRECT;
use crate::bytes::{put_u32, u32_at};
use crate::cache::Kind;
use crate::device::{BlockDevice, SECTOR_SIZE};
use crate::error::Result;
use crate::inode::Inode;
use crate::layout::Block;
use crate::transaction::Transaction;

/// Blocks that one step frees at most.
const STEP: usize = 8192;
/// How often the next block of a step may lie elsewhere: each time other bitmaps may change.
const STEP_RUNS: usize = 128;

/// What a step has collected to free: runs, in falling order.
struct Harvest {
    runs: Vec<(u32, u32)>,
    left: usize,
}

impl Harvest {
    fn is_full(&self) -> bool {
        self.left == 0 || self.runs.len() >= STEP_RUNS
    }
}

impl Harvest {
    /// Adds a block; merges it with the run before it where they touch.
    fn add(&mut self, block: u32) {
        self.left = self.left.saturating_sub(1);
        match self.runs.last_mut() {
            Some((start, count)) if block.checked_add(1) == Some(*start) => {
                *start = block;
                *count += 1;
            }
            _ => self.runs.push((block, 1)),
        }
    }
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// Whether all blocks of `inode` go in one step, wherever they lie.
    pub(crate) fn ends_in_one_step(&self, inode: &Inode) -> bool {
        let sectors = self.layout().block_size / SECTOR_SIZE;
        inode.sectors as usize / sectors < STEP_RUNS
    }

    /// Frees blocks of `inode` behind the first `keep`. Returns whether all are gone; if not, call
    /// it again in another transaction. The caller stores the inode.
    ///
    /// # Errors
    /// `Corrupt` if the pointers make no sense; device errors.
    pub(crate) fn shrink(&mut self, inode: &mut Inode, keep: u64) -> Result<bool> {
        if !inode.has_blocks(&self.layout()) {
            return Ok(true);
        }
        let mut harvest = Harvest {
            runs: Vec::new(),
            left: STEP,
        };
        let done = self.shrink_trees(inode, keep, &mut harvest)?;
        for (start, count) in harvest.runs {
            self.free_run(start, count)?;
            inode.remove_blocks(count, &self.layout());
        }
        Ok(done)
    }

    fn shrink_trees(
        &mut self,
        inode: &mut Inode,
        keep: u64,
        harvest: &mut Harvest,
    ) -> Result<bool> {
        let pointers = self.layout().pointers() as u64;
        let starts = [
            DIRECT,
            DIRECT + pointers,
            DIRECT + pointers + pointers.pow(2),
        ];
        for level in (1..=3).rev() {
            let slot = DIRECT as usize + level - 1;
            let keep_here = keep.saturating_sub(starts[level - 1]);
            let (pointer, done) =
                self.shrink_tree(inode.pointers[slot], level, keep_here, harvest)?;
            inode.pointers[slot] = pointer;
            if !done {
                return Ok(false);
            }
        }
        for n in (keep.min(DIRECT) as usize..DIRECT as usize).rev() {
            if inode.pointers[n] != 0 {
                harvest.add(core::mem::take(&mut inode.pointers[n]));
            }
        }
        Ok(true)
    }

    /// Shrinks the tree under `pointer`, which has `level` levels of indirect blocks, to `keep`
    /// blocks. Returns the pointer that remains and whether the work is done.
    fn shrink_tree(
        &mut self,
        pointer: u32,
        level: usize,
        keep: u64,
        harvest: &mut Harvest,
    ) -> Result<(u32, bool)> {
        let layout = self.layout();
        let span = (layout.pointers() as u64).pow(level as u32 - 1);
        if pointer == 0 || keep >= span * layout.pointers() as u64 {
            return Ok((pointer, true));
        }
        let block = layout.block(pointer, "indirect block outside the device")?;
        let old: Vec<u32> = self
            .read(block)?
            .chunks_exact(4)
            .map(|raw| u32_at(raw, 0))
            .collect();
        let mut new = old.clone();
        let done = self.shrink_entries(&mut new, level, keep, harvest)?;
        if done && keep == 0 {
            harvest.add(pointer);
            return Ok((0, true));
        }
        self.put_pointers(block, &old, &new)?;
        Ok((pointer, done))
    }

    /// Shrinks what the pointers of an indirect block point to, from the last to the first.
    fn shrink_entries(
        &mut self,
        entries: &mut [u32],
        level: usize,
        keep: u64,
        harvest: &mut Harvest,
    ) -> Result<bool> {
        let span = (entries.len() as u64).pow(level as u32 - 1);
        for n in ((keep / span) as usize..entries.len()).rev() {
            if entries[n] == 0 {
                continue;
            }
            if harvest.is_full() {
                return Ok(false);
            }
            if level == 1 {
                harvest.add(core::mem::take(&mut entries[n]));
                continue;
            }
            let keep_here = keep.saturating_sub(n as u64 * span);
            let (pointer, done) = self.shrink_tree(entries[n], level - 1, keep_here, harvest)?;
            entries[n] = pointer;
            if !done {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Stores the pointers of an indirect block if they changed.
    fn put_pointers(&mut self, block: Block, old: &[u32], new: &[u32]) -> Result<()> {
        if old == new {
            return Ok(());
        }
        self.check_owned(block)?;
        let array = self.modify_all(block, Kind::Map)?;
        for (n, pointer) in new.iter().enumerate() {
            put_u32(array, n * 4, *pointer);
        }
        Ok(())
    }
}
