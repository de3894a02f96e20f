//! Takes out of an ELF file what the loader does not need: everything behind the loaded segments.
//!
//! Reference: System V ABI, chapters "ELF header" and "program header", 64-bit little-endian.

use anyhow::{Context, Result, bail};

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// `file` without section headers, symbols and debug information.
///
/// # Errors
/// If it is not a 64-bit little-endian ELF file, or a header points outside of it.
pub fn stripped(file: &[u8]) -> Result<Vec<u8>> {
    if file.len() < HEADER || file[..6] != *b"\x7fELF\x02\x01" {
        bail!("not a 64-bit little-endian ELF file");
    }
    let (table, size, count) = (long(file, 32)?, short(file, 54)?, short(file, 56)?);
    if size != PROGRAM_HEADER {
        bail!("program headers of {size} bytes");
    }
    let mut end = HEADER.max(table + size * count);
    for index in 0..count {
        let at = table + index * size;
        end = end.max(long(file, at + 8)?.saturating_add(long(file, at + 32)?));
    }
    let mut kept = file
        .get(..end)
        .context("a segment reaches beyond the end of the file")?
        .to_vec();
    kept[40..48].fill(0);
    kept[58..64].fill(0);
    Ok(kept)
}

fn long(file: &[u8], at: usize) -> Result<usize> {
    let bytes = file
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .context("the file is cut off")?;
    Ok(usize::try_from(u64::from_le_bytes(*bytes))?)
}

fn short(file: &[u8], at: usize) -> Result<usize> {
    let bytes = file
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .context("the file is cut off")?;
    Ok(usize::from(u16::from_le_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut file = vec![0; 200];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32] = 64;
        file[40] = 180;
        file[54] = 56;
        file[56] = 1;
        file[60] = 1;
        file[64 + 8] = 120;
        file[64 + 32] = 30;
        file
    }

    #[test]
    fn what_is_loaded_stays_and_the_rest_goes() {
        let kept = stripped(&sample()).expect("well-formed");
        assert_eq!(kept.len(), 150);
        assert_eq!((kept[40], kept[60], kept[56]), (0, 0, 1));
    }

    #[test]
    fn damaged_files_are_refused() {
        assert!(stripped(b"#!/bin/sh").is_err());
        let mut long_segment = sample();
        long_segment[64 + 33] = 1;
        assert!(stripped(&long_segment).is_err());
        let mut far_table = sample();
        far_table[33] = 1;
        assert!(stripped(&far_table).is_err());
    }
}
