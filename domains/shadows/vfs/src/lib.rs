//! The vfs shadow: a file system that goes on when the one behind it crashes.
//!
//! What is remembered and how it is done again is in `lib/fs/redo`; here are the calls, the locks,
//! and the names that nobody sees.
//!
//! - [`instance`]: one instance of the file system, as the library wants it;
//! - [`shadow`]: the shared state and its two locks;
//! - [`service`]: the interface;
//! - [`pages`]: pages of files in memory objects, which are read, mapped and written to;
//! - [`kept`]: what the next instance of this domain finds;
//! - [`lanes`]: what it tells clients who had no answer;
//! - [`walking`]: names and attributes, which are remembered;
//! - [`listing`]: directory listings, in clients' numbers;
//! - [`start_up`]: what is done with the first instance;
//! - [`telling`]: changes, in words.
//!
//! # Locks
//! The engine's lock is held by whoever changes something, over the calls that this takes: changes
//! happen one after the other, in the order of the log. The lock of the front is held for moments,
//! never during a call. Who reads takes only that one, so reads run side by side, and beside a
//! change, and who goes by names that are remembered asks nobody. A reader that finds the instance
//! dead takes the engine's lock, and so waits until the next instance is up to date; of all who
//! find it dead the first one sees to that. Engine, then front; never the other way round. A file's
//! pages have a lock of their own, held while they are changed or stored: before the engine's, and
//! taken by nobody who has that. Who loads pages holds none while the device works.
//!
//! # Updates
//! While the file system is replaced by another image, calls wait at the gate
//! (`domains/libs/gate`), which is in front of both locks. When nobody is inside any more
//! everything is brought to the disk. To the engine the rest is a crash after which nothing is to
//! be done again. The release of an open file does not wait: who ends a program must not wait for a
//! file system.
//!
//! # File systems that forget nothing
//! The manifest says of a file system that its next instance has all that was acknowledged
//! (`lasting`). Then only the change that is under way is to be done again, and data of writes is
//! not copied: whoever lends it waits.
//!
//! # What it costs
//! One more call for each operation. A write copies its data once, into pages or into the log. A
//! change of names that the client has not looked up just before takes a look-up.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod instance;
mod kept;
mod lanes;
mod listing;
mod options;
mod pages;
mod service;
mod setting;
mod shadow;
mod start_up;
mod telling;
mod walking;

use alloc::sync::Arc;
use domain_rt::{log, memory as heap, thread, time};
use interfaces::{
    FileSystem, FsError, Handle, MemoryObjects, MemoryWatch, RVec, Respawn, RpcError, RpcResult,
};

use kept::Kept;
use options::Settings;
use pages::{BRINGERS, Pages};
use redo::Target as _;
use respawn::Patience;
use service::Service;
use shadow::Shadow;

/// How long nobody may notice that the keeper is dead, in nanoseconds.
const LOOK: u64 = 100_000_000;

/// Makes the shadow. The file system is asked for here, so that a disk without one is noticed at
/// the start.
///
/// # Errors
/// [`RpcError::Refused`] if there is no working file system; the log says why.
pub fn start(
    fs: Handle<dyn Respawn>,
    objects: Option<Handle<dyn MemoryObjects>>,
    memory: Option<Handle<dyn MemoryWatch>>,
    keep: Option<Handle<dyn Respawn>>,
    options: RVec<u8>,
) -> RpcResult<Handle<dyn FileSystem>> {
    heap::reserve(256)?;
    let settings = options::parse(&options);
    match begin(fs, objects, keep, memory, &settings) {
        Ok(service) => Handle::<dyn FileSystem>::new(service),
        Err(FsError::Rpc(error)) => Err(error),
        Err(error) => {
            log!("there is no working file system: {error:?}");
            Err(RpcError::Refused)
        }
    }
}

fn begin(
    fs: Handle<dyn Respawn>,
    objects: Option<Handle<dyn MemoryObjects>>,
    keep: Option<Handle<dyn Respawn>>,
    memory: Option<Handle<dyn MemoryWatch>>,
    settings: &Settings,
) -> Result<Service, FsError> {
    let first = instance::fetch(&fs, 0, &Patience::default())?;
    let (kept, left) = match objects.as_ref().zip(keep) {
        Some((objects, keep)) => {
            let (kept, left) = Kept::open(objects, keep, first.id())?;
            (Some(Arc::new(kept)), left)
        }
        None => (None, None),
    };
    // What was acknowledged is with the file system. From here on the log begins.
    match left {
        Some(_) => first.fs().commit()?,
        None => start_up::remove_hidden(&first)?,
    }
    let shadow = Arc::new(Shadow::new(fs, first.clone(), kept.clone(), settings));
    let passage = Arc::default();
    let has_objects = objects.is_some();
    let pages = Arc::new(Pages::new(objects, kept.clone(), settings));
    if let Some((left, kept)) = left.zip(kept.as_ref()) {
        shadow.adopt_numbers(left.ids);
        shadow.resume(kept, left.is_same, left.changes)?;
        shadow.adopt_hidden(&start_up::numbered(&first)?);
        pages.adopt(&shadow, left.files, left.is_lost)?;
        shadow.settle_plans(kept, &pages)?;
    }
    let of_gate = shadow.clone();
    shadow.attach(gate::gate(&passage, move || of_gate.settle())?)?;
    if has_objects {
        let (keeper, of_keeper, pass) = (pages.clone(), shadow.clone(), passage.clone());
        thread::spawn("store", move || keeper.keep_for_ever(&of_keeper, &pass))?;
        let (fulfiller, of_fulfiller, pass) = (pages.clone(), shadow.clone(), passage.clone());
        thread::spawn("ahead", move || {
            fulfiller.fulfil_for_ever(&of_fulfiller, &pass)
        })?;
        for _ in 0..BRINGERS {
            let (bringer, of_bringer) = (pages.clone(), shadow.clone());
            thread::spawn("bring", move || bringer.bring_for_ever(&of_bringer))?;
        }
    }
    if let Some(watch) = memory.filter(|_| has_objects) {
        let giver = pages.clone();
        thread::spawn("give-back", move || giver.give_back_for_ever(&watch))?;
    }
    if let Some(kept) = kept {
        kept.serve();
        thread::spawn("keeper", move || watch(&kept))?;
    }
    Ok(Service::new(shadow, passage, pages))
}

/// Has everything kept again when the keeper has died.
fn watch(kept: &Kept) {
    let mut was_kept = true;
    loop {
        time::sleep(LOOK);
        let is_kept = kept.see_to_it();
        match (was_kept, is_kept) {
            (true, false) => log!("nobody keeps pages of files: they go with this instance"),
            (false, true) => log!("pages of files are kept again"),
            _ => {}
        }
        was_kept = is_kept;
    }
}
