//! What is told of files: paths, `struct stat`, entries of directories, `struct utsname`.

use crate::errno::{EINVAL, ENOMEM, Error};
use crate::memory::PAGE;
use alloc::vec::Vec;

/// Kinds of files, in the mode that `stat` tells.
pub const DIRECTORY: u32 = 0o40_000;
/// See [`DIRECTORY`].
pub const REGULAR: u32 = 0o100_000;
/// See [`DIRECTORY`].
pub const CHARACTER: u32 = 0o20_000;
/// See [`DIRECTORY`].
pub const FIFO: u32 = 0o10_000;

/// The path from the root, without slashes at its ends, and without `.` and `..`.
pub fn resolve(from: &[u8], path: &[u8]) -> Vec<u8> {
    let from = if path.starts_with(b"/") { b"" } else { from };
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in from
        .split(|byte| *byte == b'/')
        .chain(path.split(|byte| *byte == b'/'))
    {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join(&b'/')
}

/// `struct stat` (`asm/stat.h`) of a file with this mode and size, of which there is one name.
pub fn stat(mode: u32, size: u64) -> [u64; 18] {
    let mut stat = [0; 18];
    stat[2] = 1;
    stat[3] = mode.into();
    stat[6] = size;
    stat[7] = PAGE;
    stat[8] = size.div_ceil(512);
    stat
}

/// Names of a directory behind the first `told` of them, and whether they are directories, in the
/// form of `getdents64`: as many as `room` bytes have room for, and how many were told by now.
///
/// # Errors
/// `EINVAL`: there is room for none. `ENOMEM`.
pub fn entries<'a>(
    names: impl Iterator<Item = (&'a [u8], bool)>,
    told: u64,
    room: usize,
) -> Result<(Vec<u8>, u64), Error> {
    let (mut bytes, mut last) = (Vec::new(), told);
    for (number, (name, is_directory)) in (1_u64..).zip(names) {
        let length = (19 + name.len() + 1).next_multiple_of(8);
        if number <= told {
            continue;
        }
        if bytes.len() + length > room {
            if bytes.is_empty() {
                return Err(EINVAL);
            }
            break;
        }
        let start = bytes.len();
        bytes.try_reserve(length).map_err(|_| ENOMEM)?;
        bytes.extend(number.to_le_bytes());
        bytes.extend(number.to_le_bytes());
        bytes.extend((length as u16).to_le_bytes());
        bytes.push(if is_directory { 4 } else { 8 });
        bytes.extend(name);
        bytes.resize(start + length, 0);
        last = number;
    }
    Ok((bytes, last))
}

/// `struct utsname`: six texts of 65 bytes, of which longer ones are cut.
pub fn names(texts: [&[u8]; 6]) -> [u8; 6 * 65] {
    let mut bytes = [0; 6 * 65];
    for (place, text) in bytes.chunks_mut(65).zip(texts) {
        let length = text.len().min(64);
        place[..length].copy_from_slice(&text[..length]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_up_and_down_but_not_over_the_root() {
        for (from, path, right) in [
            ("", "/", ""),
            ("a/b", "", "a/b"),
            ("a/b", "c//d/", "a/b/c/d"),
            ("a/b", "/c", "c"),
            ("a/b", "../c/./.", "a/c"),
            ("a", "../../../b", "b"),
            ("a", "...", "a/..."),
        ] {
            let found = resolve(from.as_bytes(), path.as_bytes());
            assert_eq!(found, right.as_bytes(), "{from} {path}");
        }
    }

    #[test]
    fn entries_come_in_pieces_and_none_is_lost() {
        let names = [
            (&b"a"[..], true),
            (b"file", false),
            (b"twelve_bytes", false),
        ];
        let listed = |told, room| entries(names.iter().copied(), told, room);
        let (all, told) = listed(0, 1000).expect("there is room");
        assert_eq!((all.len(), told), (24 + 24 + 32, 3));
        assert_eq!(
            all[..24],
            *b"\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x18\0\x04a\0\0\0\0"
        );
        assert_eq!(all[24 + 16..24 + 24], *b"\x18\0\x08file\0");
        for room in 32..all.len() {
            let (mut bytes, mut told) = (Vec::new(), 0);
            loop {
                let (more, now) = listed(told, room).expect("there is room");
                assert!(more.len() <= room);
                if more.is_empty() {
                    break;
                }
                bytes.extend(more);
                told = now;
            }
            assert_eq!((told, &bytes), (3, &all), "{room}");
        }
        assert_eq!(listed(2, 31), Err(EINVAL));
        assert_eq!(listed(3, 0), Ok((Vec::new(), 3)));
    }

    #[test]
    fn structures_have_what_belongs_there() {
        let stat = stat(DIRECTORY | 0o755, 513);
        assert_eq!((stat[3], stat[6], stat[8]), (0o40_755, 513, 2));
        let names = names([b"Linux", &[b'x'; 100], b"", b"", b"", b"end"]);
        assert_eq!(names[..6], *b"Linux\0");
        assert_eq!((names[65 + 63], names[65 + 64]), (b'x', 0));
        assert_eq!(names[5 * 65..5 * 65 + 4], *b"end\0");
    }
}
