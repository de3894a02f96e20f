//! Reads cpio archives in the "newc" format (cpio(5)), as the boot archive is.
//!
//! ```text
//! per file: "070701", 13 fields of 8 hexadecimal digits, name with a zero byte, padding to 4 bytes,
//!           content, padding to 4 bytes; the last file is called "TRAILER!!!"
//! ```
#![no_std]
#![forbid(unsafe_code)]

const HEADER: usize = 110;
const MAGIC: &[u8] = b"070701";
const TRAILER: &str = "TRAILER!!!";
/// Field numbers after the magic bytes.
const MODE: usize = 1;
const FILE_SIZE: usize = 6;
const NAME_SIZE: usize = 11;

/// A file of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its path, as it stands in the archive.
    pub path: &'a str,
    /// File type and permission bits, as in `stat`.
    pub mode: u32,
    /// Its content.
    pub content: &'a [u8],
}

impl Entry<'_> {
    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

/// The files of the archive, in order. Stops at the trailer or at the first thing that is not a
/// file.
pub fn entries(archive: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut rest = archive;
    core::iter::from_fn(move || {
        let (entry, next) = read(rest)?;
        rest = next;
        (entry.path != TRAILER).then_some(entry)
    })
}

/// The file with this path.
pub fn find<'a>(archive: &'a [u8], path: &str) -> Option<Entry<'a>> {
    entries(archive).find(|entry| entry.path == path)
}

fn read(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let header = bytes
        .get(..HEADER)
        .filter(|header| header.starts_with(MAGIC))?;
    let name_size = field(header, NAME_SIZE)?;
    let size = field(header, FILE_SIZE)?;
    let name_end = HEADER.checked_add(name_size)?;
    let name = bytes.get(HEADER..name_end)?.strip_suffix(&[0])?;
    let start = name_end.next_multiple_of(4);
    let end = start.checked_add(size)?;
    let content = bytes.get(start..end)?;
    let rest = bytes.get(end.next_multiple_of(4)..).unwrap_or(&[]);
    let mode = u32::try_from(field(header, MODE)?).ok()?;
    Some((
        Entry {
            path: core::str::from_utf8(name).ok()?,
            mode,
            content,
        },
        rest,
    ))
}

fn field(header: &[u8], number: usize) -> Option<usize> {
    let at = MAGIC.len() + 8 * number;
    let digits = core::str::from_utf8(header.get(at..at + 8)?).ok()?;
    usize::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;
    use std::vec::Vec;

    fn add(archive: &mut Vec<u8>, path: &str, content: &[u8]) {
        let header = format!(
            "070701{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}",
            1,
            0o100_644,
            0,
            0,
            1,
            0,
            content.len(),
            0,
            0,
            0,
            0,
            path.len() + 1,
            0
        );
        archive.extend(header.as_bytes());
        archive.extend(path.as_bytes());
        archive.push(0);
        archive.resize(archive.len().next_multiple_of(4), 0);
        archive.extend(content);
        archive.resize(archive.len().next_multiple_of(4), 0);
    }

    fn sample() -> Vec<u8> {
        let mut archive = Vec::new();
        add(&mut archive, "manifest.toml", b"[boot]");
        add(&mut archive, "domains/init", b"image");
        add(&mut archive, TRAILER, b"");
        archive
    }

    #[test]
    fn finds_files() {
        let archive = sample();
        assert_eq!(
            find(&archive, "domains/init").map(|entry| entry.content),
            Some(&b"image"[..])
        );
        assert!(find(&archive, "domains").is_none());
        assert_eq!(entries(&archive).filter(Entry::is_file).count(), 2);
    }

    #[test]
    fn a_cut_archive_ends_early() {
        let archive = sample();
        for len in 0..archive.len() {
            assert!(entries(&archive[..len]).count() <= 2);
        }
    }

    #[test]
    fn sizes_out_of_range_are_no_file() {
        let mut archive = sample();
        archive[6 + 8 * FILE_SIZE..][..8].copy_from_slice(b"ffffffff");
        assert_eq!(entries(&archive).count(), 0);
        archive[6 + 8 * NAME_SIZE..][..8].copy_from_slice(b"zzzzzzzz");
        assert_eq!(entries(&archive).count(), 0);
    }
}
