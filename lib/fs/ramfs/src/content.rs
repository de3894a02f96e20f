//! The bytes of a file: pieces of up to [`PIECE`] bytes, with holes between them.
//!
//! A piece takes memory only up to its last byte that was written, in steps that double, so that
//! small files are small. Large pieces are more than what small allocations share, so their memory
//! goes back when they go.

use alloc::vec::Vec;

use crate::{Error, Result};

/// Bytes that one piece covers.
pub(crate) const PIECE: u64 = 64 * 1024;

/// The smallest step in which a piece takes memory.
const STEP: usize = 512;

/// Largest size of a file.
pub const MAX_SIZE: u64 = i64::MAX as u64;

/// One piece: its number in the file, and its bytes; what is not there is zeros.
struct Piece {
    number: u64,
    bytes: Vec<u8>,
}

/// The content of a file.
#[derive(Default)]
pub(crate) struct Content {
    size: u64,
    /// In the order of their numbers.
    pieces: Vec<Piece>,
}

impl Content {
    /// Length in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Memory that it takes, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let bytes = self.pieces.iter().map(|piece| piece.bytes.len() as u64);
        bytes.sum()
    }

    /// Reads from `offset`; how many bytes, fewer than asked for only at the end.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let left = self.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut done = 0;
        while done < left {
            let at = offset + done as u64;
            let within = (at % PIECE) as usize;
            let length = (PIECE as usize - within).min(left - done);
            let place = &mut buffer[done..done + length];
            match self.find(at / PIECE) {
                Ok(index) => copy_out(&self.pieces[index].bytes, within, place),
                Err(_) => place.fill(0),
            }
            done += length;
        }
        left
    }

    /// Writes `data`, which does not reach beyond the piece that `offset` is in, with at most
    /// `most` bytes more of memory; how much more it took.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) fn write_piece(&mut self, offset: u64, data: &[u8], most: u64) -> Result<u64> {
        let within = (offset % PIECE) as usize;
        let end = within + data.len();
        let number = offset / PIECE;
        let found = self.find(number);
        let before = found.map_or(0, |index| self.pieces[index].bytes.len());
        let after = match end <= before {
            true => before,
            false => end.next_power_of_two().clamp(STEP, PIECE as usize),
        };
        let more = (after - before) as u64;
        if more > most {
            return Err(Error::NoSpace);
        }
        let index = match found {
            Ok(index) => index,
            Err(index) => {
                self.pieces.try_reserve(1).map_err(|_| Error::NoSpace)?;
                let bytes = Vec::new();
                self.pieces.insert(index, Piece { number, bytes });
                index
            }
        };
        if let Err(error) = grow(&mut self.pieces[index].bytes, after) {
            if before == 0 {
                self.pieces.remove(index);
            }
            return Err(error);
        }
        self.pieces[index].bytes[within..end].copy_from_slice(data);
        self.size = self.size.max(offset + data.len() as u64);
        Ok(more)
    }

    /// Sets the size; how much less memory it takes.
    pub(crate) fn set_size(&mut self, size: u64) -> u64 {
        let before = self.memory();
        if size < self.size {
            let kept = self
                .pieces
                .partition_point(|piece| piece.number < size.div_ceil(PIECE));
            self.pieces.truncate(kept);
            if let Some(last) = self
                .pieces
                .last_mut()
                .filter(|last| last.number == size / PIECE)
            {
                // What is cut off must read as zeros if the file grows again.
                let end = (size % PIECE) as usize;
                if let Some(tail) = last.bytes.get_mut(end..) {
                    tail.fill(0);
                }
            }
            self.pieces.shrink_to_fit();
        }
        self.size = size;
        before - self.memory()
    }

    fn find(&self, number: u64) -> core::result::Result<usize, usize> {
        self.pieces
            .binary_search_by_key(&number, |piece| piece.number)
    }
}

fn grow(bytes: &mut Vec<u8>, length: usize) -> Result<()> {
    let more = length.saturating_sub(bytes.len());
    bytes.try_reserve_exact(more).map_err(|_| Error::NoSpace)?;
    bytes.resize(bytes.len() + more, 0);
    Ok(())
}

/// Copies from byte `from` of a piece; zeros behind its end.
fn copy_out(bytes: &[u8], from: usize, place: &mut [u8]) {
    let there = bytes.get(from..).unwrap_or_default();
    let count = there.len().min(place.len());
    place[..count].copy_from_slice(&there[..count]);
    place[count..].fill(0);
}
