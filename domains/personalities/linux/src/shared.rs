//! What is mapped besides pages of a program's own: files, and pages of zeros that processes share.
//!
//! A program that maps pages with `MAP_SHARED | MAP_ANONYMOUS` gets a memory object, which its
//! children have as well. It ends with the last of the
//! mappings.

use crate::disk::Mapped;
use crate::errno::{ENOMEM, Error};
use crate::waiters::Place;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use interfaces::{Handle, MemoryObjects, VmoFill, VmoOwner, VmoRights, VmoView};

/// What is behind a range of addresses that is not all zeros of the program's own.
#[derive(Clone)]
pub enum Source {
    /// A file; whether all who map it so see what is written.
    File(Mapped, bool),
    /// Zeros that are shared.
    Zeros(Arc<Zeros>),
}

/// Pages of zeros that processes share.
pub struct Zeros {
    number: u64,
    owner: Handle<dyn VmoOwner>,
    view: Handle<dyn VmoView>,
}

/// A number that neither memory of a program nor what is shared has had.
pub fn new_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Zeros {
    /// So many pages.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(objects: &Handle<dyn MemoryObjects>, pages: u64) -> Result<Arc<Self>, Error> {
        let owner = objects.create(pages, VmoFill::Zero).map_err(|_| ENOMEM)?;
        let rights = VmoRights {
            read: true,
            write: true,
            map: true,
            execute: true,
        };
        Ok(Arc::new(Zeros {
            number: new_number(),
            view: owner.view(rights).map_err(|_| ENOMEM)?,
            owner,
        }))
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Source::File(own, own_way), Source::File(other, way)) => {
                Arc::ptr_eq(&own.file, &other.file)
                    && own.is_changed == other.is_changed
                    && own_way == way
            }
            (Source::Zeros(own), Source::Zeros(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }
}

impl Source {
    /// A way to the pages.
    ///
    /// # Errors
    /// Linux's.
    pub fn view(&self) -> Result<Handle<dyn VmoView>, Error> {
        match self {
            Source::File(file, _) => file.view(),
            Source::Zeros(zeros) => zeros.view.duplicate().map_err(|_| ENOMEM),
        }
    }

    /// What words in it lie in, if all who map it so see what is written.
    pub fn place(&self) -> Option<Place> {
        match self {
            Source::File(file, true) => Some(Place::File(file.file.inode())),
            Source::File(..) => None,
            Source::Zeros(zeros) => Some(Place::Zeros(zeros.number)),
        }
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Mapped> {
        match self {
            Source::File(file, _) => Some(file),
            Source::Zeros(_) => None,
        }
    }

    /// Pages of memory that it takes of what programs have.
    pub fn pages(&self) -> u64 {
        match self {
            Source::File(..) => 0,
            Source::Zeros(zeros) => zeros.owner.info().map_or(0, |info| info.pages),
        }
    }

    /// Whether all who map it so see what is written.
    pub fn is_shared(&self) -> bool {
        matches!(self, Source::File(_, true) | Source::Zeros(_))
    }
}
