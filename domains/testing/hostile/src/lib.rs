//! Calls every method of every interface with hostile values, and looks whether anything but errors
//! follows.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`director`] | starts the system under attack, lets foes loose on it one after the other, and has others die |
//! | [`judge`] | what must hold afterwards |
//! | [`world`] | the system under attack: an `init` of its own with all that it starts |
//! | [`doors`] | what stands between that `init` and the kernel, and catches each handle that passes |
//! | [`stand_ins`] | what the kernel does not have on every platform, or must not do |
//! | [`foe`] | a domain that attacks; its calls come from `hostile_calls` |
//! | [`arsenal`], [`rogue`] | the handles and numbers of a foe; its own objects, which misbehave |
//! | [`score`] | what was called how often |
//! | [`options`] | how a run is told what to do |
//!
//! A run is a row of sequences. What sequence number `n` does depends on the seed and on `n`; which
//! thread comes first does not. In each sequence a fresh foe gets handles to some of what there is
//! and calls, from several threads; most of the handles that come back are used in later calls.
//! Meanwhile it is killed, or another domain is. Then the foe must be gone with all that it had,
//! nobody else may have died, and the heaps must be sound.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arsenal;
mod director;
mod doors;
mod foe;
mod judge;
mod options;
mod random;
mod rogue;
mod score;
mod stand_ins;
mod world;

use domain_rt::thread;
use interfaces::{
    AddressSpaces, Archive, CommandLine, Console, DomainControl, Events, Foe, Handle, Hardware,
    HeapAudit, Legacy, Loader, MemoryObjects, MemoryWatch, Monitor, Power, RVec, Random, Referee,
    RpcError, RpcResult, Tracer,
};

use director::{Director, Kernel};
use options::Options;

/// The domain's entry.
///
/// # Errors
/// [`RpcError::Refused`] if it is not granted what its role needs.
#[allow(clippy::too_many_arguments, reason = "the entry's declaration")]
#[allow(clippy::type_complexity, reason = "the entry's declaration")]
pub fn start(
    referee: Option<Handle<dyn Referee>>,
    loader: Option<Handle<dyn Loader>>,
    monitor: Option<Handle<dyn Monitor>>,
    control: Option<Handle<dyn DomainControl>>,
    archive: Option<Handle<dyn Archive>>,
    power: Option<Handle<dyn Power>>,
    hardware: Option<Handle<dyn Hardware>>,
    memory: Option<Handle<dyn MemoryWatch>>,
    objects: Option<Handle<dyn MemoryObjects>>,
    events: Option<Handle<dyn Events>>,
    tracer: Option<Handle<dyn Tracer>>,
    random: Option<Handle<dyn Random>>,
    spaces: Option<Handle<dyn AddressSpaces>>,
    command_line: Option<Handle<dyn CommandLine>>,
    legacy: Option<Handle<dyn Legacy>>,
    auditor: Option<Handle<dyn HeapAudit>>,
    options: RVec<u8>,
) -> RpcResult<(Option<Handle<dyn Foe>>, Option<Handle<dyn Console>>)> {
    match &*options {
        b"foe" => {
            let referee = referee.ok_or(RpcError::Refused)?;
            return Ok((Some(Handle::new(foe::Attacker::new(referee))?), None));
        }
        b"console" => return Ok((None, Some(Handle::new(stand_ins::SilentConsole)?))),
        _ => {}
    }
    let power = power.ok_or(RpcError::Refused)?;
    let kernel = Kernel {
        loader: loader.ok_or(RpcError::Refused)?,
        monitor: monitor.ok_or(RpcError::Refused)?,
        control: control.ok_or(RpcError::Refused)?,
        archive: archive.ok_or(RpcError::Refused)?,
        hardware,
        memory,
        objects: objects.ok_or(RpcError::Refused)?,
        events: events.ok_or(RpcError::Refused)?,
        tracer: tracer.ok_or(RpcError::Refused)?,
        random: random.ok_or(RpcError::Refused)?,
        spaces,
        command_line,
        legacy,
        auditor,
    };
    let options = Options::parse(core::str::from_utf8(&options).unwrap_or(""));
    thread::spawn("director", move || {
        let status = Director::new(kernel, options).run();
        let _ = power.off(status);
    })?;
    Ok((None, None))
}
