//! The header in front of every domain image.
//!
//! ```text
//! offset  size  what
//!      0     8  "TREFOIL1"
//!      8     4  length of the header with its ports, in bytes
//!     12     4  length of the ELF file that follows the header
//!     16    32  ABI fingerprint
//!     48    32  name, padded with zero bytes
//!     80     4  number of ports
//!     84     4  zero
//!     88  48*n  ports: name (32), interface number (8), flags (4), zero (4)
//!      .     .  ELF file
//!    end    64  ed25519 signature over all that stands before it
//! ```
//! Numbers are little-endian. A name is UTF-8 without control characters. A port is something the
//! domain wants to be granted or offers to others.

use alloc::vec::Vec;

/// The first eight bytes of an image.
pub const MAGIC: [u8; 8] = *b"TREFOIL1";
/// Length of the header without ports, in bytes.
pub const FIXED_LENGTH: usize = 88;
/// Length of a port, in bytes.
pub const PORT_LENGTH: usize = 48;
/// Length of the signature, in bytes.
pub const SIGNATURE_LENGTH: usize = 64;
/// Longest name of an image or a port, in bytes.
pub const NAME_LENGTH: usize = 32;
/// Most ports that an image may declare.
pub const MOST_PORTS: usize = 20;

/// Port flag: the domain offers this (otherwise it wants it).
pub const PORT_OFFER: u32 = 1;
/// Port flag: the domain starts without this, too.
pub const PORT_OPTIONAL: u32 = 2;

/// Why a file is not an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// It does not start with the magic bytes.
    NotAnImage,
    /// It is shorter than its header says, or longer.
    WrongLength,
    /// A field of the header is out of its range; which.
    BadHeader(&'static str),
}

/// Something that a domain wants or offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port<'a> {
    /// Its name in the domain's declaration, which the manifest refers to.
    pub name: &'a str,
    /// The number of the interface.
    pub interface: u64,
    /// [`PORT_OFFER`] and [`PORT_OPTIONAL`].
    pub flags: u32,
}

/// An image whose header has been checked for form; its signature has not been verified.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    bytes: &'a [u8],
    header: usize,
    ports: usize,
    name: &'a str,
}

impl<'a> Image<'a> {
    /// Reads the header of `bytes`, which is the whole file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ImageError> {
        if bytes.get(..8) != Some(&MAGIC[..]) {
            return Err(ImageError::NotAnImage);
        }
        if bytes.len() < FIXED_LENGTH + SIGNATURE_LENGTH {
            return Err(ImageError::WrongLength);
        }
        let (header, payload) = (word(bytes, 8), word(bytes, 12));
        let ports = word(bytes, 80);
        if ports > MOST_PORTS || header != FIXED_LENGTH + ports * PORT_LENGTH {
            return Err(ImageError::BadHeader("port count"));
        }
        if header
            .checked_add(payload)
            .and_then(|n| n.checked_add(SIGNATURE_LENGTH))
            != Some(bytes.len())
        {
            return Err(ImageError::WrongLength);
        }
        if word(bytes, 84) != 0 {
            return Err(ImageError::BadHeader("reserved field"));
        }
        let name = name(&bytes[48..80]).ok_or(ImageError::BadHeader("name"))?;
        let image = Image {
            bytes,
            header,
            ports,
            name,
        };
        match (0..ports).all(|index| image.port(index).is_some()) {
            true => Ok(image),
            false => Err(ImageError::BadHeader("port")),
        }
    }

    /// The name that the image was built under.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The ABI fingerprint that the image was built with.
    pub fn fingerprint(&self) -> &'a [u8] {
        &self.bytes[16..48]
    }

    /// The ELF file.
    pub fn elf(&self) -> &'a [u8] {
        &self.bytes[self.header..self.bytes.len() - SIGNATURE_LENGTH]
    }

    /// What the signature covers.
    pub fn signed(&self) -> &'a [u8] {
        &self.bytes[..self.bytes.len() - SIGNATURE_LENGTH]
    }

    /// The signature.
    pub fn signature(&self) -> &'a [u8; SIGNATURE_LENGTH] {
        let tail = self.bytes.last_chunk();
        tail.expect("parse checked the length")
    }

    /// What the domain wants and offers, in the order of its declaration.
    pub fn ports(&self) -> impl Iterator<Item = Port<'a>> + use<'a> {
        let image = *self;
        (0..self.ports).filter_map(move |index| image.port(index))
    }

    fn port(&self, index: usize) -> Option<Port<'a>> {
        let at = FIXED_LENGTH + index * PORT_LENGTH;
        let port = &self.bytes[at..at + PORT_LENGTH];
        let number = port[32..40].first_chunk().expect("eight bytes");
        let (interface, flags) = (u64::from_le_bytes(*number), word(port, 40) as u32);
        if flags & !(PORT_OFFER | PORT_OPTIONAL) != 0 || word(port, 44) != 0 {
            return None;
        }
        Some(Port {
            name: name(&port[..32])?,
            interface,
            flags,
        })
    }
}

/// The bytes of an image up to its signature, which the caller appends.
///
/// # Panics
/// If a name is longer than [`NAME_LENGTH`] or there are more than [`MOST_PORTS`] ports.
pub fn unsigned(name: &str, fingerprint: &[u8; 32], ports: &[Port<'_>], elf: &[u8]) -> Vec<u8> {
    assert!(ports.len() <= MOST_PORTS, "{name}: too many ports");
    let header = FIXED_LENGTH + ports.len() * PORT_LENGTH;
    let mut bytes = Vec::with_capacity(header + elf.len() + SIGNATURE_LENGTH);
    bytes.extend(MAGIC);
    bytes.extend((header as u32).to_le_bytes());
    bytes.extend((elf.len() as u32).to_le_bytes());
    bytes.extend(fingerprint);
    bytes.extend(padded(name));
    bytes.extend((ports.len() as u32).to_le_bytes());
    bytes.extend([0; 4]);
    for port in ports {
        bytes.extend(padded(port.name));
        bytes.extend(port.interface.to_le_bytes());
        bytes.extend(port.flags.to_le_bytes());
        bytes.extend([0; 4]);
    }
    bytes.extend(elf);
    bytes
}

fn padded(name: &str) -> [u8; NAME_LENGTH] {
    assert!(
        name.len() <= NAME_LENGTH,
        "{name}: longer than {NAME_LENGTH} bytes"
    );
    let mut field = [0; NAME_LENGTH];
    field[..name.len()].copy_from_slice(name.as_bytes());
    field
}

fn name(field: &[u8]) -> Option<&str> {
    let end = field
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(field.len());
    let (text, padding) = field.split_at(end);
    // Each start of a domain reads its names. Most are ASCII, of which this is the fast check.
    let is_plain = || text.iter().all(|byte| matches!(byte, b' '..=b'~'));
    core::str::from_utf8(text).ok().filter(|name| {
        !name.is_empty()
            && padding.iter().all(|&byte| byte == 0)
            && (is_plain() || !name.contains(char::is_control))
    })
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let ports = [
            Port {
                name: "device",
                interface: 7,
                flags: 0,
            },
            Port {
                name: "files",
                interface: 9,
                flags: PORT_OFFER,
            },
        ];
        let mut bytes = unsigned("ext2", &[3; 32], &ports, b"elf!");
        bytes.extend([5; SIGNATURE_LENGTH]);
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = sample();
        let image = Image::parse(&bytes).expect("well-formed");
        assert_eq!(
            (image.name(), image.elf(), image.signature()),
            ("ext2", &b"elf!"[..], &[5; 64])
        );
        let ports: Vec<_> = image
            .ports()
            .map(|port| (port.name, port.interface, port.flags))
            .collect();
        assert_eq!(ports, [("device", 7, 0), ("files", 9, PORT_OFFER)]);
    }

    #[test]
    fn a_name_is_text_without_control_characters() {
        for good in [
            "a",
            "virtio-blk",
            "~ ",
            "gr\u{fc}n",
            &"x".repeat(NAME_LENGTH),
        ] {
            assert_eq!(name(&padded(good)), Some(good));
        }
        for bad in ["", "\n", "a\u{7f}", "a\u{85}b", "\u{1f}x"] {
            assert_eq!(name(&padded(bad)), None, "{bad:?}");
        }
        let not_text: [&[u8]; 4] = [b"a\0b", b"a\0\0\x01", &[0xff, 0], &[b'a', 0xc3]];
        for field in not_text {
            assert_eq!(name(field), None, "{field:?}");
        }
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = sample();
        for len in 0..bytes.len() {
            assert!(Image::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn no_bit_flip_panics() {
        let bytes = sample();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(image) = Image::parse(&flipped) {
                assert!(image.ports().count() <= MOST_PORTS && image.elf().len() <= flipped.len());
            }
        }
    }
}
