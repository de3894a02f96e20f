//! The two devices that every shell user expects, known by their full paths: `/dev/null` and
//! `/dev/zero`.
//!
//! They are not on any disk: there is no directory `/dev` unless a disk has one, and what that
//! holds under these two names is not seen.

use interfaces::{FileKind, Metadata, RVec};

/// One of the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Reads as empty, takes everything.
    Null,
    /// Reads as zeros, takes everything.
    Zero,
}

impl Special {
    /// The device at this path, if it is one's.
    pub fn at(path: &[u8]) -> Option<Self> {
        match path {
            b"/dev/null" => Some(Special::Null),
            b"/dev/zero" => Some(Special::Zero),
            _ => None,
        }
    }

    /// What is read into `buffer`.
    pub fn read(self, mut buffer: RVec<u8>) -> RVec<u8> {
        match self {
            Special::Null => buffer.truncated(0),
            Special::Zero => {
                buffer.fill(0);
                buffer
            }
        }
    }

    /// What is known of it.
    pub fn metadata(self) -> Metadata {
        Metadata {
            inode: self as u64 + 1,
            kind: FileKind::Other,
            mode: 0o666,
            links: 1,
            size: 0,
            allocated: 0,
            modified: 0,
            accessed: 0,
            changed: 0,
            user: 0,
            group: 0,
        }
    }
}
