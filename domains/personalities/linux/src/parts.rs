//! What tasks may have in common: memory, descriptors, and where they stand in the tree. Each part
//! is shared or copied as `clone` is asked; a thread shares all of them with its process, and a
//! child of `vfork` the memory alone.

use crate::errno::{ENOMEM, Error};
use crate::files::Open;
use crate::signals::Ears;
use crate::space::Space;
use crate::walk::Stand;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use domain_rt::sync::{Mutex, MutexGuard};
use interfaces::{AddressSpace, Handle};

/// What is open, by descriptor, and whether `exec` closes it.
pub type Descriptors = Vec<Option<(Arc<Open>, bool)>>;

/// A memory.
pub struct Mm {
    pub space: Space,
}

impl Mm {
    /// With this space.
    pub fn new(space: Space) -> Arc<Self> {
        Arc::new(Mm { space })
    }

    /// The same for a child, in the empty space `handle`.
    ///
    /// # Errors
    /// Those of [`Space::fork`].
    pub fn copy(
        &self,
        handle: Handle<dyn AddressSpace>,
        is_ending: impl Fn() -> bool,
    ) -> Result<Arc<Self>, Error> {
        Ok(Mm::new(self.space.fork(handle, is_ending)?))
    }
}

/// Descriptors.
#[derive(Default)]
pub struct Files(Mutex<Descriptors>);

impl Files {
    /// These.
    pub fn new(open: Descriptors) -> Arc<Self> {
        Arc::new(Files(Mutex::new(open)))
    }

    /// The list, locked.
    pub fn lock(&self) -> MutexGuard<'_, Descriptors> {
        self.0.lock()
    }

    /// The same files by descriptors of their own.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn copy(&self) -> Result<Arc<Self>, Error> {
        let open = self.lock();
        let mut copy = Vec::new();
        copy.try_reserve_exact(open.len()).map_err(|_| ENOMEM)?;
        copy.extend_from_slice(&open);
        Ok(Files::new(copy))
    }
}

/// Where a task stands in the tree of files, and what new files do not get.
pub struct Fs {
    pub directory: Mutex<Stand>,
    /// Permissions that new files do not get.
    pub mask: AtomicU32,
}

impl Fs {
    /// In a directory, with the usual mask.
    pub fn new(directory: Stand) -> Arc<Self> {
        Arc::new(Fs {
            directory: Mutex::new(directory),
            mask: AtomicU32::new(0o022),
        })
    }

    /// The same for another one, who goes elsewhere later.
    pub fn copy(&self) -> Arc<Self> {
        Arc::new(Fs {
            directory: Mutex::new(self.directory.lock().clone()),
            mask: AtomicU32::new(self.mask.load(Ordering::Relaxed)),
        })
    }
}

/// A memory that is lent to a child, which holds this until it has one of its own or ends; the
/// parent waits for that.
pub struct Loan(Arc<Lent>);

/// What of it the parent looks at.
pub struct Lent {
    lender: Arc<Ears>,
    is_back: AtomicBool,
}

impl Loan {
    /// Lends; `lender` is rung when it is back.
    pub fn new(lender: &Arc<Ears>) -> (Self, Arc<Lent>) {
        let lent = Arc::new(Lent {
            lender: lender.clone(),
            is_back: AtomicBool::new(false),
        });
        (Loan(lent.clone()), lent)
    }
}

impl Lent {
    /// Whether the child has done without it since.
    pub fn is_back(&self) -> bool {
        self.is_back.load(Ordering::Acquire)
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.is_back.store(true, Ordering::Release);
        self.0.lender.ring();
    }
}
