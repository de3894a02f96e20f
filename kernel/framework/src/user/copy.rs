//! Copies to and from the memory of programs.

use super::entry::Entry;
use super::space::mapped;
use super::{USER_END, VmError, VmSpace};
use crate::arch::untyped;
use crate::mem::{PAGE_SIZE, phys_to_virt};

impl VmSpace {
    /// Copies bytes from user memory. On an error `bytes` may be partly filled.
    pub fn read(&self, address: usize, bytes: &mut [u8]) -> Result<(), VmError> {
        let (done, why) = self.read_some(address, bytes);
        whole(done, bytes.len(), why)
    }

    /// Copies bytes into user memory, where the program can write now. On an error a part may have
    /// been copied.
    pub fn write(&self, address: usize, bytes: &[u8]) -> Result<(), VmError> {
        let (done, why) = self.write_some(address, bytes);
        whole(done, bytes.len(), why)
    }

    /// Copies bytes from user memory: how many, up to the first page that the program cannot read
    /// now, and what is the matter with that.
    pub fn read_some(&self, address: usize, bytes: &mut [u8]) -> (usize, Result<(), VmError>) {
        self.copy(
            address,
            bytes.len(),
            Entry::is_present,
            |from, done, count| {
                // SAFETY: the page is a mapped untyped frame while its table is locked, and `count`
                // bytes from `from` lie in it.
                unsafe { untyped::copy_out(from, &mut bytes[done..done + count]) };
            },
        )
    }

    /// Copies bytes into user memory: how many, up to the first page that the program cannot write
    /// to now, and what is the matter with that.
    pub fn write_some(&self, address: usize, bytes: &[u8]) -> (usize, Result<(), VmError>) {
        self.copy(
            address,
            bytes.len(),
            Entry::is_writable,
            |to, done, count| {
                // SAFETY: as in `read_some`.
                unsafe { untyped::copy_in(to, &bytes[done..done + count]) };
            },
        )
    }

    /// Has each page of a range accessed that `permits`, with its address in the direct map, how
    /// many bytes were done before, and how many are its own.
    #[inline]
    fn copy(
        &self,
        address: usize,
        length: usize,
        permits: impl Fn(Entry) -> bool,
        mut access: impl FnMut(usize, usize, usize),
    ) -> (usize, Result<(), VmError>) {
        let mut done = 0;
        while done < length {
            let at = address.wrapping_add(done);
            let count = (PAGE_SIZE - at % PAGE_SIZE).min(length - done);
            // The last page of all is no program's.
            let copied = self.with_page(at, &permits, |page| access(page, done, count));
            if copied.is_err() {
                return (done, copied);
            }
            done += count;
        }
        (done, Ok(()))
    }

    /// Calls `access` with the direct-map address of user address `at`, with its table locked: so
    /// nobody unmaps or forks the page meanwhile.
    #[inline]
    fn with_page(
        &self,
        at: usize,
        permits: impl FnOnce(Entry) -> bool,
        access: impl FnOnce(usize),
    ) -> Result<(), VmError> {
        if at >= USER_END {
            return Err(VmError::BadAddress);
        }
        let table = self.table(at).map_err(|_| VmError::NotMapped)?;
        let entry = mapped(&table, at)?;
        if !permits(entry) {
            return Err(VmError::Denied);
        }
        access(phys_to_virt(entry.frame()) + at % PAGE_SIZE);
        Ok(())
    }
}

/// `Ok` if all was done.
fn whole(done: usize, length: usize, why: Result<(), VmError>) -> Result<(), VmError> {
    if done == length { Ok(()) } else { why }
}
