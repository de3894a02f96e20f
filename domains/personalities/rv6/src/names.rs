//! Directories and the names in them.

use interfaces::{
    Errno, FileKind, FileSystem, FsError, FsStatistics, Handle, LaneOutcome, Metadata, RVec,
    Renaming,
};
use mounts::Live;
use respawn::Buffer;
use vfs::again;
use vfs::walk::{Found, Place, walk};

use crate::errors;
use crate::held::Held;
use crate::process::Directory;
use crate::system::System;
use crate::volumes::{Node, Volume};

/// What changes go through.
type Way = Handle<dyn FileSystem>;

/// Permission bits of new directories.
const MODE: u16 = 0o755;

/// Has `attempt` made, which follows a path, until what it finds is not stale. It is told how often
/// it was.
///
/// # Errors
/// Those of `attempt`.
pub fn look_again<T>(attempt: impl FnMut(u32) -> Result<T, Errno>) -> Result<T, Errno> {
    let is_stale = |error: &Errno| matches!(error, Errno::Fs(FsError::Stale));
    again::look_again(is_stale, Errno::Fs(FsError::NotFound), attempt)
}

/// What was found, held. After some attempts nobody changes names meanwhile.
///
/// # Errors
/// Those of the file system; `Stale`: it is to be looked for again.
pub fn hold(system: &System, found: &Found<Node>, node: Node, before: u32) -> Result<Held, Errno> {
    let volumes = &system.volumes;
    let directory = &found.directory.node;
    if before < again::PATIENCE || found.name.is_empty() || directory.volume != node.volume {
        return Held::new(volumes, node).map_err(errors::fs);
    }
    let held = Held::take(volumes, directory, &found.name).map_err(errors::fs)?;
    match held.node().kind == node.kind {
        true => Ok(held),
        // It is another, and to be looked at.
        false => Err(Errno::Fs(FsError::Stale)),
    }
}

/// Does something with what a path leads to, which is held meanwhile.
fn with<T>(
    system: &System,
    at: &Place<Node>,
    path: &[u8],
    act: impl Fn(&Live, u64) -> Result<T, FsError>,
) -> Result<T, Errno> {
    look_again(|before| {
        let (found, node) = existing(system, at, path, true)?;
        if node.volume == Volume::EMPTY {
            return Err(Errno::Fs(FsError::Unsupported));
        }
        let held = hold(system, &found, node, before)?;
        let done = held.ask(|live| act(live, held.node().inode));
        done.map_err(errors::fs)
    })
}

/// Where a path leads, and that something is there.
///
/// # Errors
/// Those of the file system.
pub fn existing(
    system: &System,
    from: &Place<Node>,
    path: &[u8],
    follow: bool,
) -> Result<(Found<Node>, Node), Errno> {
    let found = follow_path(system, from, path, follow)?;
    let node = found.node.ok_or(Errno::Fs(FsError::NotFound))?;
    if found.must_be_directory && node.kind != FileKind::Directory {
        return Err(Errno::Fs(FsError::NotDirectory));
    }
    Ok((found, node))
}

/// Where a path leads, as [`walk`] says; also where others replace what it goes by.
///
/// # Errors
/// Those of the file system.
pub fn follow_path(
    system: &System,
    from: &Place<Node>,
    path: &[u8],
    follow: bool,
) -> Result<Found<Node>, Errno> {
    look_again(|_| walk(&system.volumes, from, path, follow).map_err(errors::walk))
}

/// The directory itself, unless it is the one that nothing can be put into.
///
/// # Errors
/// `ReadOnly`.
pub fn writable(directory: &Node) -> Result<Node, Errno> {
    match directory.volume {
        Volume::EMPTY => Err(Errno::Fs(FsError::ReadOnly)),
        _ => Ok(*directory),
    }
}

/// The directory and name of what is to be changed, which is neither a root nor a mount point.
fn changeable(system: &System, found: &Found<Node>) -> Result<(Node, RVec<u8>), Errno> {
    let directory = found.directory.node;
    if found.name.is_empty() {
        return Err(match found.directory.path.as_slice() {
            b"/" => Errno::Fs(FsError::Busy),
            _ => Errno::Invalid,
        });
    }
    let mounted = system.volumes.mounted(&directory, &found.name);
    if mounted.map_err(errors::fs)?.is_some() {
        return Err(Errno::Fs(FsError::Busy));
    }
    Ok((writable(&directory)?, RVec::from_slice(&found.name)?))
}

/// What is known of the file at a path.
///
/// # Errors
/// Those of the file system.
pub fn metadata(
    system: &System,
    from: &Place<Node>,
    path: &[u8],
    follow: bool,
) -> Result<Metadata, Errno> {
    let volumes = &system.volumes;
    look_again(|_| {
        if let Some((_, of)) = volumes.at_once(from, path).map_err(errors::fs)? {
            return Ok(of);
        }
        let (_, node) = existing(system, from, path, follow)?;
        volumes.metadata(&node).map_err(errors::fs)
    })
}

/// Where a symbolic link leads.
///
/// # Errors
/// Those of the file system; `Invalid` if it is none.
pub fn read_link(
    system: &System,
    from: &Place<Node>,
    path: &[u8],
    buffer: RVec<u8>,
) -> Result<RVec<u8>, Errno> {
    let mut buffer = Buffer::new(buffer);
    look_again(|_| {
        let (_, node) = existing(system, from, path, false)?;
        if node.kind != FileKind::Symlink {
            return Err(Errno::Invalid);
        }
        let target = system.volumes.ask(node.volume, |live| {
            live.target(node.known(), buffer.take()?)
        });
        target.map_err(errors::fs)
    })
}

/// Makes a change of a name in a directory.
fn change<T>(
    system: &System,
    directory: &Node,
    operation: impl FnMut(&Way) -> Result<T, FsError>,
    found: impl Fn(&LaneOutcome) -> T,
) -> Result<T, Errno> {
    let on = [Some(directory.known()), None];
    let changed = system
        .volumes
        .change(directory.volume, on, operation, found);
    changed.map_err(errors::fs)
}

/// Makes a change about two inodes of one file system.
fn change_two(
    system: &System,
    (first, second): (&Node, &Node),
    operation: impl FnMut(&Way) -> Result<(), FsError>,
) -> Result<(), Errno> {
    let on = [first, second].map(|node| Some(node.known()));
    let changed = system.volumes.change(first.volume, on, operation, |_| ());
    changed.map_err(errors::fs)
}

/// A new directory.
///
/// # Errors
/// Those of the file system.
pub fn make_directory(system: &System, from: &Place<Node>, path: &[u8]) -> Result<(), Errno> {
    look_again(|_| {
        let found = follow_path(system, from, path, false)?;
        if found.node.is_some() {
            return Err(Errno::Fs(FsError::Exists));
        }
        let (directory, name) = changeable(system, &found)?;
        let create = |fs: &Way| fs.create(directory.inode, &name, FileKind::Directory, MODE);
        change(system, &directory, create, |outcome| outcome.first).map(|_| ())
    })
}

/// Removes a name that is not a directory's.
///
/// # Errors
/// Those of the file system.
pub fn unlink(system: &System, from: &Place<Node>, path: &[u8]) -> Result<(), Errno> {
    look_again(|_| {
        let (found, node) = existing(system, from, path, false)?;
        if node.kind == FileKind::Directory {
            return Err(Errno::Fs(FsError::IsDirectory));
        }
        let (directory, name) = changeable(system, &found)?;
        let remove = |fs: &Way| fs.unlink(directory.inode, &name);
        change(system, &directory, remove, |_| ())
    })
}

/// Removes an empty directory.
///
/// # Errors
/// Those of the file system; `Busy` for mount points and the root.
pub fn remove_directory(system: &System, from: &Place<Node>, path: &[u8]) -> Result<(), Errno> {
    look_again(|_| {
        let (found, node) = existing(system, from, path, false)?;
        if node.kind != FileKind::Directory {
            return Err(Errno::Fs(FsError::NotDirectory));
        }
        let (directory, name) = changeable(system, &found)?;
        let remove = |fs: &Way| fs.remove_directory(directory.inode, &name);
        change(system, &directory, remove, |_| ())
    })
}

/// Gives a file another name.
///
/// # Errors
/// Those of the file system; `CrossDevice` if the two paths are on different ones.
pub fn link(system: &System, at: &Place<Node>, path: &[u8], new: &[u8]) -> Result<(), Errno> {
    look_again(|_| {
        let (_, node) = existing(system, at, path, false)?;
        if node.kind == FileKind::Directory {
            return Err(Errno::Fs(FsError::IsDirectory));
        }
        let (directory, name) = fresh(system, at, new)?;
        if directory.volume != node.volume {
            return Err(Errno::Fs(FsError::CrossDevice));
        }
        let link = |fs: &Way| fs.link(directory.inode, &name, node.inode);
        change_two(system, (&directory, &node), link)
    })
}

/// A new symbolic link.
///
/// # Errors
/// Those of the file system.
pub fn symlink(
    system: &System,
    at: &Place<Node>,
    path: &[u8],
    target: &RVec<u8>,
) -> Result<(), Errno> {
    look_again(|_| {
        let (directory, name) = fresh(system, at, path)?;
        let symlink = |fs: &Way| fs.symlink(directory.inode, &name, target);
        change(system, &directory, symlink, |outcome| outcome.first).map(|_| ())
    })
}

/// The directory and name of what is to be made.
fn fresh(system: &System, at: &Place<Node>, path: &[u8]) -> Result<(Node, RVec<u8>), Errno> {
    let found = follow_path(system, at, path, false)?;
    if found.node.is_some() {
        return Err(Errno::Fs(FsError::Exists));
    }
    if found.must_be_directory {
        return Err(Errno::Fs(FsError::NotFound));
    }
    changeable(system, &found)
}

/// Changes the permission bits.
///
/// # Errors
/// Those of the file system.
pub fn set_mode(system: &System, at: &Place<Node>, path: &[u8], mode: u16) -> Result<(), Errno> {
    with(system, at, path, |live, inode| {
        live.fs.set_mode(inode, mode)
    })
}

/// Sets when the content was last changed.
///
/// # Errors
/// Those of the file system.
pub fn set_modified(
    system: &System,
    at: &Place<Node>,
    path: &[u8],
    time: u64,
) -> Result<(), Errno> {
    with(system, at, path, |live, inode| {
        live.fs.set_times(inode, None, Some(time))
    })
}

/// How much room there is on the file system of a path.
///
/// # Errors
/// Those of the file system.
pub fn statistics(system: &System, at: &Place<Node>, path: &[u8]) -> Result<FsStatistics, Errno> {
    let (_, node) = existing(system, at, path, true)?;
    let room = system.volumes.ask(node.volume, |live| live.fs.statistics());
    room.map_err(errors::fs)
}

/// Moves a name within one file system.
///
/// # Errors
/// Those of the file system; `CrossDevice` if the two paths are on different ones.
pub fn rename(system: &System, at: &Place<Node>, from: &[u8], to: &[u8]) -> Result<(), Errno> {
    look_again(|_| {
        let (found, node) = existing(system, at, from, false)?;
        let target = follow_path(system, at, to, false)?;
        if target.must_be_directory && node.kind != FileKind::Directory {
            return Err(Errno::Fs(FsError::NotDirectory));
        }
        let (directory, name) = changeable(system, &found)?;
        let (new_directory, new_name) = changeable(system, &target)?;
        if directory.volume != new_directory.volume {
            return Err(Errno::Fs(FsError::CrossDevice));
        }
        let rename = |fs: &Way| {
            let (from, to) = (directory.inode, new_directory.inode);
            fs.rename(from, &name, to, &new_name, Renaming::Replace)
        };
        change_two(system, (&directory, &new_directory), rename)
    })
}

/// The directory at a path, to go to.
///
/// # Errors
/// Those of the file system; `NotDirectory`.
pub fn directory(system: &System, from: &Place<Node>, path: &[u8]) -> Result<Directory, Errno> {
    look_again(|before| {
        let (found, node) = existing(system, from, path, true)?;
        if node.kind != FileKind::Directory {
            return Err(Errno::Fs(FsError::NotDirectory));
        }
        let held = hold(system, &found, node, before)?;
        Ok(Directory {
            place: Place {
                node: *held.node(),
                path: found.path(),
            },
            held,
        })
    })
}
