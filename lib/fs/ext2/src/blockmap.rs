//! Where the blocks of a file lie: direct pointers and up to three levels of indirect blocks (ext2
//! spec, "i_block"). A pointer of zero is a hole.

use alloc::vec::Vec;
use core::iter::once;

use crate::bytes::{put_u32, u32_at};
use crate::cache::Kind;
use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::inode::Inode;
use crate::layout::{Block, Layout};
use crate::transaction::Transaction;

/// Direct pointers in an inode.
pub(crate) const DIRECT: u64 = 12;

/// Blocks of a file that follow each other in the file and on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first block on the device; `None` for a hole.
    pub(crate) start: Option<Block>,
    /// How many blocks, at least 1.
    pub(crate) count: u32,
    /// The blocks were allocated just now and their content is garbage.
    pub(crate) fresh: bool,
}

impl Run {
    /// The `n`-th block of a run that is no hole. The run was made from checked blocks.
    pub(crate) fn nth(&self, n: u32, layout: &Layout) -> Result<Block> {
        let start = self
            .start
            .ok_or(Error::Corrupt("hole where a block must be"))?;
        layout.block(start.number() + n, "block pointer outside the device")
    }
}

/// The way to a block: `index[0]` is in the inode, the others in indirect blocks, `depth` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) depth: usize,
    pub(crate) index: [usize; 4],
}

impl Path {
    /// The way to block `logical` of a file where an indirect block has `pointers` pointers.
    pub(crate) fn to(logical: u64, pointers: u64) -> Result<Self> {
        if logical < DIRECT {
            return Ok(Path {
                depth: 0,
                index: [logical as usize, 0, 0, 0],
            });
        }
        let mut rest = logical - DIRECT;
        let mut reach = pointers;
        for depth in 1..=3 {
            if rest < reach {
                let mut index = [DIRECT as usize + depth - 1, 0, 0, 0];
                for level in (1..=depth).rev() {
                    index[level] = (rest % pointers) as usize;
                    rest /= pointers;
                }
                return Ok(Path { depth, index });
            }
            rest -= reach;
            reach *= pointers;
        }
        Err(Error::FileTooLarge)
    }

    /// The index in the last array, and the length of that array.
    fn leaf(&self, pointers: usize) -> (usize, usize) {
        let length = if self.depth == 0 {
            DIRECT as usize
        } else {
            pointers
        };
        (self.index[self.depth], length)
    }

    /// How many blocks from here on have the same pointer at `level`.
    fn span_left(&self, level: usize, pointers: u64) -> u64 {
        let below = &self.index[level + 1..=self.depth];
        let inside = below
            .iter()
            .fold(0, |sum, index| sum * pointers + *index as u64);
        pointers.pow(below.len() as u32) - inside
    }
}

/// How many pointers from `first` on, with `rest` behind it, make one run: consecutive blocks, or
/// zeroes.
fn run_length(first: u32, rest: impl Iterator<Item = u32>) -> u32 {
    let mut count = 1u32;
    for next in rest {
        let wanted = if first == 0 {
            Some(0)
        } else {
            first.checked_add(count)
        };
        if wanted != Some(next) {
            break;
        }
        count += 1;
    }
    count
}

impl<D: BlockDevice> Transaction<'_, D> {
    /// The run that starts at block `logical` of `inode`, at most `most` blocks long. It may end
    /// before what follows it in the file does.
    pub(crate) fn find_run(&mut self, inode: &Inode, logical: u64, most: u32) -> Result<Run> {
        let path = Path::to(logical, self.store.layout.pointers() as u64)?;
        let mut pointer = inode.pointers[path.index[0]];
        for level in 1..=path.depth {
            // A copy, which the first blocks of a file do not need.
            let layout = self.layout();
            if pointer == 0 {
                let left = path.span_left(level - 1, layout.pointers() as u64);
                let count = left.min(most.into()) as u32;
                return Ok(Run {
                    start: None,
                    count,
                    fresh: false,
                });
            }
            let block = layout.block(pointer, "indirect block outside the device")?;
            let array = self.read(block)?;
            if level == path.depth {
                return make_run(array, path.index[level], most, &layout);
            }
            pointer = u32_at(array, path.index[level] * 4);
        }
        let rest = inode.pointers[path.index[0] + 1..DIRECT as usize]
            .iter()
            .copied();
        let count = run_length(pointer, rest.take(most as usize - 1));
        check_run(pointer, count, &self.store.layout)
    }

    /// The runs of `count` blocks from `logical` on, where holes are filled. Fewer if the space
    /// ends, but at least one block.
    ///
    /// # Errors
    /// `NoSpace` if not even the first block can be had; `Corrupt`; device errors.
    pub(crate) fn fill_runs(
        &mut self,
        inode: &mut Inode,
        logical: u64,
        count: u32,
    ) -> Result<Vec<Run>> {
        let mut runs = Vec::new();
        let mut done = 0;
        while done < count {
            let at = logical + u64::from(done);
            let run = self.find_run(inode, at, count - done)?;
            let run = match run.start {
                Some(block) => {
                    self.check_run_owned(block, run.count)?;
                    Ok(run)
                }
                None => self.fill_hole(inode, at, run.count),
            };
            match run {
                Err(Error::NoSpace) if done > 0 => break,
                Err(error) => return Err(error),
                Ok(run) => {
                    done += run.count;
                    runs.push(run);
                }
            }
        }
        Ok(runs)
    }

    /// Allocates up to `count` blocks for a hole at `logical`, with the indirect blocks on the way.
    fn fill_hole(&mut self, inode: &mut Inode, logical: u64, count: u32) -> Result<Run> {
        let layout = self.layout();
        let path = Path::to(logical, layout.pointers() as u64)?;
        if self.free_blocks()? <= self.missing_levels(inode, &path)? {
            return Err(Error::NoSpace);
        }
        let leaf = self.fill_path(inode, &path)?;
        let (first, length) = path.leaf(layout.pointers());
        let goal = self.goal(inode, leaf, first)?;
        let want = count.min((length - first) as u32);
        let (start, got) = self.allocate_run(goal, want)?;
        if leaf.is_none() && first == 0 {
            let (group, _) = layout.group_of(start);
            self.store.next_file = Some((group, start.number() + got));
        }
        inode.add_blocks(got, &layout)?;
        let blocks = start.number()..start.number() + got;
        self.set_pointers(inode, leaf, first, blocks)?;
        Ok(Run {
            start: Some(start),
            count: got,
            fresh: true,
        })
    }

    /// How many indirect blocks are missing on the way.
    fn missing_levels(&mut self, inode: &Inode, path: &Path) -> Result<u32> {
        let mut pointer = inode.pointers[path.index[0]];
        for level in 1..=path.depth {
            if pointer == 0 {
                return Ok((path.depth - level + 1) as u32);
            }
            let block = self
                .layout()
                .block(pointer, "indirect block outside the device")?;
            pointer = u32_at(self.read(block)?, path.index[level] * 4);
        }
        Ok(0)
    }

    /// Makes the indirect blocks on the way; returns the last one, `None` if the pointer is in the
    /// inode.
    fn fill_path(&mut self, inode: &mut Inode, path: &Path) -> Result<Option<Block>> {
        let layout = self.layout();
        let mut parent = None;
        for level in 0..path.depth {
            let index = path.index[level];
            let pointer = self.pointer(inode, parent, index)?;
            let block = if pointer == 0 {
                let goal = self.goal(inode, parent, index)?;
                let (block, _) = self.allocate_run(goal, 1)?;
                inode.add_blocks(1, &layout)?;
                self.fresh(block, Kind::Map)?;
                self.set_pointers(inode, parent, index, once(block.number()))?;
                block
            } else {
                layout.block(pointer, "indirect block outside the device")?
            };
            self.check_owned(block)?;
            parent = Some(block);
        }
        Ok(parent)
    }

    /// Pointer `index` of an indirect block, or of the inode.
    pub(crate) fn pointer(
        &mut self,
        inode: &Inode,
        array: Option<Block>,
        index: usize,
    ) -> Result<u32> {
        match array {
            None => Ok(inode.pointers[index]),
            Some(block) => Ok(u32_at(self.read(block)?, index * 4)),
        }
    }

    /// Sets pointers from `index` on of an indirect block, or of the inode (which the caller
    /// stores), to the blocks `to`.
    pub(crate) fn set_pointers(
        &mut self,
        inode: &mut Inode,
        array: Option<Block>,
        index: usize,
        to: impl ExactSizeIterator<Item = u32>,
    ) -> Result<()> {
        let end = index + to.len();
        let Some(block) = array else {
            let places = inode.pointers[index..end].iter_mut();
            places.zip(to).for_each(|(place, to)| *place = to);
            return Ok(());
        };
        let raw = self.modify(block, Kind::Map, index * 4..end * 4)?;
        for (place, to) in raw.chunks_exact_mut(4).zip(to) {
            put_u32(place, 0, to);
        }
        Ok(())
    }

    /// A good place for what pointer `index` will point to: behind what the pointer before it
    /// points to, else behind the array, else in the inode's group, there behind the file before
    /// it: so that many small files are written together.
    fn goal(&mut self, inode: &Inode, array: Option<Block>, index: usize) -> Result<u32> {
        let before = match index {
            0 => 0,
            _ => self.pointer(inode, array, index - 1)?,
        };
        let (group, _) = self.layout().inode_group(inode.ino, "inode number")?;
        Ok(match (before, array) {
            (0, Some(block)) => block.number() + 1,
            (0, None) => match self.store.next_file {
                Some((last, next)) if last == group => next,
                _ => self.layout().group_start(group),
            },
            (before, _) => before.saturating_add(1),
        })
    }
}

/// The run that starts at pointer `index` of an indirect block.
fn make_run(array: &[u8], index: usize, most: u32, layout: &Layout) -> Result<Run> {
    let first = u32_at(array, index * 4);
    let rest = (index + 1..layout.pointers()).map(|n| u32_at(array, n * 4));
    check_run(
        first,
        run_length(first, rest.take(most as usize - 1)),
        layout,
    )
}

/// Checks that a run lies inside the file system.
fn check_run(first: u32, count: u32, layout: &Layout) -> Result<Run> {
    if first == 0 {
        return Ok(Run {
            start: None,
            count,
            fresh: false,
        });
    }
    let start = layout.block(first, "block pointer outside the device")?;
    layout.block(
        first.saturating_add(count - 1),
        "block pointer outside the device",
    )?;
    Ok(Run {
        start: Some(start),
        count,
        fresh: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_reach_every_level_and_no_further() {
        let path = |logical| Path::to(logical, 256).expect("reachable");
        assert_eq!(
            path(11),
            Path {
                depth: 0,
                index: [11, 0, 0, 0]
            }
        );
        assert_eq!(
            path(12),
            Path {
                depth: 1,
                index: [12, 0, 0, 0]
            }
        );
        assert_eq!(
            path(12 + 255),
            Path {
                depth: 1,
                index: [12, 255, 0, 0]
            }
        );
        assert_eq!(
            path(12 + 256),
            Path {
                depth: 2,
                index: [13, 0, 0, 0]
            }
        );
        assert_eq!(
            path(12 + 256 + 65535),
            Path {
                depth: 2,
                index: [13, 255, 255, 0]
            }
        );
        assert_eq!(
            path(12 + 256 + 65536),
            Path {
                depth: 3,
                index: [14, 0, 0, 0]
            }
        );
        let end = 12 + 256 + 65536 + (1 << 24);
        assert_eq!(
            path(end - 1),
            Path {
                depth: 3,
                index: [14, 255, 255, 255]
            }
        );
        assert_eq!(Path::to(end, 256), Err(Error::FileTooLarge));
        assert_eq!(Path::to(u64::MAX, 256), Err(Error::FileTooLarge));
    }

    #[test]
    fn a_missing_level_is_a_hole_to_the_end_of_its_span() {
        let path = Path::to(12 + 256 + 3 * 256 + 5, 256).expect("reachable");
        assert_eq!(path.span_left(0, 256), 65536 - 3 * 256 - 5);
        assert_eq!(path.span_left(1, 256), 251);
    }

    #[test]
    fn runs_end_where_numbers_do_not_follow() {
        assert_eq!(run_length(5, [6, 7, 9].into_iter()), 3);
        assert_eq!(run_length(0, [0, 0, 4].into_iter()), 3);
        assert_eq!(run_length(u32::MAX, [0].into_iter()), 1);
    }
}
