//! Errors of the device as `lib/fs/ext2` knows them, and those of the volume.

use core::fmt;

use ext2::DeviceError;
use interfaces::{BlockError, BlockOutcome, FsError, QueueError, RpcError, Text};
use vfs::fence::Fenced;

/// Why the volume did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A later service than that of the caller has begun.
    Fenced,
    /// The library's.
    Files(ext2::Error),
}

impl From<ext2::Error> for Error {
    fn from(error: ext2::Error) -> Self {
        Error::Files(error)
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        Error::Files(error.into())
    }
}

impl From<Fenced> for Error {
    fn from(_: Fenced) -> Self {
        Error::Fenced
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Fenced => f.write_str("another service has begun"),
            Error::Files(error) => error.fmt(f),
        }
    }
}

/// The failure of a request, if it is one.
pub fn outcome_error(outcome: BlockOutcome) -> Option<DeviceError> {
    match outcome {
        BlockOutcome::Done => None,
        BlockOutcome::OutOfRange => Some(DeviceError::OutOfRange),
        BlockOutcome::NoMemory => Some(DeviceError::NoMemory),
        BlockOutcome::Device
        | BlockOutcome::ReadOnly
        | BlockOutcome::Unsupported
        | BlockOutcome::BadSlot
        | BlockOutcome::Memory => Some(DeviceError::Io),
    }
}

/// What it means that a call of the queue failed.
pub fn failure(error: &QueueError) -> DeviceError {
    match error {
        QueueError::Rpc(error) => rpc_error(*error),
        QueueError::Fenced => DeviceError::Lost,
        QueueError::Gone => DeviceError::Unavailable,
        _ => DeviceError::Io,
    }
}

/// What it means that a call failed.
pub fn rpc_error(error: RpcError) -> DeviceError {
    match error {
        RpcError::NoMemory => DeviceError::NoMemory,
        RpcError::DomainCrashed => DeviceError::Lost,
        RpcError::Interrupted => DeviceError::Interrupted,
        _ => DeviceError::Io,
    }
}

/// What it means that no queue was opened.
pub fn block_error(error: BlockError) -> DeviceError {
    match error {
        BlockError::Rpc(error) => rpc_error(error),
        BlockError::Device | BlockError::Unsupported => DeviceError::Io,
        BlockError::Gone => DeviceError::Unavailable,
    }
}

impl From<Error> for FsError {
    fn from(error: Error) -> Self {
        match error {
            Error::Fenced => FsError::Fenced,
            Error::Files(error) => of_library(error),
        }
    }
}

fn of_library(error: ext2::Error) -> FsError {
    match error {
        ext2::Error::NotFound => FsError::NotFound,
        ext2::Error::Exists => FsError::Exists,
        ext2::Error::NotDirectory => FsError::NotDirectory,
        ext2::Error::IsDirectory => FsError::IsDirectory,
        ext2::Error::NotEmpty => FsError::NotEmpty,
        ext2::Error::NoSpace | ext2::Error::NoInodes => FsError::NoSpace,
        ext2::Error::FileTooLarge => FsError::TooLarge,
        ext2::Error::NameTooLong => FsError::NameTooLong,
        ext2::Error::TooManyLinks => FsError::TooManyLinks,
        ext2::Error::ReadOnly => FsError::ReadOnly,
        ext2::Error::Invalid(_) => FsError::Invalid,
        ext2::Error::Device(DeviceError::NoMemory) => FsError::Rpc(RpcError::NoMemory),
        ext2::Error::Device(DeviceError::Interrupted) => FsError::Rpc(RpcError::Interrupted),
        // Its handle is dead for good, so this instance is, too: whoever asked may ask the next.
        ext2::Error::Device(DeviceError::Lost) => FsError::Rpc(RpcError::DomainCrashed),
        ext2::Error::Device(DeviceError::Unavailable) => FsError::Down,
        ext2::Error::Device(_) => FsError::Device,
        ext2::Error::Corrupt(what) | ext2::Error::NotExt2(what) => {
            FsError::Corrupt(Text::new(what))
        }
        ext2::Error::Unsupported(_)
        | ext2::Error::OnlyReadable(_)
        | ext2::Error::Journal(_)
        | ext2::Error::BlockSize(_) => FsError::Unsupported,
    }
}
