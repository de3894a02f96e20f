//! Users and groups of a process, and what they let it do (credentials(7), inode(7)).
//!
//! Capabilities are not kept one by one: the effective user 0 has all of them, and the user 0 for
//! files has those that are about files.

use crate::errno::{EACCES, EINVAL, EPERM, Error};
use crate::files::{Attributes, DIRECTORY, KIND, REGULAR};
use alloc::vec::Vec;

/// What is wanted of a file, as `access` has it.
pub const READ: u32 = 4;
/// See [`READ`].
pub const WRITE: u32 = 2;
/// Of a directory: to look names up. See [`READ`].
pub const EXECUTE: u32 = 1;

/// Bits of a mode: who executes the file does so with its group's rights, what is made in the
/// directory gets its group; with its owner's rights; only owners remove names.
pub const SET_GROUP: u32 = 0o2000;
/// See [`SET_GROUP`].
pub const SET_USER: u32 = 0o4000;
/// See [`SET_GROUP`].
pub const STICKY: u32 = 0o1000;

/// The most supplementary groups (`NGROUPS_MAX`).
pub const MOST_GROUPS: usize = 65_536;

/// Real, effective, saved and for files: of users, or of groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// The one that has begun the process.
    pub real: u32,
    /// With whose rights it acts.
    pub effective: u32,
    /// To whom it may go back.
    pub saved: u32,
    /// With whose rights it uses files.
    pub files: u32,
}

/// The users and groups that a process acts for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cred {
    /// Its users.
    pub user: Ids,
    /// Its groups.
    pub group: Ids,
    /// Its other groups, in rising order.
    others: Vec<u32>,
}

/// A number that leaves an id as it is.
const SAME: u32 = u32::MAX;

impl Ids {
    /// `setuid` and `setgid`: all, if `may`; else to the real or the saved one.
    ///
    /// # Errors
    /// `EPERM`: it may not. `EINVAL`: -1 is nobody's number.
    pub fn set(&mut self, id: u32, may: bool) -> Result<(), Error> {
        match id {
            SAME => return Err(EINVAL),
            id if may => (self.real, self.saved) = (id, id),
            id if id == self.real || id == self.saved => {}
            _ => return Err(EPERM),
        }
        (self.effective, self.files) = (id, id);
        Ok(())
    }

    /// `setreuid` and `setregid`; -1 leaves one as it is.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn set_two(&mut self, [real, effective]: [u32; 2], may: bool) -> Result<(), Error> {
        let old = *self;
        let may_real = [SAME, old.real, old.effective].contains(&real);
        let may_effective = [SAME, old.real, old.effective, old.saved].contains(&effective);
        if !(may || may_real && may_effective) {
            return Err(EPERM);
        }
        put(&mut self.real, real);
        put(&mut self.effective, effective);
        if real != SAME || effective != SAME && effective != old.real {
            self.saved = self.effective;
        }
        self.files = self.effective;
        Ok(())
    }

    /// `setresuid` and `setresgid`; -1 leaves one as it is.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn set_three(&mut self, ids: [u32; 3], may: bool) -> Result<(), Error> {
        let allowed = [SAME, self.real, self.effective, self.saved];
        if !may && !ids.iter().all(|id| allowed.contains(id)) {
            return Err(EPERM);
        }
        put(&mut self.real, ids[0]);
        put(&mut self.effective, ids[1]);
        put(&mut self.saved, ids[2]);
        self.files = self.effective;
        Ok(())
    }

    /// `setfsuid` and `setfsgid`, which never fail: who it was for files before.
    pub fn set_files(&mut self, id: u32, may: bool) -> u32 {
        let before = self.files;
        let allowed = [self.real, self.effective, self.saved, self.files];
        if id != SAME && (may || allowed.contains(&id)) {
            self.files = id;
        }
        before
    }

    /// What `exec` leaves: set-id bits of files are not obeyed.
    fn executed(&mut self) {
        (self.saved, self.files) = (self.effective, self.effective);
    }
}

fn put(place: &mut u32, id: u32) {
    if id != SAME {
        *place = id;
    }
}

impl Cred {
    /// Whether it may do what the system's own user may.
    pub fn is_root(&self) -> bool {
        self.user.effective == 0
    }

    /// Whether it may use all files as if they were its own.
    pub fn has_all_files(&self) -> bool {
        self.user.files == 0
    }

    /// Its other groups.
    pub fn others(&self) -> &[u32] {
        &self.others
    }

    /// `setgroups`.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn set_others(&mut self, mut groups: Vec<u32>) -> Result<(), Error> {
        if !self.is_root() {
            return Err(EPERM);
        }
        groups.sort_unstable();
        self.others = groups;
        Ok(())
    }

    /// The same after `exec`.
    pub fn executed(&mut self) {
        self.user.executed();
        self.group.executed();
    }

    /// Whether the program must not trust its environment: `AT_SECURE`.
    pub fn is_other(&self) -> bool {
        self.user.effective != self.user.real || self.group.effective != self.group.real
    }

    /// The same with the real ids for files, as `access` asks.
    ///
    /// # Errors
    /// No memory.
    pub fn as_real(&self) -> Result<Cred, Error> {
        let mut real = self.clone();
        real.user.files = self.user.real;
        real.group.files = self.group.real;
        Ok(real)
    }

    /// Whether it is in a group, for files.
    pub fn is_in(&self, group: u32) -> bool {
        self.group.files == group || self.others.binary_search(&group).is_ok()
    }

    /// Whether a file is its own, or it may do as if.
    pub fn owns(&self, of: &Attributes) -> bool {
        self.has_all_files() || self.user.files == of.user
    }

    /// Whether the mode of a file lets it do all that is `wanted`. One class of bits decides: the
    /// owner's, the group's, or the others'.
    pub fn may(&self, of: &Attributes, wanted: u32) -> bool {
        let shift = match of {
            of if of.user == self.user.files => 6,
            of if self.is_in(of.group) => 3,
            _ => 0,
        };
        if of.mode >> shift & wanted == wanted {
            return true;
        }
        let is_executable = of.mode & KIND == DIRECTORY || of.mode & 0o111 != 0;
        self.has_all_files() && (wanted & EXECUTE == 0 || is_executable)
    }

    /// As [`may`](Self::may).
    ///
    /// # Errors
    /// `EACCES`.
    pub fn check(&self, of: &Attributes, wanted: u32) -> Result<(), Error> {
        self.may(of, wanted).then_some(()).ok_or(EACCES)
    }

    /// Whether a name in a directory may be taken from a file.
    ///
    /// # Errors
    /// `EACCES`: the directory may not be written to. `EPERM`: it is sticky, and neither is its
    /// own.
    pub fn may_remove(&self, directory: &Attributes, of: &Attributes) -> Result<(), Error> {
        self.check(directory, WRITE | EXECUTE)?;
        match directory.mode & STICKY != 0 && !self.owns(of) && !self.owns(directory) {
            true => Err(EPERM),
            false => Ok(()),
        }
    }

    /// Whether a symbolic link at the end of a path may be followed, as Debian has it
    /// (`fs.protected_symlinks`): where everybody may put one, only those that it or the directory
    /// belongs to.
    pub fn may_follow(&self, directory: &Attributes, link: &Attributes) -> bool {
        let is_shared = directory.mode & (STICKY | 0o2) == STICKY | 0o2;
        !is_shared || link.user == self.user.files || link.user == directory.user
    }

    /// Whether a file gets another name, as Debian has it (`fs.protected_hardlinks`): what is not
    /// one's own only if it can be read and written to, and gives nobody rights.
    pub fn may_link(&self, of: &Attributes) -> bool {
        let gives = of.mode & SET_USER != 0 || of.mode & (SET_GROUP | 0o10) == SET_GROUP | 0o10;
        let is_plain = of.mode & KIND == REGULAR && !gives && self.may(of, READ | WRITE);
        is_plain || self.owns(of)
    }

    /// The owner, group and mode of what is made in a directory by a mode without the masked bits.
    pub fn made(&self, directory: &Attributes, kind: u32, mode: u32) -> (u32, u32, u32) {
        if directory.mode & SET_GROUP == 0 {
            return (self.user.files, self.group.files, mode);
        }
        let keeps = self.has_all_files() || self.is_in(directory.group);
        let mode = match kind {
            DIRECTORY => mode | SET_GROUP,
            _ if mode & (SET_GROUP | 0o10) == SET_GROUP | 0o10 && !keeps => mode & !SET_GROUP,
            _ => mode,
        };
        (self.user.files, directory.group, mode)
    }

    /// The mode that `chmod` sets.
    ///
    /// # Errors
    /// `EPERM`: the file is another's.
    pub fn new_mode(&self, of: &Attributes, mode: u32) -> Result<u32, Error> {
        if !self.owns(of) {
            return Err(EPERM);
        }
        match self.has_all_files() || self.is_in(of.group) {
            true => Ok(mode),
            false => Ok(mode & !SET_GROUP),
        }
    }

    /// Whether `chown` may set owner and group; `None` leaves one as it is.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn may_give(&self, of: &Attributes, [user, group]: [Option<u32>; 2]) -> Result<(), Error> {
        if self.has_all_files() {
            return Ok(());
        }
        let is_own = self.user.files == of.user;
        let user = user.is_none_or(|user| is_own && user == of.user);
        let group = group.is_none_or(|group| is_own && (group == of.group || self.is_in(group)));
        (user && group).then_some(()).ok_or(EPERM)
    }

    /// Whether it may set the times of a file: to given ones, or to now.
    ///
    /// # Errors
    /// `EPERM`: given ones only the owner may set. `EACCES`: now only who may write.
    pub fn may_date(&self, of: &Attributes, is_now: bool) -> Result<(), Error> {
        match is_now {
            _ if self.owns(of) => Ok(()),
            true => self.check(of, WRITE),
            false => Err(EPERM),
        }
    }

    /// Whether it may send signals to a process of `other`'s (kill(2)).
    pub fn may_signal(&self, other: &Cred) -> bool {
        let theirs = [other.user.real, other.user.saved];
        self.is_root() || theirs.contains(&self.user.effective) || theirs.contains(&self.user.real)
    }

    /// Whether it may look into a process of `other`'s: what it has open, where it stands
    /// (ptrace(2), "access mode checking", by the ids for files).
    pub fn may_look_into(&self, other: &Cred) -> bool {
        let all = |ids: &Ids, own: u32| [ids.real, ids.effective, ids.saved] == [own; 3];
        let is_same = all(&other.user, self.user.files) && all(&other.group, self.group.files);
        is_same || self.has_all_files()
    }
}

#[cfg(test)]
mod tests;
