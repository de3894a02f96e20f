//! Emptying the log: writing home what is in it, and coming to rest.

use crate::bytes::{put_u16, put_u32, u32_at};
use crate::cache::Kind;
use crate::device::BlockDevice;
use crate::error::Result;
use crate::features::INCOMPAT_RECOVER;
use crate::journal::{Journal, Start};
use crate::layout::{STATE_ERROR, STATE_VALID, field};
use crate::store::Store;

impl<D: BlockDevice> Store<D> {
    /// Commits, and makes the log empty. Without a journal it writes everything back.
    ///
    /// # Errors
    /// Device errors: nothing is lost, and a later call tries again.
    pub(crate) fn checkpoint(&mut self) -> Result<()> {
        self.write_back()?;
        let Some(mut journal) = self.journal.take() else {
            return Ok(());
        };
        let result = self.empty(&mut journal, false);
        self.journal = Some(journal);
        result
    }

    /// Commits, makes the log empty and, unless `orphans` are left, says on disk that there is
    /// nothing to recover.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub(crate) fn rest_log(&mut self, orphans: bool, now: i64) -> Result<()> {
        self.commit_log()?;
        let Some(mut journal) = self.journal.take() else {
            return Ok(());
        };
        let result = self.empty(&mut journal, !orphans);
        self.journal = Some(journal);
        result?;
        match self.has_to_tell() && !orphans {
            true => self.note_rest(now),
            false => Ok(()),
        }
    }

    /// Writes home everything that is in the log and lets the log start behind it; nowhere if
    /// `rest`. Nothing is running.
    fn empty(&mut self, journal: &mut Journal, rest: bool) -> Result<()> {
        if journal.used > 0 {
            self.write_kind(Kind::Logged)?;
            self.device.flush()?;
            journal.start = Start::Uncertain;
            journal.used = 0;
            journal.logged.clear();
        }
        let (start, goal) = match rest {
            true => (0, Start::Nowhere),
            false => (journal.head, Start::Known),
        };
        if journal.start == Start::Uncertain || (rest && journal.start == Start::Known) {
            journal.start = Start::Uncertain;
            self.write_log_start(&mut journal.log, start, journal.sequence)?;
            self.device.flush()?;
            journal.start = goal;
        }
        Ok(())
    }

    /// Says on disk that there is nothing to recover.
    fn note_rest(&mut self, now: i64) -> Result<()> {
        let damaged = self.damaged;
        let found = self.layout.state;
        self.stamp_super(|sb| {
            let features = u32_at(sb, field::INCOMPAT) & !INCOMPAT_RECOVER;
            put_u32(sb, field::INCOMPAT, features);
            put_u32(sb, field::WRITE_TIME, now as u32);
            if damaged {
                put_u16(sb, field::STATE, found & !STATE_VALID | STATE_ERROR);
            }
        })?;
        self.device.flush()?;
        self.at_rest = true;
        self.damage_is_noted |= self.damaged;
        Ok(())
    }
}
