//! What is on a disk image, by the system's own file system code, which believes nothing that an
//! image says.
//!
//! Whoever wrote an image chose its names, its links and its numbers, so a name of it never becomes
//! a name on the host: what is read comes back in memory, and nothing is written here. (Host tools
//! that copy a folder out of an image, as debugfs does with `rdump`, make a path of each name, and
//! one with `../` in it leads to any file of the host.) Refused is what no file system of ours has:
//! names that mean something in a path, folders with two names, nodes of devices, more or larger
//! files than there is sense in.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use ext2::{DirectoryEntry, FileKind, FileSystem, Time};

use crate::sectors::Sectors;
use trefoil_gate::tool;

/// Bytes of blocks that are kept.
const CACHE: usize = 4 << 20;
/// Names that are asked for at once.
const NAMES: usize = 64;
/// Bytes of a file that are asked for at once.
const PIECE: usize = 1 << 20;
/// The most that is read of one image: names, folders in each other, bytes in memory.
const MOST: Most = Most {
    names: 200_000,
    levels: 200,
    bytes: 512 << 20,
};

struct Most {
    names: usize,
    levels: usize,
    bytes: u64,
}

/// A file, a folder or a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A folder, whose files are further entries of the tree.
    Folder,
    /// A link, and where it says that it leads. Nobody follows it.
    Link(Vec<u8>),
    /// A file with this content.
    File(Vec<u8>),
}

/// What is below a folder, by the path from there.
pub type Tree = BTreeMap<PathBuf, Node>;

/// A file system in a file.
pub struct Image {
    fs: FileSystem<Sectors>,
    name: PathBuf,
    /// What may still be read.
    left: Most,
}

impl Image {
    /// Opens the file system in `file`, for reading. A journal is replayed in memory.
    ///
    /// # Errors
    /// If the file cannot be read, or holds nothing that can be mounted.
    pub fn open(file: &Path) -> Result<Image> {
        Image::mount(file, true)
    }

    /// The same, for changes. They are complete when [`finish`](Image::finish) is.
    ///
    /// # Errors
    /// As [`open`](Image::open).
    pub fn open_to_change(file: &Path) -> Result<Image> {
        Image::mount(file, false)
    }

    fn mount(file: &Path, read_only: bool) -> Result<Image> {
        let opened = File::options().read(true).write(!read_only).open(file);
        let opened = opened.with_context(|| format!("cannot open {}", file.display()))?;
        let options = ext2::Options {
            read_only,
            cache_budget_bytes: CACHE,
            memory_is_short: || false,
            clock: Box::new(now),
        };
        let fs = FileSystem::mount(Sectors::of(opened)?, options)
            .with_context(|| format!("{} cannot be mounted", file.display()))?;
        Ok(Image {
            fs,
            name: file.to_path_buf(),
            left: MOST,
        })
    }

    /// The number of the inode at `path`, from the root; links are not followed. `None` if there is
    /// none.
    ///
    /// # Errors
    /// If a folder on the way cannot be read.
    pub fn find(&mut self, path: &str) -> Result<Option<u32>> {
        let mut at = self.fs.root();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = match self.fs.lookup(at, name.as_bytes()) {
                Ok(found) => found,
                Err(ext2::Error::NotFound | ext2::Error::NotDirectory) => return Ok(None),
                Err(error) => return Err(error).with_context(|| self.at(path)),
            };
        }
        Ok(Some(at))
    }

    /// What is in the file at `path`, from the root; links are not followed.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be read or is too large.
    pub fn file(&mut self, path: &str) -> Result<Vec<u8>> {
        let found = self.find(path)?;
        let found = found.with_context(|| format!("no {path} on {}", self.name.display()))?;
        self.content(found).with_context(|| self.at(path))
    }

    /// Where the link at `path` says that it leads; `None` if no link is there.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn target(&mut self, path: &str) -> Result<Option<String>> {
        let Some(found) = self.find(path)? else {
            return Ok(None);
        };
        let about = self.fs.getattr(found).with_context(|| self.at(path))?;
        if about.kind != FileKind::Symlink {
            return Ok(None);
        }
        let target = self.link(found).with_context(|| self.at(path))?;
        Ok(Some(String::from_utf8_lossy(&target).into_owned()))
    }

    /// All that is below the folder at `path`, from the root.
    ///
    /// # Errors
    /// If there is no such folder, or something in it is not as it may be.
    pub fn tree(&mut self, path: &str) -> Result<Tree> {
        let mut tree = Tree::new();
        for (path, inode, kind) in self.walk(path)? {
            let node = match kind {
                FileKind::Directory => Ok(Node::Folder),
                FileKind::Symlink => self.link(inode).map(Node::Link),
                _ => self.content(inode).map(Node::File),
            };
            let node = node.with_context(|| self.at(&shown(path.as_os_str().as_bytes())))?;
            tree.insert(path, node);
        }
        Ok(tree)
    }

    /// The names in the folder at `path`, but for `.` and `..`; none if there is no such folder.
    ///
    /// # Errors
    /// If it cannot be read, or has a name that may not be.
    pub fn names(&mut self, path: &str) -> Result<Vec<Vec<u8>>> {
        let Some(folder) = self.find(path)? else {
            return Ok(Vec::new());
        };
        let entries = self.entries(folder, None).with_context(|| self.at(path))?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    /// What is below a folder, with inodes and kinds: each folder before what is in it.
    fn walk(&mut self, path: &str) -> Result<Vec<(PathBuf, u32, FileKind)>> {
        let top = self.find(path)?;
        let top = top.with_context(|| format!("no {path} on {}", self.name.display()))?;
        let mut seen = BTreeSet::from([self.fs.root(), top]);
        let (mut found, mut folders) = (Vec::new(), vec![(PathBuf::new(), top, None)]);
        while let Some((below, folder, parent)) = folders.pop() {
            let place = self.at(&format!("{path}/{}", shown(below.as_os_str().as_bytes())));
            let entries = self.entries(folder, parent);
            for entry in entries.with_context(|| place.clone())? {
                let path = below.join(OsStr::from_bytes(&entry.name));
                self.take(path.as_os_str().len() as u64)?;
                let kind = self.kind_of(&entry).with_context(|| place.clone())?;
                if kind == FileKind::Directory {
                    ensure!(
                        seen.insert(entry.ino),
                        "{place}: the folder \"{}\" has another name already",
                        shown(&entry.name)
                    );
                    let levels = path.components().count();
                    ensure!(levels <= self.left.levels, "{place}: folders too deep");
                    folders.push((path.clone(), entry.ino, Some(folder)));
                }
                found.push((path, entry.ino, kind));
            }
        }
        Ok(found)
    }

    /// What an entry names: a file, a folder or a link, or else it is refused.
    fn kind_of(&mut self, entry: &DirectoryEntry) -> Result<FileKind> {
        let about = self.fs.getattr(entry.ino);
        let kind = about.with_context(|| shown(&entry.name))?.kind;
        match kind {
            FileKind::Regular | FileKind::Directory | FileKind::Symlink => Ok(kind),
            other => bail!(
                "\"{}\" is a {other:?}, which no test or tool makes there",
                shown(&entry.name)
            ),
        }
    }

    /// The entries of a folder but for `.` and `..`, each with a name that may be. The folder is
    /// that of `parent`, if one is given.
    fn entries(&mut self, folder: u32, parent: Option<u32>) -> Result<Vec<DirectoryEntry>> {
        let (mut position, mut found) = (0, Vec::new());
        let (mut seen, mut dots) = (BTreeSet::new(), 0);
        loop {
            let some = self.fs.readdir(folder, position, NAMES)?;
            let Some(last) = some.last() else {
                return Ok(found);
            };
            ensure!(last.next > position, "its entries do not end");
            position = last.next;
            for entry in some {
                let left = self.left.names.checked_sub(1);
                self.left.names = left.context("more names than are read")?;
                let is_dot = entry.name == b".";
                if is_dot || entry.name == b".." {
                    let there = if is_dot { Some(folder) } else { parent };
                    dots += 1;
                    let is_right = there.is_none_or(|there| there == entry.ino);
                    ensure!(
                        is_right && dots <= 2,
                        "its entry \"{}\" leads astray",
                        shown(&entry.name)
                    );
                    continue;
                }
                check_name(&entry.name)?;
                ensure!(
                    seen.insert(entry.name.clone()),
                    "it has \"{}\" twice",
                    shown(&entry.name)
                );
                found.push(entry);
            }
        }
    }

    /// The target of a link.
    fn link(&mut self, inode: u32) -> Result<Vec<u8>> {
        let target = self.fs.readlink(inode)?;
        self.take(target.len() as u64)?;
        Ok(target)
    }

    /// What is in a file.
    fn content(&mut self, inode: u32) -> Result<Vec<u8>> {
        let length = self.length(inode)?;
        let mut bytes = Vec::new();
        let mut piece = vec![0; PIECE];
        while (bytes.len() as u64) < length {
            let count = self.fs.read(inode, bytes.len() as u64, &mut piece)?;
            ensure!(count > 0, "it ends before its length");
            bytes.extend_from_slice(&piece[..count]);
        }
        Ok(bytes)
    }

    /// How long a file is, which is counted as read.
    fn length(&mut self, inode: u32) -> Result<u64> {
        let about = self.fs.getattr(inode)?;
        ensure!(
            about.kind == FileKind::Regular,
            "it is no file but a {:?}",
            about.kind
        );
        self.take(about.size)?;
        Ok(about.size)
    }

    /// Counts bytes that are to be kept, of names, targets and contents.
    fn take(&mut self, bytes: u64) -> Result<()> {
        let left = self.left.bytes.checked_sub(bytes);
        let why = || format!("its {bytes} bytes are more than is read of an image");
        self.left.bytes = left.with_context(why)?;
        Ok(())
    }

    /// The folder at `path`, from the root; made if it is not there, with those above.
    ///
    /// # Errors
    /// If something else has its name, or there is no room.
    pub fn folder(&mut self, path: &str) -> Result<u32> {
        let mut at = self.fs.root();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = match self.fs.lookup(at, name.as_bytes()) {
                Err(ext2::Error::NotFound) => self.fs.mkdir(at, name.as_bytes(), 0o755),
                found => found,
            }
            .with_context(|| self.at(path))?;
            let kind = self.fs.getattr(at).with_context(|| self.at(path))?.kind;
            ensure!(
                kind == FileKind::Directory,
                "{}: it is no folder",
                self.at(path)
            );
        }
        Ok(at)
    }

    /// Makes a file in a folder, in place of what has its name; `mode` are its permissions.
    ///
    /// # Errors
    /// If it may not be called so, a folder is, or there is no room.
    pub fn put(&mut self, folder: u32, name: &str, mode: u16, content: &[u8]) -> Result<()> {
        check_name(name.as_bytes())?;
        self.remove(folder, name)?;
        let mut put = || -> std::result::Result<(), ext2::Error> {
            let file = self.fs.create(folder, name.as_bytes(), mode)?;
            let mut written = 0;
            while written < content.len() {
                written += self.fs.write(file, written as u64, &content[written..])?;
            }
            Ok(())
        };
        put().with_context(|| self.at(name))
    }

    /// Removes a name of a file in a folder, if it is there.
    ///
    /// # Errors
    /// If it is that of a folder, or cannot be removed.
    pub fn remove(&mut self, folder: u32, name: &str) -> Result<()> {
        match self.fs.unlink(folder, name.as_bytes()) {
            Ok(()) | Err(ext2::Error::NotFound) => Ok(()),
            Err(error) => Err(error).with_context(|| self.at(name)),
        }
    }

    /// Brings all changes to the file.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn finish(mut self) -> Result<()> {
        self.fs
            .unmount()
            .with_context(|| self.name.display().to_string())
    }

    fn at(&self, path: &str) -> String {
        format!("{}: {path}", self.name.display())
    }
}

/// The tree below the folder at `path` of the image in `file`, with the content of files as the
/// host's tool reads it, which is another opinion than the system's own. `folder` is for the
/// copies, which are called by numbers.
///
/// # Errors
/// As [`Image::tree`]; if the tool fails.
pub fn by_host(file: &Path, path: &str, folder: &Path) -> Result<Tree> {
    let mut image = Image::open(file)?;
    // The host's tool does not look into a journal.
    if image.fs.replayed().is_some() {
        return image.tree(path);
    }
    let (mut tree, mut files) = (Tree::new(), Vec::new());
    for (path, inode, kind) in image.walk(path)? {
        let node = match kind {
            FileKind::Symlink => Node::Link(image.link(inode)?),
            FileKind::Directory => Node::Folder,
            _ => {
                image.length(inode)?;
                files.push((path.clone(), inode));
                continue;
            }
        };
        tree.insert(path, node);
    }
    let inodes: Vec<u32> = files.iter().map(|(_, inode)| *inode).collect();
    let contents = dumped(file, &inodes, folder)?;
    let files = files.into_iter().map(|(path, _)| path);
    tree.extend(files.zip(contents.into_iter().map(Node::File)));
    Ok(tree)
}

/// The content of the file at `path` of the image in `file`, as the host's tool reads it. `folder`
/// is for a copy.
///
/// # Errors
/// As [`Image::file`]; if the tool fails.
pub fn file_by_host(file: &Path, path: &str, folder: &Path) -> Result<Vec<u8>> {
    let mut image = Image::open(file)?;
    if image.fs.replayed().is_some() {
        return image.file(path);
    }
    let inode = image.find(path)?;
    let inode = inode.with_context(|| format!("no {path} on {}", file.display()))?;
    image.length(inode).with_context(|| image.at(path))?;
    let contents = dumped(file, &[inode], folder)?;
    contents.into_iter().next().context("one was asked for")
}

/// What is in the files with these inodes, as debugfs reads it. It is told numbers, and no names.
fn dumped(file: &Path, inodes: &[u32], folder: &Path) -> Result<Vec<Vec<u8>>> {
    let file = file.canonicalize()?;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let own = folder.join(format!("dumped-{}-{number}", std::process::id()));
    fs::create_dir(&own).with_context(|| format!("cannot make {}", own.display()))?;
    let script: String = (0..inodes.len())
        .map(|number| format!("dump <{}> {number}\n", inodes[number]))
        .collect();
    let mut command = Command::new(tool::need("debugfs", "e2fsprogs")?);
    command.args(["-f", "-"]).arg(&file).current_dir(&own);
    let read = fed(&mut command, &script).and_then(|_| {
        let content = |number| fs::read(own.join(format!("{number}")));
        let contents: std::io::Result<_> = (0..inodes.len()).map(content).collect();
        contents.with_context(|| format!("debugfs cannot read all of {}", file.display()))
    });
    fs::remove_dir_all(&own)?;
    read
}

/// What `command` prints, which reads `input`.
///
/// # Errors
/// If it cannot be started, or fails.
pub(crate) fn fed(command: &mut Command, input: &str) -> Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let mut pipe = child.stdin.take().context("it was asked for")?;
    let input = input.to_string();
    // It may print before it has read everything.
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    let written = writer.join();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(
        output.status.success(),
        "{:?} failed: {}",
        command.get_program(),
        said.trim_end()
    );
    ensure!(
        matches!(written, Ok(Ok(()))),
        "{:?} did not read its commands",
        command.get_program()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Fails if a name would mean something else in a path than a file in a folder.
fn check_name(name: &[u8]) -> Result<()> {
    let is_special = name.is_empty() || name == b"." || name == b"..";
    ensure!(
        !is_special && !name.contains(&b'/') && !name.contains(&0),
        "\"{}\" is no name of a file",
        shown(name)
    );
    Ok(())
}

/// A name, for messages: what is no plain letter is escaped.
fn shown(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}

fn now() -> Time {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Time::from_nanoseconds(u64::try_from(since.as_nanos()).unwrap_or_default())
}

#[cfg(test)]
mod tests;
