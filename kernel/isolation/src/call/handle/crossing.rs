//! What happens to handles on their way into a call and out of it.

use super::{export, is_proxy, share};
use crate::call::Record;
use crate::call::drops;
use crate::domain::ControlBlock;
use crate::sync::point;
use abi::handle::{Elsewhere, HandleOps, Head, RawHandle};
use abi::{RpcResult, Transfer};
use core::any::TypeId;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// The crossing of arguments into `callee`, which is that of `record`, the top record: it is given
/// so that it need not be read again from where it was just written.
///
/// # Safety
/// For generated proxies, between `enter` and the call.
#[inline(always)]
pub unsafe fn inward(record: *const Record, callee: *const ControlBlock) -> Transfer {
    point();
    // SAFETY: a linked record; its caller is the callee of the one below (every thread has a root
    // record).
    unsafe {
        let from = (*(*record).previous).domain;
        Transfer {
            from: from.cast(),
            to: (*callee).id,
            wrap,
        }
    }
}

/// The crossing of the result out of the callee of `record`, the top record, to its caller.
///
/// # Safety
/// For generated proxies, between the call and `leave`.
#[inline(always)]
pub unsafe fn outward(record: *const Record) -> Transfer {
    #[cfg(test)]
    if crate::sync::is_broken(crate::sync::Broken::LeaveFirst) {
        // SAFETY: wrong on purpose, but the chain is intact.
        unsafe { crate::call::thread::set_top((*record).previous) };
        crate::sync::spin();
    }
    point();
    // SAFETY: as for `inward`.
    unsafe {
        Transfer {
            from: (*record).domain.cast(),
            to: (*(*(*record).previous).domain).id,
            wrap,
        }
    }
}

/// Turns a handle of the giver into one that the receiver may hold; see [`Transfer::wrap`].
///
/// It always gives one, so that no value is left half handed over: where it has to fail, it gives
/// up the giver's handle, notes why in the record of the call, and answers [`nowhere`]. The proxy
/// then drops the whole value, which belongs to the receiver by then, and gives an error to the
/// caller.
///
/// # Safety
/// That of [`Transfer::wrap`], for a crossing between [`inward`] or [`outward`] and the end of the
/// call.
pub(super) unsafe fn wrap(
    transfer: &Transfer,
    raw: RawHandle,
    interface: u64,
) -> RpcResult<RawHandle> {
    // SAFETY: the caller's duty is passed on unchanged.
    unsafe {
        try_wrap(transfer, raw, interface).or_else(|error| {
            crate::call::note_failure(error);
            drops::release_of(transfer.from.cast(), &raw);
            Ok(nowhere(raw.vtable))
        })
    }
}

/// As [`wrap`], but with an error as error; the giver's handle is unchanged then.
///
/// # Safety
/// As for [`wrap`].
unsafe fn try_wrap(transfer: &Transfer, raw: RawHandle, interface: u64) -> RpcResult<RawHandle> {
    if is_proxy(raw.data) {
        // SAFETY: a live proxy, in a slot of the proxy heap.
        unsafe {
            let slot = NonNull::new_unchecked(raw.data);
            // Whoever finds it in its new owner's name sees all of it.
            abi::shared::owner_cell(slot).store(transfer.to, Ordering::Release);
        }
        return Ok(raw);
    }
    let from: *const ControlBlock = transfer.from.cast();
    export(raw, interface, share(from)?, transfer.to)
}

/// What a handle that could not cross points to: nothing. It can only be dropped.
#[repr(C)]
struct Nowhere {
    head: Head,
    object: [u8; 16],
}

static NOWHERE: Nowhere = Nowhere {
    head: Head {
        ops: &HandleOps {
            release: release_nothing,
            retain: retain_nothing,
            kind: TypeId::of::<Elsewhere>(),
        },
        references: core::sync::atomic::AtomicUsize::new(1),
    },
    object: [0; 16],
};

/// A handle to [`NOWHERE`]. The method table is there only to be one.
pub(super) fn nowhere(vtable: *const ()) -> RawHandle {
    RawHandle {
        data: (&raw const NOWHERE.object).cast_mut().cast(),
        vtable,
    }
}

/// Any pointer will do, here and below; they are `unsafe` because [`HandleOps`] has such functions.
unsafe extern "C" fn release_nothing(_: *mut u8) {}

/// See [`release_nothing`].
unsafe extern "C" fn retain_nothing(_: *mut u8) -> *mut u8 {
    core::ptr::null_mut()
}
