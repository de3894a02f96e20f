//! One file system: its present instance, and how it is replaced when it crashes.
//!
//! A call that meets a crash has the file system restarted, and fails with `FsError::Restarted`: what it
//! was to do may have been done, half done or not done. Whoever calls next gets the new instance.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use domain_rt::log;
use domain_rt::sync::Mutex;
use interfaces::{FileSystem, FsError, Handle, Respawn, RespawnError, RpcError};

/// How often a new instance that is dead already is replaced at once by the next.
const ATTEMPTS: usize = 3;

/// One instance of a file system.
pub struct Live {
    /// The number of the domain instance.
    pub id: u32,
    /// Its interface.
    pub fs: Handle<dyn FileSystem>,
    /// The inode of its root directory.
    pub root: u64,
}

enum State {
    /// It was not asked for yet.
    Never,
    /// This instance served last.
    Serving(Arc<Live>),
    /// The first instance did not start: no disk, or nothing on it that can be mounted.
    Absent,
}

/// A file system that may be restarted.
pub struct Mount {
    name: String,
    /// Who starts the next instance; `None`: nobody.
    respawn: Option<Handle<dyn Respawn>>,
    state: Mutex<State>,
}

impl Mount {
    /// Nothing is started before the first use.
    pub fn new(name: &str, respawn: Handle<dyn Respawn>) -> Self {
        Mount {
            name: name.to_string(),
            respawn: Some(respawn),
            state: Mutex::new(State::Never),
        }
    }

    /// A file system that is never restarted.
    ///
    /// # Errors
    /// The file system's.
    pub fn fixed(name: &str, fs: Handle<dyn FileSystem>) -> Result<Self, FsError> {
        let root = fs.root()?;
        let live = Live { id: 0, fs, root };
        Ok(Mount {
            name: name.to_string(),
            respawn: None,
            state: Mutex::new(State::Serving(Arc::new(live))),
        })
    }

    /// Starts the file system now, and says why that cannot be done.
    ///
    /// # Errors
    /// See [`RespawnError`].
    pub fn begin(&self) -> Result<(), RespawnError> {
        self.start(0).map(drop)
    }

    /// The instance that served last; nothing is started.
    pub fn current(&self) -> Option<Arc<Live>> {
        match &*self.state.lock() {
            State::Serving(live) => Some(live.clone()),
            _ => None,
        }
    }

    /// Whether a result says that the instance has crashed.
    pub fn is_crash<T>(result: &Result<T, FsError>) -> bool {
        matches!(result, Err(FsError::Rpc(RpcError::DomainCrashed)))
    }

    /// The instance that served last. `None` if there never was one.
    ///
    /// # Errors
    /// [`FsError::Device`] if it crashed and cannot be started again.
    pub fn live(&self) -> Result<Option<Arc<Live>>, FsError> {
        match &*self.state.lock() {
            State::Serving(live) => return Ok(Some(live.clone())),
            State::Absent => return Ok(None),
            State::Never => {}
        }
        match self.start(0) {
            Ok(live) => Ok(Some(live)),
            Err(error) => {
                log!("no file system on {}: {}", self.name, describe(&error));
                let mut state = self.state.lock();
                if let State::Never = *state {
                    *state = State::Absent;
                }
                Ok(None)
            }
        }
    }

    /// Passes on the result of a call to `live`. If that crashed, a new instance is mounted first.
    ///
    /// # Errors
    /// [`FsError::Restarted`] in place of a crash, or [`FsError::Device`] if there is no new instance.
    pub fn settle<T>(&self, live: &Live, result: Result<T, FsError>) -> Result<T, FsError> {
        if !Mount::is_crash(&result) {
            return result;
        }
        match self.start(live.id) {
            Ok(new) => {
                log!(
                    "{} was mounted again (instance {} after {})",
                    self.name,
                    new.id,
                    live.id
                );
                Err(FsError::Restarted)
            }
            Err(error) => {
                log!("{} stays down: {}", self.name, describe(&error));
                Err(FsError::Device)
            }
        }
    }

    /// Has an instance other than `failed` started and takes it into use.
    fn start(&self, mut failed: u32) -> Result<Arc<Live>, RespawnError> {
        let Some(respawn) = &self.respawn else {
            return Err(RespawnError::GaveUp);
        };
        for _ in 0..ATTEMPTS {
            let new = respawn.instance(failed)?;
            let Ok(fs) = new.service.downcast::<dyn FileSystem>() else {
                return Err(RespawnError::Rpc(RpcError::Refused));
            };
            match fs.root() {
                Ok(root) => {
                    return Ok(self.take(Live {
                        id: new.id,
                        fs,
                        root,
                    }));
                }
                Err(FsError::Rpc(RpcError::DomainCrashed)) => failed = new.id,
                Err(FsError::Rpc(error)) => return Err(RespawnError::Rpc(error)),
                Err(_) => return Err(RespawnError::Rpc(RpcError::Refused)),
            }
        }
        Err(RespawnError::Rpc(RpcError::DomainCrashed))
    }

    /// Takes a new instance into use, unless another thread has found a newer one.
    fn take(&self, new: Live) -> Arc<Live> {
        let new = Arc::new(new);
        let mut state = self.state.lock();
        let old = match &*state {
            State::Serving(old) if old.id >= new.id => return old.clone(),
            _ => core::mem::replace(&mut *state, State::Serving(new.clone())),
        };
        drop(state);
        // Letting go of the old instance's handles is a call to the kernel: not under the lock.
        drop(old);
        new
    }
}

/// Why there is no instance, in words.
pub fn describe(error: &RespawnError) -> &str {
    match error {
        RespawnError::Rpc(RpcError::DomainCrashed) => "it crashes when it is used, or init is gone",
        RespawnError::Rpc(RpcError::Refused) => "what was started is not what was asked for",
        RespawnError::Rpc(_) => "init could not be asked",
        RespawnError::GaveUp => "it crashed too often",
        RespawnError::CannotStart(why) => why.as_str(),
    }
}
