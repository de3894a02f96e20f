//! The device under the file system: sectors of 512 bytes, in runs.

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
}

impl core::fmt::Display for DeviceError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            DeviceError::Io => "input/output error",
            DeviceError::OutOfRange => "access beyond the end of the device",
            DeviceError::Unavailable => "the device is gone",
        })
    }
}

/// A block device. Calls are synchronous. The length of a buffer is a multiple of
/// [`SECTOR_SIZE`]; the file system asks for up to 128 KiB in one call.
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

    /// Returns when every write that was acknowledged before the call is on the medium.
    ///
    /// # Errors
    /// Any [`DeviceError`]; which writes are on the medium is then unknown.
    fn flush(&self) -> Result<(), DeviceError>;

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
    fn flush(&self) -> Result<(), DeviceError> {
        (**self).flush()
    }
    fn sectors(&self) -> u64 {
        (**self).sectors()
    }
}
