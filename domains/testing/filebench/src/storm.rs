//! Threads that go by names, each in a directory of its own.

use filework::{Names, storm_of};
use interfaces::{OpenFlags, RVec};
use ulib::{Error, Handle, Process, READ};

use crate::threads;

const NEW: OpenFlags = OpenFlags {
    read: false,
    write: true,
    create: true,
    truncate: true,
    ..READ
};

/// The work of all threads.
///
/// # Errors
/// One of theirs.
pub fn storm(process: &Handle<dyn Process>, count: u64) -> Result<(), Error> {
    threads::at_once(process, count, |process, thread| {
        storm_of(&Calls(process), thread)
    })
}

/// The calls of one thread.
struct Calls<'a>(&'a Handle<dyn Process>);

impl Calls<'_> {
    fn open_and_close(&self, path: &str, flags: OpenFlags) -> Result<(), Error> {
        let file = self.0.open(&name(path)?, flags)?;
        Ok(self.0.close(file)?)
    }
}

fn name(path: &str) -> Result<RVec<u8>, Error> {
    Ok(RVec::from_slice(path.as_bytes())?)
}

impl Names for Calls<'_> {
    type Error = Error;

    fn make(&self, path: &str) -> Result<(), Error> {
        self.open_and_close(path, NEW)
    }

    fn ask(&self, path: &str) -> Result<(), Error> {
        Ok(self.0.metadata(&name(path)?, true).map(drop)?)
    }

    fn visit(&self, path: &str) -> Result<(), Error> {
        self.open_and_close(path, READ)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        Ok(self.0.rename(&name(from)?, &name(to)?)?)
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        Ok(self.0.unlink(&name(path)?)?)
    }
}
