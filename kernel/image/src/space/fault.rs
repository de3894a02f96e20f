//! What is to be done when a program has met a fault: a page is entered, or copied.

use super::backing::{Broken, Object, Source, prot};
use super::{Space, address, vm_error};
use core::sync::atomic::Ordering;
use framework::mem::untyped::{self, Untyped};
use framework::user::{Mapped, Sharing, UserProt, VmError};
use interfaces::{Protection, RpcError, SpaceError};
use pages::Held;

/// A page that is to be made ready.
struct Fault<'a> {
    space: &'a Space,
    at: usize,
    write: bool,
    prot: UserProt,
    /// What the space's `changes` were when its area was looked up.
    changes: u64,
}

impl Space {
    /// Makes a page ready to be read, or written to.
    pub(super) fn touch(&self, page: u64, write: bool) -> Result<(), SpaceError> {
        loop {
            let changes = self.changes.load(Ordering::SeqCst);
            let backing = self.areas.lock().at(page).ok_or(SpaceError::NotMapped)?;
            if !lets(backing.protection, write) {
                return Err(SpaceError::NotMapped);
            }
            self.pay(1)?;
            let fault = Fault {
                space: self,
                at: address(page),
                write,
                prot: prot(backing.protection),
                changes,
            };
            let done = match &backing.source {
                Source::Zero => fault.zero(),
                Source::Object {
                    mapping,
                    page,
                    is_private: false,
                } => fault.shared(&mapping.object, *page),
                Source::Object { mapping, page, .. } => fault.private(&mapping.object, *page),
            };
            self.settle();
            match done {
                Ok(()) => return Ok(()),
                Err(Broken::Error(error)) => return Err(error),
                Err(Broken::Changed) => {}
            }
        }
    }
}

/// Whether a program may do so.
fn lets(protection: Protection, write: bool) -> bool {
    match write {
        true => protection.write,
        false => prot(protection).read,
    }
}

/// Whether it is a page of the space's own.
fn is_own(there: &Mapped) -> bool {
    !matches!(there.sharing, Sharing::Tracked | Sharing::Borrowed)
}

type Done = Result<(), Broken>;

fn broken(error: VmError) -> Broken {
    vm_error(error).into()
}

impl Fault<'_> {
    /// Whether the area is still what it was. Said with the page's table locked.
    fn is_current(&self) -> bool {
        self.space.changes.load(Ordering::SeqCst) == self.changes
    }

    fn query(&self) -> Option<Mapped> {
        self.space.vm.query(self.at)
    }

    /// A page of zeros.
    fn zero(&self) -> Done {
        match self.query() {
            Some(there) => self.own(&there),
            None => {
                let mut made = || {
                    let vm = &self.space.vm;
                    match vm.map_zero_if(self.at, self.prot, || self.is_current()) {
                        Err(VmError::NoMemory) => None,
                        made => Some(made),
                    }
                };
                match self.space.purse.claim(&mut made) {
                    // Another thread was faster.
                    Some(Ok(true) | Err(VmError::Occupied)) => Ok(()),
                    Some(Ok(false)) => Err(Broken::Changed),
                    Some(Err(error)) => Err(broken(error)),
                    None => Err(SpaceError::from(RpcError::NoMemory).into()),
                }
            }
        }
    }

    /// A page that is there, and is copied before it is written to.
    fn own(&self, there: &Mapped) -> Done {
        if !self.write || there.writable {
            return Ok(());
        }
        match self.space.vm.resolve_write(self.at) {
            // Somebody changes what may be done with it, and the program shall try again.
            Ok(()) | Err(VmError::Denied) => Ok(()),
            Err(VmError::NotMapped) => Err(Broken::Changed),
            Err(error) => Err(broken(error)),
        }
    }

    /// A page of an object, which sees what is written.
    fn shared(&self, object: &Object, page: u64) -> Done {
        object.map_page(page, self.write, |held, may| {
            let entered = self.enter(held, Sharing::Tracked, may)?;
            if !entered || !self.write {
                return Ok(entered);
            }
            let may = || self.is_current() && may();
            let vm = &self.space.vm;
            let is_writable = vm.make_writable_if(self.at, physical(held), may);
            self.unless_changed(is_writable)
        })
    }

    /// A page of an object, which is copied before it is written to.
    fn private(&self, object: &Object, page: u64) -> Done {
        if let Some(own) = self.query().filter(is_own) {
            return self.own(&own);
        }
        object.map_page(page, false, |held, may| {
            self.enter(held, Sharing::Borrowed, may)
        })?;
        match self.query() {
            Some(there) => self.own(&there),
            None => Err(Broken::Changed),
        }
    }

    /// Enters the frame that is held, as long as it `may`; whether it is there.
    fn enter(
        &self,
        held: &Held<Untyped>,
        sharing: Sharing,
        may: &dyn Fn() -> bool,
    ) -> Result<bool, Broken> {
        let vm = &self.space.vm;
        if let Some(there) = self.query() {
            let same = there.frame == physical(held) && there.sharing == sharing;
            if same && there.prot == self.prot {
                return Ok(true);
            }
            if sharing == Sharing::Borrowed && is_own(&there) {
                // Another thread was faster, and has written: the page is a copy already.
                return Ok(true);
            }
            // A frame that the page has lost, and that somebody is about to unmap. By now there may
            // be a page of the space's own, which is to go only if it is of an area that was here.
            let is_old = || sharing == Sharing::Tracked && self.is_current();
            vm.unmap_lost(self.at, is_old).map_err(broken)?;
        }
        let frame = untyped::share(held).ok_or(SpaceError::Rpc(RpcError::NoMemory))?;
        let may = || self.is_current() && may();
        match vm.map_if(self.at, frame, self.prot, sharing, may) {
            Ok(entered) => self.unless_changed(entered),
            Err(VmError::Occupied) => self.unless_changed(false),
            Err(error) => Err(broken(error)),
        }
    }

    /// `done`, unless it was not since the areas have changed.
    fn unless_changed(&self, done: bool) -> Result<bool, Broken> {
        match done || self.is_current() {
            true => Ok(done),
            false => Err(Broken::Changed),
        }
    }
}

/// The physical address of a frame.
fn physical(held: &Held<Untyped>) -> u64 {
    held.frame() * super::PAGE
}
