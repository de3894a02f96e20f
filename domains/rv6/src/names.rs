//! Directories and the names in them.

use interfaces::{Errno, FileKind, FsError, Metadata, RVec};
use vfs::walk::{Found, Place, walk};

use crate::errors;
use crate::held::Held;
use crate::process::Directory;
use crate::system::System;
use crate::volumes::{Node, Volume};

/// Permission bits of new directories.
const MODE: u16 = 0o755;

/// Where a path leads, and that something is there.
fn existing(
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
        Volume::Empty => Err(Errno::Fs(FsError::ReadOnly)),
        _ => Ok(*directory),
    }
}

/// The directory and name of what is to be changed, which is neither a root nor the mount point.
fn changeable(system: &System, found: &Found<Node>) -> Result<(Node, RVec<u8>), Errno> {
    let directory = found.directory.node;
    let mounted = system
        .volumes
        .is_mount_name(&directory, &found.name)
        .map_err(errors::fs)?;
    if found.name.is_empty() || mounted {
        return Err(Errno::Invalid);
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
    let (_, node) = existing(system, from, path, follow)?;
    system.volumes.metadata(&node).map_err(errors::fs)
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
    let target = system
        .volumes
        .call(node.volume, |live| live.fs.read_link(node.inode, buffer));
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
    let made = system.volumes.call(directory.volume, |live| {
        live.fs
            .create(directory.inode, &name, FileKind::Directory, MODE)
    });
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
    let removed = system.volumes.call(directory.volume, |live| {
        live.fs.unlink(directory.inode, &name)
    });
    removed.map_err(errors::fs)
}

/// Removes an empty directory.
///
/// # Errors
/// Those of the file system; `Invalid` for roots and the mount point.
pub fn remove_directory(system: &System, from: &Place<Node>, path: &[u8]) -> Result<(), Errno> {
    let (found, node) = existing(system, from, path, false)?;
    if node.kind != FileKind::Directory {
        return Err(Errno::Fs(FsError::NotDirectory));
    }
    let (directory, name) = changeable(system, &found)?;
    let removed = system.volumes.call(directory.volume, |live| {
        live.fs.remove_directory(directory.inode, &name)
    });
    removed.map_err(errors::fs)
}

/// Moves a name within one file system.
///
/// # Errors
/// Those of the file system; `Unsupported` if the two paths are on different ones.
pub fn rename(system: &System, at: &Place<Node>, from: &[u8], to: &[u8]) -> Result<(), Errno> {
    let (found, node) = existing(system, at, from, false)?;
    let target = walk(&system.volumes, at, to, false).map_err(errors::walk)?;
    if target.must_be_directory && node.kind != FileKind::Directory {
        return Err(Errno::Fs(FsError::NotDirectory));
    }
    let (directory, name) = changeable(system, &found)?;
    let (new_directory, new_name) = changeable(system, &target)?;
    if directory.volume != new_directory.volume {
        return Err(Errno::Fs(FsError::Unsupported));
    }
    let moved = system.volumes.call(directory.volume, |live| {
        live.fs
            .rename(directory.inode, &name, new_directory.inode, &new_name)
    });
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
