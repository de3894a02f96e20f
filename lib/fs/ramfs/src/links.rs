//! Names: looking up, listing, making, linking, removing, renaming.

use alloc::vec::Vec;

use crate::content::Content;
use crate::fs::{Body, INODE_COST, Inode, Kind, RamFs};
use crate::journal::Need;
use crate::names::{NAME_MAX, Names, Prepared};
use crate::record::{NAME_BYTES, Record};
use crate::store::Store;
use crate::{Error, Result};

/// What a name takes from the budget beside its bytes.
const NAME_COST: u64 = 64;

/// Longest target of a symbolic link.
const TARGET_MAX: usize = 4095;

/// The directory of files without a name has this one in the root directory. Nobody can ask for it.
const UNNAMED: &[u8] = b"/";

/// Positions of the two entries that are in every directory; the others follow.
const DOTS: [&[u8]; 2] = [b".", b".."];

fn cost(name: &[u8]) -> u64 {
    NAME_COST + name.len() as u64
}

/// Checks a name that is to be given or removed.
fn check(name: &[u8]) -> Result<()> {
    if name.len() > NAME_MAX {
        return Err(Error::NameTooLong);
    }
    if name.is_empty() || name.iter().any(|byte| matches!(byte, 0 | b'/')) {
        return Err(Error::BadName);
    }
    Ok(())
}

/// Checks a name that the journal has.
fn check_again(name: &[u8]) -> Result<()> {
    match name {
        UNNAMED => Ok(()),
        name => check(name),
    }
}

fn is_dots(name: &[u8]) -> bool {
    DOTS.contains(&name)
}

/// What an inode takes from the budget beside itself, without content.
fn extra<O>(inode: &Inode<O>) -> u64 {
    match &inode.body {
        Body::Symlink(target) => target.len() as u64,
        _ => 0,
    }
}

impl<S: Store> RamFs<S> {
    /// The inode that `name` in a directory leads to; `.` and `..` are names, too.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`, `NameTooLong`, `BadName`.
    pub fn lookup(&self, directory: u64, name: &[u8]) -> Result<u64> {
        check(name)?;
        let (names, parent) = self.names(directory)?;
        match name {
            b"." => Ok(directory),
            // A directory that was removed has nothing above it.
            b".." if self.get(directory)?.links == 0 => Err(Error::NotFound),
            b".." => Ok(parent),
            name => names.get(name).ok_or(Error::NotFound),
        }
    }

    /// Gives the entries of a directory from position `cookie` (0: the start) on to `take`, until
    /// that returns `false` or there are no more; the position of the first that was not taken.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`.
    pub fn list(
        &self,
        directory: u64,
        cookie: u64,
        mut take: impl FnMut(u64, Kind, &[u8]) -> bool,
    ) -> Result<u64> {
        let (names, parent) = self.names(directory)?;
        let mut next = cookie;
        for (at, (name, inode)) in (0..).zip(DOTS.into_iter().zip([directory, parent])) {
            if next == at {
                if !take(inode, Kind::Directory, name) {
                    return Ok(next);
                }
                next += 1;
            }
        }
        let first = DOTS.len() as u64;
        while let Some((place, entry)) = usize::try_from(next - first)
            .ok()
            .and_then(|place| names.next(place))
        {
            next = first + place as u64;
            if entry.name == UNNAMED {
                next += 1;
                continue;
            }
            let kind = self.get(entry.inode)?.body.kind();
            if !take(entry.inode, kind, &entry.name) {
                return Ok(next);
            }
            next += 1;
        }
        Ok(next)
    }

    /// A new empty file or directory; its inode.
    ///
    /// # Errors
    /// `Exists`, `NoSpace`, `TooManyLinks`, `Invalid` for a symbolic link; as
    /// [`lookup`](Self::lookup).
    pub fn create(
        &mut self,
        directory: u64,
        name: &[u8],
        kind: Kind,
        mode: u16,
        now: u64,
    ) -> Result<u64> {
        check(name)?;
        let body = match kind {
            Kind::Regular => Body::File(Content::new(0, false)),
            Kind::Directory => Body::Directory {
                names: Names::default(),
                parent: directory,
            },
            Kind::Symlink => return Err(Error::Invalid),
        };
        self.make(directory, name, Inode::new(body, mode, now), now)
    }

    /// A new symbolic link to `target`; its inode.
    ///
    /// # Errors
    /// `Invalid` if the target is empty or has a zero byte; `NameTooLong` if it is too long; as
    /// [`create`](Self::create).
    pub fn symlink(&mut self, directory: u64, name: &[u8], target: &[u8], now: u64) -> Result<u64> {
        check(name)?;
        if target.is_empty() || target.contains(&0) {
            return Err(Error::Invalid);
        }
        if target.len() > TARGET_MAX {
            return Err(Error::NameTooLong);
        }
        let mut own = Vec::new();
        own.try_reserve_exact(target.len())
            .map_err(|_| Error::NoSpace)?;
        own.extend_from_slice(target);
        let inode = Inode::new(Body::Symlink(own), 0o777, now);
        self.make(directory, name, inode, now)
    }

    /// The directory for names of files that are in use and have lost their last one; if there is
    /// none it is made if `makes`. It is in no listing, and no name leads to it.
    ///
    /// # Errors
    /// `NoSpace`, `TooManyLinks`, `Broken`.
    pub fn unnamed(&mut self, makes: bool, now: u64) -> Result<Option<u64>> {
        let found = self.find_unnamed()?;
        if found.is_some() || !makes {
            return Ok(found);
        }
        let root = self.root();
        let body = Body::Directory {
            names: Names::default(),
            parent: root,
        };
        let made = self.make(root, UNNAMED, Inode::new(body, 0o700, now), now)?;
        Ok(Some(made))
    }

    fn find_unnamed(&self) -> Result<Option<u64>> {
        Ok(self.names(self.root())?.0.get(UNNAMED))
    }

    /// Gives an inode that is no directory another name.
    ///
    /// # Errors
    /// `IsDirectory`, `Exists`, `TooManyLinks`, `NoSpace`; as [`lookup`](Self::lookup).
    pub fn link(&mut self, directory: u64, name: &[u8], inode: u64, now: u64) -> Result<()> {
        check(name)?;
        self.check_new(directory, name)?;
        let of = self.get(inode)?;
        match of.links {
            _ if of.body.kind() == Kind::Directory => return Err(Error::IsDirectory),
            0 => return Err(Error::NotFound),
            u32::MAX => return Err(Error::TooManyLinks),
            _ => {}
        }
        self.begin(Need::Growth)?;
        self.check_budget(cost(name))?;
        let entry = self.names_mut(directory)?.prepare(name, inode)?;
        let at = entry.place as u32;
        self.journal.append(&Record::Link {
            directory,
            at,
            name,
            inode,
            now,
        })?;
        self.put_link(directory, entry, cost(name), inode, now)
    }

    fn put_link(
        &mut self,
        directory: u64,
        entry: Prepared,
        cost: u64,
        inode: u64,
        now: u64,
    ) -> Result<()> {
        self.enter(directory, entry, cost, now)?;
        let of = self.get_mut(inode)?;
        of.links += 1;
        of.changed = now;
        Ok(())
    }

    /// Removes a name that is not a directory's.
    ///
    /// # Errors
    /// `IsDirectory`; as [`lookup`](Self::lookup); `NoSpace`, `Broken`.
    pub fn unlink(&mut self, directory: u64, name: &[u8], now: u64) -> Result<()> {
        let inode = self.lookup(directory, name)?;
        if self.get(inode)?.body.kind() == Kind::Directory {
            return Err(Error::IsDirectory);
        }
        self.begin(Need::Change)?;
        self.journal.append(&Record::Unlink {
            directory,
            name,
            now,
        })?;
        self.put_unlink(directory, name, now)
    }

    pub(crate) fn put_unlink(&mut self, directory: u64, name: &[u8], now: u64) -> Result<()> {
        let inode = self.lookup(directory, name)?;
        self.leave(directory, name, now)?;
        self.drop_link(inode, now)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotDirectory`, `NotEmpty`, `Invalid` for `.` and `..`; as [`unlink`](Self::unlink).
    pub fn remove_directory(&mut self, directory: u64, name: &[u8], now: u64) -> Result<()> {
        let inode = self.lookup(directory, name)?;
        if is_dots(name) {
            return Err(Error::Invalid);
        }
        if self.names(inode)?.0.len() > 0 {
            return Err(Error::NotEmpty);
        }
        self.begin(Need::Change)?;
        self.journal.append(&Record::RemoveDirectory {
            directory,
            name,
            now,
        })?;
        self.put_remove_directory(directory, name, now)
    }

    pub(crate) fn put_remove_directory(
        &mut self,
        directory: u64,
        name: &[u8],
        now: u64,
    ) -> Result<()> {
        let inode = self.lookup(directory, name)?;
        self.leave(directory, name, now)?;
        self.drop_directory(inode, directory, now)
    }

    /// Moves a name. What has the new name gives way: a file to what is no directory, an empty
    /// directory to a directory. If both names lead to one inode nothing happens.
    ///
    /// # Errors
    /// `IsDirectory`, `NotDirectory`, `NotEmpty` if the target does not give way; `Invalid` if a
    /// directory would come to lie in itself, or for `.` and `..`; `NoSpace`; as
    /// [`lookup`](Self::lookup).
    pub fn rename(
        &mut self,
        from: u64,
        name: &[u8],
        to: u64,
        new_name: &[u8],
        now: u64,
    ) -> Result<()> {
        check(new_name)?;
        let source = self.lookup(from, name)?;
        if is_dots(name) || is_dots(new_name) {
            return Err(Error::Invalid);
        }
        let target = match self.lookup(to, new_name) {
            Ok(target) if target == source => return Ok(()),
            Ok(target) => Some(target),
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        self.check_rename(source, to, target)?;
        self.begin(Need::Growth)?;
        let entry = match target {
            Some(_) => None,
            None => {
                self.check_budget(cost(new_name))?;
                Some(self.names_mut(to)?.prepare(new_name, source)?)
            }
        };
        self.journal.append(&Record::Rename {
            from,
            name,
            to,
            new_name,
            at: entry.as_ref().map(|entry| entry.place as u32),
            now,
        })?;
        self.move_name([from, to], name, new_name, entry, now)
    }

    /// Checks everything that can forbid a renaming but a lack of room.
    fn check_rename(&self, source: u64, to: u64, target: Option<u64>) -> Result<()> {
        let is_directory = |inode| self.get(inode).map(|of| of.body.kind() == Kind::Directory);
        let moves_directory = is_directory(source)?;
        if self.get(to)?.links == 0 {
            return Err(Error::NotFound);
        }
        if moves_directory && self.is_inside(to, source)? {
            return Err(Error::Invalid);
        }
        match target {
            None => Ok(()),
            Some(target) => match (moves_directory, is_directory(target)?) {
                (true, false) => Err(Error::NotDirectory),
                (false, true) => Err(Error::IsDirectory),
                (true, true) if self.names(target)?.0.len() > 0 => Err(Error::NotEmpty),
                _ => Ok(()),
            },
        }
    }

    /// Moves a name. `entry`: the new one, if nothing has it.
    pub(crate) fn move_name(
        &mut self,
        [from, to]: [u64; 2],
        name: &[u8],
        new_name: &[u8],
        entry: Option<Prepared>,
        now: u64,
    ) -> Result<()> {
        let source = self.lookup(from, name)?;
        let target = match entry {
            Some(entry) => {
                self.enter(to, entry, cost(new_name), now)?;
                None
            }
            None => {
                let target = self.lookup(to, new_name)?;
                self.names_mut(to)?.redirect(new_name, source);
                Some(target)
            }
        };
        self.leave(from, name, now)?;
        self.get_mut(to)?.touch(now);
        self.get_mut(source)?.changed = now;
        if let Body::Directory { parent, .. } = &mut self.get_mut(source)?.body {
            *parent = to;
            self.get_mut(from)?.links -= 1;
            self.get_mut(to)?.links += 1;
            if let Some(target) = target {
                return self.drop_directory(target, to, now);
            }
        }
        match target {
            Some(target) => self.drop_link(target, now),
            None => Ok(()),
        }
    }

    /// Whether `directory` is `ancestor` or lies in it.
    fn is_inside(&self, directory: u64, ancestor: u64) -> Result<bool> {
        let mut at = directory;
        loop {
            if at == ancestor {
                return Ok(true);
            }
            let (_, parent) = self.names(at)?;
            if parent == at {
                return Ok(false);
            }
            at = parent;
        }
    }

    /// Puts a new inode under a name in a directory.
    fn make(
        &mut self,
        directory: u64,
        name: &[u8],
        inode: Inode<S::Object>,
        now: u64,
    ) -> Result<u64> {
        self.check_new(directory, name)?;
        let is_directory = inode.body.kind() == Kind::Directory;
        if is_directory && self.get(directory)?.links == u32::MAX {
            return Err(Error::TooManyLinks);
        }
        self.begin(Need::Growth)?;
        self.check_budget(INODE_COST + extra(&inode) + cost(name))?;
        let place = self.prepare_inode()?;
        let number = self.number(place);
        let entry = self.names_mut(directory)?.prepare(name, number)?;
        self.journal.append(&Record::Make {
            directory,
            at: entry.place as u32,
            name,
            image: Self::image(number, &inode),
        })?;
        self.put_made(directory, entry, cost(name), place, inode, now)
    }

    fn put_made(
        &mut self,
        directory: u64,
        entry: Prepared,
        cost: u64,
        place: usize,
        inode: Inode<S::Object>,
        now: u64,
    ) -> Result<u64> {
        let is_directory = inode.body.kind() == Kind::Directory;
        let extra = extra(&inode);
        let number = self.add(place, inode, extra);
        self.enter(directory, entry, cost, now)?;
        let of = self.get_mut(number)?;
        of.links = if is_directory { 2 } else { 1 };
        if let Body::Directory { parent, .. } = &mut of.body {
            *parent = directory;
            self.get_mut(directory)?.links += 1;
        }
        Ok(number)
    }

    /// Makes what a record of the journal says that was made.
    pub(crate) fn make_again(
        &mut self,
        directory: u64,
        at: u32,
        name: &[u8],
        number: u64,
        inode: Inode<S::Object>,
    ) -> Result<()> {
        self.check_new(directory, name)?;
        let place = self.free_place(number)?;
        let entry = self.prepare_again(directory, at, name, number)?;
        let now = inode.changed;
        self.put_made(directory, entry, cost(name), place, inode, now)?;
        Ok(())
    }

    /// Gives the name that a record of the journal says was given.
    pub(crate) fn link_again(
        &mut self,
        directory: u64,
        at: u32,
        name: &[u8],
        inode: u64,
        now: u64,
    ) -> Result<()> {
        self.check_new(directory, name)?;
        self.get(inode)?;
        let entry = self.prepare_again(directory, at, name, inode)?;
        self.put_link(directory, entry, cost(name), inode, now)
    }

    /// Puts in a name of a snapshot: no time changes.
    pub(crate) fn name_again(
        &mut self,
        directory: u64,
        at: u32,
        name: &[u8],
        inode: u64,
    ) -> Result<()> {
        check_again(name)?;
        let kind = self.get(inode)?.body.kind();
        let entry = self.prepare_again(directory, at, name, inode)?;
        self.names_mut(directory)?.put(entry);
        self.note_name(cost(name));
        let of = self.get_mut(inode)?;
        of.links = of.links.saturating_add(1);
        if let Body::Directory { parent, .. } = &mut of.body {
            *parent = directory;
            of.links = of.links.max(2);
            self.get_mut(directory)?.links += 1;
        }
        debug_assert!(kind != Kind::Directory || self.get(inode)?.links >= 2);
        Ok(())
    }

    /// What a name needs for a place in a directory that has to be free.
    pub(crate) fn prepare_again(
        &mut self,
        directory: u64,
        at: u32,
        name: &[u8],
        inode: u64,
    ) -> Result<Prepared> {
        let names = self.names_mut(directory)?;
        let at = at as usize;
        let is_there = names.get(name).is_some();
        let is_taken = names.next(at).is_some_and(|(place, _)| place == at);
        if is_there || is_taken {
            return Err(Error::Exists);
        }
        names.prepare_at(name, inode, at)
    }

    /// Checks that `name` can be a new name in a directory.
    fn check_new(&self, directory: u64, name: &[u8]) -> Result<()> {
        let found = match name {
            UNNAMED => self
                .find_unnamed()
                .and_then(|found| found.ok_or(Error::NotFound)),
            name => self.lookup(directory, name),
        };
        match found {
            Ok(_) => Err(Error::Exists),
            Err(Error::NotFound) if self.get(directory)?.links > 0 => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn enter(&mut self, directory: u64, entry: Prepared, cost: u64, now: u64) -> Result<()> {
        self.names_mut(directory)?.put(entry);
        self.note_name(cost);
        self.get_mut(directory)?.touch(now);
        Ok(())
    }

    fn note_name(&mut self, cost: u64) {
        self.used += cost;
        self.noted += cost - NAME_COST + NAME_BYTES;
    }

    fn leave(&mut self, directory: u64, name: &[u8], now: u64) -> Result<()> {
        self.names_mut(directory)?.remove(name);
        self.refund(cost(name));
        self.noted -= name.len() as u64 + NAME_BYTES;
        self.get_mut(directory)?.touch(now);
        Ok(())
    }

    fn drop_link(&mut self, inode: u64, now: u64) -> Result<()> {
        let of = self.get_mut(inode)?;
        of.links -= 1;
        of.changed = now;
        self.reap(inode);
        Ok(())
    }

    /// Takes away a directory whose name in `parent` is gone.
    fn drop_directory(&mut self, inode: u64, parent: u64, now: u64) -> Result<()> {
        self.get_mut(parent)?.links -= 1;
        let of = self.get_mut(inode)?;
        of.links = 0;
        of.changed = now;
        self.reap(inode);
        Ok(())
    }

    /// The names in a directory, and its parent.
    fn names(&self, directory: u64) -> Result<(&Names, u64)> {
        match &self.get(directory)?.body {
            Body::Directory { names, parent } => Ok((names, *parent)),
            _ => Err(Error::NotDirectory),
        }
    }

    fn names_mut(&mut self, directory: u64) -> Result<&mut Names> {
        match &mut self.get_mut(directory)?.body {
            Body::Directory { names, .. } => Ok(names),
            _ => Err(Error::NotDirectory),
        }
    }
}
