//! What is to be written: bytes of the shared heap, or a program's, which are copied from there
//! straight into pages.

use core::ops::Range;

use interfaces::{FsError, Handle, MemoryError, RVec, UserBuf, VmoView};

/// The most bytes of a program that are written in one call.
const MOST: u64 = 2 << 20;

/// What is to be written.
pub enum Data<'a> {
    /// These bytes.
    Own(&'a RVec<u8>),
    /// Bytes of a program, from `at` of its memory on. They may change meanwhile, or go.
    Program {
        /// The memory.
        memory: &'a UserBuf<'a>,
        /// Where they begin in it.
        at: u64,
        /// How many.
        count: u64,
    },
}

impl<'a> Data<'a> {
    /// At most `count` bytes from `at` of a program's memory on.
    pub fn of_program(memory: &'a UserBuf<'a>, at: u64, count: u64) -> Self {
        let count = count.min(memory.len().saturating_sub(at)).min(MOST);
        Data::Program { memory, at, count }
    }

    /// How many bytes.
    pub fn len(&self) -> u64 {
        match self {
            Data::Own(bytes) => bytes.len() as u64,
            Data::Program { count, .. } => *count,
        }
    }

    /// Whether they cannot go.
    pub fn is_own(&self) -> bool {
        matches!(self, Data::Own(_))
    }

    /// Whether the first of them can be read now.
    pub fn is_ready(&self) -> bool {
        match self {
            Data::Own(_) => true,
            Data::Program { memory, at, .. } => memory.read(*at, &mut [0]) == 1,
        }
    }

    /// Writes some of them to a view, of which the first byte of all belongs at `to`; how many.
    /// None only where a program may not read them now.
    ///
    /// # Errors
    /// Those of the view.
    pub fn write(
        &self,
        view: &Handle<dyn VmoView>,
        to: u64,
        part: Range<u64>,
    ) -> Result<u64, MemoryError> {
        let (to, count) = (to + part.start, part.end - part.start);
        let written = match self {
            Data::Own(bytes) if bytes.len() as u64 == count => view.write(to, bytes),
            Data::Own(bytes) => view.write(to, &copy_of(bytes, part)?),
            Data::Program { memory, at, .. } => view.write_from(to, count, memory, at + part.start),
        };
        none_if_unready(written)
    }

    /// As [`write`](Self::write), into pages that are being loaded.
    ///
    /// # Errors
    /// Those of the view.
    pub fn fill(
        &self,
        view: &Handle<dyn VmoView>,
        to: u64,
        part: Range<u64>,
    ) -> Result<u64, MemoryError> {
        let (to, count) = (to + part.start, part.end - part.start);
        let filled = match self {
            Data::Own(bytes) if bytes.len() as u64 == count => view.fill(to, bytes),
            Data::Own(bytes) => view.fill(to, &copy_of(bytes, part)?),
            Data::Program { memory, at, .. } => view.fill_from(to, count, memory, at + part.start),
        };
        none_if_unready(filled)
    }
}

/// A program's bytes from `at` of its memory on, `count` at most, for who does not write to pages;
/// fewer where it may not read them now.
///
/// # Errors
/// No memory.
pub fn copied(memory: &UserBuf<'_>, at: u64, count: u64) -> Result<RVec<u8>, FsError> {
    let count = count.min(memory.len().saturating_sub(at)).min(MOST);
    let mut bytes = RVec::filled(0, count as usize)?;
    let count = memory.read(at, &mut bytes);
    Ok(bytes.truncated(count))
}

fn copy_of(bytes: &RVec<u8>, part: Range<u64>) -> Result<RVec<u8>, MemoryError> {
    let part = part.start as usize..part.end as usize;
    Ok(RVec::from_slice(bytes.get(part).unwrap_or_default())?)
}

fn none_if_unready(done: Result<u64, MemoryError>) -> Result<u64, MemoryError> {
    match done {
        Err(MemoryError::Unready) => Ok(0),
        done => done,
    }
}
