//! What is behind the pages of an area.

use alloc::sync::Arc;
use areas::Refused;
use framework::mem::untyped::Untyped;
use framework::user::UserProt;
use interfaces::{MemoryError, Protection, SpaceError};

/// A memory object whose frames can be mapped.
pub(super) type Object = services::vmo::Object<Untyped>;

/// All that a program may do.
pub(super) const ALL: Protection = Protection {
    read: true,
    write: true,
    execute: true,
};

/// What is behind the pages of an area, and what may be done with them.
#[derive(Clone)]
pub(super) struct Backing {
    pub(super) source: Source,
    pub(super) protection: Protection,
    /// What may be done at most.
    pub(super) most: Protection,
}

/// Where pages come from.
#[derive(Clone)]
pub(super) enum Source {
    /// They are zeros, and the space's own.
    Zero,
    /// From an object, from its page `page` on. If private, they are the space's own once they are
    /// written to.
    Object {
        mapping: Arc<Mapping>,
        page: u64,
        is_private: bool,
    },
}

/// What an object knows of being mapped. It ends with the last area that was made of it.
pub(super) struct Mapping {
    pub(super) object: Arc<Object>,
    pub(super) number: u64,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.object.remove_mapping(self.number);
    }
}

/// Why what may be done was not changed.
pub(super) enum NotChanged {
    /// The list of areas has no room.
    Room,
    /// More than the view lets.
    Denied,
}

impl From<Refused> for NotChanged {
    fn from(_: Refused) -> Self {
        NotChanged::Room
    }
}

impl Backing {
    /// Has `to` be what may be done.
    pub(super) fn protect(&mut self, to: Protection) -> Result<(), NotChanged> {
        let most = self.most;
        if to.read && !most.read || to.write && !most.write || to.execute && !most.execute {
            return Err(NotChanged::Denied);
        }
        self.protection = to;
        Ok(())
    }

    /// Whether there may be pages of the space's own.
    pub(super) fn has_own_pages(&self) -> bool {
        match self.source {
            Source::Zero => true,
            Source::Object { is_private, .. } => is_private,
        }
    }
}

impl areas::Backing for Backing {
    fn skip(&mut self, pages: u64) {
        if let Source::Object { page, .. } = &mut self.source {
            *page += pages;
        }
    }

    fn goes_on(&self, pages: u64, next: &Self) -> bool {
        let follows = match (&self.source, &next.source) {
            (Source::Zero, Source::Zero) => true,
            (
                Source::Object { mapping, page, .. },
                Source::Object {
                    mapping: other,
                    page: then,
                    ..
                },
            ) => Arc::ptr_eq(mapping, other) && page + pages == *then,
            _ => false,
        };
        let rights = |of: Protection| (of.read, of.write, of.execute);
        let same = rights(self.protection) == rights(next.protection);
        follows && same && rights(self.most) == rights(next.most)
    }
}

/// What the page tables are to let.
pub(super) fn prot(of: Protection) -> UserProt {
    UserProt {
        read: of.read || of.write || of.execute,
        write: of.write,
        execute: of.execute,
    }
}

/// Why a page was not entered.
pub(super) enum Broken {
    /// For good.
    Error(SpaceError),
    /// The areas have changed meanwhile.
    Changed,
}

impl From<SpaceError> for Broken {
    fn from(error: SpaceError) -> Self {
        Broken::Error(error)
    }
}

impl From<MemoryError> for Broken {
    fn from(error: MemoryError) -> Self {
        Broken::Error(object_error(error))
    }
}

/// What a memory object answers, as the space's answer.
pub(super) fn object_error(error: MemoryError) -> SpaceError {
    match error {
        MemoryError::Rpc(error) => error.into(),
        error => SpaceError::Object(error),
    }
}
