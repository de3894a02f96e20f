//! The runtime that is linked into every domain.
//!
//! It is trusted: what a domain can do beyond computing, it does through the safe functions here or
//! through the handles that it was granted.
//!
//! - [`entry!`](crate::entry): the entry point of a domain image (used by the build, not by
//!   domains);
//! - [`log!`](crate::log): a line in the kernel's log;
//! - [`time`], [`thread`], [`sync`], [`processors`], [`memory`]: what every domain may use;
//! - [`user`]: programs in ring 3, for domains that were granted address spaces;
//! - [`io`]: device memory and DMA memory, for domains that were granted some.
//!
//! A panic in any thread crashes the domain, also in one that only runs through it.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(target_os = "none")]
mod heap;
pub mod io;
#[cfg(any(target_os = "none", test))]
mod lists;
pub mod memory;
pub mod processors;
pub mod sync;
pub mod thread;
pub mod time;
pub mod user;

use abi::api::{ENTRY_FAILED, ENTRY_FINGERPRINT, ENTRY_GRANTS, ENTRY_OK, api, set_api};
use abi::{AnyHandle, RVec, Text, hex};
use core::fmt::{self, Write};
use interfaces::EntryError;

/// The ABI fingerprint that this image is built with.
const FINGERPRINT: [u8; 32] = hex::digits(match option_env!("TREFOIL_FINGERPRINT") {
    Some(text) => text,
    None => hex::ZEROS,
});

/// Writes the entry point of a domain image: the module that `idlc` made of the domain's
/// declaration, and the domain's start function.
#[macro_export]
macro_rules! entry {
    ($($module:ident)::+, $start:path) => {
        /// Called once by the kernel, inside the new domain.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn _start(args: *mut $crate::EntryArgs) -> u64 {
            // SAFETY: the kernel passes a valid block, and nothing of this image runs yet.
            unsafe {
                $crate::enter(args, |grants, options, offers| {
                    $($module)::+::dispatch(grants, options, offers, $start)
                })
            }
        }
    };
}

#[doc(hidden)]
pub use abi::api::EntryArgs;
pub use abi::handle::is_kernel_object;

/// What [`entry!`](crate::entry) does.
///
/// # Safety
/// `args` is what the kernel passed; this is the first code of the image that runs.
#[doc(hidden)]
pub unsafe fn enter(
    args: *mut EntryArgs,
    dispatch: impl FnOnce(
        &mut [Option<AnyHandle>],
        Option<RVec<u8>>,
        &mut [Option<AnyHandle>],
    ) -> Result<(), EntryError>,
) -> u64 {
    // SAFETY: by the caller's duty. The fingerprint is the first field in every version; only if it
    // fits are the others what this image takes them for. The kernel lends the arrays for this
    // call.
    unsafe {
        if (*args).fingerprint != FINGERPRINT {
            return ENTRY_FINGERPRINT;
        }
        set_api((*args).api);
        (*args).crash = crash as *const () as usize;
        #[cfg(target_os = "none")]
        {
            (*args).restock = heap::restock as *const () as usize;
        }
        let grants = core::slice::from_raw_parts_mut((*args).grants, (*args).grant_count);
        let offers = core::slice::from_raw_parts_mut((*args).offers, (*args).offer_count);
        match dispatch(grants, (*(*args).options).take(), offers) {
            Ok(()) => ENTRY_OK,
            Err(EntryError::Grants) => ENTRY_GRANTS,
            Err(EntryError::Failed(error)) => ENTRY_FAILED | u64::from(error.number()) << 8,
        }
    }
}

/// What the kernel calls to make this domain crash when an operator asked for it.
extern "C" fn crash(_: *mut u8) {
    panic!("asked to crash");
}

/// Writes a line to the kernel's log. The kernel puts the domain's name in front.
#[macro_export]
macro_rules! log {
    ($($argument:tt)*) => { $crate::write_log(format_args!($($argument)*)) };
}

#[doc(hidden)]
pub fn write_log(line: fmt::Arguments<'_>) {
    let mut text = Text::<400>::empty();
    let _ = text.write_fmt(line);
    let text = text.as_str();
    // SAFETY: a text of our own, lent for the call.
    unsafe { (api().log)(text.as_ptr(), text.len()) };
}

/// The number of this domain instance.
pub fn self_id() -> u32 {
    (api().self_id)()
}

/// In place of a line, in what the log says of a domain that got no memory. The line that the
/// compiler gives is one of the library's, and who called that is not known here.
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
const UNFALLIBLE: &str = "an allocation that cannot fail";

/// Whether `message` is the library's word for an allocation which failed.
#[cfg_attr(not(target_os = "none"), allow(dead_code))]
fn is_want_of_memory(message: &str) -> bool {
    message.starts_with("memory allocation of ")
}

/// Ends the domain with what the panic says.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let mut message = Text::<400>::empty();
    let _ = write!(message, "{}", info.message());
    let (file, line) = info
        .location()
        .map_or(("?", 0), |place| (place.file(), place.line()));
    let message = message.as_str();
    let (file, line) = match is_want_of_memory(message) {
        true => (UNFALLIBLE, 0),
        false => (file, line),
    };
    // SAFETY: texts of our own.
    unsafe {
        (api().panic)(
            message.as_ptr(),
            message.len(),
            file.as_ptr(),
            file.len(),
            line,
        )
    }
}
