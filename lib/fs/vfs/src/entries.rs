//! Directory entries packed into a buffer: for each inode number (8 bytes, little-endian), kind (1
//! byte), length of the name (1 byte), name.

/// Bytes in front of a name.
pub const HEADER: usize = 10;

/// Kind byte of a file.
pub const REGULAR: u8 = 0;
/// Kind byte of a directory.
pub const DIRECTORY: u8 = 1;
/// Kind byte of a symbolic link.
pub const SYMLINK: u8 = 2;
/// Kind byte of what nobody knows.
pub const OTHER: u8 = 3;
/// Kind byte of a device that takes and gives bytes.
pub const CHARACTER_DEVICE: u8 = 4;
/// Kind byte of a device that has blocks.
pub const BLOCK_DEVICE: u8 = 5;
/// Kind byte of a named pipe.
pub const PIPE: u8 = 6;
/// Kind byte of a socket.
pub const SOCKET: u8 = 7;

/// Fills a buffer with entries.
pub struct Packer<'a> {
    buffer: &'a mut [u8],
    filled: usize,
}

impl<'a> Packer<'a> {
    /// Starts at the front of `buffer`.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Packer { buffer, filled: 0 }
    }

    /// Adds an entry; `false` if it does not fit, or the name is longer than 255 bytes.
    #[must_use]
    pub fn add(&mut self, inode: u64, kind: u8, name: &[u8]) -> bool {
        let Ok(length) = u8::try_from(name.len()) else {
            return false;
        };
        let end = self.filled + HEADER + name.len();
        let Some(place) = self.buffer.get_mut(self.filled..end) else {
            return false;
        };
        place[..8].copy_from_slice(&inode.to_le_bytes());
        place[8] = kind;
        place[9] = length;
        place[HEADER..].copy_from_slice(name);
        self.filled = end;
        true
    }

    /// How many bytes were filled.
    pub fn filled(&self) -> usize {
        self.filled
    }
}

/// One entry of a packed buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The inode number.
    pub inode: u64,
    /// One of the kind bytes of this module; untrusted.
    pub kind: u8,
    /// The name.
    pub name: &'a [u8],
}

/// The entries of a packed buffer; ends early where the buffer makes no sense.
pub struct Entries<'a>(&'a [u8]);

impl<'a> Entries<'a> {
    /// Reads `buffer`.
    pub fn new(buffer: &'a [u8]) -> Self {
        Entries(buffer)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let (inode, rest) = self.0.split_first_chunk::<8>()?;
        let (&[kind, length], rest) = rest.split_first_chunk::<2>()?;
        let (name, rest) = rest.split_at_checked(usize::from(length))?;
        self.0 = rest;
        Some(Entry {
            inode: u64::from_le_bytes(*inode),
            kind,
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_read() {
        let mut buffer = [0; 64];
        let mut packer = Packer::new(&mut buffer);
        assert!(packer.add(2, DIRECTORY, b"."));
        assert!(packer.add(u64::MAX, REGULAR, b"file"));
        let filled = packer.filled();
        assert_eq!(filled, 2 * HEADER + 5);
        let mut entries = Entries::new(&buffer[..filled]);
        assert_eq!(
            entries.next(),
            Some(Entry {
                inode: 2,
                kind: DIRECTORY,
                name: b"."
            })
        );
        assert_eq!(entries.next().map(|entry| entry.name), Some(&b"file"[..]));
        assert_eq!(entries.next(), None);
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let mut buffer = [0; HEADER + 3];
        let mut packer = Packer::new(&mut buffer);
        assert!(!packer.add(1, REGULAR, b"four"));
        assert!(!packer.add(1, REGULAR, &[b'a'; 256]));
        assert_eq!(packer.filled(), 0);
        assert!(packer.add(1, REGULAR, b"abc"));
    }

    #[test]
    fn a_torn_buffer_ends_early() {
        let mut buffer = [0; 32];
        let mut packer = Packer::new(&mut buffer);
        assert!(packer.add(1, REGULAR, b"abc"));
        for cut in 0..HEADER + 3 {
            assert_eq!(Entries::new(&buffer[..cut]).next(), None);
        }
    }
}
