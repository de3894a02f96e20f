//! Notes of lanes: what is known of each, in memory and for the next instance.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use domain_rt::sync::Mutex;
use interfaces::{FsError, RpcError};
use redo::Lane;

use super::{Kept, NOTE, word};
use crate::lanes::{LANES, LaneNote, LaneState};

/// Where the notes of lanes begin.
const AT: u64 = 5 << 13;

/// A lane, as the instance knows it that serves.
#[derive(Clone, Copy, Default)]
struct Known {
    note: LaneNote,
    /// What its next change goes by.
    ticket: u64,
}

/// All of them.
pub struct Lanes(Mutex<Vec<Known>>);

impl Lanes {
    /// Of none is anything known.
    ///
    /// # Errors
    /// No memory.
    pub fn new() -> Result<Self, FsError> {
        let mut lanes = Vec::new();
        lanes
            .try_reserve_exact(LANES)
            .map_err(|_| RpcError::NoMemory)?;
        lanes.resize_with(LANES, Known::default);
        Ok(Lanes(Mutex::new(lanes)))
    }
}

impl Kept {
    /// What is known of a lane.
    pub fn lane(&self, lane: Lane) -> LaneNote {
        self.known(lane).note
    }

    /// What the next change of a lane goes by.
    pub fn ticket(&self, lane: Lane) -> u64 {
        self.known(lane).ticket
    }

    fn known(&self, lane: Lane) -> Known {
        let lanes = self.lanes.0.lock();
        lanes.get(lane.get() as usize).copied().unwrap_or_default()
    }

    /// The next change of a lane goes by `ticket`. It is noted with that change.
    pub fn begin(&self, lane: Lane, ticket: u64) {
        if let Some(known) = self.lanes.0.lock().get_mut(lane.get() as usize) {
            known.ticket = ticket;
        }
    }

    /// Remembers what is known of a lane's change, which is in the log of changes.
    pub(super) fn remember_lane(&self, lane: Lane, ticket: u64, state: LaneState) {
        let number = self.last_number.load(Ordering::Relaxed);
        if let Some(known) = self.lanes.0.lock().get_mut(lane.get() as usize) {
            known.note = LaneNote {
                ticket,
                state,
                number,
            };
        }
    }

    /// Remembers what came of a lane's change that is in the log of changes.
    pub(super) fn remember_state(&self, lane: Lane, state: LaneState) {
        let number = self.last_number.load(Ordering::Relaxed);
        if let Some(known) = self.lanes.0.lock().get_mut(lane.get() as usize) {
            (known.note.state, known.note.number) = (state, number);
        }
    }

    /// Notes what became of a change of a lane that is not in the log.
    ///
    /// # Errors
    /// No memory; there is no such lane.
    pub fn set_lane(&self, lane: Lane, ticket: u64, state: LaneState) -> Result<(), FsError> {
        let place = lane.get() as usize;
        let number = self.last_number.load(Ordering::Relaxed);
        let mut lanes = self.lanes.0.lock();
        let known = lanes.get_mut(place).ok_or(FsError::Invalid)?;
        let note = LaneNote {
            ticket,
            state,
            number,
        };
        let bytes = note.words().map(u64::to_le_bytes);
        self.write(AT + place as u64 * NOTE, bytes.as_flattened())?;
        known.note = note;
        Ok(())
    }

    /// Notes what is known of all lanes that were ever used.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn write_lanes(&self) -> Result<(), FsError> {
        let lanes = self.lanes.0.lock();
        let used = lanes.iter().rposition(|known| known.note.ticket != 0);
        let used = used.map_or(0, |last| last + 1);
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(used * NOTE as usize)
            .map_err(|_| RpcError::NoMemory)?;
        for known in &lanes[..used] {
            let words = known.note.words().map(u64::to_le_bytes);
            bytes.extend_from_slice(words.as_flattened());
        }
        match used {
            0 => Ok(()),
            _ => self.write(AT, &bytes),
        }
    }

    /// Learns what the notes say.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn read_lanes(&self) -> Result<(), FsError> {
        let notes = self.read(AT, LANES * NOTE as usize)?;
        let mut lanes = self.lanes.0.lock();
        for (known, note) in lanes.iter_mut().zip(notes.chunks_exact(NOTE as usize)) {
            known.note = LaneNote::of([0, 1, 2, 3].map(|at| word(note, at)));
        }
        Ok(())
    }
}
