//! Proxies as objects: what a handle to another domain points to, who holds it, and how it ends.
//!
//! An object that leaves its domain gets an [`Export`], which holds the one reference that crossed,
//! and each holder gets a [`Proxy`] of its own that points to the export. Proxies lie in a heap of
//! their own with the same owner tables as shared objects
//! ([`heap::PROXIES`](crate::memory::heap::PROXIES)), so that handing a proxy on is one store, and
//! the proxies of a dead holder are found by their owner. When the last proxy of an export goes,
//! the object's own drop runs inside its domain, guarded like any call; [`crate::call::drops`]
//! says on which thread.

mod crossing;
mod registry;

pub(crate) use registry::registry;
pub use registry::{ProxyEntry, TABLE_HEAD, proxy_entry, set_registry};

use crossing::wrap;
pub use crossing::{inward, outward};

use super::end::check_stack;
use crate::call::drops::{self, Dropper};
use crate::call::thread::{current, current_id, top};
use crate::domain::account::{Charge, Kind};
use crate::domain::budget;
use crate::domain::exports::Export;
use crate::domain::{BlockRef, Claim, ControlBlock, kernel_block, queues};
use crate::lock::Lock;
use crate::memory::heap::{PROXIES, Search, SharedHeap};
use crate::memory::owner::Owner;
use crate::platform::platform;
use crate::sync::{AtomicU64, AtomicUsize};
use abi::handle::{Elsewhere, HandleOps, Head, RawHandle};
use abi::{Handle, Interface, RpcError, RpcResult, Transfer, UserBuf};
use alloc::boxed::Box;
use core::any::TypeId;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// What an export is charged with, in bytes. An object of the kernel's comes with it, so it is a
/// little more than that.
const EXPORT_BYTES: usize = 256;

/// What a handle to another domain's object points to: generated code puts the methods on it.
#[repr(C)]
pub struct Proxy {
    inner: RawHandle,
    domain: *const ControlBlock,
    export: NonNull<Export>,
    pub(super) interface: u64,
    /// Where calls through it are counted; see [`crate::call::count`].
    pub(super) place: AtomicU64,
}

// SAFETY: what it points to is shared between all processors and lives as long as the proxy; the
// only things in it that change are atomic.
unsafe impl Send for Proxy {}
// SAFETY: as above.
unsafe impl Sync for Proxy {}

/// A proxy's whole slot.
#[repr(C)]
struct Slot {
    head: Head,
    proxy: Proxy,
}

static PROXY_OPS: HandleOps = HandleOps {
    release: release_proxy,
    retain: retain_proxy,
    kind: TypeId::of::<Elsewhere>(),
};

impl Proxy {
    /// The object behind it, as the two words of a trait object.
    #[inline(always)]
    pub fn inner(&self) -> RawHandle {
        self.inner
    }

    /// The domain behind it.
    #[inline(always)]
    pub fn domain(&self) -> *const ControlBlock {
        self.domain
    }
}

/// A share in the block at `block`, which a record or a proxy names.
fn share(block: *const ControlBlock) -> RpcResult<BlockRef> {
    if core::ptr::eq(block, kernel_block()) {
        return Ok(BlockRef::Kernel);
    }
    // SAFETY: named by a record or a proxy, so it is not freed.
    let id = unsafe { (*block).id };
    crate::domain::find(id)
        .map(BlockRef::Domain)
        .ok_or(RpcError::DomainCrashed)
}

/// A new export of the local object behind `inner`, with its first proxy for `owner`.
fn export(inner: RawHandle, interface: u64, domain: BlockRef, owner: u32) -> RpcResult<RawHandle> {
    // The proxy's slot may be one that others left, so it says nothing of how much memory there is.
    // The same goes for objects of the kernel, which are made just before they come here.
    if !platform().can_note() {
        return Err(RpcError::NoMemory);
    }
    let payer = domain.domain().cloned();
    let payer = payer.or_else(|| crate::domain::find(owner));
    let charge = payer.map(|payer| Charge::new(payer, Kind::Notes, EXPORT_BYTES));
    if charge.as_ref().is_some_and(Option::is_none) {
        return Err(RpcError::NoMemory);
    }
    let export = Box::new(Export::new(inner, domain, charge.flatten()));
    let export = NonNull::from(Box::leak(export));
    let made = new_proxy(export, interface, owner);
    if made.is_err() {
        // SAFETY: nobody else saw the export.
        drop(unsafe { Box::from_raw(export.as_ptr()) });
    }
    made
}

/// One more proxy for `export`, owned by `owner`.
fn new_proxy(export: NonNull<Export>, interface: u64, owner: u32) -> RpcResult<RawHandle> {
    let entry = proxy_entry(interface).ok_or(RpcError::Refused)?;
    let holder = crate::domain::find(owner);
    let bytes = SharedHeap::footprint(size_of::<Slot>());
    if let Some(holder) = &holder
        && budget::charge(holder, bytes) == Claim::Refused
    {
        return Err(RpcError::NoMemory);
    }
    let may_grow = |pages| holder.as_ref().is_none_or(|holder| holder.may_take(pages));
    // Nobody's until it is whole: whoever looks through the heap sees only whole proxies.
    let slot = PROXIES
        .allocate_if(size_of::<Slot>(), Owner::UNFINISHED, may_grow)
        .ok_or(RpcError::NoMemory)?
        .cast::<Slot>();
    #[cfg(test)]
    if crate::sync::is_broken(crate::sync::Broken::OwnerEarly) {
        // What a former proxy left there would look whole.
        // SAFETY: the slot is this thread's alone.
        unsafe {
            (&raw mut (*slot.as_ptr()).proxy.interface).write(0);
            (&raw mut (*slot.as_ptr()).proxy.domain).write(kernel_block());
            abi::shared::owner_cell(slot.cast()).store(owner, Ordering::Release);
        }
        crate::sync::spin();
    }
    crate::sync::point();
    // SAFETY: the caller has the export; it stays at least until its last proxy goes.
    unsafe {
        export.as_ref().proxies.fetch_add(1, Ordering::Relaxed);
        let (inner, domain) = (export.as_ref().object, export.as_ref().domain.as_ptr());
        let head = Head {
            ops: &PROXY_OPS,
            references: core::sync::atomic::AtomicUsize::new(1),
        };
        let proxy = Proxy {
            inner,
            domain,
            export,
            interface,
            place: AtomicU64::new(crate::call::count::NOWHERE),
        };
        slot.write(Slot { head, proxy });
        abi::shared::owner_cell(slot.cast()).store(owner, Ordering::Release);
        let data = (&raw mut (*slot.as_ptr()).proxy).cast();
        Ok(RawHandle {
            data,
            vtable: entry.vtable(),
        })
    }
}

/// Whether `data` is the data pointer of a proxy.
fn is_proxy(data: *const u8) -> bool {
    // SAFETY: the data pointer of a live handle has a head in front.
    unsafe { core::ptr::eq((*data.cast::<Head>().sub(1)).ops, &PROXY_OPS) }
}

/// Whether `data` is the data pointer of a proxy for an object of the kernel itself.
///
/// # Safety
/// It is the data pointer of a live handle.
pub unsafe fn is_kernel_object(data: *const u8) -> bool {
    // SAFETY: a live proxy, if it is one.
    is_proxy(data) && unsafe { core::ptr::eq((*data.cast::<Proxy>()).domain, kernel_block()) }
}

/// The kernel's own object of type `T` that `handle`, which some domain gave, leads to; `None`:
/// another's object, or of another type. For the kernel alone.
pub fn kernel_object<I, T>(handle: &Handle<I>) -> Option<&T>
where
    I: ?Sized + Interface,
    T: Send + Sync + 'static,
{
    // SAFETY: the handle is live as long as it is borrowed.
    unsafe { kernel_object_at(handle.as_raw().data) }
}

/// As [`kernel_object`], for the data pointer of a handle.
///
/// # Safety
/// The handle is live for `'a`.
pub unsafe fn kernel_object_at<'a, T: Send + Sync + 'static>(data: *const u8) -> Option<&'a T> {
    // SAFETY: a live handle's proxy is live, and keeps the object. Behind a proxy of the kernel's
    // domain is an object in the kernel's heap, made by `Handle::new`: its head says its type, by
    // the kernel's own image, and it follows the head.
    unsafe {
        if !is_kernel_object(data) {
            return None;
        }
        let inner = (*data.cast::<Proxy>()).inner;
        let is_one = (*inner.head().as_ptr()).ops.kind == TypeId::of::<T>();
        is_one.then(|| &*inner.data.cast::<T>())
    }
}

/// As [`kernel_object`], for the handle of an address space that was borrowed to make `memory`.
pub fn kernel_object_of<'a, T>(memory: &'a UserBuf<'_>) -> Option<&'a T>
where
    T: Send + Sync + 'static,
{
    // SAFETY: there is no such value without that borrow, which lasts longer than this one. Should
    // the lender be dead, his proxy is there until no record names him: none of those that lead
    // here has ended.
    unsafe { kernel_object_at(memory.space()?) }
}

/// Another proxy for the same object, for the domain whose code runs.
unsafe extern "C" fn retain_proxy(data: *mut u8) -> *mut u8 {
    check_stack();
    // SAFETY: the data pointer of a live proxy.
    let proxy = unsafe { &*data.cast::<Proxy>() };
    new_proxy(proxy.export, proxy.interface, current_id())
        .map_or(core::ptr::null_mut(), |raw| raw.data)
}

/// Drops a proxy.
unsafe extern "C" fn release_proxy(data: *mut u8) {
    check_stack();
    // SAFETY: the data pointer of a live proxy whose handle is being dropped.
    unsafe {
        if crate::call::thread::stack_left() < RELEASE_RESERVE {
            bury(data.cast());
        } else {
            end_proxy(data.cast(), Dropper::Anybody);
        }
    }
}

/// Stack that must be left to drop an object right away. A drop may drop handles whose objects drop
/// handles, and so on: whoever is at the end of such a chain must not die of its length.
const RELEASE_RESERVE: usize = crate::call::CALL_RESERVE + 8 * 1024;

/// Proxies that are to be ended where there is more stack: a list through their `inner.data`.
static BURIED: Lock<Buried> = Lock::new(Buried(core::ptr::null_mut()));

struct Buried(*mut Proxy);

// SAFETY: the proxies in the list belong to the list alone.
unsafe impl Send for Buried {}

/// Leaves a proxy to the undertaker.
///
/// # Safety
/// As for [`end_proxy`].
unsafe fn bury(proxy: *mut Proxy) {
    // SAFETY: nobody uses the proxy any more; from here on its former owner's end does not reach
    // it, and no search finds it. What ends an object is in the export, so the proxy's own pointer
    // is free for the list.
    unsafe {
        let slot = NonNull::new_unchecked(proxy.cast::<u8>());
        abi::shared::owner_cell(slot).store(Owner::UNFINISHED.number(), Ordering::Relaxed);
        let mut buried = BURIED.lock();
        (*proxy).inner.data = buried.0.cast();
        buried.0 = proxy;
    }
    queues::work_waits();
}

/// Whether [`end_buried`] has something to do.
pub(crate) fn any_buried() -> bool {
    !BURIED.lock().0.is_null()
}

/// Ends a proxy that was buried, if there is one.
pub(crate) fn end_buried() {
    let proxy = {
        let mut buried = BURIED.lock();
        let proxy = buried.0;
        if proxy.is_null() {
            return;
        }
        // SAFETY: in the list, so it is live and ours.
        buried.0 = unsafe { (*proxy).inner.data.cast() };
        proxy
    };
    // SAFETY: off the list, so nobody else has it.
    unsafe { end_proxy(proxy, Dropper::Undertaker) };
}

/// Ends the proxy and, if it was the last of its export, the object behind it.
///
/// # Safety
/// Nobody uses the proxy any more.
unsafe fn end_proxy(proxy: *mut Proxy, dropper: Dropper) {
    // SAFETY: live until it is freed here; the export lives until its last proxy is gone.
    unsafe {
        let export = (*proxy).export;
        let slot = proxy.cast::<u8>().sub(size_of::<Head>());
        PROXIES.free(NonNull::new_unchecked(slot));
        if take_one(&export.as_ref().proxies) == 1 {
            // After all that others did with the export. A load, as ThreadSanitizer does not
            // understand a fence.
            export.as_ref().proxies.load(Ordering::Acquire);
            drops::carry_out(Box::from_raw(export.as_ptr()), dropper);
        }
    }
}

/// Counts one proxy less; how many there were.
fn take_one(proxies: &AtomicUsize) -> usize {
    #[cfg(test)]
    if crate::sync::is_broken(crate::sync::Broken::TornCount) {
        let count = proxies.load(Ordering::Relaxed);
        crate::sync::spin();
        proxies.store(count - 1, Ordering::Relaxed);
        return count;
    }
    proxies.fetch_sub(1, Ordering::Release)
}

/// Proxies that are looked for together: the lock is not held when they are ended.
const AT_ONCE: usize = if cfg!(test) { 2 } else { 64 };

/// Ends every proxy that `owner`, who is dead, held; how many.
pub(crate) fn release_all_of(owner: Owner) -> usize {
    let mut slots = [NonNull::dangling(); AT_ONCE];
    let mut search = Search::new(owner);
    let mut count = 0;
    loop {
        let found = PROXIES.some_of(&mut search, &mut slots);
        if found == 0 {
            return count;
        }
        for slot in &slots[..found] {
            // SAFETY: a slot of the proxy heap holds a `Slot`; its owner is dead and has no thread
            // inside. Nobody else ends it, so it is still there after those before it were ended.
            unsafe {
                let proxy = &raw mut (*slot.cast::<Slot>().as_ptr()).proxy;
                end_proxy(proxy, Dropper::Undertaker);
            }
        }
        count += found;
    }
}

/// Passes `value` from the domain at `from` to the domain with number `to`. A handle that cannot
/// pass leads [`nowhere`] afterwards, and an error says so; everything else has passed.
///
/// # Safety
/// It really passes, and neither domain is cleared away meanwhile. The top record is linked.
pub(crate) unsafe fn pass(
    value: &mut impl abi::Exchangeable,
    from: *const ControlBlock,
    to: u32,
) -> RpcResult<()> {
    let from = from.cast();
    // SAFETY: the caller's duty.
    unsafe {
        crate::call::clear_failure();
        value.transfer(&Transfer { from, to, wrap })?;
        crate::call::failure(top()).map_or(Ok(()), Err)
    }
}

/// Handles that `owner` holds.
pub fn count_of(owner: Owner) -> usize {
    PROXIES.count_of(owner)
}

/// Interface and serving domain of handle number `index` that `owner` holds.
pub fn held(owner: Owner, index: usize) -> Option<(&'static str, abi::Text<32>)> {
    PROXIES.with_nth(owner, index, |slot| {
        // SAFETY: a slot that somebody owns who can be looked for is whole, and it cannot be freed
        // while `with_nth` looks at it: neither can its export, which holds a share in the block.
        // Its owner may just be ending it, so only fields that nobody writes are read, and none is
        // borrowed.
        let (interface, block) = unsafe {
            let proxy = &raw const (*slot.cast::<Slot>().as_ptr()).proxy;
            ((*proxy).interface, &*(*proxy).domain)
        };
        let name = proxy_entry(interface).map_or("?", |entry| entry.name);
        let domain = if core::ptr::eq(block, kernel_block()) {
            abi::Text::new("kernel")
        } else {
            block.name()
        };
        (name, domain)
    })
}

/// Whether the domain whose code runs is the kernel.
pub fn in_kernel() -> bool {
    core::ptr::eq(current(), kernel_block())
}
