//! The layout of a program's memory.

use super::Result;
use crate::errno::{EINVAL, ENODEV, ENOMEM};
use crate::memory::{self, PAGE};
use crate::process::Process;

const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_PRIVATE: u64 = 0x2;

impl Process {
    pub(super) fn map(&mut self, at: u64, bytes: u64, bits: u64, flags: u64) -> Result<u64> {
        if flags & MAP_ANONYMOUS == 0 || flags & MAP_PRIVATE == 0 {
            return Err(ENODEV);
        }
        let bytes = bytes
            .checked_next_multiple_of(PAGE)
            .filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(EINVAL)?;
        let at = match flags & MAP_FIXED != 0 {
            true => {
                memory::unmap(&self.program.space, at, bytes)?;
                at
            }
            false => {
                let free = self.program.mappings.checked_sub(bytes).ok_or(ENOMEM)?;
                self.program.mappings = free;
                free
            }
        };
        memory::map_zero(&self.program.space, at, bytes, bits)?;
        Ok(at)
    }

    /// `brk`: where the heap ends now, whatever was asked.
    pub(super) fn set_heap(&mut self, to: u64) -> Result<u64> {
        let program = &mut self.program;
        if to < program.heap || to > program.mappings {
            return Ok(program.heap_end);
        }
        let [old, new] = [program.heap_end, to].map(|end| end.next_multiple_of(PAGE));
        let done = match new > old {
            true => memory::map_zero(&program.space, old, new - old, 3),
            false => memory::unmap(&program.space, new, old - new),
        };
        if new == old || done.is_ok() {
            program.heap_end = to;
        }
        Ok(program.heap_end)
    }
}
