//! Pages of files that others keep: the device reads into them.
//!
//! Who loads holds the inode, so what it has is not freed meanwhile; and the file is not cut before
//! its loads have ended ([`Loads`]). So no page gets the bytes of another file whose blocks these
//! have become. What a write changes meanwhile may be in the page or not: who keeps pages takes
//! them away after a write.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use domain_rt::log;
use domain_rt::sync::{Condvar, Mutex, Wait};
use ext2::{DeviceError, Error, Place};
use interfaces::{Handle, MemoryError, RVec, RpcError, VmoView};

use crate::device::Piece;
use crate::volume::{Mounted, Volume};

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// Pages that are loaded in one call.
const MOST: u64 = 256;

/// Loads under way by inode, and cuts that wait for them.
#[derive(Default)]
pub struct Loads {
    state: Mutex<BTreeMap<u32, Counts>>,
    changed: Condvar,
}

#[derive(Default)]
struct Counts {
    loads: u32,
    cuts: u32,
}

/// A load that is under way, or a cut that is or waits.
pub struct Part<'a> {
    loads: &'a Loads,
    ino: u32,
    is_cut: bool,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        let mut state = self.loads.state.lock();
        if let Some(counts) = state.get_mut(&self.ino) {
            match self.is_cut {
                true => counts.cuts -= 1,
                false => counts.loads -= 1,
            }
            if counts.loads == 0 && counts.cuts == 0 {
                state.remove(&self.ino);
            }
        }
        drop(state);
        self.loads.changed.notify_all();
    }
}

impl Loads {
    /// Begins a load, when no cut of the file is under way or waits.
    ///
    /// # Errors
    /// This thread is ended.
    pub fn begin(&self, ino: u32) -> Result<Part<'_>, Error> {
        let mut state = self.state.lock();
        while state.get(&ino).is_some_and(|counts| counts.cuts > 0) {
            let wait;
            (state, wait) = self.changed.wait(state);
            if wait == Wait::Interrupted {
                return Err(DeviceError::Io.into());
            }
        }
        state.entry(ino).or_default().loads += 1;
        Ok(self.part(ino, false))
    }

    /// Begins to cut a file, when its loads have ended; none begins before it is dropped.
    ///
    /// # Errors
    /// This thread is ended.
    pub fn begin_cut(&self, ino: u32) -> Result<Part<'_>, Error> {
        let mut state = self.state.lock();
        state.entry(ino).or_default().cuts += 1;
        let part = self.part(ino, true);
        while state.get(&ino).is_some_and(|counts| counts.loads > 0) {
            let wait;
            (state, wait) = self.changed.wait(state);
            if wait == Wait::Interrupted {
                // Before `part`, which locks it.
                drop(state);
                return Err(DeviceError::Io.into());
            }
        }
        drop(state);
        Ok(part)
    }

    fn part(&self, ino: u32, is_cut: bool) -> Part<'_> {
        Part {
            loads: self,
            ino,
            is_cut,
        }
    }
}

impl Volume {
    /// Fills pages of `view`, which are being loaded, with those of a file; how many, none behind
    /// its end.
    ///
    /// # Errors
    /// The library's; `Invalid`: a page is not being loaded, or cannot be filled.
    pub fn load(
        &self,
        ino: u32,
        first: u64,
        count: u64,
        view: &Handle<dyn VmoView>,
    ) -> Result<u64, Error> {
        let start = first.checked_mul(PAGE).ok_or(Error::FileTooLarge)?;
        let _load = self.loads.begin(ino)?;
        self.view(|fs| fs.open(ino))?;
        let loaded = self.load_held(ino, start, count.min(MOST) * PAGE, view);
        if let Err(error) = self.close(ino) {
            log!("letting go of inode {ino}: {error}");
        }
        loaded.map(|bytes| bytes / PAGE)
    }

    /// Ends one `open` of the library's. The last one frees an inode without a name.
    ///
    /// # Errors
    /// The library's.
    pub fn close(&self, ino: u32) -> Result<(), Error> {
        let named = self.view(|fs| fs.getattr(ino)).is_ok_and(|of| of.links > 0);
        match named {
            true => self.view(|fs| fs.close(ino)),
            false => self.change(|fs| fs.close(ino)),
        }
    }

    fn load_held(
        &self,
        ino: u32,
        start: u64,
        bytes: u64,
        view: &Handle<dyn VmoView>,
    ) -> Result<u64, Error> {
        let size = self.view(|fs| fs.locate(ino, start, 0))?.0;
        let file_end = size.checked_next_multiple_of(PAGE).unwrap_or(size);
        let end = start.saturating_add(bytes).min(file_end);
        if start >= end {
            return Ok(0);
        }
        let (mut at, mut pieces) = (start, Vec::new());
        while at < end.min(size) {
            let most = (end - at) as usize;
            at += match self.view(|fs| fs.locate(ino, at, most))?.1 {
                Place::Device { sector, bytes } => {
                    let bytes = bytes.min(most);
                    pieces.try_reserve(1).map_err(|_| DeviceError::NoMemory)?;
                    pieces.push(Piece { sector, at, bytes });
                    bytes as u64
                }
                Place::Elsewhere => self.fill_from_library(ino, at, end.min(size), view)?,
            };
        }
        if !pieces.is_empty() {
            self.disk().read_into(view, &pieces)?;
        }
        // What the device has behind the end means nothing.
        if size < end {
            fill(view, size, (end - size) as usize, |_| Ok(()))?;
        }
        Ok(end - start)
    }

    /// Copies what is not in one place of the device, to the end of the page; how many bytes.
    fn fill_from_library(
        &self,
        ino: u32,
        at: u64,
        end: u64,
        view: &Handle<dyn VmoView>,
    ) -> Result<u64, Error> {
        let bytes = (PAGE - at % PAGE).min(end - at) as usize;
        fill(view, at, bytes, |buffer| {
            self.view(|fs: &mut Mounted| fs.read(ino, at, buffer))
                .map(drop)
        })?;
        Ok(bytes as u64)
    }
}

/// Puts `bytes` bytes into pages that are being loaded.
fn fill(
    view: &Handle<dyn VmoView>,
    at: u64,
    bytes: usize,
    source: impl FnOnce(&mut [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut buffer = RVec::zeroed(bytes).map_err(|_| DeviceError::NoMemory)?;
    source(&mut buffer)?;
    match view.fill(at, &buffer) {
        Ok(count) if count == bytes as u64 => Ok(()),
        Err(MemoryError::Rpc(RpcError::NoMemory)) => Err(DeviceError::NoMemory.into()),
        _ => Err(Error::Invalid("a page is not being loaded")),
    }
}
