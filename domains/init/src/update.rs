//! Replacing a running domain by another image.
//!
//! 1. Everything that can be known beforehand is checked: the file, its ports, and that all calls
//!    to the domain pass a gate.
//! 2. If the domain hands its state over and has no hardware, the new instance starts beside the
//!    old one.
//! 3. The gates are closed. Calls that run longer than [`PATIENCE`] are unwound with the old
//!    instance, and the shadow repeats them with the new one; but if there is state to be handed
//!    over, the update ends here.
//! 4. A new instance that was started gets the state, and the old one is ended when it has agreed
//!    to that. Otherwise the old one is ended first, since a device has one driver and a disk one
//!    file system; if the new one does not come up then, the old image is started again and gets
//!    its state back.
//! 5. The gates are opened, and what waited goes on.
//!
//! From then on restarts use the new image. If it uses its restart budget up, the one before is
//! gone back to.

mod replace;

use crate::estate::Keeper;
use crate::service::Attached;
use crate::system::System;
use crate::version::Version;
use crate::{fit, images, limit};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{log, thread, time};
use interfaces::{Closed, Handle, RVec, RpcError, RpcResult, Text, UpdateError, Updated, Updater};
use manifest::DomainIndex;

/// How long calls that run are waited for, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
/// How long a shadow may take to close its gate, with that and with what it then brings to safety,
/// in nanoseconds.
const CLOSING: u64 = 30_000_000_000;
type Answer = Result<Updated, UpdateError>;

/// Why a domain was not replaced, as in [`UpdateError`].
enum Trouble {
    NoSuchDomain,
    BadImage(String),
    Unfit(String),
    NoShadow(String),
    Kept(String),
    Lost(String),
}

impl Trouble {
    fn text(&self) -> &str {
        match self {
            Trouble::NoSuchDomain => "no such domain",
            Trouble::BadImage(why)
            | Trouble::Unfit(why)
            | Trouble::NoShadow(why)
            | Trouble::Kept(why)
            | Trouble::Lost(why) => why,
        }
    }
}

impl From<Trouble> for UpdateError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NoSuchDomain => UpdateError::NoSuchDomain,
            Trouble::BadImage(why) => UpdateError::BadImage(Text::new(&why)),
            Trouble::Unfit(why) => UpdateError::Unfit(Text::new(&why)),
            Trouble::NoShadow(why) => UpdateError::NoShadow(Text::new(&why)),
            Trouble::Kept(why) => UpdateError::Kept(Text::new(&why)),
            Trouble::Lost(why) => UpdateError::Lost(Text::new(&why)),
        }
    }
}

/// Authority to replace domains.
pub struct Replacer(pub Arc<System>);

impl Updater for Replacer {
    /// A thread of `init`'s own does it, so that an update that was begun does not depend on who
    /// asked for it.
    fn update(&self, name: Text<32>, file: RVec<u8>, options: Option<RVec<u8>>) -> Answer {
        let answered = Arc::new((Mutex::new(None::<Answer>), Condvar::new()));
        let (of_thread, system) = (answered.clone(), self.0.clone());
        thread::spawn("update", move || {
            let answer = system.update(name.as_str(), file, options);
            *of_thread.0.lock() = Some(answer.map_err(UpdateError::from));
            of_thread.1.notify_all();
        })?;
        let mut answer = answered.0.lock();
        loop {
            if let Some(answer) = answer.take() {
                return answer;
            }
            let wait;
            (answer, wait) = answered.1.wait(answer);
            if wait == Wait::Interrupted {
                return Err(UpdateError::Rpc(RpcError::Interrupted));
            }
        }
    }
}

impl System {
    fn update(
        self: &Arc<Self>,
        name: &str,
        file: RVec<u8>,
        options: Option<RVec<u8>>,
    ) -> Result<Updated, Trouble> {
        let _alone = self.updating.lock();
        let index = self.manifest.index_of(name);
        let index = index.ok_or(Trouble::NoSuchDomain)?;
        let gates = fit::gates(self, index);
        let gates = gates.map_err(Trouble::NoShadow)?;
        let version = self.version(index, file, options)?;
        let image = version.image.name;
        let updated = self.replace_behind(&gates, index, version);
        match &updated {
            Ok(Updated { id, waited, .. }) => log!(
                "{name}: updated to image {image}, instance {id}, in {} us",
                waited / 1000
            ),
            Err(trouble) => log!("{name}: not updated to image {image}: {}", trouble.text()),
        }
        updated
    }

    /// Replaces the instance while the gates are closed.
    fn replace_behind(
        self: &Arc<Self>,
        gates: &[Attached],
        index: DomainIndex,
        version: Version,
    ) -> Result<Updated, Trouble> {
        let image = version.image.name;
        let is_beside = self.hands_over(index) && !self.has_hardware(index);
        let early = is_beside.then(|| self.begin(index, &version)).transpose();
        let early = early.map_err(Trouble::Kept)?;
        let began = time::now();
        let closed: Result<Vec<_>, _> = gates.iter().map(|gate| self.close(gate)).collect();
        let closed = match closed {
            Ok(closed) => closed,
            Err(why) => {
                early.into_iter().for_each(|early| self.end(index, early));
                return Err(Trouble::Kept(why));
            }
        };
        let repeated = closed.iter().map(|(_, under_way)| under_way).sum();
        let (id, handed_over) = self.replace(index, version, early, repeated == 0)?;
        drop(closed);
        Ok(Updated {
            id,
            image,
            waited: time::now() - began,
            repeated,
            handed_over,
        })
    }

    /// Closes a gate; what keeps it closed, and how many calls are under way behind it. While this
    /// waits, the gates that are closed already hold up all others, so a shadow that does not come
    /// to an end is ended; whatever it does, this does not wait for it.
    fn close(&self, (holder, gate): &Attached) -> Result<(Handle<dyn Closed>, u32), String> {
        let name = &self.manifest[*holder].name;
        let id = self.services[*holder].status().id;
        let end = || {
            if let Ok(Some(shadow)) = self.kernel.control.domain(id) {
                // It fails only if that is dead already.
                let _ = shadow.kill();
            }
        };
        let gate = gate.clone();
        let work = move || -> RpcResult<_> {
            let closed = gate.close(PATIENCE)?;
            let under_way = under_way(&closed);
            Ok((closed, under_way))
        };
        let rpc = |error: RpcError| format!("its shadow `{name}`: {error}");
        let closed = limit::apart(CLOSING, end, work).map_err(rpc)?;
        closed.map_or_else(
            || {
                let seconds = CLOSING / 1_000_000_000;
                Err(format!(
                    "its shadow `{name}` did not close its gate in {seconds} s"
                ))
            },
            |closed| closed.map_err(rpc),
        )
    }

    /// Whether the present instance hands its state over.
    fn hands_over(&self, index: DomainIndex) -> bool {
        let state = self.services[index].state.lock();
        state.running.as_ref().and_then(Keeper::of).is_some()
    }

    /// The new version, checked.
    fn version(
        &self,
        index: DomainIndex,
        file: RVec<u8>,
        options: Option<RVec<u8>>,
    ) -> Result<Version, Trouble> {
        let image = images::verify(&self.kernel, file);
        let image = image.map_err(Trouble::BadImage)?;
        let old = self.services[index].image.as_ref();
        let old = old.map_err(|why| Trouble::Unfit(why.clone()))?;
        fit::check(&self.manifest[index], old, &image).map_err(Trouble::Unfit)?;
        let options = options.map(|text| String::from_utf8_lossy(&text).into_owned());
        Ok(Version {
            image: Arc::new(image),
            options,
        })
    }
}

/// Calls that a gate still waits for; none if its shadow is dead, and they with it.
fn under_way(closed: &Handle<dyn Closed>) -> u32 {
    closed.under_way().unwrap_or(0)
}
