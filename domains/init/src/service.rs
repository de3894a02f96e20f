//! One supervised domain: what is known of it, and its instance.
//!
//! States, guarded by the lock of [`Service::state`]: no instance; an instance that serves. Work on
//! the domain itself (start, end, replace) is done under that lock, so that of all who find the
//! same instance dead only the first one replaces it; the others wait for the lock and then find
//! another instance there. That may take long, so a caller who is ended meanwhile waits no more: a
//! start can depend on what the caller's domain holds until its threads have left it, such as a
//! gate that it has closed. What is done is in [`instances`](crate::instances).

use crate::failure::Failure;
use crate::images::Prepared;
use crate::version::Versions;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use domain_rt::{log, time};
use interfaces::{
    AnyHandle, CrashReason, Domain, DomainState, FileSystem, FsVolume, Gate, Handle, RpcError,
    RpcResult, Text,
};
use manifest::{DomainIndex, Limits};
use restart::{Budget, Complaints, Rest};

/// An instance that serves.
pub struct Running {
    /// Its number.
    pub id: u32,
    /// The name in its image.
    pub image: Text<32>,
    /// What it offers, in the order of its declaration.
    pub offers: [Option<AnyHandle>; 4],
    /// To watch and end it.
    pub control: Handle<dyn Domain>,
    /// Domains and instances without which it cannot work.
    pub served_by: Vec<(DomainIndex, u32)>,
}

/// An instance that was ended.
pub struct Remains {
    /// Its number.
    pub id: u32,
    /// To wait for its end.
    pub control: Handle<dyn Domain>,
}

/// What a domain says of an instance that it has called.
#[derive(Clone, Copy)]
pub struct Complaint {
    /// The number of the instance that is of no more use; 0: nothing is said.
    pub of: u32,
    /// The number of the domain that says so.
    pub by: DomainIndex,
}

/// What the lock of a domain guards.
pub struct State {
    /// The instance that serves.
    pub running: Option<Running>,
    /// The instance before, if nobody has waited for its end. None is started beside it.
    pub remains: Option<Remains>,
    /// Which images it is started from.
    pub versions: Versions,
    /// The crashes that it may have.
    pub budget: Budget,
    /// What each of its callers may say of instances that live.
    pub complaints: Vec<(DomainIndex, Complaints)>,
    /// Why it did not start when that was tried last, and how long it is left alone.
    pub refused: Option<(Failure, Rest)>,
}

impl State {
    /// Whether another complaint of the domain `by` is heard; `limits` are those of the domain that
    /// it is about.
    pub fn hears(&mut self, by: DomainIndex, limits: Limits) -> bool {
        let at = self.complaints.iter().position(|(other, _)| *other == by);
        let at = at.unwrap_or_else(|| {
            let none = Complaints::new(limits.restarts, window(limits));
            self.complaints.push((by, none));
            self.complaints.len() - 1
        });
        self.complaints[at].1.is_heard(time::now())
    }

    /// It did not start, for this reason.
    pub fn refuse(&mut self, failure: &Failure) {
        match &mut self.refused {
            Some((same, rest)) if same == failure => rest.refused(time::now()),
            other => *other = Some((failure.clone(), Rest::new(time::now()))),
        }
    }
}

/// What others want to know without waiting for a start to end.
#[derive(Clone, Copy, Default)]
pub struct Status {
    /// The instance that serves (0: none).
    pub id: u32,
    /// Crashes since boot.
    pub crashes: u32,
    /// Starts since boot.
    pub starts: u32,
    /// It stays down.
    pub gave_up: bool,
    /// Updates since boot.
    pub updates: u32,
    /// The name in the image of the last instance.
    pub image: Text<32>,
    /// Those of the starts that were made by updates.
    pub by_update: u32,
}

impl Status {
    /// Restarts since boot.
    pub fn restarts(&self) -> u32 {
        self.starts.saturating_sub(1 + self.by_update)
    }

    /// Nobody wants it any more, and what was is forgotten.
    pub fn forget(&mut self) {
        *self = Status {
            image: self.image,
            ..Status::default()
        };
    }

    /// Whether it serves, or did and is to do so again.
    pub fn is_wanted(&self) -> bool {
        self.starts > 0 && !self.gave_up
    }
}

/// A gate, and the number of the domain whose calls it lets through.
pub type Attached = (DomainIndex, Arc<Handle<dyn Gate>>);

/// A supervised domain.
pub struct Service {
    /// Its image, or why the kernel refused it.
    pub image: Result<Arc<Prepared>, String>,
    /// Work on the domain is done under this lock.
    pub state: Mutex<State>,
    /// Held for moments.
    pub status: Mutex<Status>,
    /// The gates of those that call it.
    gates: Mutex<Vec<Attached>>,
}

/// How a try to start ended without an instance.
pub enum Unstarted {
    /// It crashed while it started.
    Crashed,
    /// It did not crash; what was said.
    Failed(Failure),
}

impl Service {
    /// A domain that was not started yet.
    pub fn new(image: Result<Arc<Prepared>, String>, limits: Limits) -> Self {
        let state = Mutex::new(State {
            running: None,
            remains: None,
            versions: Versions::default(),
            budget: budget(limits),
            complaints: Vec::new(),
            refused: None,
        });
        Service {
            image,
            state,
            status: Mutex::new(Status::default()),
            gates: Mutex::default(),
        }
    }

    /// Notes where the domain `holder` can have its calls wait, instead of what its former
    /// instance said.
    pub fn attach(&self, holder: DomainIndex, gate: Handle<dyn Gate>) {
        let mut gates = self.gates.lock();
        let former = gates.iter().position(|(other, _)| *other == holder);
        let former = former.map(|at| gates.swap_remove(at));
        gates.push((holder, Arc::new(gate)));
        drop(gates);
        drop(former);
    }

    /// Forgets all gates: nobody calls it any more.
    pub fn detach_all(&self) {
        let gates = core::mem::take(&mut *self.gates.lock());
        drop(gates);
    }

    /// All gates in front of the domain.
    pub fn gates(&self) -> Vec<Attached> {
        self.gates.lock().clone()
    }

    /// What is known of it now.
    pub fn status(&self) -> Status {
        *self.status.lock()
    }

    /// The name in the image that it is started from.
    pub fn image_name(&self) -> Text<32> {
        self.status.lock().image
    }

    /// What its instance offers, if there is one; nothing is started.
    ///
    /// # Errors
    /// `Interrupted` if the caller is ended while he waits.
    pub fn offers(&self) -> RpcResult<Vec<AnyHandle>> {
        let state = self.state.lock_interruptible();
        let state = state.ok_or(RpcError::Interrupted)?;
        let offers = state
            .running
            .iter()
            .flat_map(|running| running.offers.iter().flatten());
        Ok(offers.filter_map(|offer| offer.duplicate().ok()).collect())
    }

    /// If it is a file system, has it bring everything to the disk; the log says under `name` what
    /// does not get there.
    ///
    /// # Errors
    /// As [`offers`](Self::offers).
    pub fn sync(&self, name: &str) -> RpcResult<()> {
        for offer in self.offers()? {
            let synced = match offer.downcast::<dyn FileSystem>() {
                Ok(files) => files.sync(),
                Err(other) => match other.downcast::<dyn FsVolume>() {
                    Ok(volume) => volume.sync(),
                    Err(_) => continue,
                },
            };
            if let Err(error) = synced {
                log!("{name}: not everything is on the disk: {error:?}");
            }
        }
        Ok(())
    }
}

/// A fresh budget.
pub fn budget(limits: Limits) -> Budget {
    Budget::new(limits.restarts, window(limits))
}

/// In which time crashes are counted, in nanoseconds.
fn window(limits: Limits) -> u64 {
    u64::from(limits.window_s) * 1_000_000_000
}

/// Whether an instance can be called.
pub fn is_alive(control: &Handle<dyn Domain>) -> bool {
    control
        .info()
        .is_ok_and(|info| info.state == DomainState::Running)
}

/// Why an instance ended: the name of the reason in words, `page fault` for `PageFault`.
pub fn reason(reason: CrashReason) -> String {
    let mut words = String::new();
    for letter in format!("{reason:?}").chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}
