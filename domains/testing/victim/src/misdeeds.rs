//! What the victim does to itself and to others when it is asked to.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::hint::black_box;
use core::sync::atomic::Ordering;
use domain_rt::sync::Wait;
use domain_rt::{log, thread, time};
use interfaces::{Handle, Misdeed, RRef, RVec, RpcError, RpcResult, Subject};

use crate::{Link, Rogue};

/// Does `how`; what comes back if it comes back.
pub fn harm(rogue: &Rogue, how: Misdeed) -> RpcResult<u64> {
    match how {
        Misdeed::Panic => panic_with_boxes(),
        Misdeed::OutOfBounds => Ok(u64::from([1u8, 2, 3][black_box(4096)])),
        Misdeed::DeepRecursion => Ok(recurse(0, &[1; 64])),
        Misdeed::DeepCalls => recurse_calling(0, &[1; 64]),
        Misdeed::Spin => loop {
            rogue.shared.spun.fetch_add(1, Ordering::Relaxed);
        },
        Misdeed::SpinInKernel => loop {
            black_box(RRef::new(7u64)?);
        },
        Misdeed::DivideByZero => Ok(1 / black_box(0)),
        Misdeed::HoardPrivate => hoard_private(),
        Misdeed::HoardShared => hoard_shared(),
        Misdeed::HoardThreads => hoard_threads(),
        Misdeed::PanicInDrop => {
            drop(black_box(Grenade));
            Ok(0)
        }
        Misdeed::Block => block(rogue),
        Misdeed::PanicLocked => {
            let _guard = rogue.shared.lock.lock();
            panic!("with a lock held")
        }
        Misdeed::PanicRich => {
            let rich: Result<Vec<_>, _> = (0..100_000u64).map(RRef::new).collect();
            panic!("owning {} objects", rich?.len())
        }
        Misdeed::DeepClock => Ok(recurse_clocking(0)),
        Misdeed::DeepPeers => {
            let next = rogue.next().ok_or(RpcError::Refused)?;
            Ok(recurse_calling_on(0, &next))
        }
        Misdeed::SpinInPeers => {
            let next = rogue.next().ok_or(RpcError::Refused)?;
            loop {
                black_box((next.offspring()?, next.make_nest(1)?));
            }
        }
        Misdeed::WriteBesideReader => write_beside_reader(rogue),
        Misdeed::BlockInDrops => {
            rogue.shared.drops_block.store(true, Ordering::Relaxed);
            Ok(0)
        }
        Misdeed::SpinInOwnThread => wait_for_spinner(rogue),
        Misdeed::PanicInPanic => panic!("{}", Bomb { forever: false }),
        Misdeed::PanicForEver => panic!("{}", Bomb { forever: true }),
        Misdeed::PanicCalledBack => {
            let next = rogue.next().ok_or(RpcError::Refused)?;
            next.pass_on(Misdeed::Panic).map(u64::from)
        }
        Misdeed::ForgeOffspring => {
            rogue.shared.forges.store(true, Ordering::Relaxed);
            Ok(0)
        }
        Misdeed::ReenterLocked => {
            let _guard = rogue.shared.lock.lock();
            let next = rogue.next().ok_or(RpcError::Refused)?;
            next.misbehave(Misdeed::ReenterLocked)
        }
        Misdeed::FloodLog => {
            const LINES: u64 = 3_000;
            (0..LINES).for_each(|line| log!("flood {line:5} {:80}|", ""));
            Ok(LINES)
        }
        Misdeed::WaitForHeldLock => wait_for_holder(rogue),
        Misdeed::HoardBlindly => hoard_blindly(),
    }
}

/// Waits for a lock that a looping thread of this domain's own holds.
fn wait_for_spinner(rogue: &Rogue) -> RpcResult<u64> {
    let shared = rogue.shared.clone();
    thread::spawn("spinner", move || {
        let _guard = shared.lock.lock();
        loop {
            shared.spun.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    while rogue.shared.spun.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
    drop(rogue.shared.lock.lock());
    Ok(0)
}

/// Waits for a lock that a sleeping thread of this domain's own holds, until the caller is
/// ended.
fn wait_for_holder(rogue: &Rogue) -> RpcResult<u64> {
    let shared = rogue.shared.clone();
    thread::spawn("holder", move || {
        let _guard = shared.held.lock();
        shared.holds.store(true, Ordering::Relaxed);
        time::sleep(u64::MAX / 2);
    })?;
    while !rogue.shared.holds.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    let guard = rogue.shared.held.lock_interruptible();
    guard.map(|_| 0).ok_or(RpcError::Interrupted)
}

fn block(rogue: &Rogue) -> RpcResult<u64> {
    let mut guard = rogue.shared.lock.lock();
    loop {
        let wait;
        (guard, wait) = rogue.shared.bell.wait(guard);
        if wait == Wait::Interrupted {
            return Err(RpcError::Interrupted);
        }
    }
}

/// A text that cannot be written.
struct Bomb {
    forever: bool,
}

#[allow(clippy::recursive_format_impl)] // That is what it is for.
impl fmt::Display for Bomb {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.forever {
            true => panic!("{self}"),
            false => panic!("in the text of a panic"),
        }
    }
}

fn write_beside_reader(rogue: &Rogue) -> RpcResult<u64> {
    let shared = rogue.shared.clone();
    thread::spawn("reader", move || {
        let _guard = shared.written.read();
        shared.reads.store(true, Ordering::SeqCst);
        time::sleep(200_000_000);
        shared.reads.store(false, Ordering::SeqCst);
    })?;
    while !rogue.shared.reads.load(Ordering::SeqCst) {
        time::sleep(1_000_000);
    }
    let mut written = rogue.shared.written.write();
    *written += 1;
    Ok(*written)
}

struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("in a drop");
    }
}

fn panic_with_boxes() -> RpcResult<u64> {
    let boxes: Vec<Box<u64>> = (0..1000).map(Box::new).collect();
    panic!("deliberate, with {} boxes", boxes.len())
}

/// Recursion to the end of the stack.
#[inline(never)]
#[allow(unconditional_recursion)] // That is what it is for.
pub fn recurse(level: u64, above: &[u64; 64]) -> u64 {
    let mut here = *above;
    here[(level % 64) as usize] = level;
    recurse(level + 1, black_box(&here)) + here[(level % 7) as usize]
}

#[inline(never)]
fn recurse_calling(level: u64, above: &[u64; 64]) -> RpcResult<u64> {
    let mut here = *above;
    here[(level % 64) as usize] = *RRef::new(level)?;
    Ok(recurse_calling(level + 1, black_box(&here))? + here[(level % 7) as usize])
}

/// So many small frames, and then a call of the kernel.
#[inline(never)]
pub fn sink(levels: u64) -> u64 {
    match levels {
        0 => RRef::new(1).map_or(0, |it: RRef<u64>| *it),
        _ => black_box(sink(levels - 1)) + 1,
    }
}

/// A small frame, so that the kernel's own comes to lie across the end of the stack.
#[inline(never)]
#[allow(unconditional_recursion, clippy::only_used_in_recursion)] // That is what it is for.
fn recurse_clocking(level: u64) -> u64 {
    let now = black_box(time::now());
    recurse_clocking(level + 1) ^ now
}

#[inline(never)]
#[allow(unconditional_recursion)] // That is what it is for.
fn recurse_calling_on(level: u64, next: &Handle<dyn Subject>) -> u64 {
    let made = next.make_nest(level).is_ok();
    let called = next.null().is_ok();
    recurse_calling_on(level + 1, next) + u64::from(made) + u64::from(called)
}

fn hoard_private() -> RpcResult<u64> {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut more = Vec::new();
        if more.try_reserve_exact(256 * 1024).is_err() {
            // Nothing left: panic with everything still in hand.
            panic!("hoarded {} blocks", hoard.len());
        }
        more.push(1);
        hoard.push(more);
    }
}

#[inline(never)]
fn hoard_blindly() -> RpcResult<u64> {
    let mut hoard = None;
    loop {
        hoard = Some(Box::new(Link {
            next: hoard,
            _rest: [0; 7],
        }));
        black_box(&hoard);
    }
}

fn hoard_shared() -> RpcResult<u64> {
    let mut hoard = Vec::new();
    loop {
        match RVec::filled(0u8, 64 * 1024) {
            Ok(more) => hoard.push(more),
            Err(error) => {
                let count = hoard.len();
                core::mem::forget(hoard);
                panic!("hoarded {count} runs: {error:?}");
            }
        }
    }
}

fn hoard_threads() -> RpcResult<u64> {
    for count in 0.. {
        if thread::spawn("bomb", || time::sleep(u64::MAX / 2)).is_err() {
            return Ok(count);
        }
    }
    Ok(0)
}
