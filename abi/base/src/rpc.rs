//! Why a call to another domain did not come to its end.

use core::fmt;

crate::numbered! {
    /// The transport's errors: what can go wrong with any call, whatever it does.
    ///
    /// An interface's own error enum carries one of these in a variant `Rpc(RpcError)`, so that `?`
    /// works through both layers.
    pub enum RpcError {
        /// The domain behind the interface crashed, or was dead already. The call may or may not
        /// have had an effect. Calling the same handle again gives the same error; a new handle
        /// must be asked for.
        DomainCrashed = 1,
        /// There is not enough memory, or the domain's budget is used up. Nothing was done.
        NoMemory = 2,
        /// Too little stack is left for another call. Nothing was done.
        StackLow = 3,
        /// The wait was ended because the domain on whose behalf it waits is gone or is being
        /// ended.
        Interrupted = 4,
        /// The object behind the handle does not do this, or not for this caller.
        Refused = 5,
        /// As many calls as the domain's budget allows are under way in it. Nothing was done;
        /// another try may go through when one of them has ended.
        Busy = 6,
    }
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

#[cfg(test)]
mod tests {
    use super::RpcError;

    #[test]
    fn every_error_comes_back_from_its_number() {
        for error in RpcError::ALL {
            assert_eq!(
                RpcError::from_number(u64::from(error.number())),
                Some(*error)
            );
        }
        assert_eq!(RpcError::ALL.len(), 6);
    }

    #[test]
    fn other_numbers_are_no_errors() {
        // 0 says that there was none.
        for number in [0, 7, 255, 256, 257, u64::from(u32::MAX) + 2, u64::MAX] {
            assert_eq!(RpcError::from_number(number), None);
        }
    }
}
