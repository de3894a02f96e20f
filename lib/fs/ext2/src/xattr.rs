//! Extended attributes, as far as removal of their owner needs them: a block of attributes may be
//! shared, and counts its owners.

use crate::bytes::{put_u32, u32_at};
use crate::cache::Kind;
use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::inode::Inode;
use crate::transaction::Transaction;

const MAGIC: u32 = 0xEA02_0000;
const OWNERS: usize = 4;

impl<D: BlockDevice> Transaction<'_, D> {
    /// Takes the attribute block from `inode`, and frees it if nobody else has it. The caller
    /// stores the inode.
    ///
    /// # Errors
    /// `Corrupt` if it is no attribute block; device errors.
    pub(crate) fn release_attributes(&mut self, inode: &mut Inode) -> Result<()> {
        let pointer = core::mem::take(&mut inode.attribute_block);
        if pointer == 0 {
            return Ok(());
        }
        let layout = self.layout();
        let block = layout.block(pointer, "attribute block outside the device")?;
        self.check_owned(block)?;
        let raw = self.read(block)?;
        if u32_at(raw, 0) != MAGIC {
            return Err(Error::Corrupt("attribute block"));
        }
        let owners = u32_at(raw, OWNERS);
        inode.remove_blocks(1, &layout);
        if owners > 1 {
            let count = self.modify(block, Kind::Map, OWNERS..OWNERS + 4)?;
            put_u32(count, 0, owners - 1);
            return Ok(());
        }
        self.free_run(pointer, 1)
    }
}
