//! What may cross from one domain to another, and how ownership moves with it.

use crate::bounds::deeper;
use crate::handle::RawHandle;
use crate::rpc::{RpcError, RpcResult};

/// Plain data: may be copied byte for byte to anywhere, holds no pointer and owns nothing.
///
/// # Safety
/// The type has no pointer, reference, handle or interior mutability, and no `Drop`.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

/// A type whose values may be passed in calls between domains.
///
/// # Safety
/// Everything that a value owns is on the shared heap or behind a handle, and [`transfer`] reaches
/// all of it. [`HANDLES`] is true if a value can hold a handle. [`DEPTH`] is more than that of
/// every part which `transfer` goes through. There is no interior mutability, so that an immutable
/// borrow lent to a callee stays unmodified.
///
/// [`transfer`]: Exchangeable::transfer
/// [`HANDLES`]: Exchangeable::HANDLES
/// [`DEPTH`]: Exchangeable::DEPTH
pub unsafe trait Exchangeable: Send + Sync + 'static {
    /// Whether a value can hold handles. Nothing else can fail to cross.
    const HANDLES: bool = false;

    /// How deep `transfer` may call itself: 1 for a value without parts that own something. The
    /// proxies refuse, when they are compiled, what is deeper than
    /// [`MOST_NESTED`](crate::bounds::MOST_NESTED).
    const DEPTH: usize = 1;

    /// Makes `transfer.to` the owner of every shared object and handle in the value.
    ///
    /// # Errors
    /// Those of `transfer.wrap`. The value is then still whole, but only parts of it have changed
    /// owner.
    ///
    /// # Safety
    /// Only a generated proxy may call this, and only for a value that really passes from
    /// `transfer.from` to `transfer.to`.
    #[inline(always)]
    unsafe fn transfer(&mut self, _transfer: &Transfer) -> RpcResult<()> {
        Ok(())
    }
}

/// One crossing of a boundary: who gives, who receives.
#[derive(Clone, Copy)]
pub struct Transfer {
    /// Control block of the giving domain, opaque here (`isolation` knows its type).
    pub from: *const (),
    /// Number of the receiving domain instance, as it stands in the owner tables.
    pub to: u32,
    /// The kernel's function that turns the giver's own handle into a proxy for the receiver. The
    /// kernel's own never fails, so that everything is the receiver's afterwards; it notes failures
    /// elsewhere.
    ///
    /// # Safety
    /// The handle is live, of the interface with that number, the giver's own, and crosses now: it
    /// is not used again.
    pub wrap: unsafe fn(&Transfer, RawHandle, u64) -> RpcResult<RawHandle>,
}

macro_rules! plain {
    ($($type:ty),*) => { $(
        // SAFETY: a number (or bool, char, unit): no pointer, nothing owned.
        unsafe impl Plain for $type {}
        // SAFETY: nothing owned, so there is nothing to transfer.
        unsafe impl Exchangeable for $type {}
    )* };
}

plain!(
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64,
    bool,
    char,
    ()
);

// SAFETY: an array of plain data is plain data.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

// SAFETY: transfers every element, and an array owns nothing else.
unsafe impl<T: Exchangeable, const N: usize> Exchangeable for [T; N] {
    const HANDLES: bool = T::HANDLES;
    const DEPTH: usize = deeper(&[T::DEPTH]);

    #[inline(always)]
    unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {
        for element in self {
            // SAFETY: the caller's duty is passed on unchanged; the element crosses with the array.
            unsafe { element.transfer(transfer)? };
        }
        Ok(())
    }
}

// SAFETY: a tag and perhaps plain data.
unsafe impl<T: Plain> Plain for Option<T> {}

// SAFETY: transfers the value if there is one.
unsafe impl<T: Exchangeable> Exchangeable for Option<T> {
    const HANDLES: bool = T::HANDLES;
    const DEPTH: usize = deeper(&[T::DEPTH]);

    #[inline(always)]
    unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {
        match self {
            // SAFETY: the caller's duty is passed on unchanged.
            Some(value) => unsafe { value.transfer(transfer) },
            None => Ok(()),
        }
    }
}

// SAFETY: a tag and plain data.
unsafe impl<T: Plain, E: Plain> Plain for Result<T, E> {}

// SAFETY: transfers whichever side is there.
unsafe impl<T: Exchangeable, E: Exchangeable> Exchangeable for Result<T, E> {
    const HANDLES: bool = T::HANDLES || E::HANDLES;
    const DEPTH: usize = deeper(&[T::DEPTH, E::DEPTH]);

    #[inline(always)]
    unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {
        match self {
            // SAFETY: the caller's duty is passed on unchanged.
            Ok(value) => unsafe { value.transfer(transfer) },
            // SAFETY: as above.
            Err(error) => unsafe { error.transfer(transfer) },
        }
    }
}

macro_rules! tuple {
    ($($name:ident.$index:tt),*) => {
        // SAFETY: a tuple of plain data is plain data.
        unsafe impl<$($name: Plain),*> Plain for ($($name,)*) {}
        // SAFETY: transfers every field, and a tuple owns nothing else.
        unsafe impl<$($name: Exchangeable),*> Exchangeable for ($($name,)*) {
            const HANDLES: bool = false $(|| $name::HANDLES)*;
            const DEPTH: usize = deeper(&[$($name::DEPTH),*]);

            #[inline(always)]
            unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {
                // SAFETY: the caller's duty is passed on unchanged; the fields cross with the
                // tuple.
                $( unsafe { self.$index.transfer(transfer)? }; )*
                Ok(())
            }
        }
    };
}

tuple!(A.0);
tuple!(A.0, B.1);
tuple!(A.0, B.1, C.2);
tuple!(A.0, B.1, C.2, D.3);

// SAFETY: a number.
unsafe impl Plain for RpcError {}
// SAFETY: nothing owned.
unsafe impl Exchangeable for RpcError {}
