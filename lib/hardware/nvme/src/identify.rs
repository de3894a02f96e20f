//! What a controller says of itself and of its namespaces (section 5.15). All of it is text and
//! numbers of a device that may lie: numbers are checked here, text is made printable.

use alloc::string::String;

use crate::{PAGE, number};

/// What is used of the controller's structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// The model, as text.
    pub model: String,
    /// The serial number, as text.
    pub serial: String,
    /// The most bytes of a command; `None`: no limit.
    pub most_bytes: Option<usize>,
    /// Namespaces that there can be.
    pub namespaces: u32,
    /// It knows dataset management.
    pub has_discard: bool,
    /// It knows write zeroes.
    pub has_zeroes: bool,
    /// It has a cache that may lose what is not flushed.
    pub has_cache: bool,
}

/// Why a structure cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentifyError {
    /// Entries of queues are of other sizes than 64 and 16 bytes.
    EntrySize,
    /// The namespace has no blocks.
    Empty,
    /// Its blocks are not of 512 bytes; of how many, as a power of two.
    BlockSize(u8),
    /// Its blocks have metadata beside them.
    Metadata,
    /// It has more blocks than can be counted in bytes.
    TooLarge,
}

impl core::fmt::Display for IdentifyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            IdentifyError::EntrySize => f.write_str("its queues have other entries"),
            IdentifyError::Empty => f.write_str("the namespace has no blocks"),
            IdentifyError::BlockSize(shift) => {
                write!(f, "blocks of 2^{shift} bytes are not served, only of 512")
            }
            IdentifyError::Metadata => f.write_str("blocks with metadata are not served"),
            IdentifyError::TooLarge => f.write_str("the namespace is too large"),
        }
    }
}

impl Controller {
    /// Reads the structure (figure 247).
    ///
    /// # Errors
    /// [`IdentifyError::EntrySize`].
    pub fn read(bytes: &[u8; PAGE]) -> Result<Self, IdentifyError> {
        // The lower half says what is required, the upper one what is possible.
        let allows = |byte: u8, wanted: u8| byte & 0xf <= wanted && wanted <= byte >> 4;
        if !allows(bytes[512], 6) || !allows(bytes[513], 4) {
            return Err(IdentifyError::EntrySize);
        }
        let commands = number::<2>(bytes, 520);
        Ok(Controller {
            model: text(&bytes[24..64]),
            serial: text(&bytes[4..24]),
            most_bytes: match u32::from(bytes[77]) {
                0 => None,
                shift => PAGE.checked_shl(shift).filter(|most| *most > 0),
            },
            namespaces: number::<4>(bytes, 516) as u32,
            has_discard: commands & 1 << 2 != 0,
            has_zeroes: commands & 1 << 3 != 0,
            has_cache: bytes[525] & 1 != 0,
        })
    }
}

/// What is used of a namespace's structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its size in blocks of 512 bytes.
    pub blocks: u64,
    /// It cannot be written.
    pub read_only: bool,
}

impl Namespace {
    /// Reads the structure (figure 245).
    ///
    /// # Errors
    /// The namespace cannot be used; why.
    pub fn read(bytes: &[u8; PAGE]) -> Result<Self, IdentifyError> {
        let blocks = number::<8>(bytes, 0) as u64;
        if blocks == 0 {
            return Err(IdentifyError::Empty);
        }
        let format = usize::from(bytes[26] & 0xf);
        let format = number::<4>(bytes, 128 + 4 * format) as u32;
        let (metadata, shift) = (format as u16, (format >> 16) as u8);
        // Protection information is a kind of metadata.
        if metadata != 0 || bytes[29] & 7 != 0 {
            return Err(IdentifyError::Metadata);
        }
        if shift != 9 {
            return Err(IdentifyError::BlockSize(shift));
        }
        if blocks > u64::MAX >> shift {
            return Err(IdentifyError::TooLarge);
        }
        Ok(Namespace {
            blocks,
            read_only: bytes[99] & 1 != 0,
        })
    }
}

/// The numbers of the list of namespaces in use, which end with a zero.
pub fn namespaces(bytes: &[u8; PAGE]) -> impl Iterator<Item = u32> {
    let numbers = bytes
        .chunks_exact(4)
        .map(|word| number::<4>(word, 0) as u32);
    numbers.take_while(|number| *number != 0)
}

/// Text that is filled up with spaces; what cannot be printed is a question mark.
fn text(bytes: &[u8]) -> String {
    let printable = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '?',
    };
    let mut text: String = bytes.iter().map(printable).collect();
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> [u8; PAGE] {
        let mut bytes = [0; PAGE];
        bytes[4..24].fill(b' ');
        bytes[24..64].fill(b' ');
        bytes[4..7].copy_from_slice(b"s\x1b7");
        bytes[24..29].copy_from_slice(b"model");
        (bytes[77], bytes[512], bytes[513], bytes[525]) = (7, 0x66, 0x44, 1);
        (bytes[516], bytes[520]) = (2, 1 << 2);
        bytes
    }

    #[test]
    fn a_controller_is_read() {
        let read = Controller::read(&controller()).expect("good");
        assert_eq!((&*read.model, &*read.serial), ("model", "s?7"));
        assert_eq!(read.most_bytes, Some(512 << 10));
        assert!(read.has_discard && !read.has_zeroes && read.has_cache);
        assert_eq!(read.namespaces, 2);
    }

    #[test]
    fn limits_that_are_none_or_too_much() {
        let mut bytes = controller();
        for shift in [0, 60, 255] {
            bytes[77] = shift;
            let read = Controller::read(&bytes).expect("good");
            assert_eq!(read.most_bytes, None, "{shift}");
        }
        bytes[512] = 0x77;
        assert_eq!(Controller::read(&bytes), Err(IdentifyError::EntrySize));
    }

    fn namespace() -> [u8; PAGE] {
        let mut bytes = [0; PAGE];
        bytes[1] = 8;
        bytes[26] = 1;
        bytes[128 + 4..128 + 8].copy_from_slice(&[0, 0, 9, 0]);
        bytes
    }

    #[test]
    fn a_namespace_is_read_or_refused() {
        let read = Namespace::read(&namespace()).expect("good");
        assert_eq!((read.blocks, read.read_only), (2048, false));
        let with = |at: usize, value: u8| {
            let mut bytes = namespace();
            bytes[at] = value;
            Namespace::read(&bytes)
        };
        assert!(with(99, 1).expect("good").read_only);
        assert_eq!(with(1, 0), Err(IdentifyError::Empty));
        assert_eq!(with(26, 0), Err(IdentifyError::BlockSize(0)));
        assert_eq!(with(128 + 6, 12), Err(IdentifyError::BlockSize(12)));
        assert_eq!(with(128 + 4, 8), Err(IdentifyError::Metadata));
        assert_eq!(with(29, 1), Err(IdentifyError::Metadata));
        assert_eq!(with(7, 0xff), Err(IdentifyError::TooLarge));
        // Format 15, the last one that there can be.
        assert_eq!(with(26, 15), Err(IdentifyError::BlockSize(0)));
    }

    #[test]
    fn the_list_ends() {
        let mut bytes = [0; PAGE];
        (bytes[0], bytes[4], bytes[12]) = (1, 7, 9);
        assert!(namespaces(&bytes).eq([1, 7]));
        assert_eq!(namespaces(&[1; PAGE]).count(), 1024);
    }
}
