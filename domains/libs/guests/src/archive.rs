//! The boot archive as a tree of files, which cannot be changed.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use interfaces::{Archive, Handle, RVec, RpcResult};
use linux::errno::{EIO, ENOMEM, Error};
use linux::files::resolve;

/// A file of the archive.
#[derive(Clone, Copy)]
pub struct File {
    index: u32,
    /// Its bytes.
    pub size: u64,
}

/// What a path leads to.
pub enum Node {
    /// A file.
    File(File),
    /// A directory, with its path, without a slash at the beginning or end.
    Directory(Vec<u8>),
}

/// All files.
pub struct Files {
    archive: Handle<dyn Archive>,
    /// In the order of the archive.
    paths: Vec<(Vec<u8>, File)>,
    /// The program behind each name in `/bin`.
    program: &'static [u8],
}

impl Files {
    /// Reads the archive's list. Each name in `/bin` is the program that is called `program` there.
    ///
    /// # Errors
    /// The archive's.
    pub fn new(archive: Handle<dyn Archive>, program: &'static [u8]) -> RpcResult<Self> {
        let mut paths = Vec::new();
        for index in 0.. {
            let Some(entry) = archive.entry(index)? else {
                break;
            };
            let size = entry.size;
            paths.push((Vec::from(entry.path.as_str()), File { index, size }));
        }
        Ok(Files {
            archive,
            paths,
            program,
        })
    }

    /// What `path` leads to, from the directory `from` on.
    pub fn find(&self, from: &[u8], path: &[u8]) -> Option<Node> {
        let path = resolve(from, path);
        let file = self.paths.iter().find(|(there, _)| *there == path);
        if let Some((_, file)) = file {
            return Some(Node::File(*file));
        }
        let is_below =
            |there: &[u8]| there.starts_with(&path) && there.get(path.len()) == Some(&b'/');
        let is_directory = path.is_empty() || self.paths.iter().any(|(there, _)| is_below(there));
        is_directory.then_some(Node::Directory(path))
    }

    /// The program at `path`.
    pub fn program(&self, path: &[u8]) -> Option<File> {
        let path = resolve(b"", path);
        let name = path
            .strip_prefix(b"bin/")
            .filter(|name| !name.contains(&b'/'));
        let path = if name.is_some() { self.program } else { &path };
        match self.find(b"", path) {
            Some(Node::File(file)) => Some(file),
            _ => None,
        }
    }

    /// The names in a directory, and whether they are directories.
    pub fn names(&self, directory: &[u8]) -> BTreeSet<(Vec<u8>, bool)> {
        let below = self.paths.iter().filter_map(|(path, _)| match directory {
            b"" => Some(&path[..]),
            _ => path.strip_prefix(directory)?.strip_prefix(b"/"),
        });
        let name = |rest: &[u8]| match rest.iter().position(|byte| *byte == b'/') {
            Some(end) => (Vec::from(&rest[..end]), true),
            None => (Vec::from(rest), false),
        };
        below.map(name).collect()
    }

    /// All of a file.
    ///
    /// # Errors
    /// `ENOMEM`, and those of [`read`](Self::read).
    pub fn content(&self, file: File) -> Result<Vec<u8>, Error> {
        let mut content = Vec::new();
        let size = file.size as usize;
        content.try_reserve_exact(size).map_err(|_| ENOMEM)?;
        while content.len() < size {
            let piece = self.read(file, content.len() as u64, 256 << 10)?;
            if piece.is_empty() {
                break;
            }
            content.extend_from_slice(&piece);
        }
        Ok(content)
    }

    /// Bytes from `offset` on, `count` at most; none at the end.
    ///
    /// # Errors
    /// `ENOMEM`; `EIO`: the archive's.
    pub fn read(&self, file: File, offset: u64, count: usize) -> Result<RVec<u8>, Error> {
        let buffer = RVec::filled(0, count).map_err(|_| ENOMEM)?;
        let read = self.archive.read(file.index, offset, buffer);
        read.map_err(|_| EIO)
    }
}
