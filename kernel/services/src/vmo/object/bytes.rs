//! Reading and writing the bytes of an object, without a lock.

use super::super::index::Found;
use super::super::payer::Payer;
use super::{Result, Vmo};
use interfaces::{MemoryError, VmoFill};
use isolation::platform::PAGE;
use pages::{Bytes, Missing};

impl<F: Bytes, P: Payer> Vmo<F, P> {
    /// Reads from byte `offset`; how many bytes, fewer than asked for at the limit, or before a
    /// page that cannot be read now.
    ///
    /// # Errors
    /// Not one byte can be read; why.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        let mut left = bytes;
        in_pages(offset, left.len(), |page, at, count| {
            let (now, later) = core::mem::take(&mut left).split_at_mut(count);
            left = later;
            self.read_page(page, at, now)
        })
    }

    fn read_page(&self, page: u64, at: usize, bytes: &mut [u8]) -> Result<()> {
        loop {
            self.is_within(page)?;
            match self.index.find(page) {
                Found::Here(place) => match place.entry.read(at, bytes, || place.is_right()) {
                    Ok(true) => return Ok(()),
                    Ok(false) => continue,
                    Err(_) if !place.is_right() => continue,
                    Err(Missing::Absent | Missing::Cut) => {}
                    Err(Missing::Loading) => match self.break_off_dead(page) {
                        true => continue,
                        false => return Err(MemoryError::Loading),
                    },
                },
                Found::Nothing => {}
                Found::Changing => continue,
            }
            match self.fill {
                VmoFill::Zero => bytes.fill(0),
                VmoFill::Load => return Err(MemoryError::Absent),
            }
            return Ok(());
        }
    }

    /// Writes at byte `offset`; how many bytes, as in [`read`](Self::read).
    ///
    /// # Errors
    /// Not one byte can be written; why.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<usize> {
        let _writing = self.begin_write()?;
        let mut left = bytes;
        in_pages(offset, bytes.len(), |page, at, count| {
            // Who seals does not wait for a long write.
            if self.seal.is_closed() {
                return Err(MemoryError::Sealed);
            }
            let (now, later) = left.split_at(count);
            left = later;
            self.write_page(page, at, now)
        })
    }

    fn write_page(&self, page: u64, at: usize, bytes: &[u8]) -> Result<()> {
        loop {
            self.is_within(page)?;
            match self.index.find(page) {
                Found::Here(place) => match place.entry.write(at, bytes, || place.is_right()) {
                    Ok(Some(was_clean)) => {
                        if was_clean {
                            self.marked();
                        }
                        return Ok(());
                    }
                    Ok(None) | Err(Missing::Cut) => continue,
                    Err(_) if !place.is_right() => continue,
                    Err(Missing::Absent) => {}
                    Err(Missing::Loading) => match self.break_off_dead(page) {
                        true => continue,
                        false => return Err(MemoryError::Loading),
                    },
                },
                Found::Nothing => {}
                Found::Changing => continue,
            }
            self.bring(page)?;
        }
    }
}

/// Does `step` for each page that `length` bytes from `offset` on lie in: with the page, the place
/// in it, and how many bytes. How many bytes were done before one that failed.
///
/// # Errors
/// The first one failed; why. The end is beyond all numbers.
pub(super) fn in_pages(
    offset: u64,
    length: usize,
    mut step: impl FnMut(u64, usize, usize) -> Result<()>,
) -> Result<usize> {
    offset
        .checked_add(length as u64)
        .ok_or(MemoryError::Beyond)?;
    let mut done = 0;
    while done < length {
        let from = offset + done as u64;
        let at = from as usize % PAGE;
        let count = (PAGE - at).min(length - done);
        match step(from / PAGE as u64, at, count) {
            Ok(()) => done += count,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}
