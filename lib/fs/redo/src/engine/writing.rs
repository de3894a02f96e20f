//! Content: at the end of a file, and lent.

use super::{Engine, Host, real};
use crate::action::{Action, Fault, Outcome, Target};

impl<T: Target> Engine<T> {
    /// Writes at the end of a file; where, and how much.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn append<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
        data: T::Data,
    ) -> Result<(u64, u64), T::Error> {
        let lane = self.lane.take();
        let offset = self.consult(host, |fs| fs.facts(real(host, inode)?))?.size;
        if let Some(lane) = lane {
            host.plan(lane, inode, offset)?;
        }
        match self.change_now(host, Action::Write { offset, data }, [inode; 2])? {
            Outcome::Wrote(count) => {
                if let Some(lane) = lane {
                    host.wrote(lane, offset, count);
                }
                Ok((offset, count))
            }
            _ => Err(T::error(Fault::Failed)),
        }
    }

    /// Writes into a file of a file system that is [lasting](Self::lasting); how many bytes. The
    /// data is only lent: it is there until the call is over, however many instances that takes.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn write_lent<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
        offset: u64,
        data: &T::Data,
    ) -> Result<u64, T::Error> {
        host.front(|front| front.inodes.forget(inode));
        let written = self.consult(host, |fs| fs.write(real(host, inode)?, offset, data));
        host.front(|front| front.inodes.forget(inode));
        written
    }

    /// As [`write_lent`](Self::write_lent), at the end of a file; where, and how much.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn append_lent<H: Host<Target = T>>(
        &mut self,
        host: &H,
        inode: u64,
        data: &T::Data,
    ) -> Result<(u64, u64), T::Error> {
        let offset = self.consult(host, |fs| fs.facts(real(host, inode)?))?.size;
        let count = self.write_lent(host, inode, offset, data)?;
        Ok((offset, count))
    }
}
