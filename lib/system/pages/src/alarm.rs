//! Whether it was told that pages have become dirty.

use crate::{Word, seal::change};

const QUIET: u64 = 0;
const TOLD: u64 = 1;

/// Has it told once that pages become dirty, until somebody looks which they are.
///
/// Who marks a page does so first, and comes here then; who looks comes here first. Both change the
/// word by compare-and-swap. So either the mark's comes first, and who looks finds the page; or it
/// comes behind, finds the word quiet, and has it told anew.
#[derive(Debug)]
pub struct Alarm<W>(W);

impl<W: Word> Alarm<W> {
    /// Nothing was told.
    pub fn quiet() -> Self {
        Alarm(W::new(QUIET))
    }

    /// A page was clean and is marked as dirty now. Returns whether that is to be told.
    #[must_use]
    pub fn marked(&self) -> bool {
        change(&self.0, |_| Some(TOLD)) == Some(QUIET)
    }

    /// Somebody goes on to look which pages are dirty.
    pub fn look(&self) {
        change(&self.0, |_| Some(QUIET));
    }
}
