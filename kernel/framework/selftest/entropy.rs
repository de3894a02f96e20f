//! The processor's source of random numbers, where it has one.

use alloc::string::String;

use super::Test;
use crate::arch::entropy;
use crate::check;

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[("entropy-words-differ", words_differ)];

/// The emulated processor has the instruction, so here it may not be missing.
fn words_differ() -> Result<(), String> {
    let mut words = [0; 64];
    let count = entropy::words(&mut words);
    check!(count == words.len(), "{count} words");
    let last = (1..words.len()).find(|at| words[..*at].contains(&words[*at]));
    check!(last.is_none(), "a word came twice: {words:x?}");
    check!(entropy::words(&mut []) == 0, "words without room");
    Ok(())
}
