//! The memory that the device's requests name: a memory object, cut into cells, and the forms in
//! which bytes and requests go there.
//!
//! All of it is made at the mount and charged to this domain, so a write-back takes no memory for
//! its way to the device. A cell belongs to whoever holds its ticket ([`line`](crate::line)).
//!
//! A write is copied twice, into a form and from there into the cell; a read once, into the buffer
//! that is to have it. The device uses the cell itself.

use domain_rt::sync::{Mutex, MutexGuard};
use ext2::DeviceError;
use interfaces::{
    BlockOperation, BlockRequest, Handle, MemoryError, MemoryObjects, RVec, RpcError, VmoFill,
    VmoOwner, VmoRights, VmoView,
};

/// Bytes of a cell.
pub const CELL: usize = 256 * 1024;
/// Requests in one call, and in a group.
const BATCH: usize = 256;
pub const GROUP: usize = 2048;
/// What the parts of a cell that are filled one by one have to be multiples of.
pub const STEP: usize = 4096;
/// The least that is worth a mount.
const LEAST_CELLS: usize = 4;
/// Bytes of the forms, each a multiple of the next.
const SIZES: [usize; 3] = [65536, 16384, STEP];

/// A request that means nothing yet.
pub const NO_REQUEST: BlockRequest = BlockRequest {
    tag: 0,
    operation: BlockOperation::Flush,
    sector: 0,
    sectors: 0,
    slot: 0,
    at: 0,
    durable: false,
    barrier: false,
};

/// What bytes and requests are put together in. `None`: lost in a call, to be made anew.
pub struct Forms {
    bytes: [Option<RVec<u8>>; 3],
    /// Requests of one ticket.
    pub batch: RVec<BlockRequest>,
    /// Requests of a group.
    pub group: RVec<BlockRequest>,
}

/// The memory object with its cells.
pub struct Staging {
    view: Handle<dyn VmoView>,
    _owner: Handle<dyn VmoOwner>,
    cells: usize,
    forms: Mutex<Forms>,
}

impl Staging {
    /// So many cells, or fewer if there is not so much memory, but not too few.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(objects: &Handle<dyn MemoryObjects>, cells: usize) -> Result<Self, DeviceError> {
        let cells = cells.max(LEAST_CELLS);
        let limit = (cells * CELL / STEP) as u64;
        let owner = objects.create(limit, VmoFill::Zero).map_err(memory_error)?;
        let rights = VmoRights {
            read: true,
            write: true,
            map: false,
            execute: false,
        };
        let view = owner.view(rights).map_err(memory_error)?;
        let form = |size| RVec::zeroed(size).map_err(|_| DeviceError::NoMemory);
        let requests = |count| RVec::filled(NO_REQUEST, count).map_err(|_| DeviceError::NoMemory);
        let forms = Forms {
            bytes: [
                Some(form(SIZES[0])?),
                Some(form(SIZES[1])?),
                Some(form(SIZES[2])?),
            ],
            batch: requests(BATCH)?,
            group: requests(GROUP)?,
        };
        let mut staging = Staging {
            view,
            _owner: owner,
            cells: 0,
            forms: Mutex::new(forms),
        };
        staging.take_memory(cells)?;
        Ok(staging)
    }

    /// Writes to each page, so that it has memory from now on.
    fn take_memory(&mut self, cells: usize) -> Result<(), DeviceError> {
        while self.cells < cells {
            let forms = &mut self.forms.lock();
            match self.fill(forms, self.cells, 0, CELL, &mut |_| Ok(())) {
                Ok(()) => self.cells += 1,
                Err(_) if self.cells >= LEAST_CELLS => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Another way to the memory, for the device.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn view(&self) -> Result<Handle<dyn VmoView>, RpcError> {
        self.view.duplicate()
    }

    /// The forms. Who has them waits for no one but the device.
    pub fn forms(&self) -> MutexGuard<'_, Forms> {
        self.forms.lock()
    }

    /// Fills `length` bytes of a cell from `at`, a multiple of [`STEP`], on. The rest of the last
    /// [`STEP`] then has anything.
    ///
    /// # Errors
    /// Those of the source; [`DeviceError::NoMemory`].
    pub fn fill(
        &self,
        forms: &mut Forms,
        cell: usize,
        at: usize,
        length: usize,
        source: &mut dyn FnMut(&mut [u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let mut done = 0;
        while done < length {
            let (kind, size) = form_for(length - done);
            let mut form = take(&mut forms.bytes[kind], size)?;
            let count = size.min(length - done);
            source(&mut form[..count])?;
            let written = self.view.write((cell * CELL + at + done) as u64, &form);
            forms.bytes[kind] = Some(form);
            match written.map_err(memory_error)? {
                written if written == size as u64 => done += count,
                _ => return Err(DeviceError::NoMemory),
            }
        }
        Ok(())
    }

    /// Reads a cell from its start, as much as `buffer` has room for.
    ///
    /// # Errors
    /// [`DeviceError::NoMemory`].
    pub fn read(&self, cell: usize, buffer: RVec<u8>) -> Result<RVec<u8>, DeviceError> {
        self.read_at(cell, 0, buffer)
    }

    fn read_at(&self, cell: usize, at: usize, buffer: RVec<u8>) -> Result<RVec<u8>, DeviceError> {
        let length = buffer.len();
        let read = self.view.read((cell * CELL + at) as u64, buffer);
        let (buffer, count) = read.map_err(memory_error)?;
        match buffer.len() == length && count == length as u64 {
            true => Ok(buffer),
            false => Err(DeviceError::Io),
        }
    }

    /// Copies from the start of a cell.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn copy_out(&self, cell: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        let mut forms = self.forms();
        let mut done = 0;
        while done < target.len() {
            let (kind, size) = form_for(target.len() - done);
            let form = take(&mut forms.bytes[kind], size)?;
            let form = self.read_at(cell, done, form)?;
            let count = size.min(target.len() - done);
            target[done..done + count].copy_from_slice(&form[..count]);
            forms.bytes[kind] = Some(form);
            done += count;
        }
        Ok(())
    }
}

/// The largest form that `length` bytes fill, or the smallest.
fn form_for(length: usize) -> (usize, usize) {
    let fits = SIZES.iter().position(|size| *size <= length);
    let kind = fits.unwrap_or(SIZES.len() - 1);
    (kind, SIZES[kind])
}

fn take(form: &mut Option<RVec<u8>>, size: usize) -> Result<RVec<u8>, DeviceError> {
    match form.take() {
        Some(form) => Ok(form),
        None => RVec::zeroed(size).map_err(|_| DeviceError::NoMemory),
    }
}

fn memory_error(error: MemoryError) -> DeviceError {
    match error {
        MemoryError::Rpc(RpcError::NoMemory) => DeviceError::NoMemory,
        _ => DeviceError::Io,
    }
}
