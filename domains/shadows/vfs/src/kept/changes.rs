//! The log of changes: each is written before it is tried, so that it is there when this domain
//! dies, and the file system with it.
//!
//! Records follow each other from the place that the head says. Each begins at a multiple of 8, and
//! behind the last one is a word of zeros, so that nothing that was here before is taken for one.
//!
//! What is in a record is told in [`redo::record`]. One that is not whole was never tried: writing
//! it broke off, and the log ends before it.
//!
//! So a change costs one write: what came of it is in the next record, and of the last one nobody
//! has to know it, since the names on the disk tell. When everything is committed the log begins
//! anew; what it knows of lanes goes into their notes first.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use domain_rt::log;
use interfaces::{FsError, RVec, RpcError};
use redo::record::{self, Came, DEATHS_AT, FRONT, Mark, Record};
use redo::{Basis, Change, Lane, Outcome, intent};

use super::{CHANGES, Kept, MARK, word};
use crate::instance::Instance;
use crate::lanes::LaneState;

/// Bytes of the log.
pub const ROOM: u64 = 4 << 20;
/// Bytes of the zeros behind the last record.
const END: usize = 8;
/// The longest change that is here; one that is longer is lost if both die at once.
const LONGEST: usize = 128 << 10;
/// A record is written in so many bytes, or a multiple: there are zeros behind it. One up to
/// [`SPARE`] bytes is made where one before was made, if that had as many.
const PIECE: usize = 64;
const SPARE: usize = 4 * PIECE;

/// The log, as the instance knows it that writes it.
pub struct Changes {
    /// Where the next record comes, and its number.
    next: u64,
    number: u64,
    /// Changes, as the engine counts them, with the place and number of their records.
    entries: VecDeque<(u64, u64, u64)>,
    /// What came of the last one.
    came: Came,
    /// It is noted which change is being made again.
    is_marked: bool,
}

/// A record that an instance before has left.
pub struct LeftChange {
    at: u64,
    bytes: usize,
    is_gap: bool,
    number: u64,
    /// There was one behind it that is not whole, so it had come to an end.
    pub is_ended: bool,
    pub lane: Option<Lane>,
    pub ticket: u64,
    /// As the record has it.
    word: u64,
    pub came: Came,
}

impl LeftChange {
    fn new(at: u64, record: &Record) -> Self {
        LeftChange {
            at,
            bytes: record.bytes as usize,
            is_gap: record.is_gap,
            number: record.number,
            is_ended: false,
            lane: record.lane,
            ticket: record.ticket,
            word: record.deaths,
            came: Came::Unknown,
        }
    }

    /// How many shadows died of it.
    pub fn deaths(&self) -> u8 {
        record::deaths(self.word)
    }
}

impl Changes {
    /// The log begins here, and has nothing.
    pub fn new(next: u64, number: u64) -> Self {
        Changes {
            next,
            number,
            entries: VecDeque::new(),
            came: Came::Unknown,
            is_marked: false,
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

/// What is known of a lane through which a change was asked for of which this came.
fn state_of(came: Came) -> LaneState {
    match came {
        Came::Unknown | Came::Refused => LaneState::Nothing,
        Came::Done([_, Outcome::Made(told)]) => LaneState::Made(told),
        Came::Done(_) => LaneState::Made(0),
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
        if let Some(bytes) = bytes {
            let place = &mut record[FRONT..FRONT + bytes];
            intent::complete(action, basis, place).ok_or(FsError::Invalid)?;
        }
        let front = Record {
            number,
            bytes: bytes.unwrap_or(0) as u32,
            is_gap: bytes.is_none(),
            lane,
            ticket,
            deaths: 0,
            before: changes.came,
        };
        front.seal(record);
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
            self.remember_state(lane, state_of(came));
        }
    }

    /// Remembers what came of a change that the instance before has left.
    pub fn answer_left(&self, left: &LeftChange, came: Came) {
        self.changes.lock().came = came;
        if let Some(lane) = self.lane_of(left) {
            self.remember_lane(lane, left.ticket, state_of(came));
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

    /// What is in the log that the instance before has left, with what that died of, and everything
    /// that is known of lanes. This one writes behind it.
    ///
    /// # Errors
    /// No memory.
    pub fn left_changes(&self) -> Result<Vec<LeftChange>, FsError> {
        let (mut at, mut number) = self.log();
        let mut left: Vec<LeftChange> = Vec::new();
        while number != 0 && at + (FRONT + END) as u64 <= ROOM {
            let front = self.read(CHANGES + at, FRONT)?;
            let front = front.first_chunk::<FRONT>();
            let Some(record) = front.and_then(|front| Record::read(front, number)) else {
                break;
            };
            if !self.is_whole(at, &record)? {
                log!("change {number} of the log is not whole: the log ends before it");
                if let Some(last) = left.last_mut() {
                    last.is_ended = true;
                }
                break;
            }
            if let Some(last) = left.last_mut() {
                last.came = record.before;
            }
            left.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
            left.push(LeftChange::new(at, &record));
            at += record.length() as u64;
            number += 1;
        }
        self.blame(&mut left)?;
        // Records behind what a lane's note knows tell more than it.
        let first = number - left.len() as u64;
        for (left, number) in left.iter().zip(first..) {
            if let Some(lane) = left.lane
                && self.lane(lane).number < number
            {
                self.last_number.store(number, Ordering::Relaxed);
                self.remember_lane(lane, left.ticket, state_of(left.came));
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

    /// Whether a record is as it was written.
    fn is_whole(&self, at: u64, record: &Record) -> Result<bool, FsError> {
        let length = record.length();
        if record.bytes as usize > LONGEST || at + (length + END) as u64 > ROOM {
            return Ok(false);
        }
        Ok(Record::is_whole(&self.read(CHANGES + at, length)?))
    }

    /// Notes with the changes that were left which of them the instance before died of.
    fn blame(&self, left: &mut [LeftChange]) -> Result<(), FsError> {
        let mark = self.read(MARK, 16)?;
        let mark = Mark::of([0, 1].map(|at| word(&mark, at)));
        let count = left.len();
        for (index, left) in left.iter_mut().enumerate() {
            let is_last = index + 1 == count && !left.is_ended;
            let blamed = record::blamed(left.number, left.word, mark, is_last);
            if blamed != left.word {
                self.write(CHANGES + left.at + DEATHS_AT, &blamed.to_le_bytes())?;
                left.word = blamed;
            }
        }
        match mark {
            Some(_) => self.write(MARK, &[0; 16]),
            None => Ok(()),
        }
    }

    /// The engine has a change that was left as the one before which there were `count`.
    ///
    /// # Errors
    /// No memory.
    pub fn follow(&self, count: u64, left: &LeftChange) -> Result<(), FsError> {
        let entries = &mut self.changes.lock().entries;
        entries.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
        entries.push_back((count, left.at, left.number));
        Ok(())
    }

    /// Notes which change is about to be made again, as the engine counts them, and how many
    /// instances will have died of it if this one ends now; or that none is any more.
    pub fn mark(&self, change: Option<(u64, u8)>) {
        let mut changes = self.changes.lock();
        let mark = change.and_then(|(count, deaths)| {
            let entries = &changes.entries;
            // Of those with this number all but the last were refused.
            let behind = entries.partition_point(|(before, ..)| *before <= count);
            let (is, _, number) = *entries.get(behind.checked_sub(1)?)?;
            (is == count).then_some(Mark { number, deaths })
        });
        if mark.is_none() && !changes.is_marked {
            return;
        }
        let words = Mark::words(mark).map(u64::to_le_bytes);
        match self.write(MARK, words.as_flattened()) {
            Ok(()) => changes.is_marked = mark.is_some(),
            Err(error) => log!("not noted which change is made again: {error:?}"),
        }
    }
}
