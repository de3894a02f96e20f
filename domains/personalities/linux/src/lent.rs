//! Memory of a program that is lent to services, which copy to it or from it, and are short where a
//! page is not ready.

use crate::errno::{EFAULT, EINVAL, ENOMEM, Error};
use crate::memory::{PAGE, Space};
use crate::task::Task;
use domain_rt::user::{UserBuf, UserDirection, UserSegment};
use linux::memory::Memory;

/// Pages that are made ready at once where one was not.
const AHEAD: u64 = 16;

/// Runs of a program's memory.
pub struct Lent<'a> {
    task: &'a Task,
    runs: &'a [UserSegment],
    buffer: UserBuf<'a>,
}

/// One run.
pub fn run(start: u64, length: u64) -> UserSegment {
    UserSegment { start, length }
}

impl<'a> Lent<'a> {
    /// These runs of a task's program's memory.
    ///
    /// # Errors
    /// `EINVAL`: too many.
    pub fn new(
        task: &'a Task,
        runs: &'a [UserSegment],
        direction: UserDirection,
    ) -> Result<Self, Error> {
        let buffer = UserBuf::new(task.program.mm.space.handle(), runs, direction);
        Ok(Lent {
            task,
            runs,
            buffer: buffer.ok_or(EINVAL)?,
        })
    }

    /// Whether the program is to end, and nobody waits for the rest.
    pub fn is_ending(&self) -> bool {
        self.task.is_ending()
    }

    fn space(&self) -> &Space {
        &self.task.program.mm.space
    }

    /// To be lent.
    pub fn buffer(&self) -> &UserBuf<'a> {
        &self.buffer
    }

    /// How many bytes there are in all.
    pub fn len(&self) -> u64 {
        self.buffer.len()
    }

    /// The address of byte `at` of the whole, and how many bytes follow it in its run.
    fn place(&self, mut at: u64) -> Option<(u64, u64)> {
        for run in self.runs {
            if at < run.length {
                return Some((run.start.checked_add(at)?, run.length - at));
            }
            at -= run.length;
        }
        None
    }

    /// Makes the page of byte `at` ready, and some behind it, of at most `count` bytes.
    ///
    /// # Errors
    /// `EFAULT`: the program has nothing there, or not for this. `ENOMEM`.
    pub fn touch(&self, at: u64, count: u64) -> Result<(), Error> {
        let (address, there) = self.place(at).ok_or(EFAULT)?;
        let bytes = count.min(there).min(AHEAD * PAGE);
        let writes = self.buffer.direction() == UserDirection::ToProgram;
        let ready = self.space().touch(address, writes);
        ready.map_err(|why| if why == ENOMEM { ENOMEM } else { EFAULT })?;
        let end = address.saturating_add(bytes);
        let next = (address / PAGE + 1).saturating_mul(PAGE);
        let mut more = (next..end).step_by(PAGE as usize);
        more.all(|at| self.space().touch(at, writes).is_ok());
        Ok(())
    }
}
