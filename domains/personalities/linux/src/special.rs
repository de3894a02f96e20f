//! `/dev`, `/proc` and `/sys`, where the root of the tree is a disk: what lies there is made when
//! it is asked for.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`device`] | `/dev` |
//! | [`machine`] | what `/proc` tells of the machine |
//! | [`own`] | what `/proc/PID` tells of a process |
//! | [`system`] | the system itself, in `/sys/kernel/trefoil` |

mod device;
mod machine;
mod own;
pub mod system;

use crate::errno::{ELOOP, ENOENT, ENOTDIR, Error};
use crate::files::Open;
use crate::process::Process;
use crate::task::Task;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use linux::files::{CHARACTER, DIRECTORY, LINK, REGULAR, resolve};

/// Links that lead to links at the most, as on a disk.
const MOST_LINKS: usize = 40;

/// What stands at a path.
pub enum Special {
    Open(Arc<Open>),
    /// Names, and the kinds of what they lead to, as in a mode.
    Directory(Vec<(Vec<u8>, u32)>),
    Text(Vec<u8>),
    /// A symbolic link.
    Link(Vec<u8>),
    /// A link that leads to what a process has open, whatever its text says.
    Magic(Arc<Open>, Vec<u8>),
}

/// Whether a path from the root on leads here.
pub fn has(path: &[u8]) -> bool {
    let first = path.split(|byte| *byte == b'/').next();
    matches!(first, Some(b"dev" | b"proc" | b"sys"))
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

impl Task {
    /// What stands at a path that leads here; links on the way are not followed.
    pub fn special(&self, path: &[u8]) -> Result<Special, Error> {
        let mut parts = path.split(|byte| *byte == b'/');
        let first = parts.next();
        let rest: Vec<&[u8]> = parts.collect();
        match (first, &rest[..]) {
            (Some(b"dev"), rest) => self.device_at(rest),
            (Some(b"sys"), rest) => system::find(&self.process.system, rest),
            (Some(b"proc"), []) => Ok(Special::Directory(self.of_proc())),
            (Some(b"proc"), [b"self"]) => Ok(self.own_number("")),
            (Some(b"proc"), [b"thread-self"]) => Ok(self.own_number("/task")),
            (Some(b"proc"), [b"mounts"]) => Ok(Special::Link(b"self/mounts".to_vec())),
            (Some(b"proc"), [id, rest @ ..]) if number(id).is_some() => {
                let id = number(id).unwrap_or(0);
                let process = self.process.system.process(id).ok_or(ENOENT)?;
                self.of_process(&process, rest)
            }
            (Some(b"proc"), rest) => machine::find(&self.process.system, rest),
            _ => Err(ENOENT),
        }
    }

    fn own_number(&self, behind: &str) -> Special {
        Special::Link(format!("{}{behind}", self.process.id).into_bytes())
    }

    fn of_proc(&self) -> Vec<(Vec<u8>, u32)> {
        let processes = self.process.system.processes();
        let processes = processes.iter();
        let processes = processes.map(|id| (format!("{id}").into_bytes(), DIRECTORY));
        let links = names(&["self", "thread-self", "mounts"], LINK);
        machine::all().chain(links).chain(processes).collect()
    }

    /// A path without the links that stand here; with `follows` also without one at its end.
    pub fn settled_by(&self, mut path: Vec<u8>, follows: bool) -> Result<Vec<u8>, Error> {
        for _ in 0..MOST_LINKS {
            match self.link_in(&path, follows)? {
                Some(next) => path = next,
                None => return Ok(path),
            }
        }
        Err(ELOOP)
    }

    /// As [`settled_by`](Self::settled_by), with all links followed.
    pub fn settled(&self, path: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.settled_by(path, true)
    }

    /// The path with its first link followed, if there is one.
    fn link_in(&self, path: &[u8], follows: bool) -> Result<Option<Vec<u8>>, Error> {
        if !self.process.system.is_rooted() || !has(path) {
            return Ok(None);
        }
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let last = follows.then_some(path.len());
        for end in slashes.map(|(at, _)| at).chain(last) {
            match self.special(&path[..end]) {
                Ok(Special::Link(target)) => {
                    let parent = path[..end].iter().rposition(|byte| *byte == b'/');
                    let parent = resolve(&path[..parent.unwrap_or(0)], &target);
                    let rest = path[end..].strip_prefix(b"/").unwrap_or_default();
                    return Ok(Some(resolve(&parent, rest)));
                }
                Ok(Special::Directory(_)) => {}
                Ok(_) if end < path.len() => return Err(ENOTDIR),
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// What is told of a process that ends in a moment is nothing.
fn told(process: &Arc<Process>) -> crate::process::Told {
    process.told.lock().clone()
}

/// The kinds of files that are texts, and of devices.
const TEXT: u32 = REGULAR;
const DEVICE: u32 = CHARACTER;
