//! What is mounted where. Pure bookkeeping under one lock; no file system is called here.
//!
//! A mount is in use while something keeps an inode of it ([`MountTable::enter`]) or another file
//! system is mounted over a name in it. Only what is not in use can be taken out, and that is
//! decided under the same lock.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::sync::Mutex;
use interfaces::{FsError, Text};

use crate::volumes::{Node, Volume};
use mounts::Mount;

/// Most file systems that are mounted at a time.
const LIMIT: usize = 64;

/// Where a file system is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Point {
    /// It is the root.
    Root,
    /// Over a name in the root directory, whatever file system that is on.
    Top(Vec<u8>),
    /// Over a name in another directory.
    In {
        /// The directory.
        directory: Node,
        /// The name.
        name: Vec<u8>,
    },
}

/// What kind of thing is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// What is there from the start, and stays.
    System,
    /// A disk that was mounted by a program.
    Disk,
}

/// One mounted file system, to be listed.
#[derive(Clone)]
pub struct Listed {
    /// What it is mounted from.
    pub device: Text<32>,
    /// The path over which it was mounted.
    pub path: Vec<u8>,
    /// The file system.
    pub mount: Arc<Mount>,
}

struct Entry {
    volume: Volume,
    origin: Origin,
    point: Point,
    device: Text<32>,
    path: Vec<u8>,
    mount: Arc<Mount>,
    users: Arc<AtomicU32>,
}

struct State {
    entries: Vec<Entry>,
    last: u32,
}

/// The table.
pub struct MountTable(Mutex<State>);

/// Keeps a file system mounted.
pub struct InUse(Arc<AtomicU32>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl MountTable {
    /// An empty table.
    pub fn new() -> Self {
        MountTable(Mutex::new(State {
            entries: Vec::new(),
            last: Volume::EMPTY.0,
        }))
    }

    /// Adds a mount of `device` at `point`, whose path is `path`; its number.
    ///
    /// # Errors
    /// `Busy` if something is mounted there already; `NoSpace` if there are too many.
    pub fn add(
        &self,
        device: &str,
        origin: Origin,
        point: Point,
        path: &[u8],
        mount: Mount,
    ) -> Result<Volume, FsError> {
        let mut state = self.0.lock();
        if state.entries.len() >= LIMIT {
            return Err(FsError::NoSpace);
        }
        if state.entries.iter().any(|entry| entry.point == point) {
            return Err(FsError::Busy);
        }
        state.last += 1;
        let volume = Volume(state.last);
        let entry = Entry {
            volume,
            origin,
            point,
            device: Text::new(device),
            path: path.to_vec(),
            mount: Arc::new(mount),
            users: Arc::new(AtomicU32::new(0)),
        };
        state.entries.push(entry);
        Ok(volume)
    }

    /// Takes out what is mounted as `volume`; its device and the mount.
    ///
    /// # Errors
    /// `Busy` if it is in use, or the root; `Unsupported` if it is there from the start; `Invalid`
    /// if nothing is mounted as that.
    pub fn take(&self, volume: Volume) -> Result<Taken, FsError> {
        let mut state = self.0.lock();
        let entries = &state.entries;
        let at = entries
            .iter()
            .position(|entry| entry.volume == volume)
            .ok_or(FsError::Invalid)?;
        let holds_other = |entry: &Entry| match &entry.point {
            Point::In { directory, .. } => directory.volume == volume,
            _ => false,
        };
        let entry = &entries[at];
        let in_use = entry.users.load(Ordering::SeqCst) > 0 || entry.point == Point::Root;
        if in_use || entries.iter().any(holds_other) {
            return Err(FsError::Busy);
        }
        if entry.origin == Origin::System {
            return Err(FsError::Unsupported);
        }
        Ok(Taken(state.entries.remove(at)))
    }

    /// Puts back what was taken out and could not be ended.
    pub fn put_back(&self, taken: Taken) {
        self.0.lock().entries.push(taken.0);
    }

    /// Keeps a volume mounted for as long as the result lives.
    ///
    /// # Errors
    /// `Device` if it is not mounted any more.
    pub fn enter(&self, volume: Volume) -> Result<InUse, FsError> {
        let state = self.0.lock();
        let entry = find(&state, volume).ok_or(FsError::Device)?;
        entry.users.fetch_add(1, Ordering::SeqCst);
        Ok(InUse(entry.users.clone()))
    }

    /// The file system of a volume.
    pub fn get(&self, volume: Volume) -> Option<Arc<Mount>> {
        let state = self.0.lock();
        find(&state, volume).map(|entry| entry.mount.clone())
    }

    /// Where a volume is mounted.
    pub fn point(&self, volume: Volume) -> Option<Point> {
        let state = self.0.lock();
        find(&state, volume).map(|entry| entry.point.clone())
    }

    /// The root file system.
    pub fn root(&self) -> Option<(Volume, Arc<Mount>)> {
        let state = self.0.lock();
        let entry = state
            .entries
            .iter()
            .find(|entry| entry.point == Point::Root)?;
        Some((entry.volume, entry.mount.clone()))
    }

    /// All file systems.
    pub fn all(&self) -> Vec<Arc<Mount>> {
        let state = self.0.lock();
        state
            .entries
            .iter()
            .map(|entry| entry.mount.clone())
            .collect()
    }

    /// All mounts, in the order in which they were mounted.
    pub fn list(&self) -> Vec<Listed> {
        let state = self.0.lock();
        let entries = state.entries.iter();
        entries
            .map(|entry| Listed {
                device: entry.device,
                path: entry.path.clone(),
                mount: entry.mount.clone(),
            })
            .collect()
    }

    /// The volume that was mounted over this path.
    pub fn over_path(&self, path: &[u8]) -> Option<Volume> {
        self.find_one(|entry| entry.path == path)
    }

    /// The volume that is on this disk.
    pub fn on_disk(&self, disk: Text<32>) -> Option<Volume> {
        self.find_one(|entry| entry.device == disk)
    }

    fn find_one(&self, is_it: impl Fn(&Entry) -> bool) -> Option<Volume> {
        let state = self.0.lock();
        let found = state.entries.iter().find(|entry| is_it(entry));
        found.map(|entry| entry.volume)
    }

    /// What is mounted over `name` in `directory`; `is_top` is asked whether that is the root
    /// directory, if it matters.
    ///
    /// # Errors
    /// Those of `is_top`.
    pub fn over(
        &self,
        directory: &Node,
        name: &[u8],
        is_top: impl FnOnce() -> Result<bool, FsError>,
    ) -> Result<Option<Volume>, FsError> {
        let mut top = None;
        {
            let state = self.0.lock();
            for entry in &state.entries {
                match &entry.point {
                    Point::Top(over) if over == name => top = Some(entry.volume),
                    Point::In {
                        directory: there,
                        name: over,
                    } if there == directory && over == name => return Ok(Some(entry.volume)),
                    _ => {}
                }
            }
        }
        match top {
            Some(volume) if is_top()? => Ok(Some(volume)),
            _ => Ok(None),
        }
    }

    /// Whether something may be mounted over a name of `path`, which begins in `directory`, so that
    /// its file system cannot walk it alone. `is_top` as in [`over`](Self::over).
    ///
    /// # Errors
    /// Those of `is_top`.
    pub fn bars(
        &self,
        directory: &Node,
        path: &[u8],
        is_top: impl FnOnce() -> Result<bool, FsError>,
    ) -> Result<bool, FsError> {
        let names = || {
            path.split(|&byte| byte == b'/')
                .filter(|name| !name.is_empty())
        };
        let first = names().next();
        let mut top = false;
        {
            let state = self.0.lock();
            for entry in &state.entries {
                match &entry.point {
                    Point::Top(over) => top |= first == Some(over),
                    Point::In {
                        directory: there,
                        name: over,
                    } if there.volume == directory.volume && names().any(|name| name == over) => {
                        return Ok(true);
                    }
                    _ => {}
                }
            }
        }
        Ok(top && is_top()?)
    }

    /// The names in `directory` over which something is mounted. `is_top`: it is the root
    /// directory.
    pub fn names_in(&self, directory: &Node, is_top: bool) -> Vec<Vec<u8>> {
        let state = self.0.lock();
        let entries = state.entries.iter();
        let names = entries.filter_map(|entry| match &entry.point {
            Point::Top(name) if is_top => Some(name.clone()),
            Point::In {
                directory: there,
                name,
            } if there == directory => Some(name.clone()),
            _ => None,
        });
        names.collect()
    }
}

fn find(state: &State, volume: Volume) -> Option<&Entry> {
    state.entries.iter().find(|entry| entry.volume == volume)
}

/// A mount that was taken out of the table.
pub struct Taken(Entry);

impl Taken {
    /// What it was mounted from.
    pub fn device(&self) -> Text<32> {
        self.0.device
    }

    /// The file system.
    pub fn mount(&self) -> &Mount {
        &self.0.mount
    }
}
