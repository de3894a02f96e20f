//! Copies to and from the memory of programs.
//!
//! Mostly that of a program that has just run on this processor: then its page table is loaded, and
//! a page is copied at the program's own addresses, with SMAP lifted for the copy alone. What the
//! program may not access so, the copy may not either. Interrupts are off meanwhile, so whoever
//! takes rights away waits for the copy, as for the program itself: he flushes this processor, too.
//! If another table is loaded, or the copy stops at a page, the page is looked for in the table,
//! which is locked, and copied in the direct map; that says what is the matter, too.

use core::ops::Range;

use super::entry::Entry;
use super::space::mapped;
use super::{USER_END, VmError, VmSpace};
use crate::arch::untyped;
use crate::mem::copied::{Between, count};
use crate::mem::{PAGE_SIZE, phys_to_virt, spaces};
use crate::sync::IrqOff;

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
    #[inline]
    pub fn read_some(&self, address: usize, bytes: &mut [u8]) -> (usize, Result<(), VmError>) {
        let done = match self.read_here(address, bytes) {
            true => (bytes.len(), Ok(())),
            false => self.read_pages(address, bytes),
        };
        count(Between::ProgramAndDomain, done.0);
        done
    }

    /// Copies bytes into user memory: how many, up to the first page that the program cannot write
    /// to now, and what is the matter with that.
    #[inline]
    pub fn write_some(&self, address: usize, bytes: &[u8]) -> (usize, Result<(), VmError>) {
        let done = match self.write_here(address, bytes) {
            true => (bytes.len(), Ok(())),
            false => self.write_pages(address, bytes),
        };
        count(Between::ProgramAndDomain, done.0);
        done
    }

    /// Copies `count` bytes from user memory to untyped memory at `to`; how many, up to the first
    /// page that the program cannot read now. Both may be the same memory.
    ///
    /// # Safety
    /// So many bytes from `to` on are untyped memory, mapped writable, and stay so meanwhile.
    #[inline]
    pub(crate) unsafe fn read_untyped(&self, address: usize, to: usize, count: usize) -> usize {
        self.each_part(
            (address, count),
            Entry::is_present,
            // SAFETY: `left_of` vouches for the program's addresses, the caller for the others.
            |at, done, part| unsafe { untyped::copy_program(to + done, at, part) },
            // SAFETY: the caller vouches for `to`. The other page is a mapped untyped frame while
            // its table is locked, and as many bytes from `from` on lie in it.
            |from, done, part| unsafe { untyped::copy(from, to + done, part) },
        )
    }

    /// Copies `count` bytes from untyped memory at `from` to user memory; how many, up to the first
    /// page that the program cannot write to now. Both may be the same memory.
    ///
    /// # Safety
    /// So many bytes from `from` on are untyped memory, mapped, and stay so meanwhile.
    #[inline]
    pub(crate) unsafe fn write_untyped(&self, address: usize, from: usize, count: usize) -> usize {
        self.each_part(
            (address, count),
            Entry::is_writable,
            // SAFETY: as in `read_untyped`.
            |at, done, part| unsafe { untyped::copy_program(at, from + done, part) },
            // SAFETY: as in `read_untyped`; the direct map is writable.
            |to, done, part| unsafe { untyped::copy(from + done, to, part) },
        )
    }

    /// Has each part of user memory that lies in one page copied `here`, at the program's own
    /// address, as far as that goes, and what is left `there`, at an address in the direct map.
    /// Both are told how many bytes were done before, and how many to do; `here` says how many are
    /// left. How many were done before one that the program may not access so.
    #[inline]
    fn each_part(
        &self,
        (address, count): (usize, usize),
        permits: impl Fn(Entry) -> bool,
        here: impl Fn(usize, usize, usize) -> usize,
        there: impl Fn(usize, usize, usize),
    ) -> usize {
        let mut done = 0;
        while done < count {
            // What wraps is never come to: the last page of all is no program's.
            let at = address.wrapping_add(done);
            let part = (PAGE_SIZE - at % PAGE_SIZE).min(count - done);
            let left = self.left_of(at, part, || here(at, done, part));
            let left = left.unwrap_or(part);
            done += part - left;
            if left > 0 {
                let at = at + (part - left);
                let rest = self.with_page(at, &permits, |page| there(page, done, left));
                if rest.is_err() {
                    break;
                }
                done += left;
            }
        }
        done
    }

    /// Puts `new` into a word of user memory that the program can write to now, if it holds `old`;
    /// what it held. It lies at a multiple of four, so in one page.
    pub fn exchange(&self, address: usize, old: u32, new: u32) -> Result<u32, VmError> {
        if !address.is_multiple_of(size_of::<u32>()) {
            return Err(VmError::BadAddress);
        }
        let mut found = old;
        self.with_page(address, Entry::is_writable, |at| {
            // SAFETY: as in `write_pages`; the word ends with the page at the latest.
            found = unsafe { untyped::exchange(at, old, new) };
        })?;
        Ok(found)
    }

    /// What a word of user memory holds that the program can read now. It lies at a multiple of
    /// four, so in one page.
    pub fn word(&self, address: usize) -> Result<u32, VmError> {
        if !address.is_multiple_of(size_of::<u32>()) {
            return Err(VmError::BadAddress);
        }
        let mut found = 0;
        self.with_page(address, Entry::is_present, |at| {
            // SAFETY: the page is a mapped untyped frame while its table is locked, and the aligned
            // word ends with the page at the latest.
            found = unsafe { untyped::load(at) };
        })?;
        Ok(found)
    }

    #[cold]
    fn read_pages(&self, address: usize, bytes: &mut [u8]) -> (usize, Result<(), VmError>) {
        pages(address, bytes.len(), |at, part| {
            let bytes = &mut bytes[part];
            if self.read_here(at, bytes) {
                return Ok(());
            }
            self.with_page(at, Entry::is_present, |from| {
                // SAFETY: the page is a mapped untyped frame while its table is locked, and as many
                // bytes from `from` lie in it.
                unsafe { untyped::copy_out(from, bytes) };
            })
        })
    }

    #[cold]
    fn write_pages(&self, address: usize, bytes: &[u8]) -> (usize, Result<(), VmError>) {
        pages(address, bytes.len(), |at, part| {
            let bytes = &bytes[part];
            if self.write_here(at, bytes) {
                return Ok(());
            }
            self.with_page(at, Entry::is_writable, |to| {
                // SAFETY: as in `read_pages`.
                unsafe { untyped::copy_in(to, bytes) };
            })
        })
    }

    /// Copies from a part of a page at the program's own addresses; whether that could be done.
    #[inline]
    fn read_here(&self, at: usize, bytes: &mut [u8]) -> bool {
        let (to, count) = (bytes.as_mut_ptr() as usize, bytes.len());
        // SAFETY: `left_of` vouches for the program's addresses, and `bytes` is a slice.
        self.left_of(at, count, || unsafe {
            untyped::copy_program(to, at, count)
        }) == Some(0)
    }

    /// Copies to a part of a page at the program's own addresses; whether that could be done.
    #[inline]
    fn write_here(&self, at: usize, bytes: &[u8]) -> bool {
        let (from, count) = (bytes.as_ptr() as usize, bytes.len());
        // SAFETY: as in `read_here`.
        self.left_of(at, count, || unsafe {
            untyped::copy_program(at, from, count)
        }) == Some(0)
    }

    /// What `copy` leaves of `count` bytes from user address `at` on; `None`: it was not called.
    ///
    /// That is done only if these lie in one page below [`USER_END`], with interrupts off and this
    /// space's table loaded. Such a page is the program's, and only untyped memory is mapped there.
    #[inline]
    fn left_of(&self, at: usize, count: usize, copy: impl FnOnce() -> usize) -> Option<usize> {
        let is_in_page = count <= PAGE_SIZE - at % PAGE_SIZE && at < USER_END;
        if !is_in_page || !untyped::can_copy_program() {
            return None;
        }
        let _irq = IrqOff::new();
        spaces::is_loaded(self.root).then(copy)
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

/// Has the part of a range in each page copied, by its address and which of the bytes are there.
/// How many bytes were done until one failed.
#[inline]
fn pages(
    address: usize,
    length: usize,
    mut copy: impl FnMut(usize, Range<usize>) -> Result<(), VmError>,
) -> (usize, Result<(), VmError>) {
    let mut done = 0;
    while done < length {
        // The last page of all is no program's.
        let at = address.wrapping_add(done);
        let count = (PAGE_SIZE - at % PAGE_SIZE).min(length - done);
        if let Err(why) = copy(at, done..done + count) {
            return (done, Err(why));
        }
        done += count;
    }
    (done, Ok(()))
}
