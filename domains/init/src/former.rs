//! What a restarted `init` finds: the domains of its former life.
//!
//! They go on without `init`. What cannot be had back are the handles to them, so none of them can
//! be restarted alone any more. The new `init` therefore leaves them in peace for as long as all of
//! them live and the shell runs, and then ends what is left and starts everything anew, like at
//! boot.

use crate::system::System;
use alloc::vec::Vec;
use domain_rt::{log, time};
use interfaces::{DomainInfo, DomainState};
use manifest::Source;

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
    let all_live = is_connected(system, &found) && wait_for_change(system, &found);
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

/// Whether every domain that another one needs is there and still in use. One that died together
/// with `init`, or that the former `init` was just starting, is lost to its users. When there is
/// one line to run, that is left as it is: starting anew would run the line a second time.
fn is_connected(system: &System, found: &[DomainInfo]) -> bool {
    if system.words.exec.is_some() {
        return true;
    }
    if let Some(name) = found.iter().find_map(|user| lacks(system, user, found)) {
        log!("{name} is not there, but is needed");
        return false;
    }
    let unused = |server: &&DomainInfo| {
        let mut users = found
            .iter()
            .filter(|user| should_use(system, user, server))
            .peekable();
        users.peek().is_some() && !users.any(|user| holds(system, user, server))
    };
    match found.iter().find(unused) {
        Some(server) => {
            log!("{} is there, but nobody has a way to it", server.name);
            false
        }
        None => true,
    }
}

/// The name of a domain that `user` cannot do without, and that is not among the live ones.
fn lacks<'a>(system: &'a System, user: &DomainInfo, found: &[DomainInfo]) -> Option<&'a str> {
    let index = system.manifest.index_of(user.name.as_str())?;
    let wants = &system.services[index].image.as_ref().ok()?.wants;
    let needed = system.manifest[index].grants.iter().filter(|grant| {
        wants
            .iter()
            .any(|port| port.name.as_str() == grant.port && !port.optional)
    });
    let mut servers = needed.filter_map(|grant| used(&grant.source));
    servers.find(|server| found.iter().all(|info| info.name.as_str() != *server))
}

/// The domain that whoever has this grant calls. A claimed function is not counted: a driver goes
/// on without the domain of its bus.
fn used(source: &Source) -> Option<&str> {
    match source {
        Source::Offer { domain, .. } | Source::Respawn { domain, .. } => Some(domain),
        _ => None,
    }
}

/// Whether the manifest grants one domain what another offers.
fn should_use(system: &System, user: &DomainInfo, server: &DomainInfo) -> bool {
    let index = system.manifest.index_of(user.name.as_str());
    let grants = index.map(|index| system.manifest[index].grants.iter());
    grants.is_some_and(|mut grants| {
        grants.any(|grant| used(&grant.source) == Some(server.name.as_str()))
    })
}

fn holds(system: &System, user: &DomainInfo, server: &DomainInfo) -> bool {
    let monitor = &system.kernel.monitor;
    let mut held = (0..).map_while(|index| monitor.holds(user.id, index).ok().flatten());
    held.any(|(_, by)| by == server.name)
}

/// Waits until one of the domains has died or the personality's last program has ended; whether all
/// still live.
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
        let _ = domain.wait_until(time::now() + PATIENCE);
    }
}
