//! Copies between an object and the memory of a program, with nothing in between.
//!
//! A page is copied with its frame held, as any reader or writer does it. The program's side is the
//! frames' affair ([`Bytes::copy_to`]): a page that the program may not access now ends the copy
//! there, whatever it or others do meanwhile. Nothing waits for the program.

use super::super::payer::Payer;
use super::{AT_ONCE, Result, Vmo};
use interfaces::MemoryError;
use isolation::platform::PAGE;
use pages::{Bytes, Run};

/// The most bytes that are copied in one call.
pub const MOST_BYTES: u64 = AT_ONCE * PAGE as u64;

impl<F: Bytes, P: Payer> Vmo<F, P> {
    /// Copies from byte `offset` on to a program; how many bytes, fewer than asked for also before
    /// a page that the program may not write to now.
    ///
    /// # Errors
    /// Those of [`read`](Self::read). [`MemoryError::Unready`]: the first byte's page of the
    /// program. [`MemoryError::Absent`] also of an object of zeros: who may just read is not to
    /// have others pay for memory.
    pub fn read_to(&self, offset: u64, run: Run<'_, F::Program>) -> Result<usize> {
        in_parts(offset, run, |page, at, run| {
            loop {
                let Some((place, held)) = self.present(page)? else {
                    continue;
                };
                let done = held.copy_to(at, run);
                place.entry.note_use(&held);
                return Ok(done);
            }
        })
    }

    /// Copies from a program to byte `offset` on; how many bytes, fewer than asked for also before
    /// a page that the program may not read now.
    ///
    /// # Errors
    /// Those of [`write`](Self::write). [`MemoryError::Unready`]: the first byte's page of the
    /// program.
    pub fn write_from(&self, offset: u64, run: Run<'_, F::Program>) -> Result<usize> {
        let _writing = self.begin_write()?;
        in_parts(offset, run, |page, at, run| {
            // Who seals does not wait for a long write.
            if self.seal.is_closed() {
                return Err(MemoryError::Sealed);
            }
            loop {
                let Some((place, held)) = self.usable(page)? else {
                    continue;
                };
                let done = held.copy_from(at, run);
                if done == 0 {
                    return Ok(0);
                }
                // While its frame is held the entry has it for this page alone. What went to a page
                // that was cut off meanwhile counts as not written.
                match place.entry.mark(&held) {
                    Ok(was_clean) => {
                        if was_clean {
                            self.marked();
                        }
                        return Ok(done);
                    }
                    Err(_) => continue,
                }
            }
        })
    }

    /// Copies from a program into pages that are being loaded, from byte `offset` on; how many
    /// bytes, fewer than asked for also before a page that the program may not read now.
    ///
    /// # Errors
    /// Those of [`fill`](Self::fill). [`MemoryError::Unready`]: the first byte's page of the
    /// program.
    pub fn fill_from(&self, offset: u64, run: Run<'_, F::Program>) -> Result<usize> {
        let _writing = self.begin_write()?;
        in_parts(offset, run, |page, at, run| {
            self.is_within(page)?;
            Ok(self.lend_loading(page)?.fill_from(at, run))
        })
    }
}

/// Does `step` for each part of `run` that lies in one page from `offset` on: with the page, the
/// place in it, and the part. It says how many bytes it did; how many were done before it was short
/// or failed.
///
/// # Errors
/// The first failed; why. [`MemoryError::Unready`]: it did none. The end is beyond all numbers.
fn in_parts<P>(
    offset: u64,
    run: Run<'_, P>,
    mut step: impl FnMut(u64, usize, Run<'_, P>) -> Result<usize>,
) -> Result<usize> {
    offset
        .checked_add(run.count as u64)
        .ok_or(MemoryError::Beyond)?;
    let mut done = 0;
    while done < run.count {
        let from = offset + done as u64;
        let at = from as usize % PAGE;
        let part = run.part(done, PAGE - at);
        let wanted = part.count;
        match step(from / PAGE as u64, at, part) {
            Ok(0) if done == 0 => return Err(MemoryError::Unready),
            Err(error) if done == 0 => return Err(error),
            Ok(copied) if copied == wanted => done += copied,
            Ok(copied) => return Ok(done + copied),
            Err(_) => break,
        }
    }
    Ok(done)
}
