//! Reading out of pages.

use interfaces::{FsError, MemoryError, RVec};

use super::{PAGE, Pages, memory_error};
use crate::shadow::Shadow;

/// How often a read begins again because a page that was there has gone.
const ATTEMPTS: u32 = 64;
/// Pages that are loaded where one is wanting, if there are as many.
const AHEAD: u64 = 32;

impl Pages {
    /// Reads from a file whose pages are known. The buffer comes back unread if they are not.
    ///
    /// # Errors
    /// The file system's; no memory.
    pub fn read(
        &self,
        shadow: &Shadow,
        inode: u64,
        offset: u64,
        mut buffer: RVec<u8>,
    ) -> Result<Result<RVec<u8>, RVec<u8>>, FsError> {
        let Some(file) = self.known(inode) else {
            return Ok(Err(buffer));
        };
        let length = buffer.len();
        let (mut failed, mut most) = (0, 0);
        while failed < ATTEMPTS {
            let size = match file.record.lock() {
                record if record.is_live => record.size,
                record => {
                    drop(record);
                    if !file.is_current() {
                        drop(file.lock(shadow)?);
                    }
                    file.record.lock().size
                }
            };
            let wanted = size.saturating_sub(offset).min(length as u64);
            if wanted == 0 {
                return Ok(Ok(buffer.truncated(0)));
            }
            let done = match file.view.read(offset, buffer) {
                Ok((read, done)) if done >= wanted => {
                    return Ok(Ok(read.truncated(wanted as usize)));
                }
                Ok((read, done)) => {
                    buffer = read;
                    done
                }
                Err(MemoryError::Absent | MemoryError::Loading | MemoryError::Beyond) => {
                    buffer = RVec::filled(0, length)?;
                    0
                }
                Err(error) => return Err(memory_error(error)),
            };
            failed = if done > most { 0 } else { failed + 1 };
            most = done.max(most);
            let first = (offset + done) / PAGE;
            let needed = (offset + wanted).div_ceil(PAGE) - first;
            self.populate_file(shadow, &file, first, needed.max(AHEAD))?;
        }
        Err(FsError::Device)
    }
}
