//! Lanes: what came of the last change that a client asked for through one is known to the next
//! instance, so that he is told by it what this one cannot say any more.
//!
//! | what the note of a lane says | then |
//! | --- | --- |
//! | nothing | its change was not made, or was refused |
//! | planned | bytes are about to be written at the end of a file, which is noted with its length |
//! | made, written | it was, with this outcome |
//! | given up | too many instances died of it, of this domain or of the file system |
//!
//! Changes of names are in the log of changes, with their lane and ticket, and what came of each is
//! in the next record; a lane's note knows up to which record it is true. The last record may be
//! older than its lane's note: who had his answer may be at a write since, which is in no record.

use alloc::sync::Arc;

use alloc::vec::Vec;
use domain_rt::log;
use interfaces::{FsError, LaneOutcome};
use redo::intent::Unpacked;
use redo::record::Came;
use redo::{Lane, Resumed};

use crate::instance::Instance;
use crate::kept::Kept;
use crate::kept::changes::LeftChange;
use crate::pages::Pages;
use crate::shadow::Shadow;

/// So many lanes there may be, number 0 included, which is none.
pub const LANES: usize = 256;

/// What is noted of a lane.
#[derive(Clone, Copy, Default)]
pub struct LaneNote {
    /// What its last change goes by.
    pub ticket: u64,
    pub state: LaneState,
    /// The last record that was in the log of changes when this was noted.
    pub number: u64,
}

/// See the module's text.
#[derive(Clone, Copy, Default)]
pub enum LaneState {
    #[default]
    Nothing,
    Planned {
        inode: u64,
        offset: u64,
    },
    /// What names it changed, or the inode that it made.
    Made(u64),
    Written {
        offset: u64,
        count: u64,
    },
    GivenUp,
}

/// Which client comes through a lane: two share the lanes. Who comes through none is the first.
pub fn client_of(lane: Option<Lane>) -> usize {
    usize::from(lane.is_some_and(|lane| lane.get() as usize >= LANES / 2))
}

impl LaneNote {
    /// As words.
    pub fn words(&self) -> [u64; 4] {
        let [kind, first, second] = match self.state {
            LaneState::Nothing => [0, 0, 0],
            LaneState::Planned { inode, offset } => [1, inode, offset],
            LaneState::Made(inode) => [2, inode, 0],
            LaneState::Written { offset, count } => [3, offset, count],
            LaneState::GivenUp => [4, 0, 0],
        };
        [self.ticket, kind | self.number << 8, first, second]
    }

    /// From words.
    pub fn of([ticket, kind, first, second]: [u64; 4]) -> Self {
        let state = match kind & 0xff {
            1 => LaneState::Planned {
                inode: first,
                offset: second,
            },
            2 => LaneState::Made(first),
            3 => LaneState::Written {
                offset: first,
                count: second,
            },
            4 => LaneState::GivenUp,
            _ => LaneState::Nothing,
        };
        LaneNote {
            ticket,
            state,
            number: kind >> 8,
        }
    }
}

impl Shadow {
    /// A lane of this number.
    ///
    /// # Errors
    /// `Unsupported`: nothing is kept; `Invalid`.
    pub fn lane(&self, number: u32) -> Result<Lane, FsError> {
        self.kept().ok_or(FsError::Unsupported)?;
        let lane = Lane::new(number).filter(|_| (number as usize) < LANES);
        lane.ok_or(FsError::Invalid)
    }

    /// The next change of a lane goes by `ticket`.
    ///
    /// # Errors
    /// It is none; no memory.
    pub fn begin(&self, lane: Option<Lane>, ticket: u64) -> Result<(), FsError> {
        let (kept, lane) = self.kept().zip(lane).ok_or(FsError::Unsupported)?;
        kept.begin(lane, ticket);
        Ok(())
    }

    /// What came of the change of a lane that went by `ticket`.
    ///
    /// # Errors
    /// It is none.
    pub fn outcome(&self, lane: Option<Lane>, ticket: u64) -> Result<Option<LaneOutcome>, FsError> {
        let (kept, lane) = self.kept().zip(lane).ok_or(FsError::Unsupported)?;
        let note = kept.lane(lane);
        let outcome = |given_up, first, second| {
            Some(LaneOutcome {
                given_up,
                first,
                second,
            })
        };
        Ok(match note.state {
            _ if note.ticket != ticket => None,
            LaneState::Nothing | LaneState::Planned { .. } => None,
            LaneState::Made(inode) => outcome(false, inode, 0),
            LaneState::Written { offset, count } => outcome(false, offset, count),
            LaneState::GivenUp => outcome(true, 0, 0),
        })
    }

    /// Sees to what is in the log that the instance before has left: all of it, if the file system
    /// died with that; otherwise the change that was being tried. What too many instances died of
    /// is not tried again. Afterwards everything is committed.
    ///
    /// # Errors
    /// The file system's; no memory.
    pub fn resume(
        &self,
        kept: &Arc<Kept>,
        is_same: bool,
        mut left: Vec<LeftChange>,
    ) -> Result<(), FsError> {
        let last = left.pop();
        if !is_same {
            log!("{} changes are in the log", left.len() + last.iter().len());
            for change in &left {
                self.restore(kept, change)?;
            }
        }
        let pending = match &last {
            Some(last) => self.pending(kept, last, is_same)?,
            None => None,
        };
        let resumed = self.engine().resume(self, pending)?;
        self.note_new_numbers();
        if let Some(last) = last {
            match resumed {
                Resumed::Nothing => {}
                Resumed::Done(outcome) => kept.answer_left(&last, Came::Done(outcome)),
                Resumed::Refused => kept.answer_left(&last, Came::Refused),
                Resumed::GivenUp => {
                    log!(
                        "a change is given up: {} instances died of it",
                        last.deaths()
                    );
                    kept.give_up_left(&last)?;
                }
            }
        }
        self.engine().commit(self)?;
        kept.begin_anew()
    }

    /// The last change, if it is to be seen to, and how many instances died of it.
    fn pending(
        &self,
        kept: &Kept,
        last: &LeftChange,
        is_same: bool,
    ) -> Result<Option<(Unpacked<Instance>, u8)>, FsError> {
        let change = kept.change_of(last)?;
        // Who asked for a change of content asks again if he had no answer.
        let change = change.filter(|(of, _)| !is_same || !(of.is_content() || last.is_ended));
        if change.is_some() {
            kept.follow(self.engine().changes(), last)?;
        }
        Ok(change.map(|change| (change, last.deaths())))
    }

    fn restore(&self, kept: &Kept, left: &LeftChange) -> Result<(), FsError> {
        let Came::Done([outcome, _]) = left.came else {
            return Ok(());
        };
        let Some(change) = kept.change_of(left)? else {
            log!("a change that was too long for the log is lost");
            return Ok(());
        };
        let mut engine = self.engine();
        kept.follow(engine.changes(), left)?;
        engine.restore(change, outcome, left.deaths())
    }

    /// Where bytes were being written at the end of a file, its length tells whether they were.
    ///
    /// # Errors
    /// The file system's; no memory.
    pub fn settle_plans(&self, kept: &Arc<Kept>, pages: &Pages) -> Result<(), FsError> {
        for lane in (1..LANES as u32).filter_map(Lane::new) {
            let LaneState::Planned { inode, offset } = kept.lane(lane).state else {
                continue;
            };
            let size = match pages.record(inode) {
                Some((record, _)) => Ok(record.size),
                None => self
                    .ask(inode, |instance, real| instance.fs().metadata(real))
                    .map(|of| of.size),
            };
            let state = match size {
                Ok(size) if size > offset => LaneState::Written {
                    offset,
                    count: size - offset,
                },
                Ok(_) | Err(FsError::NotFound) => LaneState::Nothing,
                Err(error) => return Err(error),
            };
            kept.set_lane(lane, kept.lane(lane).ticket, state)?;
        }
        Ok(())
    }
}
