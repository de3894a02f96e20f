//! Going on when there is no memory.
//!
//! An allocation that fails ends the domain, unless it is asked for so that it can fail
//! (`try_reserve`, `RVec`). A domain that serves others keeps three rules:
//!
//! - what has a size, or a number, that a caller chooses is asked for so that it can fail;
//! - for the rest (a `Box` or `Arc` of a struct, a node of a map) it has a [`reserve`];
//! - what it keeps of content, such as a cache, does not grow while it [lives on that](is_short):
//!   the allocator cannot tell one from the other.

use abi::RpcError;

/// KiB of the reserve of a service that takes little for a call.
pub const SERVICE: usize = 128;
/// The same of a driver, whose requests have their places from its start on, and which is to be
/// there again soon after a crash: all of it is cleared then.
pub const DRIVER: usize = 64;

/// Sets `kib` KiB aside (rounded up to a multiple of 64, at most 1,024), of which objects of up to
/// 16 KiB are made when there is no other memory. To be called by the start function of a domain
/// that serves others.
///
/// When half of it or more is used, the kernel refuses calls with `NoMemory`, but those that are
/// marked `#[frees]`, drops of handles, and what the domain's own threads do, until there is memory
/// to fill it again. So half of it must be enough for what the calls that are under way then, and
/// those that free, allocate in objects of up to 16 KiB.
///
/// # Errors
/// There is not so much memory.
pub fn reserve(kib: usize) -> Result<(), RpcError> {
    #[cfg(target_os = "none")]
    crate::heap::reserve((kib * 1024).div_ceil(crate::lists::RUN))?;
    let _ = kib;
    Ok(())
}

/// Whether the domain lives on its reserve, for those who keep what they can do without: they are
/// to give it up. False where there is no reserve.
pub fn is_short() -> bool {
    #[cfg(target_os = "none")]
    {
        crate::heap::is_short()
    }
    #[cfg(not(target_os = "none"))]
    {
        false
    }
}
