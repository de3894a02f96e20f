//! Errors, in the words that a Unix user expects.

use crate::{STATUS_BROKEN_PIPE, STATUS_KILLED};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use interfaces::{Errno, FsError, LoadError, RpcError, StartError};

/// What the user is told when a file system was restarted under a running program.
const RESTARTED: &str = "file system was restarted, try again";

/// Why something could not be done.
#[derive(Debug)]
pub enum Error {
    /// A system call failed.
    System(Errno),
    /// A service of the system did not do what it was asked.
    Service(RpcError),
    /// What the program itself says.
    Text(String),
}

impl Error {
    /// An error with this text.
    pub fn text(text: &str) -> Self {
        Error::Text(String::from(text))
    }

    /// Whether it says that there is no such file.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::System(Errno::Fs(FsError::NotFound)))
    }

    /// Whether it says that the name is taken already.
    pub fn is_exists(&self) -> bool {
        matches!(self, Error::System(Errno::Fs(FsError::Exists)))
    }
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        Error::System(errno)
    }
}

impl From<RpcError> for Error {
    fn from(error: RpcError) -> Self {
        Error::Service(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::System(errno) => system_error(errno, f),
            Error::Service(error) => f.write_str(rpc_error_text(error)),
            Error::Text(text) => f.write_str(text),
        }
    }
}

fn system_error(errno: &Errno, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(match errno {
        Errno::Rpc(error) => rpc_error_text(error),
        Errno::Fs(error) => return fs_error(error, f),
        Errno::BadDescriptor => "Bad file descriptor",
        Errno::TooManyDescriptors => "Too many open files",
        Errno::NoSuchProcess => "No such process",
        Errno::TooManyProcesses => "Too many processes",
        Errno::BrokenPipe => "Broken pipe",
        Errno::Invalid => "Invalid argument",
        Errno::Loop => "Too many levels of symbolic links",
        Errno::BadImage(error) => return f.write_str(&load_error_text(error)),
        Errno::CannotMount(why) => return write!(f, "{why}"),
        Errno::NoStart(error) => return f.write_str(&start_error_text(error)),
        Errno::NotGranted => "this program is not granted that service",
        Errno::Killed => "Killed",
    })
}

fn fs_error(error: &FsError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(match error {
        FsError::Rpc(RpcError::DomainCrashed) | FsError::Restarted | FsError::Fenced => RESTARTED,
        FsError::Rpc(error) => rpc_error_text(error),
        FsError::NotFound => "No such file or directory",
        FsError::Exists => "File exists",
        FsError::NotDirectory => "Not a directory",
        FsError::IsDirectory => "Is a directory",
        FsError::NotEmpty => "Directory not empty",
        FsError::NoSpace => "No space left on device",
        FsError::TooLarge => "File too large",
        FsError::BadName => "Invalid file name",
        FsError::NameTooLong => "File name too long",
        FsError::ReadOnly => "Read-only file system",
        FsError::TooManyLinks => "Too many links",
        FsError::Invalid => "Invalid argument",
        FsError::Unsupported => "Operation not supported by this file system",
        FsError::CrossDevice => "Invalid cross-device link",
        FsError::Stale => "Stale file handle",
        FsError::Busy => "Device or resource busy",
        FsError::Device => "Input/output error",
        FsError::Down => "the file system or its disk is down (see dmesg and domains)",
        FsError::Corrupt(place) => {
            return write!(
                f,
                "file system is damaged ({place}): run e2fsck on the disk"
            );
        }
    })
}

/// What a failed call to another domain means to a user.
pub fn rpc_error_text(error: &RpcError) -> &'static str {
    match error {
        RpcError::DomainCrashed => "the domain that was asked has crashed, try again",
        RpcError::NoMemory => "Cannot allocate memory",
        RpcError::StackLow => "stack exhausted",
        RpcError::Interrupted => "Interrupted",
        RpcError::Refused => "Operation not permitted",
        RpcError::Busy => "Resource temporarily unavailable",
    }
}

/// Why a file is not accepted as a program.
pub fn load_error_text(error: &LoadError) -> String {
    String::from(match error {
        LoadError::Rpc(error) => rpc_error_text(error),
        LoadError::NotAnImage => "not a program image",
        LoadError::WrongLength => "program image is truncated or has the wrong length",
        LoadError::Malformed(what) => return alloc::format!("malformed program image: {what}"),
        LoadError::WrongFingerprint => {
            "program image was built for another version of the system (other interfaces or compiler)"
        }
        LoadError::BadSignature => {
            "program image is not signed for this system, or was altered (bad signature)"
        }
    })
}

/// Why an accepted program did not start.
pub fn start_error_text(error: &StartError) -> String {
    match error {
        StartError::Rpc(error) => String::from(rpc_error_text(error)),
        StartError::MissingGrant(name) => {
            alloc::format!("cannot start: it wants a grant `{name}`, so it is not a program")
        }
        StartError::WrongGrant(name) => {
            alloc::format!("cannot start: its grant `{name}` is of another interface")
        }
        StartError::ExtraGrant => String::from("cannot start: it is not a program"),
        StartError::Failed(error) => alloc::format!("cannot start: {}", rpc_error_text(error)),
        StartError::Crashed => String::from("crashed while it started (see dmesg)"),
    }
}

/// Ends a program.
#[derive(Debug)]
pub enum Stop {
    /// Without a message, with this status.
    Exit(i32),
    /// With a message about `subject` (a path, mostly), and this status.
    Fault {
        /// What the error is about, if that is not clear from its text.
        subject: Option<Vec<u8>>,
        /// What went wrong.
        error: Error,
        /// The exit status.
        status: i32,
    },
}

impl Stop {
    /// Ends the program with status 1 and a message about `subject`.
    pub fn about(subject: &[u8], error: impl Into<Error>) -> Self {
        match Stop::from(error.into()) {
            Stop::Fault { error, status, .. } => Stop::Fault {
                subject: Some(subject.to_vec()),
                error,
                status,
            },
            quiet => quiet,
        }
    }

    /// Ends the program with status 2 and a message about its arguments.
    pub fn usage(text: &str) -> Self {
        Stop::Fault {
            subject: None,
            error: Error::text(text),
            status: 2,
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        match error {
            Error::System(Errno::BrokenPipe) => Stop::Exit(STATUS_BROKEN_PIPE),
            Error::System(Errno::Killed) => Stop::Exit(STATUS_KILLED),
            error => Stop::Fault {
                subject: None,
                error,
                status: 1,
            },
        }
    }
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Error::from(errno).into()
    }
}

impl From<RpcError> for Stop {
    fn from(error: RpcError) -> Self {
        Error::from(error).into()
    }
}
