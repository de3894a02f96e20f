//! The ext2 file system as a domain: the [`FileSystem`](interfaces::FileSystem) interface over `lib/ext2`.
//!
//! - [`device`]: the block device as the library wants it;
//! - [`volume`]: the mounted file system behind its lock, and the thread that writes back what was changed;
//! - [`service`]: the interface;
//! - [`options`]: the options text.
//!
//! One lock guards the whole file system, also while the disk is waited for. When this domain crashes,
//! what is on the disk is a consistent file system as of some moment of the last second (see [`volume`]);
//! with a journal the next instance replays it, and says so in the log.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod device;
mod options;
mod service;
mod volume;

use alloc::boxed::Box;
use alloc::sync::Arc;
use domain_rt::{log, thread, time};
use interfaces::{Block, FileSystem, Handle, RVec, RpcError, RpcResult};

use device::Disk;
use options::Settings;
use service::Service;
use volume::Volume;

/// Mounts the file system on `device`.
///
/// # Errors
/// [`RpcError::Refused`] when there is no ext2 file system on the device or it cannot be mounted; the
/// kernel's log says why.
pub fn start(device: Handle<dyn Block>, options: RVec<u8>) -> RpcResult<Handle<dyn FileSystem>> {
    let settings = Settings::parse(&options);
    for word in settings.unknown {
        log!(
            "option not understood: {}",
            alloc::string::String::from_utf8_lossy(word)
        );
    }
    let mounted = mount(device, settings.read_only, settings.cache_bytes).map_err(|reason| {
        log!("cannot mount: {reason}");
        RpcError::Refused
    })?;
    if let Some(replayed) = mounted.replayed() {
        let (transactions, blocks) = (replayed.transactions, replayed.blocks);
        log!("journal replayed: {transactions} transactions, {blocks} blocks");
    }
    if !mounted.was_clean() {
        log!("the disk was not unmounted cleanly; e2fsck on the host would tell more");
    }
    let volume = Arc::new(Volume::new(mounted));
    let writer = volume.clone();
    thread::spawn("write-back", move || writer.write_back_for_ever())?;
    Handle::<dyn FileSystem>::new(Service::new(volume))
}

/// Mounts; read-only also if the device cannot be written or the image allows no more.
fn mount(
    device: Handle<dyn Block>,
    read_only: bool,
    cache_bytes: usize,
) -> Result<ext2::FileSystem<Disk>, ext2::Error> {
    let disk = Disk::new(device)?;
    let read_only = read_only || disk.read_only();
    match ext2::FileSystem::mount(disk.clone(), mount_options(read_only, cache_bytes)) {
        Err(error @ ext2::Error::OnlyReadable(_)) if !read_only => {
            log!("{error}; mounted read-only");
            ext2::FileSystem::mount(disk, mount_options(true, cache_bytes))
        }
        other => other,
    }
}

fn mount_options(read_only: bool, cache_budget_bytes: usize) -> ext2::Options {
    let clock = || i64::try_from(time::wall_seconds()).unwrap_or(i64::MAX);
    ext2::Options {
        read_only,
        cache_budget_bytes,
        clock: Box::new(clock),
    }
}
