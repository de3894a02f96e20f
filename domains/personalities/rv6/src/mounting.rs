//! Mounting disks and ending that, one at a time.

use core::fmt::Write;
use interfaces::{DiskError, DiskInfo, Disks, Errno, FileKind, FsError, Handle, RpcError, Text};
use respawn::Absent;
use vfs::walk::{Found, Place, Tree as _};

use crate::errors;
use crate::mount_table::{Origin, Point};
use crate::names::existing;
use crate::process::Process;
use crate::system::System;
use crate::volumes::Node;
use mounts::Mount;

/// The right that programs must be granted for this.
const SERVICE: &str = "disks";

/// Disk number `index`; `None` behind the last.
///
/// # Errors
/// `NotGranted`.
pub fn disk(system: &System, process: &Process, index: u32) -> Result<Option<DiskInfo>, Errno> {
    Ok(disks(system, process)?.disk(index)?)
}

/// Mounts the file system on a disk over the directory at `path`.
///
/// # Errors
/// `NotGranted`; `Busy` if the disk is mounted or something is mounted there; `CannotMount`; those
/// of the path.
pub fn mount(
    system: &System,
    process: &Process,
    from: &Place<Node>,
    disk: Text<32>,
    path: &[u8],
    read_only: bool,
) -> Result<(), Errno> {
    let disks = disks(system, process)?;
    let _one_at_a_time = system.mounting.lock();
    let mounts = &system.volumes.mounts;
    if mounts.on_disk(disk).is_some() {
        return Err(Errno::Fs(FsError::Busy));
    }
    let (found, node) = existing(system, from, path, true)?;
    if node.kind != FileKind::Directory {
        return Err(Errno::Fs(FsError::NotDirectory));
    }
    let path = found.path();
    let point = point(system, found, &path)?;
    let respawn = disks.mount(disk, read_only).map_err(disk_error)?;
    let name = alloc::string::String::from_utf8_lossy(&path);
    let mount = Mount::new(&name, respawn);
    let mounted = match mount.begin() {
        Ok(()) => mounts.add(disk.as_str(), Origin::Disk, point, &path, mount),
        Err(error) => {
            let _ = disks.unmount(disk);
            return Err(refused(&error));
        }
    };
    if mounted.is_err() {
        let _ = disks.unmount(disk);
    }
    mounted.map(drop).map_err(errors::fs)
}

/// Ends the file system that is mounted over the directory at `path`, or from the disk of this
/// name.
///
/// # Errors
/// `NotGranted`; `Invalid` if nothing is mounted there; `Busy` if it is in use; `Unsupported` if it
/// is not on a disk; the file system's, if it cannot bring everything to the disk: then it stays,
/// unless its end is `forced`.
pub fn unmount(
    system: &System,
    process: &Process,
    from: &Place<Node>,
    path: &[u8],
    forced: bool,
) -> Result<(), Errno> {
    let disks = disks(system, process)?;
    let _one_at_a_time = system.mounting.lock();
    let mounts = &system.volumes.mounts;
    let volume = match existing(system, from, path, true) {
        Ok((found, _)) => mounts.over_path(&found.path()),
        // A mount whose directory cannot be reached any more can be ended all the same.
        Err(_) => mounts.over_path(path),
    };
    let named = || mounts.on_disk(Text::new(core::str::from_utf8(path).ok()?));
    let volume = volume.or_else(named).ok_or(Errno::Invalid)?;
    let taken = mounts.take(volume).map_err(errors::fs)?;
    let synced = taken.mount().sync();
    if let Err(
        error @ (FsError::Device
        | FsError::Down
        | FsError::NoSpace
        | FsError::Restarted
        | FsError::Rpc(RpcError::NoMemory)),
    ) = synced
        && !forced
    {
        mounts.put_back(taken);
        return Err(errors::fs(error));
    }
    let disk = taken.device();
    drop(taken);
    disks.unmount(disk).map_err(disk_error)
}

fn disks<'a>(system: &'a System, process: &Process) -> Result<&'a Handle<dyn Disks>, Errno> {
    system.disks(process, SERVICE).ok_or(Errno::NotGranted)
}

/// The mount point at what was found, whose path is `path`.
fn point(system: &System, found: Found<Node>, path: &[u8]) -> Result<Point, Errno> {
    let volumes = &system.volumes;
    let found = match found.name.is_empty() {
        false => found,
        // It ended in `.` or `..`: by its own name, then.
        true => {
            let root = volumes.root().map_err(errors::fs)?;
            let top = Place {
                node: root,
                path: b"/".to_vec(),
            };
            existing(system, &top, path, true)?.0
        }
    };
    let (directory, name) = (found.directory.node, found.name);
    if name.is_empty() {
        return Err(Errno::Fs(FsError::Busy));
    }
    if volumes
        .mounted(&directory, &name)
        .map_err(errors::fs)?
        .is_some()
    {
        return Err(Errno::Fs(FsError::Busy));
    }
    Ok(match volumes.root().map_err(errors::fs)? == directory {
        true => Point::Top(name),
        false => Point::In { directory, name },
    })
}

fn disk_error(error: DiskError) -> Errno {
    match error {
        DiskError::Rpc(error) => Errno::Rpc(error),
        DiskError::NoSuchDisk => Errno::Fs(FsError::NotFound),
        DiskError::Failed(why) => Errno::CannotMount(why),
    }
}

fn refused(error: &Absent<FsError>) -> Errno {
    let mut why = Text::empty();
    // What does not fit is cut off.
    let _ = write!(why, "{error}");
    Errno::CannotMount(why)
}
