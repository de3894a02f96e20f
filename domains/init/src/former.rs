//! What a restarted `init` finds: the domains of its former life.
//!
//! They go on without `init`. What cannot be had back are the handles to them, so none of them can be restarted
//! alone any more. The new `init` therefore leaves them in peace for as long as all of them live and the shell runs, and then
//! ends what is left and starts everything anew, like at boot.

use crate::system::System;
use alloc::vec::Vec;
use domain_rt::{log, time};
use interfaces::{DomainInfo, DomainState};

/// How long the remains of a domain are waited for, in nanoseconds.
const PATIENCE: u64 = 5_000_000_000;

/// How the domains of a former life came to their end.
pub enum Former {
    /// There were none: this is the first life.
    None,
    /// They are ended, and everything can be started.
    Ended,
    /// The line that the shell was to run has ended; nobody knows how.
    LineEnded,
}

/// Waits until the domains of a former life cannot go on, and ends them.
pub fn outlive(system: &System) -> Former {
    let found = living(system);
    if found.is_empty() {
        return Former::None;
    }
    log!(
        "back after a crash: {} domains go on, but none can be restarted alone until all are",
        found.len()
    );
    let all_live = wait_for_change(system, &found);
    if all_live && system.words.exec.is_some() {
        return Former::LineEnded;
    }
    log!("starting everything anew");
    found.iter().for_each(|info| end(system, info));
    Former::Ended
}

/// The live domains that have the name of one of the manifest's.
fn living(system: &System) -> Vec<DomainInfo> {
    all(system, |info| {
        info.state == DomainState::Running && system.manifest.index_of(info.name.as_str()).is_some()
    })
}

/// All domains but this one that fit.
fn all(system: &System, fits: impl Fn(&DomainInfo) -> bool) -> Vec<DomainInfo> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Ok(Some(info)) = system.kernel.monitor.next(from) {
        from = info.id + 1;
        found.extend(Some(info).filter(|info| info.id != domain_rt::self_id() && fits(info)));
    }
    found
}

/// Waits until one of the domains has died or the personality's last program has ended; whether all still live.
fn wait_for_change(system: &System, found: &[DomainInfo]) -> bool {
    let personality = system.manifest.boot.personality.as_deref();
    let personality = found
        .iter()
        .find(|info| Some(info.name.as_str()) == personality);
    let mut seen = 0;
    loop {
        let now = living(system);
        let all_live = found
            .iter()
            .all(|one| now.iter().any(|info| info.id == one.id));
        let has_programs = personality.is_some_and(|parent| {
            !all(system, |info| {
                info.parent == parent.id && info.state != DomainState::Gone
            })
            .is_empty()
        });
        if !all_live || !has_programs {
            return all_live;
        }
        match system.kernel.monitor.event(seen) {
            Ok(event) => seen = event.number,
            Err(_) => time::sleep(PATIENCE),
        }
    }
}

/// Ends a domain with those that it started, and waits for it to be gone.
fn end(system: &System, info: &DomainInfo) {
    if let Ok(Some(domain)) = system.kernel.control.domain(info.id) {
        let _ = domain.kill();
        system.end_children(info.id);
        let deadline = time::now() + PATIENCE;
        while domain
            .info()
            .is_ok_and(|info| info.state != DomainState::Gone)
            && time::now() < deadline
        {
            time::sleep(200_000);
        }
    }
}
