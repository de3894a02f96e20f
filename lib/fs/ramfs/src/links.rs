//! Names: looking up, listing, making, linking, removing, renaming.

use alloc::vec::Vec;

use crate::content::Content;
use crate::fs::{Body, Inode, Kind, RamFs};
use crate::names::{NAME_MAX, Names};
use crate::{Error, Result};

/// What a name takes from the budget beside its bytes.
const NAME_COST: u64 = 64;

/// Longest target of a symbolic link.
const TARGET_MAX: usize = 4095;

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

fn is_dots(name: &[u8]) -> bool {
    DOTS.contains(&name)
}

impl RamFs {
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
        let body = match kind {
            Kind::Regular => Body::File(Content::default()),
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

    /// Gives an inode that is no directory another name.
    ///
    /// # Errors
    /// `IsDirectory`, `Exists`, `TooManyLinks`, `NoSpace`; as [`lookup`](Self::lookup).
    pub fn link(&mut self, directory: u64, name: &[u8], inode: u64, now: u64) -> Result<()> {
        self.check_new(directory, name)?;
        let of = self.get(inode)?;
        match of.links {
            _ if of.body.kind() == Kind::Directory => return Err(Error::IsDirectory),
            0 => return Err(Error::NotFound),
            u32::MAX => return Err(Error::TooManyLinks),
            _ => {}
        }
        self.enter(directory, name, inode, now)?;
        let of = self.get_mut(inode)?;
        of.links += 1;
        of.changed = now;
        Ok(())
    }

    /// Removes a name that is not a directory's.
    ///
    /// # Errors
    /// `IsDirectory`; as [`lookup`](Self::lookup).
    pub fn unlink(&mut self, directory: u64, name: &[u8], now: u64) -> Result<()> {
        let inode = self.lookup(directory, name)?;
        if self.get(inode)?.body.kind() == Kind::Directory {
            return Err(Error::IsDirectory);
        }
        self.leave(directory, name, now)?;
        self.drop_link(inode, now)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotDirectory`, `NotEmpty`, `Invalid` for `.` and `..`; as [`lookup`](Self::lookup).
    pub fn remove_directory(&mut self, directory: u64, name: &[u8], now: u64) -> Result<()> {
        let inode = self.lookup(directory, name)?;
        if is_dots(name) {
            return Err(Error::Invalid);
        }
        if self.names(inode)?.0.len() > 0 {
            return Err(Error::NotEmpty);
        }
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
        self.move_name(from, name, to, new_name, source, target, now)
    }

    /// Checks everything that can forbid a renaming but a lack of room.
    fn check_rename(&self, source: u64, to: u64, target: Option<u64>) -> Result<()> {
        let is_directory = |inode| Ok(self.get(inode)?.body.kind() == Kind::Directory);
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

    #[allow(clippy::too_many_arguments, reason = "one renaming, found and checked")]
    fn move_name(
        &mut self,
        from: u64,
        name: &[u8],
        to: u64,
        new_name: &[u8],
        source: u64,
        target: Option<u64>,
        now: u64,
    ) -> Result<()> {
        match target {
            Some(_) => self.names_mut(to)?.redirect(new_name, source),
            None => self.enter(to, new_name, source, now)?,
        }
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
    fn make(&mut self, directory: u64, name: &[u8], inode: Inode, now: u64) -> Result<u64> {
        self.check_new(directory, name)?;
        let is_directory = inode.body.kind() == Kind::Directory;
        if is_directory && self.get(directory)?.links == u32::MAX {
            return Err(Error::TooManyLinks);
        }
        let extra = match &inode.body {
            Body::Symlink(target) => target.len() as u64,
            _ => 0,
        };
        let number = self.add(inode, extra)?;
        if let Err(error) = self.enter(directory, name, number, now) {
            // It has no name yet, so this frees it.
            self.reap(number);
            return Err(error);
        }
        self.get_mut(number)?.links = if is_directory { 2 } else { 1 };
        if is_directory {
            self.get_mut(directory)?.links += 1;
        }
        Ok(number)
    }

    /// Checks that `name` can be a new name in a directory.
    fn check_new(&self, directory: u64, name: &[u8]) -> Result<()> {
        match self.lookup(directory, name) {
            Ok(_) => Err(Error::Exists),
            Err(Error::NotFound) if self.get(directory)?.links > 0 => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn enter(&mut self, directory: u64, name: &[u8], inode: u64, now: u64) -> Result<()> {
        self.charge(cost(name))?;
        if let Err(error) = self.names_mut(directory)?.insert(name, inode) {
            self.refund(cost(name));
            return Err(error);
        }
        self.get_mut(directory)?.touch(now);
        Ok(())
    }

    fn leave(&mut self, directory: u64, name: &[u8], now: u64) -> Result<()> {
        self.names_mut(directory)?.remove(name);
        self.refund(cost(name));
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
