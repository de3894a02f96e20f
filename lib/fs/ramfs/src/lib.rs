//! A file system in memory, with a budget: pure, safe, and of no operating system in particular.
//!
//! [`RamFs`] offers operations by inode number, as a virtual file system wants them. It is a
//! single-threaded core (`&mut self`); who shares it wraps it in a lock. The time is an argument,
//! so a test replays exactly.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `store` | where content and journal lie: objects that outlive the file system |
//! | `content` | the bytes of a file: an object, and the size |
//! | `names` | the names of a directory: found by hash, listed in the order of making |
//! | `fs`, `links` | the operations of [`RamFs`] |
//! | `record`, `journal` | what is noted of each change, and how |
//! | `kept`, `again` | what is left for the next instance, and how that finds it |
//!
//! # The next instance
//! Content lies in [objects](Object) of a [`Store`], which has somebody keep them. All else, names
//! and attributes, is in memory of this instance; each change of it is noted in a journal, which is
//! an object too, before the operation returns. [`RamFs::open`] reads it and has the same names,
//! numbers of inodes, attributes, and places in directories. An operation that an instance died in
//! was done or was not; of a write any part of the bytes may be there. What was held counts as held
//! no more, so inodes without a name are gone.
//!
//! # Memory
//! Everything that a file takes is charged to the budget: content by its pages, inodes, names and
//! objects by fixed sums, which stand for the journal as well. What does not fit is refused with
//! [`Error::NoSpace`], and so is what the machine has no memory for: all memory that grows with use
//! is asked for in a way that can fail. Content goes back when it is cut off or removed.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod again;
mod content;
mod fs;
mod journal;
mod kept;
mod links;
mod names;
mod record;
pub mod store;

pub use again::Opened;
pub use content::MAX_SIZE;
pub use fs::{Attributes, Kind, Limits, RamFs, Room};
pub use names::NAME_MAX;
pub use store::{DataOf, Fault, Object, Store};

/// Unit in which sizes are told, in bytes.
pub const BLOCK: u64 = 4096;

/// Why an operation failed. Nothing was changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
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
    /// The budget, or the machine's memory, is used up.
    NoSpace,
    /// The file would be larger than [`MAX_SIZE`].
    TooLarge,
    /// The name has more than [`NAME_MAX`] bytes, or the target of a symbolic link more than 4,095.
    NameTooLong,
    /// The name is empty, or has a slash or a zero byte in it.
    BadName,
    /// The inode has as many links as can be counted.
    TooManyLinks,
    /// An argument makes no sense.
    Invalid,
    /// The store failed.
    Broken,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NoRoom => Error::NoSpace,
            Fault::Forgotten | Fault::Broken => Error::Broken,
        }
    }
}

/// The result of every operation of this library.
pub(crate) type Result<T> = core::result::Result<T, Error>;
