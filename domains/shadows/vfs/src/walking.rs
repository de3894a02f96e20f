//! Going by names: what is remembered is not asked of the file system again.
//!
//! What is remembered, and until when, is in `redo::seen`.

use interfaces::{FileKind, FsError, Metadata, RVec, Walked};
use redo::seen::Place;
use redo::{Front, Host};
use vfs::walk::PATH_LIMIT;

use crate::instance::Instance;
use crate::pages::Record;
use crate::service::Service;

/// How far a walk has come.
struct Way<'p> {
    path: &'p [u8],
    /// Where the next name begins, slashes before it left out.
    next: usize,
    /// Where the last name that was looked up ends.
    used: usize,
    /// The directory of the next name.
    directory: u64,
}

/// What could not be told from what is remembered.
enum Wanted<'p> {
    /// What this name leads to, in the directory of the way.
    Name(&'p [u8]),
    /// What this inode is, that the last name led to.
    Inode(u64),
}

/// What the last name led to; `None`: nothing.
type Found = Option<Metadata>;

impl<'p> Way<'p> {
    fn new(directory: u64, path: &'p [u8]) -> Self {
        let mut way = Way {
            path,
            next: 0,
            used: 0,
            directory,
        };
        way.skip();
        way
    }

    fn skip(&mut self) {
        while self.path.get(self.next) == Some(&b'/') {
            self.next += 1;
        }
    }

    /// The next name; `None` at the end, and in front of `.` and `..`.
    fn name(&self) -> Option<&'p [u8]> {
        let rest = self.path.get(self.next..)?;
        let name = rest.split(|&byte| byte == b'/').next()?;
        (!matches!(name, b"" | b"." | b"..")).then_some(name)
    }

    /// The name has led to something. Whether to go on from there.
    fn passes(&mut self, name: &[u8], of: &Metadata) -> bool {
        self.used = self.next + name.len();
        self.next = self.used;
        self.skip();
        let goes_on = of.kind == FileKind::Directory && self.name().is_some();
        if goes_on {
            self.directory = of.inode;
        }
        goes_on
    }
}

/// Goes on as far as what is remembered leads.
fn go_by_memory<'p>(
    front: &Front<Instance>,
    way: &mut Way<'p>,
    root: u64,
) -> Result<Found, Wanted<'p>> {
    while let Some(name) = way.name() {
        if way.directory == root && redo::is_orphan_name(name) {
            way.used = way.next + name.len();
            return Ok(None);
        }
        let leads_to = front.names.recall(&Place::new(way.directory, name));
        let Some(inode) = leads_to.ok_or(Wanted::Name(name))? else {
            way.used = way.next + name.len();
            return Ok(None);
        };
        let of = front.inodes.recall(inode).ok_or(Wanted::Inode(inode))?;
        if !way.passes(name, of) {
            return Ok(Some(shown(front, of)));
        }
    }
    Ok(None)
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

/// What is known of a live file.
fn with(mut of: Metadata, record: Record) -> Metadata {
    of.size = record.size;
    of.modified = record.modified;
    of.changed = of.changed.max(record.modified);
    of
}

impl Service {
    /// See `FileSystem::walk`.
    pub fn follow(&self, from: u64, path: &[u8]) -> Result<Walked, FsError> {
        let mut way = Way::new(from, path);
        if path.len() > PATH_LIMIT {
            return Err(FsError::NameTooLong);
        }
        let ends = self.pages.ends();
        let found = match self.go(&mut way)? {
            Some(of) if of.kind == FileKind::Regular => Some(self.complete(of, ends)?),
            found => found,
        };
        Ok(Walked {
            directory: way.directory,
            used: way.used as u64,
            found,
        })
    }

    fn go(&self, way: &mut Way<'_>) -> Result<Found, FsError> {
        let root = self.shadow.root();
        loop {
            let wanted = match self.shadow.front(|front| go_by_memory(front, way, root)) {
                Ok(found) => return Ok(found),
                Err(wanted) => wanted,
            };
            let (name, of) = match wanted {
                Wanted::Name(name) => {
                    match self.look_up(way.directory, &RVec::from_slice(name)?)? {
                        Some(inode) => (name, self.told_of(inode)?),
                        None => {
                            way.used = way.next + name.len();
                            return Ok(None);
                        }
                    }
                }
                Wanted::Inode(inode) => (way.name().unwrap_or_default(), self.told_of(inode)?),
            };
            if !way.passes(name, &of) {
                return Ok(Some(of));
            }
        }
    }

    /// What a name leads to; `None`: nothing that anybody is to see.
    pub fn look_up(&self, directory: u64, name: &RVec<u8>) -> Result<Option<u64>, FsError> {
        if self.is_hidden(directory, name) {
            return Ok(None);
        }
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

    /// What is known of a file, by what the file system has said of it since so many files
    /// [had ended to be live](crate::pages::Pages::ends).
    fn complete(&self, of: Metadata, ends: u64) -> Result<Metadata, FsError> {
        match self.pages.record(of.inode) {
            Some(record) => Ok(with(of, record)),
            None if self.pages.ends() == ends => Ok(of),
            // It may have been live when that was remembered, and the file system knew less.
            None => self.known_of(of.inode),
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
