//! User address spaces: page tables whose lower half maps untyped frames only.

use super::USER_END;
use crate::arch::types::Rights;
use crate::arch::{page, untyped};
use crate::mem::frames::{FrameKind, Frames, alloc_table};
use crate::mem::paging::{self, MapError};
use crate::mem::{NoMemory, PAGE_SIZE, kernel_table, phys_to_virt, spaces};
use crate::smp;
use crate::spin::IrqLock;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What a program may do with a page. Reading is always allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserProt {
    /// It may write.
    pub write: bool,
    /// It may execute.
    pub execute: bool,
}

impl UserProt {
    /// As the rights of a mapping.
    fn rights(self) -> Rights {
        Rights {
            write: self.write,
            execute: self.execute,
            user: true,
            ..Rights::default()
        }
    }
}

/// Why an address space was not changed or memory not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmError {
    /// The address is not page-aligned or not a user address.
    BadAddress,
    /// The frames are not untyped: they are the kernel's.
    NotUntyped,
    /// Something is mapped there already.
    Occupied,
    /// Nothing is mapped there, or not writable.
    NotMapped,
    /// No memory for page tables.
    NoMemory,
}

/// A user address space.
pub struct VmSpace {
    /// Physical address of the top-level table; the lock guards the lower half of the tables.
    root: IrqLock<u64>,
    /// Page tables that it has, the top one included. It never has fewer than before.
    tables: AtomicUsize,
}

impl VmSpace {
    /// An empty address space.
    pub fn new() -> Result<Self, NoMemory> {
        let root = alloc_table().ok_or(NoMemory)?;
        paging::share_upper_half(kernel_table(), root);
        Ok(Self {
            root: IrqLock::new(root),
            tables: AtomicUsize::new(1),
        })
    }

    /// Maps `frames` at `address`. The address space becomes an owner of them.
    pub fn map(&self, address: usize, frames: Frames, prot: UserProt) -> Result<(), VmError> {
        if frames.kind() != FrameKind::Untyped {
            return Err(VmError::NotUntyped);
        }
        let bytes = frames.count() * PAGE_SIZE;
        check_range(address, bytes)?;
        let root = self.root.lock();
        let pages = || (address..address + bytes).step_by(PAGE_SIZE);
        if pages().any(|page| is_occupied(*root, page)) {
            return Err(VmError::Occupied);
        }
        let (mut to, rights) = (frames.physical(), prot.rights());
        for page in pages() {
            let result =
                paging::map_range(*root, page, to, PAGE_SIZE as u64, rights, 1, &mut || {
                    let table = alloc_table()?;
                    self.tables.fetch_add(1, Ordering::Relaxed);
                    Some(table)
                });
            if let Err(why) = result {
                (address..page)
                    .step_by(PAGE_SIZE)
                    .for_each(|page| paging::clear(*root, page));
                let table = *root;
                drop(root);
                smp::flush_table(table, address, frames.count());
                return Err(match why {
                    MapError::NoMemory => VmError::NoMemory,
                    MapError::Occupied => VmError::Occupied,
                });
            }
            to += PAGE_SIZE as u64;
        }
        frames.into_raw();
        Ok(())
    }

    /// Unmaps the page at `address` and returns its frame, once no processor has the translation.
    pub fn unmap(&self, address: usize) -> Result<Frames, VmError> {
        check_range(address, PAGE_SIZE)?;
        let (root, entry) = {
            let root = self.root.lock();
            let slot = paging::leaf(*root, address).ok_or(VmError::NotMapped)?;
            (*root, slot.swap(0, Ordering::AcqRel))
        };
        if !page::is_present(entry) {
            return Err(VmError::NotMapped);
        }
        smp::flush_table(root, address, 1);
        // SAFETY: `map` left the ownership of this untyped frame in the entry, which is cleared
        // and flushed; nobody else can have taken it, since the swap is atomic.
        Ok(unsafe { Frames::from_raw(page::address(entry), 1, FrameKind::Untyped) })
    }

    /// Changes what the program may do with the page at `address`.
    pub fn protect(&self, address: usize, prot: UserProt) -> Result<(), VmError> {
        check_range(address, PAGE_SIZE)?;
        let root = {
            let root = self.root.lock();
            let slot = paging::leaf(*root, address).ok_or(VmError::NotMapped)?;
            let entry = slot.load(Ordering::Acquire);
            if !page::is_present(entry) {
                return Err(VmError::NotMapped);
            }
            let changed = page::leaf(page::address(entry), 1, page::bits(prot.rights()));
            slot.store(changed, Ordering::Release);
            *root
        };
        smp::flush_table(root, address, 1);
        Ok(())
    }

    /// Pages of memory that its tables take.
    pub fn tables(&self) -> usize {
        self.tables.load(Ordering::Relaxed)
    }

    /// The physical address of the page that is mapped at `address`, and whether the program may
    /// write to it.
    pub fn mapped(&self, address: usize) -> Option<(u64, bool)> {
        if address >= USER_END {
            return None;
        }
        let root = self.root.lock();
        let (physical, rights) = paging::translate(*root, address)?;
        Some((physical, rights.write))
    }

    /// Copies bytes from user memory. On an error `bytes` may be partly filled.
    pub fn read(&self, address: usize, bytes: &mut [u8]) -> Result<(), VmError> {
        let mut done = 0;
        while done < bytes.len() {
            let at = address.checked_add(done).ok_or(VmError::BadAddress)?;
            let count = (PAGE_SIZE - at % PAGE_SIZE).min(bytes.len() - done);
            self.with_page(at, false, |from| {
                // SAFETY: the page is a mapped untyped frame while the lock is held, and `count`
                // bytes from `from` lie in it.
                unsafe { untyped::copy_out(from, &mut bytes[done..done + count]) };
            })?;
            done += count;
        }
        Ok(())
    }

    /// Copies bytes into user memory, where the program may write. On an error a part may have
    /// been copied.
    pub fn write(&self, address: usize, bytes: &[u8]) -> Result<(), VmError> {
        let mut done = 0;
        while done < bytes.len() {
            let at = address.checked_add(done).ok_or(VmError::BadAddress)?;
            let count = (PAGE_SIZE - at % PAGE_SIZE).min(bytes.len() - done);
            self.with_page(at, true, |to| {
                // SAFETY: as in `read`.
                unsafe { untyped::copy_in(to, &bytes[done..done + count]) };
            })?;
            done += count;
        }
        Ok(())
    }

    /// Calls `access` with the direct-map address of user address `at`, with the tables locked.
    fn with_page(
        &self,
        at: usize,
        writes: bool,
        access: impl FnOnce(usize),
    ) -> Result<(), VmError> {
        if at >= USER_END {
            return Err(VmError::BadAddress);
        }
        let root = self.root.lock();
        let (physical, rights) = paging::translate(*root, at).ok_or(VmError::NotMapped)?;
        if writes && !rights.write {
            return Err(VmError::NotMapped);
        }
        access(phys_to_virt(physical));
        Ok(())
    }

    /// Makes this the address space of the calling processor, which may keep it for as long as it
    /// likes: dropping it makes every processor leave it first.
    ///
    /// # Safety
    /// Interrupts are off.
    pub(super) unsafe fn load(&self) {
        let root = *self.root.lock();
        // SAFETY: the table shares the kernel half since `new`; `drop` frees it after
        // `leave_table`.
        unsafe { spaces::load(root) };
    }

    /// Physical address of the top-level table.
    #[cfg(feature = "selftest")]
    pub(crate) fn table(&self) -> u64 {
        *self.root.lock()
    }
}

impl Drop for VmSpace {
    fn drop(&mut self) {
        let root = *self.root.lock();
        smp::leave_table(root);
        paging::visit_lower_half(root, &mut |physical, is_table| {
            let kind = if is_table {
                FrameKind::PageTable
            } else {
                FrameKind::Untyped
            };
            // SAFETY: tables came from `alloc_table` and leaves from `map`; both left their
            // ownership in the entries, which nobody can reach any more: no processor has the table
            // loaded, and whoever could load it would have had to borrow what is dropped here.
            drop(unsafe { Frames::from_raw(physical, 1, kind) });
        });
        // SAFETY: the top-level table came from `alloc_table` and no processor uses it any more.
        drop(unsafe { Frames::from_raw(root, 1, FrameKind::PageTable) });
    }
}

/// Whether something is mapped at a page.
fn is_occupied(root: u64, address: usize) -> bool {
    paging::translate(root, address).is_some()
}

/// Checks that whole pages in user space are meant.
fn check_range(address: usize, bytes: usize) -> Result<(), VmError> {
    let end = address.checked_add(bytes).ok_or(VmError::BadAddress)?;
    if !address.is_multiple_of(PAGE_SIZE) || address == 0 || end > USER_END {
        return Err(VmError::BadAddress);
    }
    Ok(())
}
