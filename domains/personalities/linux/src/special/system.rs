//! `/sys/kernel/trefoil`: the system itself, for whom the manifest grants a view of it.
//!
//! | file | reading | writing |
//! | --- | --- | --- |
//! | `domains` | a line for each domain: number, name, state, memory | |
//! | `log` | the kernel's log | |
//! | `calls` | a line for each counted kind of call: caller, callee, method, how many, errors, time | |
//! | `counting` | | `on`, `timed`, `off`, `reset`: whether calls are counted ([`Counting`]) |
//! | `strike` | | a name: that domain crashes in its next call |
//! | `update` | | a name and a descriptor: that domain is replaced by the image in that file |
//! | `updates` | a directory of images that came with the system | |
//! | `power` | | `off`: all is brought to the disk, and the machine is switched off |

use super::{Special, TEXT, names};
use crate::disk::Disk;
use crate::errno::{EBADF, EFBIG, EINTR, EINVAL, EIO, ENOENT, ENOEXEC, ENOMEM, EOPNOTSUPP, Error};
use crate::files::Open;
use crate::special::counted;
use crate::system::System;
use crate::task::Task;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use domain_rt::log;
use guests::archive::{Files, Node};
use interfaces::{
    Counting, DomainControl, DomainInfo, Handle, Monitor, Power, RVec, RpcError, Text, UpdateError,
    Updater,
};
use linux::files::{DIRECTORY, REGULAR};

/// Bytes of the log that are asked for at once, and the most in all.
const PIECE: usize = 16 << 10;
const MOST_LOG: usize = 1 << 20;

/// Where the boot archive has images that domains can be replaced by, and the longest of an image.
const UPDATES: &[u8] = b"boot/updates";
const LONGEST_IMAGE: u64 = 64 << 20;

/// What a manifest may grant of the system.
#[derive(Default)]
pub struct Authority {
    pub monitor: Option<Handle<dyn Monitor>>,
    pub control: Option<Handle<dyn DomainControl>>,
    pub updater: Option<Handle<dyn Updater>>,
    pub power: Option<Handle<dyn Power>>,
}

/// What can be told to do something by writing to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    Strike,
    Update,
    Counting,
    Power,
}

/// What stands at a path behind `/sys`.
pub(super) fn find(system: &System, path: &[&[u8]]) -> Result<Special, Error> {
    let authority = &system.authority;
    let text = |text: Result<Vec<u8>, Error>| text.map(Special::Text);
    let switch = |switch| Ok(Special::Open(Arc::new(Open::Switch(switch))));
    let monitor = || authority.monitor.as_ref().ok_or(ENOENT);
    match path {
        [] => Ok(Special::Directory(names(&["kernel"], DIRECTORY).collect())),
        [b"kernel"] => Ok(Special::Directory(names(&["trefoil"], DIRECTORY).collect())),
        [b"kernel", b"trefoil"] => Ok(Special::Directory(all(authority))),
        [b"kernel", b"trefoil", b"domains"] => text(domains(monitor()?)),
        [b"kernel", b"trefoil", b"log"] => text(log(monitor()?)),
        [b"kernel", b"trefoil", b"calls"] => text(counted::table(monitor()?)),
        [b"kernel", b"trefoil", b"counting"] => monitor().and_then(|_| switch(Switch::Counting)),
        [b"kernel", b"trefoil", b"strike"] if authority.control.is_some() => switch(Switch::Strike),
        [b"kernel", b"trefoil", b"update"] if authority.updater.is_some() => switch(Switch::Update),
        [b"kernel", b"trefoil", b"updates", rest @ ..] if authority.updater.is_some() => {
            image(&system.files, rest)
        }
        [b"kernel", b"trefoil", b"power"] if authority.power.is_some() => switch(Switch::Power),
        _ => Err(ENOENT),
    }
}

fn all(authority: &Authority) -> Vec<(Vec<u8>, u32)> {
    let mut all: Vec<_> = match authority.monitor {
        Some(_) => names(&["domains", "log", "calls", "counting"], TEXT).collect(),
        None => Vec::new(),
    };
    for (is_there, name) in [
        (authority.control.is_some(), "strike"),
        (authority.updater.is_some(), "update"),
        (authority.power.is_some(), "power"),
    ] {
        if is_there {
            all.extend(names(&[name], TEXT));
        }
    }
    if authority.updater.is_some() {
        all.extend(names(&["updates"], DIRECTORY));
    }
    all
}

/// What stands at a path behind `updates`: an image of the boot archive.
fn image(files: &Files, path: &[&[u8]]) -> Result<Special, Error> {
    let [name] = path else {
        let kind = |is_directory| if is_directory { DIRECTORY } else { REGULAR };
        let listed = files.names(UPDATES).into_iter();
        let listed = listed.map(|(name, is_directory)| (name, kind(is_directory)));
        return match path {
            [] => Ok(Special::Directory(listed.collect())),
            _ => Err(ENOENT),
        };
    };
    match files.find(UPDATES, name) {
        Some(Node::File(file)) => {
            let open = Open::File(file, AtomicU64::new(0));
            Ok(Special::Open(Arc::new(open)))
        }
        _ => Err(ENOENT),
    }
}

/// All domains, in the order of their numbers.
fn list(monitor: &Handle<dyn Monitor>) -> Result<Vec<DomainInfo>, Error> {
    let (mut from, mut list) = (0, Vec::new());
    while let Some(info) = monitor.next(from).map_err(|_| EIO)? {
        from = info.id.saturating_add(1);
        list.try_reserve(1).map_err(|_| ENOMEM)?;
        list.push(info);
    }
    Ok(list)
}

fn domains(monitor: &Handle<dyn Monitor>) -> Result<Vec<u8>, Error> {
    let mut text = String::from("    ID NAME                 STATE     KIB\n");
    for info in list(monitor)? {
        let state = format!("{:?}", info.state).to_lowercase();
        let bytes = info.heap_bytes + info.image_bytes + info.stack_bytes + info.object_bytes;
        let name = info.name.as_str();
        text += &format!("{:>6} {name:<20} {state:<8} {:>5}\n", info.id, bytes >> 10);
    }
    Ok(text.into_bytes())
}

/// The kernel's log, of which the oldest part may be gone.
pub fn log(monitor: &Handle<dyn Monitor>) -> Result<Vec<u8>, Error> {
    let (mut text, mut from) = (Vec::new(), 0);
    while text.len() < MOST_LOG {
        let room = RVec::filled(0, PIECE).map_err(|_| ENOMEM)?;
        let (piece, next) = monitor.log(from, room).map_err(|_| EIO)?;
        if piece.is_empty() {
            break;
        }
        text.try_reserve(piece.len()).map_err(|_| ENOMEM)?;
        text.extend_from_slice(&piece);
        from = next;
    }
    Ok(text)
}

impl Switch {
    /// Does what is written to it.
    ///
    /// # Errors
    /// `EINVAL`: it knows no such word. `ENOENT`: there is no such domain.
    pub fn write(self, task: &Task, text: &[u8]) -> Result<(), Error> {
        let system = &task.process.system;
        let text = core::str::from_utf8(text).map_err(|_| EINVAL)?;
        match (self, text.trim()) {
            (_, "") => Err(EINVAL),
            (Switch::Strike, name) => system.strike(name),
            (Switch::Update, order) => task.update(order),
            (Switch::Counting, how) => system.authority.count(how),
            (Switch::Power, "off") => system.switch_off(),
            (Switch::Power, _) => Err(EINVAL),
        }
    }
}

impl Authority {
    /// Switches on or off that calls are counted.
    fn count(&self, how: &str) -> Result<(), Error> {
        let how = match how {
            "on" => Counting::On,
            "timed" => Counting::Timed,
            "off" => Counting::Off,
            "reset" => Counting::Reset,
            _ => return Err(EINVAL),
        };
        let monitor = self.monitor.as_ref().ok_or(ENOENT)?;
        monitor.count_calls(how).map_err(|_| EIO)
    }

    /// Has a domain crash in its next call.
    fn strike(&self, name: &str) -> Result<(), Error> {
        let monitor = self.monitor.as_ref().ok_or(ENOENT)?;
        let control = self.control.as_ref().ok_or(ENOENT)?;
        // Of several instances the last one serves.
        let named = list(monitor)?.into_iter().rev();
        let found = named.into_iter().find(|info| info.name.as_str() == name);
        let id = found.ok_or(ENOENT)?.id;
        let domain = control.domain(id).map_err(|_| EIO)?.ok_or(ENOENT)?;
        domain.crash_next_call().map_err(|_| EIO)
    }
}

/// Why a domain was not replaced, and what that is for Linux.
fn refused(error: &UpdateError) -> (&str, Error) {
    match error {
        UpdateError::NoSuchDomain => ("there is no such domain", ENOENT),
        UpdateError::BadImage(why) => (why.as_str(), ENOEXEC),
        UpdateError::Unfit(why) => (why.as_str(), EINVAL),
        UpdateError::NoShadow(why) => (why.as_str(), EOPNOTSUPP),
        UpdateError::Rpc(RpcError::NoMemory) => ("there is no memory", ENOMEM),
        UpdateError::Rpc(RpcError::Interrupted) => ("", EINTR),
        UpdateError::Rpc(_) => ("the call failed", EIO),
        UpdateError::Kept(_) | UpdateError::Lost(_) => ("", EIO),
    }
}

impl Task {
    /// Replaces a domain by the image in a file that the process has open.
    fn update(&self, order: &str) -> Result<(), Error> {
        let updater = self.process.system.authority.updater.as_ref();
        let updater = updater.ok_or(ENOENT)?;
        let (name, descriptor) = order.split_once(' ').ok_or(EINVAL)?;
        let descriptor: u32 = descriptor.trim().parse().map_err(|_| EBADF)?;
        let image = self.image(&*self.opened(descriptor.into())?)?;
        let updated = updater.update(Text::new(name), image, None);
        updated.map(drop).map_err(|error| {
            let (why, error) = refused(&error);
            // Of the others `init` says more.
            if !why.is_empty() {
                log!("{name} is not replaced: {why}");
            }
            error
        })
    }

    /// All of a file, wherever in it the program is.
    fn image(&self, open: &Open) -> Result<RVec<u8>, Error> {
        let size = match open {
            Open::Disk(open) if open.access.reads => open.file.attributes()?.size,
            Open::File(file, _) => file.size,
            _ => return Err(EBADF),
        };
        if size > LONGEST_IMAGE {
            return Err(EFBIG);
        }
        let mut image = RVec::filled(0, size as usize).map_err(|_| ENOMEM)?;
        let mut done = 0;
        while done < image.len() && !self.is_ending() {
            let count = PIECE.min(image.len() - done);
            let filled = match open {
                Open::Disk(open) => put(&open.file.head(done as u64, count)?, &mut image[done..]),
                Open::File(file, _) => {
                    let files = &self.process.system.files;
                    put(&files.read(*file, done as u64, count)?, &mut image[done..])
                }
                _ => 0,
            };
            if filled == 0 {
                break;
            }
            done += filled;
        }
        // A file that has become shorter is no image any more.
        Ok(image.truncated(done))
    }
}

fn put(bytes: &[u8], to: &mut [u8]) -> usize {
    let count = bytes.len().min(to.len());
    to[..count].copy_from_slice(&bytes[..count]);
    count
}

impl System {
    /// Has a domain crash in its next call, and notes what it strikes into.
    fn strike(&self, name: &str) -> Result<(), Error> {
        let calls = self.disk.as_ref().map_or(0, |disk| disk.under_way());
        self.authority.strike(name)?;
        log!("{name} is struck with {calls} calls under way");
        Ok(())
    }

    /// Brings all to the disk and switches the machine off.
    ///
    /// # Errors
    /// `ENOENT`: that is not granted. `EIO`: not everything could be written, and the machine stays
    /// on.
    pub fn switch_off(&self) -> Result<(), Error> {
        let power = self.authority.power.as_ref().ok_or(ENOENT)?;
        self.disk.as_ref().map_or(Ok(()), |disk| Disk::sync(disk))?;
        power.off(0).map_err(|_| EIO)
    }
}
