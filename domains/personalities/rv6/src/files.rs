//! Opening files and directories.

use interfaces::{Errno, FileKind, FileSystem, FsError, Handle, OpenFlags, RVec};
use vfs::walk::{Found, Place, walk};

use crate::description::{Description, OpenDirectory, OpenFile};
use crate::errors;
use crate::held::Held;
use crate::names;
use crate::special::Special;
use crate::system::System;
use crate::volumes::{Node, node_of};

/// Permission bits of new files.
const MODE: u16 = 0o644;

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
    names::look_again(|before| {
        let volumes = &system.volumes;
        if before == 0
            && !flags.create
            && let Some((node, _)) = volumes.at_once(from, path).map_err(errors::fs)?
        {
            return open_found(system, node, flags, || {
                Held::new(volumes, node).map_err(errors::fs)
            });
        }
        open_led(system, from, path, flags, before)
    })
}

/// Opens what the path leads to, or makes it.
fn open_led(
    system: &System,
    from: &Place<Node>,
    path: &[u8],
    flags: OpenFlags,
    before: u32,
) -> Result<Description, Errno> {
    let exclusive = flags.create && flags.exclusive;
    let found = walk(&system.volumes, from, path, !exclusive).map_err(errors::walk)?;
    let node = match found.node {
        Some(_) if exclusive => return Err(Errno::Fs(FsError::Exists)),
        Some(node) => node,
        None if flags.create => {
            let made = create(system, &found);
            let opened = made.and_then(|node| open_new(system, node, flags));
            return opened.map_err(|error| unless_faster(error, flags));
        }
        None => return Err(Errno::Fs(FsError::NotFound)),
    };
    if found.must_be_directory && node.kind != FileKind::Directory {
        return Err(Errno::Fs(FsError::NotDirectory));
    }
    let hold = || names::hold(system, &found, node, before);
    open_found(system, node, flags, hold).map_err(|error| unless_faster(error, flags))
}

/// An error, which is that one has to look again where somebody else was faster, to remove a file
/// or to make it.
fn unless_faster(error: Errno, flags: OpenFlags) -> Errno {
    match error {
        Errno::Fs(FsError::NotFound) if flags.create => Errno::Fs(FsError::Stale),
        Errno::Fs(FsError::Exists) if !flags.exclusive => Errno::Fs(FsError::Stale),
        error => error,
    }
}

/// Opens a file that was made for it: it is empty, and can be written to.
fn open_new(system: &System, node: Node, flags: OpenFlags) -> Result<Description, Errno> {
    let held = Held::new(&system.volumes, node).map_err(errors::fs)?;
    if flags.truncate {
        held.note_written();
    }
    Ok(Description::File(OpenFile::new(held, flags)))
}

/// Makes the file that was not found.
fn create(system: &System, found: &Found<Node>) -> Result<Node, Errno> {
    if found.must_be_directory {
        return Err(Errno::Fs(FsError::IsDirectory));
    }
    let (volumes, directory) = (&system.volumes, names::writable(&found.directory.node)?);
    let name = RVec::from_slice(&found.name)?;
    let create =
        |fs: &Handle<dyn FileSystem>| fs.create(directory.inode, &name, FileKind::Regular, MODE);
    let on = [Some(directory.known()), None];
    let made = volumes.change(directory.volume, on, create, |outcome| outcome.first);
    let made = made.map_err(errors::fs)?;
    // Somebody may have removed it already, and its number may be another's.
    let there = volumes.ask(directory.volume, |live| live.find(directory.known(), &name));
    let there = there.map_err(errors::fs)?.filter(|of| of.inode == made);
    let of = there.ok_or(Errno::Fs(FsError::Stale))?;
    Ok(node_of(directory.volume, &of))
}

/// Opens a node, which `hold` holds.
fn open_found(
    system: &System,
    node: Node,
    flags: OpenFlags,
    hold: impl FnOnce() -> Result<Held, Errno>,
) -> Result<Description, Errno> {
    if let Some(special) = system.volumes.special(&node) {
        return Ok(Description::Special(special));
    }
    match node.kind {
        FileKind::Directory if flags.write => Err(Errno::Fs(FsError::IsDirectory)),
        FileKind::Directory => Ok(Description::Directory(OpenDirectory::new(hold()?))),
        FileKind::Regular => open_file(hold()?, flags).map_err(errors::fs),
        // No device, pipe or socket is reached by its name.
        _ => Err(Errno::Fs(FsError::Unsupported)),
    }
}

fn open_file(held: Held, flags: OpenFlags) -> Result<Description, FsError> {
    if flags.write && held.ask(|live| live.fs.statistics())?.read_only {
        return Err(FsError::ReadOnly);
    }
    if flags.truncate {
        held.ask(|live| live.fs.truncate(held.node().inode, 0))?;
        held.note_written();
    }
    Ok(Description::File(OpenFile::new(held, flags)))
}
