//! Little-endian numbers in a record of the disk. Offsets are constants of the format and records
//! have a checked length, so an offset outside its record is a fault of this library.

/// The 16-bit number at `at`. Panics if it is not inside `record`.
#[inline]
pub(crate) fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

/// The 32-bit number at `at`. Panics if it is not inside `record`.
#[inline]
pub(crate) fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

/// Stores a 16-bit number at `at`. Panics if it is not inside `record`.
#[inline]
pub(crate) fn put_u16(record: &mut [u8], at: usize, value: u16) {
    record[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// Stores a 32-bit number at `at`. Panics if it is not inside `record`.
#[inline]
pub(crate) fn put_u32(record: &mut [u8], at: usize, value: u32) {
    record[at..at + 4].copy_from_slice(&value.to_le_bytes());
}
