//! The tree of files as one process sees it, and how paths lead through it: over the disk, over
//! what is made when it is asked for (`/dev`, `/proc`, `/sys`), and over the boot archive. Where a
//! process stands is a directory, not a text: it stays the same one when it, or one above it, gets
//! another name.
//!
//! The user 0 may look up everything, so the file system follows several names at once for it. For
//! others each name is asked for alone, and the mode of each directory on the way counts.

use crate::disk::{self, Disk};
use crate::errno::{EACCES, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ESTALE, Error};
use crate::files::{Directory, Open};
use crate::special::Special;
use crate::system::System;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use interfaces::FileKind;
use linux::cred::{Cred, EXECUTE};
use linux::files::{Attributes, DIRECTORY, KIND, LINK};
use mounts::Seat;
use vfs::walk::{self, Found, Leap, Place, Tree, WalkError};

/// The longest name of a path.
const LONGEST_NAME: usize = 255;
/// The most directories between one and the root whose names are asked for.
const DEEPEST: usize = 2048;
/// How often one asks where a directory is while others move it.
const ATTEMPTS: usize = 16;
/// What stands in the root and is not on the disk.
const COVERED: [&[u8]; 3] = [b"dev", b"proc", b"sys"];

/// A directory of the disk, which stays while this is there.
pub struct Folder {
    pub disk: Arc<Disk>,
    pub seat: Arc<Seat>,
    /// Where it was when somebody asked last, from the root on; empty: nobody knows.
    hint: Mutex<Vec<u8>>,
}

/// A directory that a process stands in or has open.
#[derive(Clone)]
pub enum Stand {
    Disk(Arc<Folder>),
    /// Made when it is asked for, or in the archive: the path from the root on.
    Made(Vec<u8>),
}

/// What a path leads to.
#[derive(Clone)]
pub enum Node {
    Disk(disk::Node),
    /// Made when it is asked for, or in the archive, with its path from the root on.
    Made(Vec<u8>, Arc<Special>),
    /// Something that a process has open, and no directory.
    Open(Arc<Open>),
}

/// Where a path leads.
pub struct Led {
    /// The directory that the last name is in.
    pub directory: Node,
    /// The last name; empty: the path ends with the root, `.`, `..`, or what a process has open.
    pub name: Vec<u8>,
    /// What it leads to.
    pub node: Option<Node>,
    /// The path from the root on, without links; empty: not known.
    pub path: Vec<u8>,
    /// A slash stands behind the last name.
    pub slash: bool,
}

/// The tree as a process sees it.
pub struct View<'a> {
    pub system: &'a Arc<System>,
    pub cred: &'a Cred,
    /// The number of the process; 0: of none.
    pub own: u32,
}

/// Where paths begin that begin with a slash.
const ROOT: Stand = Stand::Made(Vec::new());

fn wrong(error: WalkError<Error>) -> Error {
    match error {
        WalkError::NotFound => ENOENT,
        WalkError::NotDirectory => ENOTDIR,
        WalkError::Loop => ELOOP,
        WalkError::TooLong => ENAMETOOLONG,
        WalkError::Tree(error) => error,
    }
}

impl Folder {
    fn node(&self) -> Node {
        Node::Disk(disk::Node::held(self.seat.inode(), FileKind::Directory))
    }
}

impl View<'_> {
    /// Where a path leads from a directory on; with `follows` also through a symbolic link at its
    /// end.
    ///
    /// # Errors
    /// Linux's; `ESTALE`: names were changed meanwhile, and one looks again.
    pub fn walk(&self, start: &Stand, path: &[u8], follows: bool) -> Result<Led, Error> {
        // From the root on it is anyway, which would be asked for again.
        let (start, path) = match path.iter().position(|byte| *byte != b'/') {
            None if path.is_empty() => return Err(ENOENT),
            None => (&ROOT, &b"/"[..]),
            Some(0) => (start, path),
            Some(first) => (&ROOT, &path[first..]),
        };
        let mut place = self.place(start)?;
        let found = match walk::walk(self, &place, path, follows) {
            // No more than the text of where it leads is too long.
            Err(WalkError::TooLong) => {
                place.path.clear();
                walk::walk(self, &place, path, follows)
            }
            found => found,
        };
        let found = found.map_err(wrong)?;
        if found.must_be_directory && found.node.as_ref().is_some_and(|it| !self.is_directory(it)) {
            return Err(ENOTDIR);
        }
        Ok(Led::from(found))
    }

    /// Where a process stands.
    fn place(&self, start: &Stand) -> Result<Place<Node>, Error> {
        match start {
            Stand::Disk(folder) => Ok(Place {
                node: folder.node(),
                path: folder.hint.lock().clone(),
            }),
            Stand::Made(path) if path.is_empty() => Ok(Place {
                node: self.root()?,
                path: b"/".to_vec(),
            }),
            Stand::Made(path) => Ok(Place {
                node: self.made_node(path.clone())?.ok_or(ENOENT)?,
                path: [b"/", &path[..]].concat(),
            }),
        }
    }

    fn disk(&self) -> Result<&Arc<Disk>, Error> {
        self.system.disk.as_ref().ok_or(ENOENT)
    }

    /// What there is at a path from the root on that is not on the disk.
    fn made_node(&self, path: Vec<u8>) -> Result<Option<Node>, Error> {
        match self.special(&path) {
            Ok(special) => Ok(Some(Node::Made(path, Arc::new(special)))),
            Err(ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What `stat` tells of something.
    ///
    /// # Errors
    /// The disk's.
    pub fn attributes(&self, node: &Node) -> Result<Attributes, Error> {
        match node {
            Node::Disk(node) => Ok(disk::attributes(&self.disk()?.of(node)?)),
            Node::Made(path, special) => self.made_attributes(path, special),
            Node::Open(open) => open.attributes(),
        }
    }

    /// The directory that a path has led to, which stays from now on.
    ///
    /// # Errors
    /// `ENOTDIR`; the disk's; `ESTALE`.
    pub fn stand(&self, led: &Led, before: u32) -> Result<Stand, Error> {
        match led.node.as_ref().ok_or(ENOENT)? {
            node if !self.is_directory(node) => Err(ENOTDIR),
            Node::Disk(node) => {
                let disk = self.disk()?;
                let (_, seat) = disk.take(led, node, before)?;
                Ok(Stand::Disk(Arc::new(Folder {
                    disk: disk.clone(),
                    seat,
                    hint: Mutex::new(led.path.clone()),
                })))
            }
            Node::Made(path, _) => Ok(Stand::Made(path.clone())),
            Node::Open(_) => Err(ENOTDIR),
        }
    }

    /// The path of a directory from the root on.
    ///
    /// # Errors
    /// `ENOENT`: it was removed. The disk's.
    pub fn path_of(&self, stand: &Stand) -> Result<Vec<u8>, Error> {
        let folder = match stand {
            Stand::Made(path) => return Ok([b"/", &path[..]].concat()),
            Stand::Disk(folder) => folder,
        };
        if folder.disk.attributes_of(&folder.seat)?.links == 0 {
            return Err(ENOENT);
        }
        let hint = folder.hint.lock().clone();
        if self.leads_to(&hint, folder.seat.inode()) {
            return Ok(hint);
        }
        let mut found = Err(ENOENT);
        for _ in 0..ATTEMPTS {
            found = self.climb(folder);
            if found != Err(ENOENT) && found != Err(ESTALE) {
                break;
            }
        }
        let found = found.map_err(|error| if error == ESTALE { ENOENT } else { error })?;
        folder.hint.lock().clone_from(&found);
        Ok(found)
    }

    /// What a link says that leads to what a process has open.
    pub fn text_of(&self, open: &Open) -> Vec<u8> {
        let gone = |path: &[u8]| [path, b" (deleted)"].concat();
        match open {
            Open::Directory(directory) => {
                match (self.path_of(&directory.stand), &directory.stand) {
                    (Ok(path), _) => path,
                    (Err(_), Stand::Disk(folder)) => gone(&folder.hint.lock()),
                    (Err(_), Stand::Made(path)) => gone(path),
                }
            }
            Open::Disk(open) => match self.leads_to(&open.path, open.file.node().1) {
                true => open.path.clone(),
                false => gone(&open.path),
            },
            open => open.name(),
        }
    }

    /// Whether a path from the root on leads to this inode, whoever may see that.
    fn leads_to(&self, path: &[u8], inode: u64) -> bool {
        let all = View {
            cred: &Cred::default(),
            ..*self
        };
        let led = all.walk(&ROOT, path, false);
        let node = led.ok().and_then(|led| led.node);
        matches!(node, Some(Node::Disk(node)) if node.inode() == inode)
    }

    /// The path of a directory by the names that those above it have for it.
    fn climb(&self, folder: &Folder) -> Result<Vec<u8>, Error> {
        let disk = &folder.disk;
        let mut at = disk::Node::held(folder.seat.inode(), FileKind::Directory);
        let mut names = Vec::new();
        for _ in 0..DEEPEST {
            if disk.is_root(&at)? {
                names.extend((!disk.name.is_empty()).then(|| disk.name.to_vec()));
                names.reverse();
                return Ok([b"/", &names.join(&b'/')[..]].concat());
            }
            let parent = disk.find(&at, b"..")?.ok_or(ENOENT)?;
            names.push(disk.name_in(&parent, at.inode())?.ok_or(ENOENT)?);
            at = parent;
        }
        Err(ENAMETOOLONG)
    }

    fn below_disk(&self, node: &disk::Node, name: &[u8]) -> Result<Option<Node>, Error> {
        let disk = self.disk()?;
        let is_special = name == b".." || COVERED.contains(&name);
        if is_special && disk.is_root(node)? {
            match name {
                b".." => return self.root().map(Some),
                name if self.system.is_rooted() => return self.made_node(name.to_vec()),
                _ => {}
            }
        }
        Ok(disk.find(node, name)?.map(Node::Disk))
    }

    fn below_made(&self, path: &[u8], name: &[u8]) -> Result<Option<Node>, Error> {
        if name == b".." {
            return match path.iter().rposition(|byte| *byte == b'/') {
                Some(end) => self.made_node(path[..end].to_vec()),
                None => self.root().map(Some),
            };
        }
        let mut below = path.to_vec();
        if !below.is_empty() {
            below.push(b'/');
        }
        below.extend_from_slice(name);
        match &self.system.disk {
            Some(disk) if !disk.name.is_empty() && below == disk.name => {
                disk.root().map(Node::Disk).map(Some)
            }
            _ => self.made_node(below),
        }
    }
}

impl From<Found<Node>> for Led {
    fn from(found: Found<Node>) -> Self {
        Led {
            path: found.path(),
            directory: found.directory.node,
            name: found.name,
            node: found.node,
            slash: found.must_be_directory,
        }
    }
}

impl Tree for View<'_> {
    type Node = Node;
    type Error = Error;

    fn root(&self) -> Result<Node, Error> {
        match self.system.is_rooted() {
            true => self.disk()?.root().map(Node::Disk),
            false => self.made_node(Vec::new())?.ok_or(ENOENT),
        }
    }

    fn look_up(&self, directory: &Node, name: &[u8]) -> Result<Option<Node>, Error> {
        match directory {
            _ if name.len() > LONGEST_NAME => Err(ENAMETOOLONG),
            Node::Disk(node) => self.below_disk(node, name),
            Node::Made(path, _) => self.below_made(path, name),
            Node::Open(_) => Err(ENOTDIR),
        }
    }

    fn leap(&self, directory: &Node, path: &[u8]) -> Result<Option<Leap<Node>>, Error> {
        let Node::Disk(node) = directory else {
            return Ok(None);
        };
        let names = path.split(|byte| *byte == b'/');
        let first = names.into_iter().find(|name| !name.is_empty());
        let disk = self.disk()?;
        match first {
            _ if !self.cred.has_all_files() => return Ok(None),
            None | Some(b"." | b"..") => return Ok(None),
            Some(name) if COVERED.contains(&name) && disk.is_root(node)? => return Ok(None),
            Some(_) => {}
        }
        let leap = disk.leap(node, path)?;
        Ok(leap.map(|leap| Leap {
            used: leap.used,
            directory: Node::Disk(leap.directory),
            node: leap.node.map(Node::Disk),
        }))
    }

    fn target(&self, node: &Node) -> Result<Option<Vec<u8>>, Error> {
        match node {
            Node::Disk(node) => self.disk()?.target(node),
            Node::Made(_, special) => match &**special {
                Special::Link(target) => Ok(Some(target.clone())),
                _ => Ok(None),
            },
            Node::Open(_) => Ok(None),
        }
    }

    fn is_directory(&self, node: &Node) -> bool {
        match node {
            Node::Disk(node) => node.is_directory(),
            Node::Made(_, special) => matches!(**special, Special::Directory(_)),
            Node::Open(_) => false,
        }
    }

    fn enter(&self, directory: &Node) -> Result<(), Error> {
        match self.cred.has_all_files() {
            true => Ok(()),
            false => self.cred.check(&self.attributes(directory)?, EXECUTE),
        }
    }

    fn follow(&self, directory: &Node, link: &Node) -> Result<(), Error> {
        let of = self.attributes(link)?;
        let is_own = of.user == self.cred.user.files || of.mode & KIND != LINK;
        match is_own || self.cred.may_follow(&self.attributes(directory)?, &of) {
            true => Ok(()),
            false => Err(EACCES),
        }
    }

    fn jump(&self, node: &Node) -> Result<Option<Place<Node>>, Error> {
        let Node::Made(_, special) = node else {
            return Ok(None);
        };
        let Special::Magic(id, open) = &**special else {
            return Ok(None);
        };
        self.look_into(*id)?;
        if let Open::Directory(Directory { stand, .. }) = &**open {
            return self.place(stand).map(Some);
        }
        Ok(Some(Place {
            node: Node::Open(open.clone()),
            path: Vec::new(),
        }))
    }
}

/// Whether attributes are a directory's.
pub fn is_directory(of: &Attributes) -> bool {
    of.mode & KIND == DIRECTORY
}
