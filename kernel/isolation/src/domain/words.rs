//! What the log says of a crash. It is put down where the crash happens and written to the log by
//! the reaper: the caller waits for its error, and not for the log.

use crate::domain::text::Clean;
use abi::Text;
use core::fmt::{self, Write};

/// What stands for the interface in calls that the kernel itself makes.
pub(crate) const KERNEL: &str = "kernel";

/// What is known of a crash, where it happens: texts of whoever crashes, which are copied to where
/// they are put down and nowhere else. Each copy on the way would lie on the stack that is copied
/// for the log.
#[derive(Clone, Copy)]
pub(crate) struct Crash<'a> {
    what: Said<'a>,
    place: Said<'a>,
    line: u32,
}

#[derive(Clone, Copy)]
enum Said<'a> {
    Text(&'a str),
    Parts(fmt::Arguments<'a>),
}

impl<'a> Crash<'a> {
    /// A panic with this message in this line of a source file.
    pub(crate) fn of_panic(message: &'a str, file: &'a str, line: u32) -> Self {
        let (what, place) = (Said::Text(message), Said::Text(file));
        Crash { what, place, line }
    }

    /// Anything else.
    pub(crate) fn new(what: fmt::Arguments<'a>, place: fmt::Arguments<'a>) -> Self {
        let (what, place) = (Said::Parts(what), Said::Parts(place));
        let line = 0;
        Crash { what, place, line }
    }
}

impl Said<'_> {
    /// Cutting off is no error.
    fn write(self, text: &mut dyn Write) {
        let _ = match self {
            Said::Text(said) => text.write_str(said),
            Said::Parts(said) => text.write_fmt(said),
        };
    }
}

/// What the log is to say of a crash, once there was one.
#[derive(Clone, Copy)]
pub(crate) struct LastWords {
    what: Text<400>,
    place: Text<120>,
    /// In the source file that `place` names; 0: `place` says everything.
    line: u32,
    /// What was called: the names of interface and method.
    called: Option<(&'static str, &'static str)>,
}

impl LastWords {
    /// Nothing.
    pub(crate) const NONE: Self = LastWords {
        what: Text::empty(),
        place: Text::empty(),
        line: 0,
        called: None,
    };

    /// Fills in what was not filled in before: a crash in a method of an interface.
    pub(crate) fn put_down(&mut self, crash: &Crash<'_>, called: (&'static str, &'static str)) {
        crash.what.write(&mut self.what);
        crash.place.write(&mut self.place);
        (self.line, self.called) = (crash.line, Some(called));
    }

    /// Whether another domain waits for the call that failed: the kernel makes some of its own.
    pub(crate) fn has_caller(&self) -> bool {
        self.called
            .is_some_and(|(interface, _)| interface != KERNEL)
    }

    /// Whether there is nothing in them.
    pub(crate) fn is_none(&self) -> bool {
        self.called.is_none()
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
        let put_down = |crash: Crash<'_>, interface| {
            let mut words = LastWords::NONE;
            assert!(words.is_none());
            words.put_down(&crash, (interface, "thread"));
            assert!(!words.is_none());
            words
        };
        let panic = put_down(Crash::of_panic("no\nway", "a.rs", 7), KERNEL);
        assert_eq!(
            panic.to_string(),
            "crashed in kernel.thread: no?way at a.rs:7"
        );
        assert!(!panic.has_caller());
        let (what, place) = (
            format_args!("fault {}", 1),
            format_args!("offset {:#x}", 16),
        );
        let fault = put_down(Crash::new(what, place), "Disk");
        let told = "crashed in Disk.thread: fault 1 at offset 0x10";
        assert_eq!(fault.to_string(), told);
        assert!(fault.has_caller());
        let long = put_down(Crash::of_panic(&"x".repeat(500), "", 0), "Disk");
        assert_eq!(long.to_string().matches('x').count(), 400);
    }
}
