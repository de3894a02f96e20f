//! `open`: what there is, what is made, and what a process has open already.

use super::{O_CLOEXEC, O_NONBLOCK, Result};
use crate::disk::{self, Access, DiskFile, Making, OnDisk};
use crate::errno::{
    EACCES, EEXIST, EINVAL, EISDIR, ELOOP, ENOENT, ENOTDIR, ENXIO, EOPNOTSUPP, EPERM, EROFS, ESTALE,
};
use crate::files::{Directory, Open, Spot};
use crate::pipes::{Ends, PipeEnd};
use crate::special::Special;
use crate::task::Task;
use crate::walk::{Led, Node, Stand, View};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use interfaces::FileKind;
use linux::cred::{EXECUTE, READ, WRITE};
use linux::files::{Attributes, DIRECTORY, KIND, LINK, REGULAR};

const O_WRONLY: u64 = 1;
const O_RDWR: u64 = 2;
const O_ACCMODE: u64 = 3;
const O_CREAT: u64 = 0x40;
const O_EXCL: u64 = 0x80;
const O_TRUNC: u64 = 0x200;
pub(super) const O_APPEND: u64 = 0x400;
const O_DIRECTORY: u64 = 0x1_0000;
const O_NOFOLLOW: u64 = 0x2_0000;
const O_NOATIME: u64 = 0x4_0000;
const O_PATH: u64 = 0x20_0000;
/// A file without a name.
const O_TMPFILE: u64 = 0x40_0000;
/// What `creat` asks for.
pub(super) const CREATES: u64 = O_WRONLY | O_CREAT | O_TRUNC;

/// How something is to be opened.
#[derive(Clone, Copy)]
struct Wish {
    flags: u64,
    /// Of what is made, without the masked bits.
    mode: u16,
}

impl Wish {
    /// # Errors
    /// `EINVAL`: to do what is not known.
    fn new(flags: u64, mode: u16) -> Result<Self> {
        // With `O_PATH` little else counts.
        let flags = match flags & O_PATH {
            0 => flags,
            _ => flags & (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
        };
        match flags {
            flags if flags & O_ACCMODE == O_ACCMODE => Err(EINVAL),
            flags if flags & O_TMPFILE != 0 => Err(EOPNOTSUPP),
            flags => Ok(Wish { flags, mode }),
        }
    }

    fn has(self, flags: u64) -> bool {
        self.flags & flags == flags
    }

    fn follows(self) -> bool {
        !self.has(O_NOFOLLOW) && !self.has(O_CREAT | O_EXCL)
    }

    fn access(self) -> Access {
        let mode = self.flags & O_ACCMODE;
        Access {
            reads: mode != O_WRONLY,
            writes: mode != 0,
            appends: self.has(O_APPEND),
        }
    }

    /// What the mode of what there is has to allow.
    fn rights(self) -> u32 {
        let access = self.access();
        let reads = if access.reads { READ } else { 0 };
        let writes = access.writes || self.has(O_TRUNC);
        reads | if writes { WRITE } else { 0 }
    }

    fn ends(self) -> Ends {
        Ends {
            reads: self.access().reads,
            writes: self.access().writes,
            never_waits: self.has(O_NONBLOCK),
        }
    }

    /// Whether what there is may be opened so.
    ///
    /// # Errors
    /// Linux's.
    fn suits(self, view: &View<'_>, of: &Attributes) -> Result<()> {
        let kind = of.mode & KIND;
        if self.has(O_DIRECTORY) && kind != DIRECTORY {
            return Err(ENOTDIR);
        }
        if self.has(O_PATH) {
            return Ok(());
        }
        match kind {
            LINK => return Err(ELOOP),
            DIRECTORY if self.access().writes || self.has(O_CREAT) || self.has(O_TRUNC) => {
                return Err(EISDIR);
            }
            _ => {}
        }
        view.cred.check(of, self.rights())?;
        match self.has(O_NOATIME) && !view.cred.owns(of) {
            true => Err(EPERM),
            false => Ok(()),
        }
    }
}

/// What something is open for, as `fcntl` tells it.
fn mode_of(reads: bool, writes: bool) -> u64 {
    match (reads, writes) {
        (true, true) => O_RDWR,
        (false, _) => O_WRONLY,
        (true, false) => 0,
    }
}

/// How something is open, as `fcntl` tells it.
pub(super) fn flags_of(open: &Open) -> u64 {
    match open {
        Open::Disk(open) => {
            let mode = mode_of(open.access.reads, open.access.writes);
            let appends = open.appends.load(Ordering::Relaxed);
            mode | if appends { O_APPEND } else { 0 }
        }
        Open::Pipe(end) => {
            let (reads, writes) = end.is_for();
            mode_of(reads, writes) | if end.never_waits() { O_NONBLOCK } else { 0 }
        }
        Open::Socket(socket) if socket.never_waits() => O_RDWR | O_NONBLOCK,
        Open::Counter(counter) if counter.never_waits() => O_RDWR | O_NONBLOCK,
        Open::Directory(directory) if directory.is_place => O_PATH | O_DIRECTORY,
        Open::Spot(_) => O_PATH,
        Open::Directory(_) => O_DIRECTORY,
        Open::File(..) | Open::Text(..) => 0,
        _ => O_RDWR,
    }
}

impl Task {
    pub(super) fn open(
        &mut self,
        descriptor: i32,
        path: u64,
        flags: u64,
        mode: u64,
    ) -> Result<u64> {
        let wish = Wish::new(flags, self.masked(mode))?;
        let path = self.path(descriptor, path)?;
        if wish.has(O_CREAT) && path.ends_with_slash() {
            // Whatever is there.
            return self.named(&path, |_, _, _| Err(EISDIR));
        }
        let open = self.walked(&path, wish.follows(), |view, led, before| {
            self.open_led(view, led, wish, before)
        })?;
        self.place(open, 0, flags & O_CLOEXEC != 0)
    }

    fn open_led(&self, view: &View<'_>, led: &Led, wish: Wish, before: u32) -> Result<Arc<Open>> {
        let Some(node) = &led.node else {
            return match wish.has(O_CREAT) {
                true => self.open_new(view, led, wish),
                false => Err(ENOENT),
            };
        };
        if wish.has(O_CREAT | O_EXCL) {
            return Err(EEXIST);
        }
        let of = view.attributes(node)?;
        match wish.suits(view, &of) {
            // Somebody may be making it, and it has neither owner nor mode yet.
            Err(EACCES) if before == 0 && (of.user, of.mode) == (0, REGULAR) => {
                self.await_made(led);
                return Err(ESTALE);
            }
            suits => suits?,
        }
        match node {
            Node::Disk(node) => self.open_on_disk(view, (led, node), wish, before),
            Node::Made(path, special) => open_made(path, special, wish),
            Node::Open(open) => self.open_again(open, wish),
        }
    }

    /// Waits until nothing is being made in the directory that a path leads to.
    fn await_made(&self, led: &Led) {
        if let (Node::Disk(directory), Some(disk)) = (&led.directory, &self.process.system.disk) {
            let lock = disk.lock_of(directory.inode());
            drop(lock.lock());
        }
    }

    fn open_new(&self, view: &View<'_>, led: &Led, wish: Wish) -> Result<Arc<Open>> {
        let of = view.attributes(&led.directory)?;
        view.cred.check(&of, WRITE | EXECUTE)?;
        let disk = self.process.system.disk.as_ref().ok_or(EROFS)?;
        let Node::Disk(directory) = &led.directory else {
            return Err(EROFS);
        };
        let (user, group, mode) = view.cred.made(&of, REGULAR, wish.mode.into());
        let given = (user, group, mode as u16);
        match disk.make((directory, &led.name), Making::File, given) {
            // Somebody else was faster, to make it or to remove it.
            Ok(None) => Err(ESTALE),
            Err(EEXIST) if !wish.has(O_EXCL) => Err(ESTALE),
            made => {
                let file = Arc::new(DiskFile::new(disk, made?.ok_or(ESTALE)?));
                let open = OnDisk::new(led.path.clone(), file, wish.access());
                Ok(Arc::new(Open::Disk(open)))
            }
        }
    }

    fn open_on_disk(
        &self,
        view: &View<'_>,
        (led, node): (&Led, &disk::Node),
        wish: Wish,
        before: u32,
    ) -> Result<Arc<Open>> {
        let disk = self.process.system.disk.as_ref().ok_or(ENOENT)?;
        let hold = || Ok(disk.take(led, node, before)?.1);
        let open = match node.kind() {
            FileKind::Directory => {
                let stand = view.stand(led, before)?;
                let mut directory = Directory::new(stand, Vec::new());
                directory.is_place = wish.has(O_PATH);
                Open::Directory(directory)
            }
            kind if wish.has(O_PATH) => Open::Spot(Spot {
                path: led.path.clone(),
                disk: disk.clone(),
                seat: hold()?,
                kind,
            }),
            FileKind::Symlink => return Err(ELOOP),
            FileKind::CharacterDevice => self.device_of(disk.of(node)?.device)?,
            FileKind::Pipe => Open::Pipe(PipeEnd::open(self, disk, hold()?, wish.ends())?),
            // Nobody is behind them.
            FileKind::BlockDevice | FileKind::Socket => return Err(ENXIO),
            FileKind::Regular => {
                let file = Arc::new(DiskFile::new(disk, hold()?));
                if wish.has(O_TRUNC) {
                    file.set_length(0)?;
                }
                Open::Disk(OnDisk::new(led.path.clone(), file, wish.access()))
            }
        };
        Ok(Arc::new(open))
    }

    /// The device of a number (Linux, "devices.txt").
    fn device_of(&self, number: u32) -> Result<Open> {
        match number {
            0x103 => Ok(Open::Nothing),
            0x105 => Ok(Open::Zeros),
            0x107 => Ok(Open::Full),
            0x108 | 0x109 => Ok(Open::Random),
            0x500 | 0x501 => {
                let terminal = self.process.system.terminal.clone();
                terminal.map(Open::Terminal).ok_or(ENXIO)
            }
            _ => Err(ENXIO),
        }
    }

    /// Opens once more what a process has open: a file at its beginning, an end of the same pipe.
    fn open_again(&self, open: &Arc<Open>, wish: Wish) -> Result<Arc<Open>> {
        Ok(match &**open {
            Open::Disk(open) => {
                if wish.has(O_TRUNC) {
                    open.file.set_length(0)?;
                }
                let (path, file) = (open.path.clone(), open.file.clone());
                Arc::new(Open::Disk(OnDisk::new(path, file, wish.access())))
            }
            Open::File(file, _) => Arc::new(Open::File(*file, AtomicU64::new(0))),
            Open::Text(text, _) => Arc::new(Open::Text(text.clone(), AtomicU64::new(0))),
            Open::Pipe(end) => Arc::new(Open::Pipe(end.open_again(self, wish.ends())?)),
            // They have no name to be opened by.
            Open::Socket(_) | Open::Epoll(_) | Open::Counter(_) => return Err(ENXIO),
            _ => open.clone(),
        })
    }
}

fn open_made(path: &[u8], special: &Special, wish: Wish) -> Result<Arc<Open>> {
    let writes = wish.access().writes;
    match special {
        Special::Open(open) if writes && matches!(**open, Open::File(..)) => Err(EROFS),
        Special::Open(open) => Ok(open.clone()),
        Special::Directory(names) => {
            let mut directory = Directory::new(Stand::Made(path.to_vec()), names.clone());
            directory.is_place = wish.has(O_PATH);
            Ok(Arc::new(Open::Directory(directory)))
        }
        Special::Text(_) if writes => Err(EROFS),
        Special::Text(text) => Ok(Arc::new(Open::Text(text.clone(), AtomicU64::new(0)))),
        Special::Device(_) => Err(ENXIO),
        Special::Link(_) | Special::Magic(..) => Err(ELOOP),
    }
}
