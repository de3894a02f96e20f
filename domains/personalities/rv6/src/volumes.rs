//! The file systems as one tree: the root file system, and others mounted over names in it.
//!
//! A mount point is a name in a directory; whether that directory has such a name itself makes no
//! difference, so a root file system without `/boot` can have something mounted there all the same.
//! Without a root file system `/` is an empty directory with nothing in it but mount points.
//!
//! Each file system is mounted for itself: when one crashes or has an error, the others go on.

use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::{FileKind, FileSystem, FsError, Handle, LaneOutcome, Metadata, RVec, Walked};
use mounts::{Known, Live, Mount};
use vfs::walk::{Leap, Place, Tree};

use crate::mount_table::{MountTable, Origin, Point};
use crate::special::{self, Special};

/// The inode of the empty root directory.
const EMPTY_ROOT: u64 = 1;

/// Longest target of a symbolic link.
const TARGET_LIMIT: usize = 4096;

/// A mounted file system by its number. Numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume(pub u32);

impl Volume {
    /// The empty root directory that is there if nothing else is.
    pub const EMPTY: Volume = Volume(0);
}

/// A file, directory or link of some file system.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// On which file system.
    pub volume: Volume,
    /// Its inode number there.
    pub inode: u64,
    /// What it is.
    pub kind: FileKind,
    /// Its generation, where a name has led to it; `None`: it is held, or cannot go.
    pub life: Option<u32>,
}

/// Whether they have the same number. Which life of it is meant is a matter of who acts by it.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        (self.volume, self.inode) == (other.volume, other.inode)
    }
}

impl Eq for Node {}

impl Node {
    /// As its file system knows it.
    pub fn known(&self) -> Known {
        Known {
            inode: self.inode,
            life: self.life,
        }
    }

    /// The same, held.
    pub fn held(self) -> Self {
        Node { life: None, ..self }
    }
}

/// The root directory that is there if nothing else is.
pub const EMPTY: Node = Node {
    volume: Volume::EMPTY,
    inode: EMPTY_ROOT,
    kind: FileKind::Directory,
    life: None,
};

/// All file systems.
pub struct Volumes {
    /// What is mounted where.
    pub mounts: MountTable,
    /// The directory of devices.
    devices: Volume,
}

impl Volumes {
    /// Nothing is mounted yet.
    pub fn new() -> Self {
        Volumes {
            mounts: MountTable::new(),
            devices: Volume::EMPTY,
        }
    }

    /// Mounts the directory of [`Special`] files.
    ///
    /// # Errors
    /// The table's.
    pub fn mount_devices(&mut self, devices: Mount) -> Result<(), FsError> {
        let point = Point::Top(b"dev".as_slice().into());
        let mounted = self
            .mounts
            .add("dev", Origin::System, point, b"/dev", devices);
        self.devices = mounted?;
        Ok(())
    }

    /// The device that a node stands for.
    pub fn special(&self, node: &Node) -> Option<Special> {
        let here = node.volume == self.devices;
        Special::numbered(node.inode).filter(|_| here)
    }

    /// The instance that serves a volume now.
    ///
    /// # Errors
    /// [`FsError::Down`] if there is none; [`FsError::Device`] if it is not mounted any more;
    /// [`FsError::Unsupported`] for the empty root directory.
    pub fn live(&self, volume: Volume) -> Result<Arc<Live>, FsError> {
        if volume == Volume::EMPTY {
            return Err(FsError::Unsupported);
        }
        let mount = self.mounts.get(volume).ok_or(FsError::Device)?;
        mount.live()?.ok_or(FsError::Down)
    }

    fn mount(&self, volume: Volume) -> Result<Arc<Mount>, FsError> {
        match volume {
            Volume::EMPTY => Err(FsError::Unsupported),
            volume => self.mounts.get(volume).ok_or(FsError::Device),
        }
    }

    /// Has the file system of a volume do what may be done twice; see [`Mount::ask`].
    ///
    /// # Errors
    /// As there; as [`live`](Self::live).
    pub fn ask<T>(
        &self,
        volume: Volume,
        question: impl FnMut(&Live) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        self.mount(volume)?.ask(question)
    }

    /// Makes a change that must not be made twice; see [`Mount::change`].
    ///
    /// # Errors
    /// As there; as [`live`](Self::live).
    pub fn change<T>(
        &self,
        volume: Volume,
        on: [Option<Known>; 2],
        operation: impl FnMut(&Handle<dyn FileSystem>) -> Result<T, FsError>,
        found: impl Fn(&LaneOutcome) -> T,
    ) -> Result<T, FsError> {
        self.mount(volume)?.change(on, operation, found)
    }

    /// What is known of a node.
    ///
    /// # Errors
    /// The file system's; `Stale`: it lives no more.
    pub fn metadata(&self, node: &Node) -> Result<Metadata, FsError> {
        if node.volume == Volume::EMPTY {
            return Ok(special::metadata(EMPTY_ROOT, FileKind::Directory, 0o555, 3));
        }
        self.ask(node.volume, |live| live.metadata(node.known()))
    }

    /// What is at `path`, if one walk on one file system leads there, and to no symbolic link.
    ///
    /// # Errors
    /// The file system's. That nothing is there is none: it has to be said by who walks slowly.
    pub fn at_once(
        &self,
        from: &Place<Node>,
        path: &[u8],
    ) -> Result<Option<(Node, Metadata)>, FsError> {
        let start = match path.first() {
            Some(b'/') => self.root()?,
            _ => from.node,
        };
        let Some(walked) = self.walk(&start, path)? else {
            return Ok(None);
        };
        let Walked { used, found, .. } = walked;
        let whole = used == path.len() as u64;
        let found = found.filter(|of| whole && of.kind != FileKind::Symlink);
        Ok(found.map(|of| (node_of(start.volume, &of), of)))
    }

    /// Has the file system walk, as far as nothing is mounted on the way. `None`: it does not, or
    /// not even one name.
    fn walk(&self, from: &Node, path: &[u8]) -> Result<Option<Walked>, FsError> {
        if from.volume == Volume::EMPTY {
            return Ok(None);
        }
        let is_top = || Ok(self.root()? == *from);
        if !self.live(from.volume)?.walks() || self.mounts.bars(from, path, is_top)? {
            return Ok(None);
        }
        let path = RVec::from_slice(path)?;
        let walked = self.ask(from.volume, |live| live.walk(from.known(), &path))?;
        Ok(walked.filter(|walked| walked.used > 0))
    }

    /// Brings everything on all volumes to their disks.
    ///
    /// # Errors
    /// The first of the file systems'; the others are synced all the same.
    pub fn sync(&self) -> Result<(), FsError> {
        let mut result = Ok(());
        for mount in self.mounts.all() {
            result = result.and(mount.sync());
        }
        result
    }

    /// What is mounted over `name` in `directory`.
    ///
    /// # Errors
    /// The file system's.
    pub fn mounted(&self, directory: &Node, name: &[u8]) -> Result<Option<Volume>, FsError> {
        let top = || Ok(self.root()? == *directory);
        self.mounts.over(directory, name, top)
    }

    /// The names in `directory` over which something is mounted, and that the directory itself does
    /// not have.
    ///
    /// # Errors
    /// The file system's.
    pub fn mounted_names(&self, directory: &Node) -> Result<Vec<Vec<u8>>, FsError> {
        let is_top = self.root()? == *directory;
        let mut names = self.mounts.names_in(directory, is_top);
        let mut result = Ok(());
        names.retain(|name| match self.look_up_in(directory, name) {
            Ok(found) => found.is_none(),
            Err(error) => {
                result = Err(error);
                false
            }
        });
        result.map(|()| names)
    }

    fn is_root_of_volume(&self, node: &Node) -> Result<bool, FsError> {
        match node.volume {
            Volume::EMPTY => Ok(true),
            volume => Ok(self.live(volume)?.root == node.inode),
        }
    }

    fn root_of(&self, volume: Volume) -> Result<Node, FsError> {
        let inode = self.live(volume)?.root;
        Ok(Node {
            volume,
            inode,
            ..EMPTY
        })
    }

    /// What the file system itself has under `name`.
    fn look_up_in(&self, directory: &Node, name: &[u8]) -> Result<Option<Node>, FsError> {
        let volume = directory.volume;
        if volume == Volume::EMPTY {
            return Ok(None);
        }
        let name = RVec::from_slice(name)?;
        let found = self.ask(volume, |live| live.find(directory.known(), &name))?;
        Ok(found.map(|of| node_of(volume, &of)))
    }

    /// The directory above the root of a volume.
    fn above(&self, volume: Volume) -> Result<Node, FsError> {
        match self.mounts.point(volume) {
            Some(Point::In { directory, .. }) => Ok(directory),
            _ => self.root(),
        }
    }
}

/// The node that this is known of.
pub fn node_of(volume: Volume, of: &Metadata) -> Node {
    Node {
        volume,
        inode: of.inode,
        kind: of.kind,
        life: Some(of.generation),
    }
}

impl Tree for Volumes {
    type Node = Node;
    type Error = FsError;

    fn root(&self) -> Result<Node, FsError> {
        let Some((volume, mount)) = self.mounts.root() else {
            return Ok(EMPTY);
        };
        let live = mount.live()?;
        Ok(live.map_or(EMPTY, |live| Node {
            volume,
            inode: live.root,
            ..EMPTY
        }))
    }

    fn look_up(&self, directory: &Node, name: &[u8]) -> Result<Option<Node>, FsError> {
        if let Some(volume) = self.mounted(directory, name)? {
            return self.root_of(volume).map(Some);
        }
        if name == b".." && self.is_root_of_volume(directory)? {
            return self.above(directory.volume).map(Some);
        }
        self.look_up_in(directory, name)
    }

    fn leap(&self, directory: &Node, path: &[u8]) -> Result<Option<Leap<Node>>, FsError> {
        let Some(walked) = self.walk(directory, path)? else {
            return Ok(None);
        };
        let volume = directory.volume;
        Ok(Some(Leap {
            used: usize::try_from(walked.used).unwrap_or(usize::MAX),
            directory: match walked.directory == directory.inode {
                true => *directory,
                false => Node {
                    volume,
                    inode: walked.directory,
                    kind: FileKind::Directory,
                    life: walked.life,
                },
            },
            node: walked.found.map(|of| node_of(volume, &of)),
        }))
    }

    fn target(&self, node: &Node) -> Result<Option<Vec<u8>>, FsError> {
        if node.kind != FileKind::Symlink {
            return Ok(None);
        }
        let target = self.ask(node.volume, |live| {
            let buffer = RVec::filled(0, TARGET_LIMIT)?;
            live.target(node.known(), buffer)
        })?;
        Ok(Some(target.to_vec()))
    }

    fn is_directory(&self, node: &Node) -> bool {
        node.kind == FileKind::Directory
    }
}
