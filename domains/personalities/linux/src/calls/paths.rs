//! Paths, and what is told of files.

use super::io::MOST_BYTES;
use super::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW, Result};
use crate::disk;
use crate::errno::{EINVAL, ENAMETOOLONG, ENOENT, ENOTDIR, ERANGE, EROFS, ESTALE};
use crate::files::Open;
use crate::memory;
use crate::task::Task;
use crate::walk::{Led, Node, Stand, View, is_directory};
use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::FileKind;
use linux::cred::{Cred, EXECUTE};
use linux::files::{Attributes, CHARACTER, KIND, REGULAR};
use vfs::again::look_again;

/// What `statx` may be asked for: links and empty paths, no mounting, how new; and what it may not.
const STATX_FLAGS: u64 = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | 0x800 | 0x6000;
const STATX_RESERVED: u64 = 0x8000_0000;
/// `faccessat2` asks by the effective ids.
const AT_EACCESS: u64 = 0x200;
/// The longest path, with the zero behind it.
const LONGEST: usize = 4096;

/// What a call means by a descriptor and a path.
pub(super) struct Path {
    start: Stand,
    pub text: Vec<u8>,
}

impl Path {
    /// The path without slashes at its end, and whether there are some; a root stays.
    fn trimmed(&self) -> (&[u8], bool) {
        match self.text.iter().rposition(|byte| *byte != b'/') {
            Some(last) => (&self.text[..=last], last + 1 < self.text.len()),
            None => (&self.text, false),
        }
    }

    /// The last name of the path, also `.` and `..`.
    pub fn last(&self) -> &[u8] {
        let (path, _) = self.trimmed();
        path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// Whether a slash stands at its end.
    pub fn ends_with_slash(&self) -> bool {
        self.text.ends_with(b"/")
    }
}

/// Makes an attempt until what it has found is not stale.
fn while_stale<T>(attempt: impl FnMut(u32) -> Result<T>) -> Result<T> {
    look_again(|error| *error == ESTALE, ENOENT, attempt)
}

impl Task {
    /// The tree as a process of this user sees it.
    pub fn view<'a>(&'a self, cred: &'a Cred) -> View<'a> {
        View {
            system: &self.process.system,
            cred,
            own: self.process.id,
        }
    }

    /// The directory that a path begins at.
    fn base(&self, descriptor: i32) -> Result<Stand> {
        if descriptor == AT_FDCWD {
            return Ok(self.fs.directory.lock().clone());
        }
        match &*self.opened(descriptor as u32 as u64)? {
            Open::Directory(directory) => Ok(directory.stand.clone()),
            _ => Err(ENOTDIR),
        }
    }

    /// A path in the program's memory.
    pub(super) fn path(&self, descriptor: i32, at: u64) -> Result<Path> {
        self.path_of_text(memory::read_text(&self.program.mm.space, at)?, descriptor)
    }

    /// What is meant by a descriptor and this path.
    pub(super) fn path_of_text(&self, text: Vec<u8>, descriptor: i32) -> Result<Path> {
        match text.len() {
            0 => return Err(ENOENT),
            LONGEST.. => return Err(ENAMETOOLONG),
            _ => {}
        }
        let start = match text.starts_with(b"/") {
            true => Stand::Made(Vec::new()),
            false => self.base(descriptor)?,
        };
        Ok(Path { start, text })
    }

    /// Does something with what a path leads to, again if it is another by then.
    pub(super) fn walked<T>(
        &self,
        path: &Path,
        follows: bool,
        mut act: impl FnMut(&View<'_>, &Led, u32) -> Result<T>,
    ) -> Result<T> {
        let cred = self.process.cred();
        let view = self.view(&cred);
        while_stale(|before| {
            let led = view.walk(&path.start, &path.text, follows)?;
            act(&view, &led, before)
        })
    }

    /// Does something with a name: a link is not followed, slashes behind it or not.
    pub(super) fn named<T>(
        &self,
        path: &Path,
        mut act: impl FnMut(&View<'_>, &Led, u32) -> Result<T>,
    ) -> Result<T> {
        let cred = self.process.cred();
        let view = self.view(&cred);
        while_stale(|before| act(&view, &self.name_of(&view, path)?, before))
    }

    /// Where a path leads that is about a name.
    pub(super) fn name_of(&self, view: &View<'_>, path: &Path) -> Result<Led> {
        let (text, slash) = path.trimmed();
        let mut led = view.walk(&path.start, text, false)?;
        led.slash = slash;
        Ok(led)
    }

    /// What is told of what a call means by a descriptor, a path and flags.
    fn told_of(&self, descriptor: i32, path: u64, flags: u64) -> Result<Attributes> {
        let is_empty = path == 0 || memory::read_text(&self.program.mm.space, path)?.is_empty();
        match flags & AT_EMPTY_PATH != 0 && is_empty {
            true if descriptor == AT_FDCWD => match &self.base(descriptor)? {
                Stand::Disk(folder) => folder.disk.attributes_of(&folder.seat),
                Stand::Made(_) => self.told_of_path(&self.here(), true),
            },
            true => self.opened(descriptor as u32 as u64)?.attributes(),
            false => {
                let path = self.path(descriptor, path)?;
                self.told_of_path(&path, flags & AT_SYMLINK_NOFOLLOW == 0)
            }
        }
    }

    /// Where the process stands, as a path.
    fn here(&self) -> Path {
        Path {
            start: self.fs.directory.lock().clone(),
            text: b".".to_vec(),
        }
    }

    fn told_of_path(&self, path: &Path, follows: bool) -> Result<Attributes> {
        self.walked(path, follows, |view, led, _| {
            view.attributes(led.node.as_ref().ok_or(ENOENT)?)
        })
    }

    /// `newfstatat`; the structure is that of `asm/stat.h`.
    pub(super) fn stat(&mut self, descriptor: i32, path: u64, at: u64, flags: u64) -> Result<u64> {
        if flags & !STATX_FLAGS != 0 {
            return Err(EINVAL);
        }
        let of = self.told_of(descriptor, path, flags)?;
        self.put(at, &of.stat())
    }

    /// `statx`; the structure is that of `linux/stat.h`. All that is known is told, whatever was
    /// asked for.
    pub(super) fn stat_more(
        &mut self,
        [descriptor, path, flags, mask, at]: [u64; 5],
    ) -> Result<u64> {
        if flags & !STATX_FLAGS != 0 || flags & 0x6000 == 0x6000 || mask & STATX_RESERVED != 0 {
            return Err(EINVAL);
        }
        let of = self.told_of(descriptor as i32, path, flags)?;
        self.put(at, &of.statx())
    }

    /// `faccessat2`: whether it is there, and may be read (4), written to (2) and executed (1) by
    /// the real user, or by the effective one.
    pub(super) fn is_there(
        &self,
        descriptor: i32,
        path: u64,
        mode: u64,
        flags: u64,
    ) -> Result<u64> {
        let known = AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
        if mode & !7 != 0 || flags & !known != 0 {
            return Err(EINVAL);
        }
        let own = self.process.cred();
        let cred = match flags & AT_EACCESS {
            0 => Arc::new(own.as_real()?),
            _ => own,
        };
        let is_empty = memory::read_text(&self.program.mm.space, path)?.is_empty();
        if flags & AT_EMPTY_PATH != 0 && is_empty {
            let of = self.told_of(descriptor, path, flags)?;
            return cred.check(&of, mode as u32).map(|()| 0);
        }
        let path = self.path(descriptor, path)?;
        let view = self.view(&cred);
        let follows = flags & AT_SYMLINK_NOFOLLOW == 0;
        while_stale(|_| {
            let led = view.walk(&path.start, &path.text, follows)?;
            let node = led.node.as_ref().ok_or(ENOENT)?;
            let of = view.attributes(node)?;
            let is_fixed = matches!(node, Node::Made(..)) && of.mode & KIND != CHARACTER;
            let is_fixed = is_fixed && of.mode & (KIND | 0o222) != REGULAR | 0o200;
            cred.check(&of, mode as u32)?;
            match is_fixed && mode & 2 != 0 {
                true => Err(EROFS),
                false => Ok(0),
            }
        })
    }

    /// `getcwd`.
    pub(super) fn put_path(&self, at: u64, room: u64) -> Result<u64> {
        let cred = self.process.cred();
        let stand = self.fs.directory.lock().clone();
        let mut path = self.view(&cred).path_of(&stand)?;
        path.push(0);
        if path.len() > LONGEST {
            return Err(ENAMETOOLONG);
        }
        if path.len() as u64 > room {
            return Err(ERANGE);
        }
        memory::write(&self.program.mm.space, at, &path)?;
        Ok(path.len() as u64)
    }

    pub(super) fn change_directory(&mut self, path: u64) -> Result<u64> {
        let path = self.path(AT_FDCWD, path)?;
        let stand = self.walked(&path, true, |view, led, before| {
            let of = view.attributes(led.node.as_ref().ok_or(ENOENT)?)?;
            if !is_directory(&of) {
                return Err(ENOTDIR);
            }
            view.cred.check(&of, EXECUTE)?;
            view.stand(led, before)
        })?;
        self.stand_at(stand);
        Ok(0)
    }

    fn stand_at(&self, stand: Stand) {
        let before = core::mem::replace(&mut *self.fs.directory.lock(), stand);
        // It may be let go of, which is a call: not with the lock.
        drop(before);
    }

    /// `fchdir`.
    pub(super) fn change_directory_to(&mut self, descriptor: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let Open::Directory(directory) = &*open else {
            return Err(ENOTDIR);
        };
        self.process.cred().check(&open.attributes()?, EXECUTE)?;
        self.stand_at(directory.stand.clone());
        Ok(0)
    }

    pub(super) fn entries(&self, descriptor: u64, at: u64, room: u64) -> Result<u64> {
        let open = self.opened(descriptor)?;
        let bytes = open.entries(room.min(MOST_BYTES) as usize)?;
        memory::write(&self.program.mm.space, at, &bytes)?;
        Ok(bytes.len() as u64)
    }

    /// `readlinkat`; with an empty path the link that `O_PATH` has opened.
    pub(super) fn read_link(&self, descriptor: i32, path: u64, to: u64, room: u64) -> Result<u64> {
        if room as i32 <= 0 {
            return Err(EINVAL);
        }
        let is_empty = memory::read_text(&self.program.mm.space, path)?.is_empty();
        let target = match is_empty && descriptor != AT_FDCWD {
            true => self.target_of(descriptor)?,
            false => {
                let path = self.path(descriptor, path)?;
                self.walked(&path, false, |view, led, _| {
                    view.link_text(led.node.as_ref().ok_or(ENOENT)?)
                })?
            }
        };
        let count = (target.len() as u64).min(room);
        memory::write(&self.program.mm.space, to, &target[..count as usize])?;
        Ok(count)
    }

    fn target_of(&self, descriptor: i32) -> Result<Vec<u8>> {
        match &*self.opened(descriptor as u32 as u64)? {
            Open::Spot(spot) if spot.kind == FileKind::Symlink => {
                let node = disk::Node::held(spot.seat.inode(), spot.kind);
                spot.disk.target(&node)?.ok_or(EINVAL)
            }
            _ => Err(ENOENT),
        }
    }
}
