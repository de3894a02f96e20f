//! What the log says of a crash. It is put down where the crash happens and written to the log by
//! the reaper: the caller waits for its error, and not for the log.

use crate::domain::text::Clean;
use abi::Text;
use core::fmt::{self, Write};

/// What stands for the interface in calls that the kernel itself makes.
pub(crate) const KERNEL: &str = "kernel";

/// What is known of a crash. Half a kilobyte, so it is lent on the way to where it is put down.
#[derive(Clone, Copy)]
pub struct LastWords {
    what: Text<400>,
    place: Text<120>,
    /// In the source file that `place` names; 0: `place` says everything.
    line: u32,
    /// What was called: the names of interface and method.
    pub(crate) called: Option<(&'static str, &'static str)>,
}

impl LastWords {
    /// Of a panic with this message in this line of a source file.
    pub(crate) fn of_panic(message: &str, file: &str, line: u32) -> Self {
        LastWords {
            what: Text::new(message),
            place: Text::new(file),
            line,
            called: None,
        }
    }

    /// Whether another domain waits for the call that failed: the kernel makes some of its own.
    pub(crate) fn has_caller(&self) -> bool {
        self.called
            .is_some_and(|(interface, _)| interface != KERNEL)
    }

    /// Of anything else.
    pub(crate) fn new(what: fmt::Arguments<'_>, place: fmt::Arguments<'_>) -> Self {
        let mut words = Self::of_panic("", "", 0);
        // Cutting off is no error.
        let _ = words.what.write_fmt(what);
        let _ = words.place.write_fmt(place);
        words
    }
}

impl fmt::Display for LastWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (interface, method) = self.called.unwrap_or(("?", "?"));
        let (what, place) = (Clean(self.what.as_str()), Clean(self.place.as_str()));
        write!(f, "crashed in {interface}.{method}: {what} at {place}")?;
        match self.line {
            0 => Ok(()),
            line => write!(f, ":{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;

    #[test]
    fn they_say_what_and_where_in_one_line() {
        let mut panic = LastWords::of_panic("no\nway", "a.rs", 7);
        panic.called = Some((KERNEL, "thread"));
        assert_eq!(
            panic.to_string(),
            "crashed in kernel.thread: no?way at a.rs:7"
        );
        assert!(!panic.has_caller());
        let fault = LastWords::new(
            format_args!("fault {}", 1),
            format_args!("offset {:#x}", 16),
        );
        assert_eq!(fault.to_string(), "crashed in ?.?: fault 1 at offset 0x10");
    }
}
