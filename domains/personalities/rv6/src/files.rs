//! Opening files and directories.

use interfaces::{Errno, FileKind, FileSystem, FsError, Handle, OpenFlags, RVec};
use vfs::walk::{Found, Place, walk};

use crate::description::{Description, OpenDirectory, OpenFile};
use crate::errors;
use crate::held::Held;
use crate::names;
use crate::special::Special;
use crate::system::System;
use crate::volumes::Node;

/// Permission bits of new files.
const MODE: u16 = 0o644;
/// How often a path is gone again if what it led to is removed before it is opened.
const ATTEMPTS: u32 = 8;

/// Opens what is at `path`.
///
/// # Errors
/// Those of the file system; `Invalid` if the flags make no sense together.
pub fn open(
    system: &System,
    from: &Place<Node>,
    path: &[u8],
    flags: OpenFlags,
) -> Result<Description, Errno> {
    let changes = flags.create || flags.truncate || flags.append;
    if (changes || !flags.read) && !flags.write {
        return Err(Errno::Invalid);
    }
    if let Some(special) = Special::at(path) {
        return Ok(Description::Special(special));
    }
    let volumes = &system.volumes;
    if !flags.create
        && let Some((node, _)) = volumes.at_once(from, path).map_err(errors::fs)?
    {
        return open_found(system, node, flags);
    }
    for _ in 1..ATTEMPTS {
        match open_led(system, from, path, flags) {
            // Somebody removes it meanwhile: then it is made.
            Err(Errno::Fs(FsError::NotFound)) if flags.create => {}
            opened => return opened,
        }
    }
    open_led(system, from, path, flags)
}

/// Opens what the path leads to, or makes it.
fn open_led(
    system: &System,
    from: &Place<Node>,
    path: &[u8],
    flags: OpenFlags,
) -> Result<Description, Errno> {
    let exclusive = flags.create && flags.exclusive;
    let found = walk(&system.volumes, from, path, !exclusive).map_err(errors::walk)?;
    let (node, is_new) = match found.node {
        Some(_) if exclusive => return Err(Errno::Fs(FsError::Exists)),
        Some(node) => (node, false),
        None if flags.create => create(system, &found, exclusive)?,
        None => return Err(Errno::Fs(FsError::NotFound)),
    };
    if found.must_be_directory && node.kind != FileKind::Directory {
        return Err(Errno::Fs(FsError::NotDirectory));
    }
    match is_new {
        true => open_new(system, node, flags).map_err(errors::fs),
        false => open_found(system, node, flags),
    }
}

/// Opens a file that was made for it: it is empty, and can be written to.
fn open_new(system: &System, node: Node, flags: OpenFlags) -> Result<Description, FsError> {
    let held = Held::new(&system.volumes, node)?;
    if flags.truncate {
        held.note_written();
    }
    Ok(Description::File(OpenFile::new(held, flags)))
}

fn open_found(system: &System, node: Node, flags: OpenFlags) -> Result<Description, Errno> {
    if let Some(special) = system.volumes.special(&node) {
        return Ok(Description::Special(special));
    }
    open_node(system, node, flags).map_err(errors::fs)
}

/// Makes the file that was not found; whether it was this call that made it.
fn create(system: &System, found: &Found<Node>, exclusive: bool) -> Result<(Node, bool), Errno> {
    if found.must_be_directory {
        return Err(Errno::Fs(FsError::IsDirectory));
    }
    let directory = names::writable(&found.directory.node)?;
    let name = RVec::from_slice(&found.name)?;
    let create = |fs: &Handle<dyn FileSystem>| {
        match fs.create(directory.inode, &name, FileKind::Regular, MODE) {
            // Somebody else was faster; that is as good.
            Err(FsError::Exists) if !exclusive => Ok((fs.lookup(directory.inode, &name)?, false)),
            made => Ok((made?, true)),
        }
    };
    let made = system
        .volumes
        .change(directory.volume, create, |outcome| (outcome.first, true));
    let (inode, is_new) = made.map_err(errors::fs)?;
    let node = Node {
        inode,
        kind: FileKind::Regular,
        ..directory
    };
    if is_new {
        return Ok((node, true));
    }
    let kind = system.volumes.metadata(&node).map_err(errors::fs)?.kind;
    Ok((Node { kind, ..node }, false))
}

fn open_node(system: &System, node: Node, flags: OpenFlags) -> Result<Description, FsError> {
    let volumes = &system.volumes;
    match node.kind {
        FileKind::Directory if flags.write => Err(FsError::IsDirectory),
        FileKind::Directory => Ok(Description::Directory(OpenDirectory::new(Held::new(
            volumes, node,
        )?))),
        FileKind::Regular => {
            let held = Held::new(volumes, node)?;
            if flags.write && held.ask(|live| live.fs.statistics())?.read_only {
                return Err(FsError::ReadOnly);
            }
            if flags.truncate {
                held.ask(|live| live.fs.truncate(node.inode, 0))?;
                held.note_written();
            }
            Ok(Description::File(OpenFile::new(held, flags)))
        }
        // No device, pipe or socket is reached by its name.
        _ => Err(FsError::Unsupported),
    }
}
