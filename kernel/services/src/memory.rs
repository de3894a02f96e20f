//! `MemoryWatch`: how much memory is left, and word of who needs some.

use crate::Machine;
use interfaces::{MemoryWatch, RpcResult, Shortage};
use isolation::memory::relief;

/// The machine's memory as those see it who can give some back.
pub struct KernelMemory<M>(pub M);

impl<M: Machine> MemoryWatch for KernelMemory<M> {
    fn free(&self) -> RpcResult<u64> {
        Ok(self.0.memory().1)
    }

    fn shortage(&self, answered: u32, given: u64) -> RpcResult<Shortage> {
        let shortage = relief::listen(answered, given)?;
        Ok(Shortage {
            number: shortage.number,
            bytes: shortage.bytes,
        })
    }
}
