//! What file systems and their users have in common, without locks, handles or devices.
//!
//! - [`walk`]: from a path to a file, through symbolic links, over any [`walk::Tree`];
//! - [`again`]: looking again where others replace what has a name;
//! - [`way`]: how far a path has been followed on one file system;
//! - [`entries`]: directory entries packed into a buffer, as `FileSystem::read_directory` gives
//!   them;
//! - [`claims`]: which pages of a file are being loaded, and which somebody changes alone;
//! - [`fence`]: services that follow each other in front of one file system;
//! - [`files`]: a tree of files that never change, made from a list of paths.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod again;
pub mod claims;
pub mod entries;
pub mod fence;
pub mod files;
pub mod walk;
pub mod way;
