//! The keeper: what a domain must not lose with itself lies here, so that its next instance goes on
//! where it was.
//!
//! It knows nothing of what it keeps and calls nobody, so that nothing but its own death can hurt
//! what is in it. When it dies while who uses it lives, that one puts everything in again; if both
//! die at once it is lost.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod options;

use alloc::vec::Vec;
use domain_rt::memory;
use domain_rt::sync::Mutex;
use interfaces::{AnyHandle, Handle, Keep, RVec, RpcError, RpcResult};

type Offer = Handle<dyn Keep>;

/// Makes four rooms.
///
/// # Errors
/// There is no memory.
pub fn start(options: RVec<u8>) -> RpcResult<(Offer, Offer, Offer, Offer)> {
    memory::reserve(memory::SERVICE)?;
    let keys = options::keys(&options);
    let room = || Handle::<dyn Keep>::new(Room::new(keys));
    Ok((room()?, room()?, room()?, room()?))
}

/// Handles by their keys. They are dropped outside of the lock.
struct Room {
    /// So many keys there may be.
    keys: usize,
    kept: Mutex<Vec<Option<AnyHandle>>>,
}

impl Room {
    fn new(keys: usize) -> Self {
        let kept = Mutex::new(Vec::new());
        Room { keys, kept }
    }

    fn index(&self, key: u64) -> Option<usize> {
        usize::try_from(key).ok().filter(|&key| key < self.keys)
    }
}

impl Keep for Room {
    fn put(&self, key: u64, handle: AnyHandle) -> RpcResult<()> {
        let index = self.index(key).ok_or(RpcError::Refused)?;
        let mut kept = self.kept.lock();
        let more = (index + 1).saturating_sub(kept.len());
        kept.try_reserve(more).map_err(|_| RpcError::NoMemory)?;
        for _ in 0..more {
            kept.push(None);
        }
        let before = kept[index].replace(handle);
        drop(kept);
        drop(before);
        Ok(())
    }

    fn get(&self, key: u64) -> RpcResult<Option<AnyHandle>> {
        let kept = self.kept.lock();
        let found = self.index(key).and_then(|index| kept.get(index)?.as_ref());
        found.map(AnyHandle::duplicate).transpose()
    }

    fn next(&self, from: u64) -> RpcResult<Option<u64>> {
        let kept = self.kept.lock();
        let rest = self.index(from).and_then(|from| kept.get(from..));
        let found = rest.and_then(|rest| rest.iter().position(Option::is_some));
        Ok(found.map(|at| from + at as u64))
    }

    fn remove(&self, key: u64) -> RpcResult<()> {
        let mut kept = self.kept.lock();
        let place = self.index(key).and_then(|index| kept.get_mut(index));
        let before = place.and_then(Option::take);
        tighten(&mut kept);
        drop(kept);
        drop(before);
        Ok(())
    }

    fn keys(&self) -> RpcResult<u64> {
        Ok(self.keys as u64)
    }
}

/// Gives room back behind the last key, when much of it is empty and there is memory to move the
/// rest.
fn tighten(kept: &mut Vec<Option<AnyHandle>>) {
    while kept.last().is_some_and(Option::is_none) {
        kept.pop();
    }
    let mut smaller = Vec::new();
    let is_wide = kept.capacity() > 64 && kept.len() < kept.capacity() / 4;
    if is_wide && smaller.try_reserve_exact(kept.len() * 2).is_ok() {
        smaller.append(kept);
        *kept = smaller;
    }
}
