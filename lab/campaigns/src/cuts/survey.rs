//! What is found on an image after a power cut: read by the host's tools, and by the system's own
//! file system code.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow, bail};
use ext2::{BlockDevice, DeviceError, FileKind, FileSystem, SECTOR_SIZE};
use workload::{Found, Tree};

use machine::image::{self, Node};
use trefoil_gate::tool;

/// The directory of the work.
pub const WORK: &str = "w";
/// Bytes of blocks that are kept while an image is read.
const CACHE: usize = 4 << 20;
/// Names that are asked for at once.
const NAMES: usize = 64;

/// Lets the host replay the journal, and do nothing else.
///
/// # Errors
/// If it cannot.
pub fn host_replay(image: &Path) -> Result<()> {
    let mut command = Command::new(tool::need("e2fsck", "e2fsprogs")?);
    command.args(["-y", "-E", "journal_only"]).arg(image);
    let output = tool::captured(&mut command)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        // 1: something was changed.
        Some(0 | 1) => Ok(()),
        code => bail!("the host's replay ended with {code:?}: {text}"),
    }
}

/// The tree in the directory `name` of the root, with the content of files by the host's tools.
/// `folder` is for the copies.
///
/// # Errors
/// If it cannot be read, or is refused ([`machine::image`]).
pub fn host_tree(image: &Path, name: &str, folder: &Path) -> Result<Tree> {
    let read = image::by_host(image, name, folder)?;
    Ok(read.into_iter().map(found).collect())
}

/// A path and what is there, as the work's history has them.
fn found((path, node): (PathBuf, Node)) -> (String, Found) {
    let found = match node {
        Node::Folder => Found::Directory,
        Node::Link(target) => Found::Link(String::from_utf8_lossy(&target).into_owned()),
        Node::File(content) => Found::File(content),
    };
    (path.to_string_lossy().into_owned(), found)
}

/// The tree in a folder of the host.
///
/// # Errors
/// If it cannot be read.
pub fn folder_tree(folder: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    add_folder(folder, "", &mut tree)?;
    Ok(tree)
}

fn add_folder(folder: &Path, below: &str, tree: &mut Tree) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{below}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        let found = if kind.is_dir() {
            add_folder(&entry.path(), &format!("{path}/"), tree)?;
            Found::Directory
        } else if kind.is_symlink() {
            Found::Link(fs::read_link(entry.path())?.display().to_string())
        } else {
            Found::File(fs::read(entry.path())?)
        };
        tree.insert(path, found);
    }
    Ok(())
}

/// An image in memory.
struct Memory(RefCell<Vec<u8>>);

impl BlockDevice for Memory {
    fn read(&self, sector: u64, buf: &mut [u8]) -> std::result::Result<(), DeviceError> {
        let start = sector as usize * SECTOR_SIZE;
        let data = self.0.borrow();
        let from = data.get(start..start + buf.len());
        buf.copy_from_slice(from.ok_or(DeviceError::OutOfRange)?);
        Ok(())
    }

    fn write(&self, sector: u64, buf: &[u8]) -> std::result::Result<(), DeviceError> {
        let start = sector as usize * SECTOR_SIZE;
        let mut data = self.0.borrow_mut();
        let to = data.get_mut(start..start + buf.len());
        to.ok_or(DeviceError::OutOfRange)?.copy_from_slice(buf);
        Ok(())
    }

    fn flush(&self) -> std::result::Result<(), DeviceError> {
        Ok(())
    }

    fn sectors(&self) -> u64 {
        (self.0.borrow().len() / SECTOR_SIZE) as u64
    }
}

/// The tree in [`WORK`] as `lib/fs/ext2` mounts it, and the image after its unmount.
///
/// # Errors
/// If it cannot be mounted or read.
pub fn own_tree(image: Vec<u8>) -> Result<(Tree, Vec<u8>)> {
    let options = ext2::Options {
        read_only: false,
        cache_budget_bytes: CACHE,
        memory_is_short: || false,
        clock: Box::new(ext2::Time::default),
    };
    let failed = |error: ext2::Error| anyhow!("lib/fs/ext2: {error}");
    let mut fs = FileSystem::mount(Memory(RefCell::new(image)), options).map_err(failed)?;
    let root = fs.root();
    let work = fs.lookup(root, WORK.as_bytes()).map_err(failed)?;
    let mut tree = Tree::new();
    add_directory(&mut fs, work, "", &mut tree).map_err(failed)?;
    fs.unmount().map_err(failed)?;
    Ok((tree, fs.into_device().0.into_inner()))
}

fn add_directory(
    fs: &mut FileSystem<Memory>,
    directory: u32,
    below: &str,
    tree: &mut Tree,
) -> std::result::Result<(), ext2::Error> {
    let mut position = 0;
    loop {
        let entries = fs.readdir(directory, position, NAMES)?;
        let Some(last) = entries.last() else {
            return Ok(());
        };
        position = last.next;
        for entry in entries {
            if entry.name == b"." || entry.name == b".." {
                continue;
            }
            let path = format!("{below}{}", String::from_utf8_lossy(&entry.name));
            let about = fs.getattr(entry.ino)?;
            let found = match about.kind {
                FileKind::Directory => {
                    add_directory(fs, entry.ino, &format!("{path}/"), tree)?;
                    Found::Directory
                }
                FileKind::Symlink => {
                    let target = fs.readlink(entry.ino)?;
                    Found::Link(String::from_utf8_lossy(&target).into_owned())
                }
                _ => Found::File(content(fs, entry.ino, about.size)?),
            };
            tree.insert(path, found);
        }
    }
}

fn content(
    fs: &mut FileSystem<Memory>,
    ino: u32,
    size: u64,
) -> std::result::Result<Vec<u8>, ext2::Error> {
    let mut bytes = vec![0; size as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match fs.read(ino, filled as u64, &mut bytes[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
