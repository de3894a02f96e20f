//! A file system with names that kill who changes them, and calls that come late: see
//! `deadly-names.idl`.
//!
//! It ends with the file system that it passes on, so that whoever is in front of it asks for the
//! next instance of both.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use domain_rt::sync::Mutex;
use domain_rt::{log, time};
use interfaces::{
    DomainControl, Failure, FileKind, FileSystem, FileSystemBase, FsError, FsVolume, Handle,
    Monitor, PageRun, RVec, Renaming, RpcError, RpcResult, VmoView,
};

/// How deadly names begin.
const DEADLY: &[u8] = b"kills-";
/// How names begin that are deadly if [`ARMED`] is in the root directory when the first service of
/// this domain begins.
const LATER: &[u8] = b"later-kills-";
const ARMED: &[u8] = b"armed";
/// How names begin that are moved late, and how many bytes a file has that is cut or stored
/// late, without the seconds.
const HELD: &[u8] = b"held-";
const HELD_END: u64 = 70_000;
const SECOND: u64 = 1_000_000_000;

/// The domain's entry.
///
/// # Errors
/// [`RpcError::NoMemory`].
pub fn start(
    volume: Handle<dyn FsVolume>,
    monitor: Handle<dyn Monitor>,
    control: Handle<dyn DomainControl>,
) -> RpcResult<Handle<dyn FsVolume>> {
    Handle::new(Volume {
        volume,
        monitor,
        control,
        is_armed: Mutex::new(None),
        late: Arc::default(),
    })
}

/// Which calls have come late already.
#[derive(Default)]
struct Late {
    rename: AtomicBool,
    cut: AtomicBool,
    store: AtomicBool,
}

/// Waits, if the kind of call did not come late before and is to.
fn hold(was_late: &AtomicBool, seconds: Option<u64>) {
    let Some(seconds) = seconds.filter(|seconds| (1..=9).contains(seconds)) else {
        return;
    };
    if was_late.swap(true, Ordering::Relaxed) {
        return;
    }
    log!("a call is held");
    let until = time::now() + seconds * SECOND;
    // The wait is ended when the caller is: this goes on, as a wait for a lock does.
    while time::now() < until {
        time::sleep(until.saturating_sub(time::now()));
    }
    log!("a held call goes on");
}

/// For how long a change of this name is held.
fn seconds_of(name: &[u8]) -> Option<u64> {
    let digit = name.strip_prefix(HELD)?.first()?;
    Some(digit.wrapping_sub(b'0').into())
}

struct Volume {
    volume: Handle<dyn FsVolume>,
    monitor: Handle<dyn Monitor>,
    control: Handle<dyn DomainControl>,
    /// `None`: nobody has begun yet.
    is_armed: Mutex<Option<bool>>,
    late: Arc<Late>,
}

/// Passes on what came of a call, and ends with what it was made to.
fn alive<T>(result: Result<T, FsError>) -> Result<T, FsError> {
    if let Err(error) = &result {
        assert!(!error.is_gone(), "what is passed on has died");
    }
    result
}

impl FsVolume for Volume {
    fn begin(&self, service: u32) -> Result<Handle<dyn FileSystem>, FsError> {
        let fs = alive(self.volume.begin(service))?;
        let armed = RVec::from_slice(ARMED)?;
        let is_armed = || fs.root().and_then(|root| fs.lookup(root, &armed)).is_ok();
        let is_armed = *self.is_armed.lock().get_or_insert_with(is_armed);
        Ok(Handle::<dyn FileSystem>::new(Files {
            fs,
            monitor: self.monitor.duplicate()?,
            control: self.control.duplicate()?,
            is_armed,
            late: self.late.clone(),
        })?)
    }

    fn sync(&self) -> Result<(), FsError> {
        alive(self.volume.sync())
    }
}

struct Files {
    fs: Handle<dyn FileSystem>,
    monitor: Handle<dyn Monitor>,
    control: Handle<dyn DomainControl>,
    is_armed: bool,
    late: Arc<Late>,
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
        alive(call(&*self.fs))
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

    fn truncate(&self, inode: u64, size: u64) -> Result<(), FsError> {
        hold(&self.late.cut, size.checked_sub(HELD_END));
        self.pass(|fs| fs.truncate(inode, size))
    }

    fn store(
        &self,
        inode: u64,
        runs: &RVec<PageRun>,
        end: u64,
        modified: u64,
        view: Handle<dyn VmoView>,
    ) -> Result<u64, FsError> {
        hold(&self.late.store, end.checked_sub(HELD_END));
        alive(self.fs.store(inode, runs, end, modified, view))
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
        hold(&self.late.rename, seconds_of(name));
        self.pass(|fs| fs.rename(from, name, to, new_name, how))
    }
}
