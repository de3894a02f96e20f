//! Changes of a file system, and the file system that they are asked of.

use core::ops::Deref;

use crate::intent::SETTING;

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, or anything else; never made by [`Action::Create`].
    Other,
}

/// A change, without the inodes that it is about: they stand beside it as `[first, second]`. `S` is
/// what can be set of an inode ([`Target::Setting`]).
#[derive(Clone, Debug)]
pub enum Action<D, S> {
    /// Writes into the file `first`.
    Write {
        /// Where.
        offset: u64,
        /// What.
        data: D,
    },
    /// Sets the length of the file `first`.
    Truncate {
        /// In bytes.
        size: u64,
    },
    /// Sets something of `first`. Done twice it is as if done once.
    Set(S),
    /// Makes a file or directory in the directory `first`.
    Create {
        /// Its name.
        name: D,
        /// What it is.
        kind: Kind,
        /// Permission bits.
        mode: u16,
    },
    /// Makes a device, pipe or socket in the directory `first`.
    Node {
        /// Its name.
        name: D,
        /// What it is.
        node: Node,
    },
    /// Makes a symbolic link in the directory `first`.
    Symlink {
        /// Its name.
        name: D,
        /// Where it leads.
        target: D,
    },
    /// Gives the file `second` a name in the directory `first`.
    Link {
        /// The name.
        name: D,
    },
    /// Removes a name in the directory `first`.
    Unlink {
        /// The name.
        name: D,
    },
    /// Removes an empty directory in the directory `first`.
    RemoveDirectory {
        /// Its name.
        name: D,
    },
    /// Moves a name from the directory `first` to the directory `second`.
    Rename {
        /// The name in `first`.
        name: D,
        /// The name in `second`.
        new_name: D,
    },
    /// Has a name in the directory `first` and one in the directory `second` lead to what the other
    /// led to.
    Exchange {
        /// The name in `first`.
        name: D,
        /// The name in `second`.
        new_name: D,
    },
}

/// A device, pipe or socket. What its parts mean is the affair of who makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: u8,
    /// Permission bits.
    pub mode: u16,
    /// The number of a device.
    pub device: u32,
}

impl<D: Deref<Target = [u8]>, S> Action<D, S> {
    /// The names that it changes: in `first`, in `second`.
    pub fn names(&self) -> [Option<&D>; 2] {
        match self {
            Action::Write { .. } | Action::Truncate { .. } | Action::Set(_) => [None, None],
            Action::Create { name, .. }
            | Action::Node { name, .. }
            | Action::Symlink { name, .. }
            | Action::Link { name }
            | Action::Unlink { name }
            | Action::RemoveDirectory { name } => [Some(name), None],
            Action::Rename { name, new_name } | Action::Exchange { name, new_name } => {
                [Some(name), Some(new_name)]
            }
        }
    }

    /// Whether it changes no name.
    pub fn is_content(&self) -> bool {
        self.names()[0].is_none()
    }

    /// Whether it makes an inode.
    pub fn makes(&self) -> bool {
        matches!(
            self,
            Action::Create { .. } | Action::Node { .. } | Action::Symlink { .. }
        )
    }

    /// Bytes in it.
    pub fn weight(&self) -> usize {
        let names = self.names().into_iter().flatten().map(|name| name.len());
        let more = match self {
            Action::Write { data, .. } => data.len(),
            Action::Symlink { target, .. } => target.len(),
            _ => 0,
        };
        names.sum::<usize>() + more
    }
}

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// The inode that was made.
    Made(u64),
    /// How many bytes were written.
    Wrote(u64),
}

/// What must be known of an inode.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// What it is.
    pub kind: Kind,
    /// Number of its names.
    pub links: u32,
    /// Length in bytes.
    pub size: u64,
}

/// What an error means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The instance is dead.
    Dead,
    /// It could not be tried; later it may go: memory, device, the caller's death.
    Trouble,
    /// The file system's answer: there is no such inode or name.
    Missing,
    /// Another answer of the file system.
    Answer,
}

/// An error that does not come from the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no such inode or name.
    Missing,
    /// The name is there already.
    Exists,
    /// Instance after instance died.
    Failed,
}

/// One instance of a file system. Clones are the same instance. Inodes are its own numbers.
pub trait Target: Clone {
    /// Bytes: a name or content.
    type Data: Deref<Target = [u8]>;
    /// What can be set of an inode, such as its permission bits. This library only repeats it.
    type Setting;
    /// Why something failed.
    type Error;
    /// Keeps an inode alive.
    type Kept;
    /// What is remembered of an inode.
    type Known;

    /// Tells instances apart.
    fn id(&self) -> u32;
    /// The inode of the root directory: the same for all instances.
    fn root(&self) -> u64;
    /// The inode of the directory for hidden names: the same for all instances, from when it was
    /// first told.
    ///
    /// # Errors
    /// The file system's.
    fn unnamed(&self) -> Result<u64, Self::Error>;
    /// What a name leads to.
    ///
    /// # Errors
    /// The file system's.
    fn look_up(&self, directory: u64, name: &Self::Data) -> Result<u64, Self::Error>;
    /// What is known of an inode.
    ///
    /// # Errors
    /// The file system's.
    fn facts(&self, inode: u64) -> Result<Facts, Self::Error>;
    /// Makes a change.
    ///
    /// # Errors
    /// The file system's.
    fn perform(
        &self,
        action: &Action<Self::Data, Self::Setting>,
        on: [u64; 2],
    ) -> Result<Outcome, Self::Error>;
    /// Writes into a file; how many bytes.
    ///
    /// # Errors
    /// The file system's.
    fn write(&self, inode: u64, offset: u64, data: &Self::Data) -> Result<u64, Self::Error>;
    /// Keeps an inode alive, also without a name.
    ///
    /// # Errors
    /// The file system's.
    fn keep(&self, inode: u64) -> Result<Self::Kept, Self::Error>;
    /// Returns when everything would survive a crash.
    ///
    /// # Errors
    /// The file system's.
    fn commit(&self) -> Result<(), Self::Error>;
    /// Returns when everything is on the disk.
    ///
    /// # Errors
    /// The file system's.
    fn sync(&self) -> Result<(), Self::Error>;
    /// What can be set of an inode, as bytes, in a place of zeros. `None`: there is no form for it.
    fn pack_setting(setting: &Self::Setting, place: &mut [u8; SETTING]) -> Option<()>;
    /// The same again. `None`: these are not such bytes.
    fn unpack_setting(bytes: &[u8; SETTING]) -> Option<Self::Setting>;
    /// Bytes of our own.
    ///
    /// # Errors
    /// No memory.
    fn data(bytes: &[u8]) -> Result<Self::Data, Self::Error>;
    /// The first `length` bytes.
    fn cut(data: Self::Data, length: usize) -> Self::Data;
    /// An error in the file system's words.
    fn error(fault: Fault) -> Self::Error;
    /// What an error means.
    fn severity(error: &Self::Error) -> Severity;
}

/// Whether an error says that the instance is dead.
pub(crate) fn is_dead<T: Target>(error: &T::Error) -> bool {
    T::severity(error) == Severity::Dead
}
