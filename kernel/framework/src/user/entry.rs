//! What stands in an entry of a program's page table.
//!
//! An entry has no address, or owns one count of the untyped frame whose address is in it. Rights
//! that the hardware looks at, and marks of the kernel's:
//!
//! | mark | meaning |
//! | --- | --- |
//! | `COPY` | others may have the frame who must not see writes: it is copied before the first |
//! | `TRACKED` | of a memory object, which can take it away; writable only once it knows |
//! | `WRITE` | the program may write, once the two above are dealt with |
//!
//! What has neither of the first two is writable if it has the third. What has both is a memory
//! object's until the program writes, and then a copy of the space's own. An entry of a page that
//! may not even be read is not present for the hardware, and keeps frame and marks.

use crate::arch::page::{self, MARKS};
use crate::arch::types::Rights;
use crate::mem::frames::{FrameKind, Frames, MetaError};
use core::mem::ManuallyDrop;

const COPY: u64 = MARKS[0];
const TRACKED: u64 = MARKS[1];
const WRITE: u64 = MARKS[2];

/// What a program may do with a page. What may be written or executed may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserProt {
    /// It may read.
    pub read: bool,
    /// It may write.
    pub write: bool,
    /// It may execute.
    pub execute: bool,
}

impl UserProt {
    /// Nothing: each access is a fault, and the page stays.
    pub const NONE: Self = Self {
        read: false,
        write: false,
        execute: false,
    };
    /// Reading.
    pub const READ: Self = Self {
        read: true,
        ..Self::NONE
    };
    /// Reading and writing.
    pub const READ_WRITE: Self = Self {
        write: true,
        ..Self::READ
    };
    /// Reading and executing.
    pub const READ_EXECUTE: Self = Self {
        execute: true,
        ..Self::READ
    };
}

/// Whose the frame of a page is, and who else may have it. What is not a memory object's is the
/// space's own, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Its own. Nobody else has it, or others who shall see what is written.
    Plain,
    /// Its own, and others have it who must not see what is written: the page is copied before.
    CopyOnWrite,
    /// A memory object's, which wants to know before the page is written
    /// ([`VmSpace::make_writable_if`](super::VmSpace::make_writable_if)).
    Tracked,
    /// A memory object's, which must not see what is written: the page is copied before, and is the
    /// space's own from then on.
    Borrowed,
}

/// What is mapped at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Physical address of the frame.
    pub frame: u64,
    /// What the program may do.
    pub prot: UserProt,
    /// Whether it can write now, without a fault.
    pub writable: bool,
    /// Who else may have the frame.
    pub sharing: Sharing,
}

/// An entry, as it was read.
#[derive(Clone, Copy)]
pub(super) struct Entry(pub(super) u64);

impl Entry {
    /// Nothing is mapped.
    pub(super) const EMPTY: Self = Self(0);

    /// An entry for a frame.
    pub(super) fn new(frame: u64, prot: UserProt, sharing: Sharing) -> Self {
        let mark = match sharing {
            Sharing::Plain => 0,
            Sharing::CopyOnWrite => COPY,
            Sharing::Tracked => TRACKED,
            Sharing::Borrowed => COPY | TRACKED,
        };
        Self::made(frame, prot, mark, mark == 0)
    }

    /// An entry with these marks, writable now if `ready` and permitted.
    fn made(frame: u64, prot: UserProt, mark: u64, ready: bool) -> Self {
        let marks = mark | if prot.write { WRITE } else { 0 };
        if prot == UserProt::NONE {
            return Self(page::leaf(frame, 1, page::HIDDEN) | marks);
        }
        let rights = Rights {
            write: prot.write && ready,
            execute: prot.execute,
            user: true,
            ..Rights::default()
        };
        Self(page::leaf(frame, 1, page::bits(rights)) | marks)
    }

    /// Whether nothing is mapped.
    pub(super) fn is_empty(self) -> bool {
        self.frame() == 0
    }

    /// Physical address of the frame.
    pub(super) fn frame(self) -> u64 {
        page::address(self.0)
    }

    /// Whether the program can write now.
    pub(super) fn is_writable(self) -> bool {
        self.is_present() && page::rights(self.0).write
    }

    /// Whether the program can read now.
    pub(super) fn is_present(self) -> bool {
        page::is_present(self.0)
    }

    /// What the program may do.
    pub(super) fn prot(self) -> UserProt {
        UserProt {
            read: self.is_present(),
            write: self.0 & WRITE != 0,
            execute: self.is_present() && page::rights(self.0).execute,
        }
    }

    /// Who else may have the frame.
    pub(super) fn sharing(self) -> Sharing {
        match self.0 & (COPY | TRACKED) {
            0 => Sharing::Plain,
            COPY => Sharing::CopyOnWrite,
            TRACKED => Sharing::Tracked,
            _ => Sharing::Borrowed,
        }
    }

    /// Whether the page is copied before the program writes.
    pub(super) fn is_copied(self) -> bool {
        self.0 & COPY != 0
    }

    /// Whether a memory object can take the page away.
    pub(super) fn is_tracked(self) -> bool {
        self.0 & TRACKED != 0
    }

    /// Whether it is a page of the space's own.
    pub(super) fn is_own(self) -> bool {
        !self.is_empty() && !self.is_tracked()
    }

    /// The same page with other rights. A tracked one that could be written still can, if it may.
    pub(super) fn with(self, prot: UserProt) -> Self {
        let mark = self.0 & (COPY | TRACKED);
        let ready = mark == 0 || mark == TRACKED && self.is_writable();
        Self::made(self.frame(), prot, mark, ready)
    }

    /// The same page of the space's own, of which others must not see writes from now on.
    pub(super) fn copied_on_write(self) -> Self {
        Self::made(self.frame(), self.prot(), COPY, false)
    }

    /// A tracked page whose next write is a fault; others are left as they are.
    pub(super) fn write_protected(self) -> Self {
        match self.sharing() {
            Sharing::Tracked => Self(page::read_only(self.0)),
            _ => self,
        }
    }

    /// A tracked page that the program can write now, if it may.
    pub(super) fn known_as_written(self) -> Self {
        Self::made(self.frame(), self.prot(), TRACKED, true)
    }

    /// Whether a translation by this entry permits what `new` does not, or leads elsewhere.
    pub(super) fn grants_more_than(self, new: Self) -> bool {
        let (own, left) = (page::rights(self.0), page::rights(new.0));
        self.is_present()
            && (!new.is_present()
                || self.frame() != new.frame()
                || own.write && !left.write
                || own.execute && !left.execute)
    }

    /// As others see it.
    pub(super) fn view(self) -> Mapped {
        Mapped {
            frame: self.frame(),
            prot: self.prot(),
            writable: self.is_writable(),
            sharing: self.sharing(),
        }
    }

    /// The frame, if there is one, whose count was this entry's.
    ///
    /// # Safety
    /// The entry has been taken out of its table, and the caller has it for himself.
    pub(super) unsafe fn into_frame(self) -> Option<Frames> {
        // SAFETY: an entry that is not empty owns one count of an untyped frame, and is the
        // caller's.
        (!self.is_empty()).then(|| unsafe { Frames::from_raw(self.frame(), 1, FrameKind::Untyped) })
    }

    /// The frame, lent for as long as the entry stays where it is.
    ///
    /// # Safety
    /// The entry is not empty, and stays in its table, whose lock the caller has, until the result
    /// is gone.
    pub(super) unsafe fn lent(self) -> ManuallyDrop<Frames> {
        // SAFETY: the count is the entry's, and is never taken from it by this handle.
        ManuallyDrop::new(unsafe { Frames::from_raw(self.frame(), 1, FrameKind::Untyped) })
    }

    /// Another count of the frame, for another entry.
    ///
    /// # Safety
    /// As of [`lent`](Self::lent).
    pub(super) unsafe fn share(self) -> Result<Frames, MetaError> {
        // SAFETY: the caller vouches for it.
        unsafe { self.lent() }.share()
    }
}
