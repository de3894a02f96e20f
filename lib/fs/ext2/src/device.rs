//! The device under the file system: sectors of 512 bytes, in runs.

use alloc::vec::Vec;

/// Bytes in a sector, the unit of every address given to a device.
pub const SECTOR_SIZE: usize = 512;

/// Why a device could not do what was asked. None of these says anything about the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// The device tried and failed; the medium is to blame. Trying again may help.
    Io,
    /// The sectors asked for are not all on the device; the caller is to blame.
    OutOfRange,
    /// The device is gone or was restarted in the middle of the call. Trying again may help.
    Unavailable,
    /// The device is gone and does not come back under this handle. Trying again does not help.
    Lost,
    /// There is no memory for the call. Trying again may help.
    NoMemory,
    /// The one who waited for the device was ended. Another one may try again.
    Interrupted,
}

impl core::fmt::Display for DeviceError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            DeviceError::Io => "input/output error",
            DeviceError::OutOfRange => "access beyond the end of the device",
            DeviceError::Unavailable => "the device is gone",
            DeviceError::Lost => "the device is gone for good",
            DeviceError::NoMemory => "no memory",
            DeviceError::Interrupted => "interrupted",
        })
    }
}

/// Extents that are written together.
pub struct Group {
    /// First sector and length in bytes of each; they do not overlap.
    pub extents: Vec<(u64, usize)>,
    /// Their content, one behind the other.
    pub data: Vec<u8>,
    /// It and all groups before it must be on the medium before the next one is written.
    pub flush: bool,
}

impl Group {
    /// Writes this group alone.
    ///
    /// # Errors
    /// The device's.
    pub fn write_to<D: BlockDevice + ?Sized>(&self, device: &D) -> Result<(), DeviceError> {
        if !self.extents.is_empty() {
            device.write_extents(&self.extents, &self.data)?;
        }
        match self.flush {
            true => device.flush(),
            false => Ok(()),
        }
    }
}

/// A block device. Calls are synchronous. The length of a buffer is a multiple of
/// [`SECTOR_SIZE`]; the file system asks for up to 512 KiB in one call.
pub trait BlockDevice {
    /// Reads the sectors from `sector` on into `buf`.
    ///
    /// # Errors
    /// Any [`DeviceError`]; `buf` then holds anything.
    fn read(&self, sector: u64, buf: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes `buf` to the sectors from `sector` on. They may stay in a volatile cache, and reach
    /// the medium in any order, until the next [`flush`](BlockDevice::flush).
    ///
    /// # Errors
    /// Any [`DeviceError`]; the sectors then hold anything.
    fn write(&self, sector: u64, buf: &[u8]) -> Result<(), DeviceError>;

    /// Writes several extents, first sector and length in bytes, that do not overlap; `data` has
    /// their content one behind the other. They may be written in any order.
    ///
    /// # Errors
    /// Any [`DeviceError`]; the sectors of all of them then hold anything.
    fn write_extents(&self, extents: &[(u64, usize)], data: &[u8]) -> Result<(), DeviceError> {
        let mut rest = data;
        for (sector, length) in extents {
            let (now, later) = rest.split_at(*length);
            self.write(*sector, now)?;
            rest = later;
        }
        Ok(())
    }

    /// As [`write_extents`](Self::write_extents), with the content in pieces one behind the other:
    /// for a device that puts them together in memory of its own.
    ///
    /// # Errors
    /// As there.
    fn write_pieces(
        &self,
        extents: &[(u64, usize)],
        pieces: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), DeviceError> {
        let length = extents.iter().map(|(_, length)| length).sum();
        let mut data = zeroes(0, length)?;
        pieces.for_each(|piece| data.extend_from_slice(piece));
        self.write_extents(extents, &data)
    }

    /// Writes groups of extents in their order, with a flush behind those that ask for it. A device
    /// that outlives the file system's crash does all of it, once begun, or nothing.
    ///
    /// # Errors
    /// Any [`DeviceError`]; some of the groups may be written.
    fn write_groups(&self, groups: Vec<Group>) -> Result<(), DeviceError> {
        for group in groups {
            group.write_to(self)?;
        }
        Ok(())
    }

    /// How many bytes of metadata [`write_groups`](Self::write_groups) is sure to do or not do as
    /// one; more may be done in parts.
    fn group_bytes(&self) -> usize {
        usize::MAX
    }

    /// Returns when every write that was acknowledged before the call is on the medium.
    ///
    /// # Errors
    /// Any [`DeviceError`]; which writes are on the medium is then unknown.
    fn flush(&self) -> Result<(), DeviceError>;

    /// Waits for content that others write to where
    /// [`map_content`](crate::FileSystem::map_content) said; whether any came since the last flush
    /// began. Asked before what names it is written.
    ///
    /// # Errors
    /// Any [`DeviceError`]: some is still on its way.
    fn await_content(&self) -> Result<bool, DeviceError> {
        Ok(false)
    }

    /// The size of the device in sectors. It does not change.
    fn sectors(&self) -> u64;
}

impl<T: BlockDevice + ?Sized> BlockDevice for &T {
    fn read(&self, sector: u64, buf: &mut [u8]) -> Result<(), DeviceError> {
        (**self).read(sector, buf)
    }
    fn write(&self, sector: u64, buf: &[u8]) -> Result<(), DeviceError> {
        (**self).write(sector, buf)
    }
    fn write_extents(&self, extents: &[(u64, usize)], data: &[u8]) -> Result<(), DeviceError> {
        (**self).write_extents(extents, data)
    }
    fn write_pieces(
        &self,
        extents: &[(u64, usize)],
        pieces: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), DeviceError> {
        (**self).write_pieces(extents, pieces)
    }
    fn write_groups(&self, groups: Vec<Group>) -> Result<(), DeviceError> {
        (**self).write_groups(groups)
    }
    fn group_bytes(&self) -> usize {
        (**self).group_bytes()
    }
    fn flush(&self) -> Result<(), DeviceError> {
        (**self).flush()
    }
    fn await_content(&self) -> Result<bool, DeviceError> {
        (**self).await_content()
    }
    fn sectors(&self) -> u64 {
        (**self).sectors()
    }
}

/// `length` zeros, with room for `room` bytes.
///
/// # Errors
/// [`DeviceError::NoMemory`] if there is no memory for them: trying again may help.
pub(crate) fn zeroes(length: usize, room: usize) -> Result<Vec<u8>, DeviceError> {
    let mut data = Vec::new();
    data.try_reserve_exact(room.max(length))
        .map_err(|_| DeviceError::NoMemory)?;
    data.resize(length, 0);
    Ok(data)
}

/// All that `items` gives.
///
/// # Errors
/// As [`zeroes`].
pub(crate) fn list<T>(items: impl Iterator<Item = T>) -> Result<Vec<T>, DeviceError> {
    let mut all = Vec::new();
    for item in items {
        all.try_reserve(1).map_err(|_| DeviceError::NoMemory)?;
        all.push(item);
    }
    Ok(all)
}
