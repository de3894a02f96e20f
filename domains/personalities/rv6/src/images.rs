//! Verified images, kept so that the next start of a program need not read and verify its file
//! again.

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use domain_rt::time;
use interfaces::{
    Errno, FileKind, FsError, Handle, Image, LoadError, Loader, Metadata, RVec, Text,
};

use crate::errors;
use crate::held::Held;
use crate::volumes::{Node, Volume, Volumes};

/// Largest file that is taken for an image.
const SIZE_LIMIT: u64 = 16 << 20;

/// Most images that are kept, and most bytes of files that they were made from.
const KEPT_LIMIT: usize = 32;
const KEPT_BYTES: u64 = 16 << 20;

/// A file that was changed within this many seconds may be changed again without another time
/// stamp.
const RACY: u64 = 2_000_000_000;

/// Names one content of one file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    volume: Volume,
    inode: u64,
    size: u64,
    modified: u64,
}

/// A verified image.
pub struct Prepared {
    /// The kernel's handle to it.
    pub image: Handle<dyn Image>,
    /// The name that it was built under.
    pub name: Text<32>,
}

/// The images that are kept, the one used last at the end.
pub struct Images {
    loader: Handle<dyn Loader>,
    kept: Mutex<Vec<(Key, Arc<Prepared>)>>,
}

impl Images {
    /// No images yet.
    pub fn new(loader: Handle<dyn Loader>) -> Self {
        Images {
            loader,
            kept: Mutex::new(Vec::new()),
        }
    }

    /// The image in a file.
    ///
    /// # Errors
    /// Those of the file system; `BadImage` if the kernel does not accept it.
    pub fn get(&self, volumes: &Volumes, node: Node) -> Result<Arc<Prepared>, Errno> {
        match node.kind {
            FileKind::Regular => {}
            FileKind::Directory => return Err(Errno::Fs(FsError::IsDirectory)),
            _ => return Err(Errno::BadImage(LoadError::NotAnImage)),
        }
        let metadata = volumes.metadata(&node).map_err(errors::fs)?;
        let key = Key {
            volume: node.volume,
            inode: node.inode,
            size: metadata.size,
            modified: metadata.modified,
        };
        if let Some(known) = self.find(key) {
            return Ok(known);
        }
        let prepared = Arc::new(self.prepare(volumes, node, &metadata)?);
        if metadata.modified.saturating_add(RACY) < time::wall() {
            self.keep(key, prepared.clone());
        }
        Ok(prepared)
    }

    fn find(&self, key: Key) -> Option<Arc<Prepared>> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|(other, _)| *other == key)?;
        kept[at..].rotate_left(1);
        kept.last().map(|(_, prepared)| prepared.clone())
    }

    fn prepare(
        &self,
        volumes: &Volumes,
        node: Node,
        metadata: &Metadata,
    ) -> Result<Prepared, Errno> {
        if metadata.size > SIZE_LIMIT {
            return Err(Errno::BadImage(LoadError::NotAnImage));
        }
        let held = Held::new(volumes, node).map_err(errors::fs)?;
        // The limit fits into any size.
        let read = held.ask(|live| {
            let buffer = RVec::filled(0, metadata.size as usize)?;
            live.fs.read(node.inode, 0, buffer)
        });
        let file = read.map_err(errors::fs)?;
        let image = self.loader.prepare(file).map_err(errors::load)?;
        let name = image.name()?;
        Ok(Prepared { image, name })
    }

    /// Keeps an image, and lets go of those that were not used for the longest time.
    fn keep(&self, key: Key, prepared: Arc<Prepared>) {
        let mut gone = Vec::new();
        let mut kept = self.kept.lock();
        kept.retain(|(other, _)| (other.volume, other.inode) != (key.volume, key.inode));
        kept.push((key, prepared));
        while kept.len() > KEPT_LIMIT || bytes(&kept) > KEPT_BYTES && kept.len() > 1 {
            gone.push(kept.remove(0));
        }
        // Dropping images is a call to the kernel: not under the lock.
        drop(kept);
        drop(gone);
    }
}

fn bytes(kept: &[(Key, Arc<Prepared>)]) -> u64 {
    kept.iter().map(|(key, _)| key.size).sum()
}
