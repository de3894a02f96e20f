//! One file system: its present instance, and how it is replaced when it crashes.
//!
//! A call that meets a crash has the file system restarted, and fails with `FsError::Restarted`:
//! what it was to do may have been done, half done or not done. Whoever calls next gets the new
//! instance.

use core::sync::atomic::{AtomicBool, Ordering};

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use domain_rt::log;
use domain_rt::sync::Mutex;
use interfaces::{Failure, FileSystem, FsError, Handle, RVec, Respawn, Walked};
use respawn::Absent;

/// One instance of a file system.
pub struct Live {
    /// The number of the domain instance.
    pub id: u32,
    /// Its interface.
    pub fs: Handle<dyn FileSystem>,
    /// The inode of its root directory.
    pub root: u64,
    /// It has said that it does not walk.
    is_lame: AtomicBool,
}

impl Live {
    fn new(id: u32, fs: Handle<dyn FileSystem>, root: u64) -> Self {
        Live {
            id,
            fs,
            root,
            is_lame: AtomicBool::new(false),
        }
    }

    /// Whether it walks paths, for all that is known.
    pub fn walks(&self) -> bool {
        !self.is_lame.load(Ordering::Relaxed)
    }

    /// Has it walk a path; `None`: it does not do that.
    ///
    /// # Errors
    /// The file system's.
    pub fn walk(&self, from: u64, path: &RVec<u8>) -> Result<Option<Walked>, FsError> {
        match self.fs.walk(from, path) {
            Err(FsError::Unsupported) => {
                self.is_lame.store(true, Ordering::Relaxed);
                Ok(None)
            }
            walked => walked.map(Some),
        }
    }
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
    unchanging: bool,
    state: Mutex<State>,
}

impl Mount {
    /// Nothing is started before the first use.
    pub fn new(name: &str, respawn: Handle<dyn Respawn>) -> Self {
        Mount {
            name: name.to_string(),
            respawn: Some(respawn),
            unchanging: false,
            state: Mutex::new(State::Never),
        }
    }

    /// This file system has the same content under the same numbers after each restart, so that
    /// whoever asks it something may ask again.
    pub fn unchanging(self) -> Self {
        Mount {
            unchanging: true,
            ..self
        }
    }

    /// Whether it was said to be [`unchanging`](Self::unchanging).
    pub fn is_unchanging(&self) -> bool {
        self.unchanging
    }

    /// A file system that is never restarted.
    ///
    /// # Errors
    /// The file system's.
    pub fn fixed(name: &str, fs: Handle<dyn FileSystem>) -> Result<Self, FsError> {
        let root = fs.root()?;
        let live = Live::new(0, fs, root);
        Ok(Mount {
            name: name.to_string(),
            respawn: None,
            unchanging: false,
            state: Mutex::new(State::Serving(Arc::new(live))),
        })
    }

    /// Starts the file system now, and says why that cannot be done.
    ///
    /// # Errors
    /// See [`Absent`].
    pub fn begin(&self) -> Result<(), Absent<FsError>> {
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
        matches!(result, Err(error) if error.is_gone())
    }

    /// The instance that served last. `None` if there never was one.
    ///
    /// # Errors
    /// [`FsError::Down`] if it crashed and cannot be started again.
    pub fn live(&self) -> Result<Option<Arc<Live>>, FsError> {
        match &*self.state.lock() {
            State::Serving(live) => return Ok(Some(live.clone())),
            State::Absent => return Ok(None),
            State::Never => {}
        }
        match self.start(0) {
            Ok(live) => Ok(Some(live)),
            Err(error) => {
                log!("no file system on {}: {error}", self.name);
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
    /// [`FsError::Restarted`] in place of a crash, or [`FsError::Down`] if there is no new
    /// instance.
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
                log!("{} stays down: {error}", self.name);
                Err(FsError::Down)
            }
        }
    }

    /// Has an instance other than `failed` started and takes it into use.
    fn start(&self, failed: u32) -> Result<Arc<Live>, Absent<FsError>> {
        let Some(respawn) = &self.respawn else {
            return Err(Absent::GaveUp);
        };
        let found = respawn::fetch(respawn, failed, |fs: &Handle<dyn FileSystem>| fs.root())?;
        let live = Live::new(found.id, found.service, found.greeting);
        Ok(self.take(live))
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
