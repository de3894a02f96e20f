//! Arrays of which nothing is there until somebody wants it: what is noted of calls and stacks only
//! while somebody asks.

use crate::platform::{PAGE, platform};
use abi::{RpcError, RpcResult};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{AcqRel, Acquire};

/// `N` values from when they are made on, for good, since somebody may be at them at any time.
/// Before that, none. The host's tools find some by their names, and read the pointer.
#[repr(transparent)]
pub(crate) struct Late<T, const N: usize>(AtomicPtr<T>);

impl<T: Sync + 'static, const N: usize> Late<T, N> {
    /// None yet.
    ///
    /// # Safety
    /// Bytes of zero are a `T`.
    pub(crate) const unsafe fn new() -> Self {
        Late(AtomicPtr::new(null_mut()))
    }

    /// All of them, or none.
    pub(crate) fn get(&self) -> &'static [T] {
        // SAFETY: the pointer is null, or leads to zeroed pages with room for so many, which are
        // never given back.
        NonNull::new(self.0.load(Acquire)).map_or(&[], |first| unsafe {
            core::slice::from_raw_parts(first.as_ptr(), N)
        })
    }

    /// Makes them, unless they are there.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub(crate) fn make(&self) -> RpcResult<()> {
        if !self.get().is_empty() {
            return Ok(());
        }
        let count = (N * size_of::<T>()).div_ceil(PAGE);
        let pages = platform().pages(count).ok_or(RpcError::NoMemory)?;
        let new = pages.cast().as_ptr();
        let made = self.0.compare_exchange(null_mut(), new, AcqRel, Acquire);
        if made.is_err() {
            // SAFETY: somebody was faster, so nobody has seen them.
            unsafe { platform().free_pages(pages, count) };
        }
        Ok(())
    }
}
