//! What a restarted `init` finds: the domains of its former life, which have gone on without it.
//!
//! If the steward lives, `init` takes over what serves and goes on as if nothing had been; what the
//! former life was just starting or replacing is ended. Without a steward, or if that died together
//! with `init`, nothing can be had back: everything is ended and started anew, as at boot.

use crate::claims;
use crate::service::Running;
use crate::steward;
use crate::system::System;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::{log, time};
use interfaces::{
    DomainInfo, DomainState, ExitStatus, Handle, Kept, RpcError, RpcResult, Steward, Text,
};
use manifest::{DomainIndex, Source};

/// How long the remains of a domain are waited for, in nanoseconds.
const PATIENCE: u64 = 5_000_000_000;
/// The pause between two calls for which there is no memory, in nanoseconds.
const PAUSE: u64 = 10_000_000;
/// No instance has this number.
const NOBODY: u32 = u32::MAX;

/// How the domains of a former life came to their end.
pub enum Former {
    /// There were none: this is the first life.
    None,
    /// They serve on under this life.
    TakenOver,
    /// They are ended, and everything can be started.
    Ended,
    /// They are ended, and with them the one line that was to be run.
    LineEnded,
}

/// Takes the domains of a former life over, or ends them.
pub fn outlive(system: &Arc<System>) -> Former {
    if system.kernel.deaths == 0 {
        return Former::None;
    }
    let found = former(system);
    if found.is_empty() {
        return Former::None;
    }
    match take_over(system, &found) {
        Ok(count) => {
            log!("back after a crash: {count} domains go on");
            return Former::TakenOver;
        }
        Err(why) => log!("back after a crash, and nothing can be taken over: {why}"),
    }
    found.iter().for_each(|info| end(system, info));
    match system.words.exec {
        // Starting anew would run it a second time.
        Some(_) => Former::LineEnded,
        None => Former::Ended,
    }
}

/// The domains that a former life has started, and programs of a personality that died with it: who
/// started them is gone.
fn former(system: &System) -> Vec<DomainInfo> {
    let all = all(system);
    let is_former = |info: &&DomainInfo| {
        matches!(info.state, DomainState::Starting | DomainState::Running)
            && all
                .iter()
                .all(|other| other.id != info.parent || other.state == DomainState::Dying)
    };
    all.iter().filter(is_former).copied().collect()
}

/// All domains but this one.
fn all(system: &System) -> Vec<DomainInfo> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Ok(Some(info)) = system.kernel.monitor.next(from) {
        from = info.id + 1;
        found.extend(Some(info).filter(|info| info.id != domain_rt::self_id()));
    }
    found
}

/// Takes over what serves, and ends what does not; how many go on.
///
/// # Errors
/// Why nothing can be taken over, in words; nothing was done.
fn take_over(system: &Arc<System>, found: &[DomainInfo]) -> Result<usize, String> {
    let own = system.steward.ok_or("the manifest has no steward")?;
    let (steward, notes) =
        patiently(|| left(system)).map_err(|error| format!("the steward: {error}"))?;
    for (key, value) in notes {
        remember(system, key.as_str(), value);
    }
    let mut taken = Vec::new();
    // Each after those that it needs.
    for &index in &system.order {
        let name = Text::new(&system.manifest[index].name);
        let Ok(Some(mut kept)) = patiently(|| steward.kept(name)) else {
            continue;
        };
        if index == own {
            kept.offers[0] = patiently(|| steward.duplicate()).ok().map(Handle::into_any);
        }
        taken.extend(take(system, index, kept, found));
    }
    for index in 0.. {
        let Ok(Some(attached)) = patiently(|| steward.gate(index)) else {
            break;
        };
        let named = |name: Text<32>| system.manifest.index_of(name.as_str());
        if let (Some(domain), Some(holder)) = (named(attached.domain), named(attached.holder)) {
            system.services[domain].attach(holder, attached.gate);
        }
    }
    let others = found.iter().filter(|info| !taken.contains(&info.id));
    others.for_each(|info| end(system, info));
    system
        .take_office(&steward)
        .map_err(|error| format!("the steward: {error}"))?;
    Ok(taken.len())
}

/// Calls again while there is no memory for the answer.
fn patiently<R>(call: impl Fn() -> RpcResult<R>) -> RpcResult<R> {
    let deadline = time::now() + PATIENCE;
    loop {
        match call() {
            Err(RpcError::NoMemory) if time::now() < deadline => time::sleep(PAUSE),
            answer => return answer,
        }
    }
}

type Notes = Vec<(Text<64>, u64)>;

/// The steward, if it lives, and all that it has noted.
fn left(system: &System) -> RpcResult<(Handle<dyn Steward>, Notes)> {
    let legacy = system.kernel.legacy.as_ref();
    let handle = legacy.map_or(Ok(None), |legacy| legacy.left())?;
    let handle = handle.ok_or(RpcError::DomainCrashed)?;
    let steward = handle.downcast::<dyn Steward>();
    let steward = steward.map_err(|_| RpcError::Refused)?;
    let mut notes = Vec::new();
    while let Some(note) = steward.noted(notes.len() as u32)? {
        notes.push(note);
    }
    Ok((steward, notes))
}

/// Believes what a former life has noted.
fn remember(system: &System, key: &str, value: u64) {
    for index in system.manifest.indices() {
        let domain = &system.manifest[index];
        for (number, _) in domain.grants.iter().enumerate() {
            if key == claims::key(&domain.name, number) {
                let owner = (index, number);
                return system.claims.restore(claims::unpack(value), owner);
            }
        }
    }
    let mut disks = system.manifest.disks.iter();
    let disk = disks.find(|disk| key == steward::read_only_key(&disk.name));
    if let Some(disk) = disk.filter(|_| value != 0) {
        system.read_only_disks.lock().push(disk.name.clone());
    }
}

/// Takes over one domain; the number of its instance, unless that is dead.
fn take(system: &System, index: DomainIndex, kept: Kept, found: &[DomainInfo]) -> Option<u32> {
    let serving = kept.serving;
    let service = &system.services[index];
    let info = found.iter().find(|info| info.id == serving.id);
    let info = info.filter(|info| info.state == DomainState::Running);
    let control = info.and_then(|info| system.kernel.control.domain(info.id).ok().flatten());
    if serving.starts == 0 {
        return None;
    }
    let mut state = service.state.lock();
    let mut status = service.status.lock();
    status.id = control.as_ref().map_or(0, |_| serving.id);
    status.crashes = serving.crashes + u32::from(control.is_none());
    status.starts = serving.starts;
    status.updates = serving.updates;
    status.by_update = serving.by_update;
    status.image = serving.image;
    drop(status);
    let running = Running {
        id: serving.id,
        image: serving.image,
        offers: kept.offers,
        control: control?,
        served_by: served_by(system, index, serving.id),
    };
    state.running = Some(running);
    Some(serving.id)
}

/// The instances that instance `id` of a domain cannot do without. One that is dead by now has no
/// number, and one that is younger is another than that which the domain was given.
fn served_by(system: &System, index: DomainIndex, id: u32) -> Vec<(DomainIndex, u32)> {
    let Ok(image) = &system.services[index].image else {
        return Vec::new();
    };
    let optional = |port: &str| {
        let mut wants = image.wants.iter();
        wants.any(|want| want.name.as_str() == port && want.optional)
    };
    let grants = system.manifest[index].grants.iter();
    let needed = grants.filter(|grant| !optional(&grant.port));
    let server = |source: &Source| match source {
        Source::Offer { domain, .. } => system.manifest.index_of(domain),
        Source::Respawn { .. }
        | Source::Supervisor
        | Source::Updater
        | Source::Disks
        | Source::Services => system.steward,
        _ => None,
    };
    let servers = needed.filter_map(|grant| server(&grant.source));
    let present = |index| match system.services[index].status().id {
        0 => NOBODY,
        server if server > id => NOBODY,
        server => server,
    };
    servers.map(|index| (index, present(index))).collect()
}

/// Waits for the end of the shell that the personality runs since a former life; how it ended, if
/// anybody knows.
pub fn shell(system: &System) -> Option<ExitStatus> {
    let (steward, _) = patiently(|| left(system)).ok()?;
    patiently(|| steward.ended()).ok().flatten()
}

/// Ends a domain with those that it started, and waits for it to be gone.
fn end(system: &System, info: &DomainInfo) {
    if let Ok(Some(domain)) = system.kernel.control.domain(info.id) {
        let _ = domain.kill();
        system.end_children(info.id);
        let _ = domain.wait_until(time::now() + PATIENCE);
    }
}
