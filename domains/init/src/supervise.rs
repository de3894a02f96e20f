//! The thread that watches, those that restart what has died, and what others see: `Supervisor`.
//!
//! A crash is noticed twice: by a caller, who asks for another instance through his `Respawn`, and
//! by the watching thread, which also sees the death of a domain that nobody calls. Whoever comes
//! first restarts it. The watching thread itself never starts anything, since a start can take
//! long: it has each done by one of the others, by the list in [`restarts`](crate::restarts).

use crate::failure::Failure;
use crate::restarts::Work;
use crate::service;
use crate::system::System;
use alloc::sync::Arc;
use domain_rt::{log, thread, time};
use interfaces::{DomainEvent, DomainState, RpcError, RpcResult, ServiceInfo, Supervisor, Text};
use manifest::DomainIndex;

/// Threads that restart domains. A start may take long, and another domain is not to wait for it;
/// but one that needs the former has to, whoever starts it.
const WORKERS: usize = 4;

/// When there was no memory, how long until all domains are looked at again, in nanoseconds.
const RETRY_AFTER: u64 = 1_000_000_000;

/// Starts the thread that watches, and those that restart.
///
/// # Errors
/// No memory.
pub fn start(system: &Arc<System>) -> RpcResult<()> {
    start_workers(system)?;
    let system = system.clone();
    thread::spawn("watch", move || watch(&system))
}

fn watch(system: &Arc<System>) {
    let mut seen = 0;
    loop {
        match system.kernel.monitor.event(seen) {
            Ok(event) => {
                let missed = seen != 0 && event.number > seen + 1;
                seen = event.number;
                notice(system, &event, missed);
            }
            Err(RpcError::Interrupted) => {}
            Err(error) => return log!("nobody watches the domains any more: {error}"),
        }
    }
}

/// Has a dead domain of ours restarted. If events were missed, each of them could have been the
/// death of any.
fn notice(system: &Arc<System>, event: &DomainEvent, missed: bool) {
    if missed {
        log!("more happened than could be noticed: looking at all domains");
        return system.restarts.look_at_all();
    }
    if !matches!(event.state, DomainState::Dying | DomainState::Gone) {
        return;
    }
    if let Some(index) = system.served_by(event.id) {
        log!(
            "{}: instance {} ended: {}",
            event.name,
            event.id,
            service::reason(event.reason)
        );
        system.restarts.died(index, event.id);
    }
}

/// Has the domain with this number replaced, and then all that cannot go on without the instance
/// that died, or did not start again before because they needed it. Whether there was memory for
/// all of them.
fn revive(system: &Arc<System>, dead: Option<DomainIndex>) -> bool {
    let mut memory = true;
    if let Some(index) = dead {
        memory &= report(system, index, system.with_instance(index, None, |_| ()));
    }
    for &index in &system.order {
        if system.services[index].status().is_wanted() {
            memory &= report(system, index, system.with_instance(index, None, |_| ()));
        }
    }
    if dead.is_some_and(|index| system.steward == Some(index)) {
        system.leave_all();
    }
    memory
}

/// Says why a domain is down; whether it is not for want of memory, nor since the start was
/// interrupted: then it is tried again.
fn report(system: &System, index: DomainIndex, result: Result<(), Failure>) -> bool {
    let Err(failure) = result else {
        return true;
    };
    log!(
        "{} is down: {}",
        system.manifest[index].name,
        failure.text()
    );
    !matches!(failure, Failure::NoMemory(_) | Failure::Interrupted)
}

/// Starts the threads that restart what has died.
fn start_workers(system: &Arc<System>) -> RpcResult<()> {
    for _ in 0..WORKERS {
        let system = system.clone();
        thread::spawn("restart", move || work(&system))?;
    }
    Ok(())
}

fn work(system: &Arc<System>) {
    loop {
        let done = match system.restarts.next() {
            Work::One(index) => revive(system, Some(index)),
            Work::All => revive(system, None),
        };
        // Nobody may call the domain that there was no memory for.
        if !done {
            time::sleep(RETRY_AFTER);
            system.restarts.look_at_all();
        }
    }
}

/// What `init` knows of its domains.
pub struct Overview(pub Arc<System>);

impl Overview {
    /// `init` itself, whom the kernel supervises.
    fn own(&self) -> ServiceInfo {
        let deaths = self.0.kernel.deaths;
        ServiceInfo {
            name: Text::new("init"),
            id: domain_rt::self_id(),
            crashes: deaths,
            restarts: deaths,
            gave_up: false,
            updates: 0,
            image: Text::new("init"),
        }
    }
}

impl Supervisor for Overview {
    fn service(&self, index: u32) -> RpcResult<Option<ServiceInfo>> {
        let services = self.0.services.iter();
        let services = services.map(|(index, service)| (service, &self.0.manifest[index]));
        // Domains of disks are shown only while somebody wants them.
        let mut shown =
            services.filter(|(service, of)| of.disk.is_none() || service.status().starts > 0);
        let Some(before) = index.checked_sub(1) else {
            return Ok(Some(self.own()));
        };
        let Some((service, of)) = shown.nth(before as usize) else {
            return Ok(None);
        };
        let status = service.status();
        Ok(Some(ServiceInfo {
            name: Text::new(&of.name),
            id: status.id,
            crashes: status.crashes,
            restarts: status.restarts(),
            gave_up: status.gave_up,
            updates: status.updates,
            image: service.image_name(),
        }))
    }
}
