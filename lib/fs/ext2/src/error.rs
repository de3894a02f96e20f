//! What can go wrong, who is to blame, and whether trying again helps.

use crate::device::DeviceError;
use crate::features::FeatureSet;

/// Why an operation failed. Unless said otherwise nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The device failed. Trying again may help.
    Device(DeviceError),
    /// There is no ext2 file system on the device; the text says what was missing.
    NotExt2(&'static str),
    /// The image contradicts itself; the text says where. A repair on the host may help.
    Corrupt(&'static str),
    /// The image uses features that this library does not know; no mount is possible.
    Unsupported(FeatureSet),
    /// The image uses features that allow reading only; mount it read-only.
    OnlyReadable(FeatureSet),
    /// The journal cannot be used; the text says why.
    Journal(&'static str),
    /// The block size, in bytes, is none of 1,024, 2,048 and 4,096.
    BlockSize(u64),
    /// No such name, or no such inode (any more).
    NotFound,
    /// The name is taken.
    Exists,
    /// A directory was needed and something else was found.
    NotDirectory,
    /// Something else was needed and a directory was found.
    IsDirectory,
    /// The directory to be removed or replaced still has entries.
    NotEmpty,
    /// No free block is left.
    NoSpace,
    /// No free inode is left.
    NoInodes,
    /// A name has more than 255 bytes, or a symbolic link's target more than fits in a block.
    NameTooLong,
    /// An argument makes no sense; the text says which.
    Invalid(&'static str),
    /// The inode has 32,000 links, the most that the format allows.
    TooManyLinks,
    /// The file would be larger than the format allows.
    FileTooLarge,
    /// Mounted read-only, or made so when corruption was found.
    ReadOnly,
}

/// The result of every operation of this library.
pub(crate) type Result<T> = core::result::Result<T, Error>;

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        Error::Device(error)
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Error::Device(error) => write!(f, "{error}"),
            Error::NotExt2(what) => write!(f, "not an ext2 file system: {what}"),
            Error::Corrupt(what) => write!(f, "the file system is corrupt: {what}"),
            Error::Unsupported(set) => write!(f, "unsupported file system features: {set}"),
            Error::OnlyReadable(set) => {
                write!(f, "features that allow only a read-only mount: {set}")
            }
            Error::Journal(what) => write!(f, "the journal cannot be used: {what}"),
            Error::BlockSize(size) => write!(f, "unsupported block size: {size} bytes"),
            Error::Invalid(what) => write!(f, "invalid argument: {what}"),
            other => f.write_str(other.plain()),
        }
    }
}

impl Error {
    /// The text of the errors that carry nothing.
    fn plain(&self) -> &'static str {
        match self {
            Error::NotFound => "no such file or directory",
            Error::Exists => "file exists",
            Error::NotDirectory => "not a directory",
            Error::IsDirectory => "is a directory",
            Error::NotEmpty => "directory not empty",
            Error::NoSpace => "no space left on device",
            Error::NoInodes => "no inodes left on device",
            Error::NameTooLong => "file name too long",
            Error::TooManyLinks => "too many links",
            Error::FileTooLarge => "file too large",
            Error::ReadOnly => "read-only file system",
            _ => "error",
        }
    }
}

impl core::error::Error for Error {}
