//! Owned references to interfaces.
//!
//! A [`Handle<dyn I>`](Handle) behaves like a `Box<dyn I>` that may cross domains. Inside the
//! domain that made it, it points to the object itself; when a call carries it into another domain,
//! the generated proxy on the way replaces it by a proxy of its own, so that no domain ever holds a
//! pointer into another's heap.
//!
//! In front of every object that a handle points to (the value, or the kernel's proxy) stands a
//! [`Head`] that says how to drop and to duplicate it; so a handle need not know which of the two
//! it is.

use crate::api::api;
use crate::exchange::{Exchangeable, Transfer};
use crate::rpc::{RpcError, RpcResult};
use alloc::alloc::{Layout, alloc, dealloc};
use core::any::TypeId;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, align_of, size_of};
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Implemented by `idlc` for every `dyn I` of an interface `I`.
///
/// # Safety
/// `NUMBER` is unique to the interface and its text; the type is a trait object of that interface.
pub unsafe trait Interface: Send + Sync + 'static {
    /// Derived from the interface's name, stable between builds.
    const NUMBER: u64;
    /// The interface's name.
    const NAME: &'static str;
}

/// Implemented by `idlc` for `dyn I` and every type that implements `I`: the unsizing coercion.
///
/// # Safety
/// `object` gives back the very pointer that it was given. A handle believes the result, so that
/// safe code which could implement this could make a handle to any address. It cannot:
///
/// ```compile_fail,E0200
/// #![forbid(unsafe_code)]
/// use abi::handle::ObjectOf;
/// struct Mine;
/// trait Local {}
/// impl ObjectOf<Mine> for dyn Local {
///     fn object(_: *mut Mine) -> *mut Self {
///         unimplemented!()
///     }
/// }
/// ```
pub unsafe trait ObjectOf<T>: Interface {
    /// The same pointer, as a trait object.
    fn object(pointer: *mut T) -> *mut Self;
}

/// How to drop and duplicate what a handle points to.
///
/// # Safety
/// Both take the data pointer of a live handle to an object with these very functions in its head.
/// What `release` is given is not used any more.
#[repr(C)]
pub struct HandleOps {
    /// Gives up one reference.
    pub release: unsafe extern "C" fn(data: *mut u8),
    /// Takes one more reference; the data pointer of the new handle, or null if there is no memory.
    pub retain: unsafe extern "C" fn(data: *mut u8) -> *mut u8,
    /// The type of the object, or [`Elsewhere`] where it is none of the domain's own. It tells
    /// types of one image apart, and says nothing in another.
    pub kind: TypeId,
}

/// What an object is called that is in another domain.
pub struct Elsewhere;

/// Stands right in front of every object that a handle points to.
#[repr(C, align(16))]
pub struct Head {
    /// What to do with the object.
    pub ops: &'static HandleOps,
    /// References to the object: handles inside its domain, and the kernel's export record.
    pub references: AtomicUsize,
}

/// A handle taken apart: the two words of the trait object pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RawHandle {
    /// The object (or proxy).
    pub data: *mut u8,
    /// Its method table.
    pub vtable: *const (),
}

impl RawHandle {
    /// The head of what the handle points to.
    ///
    /// # Safety
    /// The handle is live.
    pub unsafe fn head(&self) -> NonNull<Head> {
        // SAFETY: every object behind a handle was allocated with a head in front (see
        // `Handle::new` and `isolation`'s proxies), so the address is inside the same allocation
        // and not null.
        unsafe { NonNull::new_unchecked(self.data.cast::<Head>().sub(1)) }
    }
}

/// An owned reference to an interface. See the module's documentation.
#[repr(transparent)]
pub struct Handle<I: ?Sized + Interface>(NonNull<I>);

// SAFETY: interfaces are `Send + Sync`, and the reference count is atomic.
unsafe impl<I: ?Sized + Interface> Send for Handle<I> {}
// SAFETY: as above.
unsafe impl<I: ?Sized + Interface> Sync for Handle<I> {}

#[repr(C)]
struct Local<T> {
    head: Head,
    value: T,
}

impl<T: 'static> Local<T> {
    const OPS: &'static HandleOps = &HandleOps {
        release: release_local::<T>,
        retain: retain_local,
        kind: TypeId::of::<T>(),
    };
}

/// Drops one reference to a local object, and the object with the last one.
///
/// # Safety
/// As [`HandleOps::release`], of a `Local<T>`.
unsafe extern "C" fn release_local<T>(data: *mut u8) {
    // SAFETY: `data` is the `value` of a `Local<T>`, whose head is right before it (both `repr(C)`,
    // the value's alignment at most the head's size).
    unsafe {
        let local = data.sub(size_of::<Head>()).cast::<Local<T>>();
        if (*local).head.references.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        // After all that others did with the object. A load, as ThreadSanitizer does not understand
        // a fence.
        (*local).head.references.load(Ordering::Acquire);
        (&raw mut (*local).value).drop_in_place();
        dealloc(local.cast(), Layout::new::<Local<T>>());
    }
}

/// Counts one more reference to a local object.
///
/// # Safety
/// As [`HandleOps::retain`].
unsafe extern "C" fn retain_local(data: *mut u8) -> *mut u8 {
    // SAFETY: a live handle's object has a head in front.
    unsafe {
        (*data.cast::<Head>().sub(1))
            .references
            .fetch_add(1, Ordering::Relaxed)
    };
    data
}

impl<I: ?Sized + Interface> Handle<I> {
    /// A handle to a new object in this domain's private heap.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`]; the value is dropped.
    pub fn new<T>(value: T) -> RpcResult<Self>
    where
        T: Send + Sync + 'static,
        I: ObjectOf<T>,
    {
        const { assert!(align_of::<T>() <= size_of::<Head>(), "over-aligned") };
        // SAFETY: the layout is not empty, it has a head.
        let local = unsafe { alloc(Layout::new::<Local<T>>()) }.cast::<Local<T>>();
        let local = NonNull::new(local).ok_or(RpcError::NoMemory)?;
        let head = Head {
            ops: Local::<T>::OPS,
            references: AtomicUsize::new(1),
        };
        // SAFETY: fresh memory of the right layout.
        unsafe { local.write(Local { head, value }) };
        // SAFETY: the field of a live allocation is not null.
        Ok(Handle(unsafe {
            NonNull::new_unchecked(I::object(&raw mut (*local.as_ptr()).value))
        }))
    }

    /// Another handle to the same object.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`], or [`RpcError::DomainCrashed`] if the object's domain is dead.
    pub fn duplicate(&self) -> RpcResult<Self> {
        let mut raw = self.as_raw();
        // SAFETY: the handle is live, so its head is.
        raw.data = unsafe { ((*raw.head().as_ptr()).ops.retain)(raw.data) };
        if raw.data.is_null() {
            return Err(RpcError::NoMemory);
        }
        // SAFETY: `retain` gave a live object of the same interface with a reference for us.
        Ok(unsafe { Self::from_raw(raw) })
    }

    /// The handle without its type.
    pub fn into_any(self) -> AnyHandle {
        let raw = ManuallyDrop::new(self).as_raw();
        AnyHandle {
            raw,
            interface: I::NUMBER,
            _owned: PhantomData,
        }
    }

    /// The two words of the pointer. Ownership stays with the handle.
    pub fn as_raw(&self) -> RawHandle {
        const { assert!(size_of::<NonNull<I>>() == size_of::<RawHandle>()) };
        // SAFETY: a pointer to a trait object is two words, data and method table, in that order
        // (checked at run time by the ABI self-test, which compares with the parts of a known
        // object).
        unsafe { core::mem::transmute_copy(&self.0) }
    }

    /// The inverse of [`as_raw`](Handle::as_raw).
    ///
    /// # Safety
    /// `raw` came from a handle of the same interface, and its reference is given to the result.
    pub unsafe fn from_raw(raw: RawHandle) -> Self {
        // SAFETY: the caller's words are those of a live trait object pointer of type `I`.
        Handle(unsafe { core::mem::transmute_copy(&raw) })
    }
}

impl<I: ?Sized + Interface> Deref for Handle<I> {
    type Target = I;
    #[inline(always)]
    fn deref(&self) -> &I {
        // SAFETY: a handle owns a reference to a live object.
        unsafe { self.0.as_ref() }
    }
}

impl<I: ?Sized + Interface> Drop for Handle<I> {
    fn drop(&mut self) {
        let raw = self.as_raw();
        // SAFETY: the handle owns one reference, which is given up here.
        unsafe { ((*raw.head().as_ptr()).ops.release)(raw.data) };
    }
}

impl<I: ?Sized + Interface> core::fmt::Debug for Handle<I> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(I::NAME)
    }
}

// SAFETY: the handle itself is all there is, and it is replaced by the receiver's.
unsafe impl<I: ?Sized + Interface> Exchangeable for Handle<I> {
    const HANDLES: bool = true;

    #[inline]
    unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {
        // SAFETY: the handle is live and crosses now; `wrap` takes its reference and gives one that
        // the receiver may use. On an error the handle is unchanged.
        unsafe {
            let raw = (transfer.wrap)(transfer, self.as_raw(), I::NUMBER)?;
            (&raw mut *self).write(Handle::from_raw(raw));
        }
        Ok(())
    }
}

/// A handle whose interface is known only at run time: for wiring, where one call carries many
/// kinds.
pub struct AnyHandle {
    raw: RawHandle,
    interface: u64,
    _owned: PhantomData<*mut ()>,
}

// SAFETY: like `Handle`, of an unknown interface; all interfaces are `Send + Sync`.
unsafe impl Send for AnyHandle {}
// SAFETY: as above.
unsafe impl Sync for AnyHandle {}

impl AnyHandle {
    /// The number of the interface.
    pub fn interface(&self) -> u64 {
        self.interface
    }

    /// The handle with its type, if it is of interface `I`; otherwise itself again.
    pub fn downcast<I: ?Sized + Interface>(self) -> Result<Handle<I>, AnyHandle> {
        if self.interface != I::NUMBER {
            return Err(self);
        }
        let raw = ManuallyDrop::new(self).raw;
        // SAFETY: the number names the interface, and both sides were built from the same
        // definition (the ABI fingerprint was compared before the domain started).
        Ok(unsafe { Handle::from_raw(raw) })
    }

    /// Another handle to the same object.
    ///
    /// # Errors
    /// As [`Handle::duplicate`].
    pub fn duplicate(&self) -> RpcResult<Self> {
        // SAFETY: the handle is live, so its head is.
        let data = unsafe { ((*self.raw.head().as_ptr()).ops.retain)(self.raw.data) };
        if data.is_null() {
            return Err(RpcError::NoMemory);
        }
        let raw = RawHandle { data, ..self.raw };
        Ok(AnyHandle {
            raw,
            interface: self.interface,
            _owned: PhantomData,
        })
    }
}

impl Drop for AnyHandle {
    fn drop(&mut self) {
        // SAFETY: the handle owns one reference, which is given up here.
        unsafe { ((*self.raw.head().as_ptr()).ops.release)(self.raw.data) };
    }
}

impl core::fmt::Debug for AnyHandle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "interface {:#x}", self.interface)
    }
}

// SAFETY: as for `Handle`.
unsafe impl Exchangeable for AnyHandle {
    const HANDLES: bool = true;

    #[inline]
    unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {
        // SAFETY: as for `Handle`; the number is that of the handle's true interface. Overwriting
        // `raw` drops nothing, it is two plain words.
        self.raw = unsafe { (transfer.wrap)(transfer, self.raw, self.interface)? };
        Ok(())
    }
}

/// Whether `handle` leads to an object of the kernel itself, so that what it answers can be
/// believed.
pub fn is_kernel_object<I: ?Sized + Interface>(handle: &Handle<I>) -> bool {
    // SAFETY: the data pointer is that of a live handle.
    unsafe { (api().is_kernel_object)(handle.as_raw().data) != 0 }
}
