//! Services that follow each other in front of one file system.
//!
//! A thread of a service that has died may still be inside the file system, and go on there when
//! the next service has begun. So each call says which service it is of, and that is compared with
//! the [`Fence`] where the call takes the lock under which it does something. A service that begins
//! raises the fence while it has all of these locks: nothing of an earlier one begins from then on.
//! What is done without such a lock, as bytes go between a device and pages, is counted by
//! [`Loads`]; a service that begins waits until nothing older is left there.
//!
//! A service has the number of its domain's instance. A later instance has a greater number, so a
//! dead service that begins late is refused, whenever its thread comes.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU32, Ordering};

/// Which service a call is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service(u32);

impl Service {
    /// None: the file system does it by itself, and no fence stops that.
    pub const OWN: Service = Service(0);

    /// The service whose instance has this number; `None` for 0, which is nobody's.
    pub fn new(number: u32) -> Option<Self> {
        (number != 0).then_some(Service(number))
    }
}

/// A later service has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced;

/// Which service may do something now. It is changed with all locks held under which it is looked
/// at, so that it stays as it is as long as one of them is.
#[derive(Debug, Default)]
pub struct Fence(AtomicU32);

impl Fence {
    /// Lets a call pass.
    ///
    /// # Errors
    /// Its service does not serve any more.
    pub fn admit(&self, service: Service) -> Result<(), Fenced> {
        // The lock orders this; without one it only tells a service early that it is over.
        let present = self.0.load(Ordering::Relaxed);
        match service.0 == present || service == Service::OWN {
            true => Ok(()),
            false => Err(Fenced),
        }
    }

    /// Lets only `service` pass from now on.
    ///
    /// # Errors
    /// A later one has begun. Nothing was done.
    pub fn raise(&self, service: Service) -> Result<(), Fenced> {
        if service.0 < self.0.load(Ordering::Relaxed) {
            return Err(Fenced);
        }
        self.0.store(service.0, Ordering::Relaxed);
        Ok(())
    }
}

/// A load that is under way, or a cut that is or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    inode: u32,
    service: Service,
    is_cut: bool,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    loads: u32,
    cuts: u32,
}

/// Loads under way by inode, and cuts that wait for them: a file is not cut before its loads have
/// ended, since what a cut frees may be another file's soon.
#[derive(Clone, Debug)]
pub struct Loads {
    files: BTreeMap<u32, Counts>,
    /// The last service that has begun, and how many parts are under way of it and of earlier ones.
    present: Service,
    of_present: u32,
    older: u32,
}

impl Default for Loads {
    fn default() -> Self {
        Loads {
            files: BTreeMap::new(),
            present: Service::OWN,
            of_present: 0,
            older: 0,
        }
    }
}

impl Loads {
    /// Begins a load for `service`, which was admitted; `None`: a cut of the file is under way or
    /// waits.
    pub fn begin(&mut self, inode: u32, service: Service) -> Option<Part> {
        let counts = self.files.get(&inode);
        if counts.is_some_and(|counts| counts.cuts > 0) {
            return None;
        }
        self.files.entry(inode).or_default().loads += 1;
        Some(self.enter(inode, service, false))
    }

    /// Begins to cut a file for `service`, which was admitted. Nothing may be cut before
    /// [`has_loads`](Self::has_loads) says that all have ended; none begins until then.
    pub fn begin_cut(&mut self, inode: u32, service: Service) -> Part {
        self.files.entry(inode).or_default().cuts += 1;
        self.enter(inode, service, true)
    }

    /// Whether a file is being loaded.
    pub fn has_loads(&self, inode: u32) -> bool {
        let counts = self.files.get(&inode);
        counts.is_some_and(|counts| counts.loads > 0)
    }

    fn enter(&mut self, inode: u32, service: Service, is_cut: bool) -> Part {
        *self.count_of(service) += 1;
        Part {
            inode,
            service,
            is_cut,
        }
    }

    fn count_of(&mut self, service: Service) -> &mut u32 {
        match service == self.present {
            true => &mut self.of_present,
            false => &mut self.older,
        }
    }

    /// A load or a cut has ended.
    pub fn end(&mut self, part: Part) {
        *self.count_of(part.service) -= 1;
        let Some(counts) = self.files.get_mut(&part.inode) else {
            return;
        };
        match part.is_cut {
            true => counts.cuts -= 1,
            false => counts.loads -= 1,
        }
        if counts.loads == 0 && counts.cuts == 0 {
            self.files.remove(&part.inode);
        }
    }

    /// The fence was raised for `service`: all that others have under way is older.
    pub fn raised(&mut self, service: Service) {
        if service != self.present {
            self.older += core::mem::take(&mut self.of_present);
            self.present = service;
        }
    }

    /// Whether something is under way that began before the fence was raised.
    pub fn has_older(&self) -> bool {
        self.older > 0
    }
}

#[cfg(test)]
mod tests;
