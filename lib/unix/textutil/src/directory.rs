//! Directory entries as file systems pack them: inode (8 bytes, little-endian), kind (1), length of
//! the name (1), name.

use alloc::vec::Vec;

/// What an entry leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device that takes and gives bytes.
    CharacterDevice,
    /// A device that has blocks.
    BlockDevice,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// Something else.
    Other,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The inode's number.
    pub inode: u64,
    /// What it is.
    pub kind: Kind,
    /// The name, which may be `.` or `..`.
    pub name: Vec<u8>,
}

/// Takes packed entries apart. An entry that is cut off at the end is left out.
pub fn unpack(mut packed: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    while let Some((head, rest)) = packed.split_first_chunk::<10>() {
        let [inode @ .., kind, length] = *head;
        let Some((name, rest)) = rest.split_at_checked(usize::from(length)) else {
            break;
        };
        let kind = match kind {
            0 => Kind::Regular,
            1 => Kind::Directory,
            2 => Kind::Symlink,
            4 => Kind::CharacterDevice,
            5 => Kind::BlockDevice,
            6 => Kind::Pipe,
            7 => Kind::Socket,
            _ => Kind::Other,
        };
        entries.push(Entry {
            inode: u64::from_le_bytes(inode),
            kind,
            name: name.to_vec(),
        });
        packed = rest;
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(inode: u64, kind: u8, name: &[u8]) -> Vec<u8> {
        [&inode.to_le_bytes()[..], &[kind, name.len() as u8], name].concat()
    }

    #[test]
    fn unpacks_in_order() {
        let bytes = [
            packed(2, 1, b"."),
            packed(7, 0, b"file"),
            packed(8, 9, b"odd"),
        ]
        .concat();
        let entries = unpack(&bytes);
        assert_eq!(
            entries[0],
            Entry {
                inode: 2,
                kind: Kind::Directory,
                name: b".".to_vec()
            }
        );
        assert_eq!(
            (entries[1].kind, entries[2].kind),
            (Kind::Regular, Kind::Other)
        );
    }

    #[test]
    fn a_cut_entry_is_left_out() {
        let bytes = [packed(2, 1, b"."), packed(7, 0, b"file")].concat();
        for len in 0..bytes.len() {
            assert_eq!(unpack(&bytes[..len]).len(), usize::from(len >= 11));
        }
    }
}
