//! The journal: every change, before it is acknowledged, as a record in an object.
//!
//! # Form
//! Records lie one behind the other, behind the last there are zeros:
//!
//! | bytes | what |
//! | --- | --- |
//! | 2 | length of the record proper |
//! | 2 | the same with all bits turned over |
//! | 8 | its number: one more than that of the record before |
//! | .. | the record |
//! | 8 | checksum of all that, the number included |
//! | 1 | [`MARK`] |
//!
//! A record is there when its mark is. Bytes get into an object in their order, so whoever dies
//! while it writes leaves a beginning without a mark, and zeros behind where that would be: such a
//! record is not there, and zeros are written over it before the next one. Anything else is damage.
//!
//! # Snapshots
//! A journal that grew is replaced by one in another object, whose first records say what there is.
//! The one step that counts is that the other object is kept under the journal's key; before it
//! nobody reads the other, and after it nobody the old one.
//!
//! # Memory
//! Pages are given to the object before they are needed, so that names can be removed, which takes
//! records, when there is no memory: [`SPARE`] bytes are for that alone.

use alloc::vec::Vec;

use crate::record::{self, LONGEST, Record};
use crate::store::{Object, PAGE};
use crate::{Error, Result};

/// Bytes around a record.
const FRAME: usize = 21;
/// The last byte of a record.
const MARK: u8 = 0xa5;
/// Bytes that are left for records of removals.
const SPARE: u64 = 16 * 1024;
/// No journal shorter than this is replaced.
const SHORT: u64 = 256 * 1024;
/// Bytes that are looked at at once. A record fits twice.
const WINDOW: usize = 64 * 1024;

static ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];

/// What a record is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Something grows: it may not have the spare room.
    Growth,
    /// Something goes, or only changes.
    Change,
}

/// Where the records go.
pub(crate) struct Journal<O> {
    object: O,
    /// Where the next record goes.
    end: u64,
    /// So many bytes have memory.
    ready: u64,
    /// The number of the next record.
    number: u64,
    /// No snapshot is tried before this length.
    due: u64,
    /// A record could not be written, and nobody knows how much of it is there.
    is_broken: bool,
    /// The record that is being written; it has room for every one.
    frame: Vec<u8>,
}

/// Why a journal could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// At this byte there is what was never written.
    Damaged(u64),
    /// As the error says.
    Failed(Error),
}

impl<O: Object> Journal<O> {
    /// A journal without records in an object without content.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) fn new(object: O) -> Result<Self> {
        let mut frame = Vec::new();
        frame
            .try_reserve_exact(LONGEST + FRAME)
            .map_err(|_| Error::NoSpace)?;
        Ok(Journal {
            object,
            end: 0,
            ready: 0,
            number: 1,
            due: 0,
            is_broken: false,
            frame,
        })
    }

    /// The object that it is in.
    pub(crate) fn object(&self) -> &O {
        &self.object
    }

    /// Whether it is time for another one that begins with a snapshot, which would have so many
    /// bytes.
    pub(crate) fn is_due(&self, snapshot: u64) -> bool {
        self.is_broken || self.end >= self.due.max(SHORT).max(snapshot + snapshot / 2)
    }

    /// There was no memory for a snapshot: it is tried again when the journal has grown.
    pub(crate) fn put_off(&mut self) {
        self.due = self.end + SHORT / 4;
    }

    /// Bytes of its records.
    #[cfg(test)]
    pub(crate) fn length(&self) -> u64 {
        self.end
    }

    /// Makes sure that there is memory for one more record of any length.
    ///
    /// # Errors
    /// `NoSpace`, `Broken`.
    pub(crate) fn make_room(&mut self, need: Need) -> Result<()> {
        if self.is_broken {
            return Err(Error::Broken);
        }
        let end = self.end + (LONGEST + FRAME) as u64;
        match self.make_ready(end + SPARE) {
            Err(error) if need == Need::Growth || self.ready < end => Err(error),
            _ => Ok(()),
        }
    }

    fn make_ready(&mut self, end: u64) -> Result<()> {
        while self.ready < end {
            let count = self.object.write_bytes(self.ready, &ZEROS)?;
            if count < ZEROS.len() {
                return Err(Error::NoSpace);
            }
            self.ready += PAGE;
        }
        Ok(())
    }

    /// Adds a record, for which [`make_room`](Self::make_room) has made room.
    ///
    /// # Errors
    /// `Broken`.
    pub(crate) fn append(&mut self, record: &Record) -> Result<()> {
        if self.is_broken {
            return Err(Error::Broken);
        }
        self.fill_frame(record);
        match self.object.write_bytes(self.end, &self.frame) {
            Ok(count) if count == self.frame.len() => {
                self.end += count as u64;
                self.ready = self.ready.max(self.end.next_multiple_of(PAGE));
                self.number += 1;
                Ok(())
            }
            _ => {
                self.is_broken = true;
                Err(Error::Broken)
            }
        }
    }

    fn fill_frame(&mut self, record: &Record) {
        let frame = &mut self.frame;
        frame.clear();
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(&self.number.to_le_bytes());
        record.encode(frame);
        let length = (frame.len() - 12) as u32;
        frame[..4].copy_from_slice(&(length | !length << 16).to_le_bytes());
        let sum = checksum(frame);
        frame.extend_from_slice(&sum.to_le_bytes());
        frame.push(MARK);
    }

    /// Reads a journal that another instance has left, gives its records to `each`, and makes it
    /// ready to go on with.
    ///
    /// # Errors
    /// What `each` says; damage.
    pub(crate) fn open(
        object: O,
        each: impl FnMut(&Record) -> Result<()>,
    ) -> core::result::Result<Self, Trouble> {
        let mut journal = Journal::new(object).map_err(Trouble::Failed)?;
        let is_cut = journal.read(each)?;
        if is_cut {
            journal.wipe().map_err(Trouble::Failed)?;
        }
        Ok(journal)
    }

    /// Reads all records; whether there is a beginning of another one.
    fn read(
        &mut self,
        mut each: impl FnMut(&Record) -> Result<()>,
    ) -> core::result::Result<bool, Trouble> {
        let pages = self.object.pages().map_err(failed)?;
        self.ready = pages * PAGE;
        let mut window = Window::new(self.ready)?;
        loop {
            window.fill(&self.object)?;
            let at = window.position();
            let found = parse(window.rest(), self.number).ok_or(Trouble::Damaged(at))?;
            let Found::Record(record, length) = found else {
                self.end = at;
                let Found::Nothing(zeros_from) = found else {
                    return Err(Trouble::Damaged(at));
                };
                window.skip(zeros_from);
                window.expect_zeros(&self.object)?;
                return Ok(zeros_from > 0);
            };
            each(&record).map_err(|error| match error {
                Error::NoSpace | Error::Broken => Trouble::Failed(error),
                _ => Trouble::Damaged(at),
            })?;
            window.skip(length);
            self.number += 1;
        }
    }

    /// Writes zeros over the beginning of a record: over its length last, which tells how far what
    /// is left of it may reach.
    fn wipe(&mut self) -> Result<()> {
        let end = (self.end + (LONGEST + FRAME) as u64).min(self.ready);
        let length = (self.end + 4).min(end);
        let mut at = length;
        while at < end {
            let count = (end - at).min(PAGE);
            self.wipe_part(at, count)?;
            at += count;
        }
        self.wipe_part(self.end, length - self.end)
    }

    fn wipe_part(&self, at: u64, count: u64) -> Result<()> {
        match self.object.write_bytes(at, &ZEROS[..count as usize])? as u64 == count {
            true => Ok(()),
            false => Err(Error::Broken),
        }
    }
}

fn failed(fault: crate::store::Fault) -> Trouble {
    Trouble::Failed(fault.into())
}

/// What is at some byte of a journal.
enum Found<'a> {
    /// A record, and how many bytes it takes.
    Record(Record<'a>, usize),
    /// None, or the beginning of one: from this byte on there must be zeros.
    Nothing(usize),
}

/// What `bytes`, all that are left or more than a record has, begin with. `None`: damage.
fn parse(bytes: &[u8], number: u64) -> Option<Found<'_>> {
    let Some((first, _)) = bytes.split_first_chunk::<4>() else {
        return Some(Found::Nothing(0));
    };
    let first = u32::from_le_bytes(*first);
    let length = (first & 0xffff) as usize;
    if first == 0 {
        return Some(Found::Nothing(0));
    }
    if length as u32 != !first >> 16 {
        // The beginning of a length; otherwise what follows says that it is damage.
        return Some(Found::Nothing(4));
    }
    if length > LONGEST {
        return None;
    }
    let end = length + FRAME;
    match bytes.get(end - 1) {
        None => return Some(Found::Nothing(bytes.len())),
        Some(0) => return Some(Found::Nothing(end - 1)),
        Some(&MARK) => {}
        Some(_) => return None,
    }
    let (summed, sum) = bytes[..end - 1].split_last_chunk::<8>()?;
    let is_it =
        checksum(summed) == u64::from_le_bytes(*sum) && summed[4..12] == number.to_le_bytes();
    if !is_it {
        return None;
    }
    Some(Found::Record(record::decode(&summed[12..])?, end))
}

/// A checksum of 64 bits: each word is multiplied in.
fn checksum(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| {
        let product = (sum ^ word).wrapping_mul(FACTOR);
        product ^ (product >> 29)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(bytes.len() as u64, |sum, word| {
        mix(sum, u64::from_le_bytes(*word))
    });
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(mix(sum, u64::from_le_bytes(last)), FACTOR)
}

/// The part of an object that is looked at.
struct Window {
    bytes: Vec<u8>,
    /// Where in the object it begins.
    from: u64,
    /// What was looked at already.
    done: usize,
    /// So many bytes of it are from the object.
    filled: usize,
    /// Bytes in the object.
    length: u64,
}

impl Window {
    fn new(length: u64) -> core::result::Result<Self, Trouble> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(WINDOW)
            .map_err(|_| Trouble::Failed(Error::NoSpace))?;
        bytes.resize(WINDOW, 0);
        Ok(Window {
            bytes,
            from: 0,
            done: 0,
            filled: 0,
            length,
        })
    }

    fn position(&self) -> u64 {
        self.from + self.done as u64
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.done..self.filled]
    }

    fn skip(&mut self, count: usize) {
        self.done += count;
    }

    /// Sees to it that there is a whole record to look at, or all that is left.
    fn fill(&mut self, object: &impl Object) -> core::result::Result<(), Trouble> {
        if self.filled - self.done >= LONGEST + FRAME {
            return Ok(());
        }
        self.bytes.copy_within(self.done..self.filled, 0);
        self.from += self.done as u64;
        self.filled -= self.done;
        self.done = 0;
        let left = self.length - self.from - self.filled as u64;
        let count = left.min((WINDOW - self.filled) as u64) as usize;
        let place = &mut self.bytes[self.filled..self.filled + count];
        object
            .read_bytes(self.from + self.filled as u64, place)
            .map_err(failed)?;
        self.filled += count;
        Ok(())
    }

    /// Damage, if there is anything but zeros left.
    fn expect_zeros(&mut self, object: &impl Object) -> core::result::Result<(), Trouble> {
        loop {
            if let Some(at) = self.rest().iter().position(|&byte| byte != 0) {
                return Err(Trouble::Damaged(self.position() + at as u64));
            }
            self.done = self.filled;
            self.fill(object)?;
            if self.filled == 0 {
                return Ok(());
            }
        }
    }
}
