//! Pages of files that others keep: the device reads into them.
//!
//! Who loads holds the inode, so what it has is not freed meanwhile; and the file is not cut before
//! its loads have ended ([`Loads`]). So no page gets the bytes of another file whose blocks these
//! have become. What a write changes meanwhile may be in the page or not: who keeps pages takes
//! them away after a write.

use alloc::vec::Vec;

use domain_rt::log;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::time;
use ext2::{DeviceError, Place};
use interfaces::{Handle, MemoryError, RVec, RpcError, VmoView};
use vfs::fence::{self, Service};

use crate::device::Piece;
use crate::errors::Error;
use crate::volume::{Mounted, Volume};

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// Pages that are loaded in one call.
const MOST: u64 = 256;

/// Loads under way, and cuts that wait for them.
#[derive(Default)]
pub struct Loads {
    pub(crate) state: Mutex<fence::Loads>,
    /// A load or a cut has ended, or the fence was raised.
    pub(crate) changed: Condvar,
}

/// A load that is under way, or a cut that is or waits.
pub struct Part<'a> {
    loads: &'a Loads,
    part: fence::Part,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.loads.state.lock().end(self.part);
        self.loads.changed.notify_all();
    }
}

impl Loads {
    /// Waits until nothing is under way that began before the fence was raised, until `deadline` at
    /// most; whether that is so.
    ///
    /// # Errors
    /// This thread is ended.
    pub fn await_older(&self, deadline: u64) -> Result<bool, DeviceError> {
        let mut state = self.state.lock();
        while state.has_older() {
            if time::now() >= deadline {
                return Ok(false);
            }
            let wait;
            (state, wait) = self.changed.wait_until(state, deadline);
            if wait == Wait::Interrupted {
                return Err(DeviceError::Interrupted);
            }
        }
        Ok(true)
    }
}

impl Volume {
    /// Begins a load of a service, when no cut of the file is under way or waits.
    ///
    /// # Errors
    /// The service is fenced; this thread is ended.
    pub(crate) fn begin_load(&self, service: Service, ino: u32) -> Result<Part<'_>, Error> {
        let loads = &self.loads;
        let mut state = loads.state.lock();
        loop {
            self.fence.admit(service)?;
            if let Some(part) = state.begin(ino, service) {
                return Ok(Part { loads, part });
            }
            let wait;
            (state, wait) = loads.changed.wait(state);
            if wait == Wait::Interrupted {
                return Err(DeviceError::Io.into());
            }
        }
    }

    /// Begins to cut a file, when its loads have ended; none begins before it is dropped.
    ///
    /// # Errors
    /// As [`begin_load`](Self::begin_load).
    pub(crate) fn begin_cut(&self, service: Service, ino: u32) -> Result<Part<'_>, Error> {
        let loads = &self.loads;
        let mut state = loads.state.lock();
        self.fence.admit(service)?;
        let part = Part {
            loads,
            part: state.begin_cut(ino, service),
        };
        let mut left = Ok(());
        while left.is_ok() && state.has_loads(ino) {
            let wait;
            (state, wait) = loads.changed.wait(state);
            left = match wait {
                Wait::Interrupted => Err(DeviceError::Io.into()),
                _ => self.fence.admit(service).map_err(Error::from),
            };
        }
        // Before `part`, which locks it.
        drop(state);
        left.map(|()| part)
    }

    /// Fills pages of `view`, which are being loaded, with those of a file; how many, none behind
    /// its end.
    ///
    /// # Errors
    /// The library's; `Invalid`: a page is not being loaded, or cannot be filled.
    pub fn load(
        &self,
        service: Service,
        ino: u32,
        first: u64,
        count: u64,
        view: &Handle<dyn VmoView>,
    ) -> Result<u64, Error> {
        let start = first.checked_mul(PAGE).ok_or(ext2::Error::FileTooLarge)?;
        let _load = self.begin_load(service, ino)?;
        self.view(service, |fs| fs.open(ino))?;
        let loaded = self.load_held(service, ino, start, count.min(MOST) * PAGE, view);
        if let Err(error) = self.close(ino) {
            log!("letting go of inode {ino}: {error}");
        }
        loaded.map(|bytes| bytes / PAGE)
    }

    /// Ends one `open` of the library's. The last one frees an inode without a name. No fence stops
    /// it: it comes when what is left of a dead service is cleared away, and nobody can find an
    /// inode without a name, or has its number, before it is freed.
    ///
    /// # Errors
    /// The library's.
    pub fn close(&self, ino: u32) -> Result<(), Error> {
        let links = self.view(Service::OWN, |fs| fs.getattr(ino));
        match links.is_ok_and(|of| of.links > 0) {
            true => self.view(Service::OWN, |fs| fs.close(ino)),
            false => self.change(Service::OWN, |fs| fs.close(ino)),
        }
    }

    fn load_held(
        &self,
        service: Service,
        ino: u32,
        start: u64,
        bytes: u64,
        view: &Handle<dyn VmoView>,
    ) -> Result<u64, Error> {
        let size = self.view(service, |fs| fs.locate(ino, start, 0))?.0;
        let file_end = size.checked_next_multiple_of(PAGE).unwrap_or(size);
        let end = start.saturating_add(bytes).min(file_end);
        if start >= end {
            return Ok(0);
        }
        let (mut at, mut pieces) = (start, Vec::new());
        while at < end.min(size) {
            let most = (end - at) as usize;
            at += match self.view(service, |fs| fs.locate(ino, at, most))?.1 {
                Place::Device { sector, bytes } => {
                    let bytes = bytes.min(most);
                    pieces.try_reserve(1).map_err(|_| DeviceError::NoMemory)?;
                    pieces.push(Piece { sector, at, bytes });
                    bytes as u64
                }
                Place::Elsewhere => {
                    self.fill_from_library(service, ino, at, end.min(size), view)?
                }
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
        service: Service,
        ino: u32,
        at: u64,
        end: u64,
        view: &Handle<dyn VmoView>,
    ) -> Result<u64, Error> {
        let bytes = (PAGE - at % PAGE).min(end - at) as usize;
        fill(view, at, bytes, |buffer| {
            self.view(service, |fs: &mut Mounted| fs.read(ino, at, buffer))
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
        _ => Err(ext2::Error::Invalid("a page is not being loaded").into()),
    }
}
