//! Ways to break the kernel, to show that the campaign would notice.
//!
//! The debugger writes a few bytes of code over the beginning of a function of the kernel that
//! runs. So nothing of it is in any build.

/// A way to break the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mutant {
    /// A proxy takes what the dead return, and returns into them
    TakesFromTheDead,
    /// A dead domain is cleared away without a look who is inside
    NobodyLooks,
    /// What a dead domain owned on the shared heap stays
    ObjectsStay,
}

/// `xor eax, eax; ret`: the function gives 0.
const GIVE_ZERO: &[u8] = &[0x31, 0xc0, 0xc3];
/// `ret`: the function does nothing.
const DO_NOTHING: &[u8] = &[0xc3];

impl Mutant {
    /// A part of the function's mangled name that no other has, and what is written over its
    /// beginning.
    pub fn patch(self) -> (&'static str, &'static [u8]) {
        match self {
            // `isolation::call::outcome`: 0 is `Outcome::Returned`.
            Mutant::TakesFromTheDead => ("9isolation4call7outcome", GIVE_ZERO),
            // `isolation::death::kill::reaper::look::{closure#1}`: looks at one thread.
            Mutant::NobodyLooks => ("6reaper4looks_0B", DO_NOTHING),
            // `<isolation::memory::heap::SharedHeap>::free_all_of`: how many were freed.
            Mutant::ObjectsStay => ("10SharedHeap11free_all_of", GIVE_ZERO),
        }
    }
}
