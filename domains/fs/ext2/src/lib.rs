//! The ext2 file system as a domain: the [`FsVolume`](interfaces::FsVolume) and
//! [`FileSystem`](interfaces::FileSystem) interfaces over `lib/fs/ext2`.
//!
//! - [`device`]: the block device as the library wants it;
//! - [`errors`]: what its errors mean;
//! - [`line`]: the block queue under it, and who waits for its answers;
//! - [`staging`]: the memory that its requests name;
//! - [`volume`]: the mounted file system behind its lock, and the thread that writes back what was
//!   changed;
//! - [`content`]: content of files, through the page cache, and the thread that reads ahead;
//! - [`page`]: the buffers of that;
//! - [`load`], [`store`]: pages of files, which others keep in memory objects;
//! - [`pressure`]: memory that others need, and the thread that gives some back;
//! - [`fair`]: the lock;
//! - [`service`]: the interface;
//! - [`begin`]: how a service in front of it begins, and the one before ends;
//! - [`options`]: the options text.
//!
//! One lock guards the metadata of the whole file system. It is given in the order in which it is
//! asked for, and not held while metadata or content is read from the disk. Content of files that
//! is cached is read without it.
//! When this domain crashes, what is on the disk is a consistent file system as of some moment of
//! the last second (see [`volume`]); with a journal the next instance replays it, and says so in
//! the log.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod begin;
mod content;
mod device;
mod errors;
mod fair;
mod line;
mod load;
mod options;
mod page;
mod pressure;
mod service;
mod staging;
mod store;
mod volume;

use alloc::boxed::Box;
use alloc::sync::Arc;
use domain_rt::{log, memory, thread, time};
use ext2::DeviceError;
use interfaces::{
    Block, Events, FsVolume, Handle, MemoryObjects, MemoryWatch, RVec, RpcError, RpcResult,
};

use begin::Entrance;
use device::Disk;
use options::Settings;
use pressure::Pressure;
use volume::{Volume, tell_distrusted};

/// Most memory for what is on its way to the device and from there, in cells.
const MOST_CELLS: usize = 64;

/// Mounts the file system on `device`.
///
/// # Errors
/// [`RpcError::Refused`] when there is no ext2 file system on the device or it cannot be mounted;
/// the kernel's log says why. [`RpcError::NoMemory`] when that is all that was wanting,
/// [`RpcError::Interrupted`] when the caller was ended meanwhile.
pub fn start(
    device: Handle<dyn Block>,
    objects: Handle<dyn MemoryObjects>,
    events: Handle<dyn Events>,
    memory: Option<Handle<dyn MemoryWatch>>,
    options: RVec<u8>,
) -> RpcResult<Handle<dyn FsVolume>> {
    memory::reserve(256)?;
    let settings = Settings::parse(&options);
    for word in &settings.unknown {
        log!(
            "option not understood: {}",
            alloc::string::String::from_utf8_lossy(word)
        );
    }
    let cells = settings.buffer_bytes / 4 / staging::CELL;
    let mounted = Disk::new(device, &objects, &events, cells.min(MOST_CELLS))
        .map_err(ext2::Error::from)
        .and_then(|disk| Ok((mount(disk.clone(), &settings)?, disk)));
    let (mut mounted, disk) = mounted.map_err(|reason| {
        log!("cannot mount: {reason}");
        match reason {
            ext2::Error::Device(DeviceError::NoMemory) => RpcError::NoMemory,
            ext2::Error::Device(DeviceError::Interrupted) => RpcError::Interrupted,
            _ => RpcError::Refused,
        }
    })?;
    if let Some(replayed) = mounted.replayed() {
        let (transactions, blocks) = (replayed.transactions, replayed.blocks);
        log!("journal replayed: {transactions} transactions, {blocks} blocks");
    }
    if !mounted.was_clean() {
        log!("the disk was not unmounted cleanly; e2fsck on the host would tell more");
    }
    tell_distrusted(&mut mounted);
    let pressure = Pressure::new(memory);
    let volume = Arc::new(Volume::new(mounted, disk, &settings, pressure));
    let writer = volume.clone();
    thread::spawn("write-back", move || writer.write_back_for_ever())?;
    let reader = volume.clone();
    thread::spawn("read-ahead", move || reader.read_ahead_for_ever())?;
    let giver = volume.clone();
    thread::spawn("give-back", move || giver.give_back_for_ever())?;
    Handle::<dyn FsVolume>::new(Entrance(volume))
}

/// Mounts; read-only also if the device cannot be written or the image allows no more, and where
/// there is no journal, unless the options say otherwise.
fn mount(disk: Disk, settings: &Settings<'_>) -> Result<ext2::FileSystem<Disk>, ext2::Error> {
    let mut read_only = settings.read_only || disk.read_only();
    let buffers = settings.buffer_bytes;
    if !read_only && !ext2::has_journal(&disk)? {
        read_only = !settings.writes_unjournaled;
        match read_only {
            true => log!(
                "no journal: mounted read-only; `tune2fs -j` on the host adds one, the word `rw` has it written to without"
            ),
            false => log!("no journal: after a power cut `e2fsck` on the host may have to ask"),
        }
    }
    match ext2::FileSystem::mount(disk.clone(), mount_options(read_only, buffers)) {
        Err(error @ ext2::Error::OnlyReadable(_)) if !read_only => {
            log!("{error}; mounted read-only");
            ext2::FileSystem::mount(disk, mount_options(true, buffers))
        }
        other => other,
    }
}

fn mount_options(read_only: bool, cache_budget_bytes: usize) -> ext2::Options {
    let clock = || ext2::Time::from_nanoseconds(time::wall_coarse());
    ext2::Options {
        read_only,
        cache_budget_bytes,
        memory_is_short: memory::is_short,
        clock: Box::new(clock),
    }
}
