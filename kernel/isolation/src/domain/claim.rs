//! What comes of asking a budget for something.

use abi::RpcError;

/// Whether an amount was taken from a budget.
#[must_use = "what was refused must not be used, and what was granted must be given back some day"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It counts as used from here on.
    Granted,
    /// The limit does not let it, and nothing has changed.
    Refused,
}

impl Claim {
    #[inline]
    pub(crate) fn is_granted(self) -> bool {
        self == Claim::Granted
    }

    /// `error` if it was refused.
    pub(crate) fn or(self, error: RpcError) -> Result<(), RpcError> {
        match self {
            Claim::Granted => Ok(()),
            Claim::Refused => Err(error),
        }
    }
}

impl From<bool> for Claim {
    #[inline]
    fn from(granted: bool) -> Self {
        if granted {
            Claim::Granted
        } else {
            Claim::Refused
        }
    }
}
