//! A domain that abuses what it is granted: the right to have another one restarted, or a device.
//!
//! `options`:
//! - `accuse` says [`COMPLAINTS`] times of an instance that lives that it has failed, and logs what
//!   came of it;
//! - `hang` attaches a gate that never says that it is closed;
//! - `hoard` asks [`INTERRUPTS`] times for an interrupt of the device, in turn for each of its
//!   entries, keeps all, and logs how many there were.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use domain_rt::{log, thread, time};
use interfaces::{Closed, Gate, Handle, PciDevice, RVec, Respawn, RpcError, RpcResult};

/// How often an instance that lives is said to have failed.
const COMPLAINTS: u32 = 40;

/// How often an interrupt is asked for: more often than any machine has some.
const INTERRUPTS: u16 = 1000;

/// The domain's entry.
///
/// # Errors
/// [`RpcError::NoMemory`]. [`RpcError::Refused`] if the options say something else.
pub fn start(
    victim: Option<Handle<dyn Respawn>>,
    device: Option<Handle<dyn PciDevice>>,
    options: RVec<u8>,
) -> RpcResult<()> {
    match (&*options, victim, device) {
        (b"accuse", Some(victim), _) => thread::spawn("accuse", move || accuse(&victim)),
        (b"hoard", _, Some(device)) => thread::spawn("hoard", move || hoard(device)),
        (b"hang", Some(victim), _) => {
            victim.attach(Handle::<dyn Gate>::new(Trap)?)?;
            log!("the gate is attached");
            // The right goes with the gate.
            thread::spawn("keep", move || sleep_with(&victim))
        }
        _ => Err(RpcError::Refused),
    }
}

/// Complains about each instance that it is given.
fn accuse(victim: &Handle<dyn Respawn>) {
    let (mut heard, mut errors, mut last) = (0, 0, 0);
    for _ in 0..=COMPLAINTS {
        match victim.instance(last) {
            Ok(instance) => {
                heard += u32::from(last != 0 && instance.id != last);
                last = instance.id;
            }
            Err(_) => errors += 1,
        }
    }
    log!("{COMPLAINTS} complaints: {heard} heard, {errors} errors");
}

/// Asks for as many interrupts as it gets.
fn hoard(device: Handle<dyn PciDevice>) {
    let entries = (0..).take_while(|entry| device.interrupt(*entry, 0).is_ok());
    let entries = entries.count().max(1) as u16;
    let asked = (0..INTERRUPTS).map(|number| device.interrupt(number % entries, 0));
    let got: Vec<_> = asked.filter_map(Result::ok).collect();
    log!("{} interrupts for {entries} entries", got.len());
    sleep_with(&(got, device));
}

fn sleep_with<T>(_kept: &T) {
    loop {
        time::sleep(u64::MAX / 2);
    }
}

/// A gate that is never closed.
struct Trap;

impl Gate for Trap {
    fn close(&self, _: u64) -> RpcResult<Handle<dyn Closed>> {
        sleep_with(self);
        Err(RpcError::Refused)
    }
}
