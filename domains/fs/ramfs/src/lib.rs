//! The file system in memory as a domain: `lib/fs/ramfs` behind one lock.
//!
//! Nothing here waits for anything but the keeper's next instance, so the lock is held for a copy
//! at most. Content and journal lie in memory objects of the kernel, whose owners' handles the
//! keeper holds as well. So when the domain dies its next instance has all that was acknowledged,
//! under the same numbers of inodes. Who looks for the keeper's death is a thread, since nobody may
//! change a file for long.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod options;
mod service;
mod store;

use alloc::sync::Arc;
use domain_rt::sync::RwLock;
use domain_rt::{log, memory, thread, time};
use interfaces::{FsVolume, Handle, MemoryObjects, RVec, Respawn, RpcError, RpcResult};
use ramfs::{Error, Limits, Opened, RamFs};

use options::Settings;
use service::Entrance;
use store::Objects;

/// Bytes of the budget for one inode: so many inodes there may be.
const BYTES_PER_INODE: u64 = 1024;
/// How long nobody may notice that the keeper is dead, in nanoseconds.
const LOOK: u64 = 100_000_000;
/// When it is tried again to have one that works.
const LOOK_AGAIN: u64 = 5_000_000_000;

/// The files of this domain.
type Files = RamFs<Objects>;

/// Starts the file system, with the files that the instance before has left.
///
/// # Errors
/// No memory; nobody can be asked for what was left.
pub fn start(
    objects: Handle<dyn MemoryObjects>,
    keep: Handle<dyn Respawn>,
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
    let limits = Limits {
        bytes: settings.bytes,
        inodes: settings.bytes / BYTES_PER_INODE,
    };
    let files = open(Objects::new(objects, keep), limits);
    let mut files = files.map_err(|error| match error {
        Error::NoSpace => RpcError::NoMemory,
        _ => RpcError::Refused,
    })?;
    files.spare_memory(memory::is_short);
    // A number that somebody has of the instance before is in no life here.
    files.count_lives_from(time::now() as u32);
    let files = Arc::new(RwLock::new(files));
    let watched = files.clone();
    thread::spawn("keeper", move || watch(&watched))?;
    Handle::<dyn FsVolume>::new(Entrance::new(files))
}

/// The files that were left, or none.
fn open(store: Objects, limits: Limits) -> Result<Files, Error> {
    let began = time::now();
    let store = match RamFs::open(store, limits)? {
        Opened::Files(files) => {
            let (room, took) = (files.room(), (time::now() - began) / 1000);
            let inodes = room.inodes - room.free_inodes;
            log!("{inodes} inodes are there again after {took} us");
            return Ok(files);
        }
        Opened::Nothing(store) => store,
        Opened::Damaged(store, at) => {
            log!("the journal is damaged at byte {at}: what was there is lost");
            store
        }
    };
    // No two instances start in the same nanosecond, and none makes an inode in every one.
    RamFs::new(store, limits, time::now(), time::wall_coarse())
}

/// Has everything kept again when the keeper has died.
fn watch(files: &RwLock<Files>) {
    let mut was_kept = true;
    loop {
        time::sleep(if was_kept { LOOK } else { LOOK_AGAIN });
        let is_kept = files.write().see_to_it();
        match (was_kept, is_kept) {
            (true, false) => log!("nobody keeps the files: they go with this instance"),
            (false, true) => log!("the files are kept again"),
            _ => {}
        }
        was_kept = is_kept;
    }
}
