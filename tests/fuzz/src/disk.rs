//! A disk in memory: an image that stays as it is, and over it the sectors that were changed.

use std::cell::RefCell;
use std::collections::HashMap;

use ext2::{BlockDevice, DeviceError, SECTOR_SIZE};

pub struct Disk<'a> {
    image: &'a [u8],
    changed: RefCell<HashMap<u64, [u8; SECTOR_SIZE]>>,
}

impl<'a> Disk<'a> {
    pub fn new(image: &'a [u8]) -> Self {
        Disk {
            image,
            changed: RefCell::default(),
        }
    }

    /// The image as it is now.
    pub fn content(&self) -> Vec<u8> {
        let mut content = self.image.to_vec();
        for (sector, bytes) in &*self.changed.borrow() {
            let start = *sector as usize * SECTOR_SIZE;
            content[start..start + SECTOR_SIZE].copy_from_slice(bytes);
        }
        content
    }

    /// Changes the four bytes at `at`, which is a multiple of four inside of the image.
    pub fn patch(&self, at: usize, bytes: [u8; 4]) {
        let mut sector = [0; SECTOR_SIZE];
        let number = (at / SECTOR_SIZE) as u64;
        self.read(number, &mut sector).expect("inside of the image");
        sector[at % SECTOR_SIZE..][..4].copy_from_slice(&bytes);
        self.changed.borrow_mut().insert(number, sector);
    }

    fn check(&self, sector: u64, len: usize) -> Result<(), DeviceError> {
        let end = sector.checked_add((len / SECTOR_SIZE) as u64);
        match end.is_some_and(|end| end <= self.sectors()) {
            true => Ok(()),
            false => Err(DeviceError::OutOfRange),
        }
    }
}

impl BlockDevice for Disk<'_> {
    fn read(&self, sector: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        self.check(sector, buf.len())?;
        let changed = self.changed.borrow();
        for (number, part) in (sector..).zip(buf.chunks_mut(SECTOR_SIZE)) {
            let start = number as usize * SECTOR_SIZE;
            let original = &self.image[start..start + SECTOR_SIZE];
            part.copy_from_slice(changed.get(&number).map_or(original, |bytes| bytes));
        }
        Ok(())
    }

    fn write(&self, sector: u64, buf: &[u8]) -> Result<(), DeviceError> {
        self.check(sector, buf.len())?;
        let mut changed = self.changed.borrow_mut();
        for (number, part) in (sector..).zip(buf.chunks(SECTOR_SIZE)) {
            changed.insert(number, part.try_into().expect("a whole sector"));
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn sectors(&self) -> u64 {
        (self.image.len() / SECTOR_SIZE) as u64
    }
}
