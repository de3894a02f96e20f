//! Names of sockets, as programs give and get them.

use super::{AF_INET, AF_UNIX};
use crate::errno::{EAFNOSUPPORT, EINVAL, ENOMEM, Error};
use alloc::vec::Vec;

/// The most bytes of an address (`struct sockaddr_storage`).
pub const LONGEST: usize = 128;
/// The most bytes of a `sockaddr_un`, and where the name begins.
const LONGEST_LOCAL: usize = 110;
const FAMILY: usize = 2;
/// Bytes of a `sockaddr_in`.
const INET: usize = 16;

/// The name of a socket of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// It has none.
    #[default]
    Unnamed,
    /// A path.
    Path(Vec<u8>),
    /// A name that stands in no file system.
    Abstract(Vec<u8>),
}

/// An address of IPv4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inet {
    /// The machine.
    pub host: [u8; 4],
    /// The port.
    pub port: u16,
}

fn copied(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| ENOMEM)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// The family of an address; `None`: it is too short to have one.
pub fn family(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|it| u16::from_le_bytes(*it))
}

impl Name {
    /// From a `sockaddr_un`.
    ///
    /// # Errors
    /// `EINVAL`: too short, too long, or of another family. `ENOMEM`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if family(bytes) != Some(AF_UNIX) || bytes.len() > LONGEST_LOCAL {
            return Err(EINVAL);
        }
        match bytes.get(FAMILY..).unwrap_or_default() {
            [] => Ok(Name::Unnamed),
            [0, name @ ..] => Ok(Name::Abstract(copied(name)?)),
            path => {
                let end = path.iter().position(|byte| *byte == 0);
                let path = path.get(..end.unwrap_or(path.len())).unwrap_or_default();
                Ok(Name::Path(copied(path)?))
            }
        }
    }

    /// As a `sockaddr_un`.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(LONGEST_LOCAL + 1)
            .map_err(|_| ENOMEM)?;
        bytes.extend_from_slice(&AF_UNIX.to_le_bytes());
        match self {
            Name::Unnamed => {}
            Name::Path(path) => {
                bytes.extend_from_slice(path);
                bytes.push(0);
            }
            Name::Abstract(name) => {
                bytes.push(0);
                bytes.extend_from_slice(name);
            }
        }
        Ok(bytes)
    }

    /// The name that a socket gets which is given none: five digits.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn numbered(number: u32) -> Result<Self, Error> {
        let mut digits = [0; 5];
        for (digit, shift) in digits.iter_mut().zip([16, 12, 8, 4, 0]) {
            let value = (number >> shift & 0xf) as u8;
            *digit = if value < 10 {
                b'0' + value
            } else {
                b'a' + value - 10
            };
        }
        copied(&digits).map(Name::Abstract)
    }
}

impl Inet {
    /// From a `sockaddr_in`.
    ///
    /// # Errors
    /// `EINVAL`: too short. `EAFNOSUPPORT`: of another family.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let whole: &[u8; INET] = bytes.first_chunk().ok_or(EINVAL)?;
        if family(whole) != Some(AF_INET) {
            return Err(EAFNOSUPPORT);
        }
        let [_, _, high, low, a, b, c, d, ..] = *whole;
        Ok(Inet {
            host: [a, b, c, d],
            port: u16::from_be_bytes([high, low]),
        })
    }

    /// As a `sockaddr_in`.
    pub fn bytes(self) -> [u8; INET] {
        let mut bytes = [0; INET];
        let ([family, rest @ ..], _) = bytes.as_chunks_mut::<2>() else {
            return bytes;
        };
        *family = AF_INET.to_le_bytes();
        let [a, b, c, d] = self.host;
        let parts = [self.port.to_be_bytes(), [a, b], [c, d]];
        for (place, part) in rest.iter_mut().zip(parts) {
            *place = part;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn names_are_as_linux_reads_them() {
        let whole = |rest: &[u8]| [&[1, 0], rest].concat();
        let read = |rest: &[u8]| Name::from_bytes(&whole(rest));
        assert_eq!(read(b""), Ok(Name::Unnamed));
        assert_eq!(read(b"\0"), Ok(Name::Abstract(vec![])));
        assert_eq!(read(b"\0a\0b"), Ok(Name::Abstract(b"a\0b".to_vec())));
        assert_eq!(read(b"/a/b\0rest"), Ok(Name::Path(b"/a/b".to_vec())));
        assert_eq!(read(&[b'x'; 108]), Ok(Name::Path(vec![b'x'; 108])));
        assert_eq!(read(&[b'x'; 109]), Err(EINVAL));
        assert_eq!(Name::from_bytes(&[1]), Err(EINVAL));
        assert_eq!(Name::from_bytes(&[2, 0, b'a']), Err(EINVAL));
        for name in [
            Name::Unnamed,
            Name::Path(b"/x".to_vec()),
            Name::Abstract(b"\0y".to_vec()),
        ] {
            let bytes = name.bytes().unwrap();
            assert_eq!(Name::from_bytes(&bytes), Ok(name));
        }
        assert_eq!(Name::numbered(0xa1f), Ok(Name::Abstract(b"00a1f".to_vec())));
    }

    #[test]
    fn addresses_of_the_network_have_their_ports_the_other_way_round() {
        let mut bytes = [2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let address = Inet {
            host: [127, 0, 0, 1],
            port: 8080,
        };
        assert_eq!(Inet::from_bytes(&bytes), Ok(address));
        assert_eq!(address.bytes(), bytes);
        assert_eq!(Inet::from_bytes(&bytes[..15]), Err(EINVAL));
        bytes[0] = 10;
        assert_eq!(Inet::from_bytes(&bytes), Err(EAFNOSUPPORT));
    }
}
