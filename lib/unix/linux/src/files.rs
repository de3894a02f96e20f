//! What is told of files: paths, `struct stat`, entries of directories, `struct utsname`.

use crate::errno::{EINVAL, ENOMEM, Error};
use crate::memory::PAGE;
use alloc::vec::Vec;

/// The part of the mode that `stat` tells that is the file's kind.
pub const KIND: u32 = 0o170_000;
/// Kinds of files.
pub const DIRECTORY: u32 = 0o40_000;
/// See [`DIRECTORY`].
pub const REGULAR: u32 = 0o100_000;
/// See [`DIRECTORY`].
pub const CHARACTER: u32 = 0o20_000;
/// See [`DIRECTORY`].
pub const FIFO: u32 = 0o10_000;
/// See [`DIRECTORY`].
pub const BLOCK: u32 = 0o60_000;
/// See [`DIRECTORY`].
pub const SOCKET: u32 = 0o140_000;
/// See [`DIRECTORY`].
pub const LINK: u32 = 0o120_000;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// `STATX_BASIC_STATS`.
const STATX_BASIC: u64 = 0x7ff;

/// The path from the root, without slashes at its ends, and without `.` and `..`.
pub fn resolve(from: &[u8], path: &[u8]) -> Vec<u8> {
    let from = if path.starts_with(b"/") { b"" } else { from };
    let mut whole = Vec::new();
    for part in from
        .split(|byte| *byte == b'/')
        .chain(path.split(|byte| *byte == b'/'))
    {
        match part {
            b"" | b"." => {}
            b".." => {
                let last = whole.iter().rposition(|byte| *byte == b'/');
                whole.truncate(last.unwrap_or(0));
            }
            name => {
                if !whole.is_empty() {
                    whole.push(b'/');
                }
                whole.extend_from_slice(name);
            }
        }
    }
    whole
}

/// What `stat` tells of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The file system, and which file of it. Two names of one file have both in common.
    pub device: u64,
    /// See `device`.
    pub inode: u64,
    /// How many names it has.
    pub links: u64,
    /// Its kind and permissions.
    pub mode: u32,
    /// Who it belongs to.
    pub user: u32,
    /// See `user`.
    pub group: u32,
    /// If it is a device, which: 8 bits of the minor number, 12 of the major, and the others of the
    /// minor one.
    pub node: u32,
    /// Its bytes, and those that it takes.
    pub size: u64,
    /// See `size`.
    pub allocated: u64,
    /// Of the last access, the last change of the content, and the last of the file: in
    /// nanoseconds since 1970.
    pub times: [u64; 3],
}

impl Attributes {
    /// Of something with one name of which no more is known.
    pub fn new(mode: u32, size: u64) -> Self {
        Attributes {
            links: 1,
            mode,
            size,
            allocated: size,
            ..Self::default()
        }
    }

    /// As `struct stat` (`asm/stat.h`).
    pub fn stat(&self) -> [u64; 18] {
        let mut stat = [0; 18];
        (stat[0], stat[1], stat[2]) = (self.device, self.inode, self.links);
        stat[3] = u64::from(self.user) << 32 | u64::from(self.mode);
        stat[4] = self.group.into();
        stat[5] = self.node.into();
        stat[6] = self.size;
        stat[7] = PAGE;
        stat[8] = self.allocated.div_ceil(512);
        for (at, time) in [9, 11, 13].into_iter().zip(self.times) {
            (stat[at], stat[at + 1]) = (time / SECOND, time % SECOND);
        }
        stat
    }

    /// As `struct statx` (`linux/stat.h`), with the first eleven fields that it knows.
    pub fn statx(&self) -> [u64; 32] {
        let pair = |low: u64, high: u64| low & 0xffff_ffff | high << 32;
        let mut statx = [0; 32];
        statx[0] = pair(STATX_BASIC, PAGE);
        statx[2] = pair(self.links, self.user.into());
        statx[3] = pair(self.group.into(), self.mode.into());
        statx[4] = self.inode;
        statx[5] = self.size;
        statx[6] = self.allocated.div_ceil(512);
        let [accessed, modified, changed] = self.times;
        for (at, time) in [(8, accessed), (12, changed), (14, modified)] {
            (statx[at], statx[at + 1]) = (time / SECOND, time % SECOND);
        }
        let minor = self.node & 0xff | self.node >> 12 & 0xf_ff00;
        statx[16] = pair(u64::from(self.node >> 8 & 0xfff), minor.into());
        statx[17] = pair(self.device >> 8, self.device & 0xff);
        statx
    }
}

/// What a directory says of a name.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The kind of what it leads to, as in the mode; 0: not known.
    pub kind: u32,
    /// Its number.
    pub inode: u64,
}

/// Adds names of a directory to `bytes` in the form of `getdents64`: as many as `room` bytes have
/// room for; how many those are. Each comes with where the next one is: a number more than `told`.
///
/// # Errors
/// `EINVAL`: there is room for none. `ENOMEM`.
pub fn list<'a>(
    bytes: &mut Vec<u8>,
    names: impl Iterator<Item = Named<'a>>,
    told: u64,
    room: usize,
) -> Result<u64, Error> {
    let mut count = 0;
    for Named { name, kind, inode } in names {
        let length = (19 + name.len() + 1).next_multiple_of(8);
        let start = bytes.len();
        if start + length > room {
            return if start == 0 { Err(EINVAL) } else { Ok(count) };
        }
        count += 1;
        bytes.try_reserve(length).map_err(|_| ENOMEM)?;
        bytes.extend(inode.to_le_bytes());
        bytes.extend((told + count).to_le_bytes());
        bytes.extend((length as u16).to_le_bytes());
        bytes.push((kind >> 12) as u8);
        bytes.extend(name);
        bytes.resize(start + length, 0);
    }
    Ok(count)
}

/// `struct stat` of a file with this mode and size, of which no more is known.
pub fn stat(mode: u32, size: u64) -> [u64; 18] {
    Attributes::new(mode, size).stat()
}

/// Names of a directory behind the first `told` of them, and whether they are directories, in the
/// form of `getdents64`: as many as `room` bytes have room for, and how many were told by now.
///
/// # Errors
/// As [`list`].
pub fn entries<'a>(
    names: impl Iterator<Item = (&'a [u8], bool)>,
    told: u64,
    room: usize,
) -> Result<(Vec<u8>, u64), Error> {
    let mut bytes = Vec::new();
    let rest = (1_u64..).zip(names).skip(told as usize);
    let rest = rest.map(|(inode, (name, is_directory))| Named {
        name,
        kind: if is_directory { DIRECTORY } else { REGULAR },
        inode,
    });
    let count = list(&mut bytes, rest, told, room)?;
    Ok((bytes, told + count))
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
    fn times_are_told_with_their_nanoseconds() {
        let of = Attributes {
            device: 1,
            inode: 9,
            user: 7,
            node: 0x0012_3456,
            times: [1_000_000_001, 5_123_456_789, 999_999_999],
            ..Attributes::new(REGULAR | 0o4755, 10)
        };
        let stat = of.stat();
        assert_eq!(stat[9..15], [1, 1, 5, 123_456_789, 0, 999_999_999]);
        let statx = of.statx();
        assert_eq!(statx[0], 0x7ff | PAGE << 32);
        assert_eq!(statx[2], 1 | 7 << 32);
        assert_eq!(statx[3], 0o104_755 << 32);
        assert_eq!((statx[4], statx[5], statx[6]), (9, 10, 1));
        assert_eq!(statx[8..10], [1, 1]);
        assert_eq!(statx[10..12], [0, 0]);
        assert_eq!(statx[12..16], [0, 999_999_999, 5, 123_456_789]);
        assert_eq!(stat[5], 0x0012_3456);
        assert_eq!(statx[16], 0x234 | 0x156 << 32);
        assert_eq!(statx[17], 1 << 32);
    }

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
        let names: [(&[u8], u32); 3] = [
            (b"a", DIRECTORY),
            (b"file", REGULAR),
            (b"twelve_bytes", LINK),
        ];
        let listed = |bytes: &mut Vec<u8>, told: u64, room| {
            let rest = names.iter().zip(7..).skip(told as usize);
            let rest = rest.map(|((name, kind), inode)| Named {
                name,
                kind: *kind,
                inode,
            });
            list(bytes, rest, told, room)
        };
        let mut all = Vec::new();
        assert_eq!(listed(&mut all, 0, 1000), Ok(3));
        assert_eq!(all.len(), 24 + 24 + 32);
        assert_eq!(
            all[..24],
            *b"\x07\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x18\0\x04a\0\0\0\0"
        );
        assert_eq!(all[24 + 16..24 + 24], *b"\x18\0\x08file\0");
        assert_eq!(all[48 + 18..48 + 24], *b"\x0atwelv");
        for room in 32..all.len() {
            let (mut bytes, mut told) = (Vec::new(), 0);
            while told < 3 {
                let mut more = Vec::new();
                told += listed(&mut more, told, room).expect("there is room");
                assert!(more.len() <= room);
                bytes.extend(more);
            }
            assert_eq!(&bytes, &all, "{room}");
        }
        assert_eq!(listed(&mut Vec::new(), 2, 31), Err(EINVAL));
        assert_eq!(listed(&mut Vec::new(), 3, 0), Ok(0));
        // What is there counts.
        let room = all.len() + 23;
        assert_eq!(listed(&mut all, 0, room), Ok(0));
        let both = [(&b"a"[..], true), (b"file", false)];
        let (bytes, told) = entries(both.into_iter(), 1, 100).expect("there is room");
        assert_eq!((told, &bytes[..9]), (2, &b"\x02\0\0\0\0\0\0\0\x02"[..]));
    }

    #[test]
    fn structures_have_what_belongs_there() {
        let mut of = Attributes::new(DIRECTORY | 0o755, 513);
        (of.device, of.inode, of.user, of.group) = (1, 2, 3, 4);
        of.times = [5, 6, 7].map(|seconds| seconds * SECOND);
        let stat = of.stat();
        assert_eq!((stat[0], stat[1], stat[2], stat[4]), (1, 2, 1, 4));
        assert_eq!((stat[3], stat[6], stat[8]), (3 << 32 | 0o40_755, 513, 2));
        assert_eq!((stat[9], stat[11], stat[13]), (5, 6, 7));
        let names = names([b"Linux", &[b'x'; 100], b"", b"", b"", b"end"]);
        assert_eq!(names[..6], *b"Linux\0");
        assert_eq!((names[65 + 63], names[65 + 64]), (b'x', 0));
        assert_eq!(names[5 * 65..5 * 65 + 4], *b"end\0");
    }
}
