//! How to get from a function to its caller, at one place of its code.

/// Where a function's frame ends: the caller's stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cfa {
    /// So far above the stack pointer.
    Sp(i32),
    /// So far above what rbp points to.
    Bp(i32),
}

/// Where the caller's rbp is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedBp {
    /// Where it was.
    Same,
    /// In the word so far above the end of the frame (most often below it).
    At(i32),
    /// Nobody knows.
    Unknown,
}

/// Both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where the frame ends.
    pub cfa: Cfa,
    /// Where rbp is.
    pub bp: SavedBp,
}

/// Where a caller is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The caller's stack pointer.
    pub cfa: u64,
    /// The caller's rbp, from the innermost stack pointer; `None`: nobody knows.
    pub bp: Option<u64>,
}

impl Rule {
    /// The caller of a function that has this stack pointer and rbp; `saved` tells words of the
    /// stack. `None`: it cannot be known.
    pub(crate) fn step(
        self,
        sp: u64,
        bp: Option<u64>,
        saved: impl Fn(u64) -> Option<u64>,
    ) -> Option<Step> {
        let cfa = match self.cfa {
            Cfa::Sp(offset) => sp.checked_add_signed(offset.into())?,
            Cfa::Bp(offset) => bp?.checked_add_signed(offset.into())?,
        };
        let bp = match self.bp {
            SavedBp::At(offset) => saved(cfa.checked_add_signed(offset.into())?),
            SavedBp::Same => bp,
            SavedBp::Unknown => None,
        };
        Some(Step { cfa, bp })
    }
}
