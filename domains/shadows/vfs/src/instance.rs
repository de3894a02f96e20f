//! One instance of the file system, as `lib/fs/redo` wants it.

use alloc::sync::Arc;
use interfaces::{
    Failure, FileKind, FileSystem, FsError, FsVolume, Handle, Hold, Metadata, RVec, Renaming,
    Respawn,
};
use redo::intent::SETTING;
use redo::{Action, Facts, Fault, Kind, Node, Outcome, Severity, Target};
use respawn::{Live, Patience};

use crate::setting::Setting;

/// What a life of the file system has begun with.
struct Begun {
    fs: Handle<dyn FileSystem>,
    root: u64,
}

/// One life of the file system, with which this domain has begun: nothing of the instance before it
/// happens there any more.
#[derive(Clone)]
pub struct Instance(Arc<Live<dyn FsVolume, Begun>>);

impl Instance {
    /// Its interface.
    pub fn fs(&self) -> &Handle<dyn FileSystem> {
        &self.0.greeting.fs
    }
}

/// Begins with an instance other than `failed` (0: any), one that says where its root is. Where one
/// served it is no answer that the next does not start just now.
///
/// # Errors
/// [`FsError::Down`] if there is none to be had, [`FsError::Rpc`] if nobody could be asked.
pub fn fetch(
    respawn: &Handle<dyn Respawn>,
    failed: u32,
    patience: &Patience,
) -> Result<Instance, FsError> {
    let served = failed != 0;
    let greet = |volume: &Handle<dyn FsVolume>| {
        let fs = volume.begin(domain_rt::self_id())?;
        let root = fs.root()?;
        Ok(Begun { fs, root })
    };
    let attempt = || respawn::fetch(respawn, failed, greet);
    let found = match served {
        true => patience.wait(attempt),
        false => attempt(),
    };
    match found.map_err(|why| why.tell("file system", FsError::Down)) {
        Err(FsError::Fenced) if served => end(),
        found => Ok(Instance(Arc::new(found?))),
    }
}

/// Ends this domain, since another one serves: that has what is left of this one, and answers the
/// clients.
fn end() -> ! {
    panic!("another service has begun with the file system")
}

/// The kinds of what is made as a node, in the order of their numbers in [`Node`].
const KINDS: [FileKind; 4] = [
    FileKind::CharacterDevice,
    FileKind::BlockDevice,
    FileKind::Pipe,
    FileKind::Socket,
];

fn kind_of(number: u8) -> Option<FileKind> {
    KINDS.get(usize::from(number)).copied()
}

/// A node of this kind.
///
/// # Errors
/// `Invalid`: it is something else.
pub fn node(kind: FileKind, mode: u16, device: u32) -> Result<Node, FsError> {
    let number = KINDS.iter().position(|known| *known == kind);
    Ok(Node {
        kind: number.ok_or(FsError::Invalid)? as u8,
        mode,
        device,
    })
}

impl Target for Instance {
    type Data = RVec<u8>;
    type Setting = Setting;
    type Error = FsError;
    type Kept = Handle<dyn Hold>;
    type Known = Metadata;

    fn id(&self) -> u32 {
        self.0.id
    }

    fn root(&self) -> u64 {
        self.0.greeting.root
    }

    fn unnamed(&self) -> Result<u64, FsError> {
        self.fs().unnamed(true)?.ok_or(FsError::Unsupported)
    }

    fn look_up(&self, directory: u64, name: &RVec<u8>) -> Result<u64, FsError> {
        self.fs().lookup(directory, name)
    }

    fn facts(&self, inode: u64) -> Result<Facts, FsError> {
        let of = self.fs().metadata(inode)?;
        let kind = match of.kind {
            FileKind::Regular => Kind::File,
            FileKind::Directory => Kind::Directory,
            _ => Kind::Other,
        };
        Ok(Facts {
            kind,
            links: of.links,
            size: of.size,
        })
    }

    fn perform(
        &self,
        action: &Action<RVec<u8>, Setting>,
        [first, second]: [u64; 2],
    ) -> Result<Outcome, FsError> {
        let fs = self.fs();
        let done = |()| Outcome::Done;
        match action {
            Action::Write { offset, data } => fs.write(first, *offset, data).map(Outcome::Wrote),
            Action::Truncate { size } => fs.truncate(first, *size).map(done),
            Action::Set(setting) => setting.perform(fs, first).map(done),
            Action::Create { name, kind, mode } => {
                let kind = match kind {
                    Kind::File => FileKind::Regular,
                    Kind::Directory => FileKind::Directory,
                    Kind::Other => return Err(FsError::Unsupported),
                };
                fs.create(first, name, kind, *mode).map(Outcome::Made)
            }
            Action::Symlink { name, target } => fs.symlink(first, name, target).map(Outcome::Made),
            Action::Link { name } => fs.link(first, name, second).map(done),
            Action::Unlink { name } => fs.unlink(first, name).map(done),
            Action::RemoveDirectory { name } => fs.remove_directory(first, name).map(done),
            Action::Rename { name, new_name } => fs
                .rename(first, name, second, new_name, Renaming::Replace)
                .map(done),
            Action::Exchange { name, new_name } => fs
                .rename(first, name, second, new_name, Renaming::Exchange)
                .map(done),
            Action::Node { name, node } => {
                let kind = kind_of(node.kind).ok_or(FsError::Invalid)?;
                fs.make_node(first, name, kind, node.mode, node.device)
                    .map(Outcome::Made)
            }
        }
    }

    fn write(&self, inode: u64, offset: u64, data: &RVec<u8>) -> Result<u64, FsError> {
        self.fs().write(inode, offset, data)
    }

    fn keep(&self, inode: u64) -> Result<Handle<dyn Hold>, FsError> {
        self.fs().hold(inode, None)
    }

    fn commit(&self) -> Result<(), FsError> {
        self.fs().commit()
    }

    fn sync(&self) -> Result<(), FsError> {
        self.fs().sync()
    }

    fn pack_setting(setting: &Setting, place: &mut [u8; SETTING]) -> Option<()> {
        setting.pack(place);
        Some(())
    }

    fn unpack_setting(bytes: &[u8; SETTING]) -> Option<Setting> {
        Setting::unpack(bytes)
    }

    fn data(bytes: &[u8]) -> Result<RVec<u8>, FsError> {
        Ok(RVec::from_slice(bytes)?)
    }

    fn cut(data: RVec<u8>, length: usize) -> RVec<u8> {
        data.truncated(length)
    }

    fn error(fault: Fault) -> FsError {
        match fault {
            Fault::Missing => FsError::NotFound,
            Fault::Exists => FsError::Exists,
            Fault::Failed => FsError::Device,
        }
    }

    fn severity(error: &FsError) -> Severity {
        match error {
            error if error.is_gone() => Severity::Dead,
            FsError::Restarted => Severity::Dead,
            FsError::Fenced => end(),
            FsError::Rpc(_) | FsError::Device | FsError::Down => Severity::Trouble,
            FsError::NotFound => Severity::Missing,
            _ => Severity::Answer,
        }
    }
}
