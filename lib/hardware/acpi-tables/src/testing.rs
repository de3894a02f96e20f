//! Building tables for tests.

extern crate std;
use std::vec::Vec;

/// A table with a right length and checksum.
pub fn table(signature: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(signature);
    bytes.extend((36 + body.len() as u32).to_le_bytes());
    bytes.resize(36, 0);
    bytes.extend(body);
    fix_checksum(&mut bytes, 9);
    bytes
}

/// Sets the byte at `offset` so that all bytes sum to 0.
pub fn fix_checksum(bytes: &mut [u8], offset: usize) {
    bytes[offset] = 0;
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    bytes[offset] = sum.wrapping_neg();
}
