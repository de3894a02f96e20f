//! The names of sockets of this machine: paths, and names that stand in no file system.

use super::local::End;
use crate::disk::Disk;
use crate::errno::{EADDRINUSE, ECONNREFUSED, ENOSPC, Error};
use crate::system::System;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use domain_rt::sync::Mutex;
use linux::socket::Kind;
use linux::socket::address::Name;
use mounts::Seat;

/// How many names there are for sockets that are given none.
const MOST_NUMBERED: u32 = 1 << 20;
/// How many of them are tried.
const ATTEMPTS: u32 = 1000;

/// A name: sockets of each kind have their own.
type Key = (Kind, Vec<u8>);

/// Names that stand in no file system.
#[derive(Default)]
pub struct Names {
    bound: Mutex<BTreeMap<Key, Weak<End>>>,
    next: AtomicU32,
}

/// The sockets of a disk that somebody has bound, by their inodes.
#[derive(Default)]
pub struct NamedSockets(Mutex<BTreeMap<u64, Weak<End>>>);

/// A name that a socket has, which is free again when this is dropped. A path stays, and leads to
/// nobody then; its inode is held meanwhile, so that its number is no other one's.
pub enum Bound {
    Abstract(Arc<System>, Key),
    Path(Arc<Disk>, Arc<Seat>),
}

impl Names {
    /// Binds a socket to a name.
    ///
    /// # Errors
    /// `EADDRINUSE`: another one has it.
    pub fn bind(system: &Arc<System>, name: &[u8], end: &Arc<End>) -> Result<Bound, Error> {
        let key = (end.kind, name.to_vec());
        let mut bound = system.names_of_sockets.bound.lock();
        if bound.contains_key(&key) {
            return Err(EADDRINUSE);
        }
        bound.insert(key.clone(), Arc::downgrade(end));
        Ok(Bound::Abstract(system.clone(), key))
    }

    /// Binds a socket to a name that nobody has.
    ///
    /// # Errors
    /// `ENOSPC`: none is found.
    pub fn bind_any(system: &Arc<System>, end: &Arc<End>) -> Result<(Name, Bound), Error> {
        for _ in 0..ATTEMPTS {
            let next = &system.names_of_sockets.next;
            let number = next.fetch_add(1, Ordering::Relaxed) % MOST_NUMBERED;
            let name = Name::numbered(number)?;
            if let Name::Abstract(bytes) = &name
                && let Ok(bound) = Self::bind(system, bytes, end)
            {
                return Ok((name, bound));
            }
        }
        Err(ENOSPC)
    }

    /// The socket of a kind and a name.
    ///
    /// # Errors
    /// `ECONNREFUSED`: no socket has it.
    pub fn find(&self, kind: Kind, name: &[u8]) -> Result<Arc<End>, Error> {
        let key = (kind, name.to_vec());
        let bound = self.bound.lock();
        bound.get(&key).and_then(Weak::upgrade).ok_or(ECONNREFUSED)
    }
}

impl NamedSockets {
    /// The socket of an inode.
    ///
    /// # Errors
    /// `ECONNREFUSED`: no socket has it.
    pub fn find(&self, inode: u64) -> Result<Arc<End>, Error> {
        let bound = self.0.lock();
        bound
            .get(&inode)
            .and_then(Weak::upgrade)
            .ok_or(ECONNREFUSED)
    }

    /// Binds a socket to an inode that is made for it.
    pub fn bind(disk: &Arc<Disk>, seat: Arc<Seat>, end: &Arc<End>) -> Bound {
        let mut bound = disk.sockets.0.lock();
        bound.insert(seat.inode(), Arc::downgrade(end));
        Bound::Path(disk.clone(), seat)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        match self {
            Bound::Abstract(system, name) => {
                system.names_of_sockets.bound.lock().remove(name);
            }
            Bound::Path(disk, seat) => {
                disk.sockets.0.lock().remove(&seat.inode());
            }
        }
    }
}
