//! What is set of an inode, and that as bytes for the log of changes.

use interfaces::{FileSystem, FsError, Handle};
use redo::intent::SETTING;

/// What can be set of an inode. It is remembered, and set again by whatever instance comes next.
pub enum Setting {
    /// The permission bits.
    Mode(u16),
    /// Owner and group; `None`: stays.
    Owner {
        /// The owner.
        user: Option<u32>,
        /// The group.
        group: Option<u32>,
    },
    /// So many bytes from there on are zeros, and take no room.
    Hole {
        /// Where.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// Times in nanoseconds since 1970; `None`: stays.
    Times {
        /// Of the last access.
        accessed: Option<u64>,
        /// Of the last change of the content.
        modified: Option<u64>,
    },
}

impl Setting {
    /// As bytes, in a place of zeros: which one, and two words, each behind a mark that it is
    /// there.
    pub fn pack(&self, place: &mut [u8; SETTING]) {
        let (code, words) = match *self {
            Setting::Mode(mode) => (1, [Some(mode.into()), None]),
            Setting::Times { accessed, modified } => (2, [accessed, modified]),
            Setting::Owner { user, group } => (3, [user, group].map(|id| id.map(u64::from))),
            Setting::Hole { offset, length } => (4, [Some(offset), Some(length)]),
        };
        place[0] = code;
        for (word, place) in words.into_iter().zip(place[8..].chunks_exact_mut(16)) {
            place[0] = word.is_some().into();
            place[8..].copy_from_slice(&word.unwrap_or(0).to_le_bytes());
        }
    }

    /// The same again; `None`: these are not such bytes.
    pub fn unpack(bytes: &[u8; SETTING]) -> Option<Self> {
        let mut words = bytes[8..].chunks_exact(16).map(|word| {
            let (mark, word) = (word[0], word[8..].try_into());
            word.ok().filter(|_| mark != 0).map(u64::from_le_bytes)
        });
        let words = [words.next()?, words.next()?];
        match (bytes[0], words) {
            (1, [mode, _]) => Some(Setting::Mode(mode?.try_into().ok()?)),
            (2, [accessed, modified]) => Some(Setting::Times { accessed, modified }),
            (3, [user, group]) => Some(Setting::Owner {
                user: user.map(u32::try_from).transpose().ok()?,
                group: group.map(u32::try_from).transpose().ok()?,
            }),
            (4, [offset, length]) => Some(Setting::Hole {
                offset: offset?,
                length: length?,
            }),
            _ => None,
        }
    }

    /// The time of the last change of the content, if it is set.
    pub fn modified(&self) -> Option<u64> {
        match *self {
            Setting::Mode(_) | Setting::Owner { .. } | Setting::Hole { .. } => None,
            Setting::Times { modified, .. } => modified,
        }
    }

    /// Sets it of the inode `real`, in the numbers of `fs`.
    ///
    /// # Errors
    /// The file system's.
    pub fn perform(&self, fs: &Handle<dyn FileSystem>, real: u64) -> Result<(), FsError> {
        match *self {
            Setting::Mode(mode) => fs.set_mode(real, mode),
            Setting::Owner { user, group } => fs.set_owner(real, user, group),
            Setting::Hole { offset, length } => fs.punch(real, offset, length),
            Setting::Times { accessed, modified } => fs.set_times(real, accessed, modified),
        }
    }
}
