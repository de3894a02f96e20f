//! Calls that the host stops at every instruction, to have a domain killed just there:
//! `options=steps`.
//!
//! The host (`cargo xtask steps`) follows the thread that runs here with a debugger. They meet in
//! [`meet`], where the host has a breakpoint, and tell each other what is to be known in [`WORDS`],
//! whose addresses are in the log:
//!
//! ```text
//!   meet           the host reads ANSWER, LOST and MISSING of the last round and writes ORDER
//!   (here)         domains are started and called once; the killer spins on another processor and looks at GO
//!   meet ...       until the host has written START, which it does when it sees the killer there
//!   the call       the host steps it as far as it likes; then it writes GO, and lets the killer go on alone
//!   (here)         what the call gave is judged, all is ended, memory is counted
//! ```

use crate::gauge::Gauges;
use crate::lab::{Lab, Victim, say, unlimited, wait_for};
use crate::shadows::{self, Site};
use crate::{Verdict, ensure};
use alloc::format;
use alloc::string::String;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use domain_rt::{log, thread, time};
use interfaces::{Batch, Domain, Handle, NetError, RRef, RVec, RpcError, RpcResult};

/// What host and guest tell each other; the places are the constants below.
static WORDS: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];
/// Which call (its number in [`CALLS`], from 1; [`END`]), and in the second byte whom to kill:
/// [`FRONT`] or [`BACK`].
const ORDER: usize = 0;
/// Not 0: the host follows from here on.
const START: usize = 1;
/// What the killer is to do: wait, kill ([`KILL`]), or leave.
const GO: usize = 2;
/// What came of the last round: [`RIGHT`] or one of its like.
const ANSWER: usize = 3;
/// Bytes that were free before the last round and are not after it.
const LOST: usize = 4;
/// Shared objects and handles that there was room for before the last round and is not after it.
const MISSING: usize = 6;
/// How far the killer is: [`SPINS`], [`DONE`].
const KILLER: usize = 5;

/// [`ORDER`]: there are no more rounds.
const END: u64 = 0xff;
/// [`ORDER`]: the domain that is called.
const FRONT: u64 = 0;
/// [`ORDER`]: the domain that is called by that one.
const BACK: u64 = 1;
/// [`GO`]: kill.
const KILL: u64 = 1;
/// [`KILLER`]: it is at work.
const SPINS: u64 = 1;
/// [`KILLER`]: it is done.
const DONE: u64 = 2;
/// [`ANSWER`]: the call's result was right.
const RIGHT: u64 = 1;
/// [`ANSWER`]: the call gave the error of a domain that has crashed.
const CRASHED: u64 = 2;
/// [`ANSWER`]: something is not as it must be; the log says what.
const WRONG: u64 = 3;

/// The call is over.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// How long memory may take to come back, in nanoseconds.
const PATIENCE: u64 = 3_000_000_000;

/// The calls; the host knows them by their numbers.
const CALLS: [fn() -> RpcResult<Call>; 6] = [
    || Ok(Call::Plain),
    || Ok(Call::InMemory),
    || Ok(Call::Object(RRef::new([7; 64])?)),
    || Ok(Call::Shadowed(shadows::batch(64)?)),
    || Ok(Call::Handle),
    || Ok(Call::Nest),
];

/// A call with what it takes, made before so that the call alone is stepped.
enum Call {
    /// Numbers through a domain that forwards.
    Plain,
    /// The same with a result in memory.
    InMemory,
    /// An object there and back, through a domain that forwards.
    Object(RRef<[u8; 64]>),
    /// A batch of packets for a driver, through its shadow.
    Shadowed(RRef<Batch>),
    /// A handle to a new object of the victim, through a domain that forwards.
    Handle,
    /// Several objects that the victim makes and gives away, through a domain that forwards.
    Nest,
}

/// Two domains in a row.
enum Scene {
    /// One that forwards, and a victim.
    Forwarded { front: Victim, back: Victim },
    /// A shadow and the driver behind it.
    Shadowed(Site),
}

fn word(place: usize) -> u64 {
    WORDS[place].load(Ordering::SeqCst)
}

fn set(place: usize, value: u64) {
    WORDS[place].store(value, Ordering::SeqCst);
}

/// The host has a breakpoint here.
#[inline(never)]
fn meet() {
    black_box(&WORDS);
}

/// Plays all rounds that the host asks for; 1 if that cannot be done.
pub fn run(lab: &Lab) -> usize {
    let gauges = match Gauges::new(lab) {
        Ok(gauges) => gauges,
        Err(why) => {
            log!("steps: {why}");
            return 1;
        }
    };
    let words = WORDS.as_ptr() as usize;
    log!("steps: meet {:#x} words {words:#x}", meet as fn() as usize);
    loop {
        meet();
        match word(ORDER) {
            END => return 0,
            // The host has not come yet.
            0 => time::sleep(1_000_000),
            order => {
                let answer = play(lab, &gauges, order).unwrap_or_else(|why| {
                    log!("steps: WRONG: {why}");
                    WRONG
                });
                set(ANSWER, answer);
            }
        }
    }
}

/// A round; its answer.
fn play(lab: &Lab, gauges: &Gauges, order: u64) -> Result<u64, String> {
    [START, GO, KILLER, ANSWER]
        .iter()
        .for_each(|place| set(*place, 0));
    IS_OVER.store(false, Ordering::SeqCst);
    let (number, whom) = (order & 0xff, order >> 8);
    let make = CALLS.get((number as usize).wrapping_sub(1));
    let make = make.ok_or_else(|| format!("there is no call {number}"))?;
    let before = (lab.free()?, gauges.room(lab)?);
    let answer = kill_in_the_middle(lab, *make, whom)?;
    let end = time::now() + PATIENCE;
    loop {
        let lost = before.0.saturating_sub(lab.free()?);
        let missing = before.1.saturating_sub(gauges.room(lab)?);
        if lost == 0 && missing == 0 || time::now() > end {
            set(LOST, lost);
            set(MISSING, missing as u64);
            return Ok(answer);
        }
        time::sleep(500_000);
    }
}

fn kill_in_the_middle(lab: &Lab, make: fn() -> RpcResult<Call>, whom: u64) -> Result<u64, String> {
    let (first, call) = (make().map_err(say)?, make().map_err(say)?);
    let scene = Scene::new(lab, &call)?;
    ensure!(scene.carry_out(first) == Ok(true), "wrong before any harm");
    let target = scene.domain(whom)?;
    thread::spawn("killer", move || killer(target)).map_err(say)?;
    wait_for("the killer", || word(KILLER) == SPINS)?;
    while word(START) == 0 {
        meet();
    }
    let answer = scene.carry_out(call);
    IS_OVER.store(true, Ordering::SeqCst);
    let is_killed = word(GO) == KILL;
    wait_for("the killer's end", || word(KILLER) == DONE)?;
    if is_killed {
        scene.look_at(whom)?;
    }
    scene.end()?;
    match answer {
        Ok(true) => Ok(RIGHT),
        Err(RpcError::DomainCrashed) if is_killed => Ok(CRASHED),
        other => Err(format!("the call gave {other:?}")),
    }
}

/// The killer's thread: keeps its processor busy until it is told what to do, so that nothing has
/// to wake it. Then it leaves the processor to the reaper. It does not end before the call: that
/// would wait for the processor that stands still to forget the stack.
fn killer(target: Handle<dyn Domain>) {
    set(KILLER, SPINS);
    while word(GO) == 0 {}
    if word(GO) == KILL {
        // If it failed, the domain is found alive.
        let _ = target.kill();
    }
    while !IS_OVER.load(Ordering::SeqCst) {
        time::sleep(1_000_000);
    }
    drop(target);
    set(KILLER, DONE);
}

impl Scene {
    /// The domains for such a call.
    fn new(lab: &Lab, call: &Call) -> Result<Self, String> {
        if matches!(call, Call::Shadowed(_)) {
            return Ok(Scene::Shadowed(shadows::site(lab, 100)?));
        }
        let back = lab.start()?;
        let mut grants = [const { None }; 16];
        grants[0] = Some(back.subject.duplicate().map_err(say)?.into_any());
        let options = RVec::from_slice(&[]).map_err(say)?;
        let image = lab.image("domains/forwarder")?;
        let mut started = image.start(unlimited(), grants, options).map_err(say)?;
        let subject = started.offers[0].take().ok_or("nothing is offered")?;
        let front = Victim {
            subject: subject.downcast().map_err(|_| "not a subject")?,
            id: started.control.info().map_err(say)?.id,
            domain: started.control,
        };
        Ok(Scene::Forwarded { front, back })
    }

    /// Makes the call; whether the result is right.
    #[inline(never)]
    fn carry_out(&self, call: Call) -> RpcResult<bool> {
        match (self, call) {
            (Scene::Forwarded { front, .. }, Call::Plain) => Ok(front.subject.add(2, 3)? == 5),
            (Scene::Forwarded { front, .. }, Call::InMemory) => {
                Ok(front.subject.many(1, 2, 3, 4, 5, 6, 7, 8)? == [3, 7, 11, 15])
            }
            (Scene::Forwarded { front, .. }, Call::Object(object)) => {
                let object = front.subject.bump(object)?;
                Ok(object[0] == 8 && object[1..] == [7; 63])
            }
            (Scene::Forwarded { front, .. }, Call::Handle) => {
                // Whether it can still be called depends on who is dead.
                drop(front.subject.offspring()?);
                Ok(true)
            }
            (Scene::Forwarded { front, .. }, Call::Nest) => {
                let nest = front.subject.make_nest(5)?;
                let more = nest.more.iter().flatten().map(|object| **object);
                Ok(*nest.inner == 5 && more.eq([6, 7]) && nest.bytes[..] == [5; 100])
            }
            (Scene::Shadowed(site), Call::Shadowed(batch)) => match site.device.send(batch) {
                Ok(empty) => Ok(empty.count == 0 && empty.packets.len() == shadows::ROOM),
                Err(NetError::Rpc(error)) => Err(error),
                Err(_) => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// Authority over the one that is to be killed.
    fn domain(&self, whom: u64) -> Result<Handle<dyn Domain>, String> {
        match (self, whom) {
            (Scene::Forwarded { front, .. }, FRONT) => front.domain.duplicate().map_err(say),
            (Scene::Forwarded { back, .. }, _) => back.domain.duplicate().map_err(say),
            (Scene::Shadowed(site), FRONT) => site.shadow.duplicate().map_err(say),
            (Scene::Shadowed(site), _) => site.starter.driver(),
        }
    }

    /// Looks at what `whom`'s death has left: it is dead, the other one serves as before.
    fn look_at(&self, whom: u64) -> Verdict {
        match self {
            Scene::Forwarded { front, back } if whom == BACK => {
                back.gone()?;
                ensure!(back.is_dead(), "the killed domain answers");
                let answer = front.subject.null();
                let expected = Err(RpcError::DomainCrashed);
                ensure!(answer == expected, "the caller says {answer:?} of the dead");
                ensure!(!front.has_died()?, "the caller of the killed one died");
            }
            Scene::Forwarded { front, back } => {
                front.gone()?;
                ensure!(front.is_dead(), "the killed domain answers");
                let answer = back.subject.add(20, 1);
                ensure!(answer == Ok(21), "the one behind it says {answer:?}");
            }
            Scene::Shadowed(site) if whom == BACK => shadows::send(&site.device)?,
            Scene::Shadowed(site) => {
                site.shadow.wait().map_err(say)?;
                ensure!(site.device.traffic().is_err(), "the dead shadow answers");
                site.starter.serves()?;
            }
        }
        Ok(())
    }

    fn end(self) -> Verdict {
        match self {
            Scene::Forwarded { front, back } => front.end().and_then(|()| back.end()),
            Scene::Shadowed(site) => site.end(),
        }
    }
}
