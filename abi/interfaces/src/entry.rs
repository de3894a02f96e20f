//! What the generated entries of all domains share: from untyped grants to typed handles.

use crate::{AnyHandle, Handle, Interface, RVec, RpcError};
use abi::image::Port;

/// Why a domain did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// A grant is missing or of another interface than declared, or there is no room for the
    /// offers. The kernel checks this before; so it means that kernel and image disagree about the
    /// declaration.
    Grants,
    /// The domain's own start function gave this error.
    Failed(RpcError),
}

/// A port of interface `I`, for the declarations.
pub const fn port<I: ?Sized + Interface>(name: &'static str, flags: u32) -> Port<'static> {
    Port {
        name,
        interface: I::NUMBER,
        flags,
    }
}

/// Takes grant number `index`.
///
/// # Errors
/// [`EntryError::Grants`] if it is missing or of another interface.
pub fn required<I: ?Sized + Interface>(
    grants: &mut [Option<AnyHandle>],
    index: usize,
) -> Result<Handle<I>, EntryError> {
    optional(grants, index)?.ok_or(EntryError::Grants)
}

/// Takes grant number `index`, if it is there.
///
/// # Errors
/// [`EntryError::Grants`] if it is of another interface.
pub fn optional<I: ?Sized + Interface>(
    grants: &mut [Option<AnyHandle>],
    index: usize,
) -> Result<Option<Handle<I>>, EntryError> {
    match grants.get_mut(index).and_then(Option::take) {
        Some(grant) => grant.downcast().map(Some).map_err(|_| EntryError::Grants),
        None => Ok(None),
    }
}

/// The options; empty if none were given.
///
/// # Errors
/// [`EntryError::Failed`] if there is no memory for an empty text.
pub fn options(options: Option<RVec<u8>>) -> Result<RVec<u8>, EntryError> {
    match options {
        Some(options) => Ok(options),
        None => RVec::from_slice(&[]).map_err(EntryError::Failed),
    }
}
