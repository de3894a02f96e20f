//! The block device (virtio 1.2, section 5.2): features, configuration, requests.

/// Feature: there is a limit on the number of segments (5.2.3).
pub const SEG_MAX: u64 = 1 << 2;
/// Feature: the device cannot be written.
pub const READ_ONLY: u64 = 1 << 5;
/// Feature: the device says how large its own blocks are.
pub const BLOCK_SIZE: u64 = 1 << 6;
/// Feature: the device has a flush command.
pub const FLUSH: u64 = 1 << 9;
/// Feature: the device has a command that says that sectors are not used any more.
pub const DISCARD: u64 = 1 << 13;
/// Feature: it has several queues, whose number its configuration says.
pub const MULTI_QUEUE: u64 = 1 << 12;
/// Feature: the device has a command that fills sectors with zeros.
pub const WRITE_ZEROES: u64 = 1 << 14;

/// Where the capacity, in sectors of 512 bytes, stands in the device configuration; 64 bits as two
/// halves.
pub const CONFIG_CAPACITY: usize = 0;
/// Where the most segments of a request stand, 32 bits; with [`SEG_MAX`].
pub const CONFIG_SEG_MAX: usize = 12;
/// Bytes of the device's own blocks, 32 bits, with [`BLOCK_SIZE`]. What is less than one, or does
/// not begin with one, such a device may refuse to read and write (5.2.4).
pub const CONFIG_BLOCK_SIZE: usize = 20;
/// Where the most sectors that are discarded at once stand, 32 bits; with [`DISCARD`].
pub const CONFIG_DISCARD_SECTORS: usize = 36;
/// Number of queues, 16 bits, with [`MULTI_QUEUE`].
pub const CONFIG_QUEUES: usize = 34;
/// The same for zeros; with [`WRITE_ZEROES`].
pub const CONFIG_ZEROES_SECTORS: usize = 48;

/// Bytes in a sector, whatever the device's own block size is (5.2.6).
pub const SECTOR: usize = 512;
/// Bytes of a request's header.
pub const HEADER_BYTES: usize = 16;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read from the device.
    Read,
    /// Write to it.
    Write,
    /// Put everything on stable storage.
    Flush,
    /// Forget what sectors hold. Which ones says a [`range`], and the header's sector is 0.
    Discard,
    /// Fill sectors with zeros; named as with `Discard`.
    WriteZeroes,
}

/// The header of a request (5.2.6): type, reserved, first sector. The sector of a flush is 0.
#[inline]
pub fn header(command: Command, sector: u64) -> [u8; HEADER_BYTES] {
    let (number, sector): (u32, u64) = match command {
        Command::Read => (0, sector),
        Command::Write => (1, sector),
        Command::Flush => (4, 0),
        Command::Discard => (11, 0),
        Command::WriteZeroes => (13, 0),
    };
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(&sector.to_le_bytes());
    bytes
}

/// Bytes of a [`range`].
pub const RANGE_BYTES: usize = 16;

/// The data of `Discard` and `WriteZeroes`: first sector, how many, no flags (5.2.6).
pub fn range(sector: u64, sectors: u32) -> [u8; RANGE_BYTES] {
    let mut bytes = [0; RANGE_BYTES];
    bytes[..8].copy_from_slice(&sector.to_le_bytes());
    bytes[8..12].copy_from_slice(&sectors.to_le_bytes());
    bytes
}

/// What stands in a request's status byte before the device writes it; no status of the
/// specification.
pub const STATUS_UNSET: u8 = 0xff;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As asked.
    Ok,
    /// The device failed.
    Error,
    /// The device does not do this.
    Unsupported,
    /// The device wrote no status, or one that does not exist.
    Bad,
}

impl Status {
    /// Reads a status byte.
    pub fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Status::Ok,
            1 => Status::Error,
            2 => Status::Unsupported,
            _ => Status::Bad,
        }
    }
}

/// Whether a completed request did what it was asked: it has status Ok, and for a read the device
/// says that it wrote all of the data and the status byte.
pub fn is_complete(command: Command, status: Status, written: u32, data_bytes: usize) -> bool {
    let expected = if command == Command::Read {
        data_bytes + 1
    } else {
        0
    };
    status == Status::Ok && written as usize >= expected
}

/// The number of sectors of a transfer of `bytes` bytes from `sector` on a device of `capacity`
/// sectors; `None` if it is not a whole number of sectors, or not all on the device.
pub fn sectors_of(sector: u64, bytes: usize, capacity: u64) -> Option<u64> {
    let count = (bytes / SECTOR) as u64;
    let end = sector.checked_add(count)?;
    (bytes.is_multiple_of(SECTOR) && end <= capacity).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_as_specified() {
        assert_eq!(
            header(Command::Read, 0x0102),
            [0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(header(Command::Write, 1)[0], 1);
        assert_eq!(
            header(Command::Flush, 77),
            [4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn what_is_discarded_stands_in_the_data() {
        assert_eq!(header(Command::Discard, 9), header(Command::Discard, 0));
        assert_eq!(
            header(Command::WriteZeroes, 9)[..9],
            [13, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            range(0x0102, 3),
            [2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn transfers_stay_on_the_device() {
        assert_eq!(sectors_of(6, 1024, 8), Some(2));
        assert_eq!(sectors_of(8, 0, 8), Some(0));
        assert_eq!(sectors_of(7, 1024, 8), None);
        assert_eq!(sectors_of(0, 100, 8), None);
        assert_eq!(sectors_of(u64::MAX, 1024, u64::MAX), None);
    }

    #[test]
    fn a_status_that_was_not_written_is_no_success() {
        assert_eq!(Status::from_byte(STATUS_UNSET), Status::Bad);
        assert_eq!(Status::from_byte(3), Status::Bad);
        assert!(!is_complete(Command::Write, Status::Bad, 1, 512));
    }

    #[test]
    fn a_read_that_came_back_short_is_no_success() {
        assert!(is_complete(Command::Read, Status::Ok, 513, 512));
        assert!(!is_complete(Command::Read, Status::Ok, 512, 512));
        assert!(!is_complete(Command::Read, Status::Error, 513, 512));
        assert!(is_complete(Command::Write, Status::Ok, 0, 512));
    }
}
