//! A file system with names that kill who changes them: see `deadly-names.idl`.
//!
//! It ends with the file system that it passes on, so that whoever is in front of it asks for the
//! next instance of both.
#![no_std]
#![forbid(unsafe_code)]

use domain_rt::log;
use interfaces::{
    DomainControl, Failure, FileKind, FileSystem, FileSystemBase, FsError, Handle, Monitor, RVec,
    Renaming, RpcError, RpcResult,
};

/// How deadly names begin.
const DEADLY: &[u8] = b"kills-";
/// How names begin that are deadly if [`ARMED`] is in the root directory when this domain starts.
const LATER: &[u8] = b"later-kills-";
const ARMED: &[u8] = b"armed";

/// The domain's entry.
///
/// # Errors
/// [`RpcError::NoMemory`].
pub fn start(
    fs: Handle<dyn FileSystem>,
    monitor: Handle<dyn Monitor>,
    control: Handle<dyn DomainControl>,
) -> RpcResult<Handle<dyn FileSystem>> {
    let armed = RVec::from_slice(ARMED)?;
    let is_armed = fs.root().and_then(|root| fs.lookup(root, &armed)).is_ok();
    Handle::new(Files {
        fs,
        monitor,
        control,
        is_armed,
    })
}

struct Files {
    fs: Handle<dyn FileSystem>,
    monitor: Handle<dyn Monitor>,
    control: Handle<dyn DomainControl>,
    is_armed: bool,
}

impl Files {
    /// Kills the domains that a name says, if it is a deadly one. Who asked is not answered then.
    fn meet(&self, name: &[u8]) -> Result<(), FsError> {
        let later = name.strip_prefix(LATER).filter(|_| self.is_armed);
        let Some(victims) = name.strip_prefix(DEADLY).or(later) else {
            return Ok(());
        };
        for victim in victims.split(|byte| *byte == b'-') {
            self.kill(victim)?;
        }
        // If the file system is dead this is as well.
        self.pass(|fs| fs.root())?;
        Err(RpcError::Interrupted.into())
    }

    /// Kills those of this name that there are now, not who comes in their place.
    fn kill(&self, name: &[u8]) -> RpcResult<()> {
        let mut behind = 0;
        while let Some(info) = self.monitor.next(behind)? {
            behind = info.id + 1;
        }
        let mut from = 0;
        while let Some(info) = self.monitor.next(from)?.filter(|info| info.id < behind) {
            from = info.id + 1;
            if info.name.as_str().as_bytes() == name
                && let Some(domain) = self.control.domain(info.id)?
            {
                log!("a name kills {}", info.name.as_str());
                domain.kill()?;
            }
        }
        Ok(())
    }
}

impl FileSystemBase for Files {
    fn pass<T>(
        &self,
        mut call: impl FnMut(&dyn FileSystem) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        let result = call(&*self.fs);
        if let Err(error) = &result {
            assert!(!error.is_gone(), "what is passed on has died");
        }
        result
    }

    fn create(
        &self,
        directory: u64,
        name: &RVec<u8>,
        kind: FileKind,
        mode: u16,
    ) -> Result<u64, FsError> {
        self.meet(name)?;
        self.pass(|fs| fs.create(directory, name, kind, mode))
    }

    fn symlink(&self, directory: u64, name: &RVec<u8>, target: &RVec<u8>) -> Result<u64, FsError> {
        self.meet(name)?;
        self.pass(|fs| fs.symlink(directory, name, target))
    }

    fn link(&self, directory: u64, name: &RVec<u8>, inode: u64) -> Result<(), FsError> {
        self.meet(name)?;
        self.pass(|fs| fs.link(directory, name, inode))
    }

    fn rename(
        &self,
        from: u64,
        name: &RVec<u8>,
        to: u64,
        new_name: &RVec<u8>,
        how: Renaming,
    ) -> Result<(), FsError> {
        self.meet(name)?;
        self.meet(new_name)?;
        self.pass(|fs| fs.rename(from, name, to, new_name, how))
    }
}
