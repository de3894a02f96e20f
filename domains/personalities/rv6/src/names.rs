//! Directories and the names in them.

use interfaces::{
    Errno, FileKind, FileSystem, FsError, FsStatistics, Handle, Metadata, RVec, Renaming,
};
use respawn::Buffer;
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
    let found = walk(&system.volumes, from, path, follow).map_err(errors::walk)?;
    let node = found.node.ok_or(Errno::Fs(FsError::NotFound))?;
    if found.must_be_directory && node.kind != FileKind::Directory {
        return Err(Errno::Fs(FsError::NotDirectory));
    }
    Ok((found, node))
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
    if let Some((_, of)) = volumes.at_once(from, path).map_err(errors::fs)? {
        return Ok(of);
    }
    let (_, node) = existing(system, from, path, follow)?;
    volumes.metadata(&node).map_err(errors::fs)
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
    let (_, node) = existing(system, from, path, false)?;
    if node.kind != FileKind::Symlink {
        return Err(Errno::Invalid);
    }
    let mut buffer = Buffer::new(buffer);
    let target = system.volumes.ask(node.volume, |live| {
        live.fs.read_link(node.inode, buffer.take()?)
    });
    target.map_err(errors::fs)
}

/// A new directory.
///
/// # Errors
/// Those of the file system.
pub fn make_directory(system: &System, from: &Place<Node>, path: &[u8]) -> Result<(), Errno> {
    let found = walk(&system.volumes, from, path, false).map_err(errors::walk)?;
    if found.node.is_some() {
        return Err(Errno::Fs(FsError::Exists));
    }
    let (directory, name) = changeable(system, &found)?;
    let create = |fs: &Way| fs.create(directory.inode, &name, FileKind::Directory, MODE);
    let made = system
        .volumes
        .change(directory.volume, create, |outcome| outcome.first);
    made.map(|_| ()).map_err(errors::fs)
}

/// Removes a name that is not a directory's.
///
/// # Errors
/// Those of the file system.
pub fn unlink(system: &System, from: &Place<Node>, path: &[u8]) -> Result<(), Errno> {
    let (found, node) = existing(system, from, path, false)?;
    if node.kind == FileKind::Directory {
        return Err(Errno::Fs(FsError::IsDirectory));
    }
    let (directory, name) = changeable(system, &found)?;
    let remove = |fs: &Way| fs.unlink(directory.inode, &name);
    let removed = system.volumes.change(directory.volume, remove, |_| ());
    removed.map_err(errors::fs)
}

/// Removes an empty directory.
///
/// # Errors
/// Those of the file system; `Busy` for mount points and the root.
pub fn remove_directory(system: &System, from: &Place<Node>, path: &[u8]) -> Result<(), Errno> {
    let (found, node) = existing(system, from, path, false)?;
    if node.kind != FileKind::Directory {
        return Err(Errno::Fs(FsError::NotDirectory));
    }
    let (directory, name) = changeable(system, &found)?;
    let remove = |fs: &Way| fs.remove_directory(directory.inode, &name);
    let removed = system.volumes.change(directory.volume, remove, |_| ());
    removed.map_err(errors::fs)
}

/// Gives a file another name.
///
/// # Errors
/// Those of the file system; `CrossDevice` if the two paths are on different ones.
pub fn link(system: &System, at: &Place<Node>, path: &[u8], new: &[u8]) -> Result<(), Errno> {
    let (_, node) = existing(system, at, path, false)?;
    if node.kind == FileKind::Directory {
        return Err(Errno::Fs(FsError::IsDirectory));
    }
    let (directory, name) = fresh(system, at, new)?;
    if directory.volume != node.volume {
        return Err(Errno::Fs(FsError::CrossDevice));
    }
    let link = |fs: &Way| fs.link(directory.inode, &name, node.inode);
    let linked = system.volumes.change(directory.volume, link, |_| ());
    linked.map_err(errors::fs)
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
    let (directory, name) = fresh(system, at, path)?;
    let symlink = |fs: &Way| fs.symlink(directory.inode, &name, target);
    let made = system
        .volumes
        .change(directory.volume, symlink, |outcome| outcome.first);
    made.map(|_| ()).map_err(errors::fs)
}

/// The directory and name of what is to be made.
fn fresh(system: &System, at: &Place<Node>, path: &[u8]) -> Result<(Node, RVec<u8>), Errno> {
    let found = walk(&system.volumes, at, path, false).map_err(errors::walk)?;
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
    let (_, node) = existing(system, at, path, true)?;
    let set = system
        .volumes
        .ask(node.volume, |live| live.fs.set_mode(node.inode, mode));
    set.map_err(errors::fs)
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
    let (_, node) = existing(system, at, path, true)?;
    let set = system.volumes.ask(node.volume, |live| {
        live.fs.set_times(node.inode, None, Some(time))
    });
    set.map_err(errors::fs)
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
    let (found, node) = existing(system, at, from, false)?;
    let target = walk(&system.volumes, at, to, false).map_err(errors::walk)?;
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
    let moved = system.volumes.change(directory.volume, rename, |_| ());
    moved.map_err(errors::fs)
}

/// The directory at a path, to go to.
///
/// # Errors
/// Those of the file system; `NotDirectory`.
pub fn directory(system: &System, from: &Place<Node>, path: &[u8]) -> Result<Directory, Errno> {
    let (found, node) = existing(system, from, path, true)?;
    if node.kind != FileKind::Directory {
        return Err(Errno::Fs(FsError::NotDirectory));
    }
    let held = Held::new(&system.volumes, node).map_err(errors::fs)?;
    Ok(Directory {
        place: Place {
            node,
            path: found.path(),
        },
        held,
    })
}
