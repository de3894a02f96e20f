//! Why a call to another domain did not come to its end.

use core::fmt;

/// The transport's errors: what can go wrong with any call, whatever it does.
///
/// An interface's own error enum carries one of these in a variant `Rpc(RpcError)`, so that `?` works
/// through both layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RpcError {
    /// The domain behind the interface crashed, or was dead already. The call may or may not have had an
    /// effect. Calling the same handle again gives the same error; a new handle must be asked for.
    DomainCrashed,
    /// There is not enough memory, or the domain's budget is used up. Nothing was done.
    NoMemory,
    /// Too little stack is left for another call. Nothing was done.
    StackLow,
    /// The wait was ended because the domain on whose behalf it waits is gone or is being ended.
    Interrupted,
    /// The object behind the handle does not do this, or not for this caller.
    Refused,
    /// As many calls as the domain's budget allows are under way in it. Nothing was done; another try may go
    /// through when one of them has ended.
    Busy,
}

/// The result of a call that has no errors of its own.
pub type RpcResult<T> = Result<T, RpcError>;

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RpcError::DomainCrashed => "the domain that served this call crashed",
            RpcError::NoMemory => "out of memory",
            RpcError::StackLow => "stack exhausted",
            RpcError::Interrupted => "interrupted",
            RpcError::Refused => "refused",
            RpcError::Busy => "too many calls under way",
        })
    }
}
