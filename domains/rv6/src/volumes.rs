//! The file systems as one tree: the root file system, and the boot file system under `/boot`.
//!
//! Without a root file system `/` is an empty directory in which there is only `boot`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::{FileKind, FsError, Handle, Metadata, RVec, Respawn};
use vfs::walk::Tree;

use crate::mount::{Live, Mount};

/// The name of the mount point in the root directory.
pub const BOOT: &[u8] = b"boot";

/// The inode of the empty root directory.
const EMPTY_ROOT: u64 = 1;

/// Longest target of a symbolic link.
const TARGET_LIMIT: usize = 4096;

/// A file system by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// The empty root directory that is there if nothing else is.
    Empty,
    /// The root file system.
    Root,
    /// The boot file system.
    Boot,
}

/// A file, directory or link of some file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// On which file system.
    pub volume: Volume,
    /// Its inode number there.
    pub inode: u64,
    /// What it is.
    pub kind: FileKind,
}

/// The root directory that is there if nothing else is.
const EMPTY: Node = Node {
    volume: Volume::Empty,
    inode: EMPTY_ROOT,
    kind: FileKind::Directory,
};

/// All file systems.
pub struct Volumes {
    root: Option<Mount>,
    boot: Mount,
}

impl Volumes {
    /// The file systems behind these, which are not touched yet.
    pub fn new(root: Option<Handle<dyn Respawn>>, boot: Handle<dyn Respawn>) -> Self {
        Volumes {
            root: root.map(|respawn| Mount::new("/", respawn)),
            boot: Mount::new("/boot", boot),
        }
    }

    fn mount(&self, volume: Volume) -> Option<&Mount> {
        match volume {
            Volume::Empty => None,
            Volume::Root => self.root.as_ref(),
            Volume::Boot => Some(&self.boot),
        }
    }

    /// The instance that serves a volume now.
    ///
    /// # Errors
    /// [`FsError::Device`] if there is none; [`FsError::Unsupported`] for the empty root directory.
    pub fn live(&self, volume: Volume) -> Result<Arc<Live>, FsError> {
        let mount = self.mount(volume).ok_or(FsError::Unsupported)?;
        mount.live()?.ok_or(FsError::Device)
    }

    /// Passes on the result of a call to an instance of a volume; see [`Mount::settle`].
    ///
    /// # Errors
    /// As there.
    pub fn settle<T>(
        &self,
        volume: Volume,
        live: &Live,
        result: Result<T, FsError>,
    ) -> Result<T, FsError> {
        match self.mount(volume) {
            Some(mount) => mount.settle(live, result),
            None => result,
        }
    }

    /// Calls the file system of a volume.
    ///
    /// # Errors
    /// The file system's; as [`live`](Self::live) and [`settle`](Self::settle).
    pub fn call<T>(
        &self,
        volume: Volume,
        operation: impl FnOnce(&Live) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        let live = self.live(volume)?;
        let result = operation(&live);
        self.settle(volume, &live, result)
    }

    /// What is known of a node.
    ///
    /// # Errors
    /// The file system's.
    pub fn metadata(&self, node: &Node) -> Result<Metadata, FsError> {
        if node.volume == Volume::Empty {
            return Ok(empty_metadata());
        }
        self.call(node.volume, |live| live.fs.metadata(node.inode))
    }

    /// Brings everything on all volumes to their disks.
    ///
    /// # Errors
    /// The file systems'.
    pub fn sync(&self) -> Result<(), FsError> {
        let Some(mount) = &self.root else {
            return Ok(());
        };
        match mount.live()? {
            Some(live) => mount.settle(&live, live.fs.sync()),
            None => Ok(()),
        }
    }

    /// Whether `name` in `directory` is the mount point's.
    pub fn is_mount_name(&self, directory: &Node, name: &[u8]) -> Result<bool, FsError> {
        let in_root = directory.volume != Volume::Boot && name == BOOT;
        Ok(in_root && self.is_root_of_volume(directory)?)
    }

    fn is_root_of_volume(&self, node: &Node) -> Result<bool, FsError> {
        match node.volume {
            Volume::Empty => Ok(true),
            volume => Ok(self.live(volume)?.root == node.inode),
        }
    }

    fn root_of(&self, volume: Volume) -> Result<Node, FsError> {
        let inode = self.live(volume)?.root;
        Ok(Node {
            volume,
            inode,
            kind: FileKind::Directory,
        })
    }
}

impl Tree for Volumes {
    type Node = Node;
    type Error = FsError;

    fn root(&self) -> Result<Node, FsError> {
        let live = match &self.root {
            Some(mount) => mount.live()?,
            None => None,
        };
        Ok(live.map_or(EMPTY, |live| Node {
            volume: Volume::Root,
            inode: live.root,
            ..EMPTY
        }))
    }

    fn look_up(&self, directory: &Node, name: &[u8]) -> Result<Option<Node>, FsError> {
        if self.is_mount_name(directory, name)? {
            return self.root_of(Volume::Boot).map(Some);
        }
        if name == b".." && self.is_root_of_volume(directory)? {
            return self.root().map(Some);
        }
        let volume = directory.volume;
        if volume == Volume::Empty {
            return Ok(None);
        }
        let name = RVec::from_slice(name)?;
        let found = self.call(volume, |live| {
            let inode = live.fs.lookup(directory.inode, &name)?;
            live.fs.metadata(inode)
        });
        match found {
            Ok(of) => Ok(Some(Node {
                volume,
                inode: of.inode,
                kind: of.kind,
            })),
            Err(FsError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn target(&self, node: &Node) -> Result<Option<Vec<u8>>, FsError> {
        if node.kind != FileKind::Symlink {
            return Ok(None);
        }
        let buffer = RVec::filled(0, TARGET_LIMIT)?;
        let target = self.call(node.volume, |live| live.fs.read_link(node.inode, buffer))?;
        Ok(Some(target.to_vec()))
    }

    fn is_directory(&self, node: &Node) -> bool {
        node.kind == FileKind::Directory
    }
}

fn empty_metadata() -> Metadata {
    Metadata {
        inode: EMPTY_ROOT,
        kind: FileKind::Directory,
        mode: 0o555,
        links: 3,
        size: 0,
        allocated: 0,
        modified: 0,
        user: 0,
        group: 0,
    }
}
