//! The ext2 file system over any block device: pure, safe, `no_std` + `alloc`, and of no
//! operating system in particular.
//!
//! [`FileSystem`] mounts a [`BlockDevice`] and offers operations by inode number, as a virtual file
//! system wants them. It is a single-threaded core (`&mut self`); who shares it wraps it in a lock,
//! which need not be held while blocks are read ([`FileSystem::attempt_cached`]).
//! Devices and time are arguments, so a test replays exactly.
//!
//! How the parts stand to each other, from the bottom up:
//!
//! | module | what it holds |
//! | --- | --- |
//! | `device`, `error`, `bytes` | the device trait, the errors, little-endian access |
//! | `layout`, `features`, `group`, `inode`, `dirent`, `hash`, `htree`, `bitmap` | the formats on disk; every number is checked here |
//! | `cache`, `store`, `absent`, `writeback`, `pending`, `replaced`, `unsettled` | the buffer cache with its budget and the order of its writes |
//! | `transaction`, `trust` | the one way to change metadata; which groups may be changed |
//! | `dirindex` | names of large directories that have no index on disk, in memory |
//! | `journal` | ext3's journal: commit, checkpoint, replay |
//! | `alloc_block`, `alloc_inode`, `blockmap`, `shrink`, `directory`, `hashed`, `entering`, `listing`, `orphan`, `recount`, `xattr` | work inside a transaction |
//! | `fs`, `file`, `names`, `rename`, `attributes`, `unnamed` | the operations of [`FileSystem`] |
//!
//! # What is read and what is refused
//! Revision 0 and 1; blocks of 1, 2 and 4 KiB; inodes of 128 bytes and more; `filetype`,
//! `sparse_super`, `sparse_super2`, `large_file`; indexed directories. With a journal their indexes
//! are kept, and made where a directory grows; without one, and where an index makes no sense, such
//! a directory is read linearly, and its index flag is cleared by the first change, as the format
//! allows. ext3's journal in inode 8, with 32-bit block numbers and without checksums. Unknown
//! incompatible features refuse the mount by name; unknown read-only-compatible features, and those
//! of a journal that needs no recovery, refuse a writable mount by name.
//!
//! # What a hostile image can do
//! Make operations on itself fail with [`Error::Corrupt`], which says what was wrong. A change that
//! meets corruption makes the file system read-only; a block group that contradicts itself is
//! neither allocated from nor freed into (see [`Distrusted`]). It cannot cause a panic, an endless
//! loop, or memory use that grows with a number the image made up.
//!
//! Format reference: Dave Poirier, "The Second Extended File System", cited as "ext2 spec".
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod absent;
mod alloc_block;
mod alloc_inode;
mod attributes;
mod bitmap;
mod blockmap;
mod bytes;
mod cache;
mod content;
mod device;
mod directory;
mod dirent;
mod dirindex;
mod dirnotes;
mod entering;
mod error;
mod features;
mod file;
mod fs;
mod group;
mod hash;
mod hashed;
mod holes;
mod htree;
mod inode;
mod journal;
mod layout;
mod listing;
mod names;
mod orphan;
mod pending;
mod recount;
mod rename;
mod replaced;
mod shrink;
mod store;
mod time;
mod transaction;
mod trust;
mod unnamed;
mod unsettled;
mod writeback;
mod xattr;

pub use absent::{Attempt, Load};
pub use attributes::Attributes;
pub use content::{Extent, Mapped};
pub use device::{BlockDevice, DeviceError, Group, SECTOR_SIZE};
pub use directory::DirectoryEntry;
pub use error::Error;
pub use features::{FeatureClass, FeatureSet};
pub use file::Place;
pub use fs::{FileSystem, Options, Stat, Statistics};
pub use inode::FileKind;
pub use journal::{Commit, Replayed, has_journal};
pub use time::Time;
pub use trust::{Distrusted, Doubt};
