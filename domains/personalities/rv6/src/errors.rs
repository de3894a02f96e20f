//! From the errors of other interfaces to those of a system call.

use interfaces::{Errno, FsError, LoadError, RpcError, StartError};
use vfs::walk::WalkError;

/// A file system's error.
pub fn fs(error: FsError) -> Errno {
    match error {
        FsError::Rpc(error) => Errno::Rpc(error),
        error => Errno::Fs(error),
    }
}

/// A path that leads nowhere.
pub fn walk(error: WalkError<FsError>) -> Errno {
    match error {
        WalkError::NotFound => Errno::Fs(FsError::NotFound),
        WalkError::NotDirectory => Errno::Fs(FsError::NotDirectory),
        WalkError::TooLong => Errno::Fs(FsError::NameTooLong),
        WalkError::Loop => Errno::Loop,
        WalkError::Tree(error) => fs(error),
    }
}

/// An image that was refused.
pub fn load(error: LoadError) -> Errno {
    match error {
        LoadError::Rpc(error) => Errno::Rpc(error),
        error => Errno::BadImage(error),
    }
}

/// A program that did not start.
pub fn start(error: StartError) -> Errno {
    match error {
        StartError::Rpc(error) => Errno::Rpc(error),
        error => Errno::NoStart(error),
    }
}

/// A wait that was ended because the process is being ended.
pub const INTERRUPTED: Errno = Errno::Rpc(RpcError::Interrupted);
