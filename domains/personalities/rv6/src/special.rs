//! `/dev`: the devices that every shell user expects, `null`, `zero`, `random` and `urandom`.
//!
//! They are known by their full paths, without a walk, since scripts open `/dev/null` all the time.
//! Who goes there by another path, or lists the directory, finds them in a file system of this
//! domain's own, like `/proc`.

use interfaces::{Errno, FileKind, FsError, FsStatistics, Handle, Metadata, RVec, Random, Text};
use readonly::{ROOT, Tree};

/// One of the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Reads as empty, takes everything.
    Null,
    /// Reads as zeros, takes everything.
    Zero,
    /// Reads as random numbers, takes everything and makes nothing of it: the system's source needs
    /// no help, and a program's would be none that others may trust.
    Random,
    /// The same. Where it differs elsewhere, it is older and worse.
    Urandom,
}

/// Most bytes of random numbers in one read.
const MOST_RANDOM: usize = 65_536;

/// All of them, with the names that they have in the directory.
const ALL: [(&str, Special); 4] = [
    ("null", Special::Null),
    ("zero", Special::Zero),
    ("random", Special::Random),
    ("urandom", Special::Urandom),
];

impl Special {
    /// The device at this path, if it is one's.
    pub fn at(path: &[u8]) -> Option<Self> {
        let name = path.strip_prefix(b"/dev/")?;
        let found = ALL.iter().find(|(known, _)| known.as_bytes() == name);
        found.map(|(_, special)| *special)
    }

    /// The device with this inode in the directory.
    pub fn numbered(inode: u64) -> Option<Self> {
        let all = ALL.iter().map(|(_, special)| *special);
        all.into_iter().find(|special| special.inode() == inode)
    }

    fn inode(self) -> u64 {
        ROOT + 1 + self as u64
    }

    /// What is read into `buffer`.
    ///
    /// # Errors
    /// `Device` where random numbers are asked for and `random` is none, or has none.
    pub fn read(
        self,
        mut buffer: RVec<u8>,
        random: Option<&Handle<dyn Random>>,
    ) -> Result<RVec<u8>, Errno> {
        match self {
            Special::Null => Ok(buffer.truncated(0)),
            Special::Zero => {
                buffer.fill(0);
                Ok(buffer)
            }
            Special::Random | Special::Urandom => {
                let random = random.ok_or(Errno::Fs(FsError::Device))?;
                let count = buffer.len().min(MOST_RANDOM);
                let filled = random.fill(buffer.truncated(count));
                filled.map_err(|_| Errno::Fs(FsError::Device))
            }
        }
    }

    /// What is known of it.
    pub fn metadata(self) -> Metadata {
        metadata(self.inode(), FileKind::CharacterDevice, 0o666, 1)
    }
}

/// That of something without content, owner and times, with this number, mode and so many links.
pub fn metadata(inode: u64, kind: FileKind, mode: u16, links: u32) -> Metadata {
    Metadata {
        inode,
        kind,
        mode,
        links,
        size: 0,
        allocated: 0,
        modified: 0,
        accessed: 0,
        changed: 0,
        user: 0,
        group: 0,
        device: 0,
        generation: 0,
    }
}

/// The directory.
pub struct Devices;

impl Tree for Devices {
    fn is_directory(&self, inode: u64) -> Result<bool, FsError> {
        match (inode, Special::numbered(inode)) {
            (ROOT, _) => Ok(true),
            (_, Some(_)) => Ok(false),
            (_, None) => Err(FsError::NotFound),
        }
    }

    fn entry(&self, _directory: u64, position: u64) -> Option<(u64, &[u8])> {
        let at = match position {
            0 => return Some((ROOT, b".")),
            1 => return Some((ROOT, b"..")),
            _ => usize::try_from(position - 2).ok()?,
        };
        let (name, special) = ALL.get(at)?;
        Some((special.inode(), name.as_bytes()))
    }

    fn look_up(&self, directory: u64, name: &[u8]) -> Result<u64, FsError> {
        let mut all = (0..).map_while(|position| self.entry(directory, position));
        let found = all.find(|(_, known)| *known == name);
        found.map(|(inode, _)| inode).ok_or(FsError::NotFound)
    }

    fn metadata(&self, inode: u64) -> Result<Metadata, FsError> {
        match (inode, Special::numbered(inode)) {
            (ROOT, _) => Ok(metadata(ROOT, FileKind::Directory, 0o555, 2)),
            (_, Some(special)) => Ok(special.metadata()),
            (_, None) => Err(FsError::NotFound),
        }
    }

    /// What is opened here is a device and not read through this.
    fn read(&self, _file: u64, _offset: u64, _buffer: RVec<u8>) -> Result<RVec<u8>, FsError> {
        Err(FsError::Device)
    }

    fn statistics(&self) -> FsStatistics {
        FsStatistics {
            kind: Text::new("dev"),
            block_size: 4096,
            blocks: 0,
            free_blocks: 0,
            inodes: ALL.len() as u64 + 1,
            free_inodes: 0,
            read_only: true,
        }
    }
}
