//! What is not on the disk: `/dev`, `/proc` and `/sys`, where the root of the tree is a disk, else
//! the boot archive. What lies there is made when it is asked for.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`counted`] | the calls between domains that were counted |
//! | [`device`] | `/dev` |
//! | [`machine`] | what `/proc` tells of the machine |
//! | [`own`] | what `/proc/PID` tells of a process |
//! | [`system`] | the system itself, in `/sys/kernel/trefoil` |

mod counted;
mod device;
mod machine;
mod own;
pub mod system;

use crate::errno::{EACCES, EINVAL, ENOENT, Error};
use crate::files::{Open, device_of};
use crate::process::Process;
use crate::walk::{Node, View};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use guests::archive;
use linux::files::{Attributes, CHARACTER, DIRECTORY, LINK, REGULAR};
use vfs::walk::Tree;

/// The number that this tree has as a device.
const TREE: u64 = 2;

/// What stands at a path.
pub enum Special {
    Open(Arc<Open>),
    /// Names, and the kinds of what they lead to, as in a mode.
    Directory(Vec<(Vec<u8>, u32)>),
    Text(Vec<u8>),
    /// A symbolic link.
    Link(Vec<u8>),
    /// A device of this number that is not there.
    Device(u32),
    /// A link that leads to what the process of this number has open, whatever its text says.
    Magic(u32, Arc<Open>),
}

/// Names of one kind.
fn names(names: &[&str], kind: u32) -> impl Iterator<Item = (Vec<u8>, u32)> {
    names
        .iter()
        .map(move |name| (name.as_bytes().to_vec(), kind))
}

fn number(name: &[u8]) -> Option<u32> {
    let text = core::str::from_utf8(name).ok()?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// A number for a path, which is hardly another's (FNV-1a).
fn inode_of(path: &[u8]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    path.iter().fold(0xcbf2_9ce4_8422_2325, mix) >> 16 | 1
}

impl View<'_> {
    /// What stands at a path from the root on; links on the way are not followed.
    pub fn special(&self, path: &[u8]) -> Result<Special, Error> {
        if !self.system.is_rooted() {
            return self.archived(path);
        }
        let mut parts = path.split(|byte| *byte == b'/');
        let first = parts.next();
        let rest: Vec<&[u8]> = parts.collect();
        match (first, &rest[..]) {
            (Some(b"dev"), rest) => self.device_at(rest),
            (Some(b"sys"), rest) => system::find(self.system, rest),
            (Some(b"proc"), []) => Ok(Special::Directory(self.of_proc())),
            (Some(b"proc"), [b"self"]) => Ok(self.own_number("")),
            (Some(b"proc"), [b"thread-self"]) => Ok(self.own_number("/task")),
            (Some(b"proc"), [b"mounts"]) => Ok(Special::Link(b"self/mounts".to_vec())),
            (Some(b"proc"), [id, rest @ ..]) if number(id).is_some() => {
                let id = number(id).unwrap_or(0);
                let process = self.system.process(id).ok_or(ENOENT)?;
                self.of_process(&process, rest)
            }
            (Some(b"proc"), rest) => machine::find(self.system, rest),
            _ => Err(ENOENT),
        }
    }

    /// What stands at a path of the archive.
    fn archived(&self, path: &[u8]) -> Result<Special, Error> {
        let files = &self.system.files;
        let listed = |path: &[u8]| {
            let kind = |is_directory| if is_directory { DIRECTORY } else { REGULAR };
            let names = self.system.names(path).into_iter();
            Special::Directory(names.map(|(name, it)| (name, kind(it))).collect())
        };
        let file = |file| Special::Open(Arc::new(Open::File(file, AtomicU64::new(0))));
        match path {
            b"dev" => {
                let devices = names(&["null", "zero", "tty"], CHARACTER);
                return Ok(Special::Directory(devices.collect()));
            }
            b"dev/null" | b"dev/zero" | b"dev/tty" => return self.device_at(&[&path[4..]]),
            // Every name there is the one program's.
            b"bin" => return Ok(listed(path)),
            _ => {}
        }
        match files.find(b"", path) {
            Some(archive::Node::File(there)) => Ok(file(there)),
            Some(archive::Node::Directory(path)) => Ok(listed(&path)),
            None => files.program(path).map(file).ok_or(ENOENT),
        }
    }

    fn own_number(&self, behind: &str) -> Special {
        Special::Link(format!("{}{behind}", self.own).into_bytes())
    }

    fn of_proc(&self) -> Vec<(Vec<u8>, u32)> {
        let processes = self.system.processes();
        let processes = processes.iter();
        let processes = processes.map(|id| (format!("{id}").into_bytes(), DIRECTORY));
        let links = names(&["self", "thread-self", "mounts"], LINK);
        machine::all().chain(links).chain(processes).collect()
    }

    /// What `stat` tells of what stands at a path.
    pub fn made_attributes(&self, path: &[u8], special: &Special) -> Result<Attributes, Error> {
        let (mode, size) = match special {
            Special::Open(open) => return open.attributes(),
            Special::Device(number) => return Ok(device_of(*number)),
            Special::Directory(_) => (DIRECTORY | mode_of_directory(path), 0),
            Special::Text(_) if path.ends_with(b"/trefoil/log") => (REGULAR | 0o400, 0),
            Special::Text(_) => (REGULAR | 0o444, 0),
            Special::Link(target) => (LINK | 0o777, target.len() as u64),
            Special::Magic(..) => (LINK | 0o700, 64),
        };
        let (user, group) = self.owner_of(path);
        Ok(Attributes {
            device: TREE,
            inode: inode_of(path),
            links: 1 + u64::from(mode & DIRECTORY != 0),
            user,
            group,
            allocated: 0,
            ..Attributes::new(mode, size)
        })
    }

    /// The owner of what stands at a path: the user of the process that it tells of.
    fn owner_of(&self, path: &[u8]) -> (u32, u32) {
        let mut parts = path.split(|byte| *byte == b'/');
        let id = match (parts.next(), parts.next()) {
            (Some(b"proc"), Some(name)) => number(name),
            _ => None,
        };
        match id {
            // Whatever it has become, it may look into itself.
            Some(id) if id == self.own => (self.cred.user.files, self.cred.group.files),
            Some(id) => self.system.process(id).map_or((0, 0), |process| {
                let cred = process.cred();
                (cred.user.effective, cred.group.effective)
            }),
            None => (0, 0),
        }
    }

    /// Whether the process may see what another one has open.
    ///
    /// # Errors
    /// `EACCES`; `ENOENT`: it is gone.
    pub fn look_into(&self, id: u32) -> Result<(), Error> {
        if id == self.own {
            return Ok(());
        }
        let process = self.system.process(id).ok_or(ENOENT)?;
        match self.cred.may_look_into(&process.cred()) {
            true => Ok(()),
            false => Err(EACCES),
        }
    }

    /// Where a link leads, as it says.
    ///
    /// # Errors
    /// `EINVAL`: it is something else. `EACCES`. The disk's.
    pub fn link_text(&self, node: &Node) -> Result<Vec<u8>, Error> {
        if let Node::Made(_, special) = node
            && let Special::Magic(id, open) = &**special
        {
            self.look_into(*id)?;
            return Ok(self.text_of(open));
        }
        self.target(node)?.ok_or(EINVAL)
    }
}

fn mode_of_directory(path: &[u8]) -> u32 {
    match path {
        path if path.starts_with(b"proc") && path.ends_with(b"/fd") => 0o500,
        path if path.starts_with(b"proc") || path.starts_with(b"sys") => 0o555,
        _ => 0o755,
    }
}

/// What is told of a process that ends in a moment is nothing.
fn told(process: &Arc<Process>) -> crate::process::Told {
    process.told.lock().clone()
}

/// The kinds of files that are texts, and of devices.
const TEXT: u32 = REGULAR;
const DEVICE: u32 = CHARACTER;
