//! Calls (P1 to P3).

use super::{measure, prepare, say, start};
use abi::{RRef, RpcResult};
use alloc::string::String;
use core::arch::asm;
use core::hint::black_box;
use interfaces::{Counting, Subject};
use isolation::Reason;
use isolation::call::count;
use isolation::death::kill::kill;

/// An object of the core, called through its method table without a proxy.
struct Plain;

trait Null {
    fn null(&self) -> RpcResult<()>;
}

impl Null for Plain {
    #[inline(never)]
    fn null(&self) -> RpcResult<()> {
        black_box(Ok(()))
    }
}

/// The cheapest system call.
fn getpid() -> u64 {
    let pid;
    // SAFETY: `getpid` (39) changes nothing; a system call overwrites rcx and r11.
    unsafe {
        asm!("syscall", inout("rax") 39u64 => pid, out("rcx") _, out("r11") _, options(nostack))
    };
    pid
}

/// All of them.
pub fn calls() -> Result<(), String> {
    let (victim, subject) = start(&prepare("domains/victim")?, None)?;
    let next = subject.duplicate().map_err(say)?.into_any();
    let (forwarder, shadow) = start(&prepare("domains/forwarder")?, Some(next))?;
    let plain: &dyn Null = black_box(&Plain);
    let (subject, shadow): (&dyn Subject, &dyn Subject) =
        (black_box(&*subject), black_box(&*shadow));
    measure("P0", "empty loop", || black_box(()));
    measure("P0d", "dyn call without a proxy", || {
        _ = black_box(plain.null())
    });
    measure("P0g", "getpid, raw system call", || _ = black_box(getpid()));
    measure("P1", "proxied null call", || _ = black_box(subject.null()));
    measure("P1a", "proxied call, two numbers and a result", || {
        _ = black_box(subject.add(1, 2))
    });
    moved("P2", "object moved in and back", subject)?;
    measure("P2a", "shared object made and freed", || {
        drop(black_box(RRef::new(1u64)))
    });
    measure("P3", "via a shadow, null", || _ = black_box(shadow.null()));
    moved("P3r", "via a shadow, object moved in and back", shadow)?;
    counting(subject, shadow)?;
    kill(&forwarder.block, Reason::Exited);
    kill(&victim.block, Reason::Exited);
    measure("P1d", "call on a dead domain", || {
        _ = black_box(subject.null())
    });
    Ok(())
}

/// The same while calls are counted.
fn counting(subject: &dyn Subject, shadow: &dyn Subject) -> Result<(), String> {
    count::set(Counting::On).map_err(say)?;
    // Methods that were looked up before are not those that count.
    let (subject, shadow) = (black_box(subject), black_box(shadow));
    measure("P1c", "proxied null call, counted", || {
        _ = black_box(subject.null())
    });
    moved("P2c", "object moved in and back, counted", subject)?;
    measure("P3c", "via a shadow, null, counted", || {
        _ = black_box(shadow.null())
    });
    moved(
        "P3rc",
        "via a shadow, object moved in and back, counted",
        shadow,
    )?;
    count::set(Counting::Off).map_err(say)
}

fn moved(id: &str, name: &str, subject: &dyn Subject) -> Result<(), String> {
    let mut object = Some(RRef::new([0u8; 64]).map_err(say)?);
    measure(id, name, || {
        object = object.take().and_then(|object| subject.bump(object).ok())
    });
    object.map(drop).ok_or_else(|| "the object was lost".into())
}
