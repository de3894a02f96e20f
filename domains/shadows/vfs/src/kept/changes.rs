//! The log of changes: each is written before it is tried, so that it is there when this domain
//! dies, and the file system with it.
//!
//! Records follow each other from the place that the head says. Each begins at a multiple of 8, and
//! behind the last one is a word of zeros, so that nothing that was here before is taken for one.
//!
//! | words of a record | what |
//! | --- | --- |
//! | 0 | its number, one more than that of the record before; never 0 |
//! | 1 | bytes of the change, and behind them the lane in the upper half |
//! | 2 | the ticket that it goes by in that lane |
//! | 3 | how many instances died of it |
//! | 4, 5, 6 | what came of the record before: what kind, as the file system has it, as clients do |
//! | 7 | 1: the change is too long to be here |
//! | from 8 on | the change, see `redo::intent` |
//!
//! So a change costs one write: what came of it is in the next record, and of the last one nobody
//! has to know it, since the names on the disk tell. When everything is committed the log begins
//! anew; what it knows of lanes goes into their notes first.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use interfaces::{FsError, RVec, RpcError};
use redo::{Basis, Change, Lane, Outcome, intent};

use super::{CHANGES, Kept, word};
use crate::instance::Instance;
use crate::lanes::LaneState;

/// Bytes of the log.
pub const ROOM: u64 = 4 << 20;
/// Bytes of a record in front of the change, and of the zeros behind the last one.
const FRONT: usize = 64;
const END: usize = 8;
/// The longest change that is here; one that is longer is lost if both die at once.
const LONGEST: usize = 128 << 10;
/// A record is written in so many bytes, or a multiple: there are zeros behind it. One up to
/// [`SPARE`] bytes is made where one before was made, if that had as many.
const PIECE: usize = 64;
const SPARE: usize = 4 * PIECE;

/// What came of a change.
#[derive(Clone, Copy, Debug, Default)]
pub enum Came {
    /// Nobody knows.
    #[default]
    Unknown,
    /// It was refused.
    Refused,
    /// Its outcome, as the file system has it and as clients do.
    Done([Outcome; 2]),
}

/// The log, as the instance knows it that writes it.
pub struct Changes {
    /// Where the next record comes, and its number.
    next: u64,
    number: u64,
    /// Changes, as the engine counts them, with the place and number of their records.
    entries: VecDeque<(u64, u64, u64)>,
    /// What came of the last one.
    came: Came,
}

/// A record that an instance before has left.
pub struct LeftChange {
    at: u64,
    bytes: usize,
    is_gap: bool,
    pub lane: Option<Lane>,
    pub ticket: u64,
    pub deaths: u64,
    pub came: Came,
}

impl Changes {
    /// The log begins here, and has nothing.
    pub fn new(next: u64, number: u64) -> Self {
        Changes {
            next,
            number,
            entries: VecDeque::new(),
            came: Came::Unknown,
        }
    }
}

/// Bytes of the change in a record. `None`: it is too long for one.
fn bytes_of(action: &Change<Instance>) -> Option<usize> {
    Some(intent::length(action)).filter(|whole| *whole <= LONGEST)
}

/// Bytes of a record, and how many are written.
fn lengths(bytes: usize) -> (usize, usize) {
    let length = FRONT + bytes.next_multiple_of(8);
    (length, (length + END).next_multiple_of(PIECE))
}

impl Came {
    fn words(self) -> [u64; 3] {
        match self {
            Came::Unknown => [0; 3],
            Came::Refused => [1, 0, 0],
            Came::Done([Outcome::Made(real), Outcome::Made(told)]) => [3, real, told],
            Came::Done([Outcome::Wrote(count), _]) => [4, count, 0],
            Came::Done(_) => [2, 0, 0],
        }
    }

    fn of([kind, first, second]: [u64; 3]) -> Self {
        match kind {
            1 => Came::Refused,
            2 => Came::Done([Outcome::Done; 2]),
            3 => Came::Done([Outcome::Made(first), Outcome::Made(second)]),
            4 => Came::Done([Outcome::Wrote(first); 2]),
            _ => Came::Unknown,
        }
    }

    /// What is known of a lane through which this change was asked for.
    fn state(self) -> LaneState {
        match self {
            Came::Unknown | Came::Refused => LaneState::Nothing,
            Came::Done([_, Outcome::Made(told)]) => LaneState::Made(told),
            Came::Done(_) => LaneState::Made(0),
        }
    }
}

impl Kept {
    /// Whether there is room for a change with so many bytes of names and content.
    pub fn has_room(&self, weight: usize) -> bool {
        let most = weight.min(LONGEST) + intent::SETTING + 2 * FRONT + END + PIECE;
        let changes = self.changes.lock();
        changes.next + most as u64 <= ROOM
    }

    /// Makes a record, as far as that can be done before it is known what its change starts from.
    ///
    /// # Errors
    /// No memory; a name is too long.
    pub fn draft(&self, action: &Change<Instance>) -> Result<RVec<u8>, FsError> {
        let bytes = bytes_of(action);
        let (_, written) = lengths(bytes.unwrap_or(0));
        let mut record = self.zeros(written)?;
        if let Some(bytes) = bytes {
            let place = &mut record[FRONT..FRONT + bytes];
            intent::draft::<Instance>(action, place).ok_or(FsError::NameTooLong)?;
        }
        Ok(record)
    }

    /// So many zeros.
    fn zeros(&self, length: usize) -> Result<RVec<u8>, FsError> {
        let spare = self.spare.lock().take();
        match spare.filter(|spare| spare.len() == length) {
            Some(mut spare) => {
                spare.fill(0);
                Ok(spare)
            }
            None => Ok(RVec::zeroed(length)?),
        }
    }

    /// A record is not needed any more; the next one may be made where it was.
    pub fn give_back(&self, record: RVec<u8>) {
        if record.len() <= SPARE {
            let before = self.spare.lock().replace(record);
            drop(before);
        }
    }

    /// Notes a change that is about to be tried, before which the engine had `count`: completes
    /// what [`draft`](Self::draft) made of it, or makes it.
    ///
    /// # Errors
    /// No memory, or no room for it.
    pub fn intend(
        &self,
        count: u64,
        lane: Option<Lane>,
        (action, basis): (&Change<Instance>, &Basis),
        drafted: &mut Option<RVec<u8>>,
    ) -> Result<(), FsError> {
        let record = match drafted.take() {
            Some(record) => record,
            None => self.draft(action)?,
        };
        let record = drafted.insert(record);
        let bytes = bytes_of(action);
        let (length, written) = lengths(bytes.unwrap_or(0));
        let mut changes = self.changes.lock();
        let (at, number) = (changes.next, changes.number);
        if at + written as u64 > ROOM {
            return Err(RpcError::NoMemory.into());
        }
        let entries = &mut changes.entries;
        entries.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
        let ticket = lane.map_or(0, |lane| self.ticket(lane));
        let lane_word = lane.map_or(0, |lane| u64::from(lane.get()) << 32);
        let [kind, real, told] = changes.came.words();
        let front = [
            number,
            bytes.unwrap_or(0) as u64 | lane_word,
            ticket,
            0,
            kind,
            real,
            told,
            u64::from(bytes.is_none()),
        ];
        record[..FRONT].copy_from_slice(front.map(u64::to_le_bytes).as_flattened());
        if let Some(bytes) = bytes {
            let place = &mut record[FRONT..FRONT + bytes];
            intent::complete(action, basis, place).ok_or(FsError::Invalid)?;
        }
        if let Err(error) = self.write_all(CHANGES + at, record) {
            // A part of it may be there.
            let _ = self.write(CHANGES + at, &[0; 8]);
            return Err(error);
        }
        changes.entries.push_back((count, at, number));
        changes.next = at + length as u64;
        changes.number = number + 1;
        changes.came = Came::Unknown;
        self.last_number.store(number, Ordering::Relaxed);
        if let Some(lane) = lane {
            self.remember_lane(lane, ticket, LaneState::Nothing);
        }
        Ok(())
    }

    /// Remembers what came of the change that was noted last.
    pub fn answer(&self, lane: Option<Lane>, came: Came) {
        self.changes.lock().came = came;
        if let Some(lane) = lane {
            self.remember_state(lane, came.state());
        }
    }

    /// Remembers what came of a change that the instance before has left.
    pub fn answer_left(&self, left: &LeftChange, came: Came) {
        self.changes.lock().came = came;
        if let Some(lane) = self.lane_of(left) {
            self.remember_lane(lane, left.ticket, came.state());
        }
    }

    /// Notes that a change is given up that the instance before has left.
    ///
    /// # Errors
    /// No memory.
    pub fn give_up_left(&self, left: &LeftChange) -> Result<(), FsError> {
        match self.lane_of(left) {
            Some(lane) => self.set_lane(lane, left.ticket, LaneState::GivenUp),
            None => Ok(()),
        }
    }

    /// The lane whose note tells of a change that the instance before has left. Who asked for it
    /// may have had his answer and have gone on to a write, which is in no record.
    fn lane_of(&self, left: &LeftChange) -> Option<Lane> {
        let tells = |lane: &Lane| self.lane(*lane).ticket == left.ticket;
        left.lane.filter(tells)
    }

    /// The first `count` changes, as the engine counts them, are on the disk.
    ///
    /// # Errors
    /// No memory: then they stay.
    pub fn forget(&self, count: u64) -> Result<(), FsError> {
        let mut changes = self.changes.lock();
        let gone = changes.entries.iter();
        match gone.take_while(|(number, ..)| *number < count).count() {
            0 => return Ok(()),
            gone => drop(changes.entries.drain(..gone)),
        }
        self.note_rest(&mut changes)
    }

    /// All that was left is on the disk.
    ///
    /// # Errors
    /// As [`forget`](Self::forget).
    pub fn begin_anew(&self) -> Result<(), FsError> {
        let mut changes = self.changes.lock();
        changes.entries.clear();
        self.note_rest(&mut changes)
    }

    /// What is known of lanes first: records that tell it are gone then.
    fn note_rest(&self, changes: &mut Changes) -> Result<(), FsError> {
        self.write_lanes()?;
        if let Some(&(_, at, number)) = changes.entries.front() {
            return self.note_log((at, number));
        }
        self.note_log((0, changes.number))?;
        (changes.next, changes.came) = (0, Came::Unknown);
        Ok(())
    }

    /// Until everything is committed again the log is of no use to anybody.
    pub fn forsake(&self) {
        self.changes.lock().entries.clear();
        if let Err(error) = self.note_log((0, 0)) {
            domain_rt::log!("not noted that the log is of no use: {error:?}");
        }
    }

    /// What is in the log that the instance before has left, and everything that is known of lanes.
    /// This one writes behind it.
    ///
    /// # Errors
    /// No memory.
    pub fn left_changes(&self) -> Result<Vec<LeftChange>, FsError> {
        let (mut at, mut number) = self.log();
        let mut left: Vec<LeftChange> = Vec::new();
        while number != 0 && at + (FRONT + END) as u64 <= ROOM {
            let front = self.read(CHANGES + at, FRONT)?;
            let front: [u64; 8] = core::array::from_fn(|at| word(&front, at));
            let [is, bytes, ticket, deaths, kind, real, told, is_gap] = front;
            if is != number {
                break;
            }
            if let Some(last) = left.last_mut() {
                last.came = Came::of([kind, real, told]);
            }
            left.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
            left.push(LeftChange {
                at,
                bytes: (bytes as u32 as usize).min(LONGEST),
                is_gap: is_gap != 0,
                lane: Lane::new((bytes >> 32) as u32),
                ticket,
                deaths,
                came: Came::Unknown,
            });
            at += FRONT as u64 + u64::from(bytes as u32).next_multiple_of(8);
            number += 1;
        }
        // Records behind what a lane's note knows tell more than it.
        let first = number - left.len() as u64;
        for (left, number) in left.iter().zip(first..) {
            if let Some(lane) = left.lane
                && self.lane(lane).number < number
            {
                self.last_number.store(number, Ordering::Relaxed);
                self.remember_lane(lane, left.ticket, left.came.state());
            }
        }
        self.last_number
            .store(number.saturating_sub(1), Ordering::Relaxed);
        *self.changes.lock() = Changes::new(at.min(ROOM), number.max(1));
        Ok(left)
    }

    /// The change of a record; `None`: it is not there.
    ///
    /// # Errors
    /// No memory.
    pub fn change_of(
        &self,
        left: &LeftChange,
    ) -> Result<Option<(Change<Instance>, Basis)>, FsError> {
        if left.is_gap {
            return Ok(None);
        }
        let packed = self.read(CHANGES + left.at + FRONT as u64, left.bytes)?;
        Ok(intent::unpack::<Instance>(&packed))
    }

    /// Notes that one more instance has died of a change.
    ///
    /// # Errors
    /// No memory.
    pub fn note_death(&self, left: &LeftChange) -> Result<(), FsError> {
        let deaths = left.deaths + 1;
        self.write(CHANGES + left.at + 24, &deaths.to_le_bytes())
    }
}
