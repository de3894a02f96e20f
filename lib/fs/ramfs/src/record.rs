//! What the journal says: one record for each change, and those of a snapshot.
//!
//! Numbers are little-endian, texts have their length before them.

use alloc::vec::Vec;

use crate::{Kind, NAME_MAX};

/// The form of the records.
pub(crate) const VERSION: u32 = 1;

/// Bytes of the longest record: a symbolic link with the longest name and target.
pub(crate) const LONGEST: usize = 4096 + NAME_MAX + 64;

/// Bytes that a snapshot takes for an inode, but for the target of a link.
pub(crate) const INODE_BYTES: u64 = 70;
/// Bytes that a snapshot takes for a name, but for those of the name itself.
pub(crate) const NAME_BYTES: u64 = 46;

/// What is known of an inode besides its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image<'a> {
    pub(crate) inode: u64,
    pub(crate) kind: Kind,
    pub(crate) mode: u16,
    /// Last access, last change of the content, last change of the inode.
    pub(crate) times: [u64; 3],
    /// Of a file.
    pub(crate) size: u64,
    /// Whether a file has an object for its content.
    pub(crate) has_object: bool,
    /// Of a symbolic link; else empty.
    pub(crate) target: &'a [u8],
}

/// One record. `at` is the place of a name in its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// The first one.
    Begin { version: u32, base: u64 },
    /// Of a snapshot: an inode.
    Inode(Image<'a>),
    /// Of a snapshot: a name.
    Name {
        directory: u64,
        at: u32,
        name: &'a [u8],
        inode: u64,
    },
    /// A new inode under a new name.
    Make {
        directory: u64,
        at: u32,
        name: &'a [u8],
        image: Image<'a>,
    },
    /// Another name.
    Link {
        directory: u64,
        at: u32,
        name: &'a [u8],
        inode: u64,
        now: u64,
    },
    /// A name of no directory is gone.
    Unlink {
        directory: u64,
        name: &'a [u8],
        now: u64,
    },
    /// A name of a directory is gone.
    RemoveDirectory {
        directory: u64,
        name: &'a [u8],
        now: u64,
    },
    /// A name was moved. `at`: if nothing had the new one.
    Rename {
        from: u64,
        name: &'a [u8],
        to: u64,
        new_name: &'a [u8],
        at: Option<u32>,
        now: u64,
    },
    /// A file, which has an object by now, was written to, and has this size.
    Written { inode: u64, size: u64, now: u64 },
    /// The size of a file was set.
    Resized { inode: u64, size: u64, now: u64 },
    /// Permission bits were set.
    Mode { inode: u64, mode: u16, now: u64 },
    /// Times were set: last access, last change of the content, last change of the inode.
    Times { inode: u64, times: [u64; 3] },
}

/// Puts numbers and texts behind one another.
struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn short(&mut self, number: u32) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn text(&mut self, text: &[u8]) -> &mut Self {
        self.short(text.len() as u32);
        self.0.extend_from_slice(text);
        self
    }

    fn image(&mut self, of: &Image) -> &mut Self {
        let kind = match of.kind {
            Kind::Regular => 0,
            Kind::Directory => 1,
            Kind::Symlink => 2,
        };
        let flags = u32::from(of.mode) | kind << 16 | u32::from(of.has_object) << 24;
        self.number(of.inode).short(flags);
        for time in of.times {
            self.number(time);
        }
        self.number(of.size).text(of.target)
    }
}

impl Record<'_> {
    /// Puts the record behind what is in `out`, which has room for [`LONGEST`] bytes.
    #[rustfmt::skip]
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let tag = match self {
            Record::Begin { .. } => 1,
            Record::Inode(_) => 2,
            Record::Name { .. } => 3,
            Record::Make { .. } => 4,
            Record::Link { .. } => 5,
            Record::Unlink { .. } => 6,
            Record::RemoveDirectory { .. } => 7,
            Record::Rename { .. } => 8,
            Record::Written { .. } => 9,
            Record::Resized { .. } => 10,
            Record::Mode { .. } => 11,
            Record::Times { .. } => 12,
        };
        out.push(tag);
        let mut to = Writer(out);
        match *self {
            Record::Begin { version, base } => to.short(version).number(base),
            Record::Inode(ref image) => to.image(image),
            Record::Name { directory, at, name, inode } =>
                to.number(directory).short(at).text(name).number(inode),
            Record::Make { directory, at, name, ref image } =>
                to.number(directory).short(at).text(name).image(image),
            Record::Link { directory, at, name, inode, now } =>
                to.number(directory).short(at).text(name).number(inode).number(now),
            Record::Unlink { directory, name, now }
            | Record::RemoveDirectory { directory, name, now } =>
                to.number(directory).text(name).number(now),
            Record::Rename { from, name, to: other, new_name, at, now } => {
                let at = at.unwrap_or(u32::MAX);
                to.number(from).text(name).number(other).text(new_name).short(at).number(now)
            }
            Record::Written { inode, size, now } | Record::Resized { inode, size, now } =>
                to.number(inode).number(size).number(now),
            Record::Mode { inode, mode, now } =>
                to.number(inode).short(u32::from(mode)).number(now),
            Record::Times { inode, times: [accessed, modified, changed] } =>
                to.number(inode).number(accessed).number(modified).number(changed),
        };
    }
}

/// Takes numbers and texts off the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn short(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.short()?;
        self.take(length as usize)
    }

    fn image(&mut self) -> Option<Image<'a>> {
        let inode = self.number()?;
        let flags = self.short()?;
        let kind = match flags >> 16 & 0xff {
            0 => Kind::Regular,
            1 => Kind::Directory,
            2 => Kind::Symlink,
            _ => return None,
        };
        Some(Image {
            inode,
            kind,
            mode: flags as u16,
            has_object: flags >> 24 == 1,
            times: [self.number()?, self.number()?, self.number()?],
            size: self.number()?,
            target: self.text()?,
        })
    }

    #[rustfmt::skip]
    fn record(&mut self) -> Option<Record<'a>> {
        Some(match self.take(1)?[0] {
            1 => Record::Begin { version: self.short()?, base: self.number()? },
            2 => Record::Inode(self.image()?),
            3 => Record::Name {
                directory: self.number()?, at: self.short()?, name: self.text()?,
                inode: self.number()?,
            },
            4 => Record::Make {
                directory: self.number()?, at: self.short()?, name: self.text()?,
                image: self.image()?,
            },
            5 => Record::Link {
                directory: self.number()?, at: self.short()?, name: self.text()?,
                inode: self.number()?, now: self.number()?,
            },
            6 => Record::Unlink {
                directory: self.number()?, name: self.text()?, now: self.number()?,
            },
            7 => Record::RemoveDirectory {
                directory: self.number()?, name: self.text()?, now: self.number()?,
            },
            8 => Record::Rename {
                from: self.number()?, name: self.text()?, to: self.number()?,
                new_name: self.text()?,
                at: Some(self.short()?).filter(|&at| at != u32::MAX), now: self.number()?,
            },
            9 => Record::Written {
                inode: self.number()?, size: self.number()?, now: self.number()?,
            },
            10 => Record::Resized {
                inode: self.number()?, size: self.number()?, now: self.number()?,
            },
            11 => Record::Mode {
                inode: self.number()?, mode: self.short()? as u16, now: self.number()?,
            },
            12 => Record::Times {
                inode: self.number()?,
                times: [self.number()?, self.number()?, self.number()?],
            },
            _ => return None,
        })
    }
}

/// The record in `bytes`, if they are one and nothing else.
pub(crate) fn decode(bytes: &[u8]) -> Option<Record<'_>> {
    let mut reader = Reader(bytes);
    let record = reader.record()?;
    reader.0.is_empty().then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Image = Image {
        inode: 77,
        kind: Kind::Symlink,
        mode: 0o7755,
        times: [1, u64::MAX, 3],
        size: 1 << 40,
        has_object: true,
        target: b"somewhere",
    };

    #[test]
    #[rustfmt::skip]
    fn every_record_is_read_as_it_was_written_and_no_part_of_one_is() {
        let records = [
            Record::Begin { version: VERSION, base: 9 },
            Record::Inode(IMAGE),
            Record::Name { directory: 1, at: 2, name: b"n", inode: 3 },
            Record::Make { directory: 1, at: 2, name: b"new", image: IMAGE },
            Record::Link { directory: 1, at: 0, name: b"link", inode: 4, now: 5 },
            Record::Unlink { directory: 1, name: b"gone", now: 6 },
            Record::RemoveDirectory { directory: 1, name: b"gone", now: 6 },
            Record::Rename { from: 1, name: b"a", to: 2, new_name: b"b", at: Some(3), now: 4 },
            Record::Rename { from: 1, name: b"a", to: 2, new_name: b"b", at: None, now: 4 },
            Record::Written { inode: 1, size: 2, now: 3 },
            Record::Resized { inode: 1, size: 2, now: 3 },
            Record::Mode { inode: 1, mode: 0o644, now: 3 },
            Record::Times { inode: 1, times: [2, 3, 4] },
        ];
        for record in records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert!(bytes.len() <= LONGEST);
            assert_eq!(decode(&bytes), Some(record));
            for length in 0..bytes.len() {
                assert_eq!(decode(&bytes[..length]), None, "{record:?}");
            }
            bytes.push(0);
            assert_eq!(decode(&bytes), None, "{record:?}");
        }
        assert_eq!(decode(&[99]), None);
    }
}
