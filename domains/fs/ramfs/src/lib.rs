//! The file system in memory as a domain: `lib/fs/ramfs` behind one lock.
//!
//! Nothing here waits for anything, so the lock is held for a copy at most. When the domain dies,
//! what was in it is gone; the next instance is empty, and no inode number of before, other than
//! the root's, leads to anything in it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod options;
mod service;

use alloc::sync::Arc;
use domain_rt::sync::Mutex;
use domain_rt::{log, memory, time};
use interfaces::{FileSystem, Handle, RVec, RpcResult};
use ramfs::{Limits, RamFs};

use options::Settings;
use service::Service;

/// Bytes of the budget for one inode: so many inodes there may be.
const BYTES_PER_INODE: u64 = 1024;

/// Starts the file system.
///
/// # Errors
/// No memory.
pub fn start(options: RVec<u8>) -> RpcResult<Handle<dyn FileSystem>> {
    memory::reserve(256)?;
    let settings = Settings::parse(&options);
    for word in &settings.unknown {
        log!(
            "option not understood: {}",
            alloc::string::String::from_utf8_lossy(word)
        );
    }
    let limits = Limits {
        bytes: settings.bytes,
        inodes: settings.bytes / BYTES_PER_INODE,
    };
    // No two instances start in the same nanosecond, and none makes an inode in every one.
    let mut files = RamFs::new(limits, time::now(), time::wall_seconds());
    files.spare_memory(memory::is_short);
    Handle::<dyn FileSystem>::new(Service::new(Arc::new(Mutex::new(files))))
}
