//! Lanes: what came of the last change that a client asked for through one is noted, so that he is
//! told by the next instance what this one cannot say any more.
//!
//! | what the note of a lane says | then |
//! | --- | --- |
//! | nothing | its change was not made, or was refused |
//! | intended | a change of names is about to be tried; what it is stands once in the notes |
//! | planned | bytes are about to be written at the end of a file, which is noted with its length |
//! | made, written | it was, with this outcome |
//! | given up | the second instance died that tried it |
//!
//! Changes of names are tried one at a time, with the engine locked, so one that is intended is
//! enough. The outcome is noted before the lock is given back.

use alloc::sync::Arc;

use domain_rt::log;
use interfaces::{FsError, LaneOutcome};
use redo::{Basis, Change, Lane, Outcome, intent};

use crate::instance::Instance;
use crate::kept::Kept;
use crate::pages::Pages;
use crate::shadow::Shadow;

/// So many lanes there may be, number 0 included, which is none.
pub const LANES: usize = 256;
/// So often is a change tried.
const ATTEMPTS: u64 = 2;

/// What is noted of a lane.
#[derive(Clone, Copy, Default)]
pub struct LaneNote {
    /// What its last change goes by.
    pub ticket: u64,
    pub state: LaneState,
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
        [self.ticket, kind, first, second]
    }

    /// From words.
    pub fn of([ticket, kind, first, second]: [u64; 4]) -> Self {
        let state = match kind {
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
        LaneNote { ticket, state }
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
        let note = LaneNote {
            ticket,
            state: LaneState::Nothing,
        };
        kept.note_lane(lane, &note)
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

    /// Notes what a change is that is about to be tried.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn note_intent(
        &self,
        lane: Lane,
        action: &Change<Instance>,
        basis: &Basis,
    ) -> Result<(), FsError> {
        let Some(kept) = self.kept() else {
            return Ok(());
        };
        let packed = intent::pack::<Instance>(action, basis).ok_or(FsError::NameTooLong)?;
        kept.intend(lane, 0, &packed)
    }

    /// Sees to the change that the instance before was trying. If that one had it from one before
    /// itself, it is not tried again.
    ///
    /// # Errors
    /// The file system's; no memory.
    pub fn resume(&self, kept: &Arc<Kept>) -> Result<(), FsError> {
        let Some((lane, deaths, packed)) = kept.intended()? else {
            return Ok(());
        };
        let Some((action, basis)) = intent::unpack::<Instance>(&packed) else {
            return Err(FsError::Device);
        };
        let deaths = deaths + 1;
        if deaths >= ATTEMPTS {
            log!("a change is given up: {deaths} instances died of it");
            return kept.answer(lane, LaneState::GivenUp);
        }
        kept.intend(lane, deaths, &packed)?;
        let outcome = self.engine().resume(self, action, basis)?;
        self.note_new_numbers();
        kept.answer(lane, state_of(outcome))
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
                Some(record) => Ok(record.size),
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
            kept.set_lane(lane, state)?;
        }
        Ok(())
    }
}

/// What is noted of an outcome.
pub fn state_of(outcome: Option<Outcome>) -> LaneState {
    match outcome {
        Some(Outcome::Made(inode)) => LaneState::Made(inode),
        Some(Outcome::Done | Outcome::Wrote(_)) => LaneState::Made(0),
        None => LaneState::Nothing,
    }
}
