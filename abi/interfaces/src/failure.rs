//! What somebody who calls again after a crash has to know of an error, whatever the interface.

use crate::RpcError;

/// An error of an interface. `idlc` implements it for every error in an `.idl` file.
pub trait Failure: From<RpcError> {
    /// What a caller is told when there is nobody left to call: the variant that is marked
    /// `#[gone]`, or that the domain crashed.
    fn gone() -> Self;

    /// Whether whoever answered with this is of no use any more: its domain crashed, or it gave the
    /// variant marked `#[gone]`. Another instance may do what this one did not. All other errors
    /// are answers.
    fn is_gone(&self) -> bool;
}

impl Failure for RpcError {
    fn gone() -> Self {
        RpcError::DomainCrashed
    }

    fn is_gone(&self) -> bool {
        *self == RpcError::DomainCrashed
    }
}
