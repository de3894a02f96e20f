//! How much of everything an interface may have.
//!
//! The numbers come from `.idl` files, which the author of a domain writes, and the kernel has
//! fixed room for them: counts of calls, events, names, the stack of a call. `idlc` refuses a file
//! that says more, with a rule for each number; the kernel asserts them once more where the room
//! is, while its proxies are compiled. A test of `idlc` compares its numbers with these.

use crate::image::NAME_LENGTH;
use crate::words::CELLS;

/// Methods of one interface.
pub const MOST_METHODS: usize = 256;
/// Bytes of the name of an interface or a method.
pub const LONGEST_NAME: usize = NAME_LENGTH;
/// Bytes of the stack that the arguments of a method may take together, and its result.
pub const LARGEST_BY_VALUE: usize = 4096;
/// How deep a value may be nested that owns something: trusted code goes through it with a
/// function that calls itself. See [`Exchangeable::DEPTH`](crate::Exchangeable::DEPTH).
pub const MOST_NESTED: usize = 32;
/// Milliseconds of the longest budget of a method.
pub const LONGEST_BUDGET: u32 = 3_600_000;

// Wherever the calls of an interface are counted, each of its methods has a cell. An event of a
// trace has 16 bits for the method.
const _: () = assert!(MOST_METHODS <= CELLS && MOST_METHODS <= 1 << 16);

/// The largest of `depths`, and one more: how deep a value is nested whose parts are nested so.
pub const fn deeper(depths: &[usize]) -> usize {
    let (mut deepest, mut at) = (0, 0);
    while at < depths.len() {
        if depths[at] > deepest {
            deepest = depths[at];
        }
        at += 1;
    }
    deepest + 1
}

#[cfg(test)]
mod tests {
    use super::deeper;
    use crate::{AnyHandle, Exchangeable, RRef};

    #[test]
    fn the_deepest_part_counts() {
        assert_eq!([deeper(&[]), deeper(&[1, 4, 2])], [1, 5]);
        type Nested = Option<[RRef<(u8, Result<AnyHandle, u8>)>; 2]>;
        assert_eq!(<Nested as Exchangeable>::DEPTH, 6);
    }
}
