//! A file as the disk that `ext2` mounts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use ext2::{BlockDevice, DeviceError, SECTOR_SIZE};

/// A disk image in a file.
pub(crate) struct Sectors {
    file: File,
    count: u64,
}

impl Sectors {
    /// What is in `file`, as far as its whole sectors go.
    pub(crate) fn of(file: File) -> std::io::Result<Sectors> {
        let count = file.metadata()?.len() / SECTOR_SIZE as u64;
        Ok(Sectors { file, count })
    }

    /// Where in the file `length` bytes from `sector` on lie.
    fn place(&self, sector: u64, length: usize) -> Result<u64, DeviceError> {
        let end = sector.checked_add(length.div_ceil(SECTOR_SIZE) as u64);
        match end.is_some_and(|end| end <= self.count) {
            true => Ok(sector * SECTOR_SIZE as u64),
            false => Err(DeviceError::OutOfRange),
        }
    }
}

impl BlockDevice for Sectors {
    fn read(&self, sector: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let place = self.place(sector, buffer.len())?;
        let read = self.file.read_exact_at(buffer, place);
        read.map_err(|_| DeviceError::Io)
    }

    fn write(&self, sector: u64, data: &[u8]) -> Result<(), DeviceError> {
        let place = self.place(sector, data.len())?;
        let written = self.file.write_all_at(data, place);
        written.map_err(|_| DeviceError::Io)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.file.sync_data().map_err(|_| DeviceError::Io)
    }

    fn sectors(&self) -> u64 {
        self.count
    }
}

/// A disk image as it would be after some writes, which are kept in memory: so many bytes of them
/// and no more, since the image says how many there are.
pub(crate) struct Overlay<'a> {
    disk: Sectors,
    written: RefCell<BTreeMap<u64, [u8; SECTOR_SIZE]>>,
    most: usize,
    /// There was more to be written.
    is_full: &'a Cell<bool>,
}

impl<'a> Overlay<'a> {
    /// Over `disk`, with room for `most` bytes; `is_full` is set when there are more.
    pub(crate) fn new(disk: Sectors, most: usize, is_full: &'a Cell<bool>) -> Self {
        Overlay {
            disk,
            written: RefCell::default(),
            most: most / SECTOR_SIZE,
            is_full,
        }
    }
}

impl BlockDevice for Overlay<'_> {
    fn read(&self, sector: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.disk.read(sector, buffer)?;
        let written = self.written.borrow();
        for (at, part) in (sector..).zip(buffer.chunks_mut(SECTOR_SIZE)) {
            if let Some(bytes) = written.get(&at) {
                part.copy_from_slice(&bytes[..part.len()]);
            }
        }
        Ok(())
    }

    fn write(&self, sector: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.disk.place(sector, data.len())?;
        let mut written = self.written.borrow_mut();
        for (at, part) in (sector..).zip(data.chunks_exact(SECTOR_SIZE)) {
            if written.len() >= self.most && !written.contains_key(&at) {
                self.is_full.set(true);
                return Err(DeviceError::NoMemory);
            }
            let mut bytes = [0; SECTOR_SIZE];
            bytes.copy_from_slice(part);
            written.insert(at, bytes);
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn sectors(&self) -> u64 {
        self.disk.sectors()
    }
}
