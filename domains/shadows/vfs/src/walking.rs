//! Going by names: what is remembered is not asked of the file system again.
//!
//! What is remembered, and until when, is in `redo::seen`.
//!
//! A name is looked up first, and then it is asked what the number is that it led to. In between
//! others may remove that, and the number may be given to another: so an answer counts only if the
//! name did not change meanwhile. After some tries those who change names wait.

use interfaces::{FileKind, FsError, Metadata, RVec, Walked};
use redo::seen::{Place, steadily};
use redo::{Engine, Front, Host};
use vfs::walk::PATH_LIMIT;
use vfs::way::Way;

use crate::instance::Instance;
use crate::pages::{PAGE, Record};
use crate::service::Service;
use crate::shadow::Shadow;

/// How often a path is followed anew where a directory on the way is removed.
const LOOKS: u32 = 4;

/// What a name led to; `None`: nothing.
type Found = Option<Metadata>;

/// Goes on as far as what is remembered leads; an error is the name at which that ends.
fn go_by_memory<'p>(front: &Front<Instance>, way: &mut Way<'p>) -> Result<Found, &'p [u8]> {
    while let Some(name) = way.name() {
        if let Some(life) = way.life()
            && !front
                .inodes
                .recall(way.directory())
                .is_some_and(|of| lives(of, life))
        {
            return Err(name);
        }
        let leads_to = front.names.recall(&Place::new(way.directory(), name));
        let Some(inode) = leads_to.ok_or(name)? else {
            way.ends(name);
            return Ok(None);
        };
        let of = front.inodes.recall(inode).ok_or(name)?;
        if !passes(way, name, of) {
            return Ok(Some(shown(front, of)));
        }
    }
    Ok(None)
}

/// A name has led to something. Whether to go on from there.
fn passes(way: &mut Way<'_>, name: &[u8], of: &Metadata) -> bool {
    let directory = (of.kind == FileKind::Directory).then_some((of.inode, of.generation));
    way.passes(name, directory)
}

/// Whether an inode is in this life, and has a name.
fn lives(of: &Metadata, life: u32) -> bool {
    of.generation == life && of.links > 0
}

/// What the file system says of an inode, as clients are to see it: what has only a hidden name has
/// none.
fn shown(front: &Front<Instance>, of: &Metadata) -> Metadata {
    let mut of = *of;
    if front.is_orphan(of.inode) {
        of.links = 0;
    }
    of
}

/// What a question about an inode says of this life of its number.
fn current(told: Result<Metadata, FsError>, life: u32) -> Result<(), FsError> {
    match told {
        Ok(of) if lives(&of, life) => Ok(()),
        Ok(_) | Err(FsError::NotFound) => Err(FsError::Stale),
        Err(error) => Err(error),
    }
}

/// Fails unless an inode is in this life, and has a name. Nobody changes that meanwhile.
///
/// # Errors
/// `Stale`; the file system's.
pub fn expect_alone(
    shadow: &Shadow,
    engine: &mut Engine<Instance>,
    inode: u64,
    life: Option<u32>,
) -> Result<(), FsError> {
    let Some(life) = life else {
        return Ok(());
    };
    let known = shadow.front(|front| {
        let of = front.inodes.recall(inode)?;
        Some(shown(front, of))
    });
    let told = match known {
        Some(of) => Ok(of),
        None => engine.consult(shadow, |instance| {
            let real = shadow.front(|front| front.ids.real(inode));
            let mut of = instance.fs().metadata(real.ok_or(FsError::NotFound)?)?;
            of.inode = inode;
            Ok(shadow.front(|front| shown(front, &of)))
        }),
    };
    current(told, life)
}

/// What is known of a live file. What is not on the disk yet counts as if it took room of its own:
/// programs that look for holes take a file that has none of it for one that is a single hole.
fn with(mut of: Metadata, (record, dirty): (Record, u64)) -> Metadata {
    let most = record.size.next_multiple_of(PAGE).max(of.allocated);
    of.allocated = of.allocated.saturating_add(dirty).min(most);
    of.size = record.size;
    of.modified = record.modified;
    of.changed = of.changed.max(record.modified);
    of
}

impl Service {
    /// See `FileSystem::walk`.
    pub fn follow(&self, from: u64, life: Option<u32>, path: &[u8]) -> Result<Walked, FsError> {
        if path.len() > PATH_LIMIT {
            return Err(FsError::NameTooLong);
        }
        for before in 0..LOOKS {
            let ends = self.pages.ends();
            let mut way = Way::new(from, life, path);
            let mut found = match self.go(&mut way) {
                // A directory on the way has gone: where does its name lead now?
                Err(FsError::Stale) if !way.is_at_start() => continue,
                found => found?,
            };
            if let Some(of) = &mut found
                && of.kind == FileKind::Regular
                && !self.complete(of, ends)
            {
                if before + 1 < LOOKS {
                    continue;
                }
                *of = self.known_again(of)?;
            }
            return Ok(Walked {
                directory: way.directory(),
                used: way.used() as u64,
                found,
                life: way.found_life(),
            });
        }
        Err(FsError::Stale)
    }

    fn go(&self, way: &mut Way<'_>) -> Result<Found, FsError> {
        loop {
            let name = match self.shadow.front(|front| go_by_memory(front, way)) {
                Ok(found) => return Ok(found),
                Err(name) => name,
            };
            let Some(of) = self.look(way, name)? else {
                way.ends(name);
                return Ok(None);
            };
            if !passes(way, name, &of) {
                return Ok(Some(of));
            }
        }
    }

    /// What a name leads to and what that is, both at one moment.
    fn look(&self, way: &Way<'_>, name: &[u8]) -> Result<Found, FsError> {
        let (directory, life) = (way.directory(), way.life());
        let place = Place::new(directory, name);
        let name = RVec::from_slice(name)?;
        let ask = || {
            self.expect(directory, life)?;
            let found = self.look_up(directory, &name)?;
            found.map(|inode| self.told_of(inode)).transpose()
        };
        steadily(&*self.shadow, &place, ask, || {
            self.look_alone(directory, life, &name, |_, of| of)
        })
    }

    /// As [`look`](Self::look), while nobody changes anything. `see_to` it then.
    pub fn look_alone<R>(
        &self,
        directory: u64,
        life: Option<u32>,
        name: &RVec<u8>,
        see_to: impl FnOnce(&mut Front<Instance>, Metadata) -> R,
    ) -> Result<Option<R>, FsError> {
        let shadow = &*self.shadow;
        let mut engine = shadow.engine();
        expect_alone(shadow, &mut engine, directory, life)?;
        let found = engine.consult(shadow, |instance| {
            let real = shadow.front(|front| front.ids.real(directory));
            let inode = instance.fs().lookup(real.ok_or(FsError::NotFound)?, name)?;
            instance.fs().metadata(inode)
        });
        let seen = match found {
            Ok(mut of) => Some(shadow.front(|front| {
                of.inode = front.ids.client(of.inode);
                let of = shown(front, &of);
                see_to(front, of)
            })),
            Err(FsError::NotFound) => None,
            Err(error) => return Err(error),
        };
        shadow.note_new_numbers();
        Ok(seen)
    }

    /// Fails unless an inode is in this life, and has a name.
    fn expect(&self, inode: u64, life: Option<u32>) -> Result<(), FsError> {
        match life {
            None => Ok(()),
            Some(life) => current(self.told_of(inode), life),
        }
    }

    /// What a name leads to; `None`: nothing.
    pub fn look_up(&self, directory: u64, name: &RVec<u8>) -> Result<Option<u64>, FsError> {
        let place = Place::new(directory, name);
        let (known, ticket) = self.shadow.front(|front| {
            let names = &front.names;
            (names.recall(&place), names.ticket(&place))
        });
        if let Some(leads_to) = known {
            return Ok(leads_to);
        }
        let found = self.shadow.ask_for_numbers(
            directory,
            |instance, real| instance.fs().lookup(real, name),
            |front, found| front.ids.client(found),
        );
        self.shadow.note_new_numbers();
        let leads_to = match found {
            Ok(inode) => Some(inode),
            Err(FsError::NotFound) => None,
            Err(error) => return Err(error),
        };
        self.shadow
            .front(|front| front.names.remember(ticket, &place, leads_to));
        Ok(leads_to)
    }

    /// Completes what the file system has said of a file, which it has said since so many files
    /// [had ended to be live](crate::pages::Pages::ends). `false`: the file may have been live when
    /// that was remembered, and the file system knew less.
    fn complete(&self, of: &mut Metadata, ends: u64) -> bool {
        if let Some(record) = self.pages.record(of.inode) {
            *of = with(*of, record);
            return true;
        }
        self.pages.ends() == ends
    }

    /// What is known of a file that a name has led to.
    ///
    /// # Errors
    /// `Stale`: it lives no more; the file system's.
    fn known_again(&self, of: &Metadata) -> Result<Metadata, FsError> {
        match self.known_of(of.inode) {
            Ok(now) if now.generation == of.generation => Ok(now),
            Ok(_) | Err(FsError::NotFound) => Err(FsError::Stale),
            Err(error) => Err(error),
        }
    }

    /// What is known of an inode.
    pub fn known_of(&self, inode: u64) -> Result<Metadata, FsError> {
        // First: what is live no more meanwhile the file system knows as well.
        let record = self.pages.record(inode);
        let of = self.told_of(inode)?;
        Ok(match record {
            Some(record) => with(of, record),
            None => of,
        })
    }

    /// What the file system says of an inode, or has said.
    pub fn told_of(&self, inode: u64) -> Result<Metadata, FsError> {
        let (known, ticket) = self.shadow.front(|front| {
            let inodes = &front.inodes;
            let known = inodes.recall(inode).map(|of| shown(front, of));
            (known, inodes.ticket(inode))
        });
        if let Some(of) = known {
            return Ok(of);
        }
        let mut of = self
            .shadow
            .ask(inode, |instance, real| instance.fs().metadata(real))?;
        of.inode = inode;
        Ok(self.shadow.front(|front| {
            front.inodes.remember(ticket, inode, of);
            shown(front, &of)
        }))
    }
}
