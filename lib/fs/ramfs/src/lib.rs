//! A file system in memory, with a budget: pure, safe, and of no operating system in particular.
//!
//! [`RamFs`] offers operations by inode number, as a virtual file system wants them. It is a
//! single-threaded core (`&mut self`); who shares it wraps it in a lock. The time is an argument,
//! so a test replays exactly.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `content` | the bytes of a file: pieces, with holes between them |
//! | `names` | the names of a directory: found by hash, listed in the order of making |
//! | `fs`, `links` | the operations of [`RamFs`] |
//!
//! # Memory
//! Everything that a file takes is charged to the budget: content by the memory that it takes,
//! rounded up, inodes and names by fixed sums. What does not fit is refused with
//! [`Error::NoSpace`], and so is what the machine has no memory for: all memory that grows with use
//! is asked for in a way that can fail. Content goes back when it is cut off or removed.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod content;
mod fs;
mod links;
mod names;

pub use content::MAX_SIZE;
pub use fs::{Attributes, Kind, Limits, RamFs, Room};
pub use names::NAME_MAX;

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
}

/// The result of every operation of this library.
pub(crate) type Result<T> = core::result::Result<T, Error>;
