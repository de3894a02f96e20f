//! What a domain has beside shared objects: its private heap, its image, verified files.

use super::ControlBlock;
use super::debugger::{Change, image_changes};
use crate::memory::kept::Loaded;
use crate::platform::{PAGE, platform};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::any::Any;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// A verified file. Only the loader, who knows its type, looks into it.
pub(crate) type HeldFile = Arc<dyn Any + Send + Sync>;

pub(super) struct Memory {
    /// Private heap: start address and pages of each run.
    pub(super) runs: BTreeMap<usize, usize>,
    pub(super) image: Option<Loaded>,
    /// Files that it had verified, and the number of the next one.
    pub(super) files: BTreeMap<u64, HeldFile>,
    pub(super) next_file: u64,
}

impl ControlBlock {
    /// Notes a run of the private heap.
    pub(crate) fn note_run(&self, start: NonNull<u8>, count: usize) {
        let mut memory = self.memory.lock();
        memory.runs.insert(start.as_ptr() as usize, count);
    }

    /// Takes back the note of a run; its pages.
    pub(crate) fn forget_run(&self, start: NonNull<u8>) -> Option<usize> {
        self.memory.lock().runs.remove(&(start.as_ptr() as usize))
    }

    /// Keeps a file that it had verified, until it is forgotten or this domain is gone; its number.
    /// A thread that is in the domain, or in a call of its, calls this.
    pub(crate) fn note_file(&self, file: HeldFile) -> u64 {
        let mut memory = self.memory.lock();
        let number = memory.next_file;
        memory.next_file += 1;
        memory.files.insert(number, file);
        number
    }

    /// The file with this number, if it is still kept.
    pub(crate) fn file(&self, number: u64) -> Option<HeldFile> {
        self.memory.lock().files.get(&number).cloned()
    }

    /// Takes back the note of a file. To be dropped without a lock.
    pub(crate) fn forget_file(&self, number: u64) -> Option<HeldFile> {
        self.memory.lock().files.remove(&number)
    }

    /// Makes `image` its image, with which its group has been charged.
    pub(super) fn set_image(&self, image: Loaded) {
        let space = image.space();
        let start = space.start().as_ptr() as usize;
        self.image_start.store(start, Ordering::Relaxed);
        self.image_end
            .store(start + space.pages() * PAGE, Ordering::Relaxed);
        self.memory.lock().image = Some(image);
    }

    /// Overwrites code at `offset` of its image with `code`, for the fault campaign.
    ///
    /// # Errors
    /// [`Refused`](abi::RpcError::Refused) if there is no image with so many bytes. It is as it was
    /// then.
    ///
    /// # Safety
    /// The place is in executable pages; nobody executes code of the domain, or ends it, meanwhile;
    /// and the code can do no harm outside of the domain.
    #[cfg(feature = "faults")]
    pub unsafe fn plant(&self, offset: usize, code: &[u8]) -> Result<(), abi::RpcError> {
        use crate::platform::Protection;
        // The lock is not held while pages change their rights, for which processors wait for each
        // other.
        let image = self.memory.lock().image.take();
        let mut loaded = image.ok_or(abi::RpcError::Refused)?;
        loaded.is_altered();
        let image = loaded.space();
        let end = offset.saturating_add(code.len());
        let fits = !code.is_empty() && end <= image.pages() * PAGE;
        if fits {
            let first = offset / PAGE;
            let count = end.div_ceil(PAGE) - first;
            image.protect(first, count, Protection::ReadWrite);
            // SAFETY: inside the image, writable now; by the caller's duty nobody executes it.
            unsafe {
                let target = image.start().as_ptr().add(offset);
                target.copy_from_nonoverlapping(code.as_ptr(), code.len());
            }
            image.protect(first, count, Protection::ReadExecute);
        }
        self.memory.lock().image = Some(loaded);
        fits.then_some(()).ok_or(abi::RpcError::Refused)
    }

    /// Frees private heap, verified files and image, unless that is kept for the next instance;
    /// bytes without those of files. Nobody is inside.
    pub(crate) fn free_memory(&self) -> usize {
        let (runs, image, files) = {
            let mut memory = self.memory.lock();
            let runs = core::mem::take(&mut memory.runs);
            let files = core::mem::take(&mut memory.files);
            (runs, memory.image.take(), files)
        };
        drop(files);
        let bytes = self.heap_bytes() + self.image_bytes();
        self.give_memory(self.heap_charge(runs.len()) + self.image_bytes());
        for (start, count) in runs {
            if let Some(start) = NonNull::new(start as *mut u8) {
                // SAFETY: the run belonged to the dead domain alone.
                unsafe { platform().free_pages(start, count) };
            }
        }
        image_changes(Change::Left, self);
        self.counters.pages.store(0, Ordering::Relaxed);
        self.image_start.store(0, Ordering::Relaxed);
        self.image_end.store(0, Ordering::Relaxed);
        if let Some(image) = image {
            image.retire();
        }
        bytes
    }
}
