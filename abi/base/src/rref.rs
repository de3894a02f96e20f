//! Owned objects on the shared heap: [`RRef`] for one value, [`RVec`] for a run of plain data.

use crate::api::api;
use crate::bounds::deeper;
use crate::exchange::{Exchangeable, Plain, Transfer};
use crate::rpc::{RpcError, RpcResult};
use crate::shared::owner_cell;
use core::fmt;
use core::mem::{align_of, size_of};
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// An owned value on the shared heap. Passing it in a call moves it to the other domain; `&RRef<T>`
/// lends it for the length of the call. If its owner crashes it is freed.
pub struct RRef<T: Exchangeable>(NonNull<T>);

// SAFETY: an owned pointer to a value that may itself be sent and shared.
unsafe impl<T: Exchangeable> Send for RRef<T> {}
// SAFETY: as above; `&RRef<T>` gives only `&T`.
unsafe impl<T: Exchangeable> Sync for RRef<T> {}

impl<T: Exchangeable> RRef<T> {
    /// Moves `value` to the shared heap.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`]; the value is dropped.
    #[inline]
    pub fn new(value: T) -> RpcResult<Self> {
        const {
            assert!(
                align_of::<T>() <= crate::shared::SMALLEST_SLOT,
                "over-aligned"
            )
        };
        let place = shared_alloc(size_of::<T>())?.cast::<T>();
        // SAFETY: the heap gave room for a `T`, aligned to 64 bytes, that nobody else uses.
        unsafe { place.write(value) };
        Ok(RRef(place))
    }

    /// Takes the value off the shared heap.
    #[inline]
    pub fn into_inner(self) -> T {
        let place = self.0;
        core::mem::forget(self);
        // SAFETY: `place` holds a value that we own; it is read once and its slot freed without a
        // drop.
        unsafe {
            let value = place.read();
            (api().shared_free)(place.as_ptr().cast());
            value
        }
    }
}

/// Room for `bytes` bytes on the shared heap, owned by the running domain.
#[inline]
fn shared_alloc(bytes: usize) -> RpcResult<NonNull<u8>> {
    NonNull::new((api().shared_alloc)(bytes)).ok_or(RpcError::NoMemory)
}

impl<T: Exchangeable> Deref for RRef<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: an `RRef` always points to a live value that it owns.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Exchangeable> DerefMut for RRef<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` excludes every borrow.
        unsafe { self.0.as_mut() }
    }
}

impl<T: Exchangeable> Drop for RRef<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the value is ours and is not used again.
        unsafe {
            self.0.drop_in_place();
            (api().shared_free)(self.0.as_ptr().cast());
        }
    }
}

impl<T: Exchangeable + fmt::Debug> fmt::Debug for RRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

// SAFETY: transfers the object itself and then what the value in it owns. There are no handles in
// shared objects: idlc refuses them.
unsafe impl<T: Exchangeable> Exchangeable for RRef<T> {
    const DEPTH: usize = deeper(&[T::DEPTH]);

    #[inline(always)]
    unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {
        // SAFETY: an `RRef` points to a live shared object.
        unsafe { owner_cell(self.0.cast()).store(transfer.to, Ordering::Relaxed) };
        // SAFETY: the caller's duty is passed on: the value crosses with the object that holds it.
        unsafe { (**self).transfer(transfer) }
    }
}

/// An owned run of plain values on the shared heap, of a length fixed when it is made.
pub struct RVec<T: Plain> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: an owned pointer to plain data.
unsafe impl<T: Plain> Send for RVec<T> {}
// SAFETY: as above; `&RVec<T>` gives only `&[T]`.
unsafe impl<T: Plain> Sync for RVec<T> {}

impl<T: Plain> RVec<T> {
    /// A copy of `values`.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub fn from_slice(values: &[T]) -> RpcResult<Self> {
        let vec = Self::allocate(values.len())?;
        // SAFETY: the new run has room for `len` values and does not overlap `values`.
        unsafe { core::ptr::copy_nonoverlapping(values.as_ptr(), vec.start.as_ptr(), vec.len) };
        Ok(vec)
    }

    /// `len` copies of `value`.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub fn filled(value: T, len: usize) -> RpcResult<Self> {
        let vec = Self::allocate(len)?;
        for index in 0..len {
            // SAFETY: `index` is inside the run; writing initialises it.
            unsafe { vec.start.add(index).write(value) };
        }
        Ok(vec)
    }

    /// Bytes of memory that a run of `len` values takes.
    pub fn footprint(len: usize) -> usize {
        crate::shared::footprint(len.saturating_mul(size_of::<T>()))
    }

    /// Bytes of memory that it takes, which is more than its length needs if it was
    /// [`truncated`](Self::truncated). Whoever keeps what others sent counts this.
    pub fn taken(&self) -> usize {
        // SAFETY: an `RVec` points to a live shared object.
        unsafe { crate::shared::taken(self.start.cast()) }
    }

    /// The run with its first `len` values only; a `len` beyond its end changes nothing. The memory
    /// behind the cut is freed with the rest.
    pub fn truncated(mut self, len: usize) -> Self {
        self.len = self.len.min(len);
        self
    }

    fn allocate(len: usize) -> RpcResult<Self> {
        const {
            assert!(
                align_of::<T>() <= crate::shared::SMALLEST_SLOT,
                "over-aligned"
            )
        };
        let bytes = len.checked_mul(size_of::<T>()).ok_or(RpcError::NoMemory)?;
        let start = shared_alloc(bytes)?.cast();
        Ok(RVec { start, len })
    }
}

impl RVec<u8> {
    /// `len` zeros; for many it costs less than [`filled`](Self::filled).
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub fn zeroed(len: usize) -> RpcResult<Self> {
        let vec = Self::allocate(len)?;
        // A larger object is zero already, see `Api::shared_alloc`.
        if len <= crate::shared::LARGEST_SLOT {
            // SAFETY: the run has room for `len` bytes that nobody else uses.
            unsafe { vec.start.as_ptr().write_bytes(0, len) };
        }
        Ok(vec)
    }
}

impl<T: Plain> Deref for RVec<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the run is live, owned and initialised over its whole length.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for RVec<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` excludes every borrow.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> Drop for RVec<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the run is ours; plain data needs no drop.
        unsafe { (api().shared_free)(self.start.as_ptr().cast()) };
    }
}

impl<T: Plain + fmt::Debug> fmt::Debug for RVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

// SAFETY: transfers the run; plain data owns nothing else.
unsafe impl<T: Plain> Exchangeable for RVec<T> {
    #[inline(always)]
    unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {
        // SAFETY: an `RVec` points to a live shared object.
        unsafe { owner_cell(self.start.cast()).store(transfer.to, Ordering::Relaxed) };
        Ok(())
    }
}
