//! Changes, as the log tells them that people read.

use core::fmt::{Display, Formatter, Result};

use redo::{Action, Change};

use crate::instance::Instance;

/// A change, in words: what is done, and with which names.
pub struct Told<'a>(pub &'a Change<Instance>);

impl Display for Told<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(match self.0 {
            Action::Write { .. } => "bytes written to a file",
            Action::Truncate { .. } => "a new length of a file",
            Action::Set(_) => "attributes of a file",
            Action::Create { .. } | Action::Node { .. } => "made",
            Action::Symlink { .. } => "symbolic link made",
            Action::Link { .. } => "linked",
            Action::Unlink { .. } | Action::RemoveDirectory { .. } => "removed",
            Action::Rename { .. } => "renamed",
            Action::Exchange { .. } => "exchanged",
        })?;
        for name in self.0.names().into_iter().flatten() {
            write!(out, " \"{}\"", name.escape_ascii())?;
        }
        Ok(())
    }
}
