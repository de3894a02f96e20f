//! A domain that does harm when it is asked to: for the isolation tests and the benchmarks of
//! calls.
//!
//! `options`: `panic` makes the start function panic, `fail` makes it give an error, `!` and the
//! number of an [`RpcError`] this one, `overflow` makes it use up its stack, `reserve` makes it set
//! 256 KiB aside for when there is no memory.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod beats;
mod deadlines;
mod monkeys;
mod spaces;
mod users;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::{log, memory, thread, time};
use interfaces::{
    AddressSpace, AddressSpaces, CallTrace, DmaAllocator, DmaDirection, DmaMemory, DmaWindow,
    Events, Fired, Handle, HardwareError, Image, Loader, MemoryError, MemoryObjects, Misdeed, Nest,
    NewEvent, RRef, RVec, Raiser, Random, RandomError, RpcError, RpcResult, SpaceError, Subject,
    Timer, TimerError, Tracer, UserBuf, VmoFill, VmoOwner, VmoRights, VmoView, WaitWord,
};

/// The domain's entry.
///
/// # Errors
/// [`RpcError::Refused`] if the options ask for it.
pub fn start(
    next: Option<Handle<dyn Subject>>,
    options: RVec<u8>,
) -> RpcResult<Handle<dyn Subject>> {
    match &*options {
        b"panic" => panic!("asked to panic in its start function"),
        b"fail" => Err(RpcError::Refused),
        [b'!', number] => {
            Err(RpcError::from_number(u64::from(*number)).unwrap_or(RpcError::Refused))
        }
        b"overflow" => {
            black_box(recurse(0, &[1; 64]));
            Err(RpcError::Refused)
        }
        b"reserve" => {
            memory::reserve(256)?;
            rogue(next)
        }
        [b'd', b'e', b'e', b'p', b' ', levels @ ..] => {
            let levels = core::str::from_utf8(levels).map(str::parse);
            let Ok(Ok(levels)) = levels else {
                return Err(RpcError::Refused);
            };
            black_box(sink(levels));
            rogue(next)
        }
        _ => rogue(next),
    }
}

fn rogue(next: Option<Handle<dyn Subject>>) -> RpcResult<Handle<dyn Subject>> {
    Handle::new(Rogue {
        shared: Arc::default(),
        next: Mutex::new(next.map(Arc::new)),
        child: false,
    })
}

/// Bytes of a page.
const PAGE: u64 = 4096;

/// What a page of a memory object begins with that was written to.
fn canary(page: u64) -> [u8; 8] {
    (page + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

const READ_WRITE: VmoRights = VmoRights {
    read: true,
    write: true,
    map: false,
    execute: false,
};

fn rpc(error: MemoryError) -> RpcError {
    match error {
        MemoryError::Rpc(error) => error,
        _ => RpcError::Refused,
    }
}

#[derive(Default)]
struct Shared {
    objects: Mutex<Vec<RRef<[u8; 64]>>>,
    nests: Mutex<Vec<RRef<Nest>>>,
    memory: Mutex<Vec<Vec<u8>>>,
    device: Mutex<Vec<Handle<dyn DmaMemory>>>,
    gathered: Mutex<Option<Box<Link>>>,
    traces: Mutex<Vec<Handle<dyn CallTrace>>>,
    timers: Mutex<Vec<Handle<dyn Timer>>>,
    offspring: AtomicU32,
    lock: Mutex<u64>,
    bell: Condvar,
    /// Held without end by a thread.
    held: Mutex<()>,
    /// It is held.
    holds: AtomicBool,
    spun: AtomicU64,
    /// Offspring is the next subject.
    forges: AtomicBool,
    /// Drops of offspring do not return.
    drops_block: AtomicBool,
    /// Threads with deadlines.
    deadlines: deadlines::Deadlines,
}

/// One of many objects of 64 bytes.
struct Link {
    next: Option<Box<Link>>,
    _rest: [u64; 7],
}

struct Rogue {
    shared: Arc<Shared>,
    next: Mutex<Option<Arc<Handle<dyn Subject>>>>,
    child: bool,
}

impl Drop for Rogue {
    fn drop(&mut self) {
        if self.child {
            self.shared.offspring.fetch_sub(1, Ordering::Relaxed);
            while self.shared.drops_block.load(Ordering::Relaxed) {
                time::sleep(u64::MAX / 2);
            }
        }
    }
}

impl Rogue {
    fn next(&self) -> Option<Arc<Handle<dyn Subject>>> {
        self.next.lock().clone()
    }

    fn harm(&self, how: Misdeed) -> RpcResult<u64> {
        match how {
            Misdeed::Panic => panic_with_boxes(),
            Misdeed::OutOfBounds => Ok(u64::from([1u8, 2, 3][black_box(4096)])),
            Misdeed::DeepRecursion => Ok(recurse(0, &[1; 64])),
            Misdeed::DeepCalls => recurse_calling(0, &[1; 64]),
            Misdeed::Spin => loop {
                self.shared.spun.fetch_add(1, Ordering::Relaxed);
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
            Misdeed::Block => self.block(),
            Misdeed::PanicLocked => {
                let _guard = self.shared.lock.lock();
                panic!("with a lock held")
            }
            Misdeed::PanicRich => {
                let rich: Result<Vec<_>, _> = (0..100_000u64).map(RRef::new).collect();
                panic!("owning {} objects", rich?.len())
            }
            Misdeed::DeepClock => Ok(recurse_clocking(0)),
            Misdeed::DeepPeers => {
                let next = self.next().ok_or(RpcError::Refused)?;
                Ok(recurse_calling_on(0, &next))
            }
            Misdeed::SpinInPeers => {
                let next = self.next().ok_or(RpcError::Refused)?;
                loop {
                    black_box((next.offspring()?, next.make_nest(1)?));
                }
            }
            Misdeed::BlockInDrops => {
                self.shared.drops_block.store(true, Ordering::Relaxed);
                Ok(0)
            }
            Misdeed::SpinInOwnThread => self.wait_for_spinner(),
            Misdeed::PanicInPanic => panic!("{}", Bomb { forever: false }),
            Misdeed::PanicForEver => panic!("{}", Bomb { forever: true }),
            Misdeed::PanicCalledBack => {
                let next = self.next().ok_or(RpcError::Refused)?;
                next.pass_on(Misdeed::Panic).map(u64::from)
            }
            Misdeed::ForgeOffspring => {
                self.shared.forges.store(true, Ordering::Relaxed);
                Ok(0)
            }
            Misdeed::ReenterLocked => {
                let _guard = self.shared.lock.lock();
                let next = self.next().ok_or(RpcError::Refused)?;
                next.misbehave(Misdeed::ReenterLocked)
            }
            Misdeed::FloodLog => {
                const LINES: u64 = 3_000;
                (0..LINES).for_each(|line| log!("flood {line:5} {:80}|", ""));
                Ok(LINES)
            }
            Misdeed::WaitForHeldLock => self.wait_for_holder(),
            Misdeed::HoardBlindly => hoard_blindly(),
        }
    }

    /// Waits for a lock that a looping thread of this domain's own holds.
    fn wait_for_spinner(&self) -> RpcResult<u64> {
        let shared = self.shared.clone();
        thread::spawn("spinner", move || {
            let _guard = shared.lock.lock();
            loop {
                shared.spun.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        while self.shared.spun.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        drop(self.shared.lock.lock());
        Ok(0)
    }

    /// Waits for a lock that a sleeping thread of this domain's own holds, until the caller is
    /// ended.
    fn wait_for_holder(&self) -> RpcResult<u64> {
        let shared = self.shared.clone();
        thread::spawn("holder", move || {
            let _guard = shared.held.lock();
            shared.holds.store(true, Ordering::Relaxed);
            time::sleep(u64::MAX / 2);
        })?;
        while !self.shared.holds.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        let guard = self.shared.held.lock_interruptible();
        guard.map(|_| 0).ok_or(RpcError::Interrupted)
    }

    fn block(&self) -> RpcResult<u64> {
        let mut guard = self.shared.lock.lock();
        loop {
            let wait;
            (guard, wait) = self.shared.bell.wait(guard);
            if wait == Wait::Interrupted {
                return Err(RpcError::Interrupted);
            }
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

#[inline(never)]
#[allow(unconditional_recursion)] // That is what it is for.
fn recurse(level: u64, above: &[u64; 64]) -> u64 {
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
fn sink(levels: u64) -> u64 {
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

impl Subject for Rogue {
    fn null(&self) -> RpcResult<()> {
        Ok(())
    }

    fn add(&self, left: u64, right: u64) -> RpcResult<u64> {
        Ok(left.wrapping_add(right))
    }

    fn bump(&self, mut object: RRef<[u8; 64]>) -> RpcResult<RRef<[u8; 64]>> {
        object[0] = object[0].wrapping_add(1);
        Ok(object)
    }

    fn peek(&self, object: &RRef<[u8; 64]>) -> RpcResult<u64> {
        Ok(u64::from(object[0]))
    }

    #[allow(clippy::too_many_arguments)]
    fn many(
        &self,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        f: u64,
        g: u64,
        h: u64,
    ) -> RpcResult<[u64; 4]> {
        assert!(
            a != 666,
            "asked to, with eight arguments and a result in memory"
        );
        Ok([a + b, c + d, e + f, g + h])
    }

    fn depth(&self, depth: u64) -> RpcResult<u64> {
        let (left, fuse) = (depth as u32, depth >> 32);
        assert!(
            fuse == 0 || u64::from(left) != fuse,
            "asked to, {left} calls from the end"
        );
        match self.next().filter(|_| left > 0) {
            Some(next) => Ok(next.depth(depth - 1)? + 1),
            None => Ok(0),
        }
    }

    fn misbehave(&self, how: Misdeed) -> RpcResult<u64> {
        self.harm(how)
    }

    fn pass_on(&self, how: Misdeed) -> RpcResult<bool> {
        let next = self.next().ok_or(RpcError::Refused)?;
        Ok(next.misbehave(how).is_err())
    }

    fn keep(&self, object: RRef<[u8; 64]>) -> RpcResult<()> {
        self.shared.objects.lock().push(object);
        Ok(())
    }

    fn keep_nest(&self, nest: RRef<Nest>) -> RpcResult<()> {
        let mut nests = self.shared.nests.lock();
        nests.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
        nests.push(nest);
        Ok(())
    }

    fn make(&self, value: u64) -> RpcResult<RRef<u64>> {
        RRef::new(value)
    }

    fn make_nest(&self, value: u64) -> RpcResult<RRef<Nest>> {
        let more = [
            Some(RRef::new(value + 1)?),
            None,
            Some(RRef::new(value + 2)?),
            None,
        ];
        RRef::new(Nest {
            inner: RRef::new(value)?,
            more,
            bytes: RVec::filled(value as u8, 100)?,
        })
    }

    fn lend_on(&self, object: &RRef<[u8; 64]>, how: Misdeed) -> RpcResult<bool> {
        let next = self.next().ok_or(RpcError::Refused)?;
        Ok(next.harm_with(object, how).is_err())
    }

    fn harm_with(&self, object: &RRef<[u8; 64]>, how: Misdeed) -> RpcResult<u64> {
        black_box(object[0]);
        self.harm(how)
    }

    fn follow(&self, next: Option<Handle<dyn Subject>>) -> RpcResult<()> {
        let old = core::mem::replace(&mut *self.next.lock(), next.map(Arc::new));
        drop(old);
        Ok(())
    }

    fn offspring(&self) -> RpcResult<Handle<dyn Subject>> {
        if self.shared.forges.load(Ordering::Relaxed) {
            return self.next().ok_or(RpcError::Refused)?.duplicate();
        }
        self.shared.offspring.fetch_add(1, Ordering::Relaxed);
        Handle::new(Rogue {
            shared: self.shared.clone(),
            next: Mutex::new(None),
            child: true,
        })
    }

    fn offspring_alive(&self) -> RpcResult<u32> {
        Ok(self.shared.offspring.load(Ordering::Relaxed))
    }

    fn threads(&self, count: u32) -> RpcResult<()> {
        for _ in 0..count {
            let shared = self.shared.clone();
            thread::spawn("idle", move || {
                let mut guard = shared.lock.lock();
                loop {
                    (guard, _) = shared.bell.wait(guard);
                }
            })?;
        }
        Ok(())
    }

    fn block_until(&self, until: u64) -> RpcResult<bool> {
        let mut guard = self.shared.lock.lock();
        loop {
            let wait;
            (guard, wait) = self.shared.bell.wait_until(guard, until);
            match wait {
                Wait::TimedOut => return Ok(true),
                Wait::Interrupted => return Ok(false),
                Wait::Woken => {}
            }
        }
    }

    fn metronome(&self, period: u64, late: RVec<u64>) -> RpcResult<RVec<u64>> {
        beats::count(period, late)
    }

    fn promised(&self, count: u32, runtime: u64, period: u64, busy: bool) -> RpcResult<u32> {
        Ok(deadlines::start(
            &self.shared,
            count,
            (runtime, period),
            busy,
        ))
    }

    fn forgo(&self) -> RpcResult<()> {
        self.shared.deadlines.end();
        Ok(())
    }

    fn keep_time(
        &self,
        spinners: u32,
        deadline: bool,
        runtime: u64,
        period: u64,
        periods: u32,
    ) -> RpcResult<u32> {
        let plan = deadlines::Plan {
            spinners,
            deadline,
            runtime,
            period,
            periods,
        };
        deadlines::keep_time(&self.shared, plan)
    }

    fn grow(&self, bytes: u64) -> RpcResult<u64> {
        let mut more = Vec::new();
        more.try_reserve_exact(bytes as usize)
            .map_err(|_| RpcError::NoMemory)?;
        more.resize(bytes as usize, 1);
        let mut memory = self.shared.memory.lock();
        memory.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
        memory.push(more);
        Ok(memory.iter().map(|block| block.len() as u64).sum())
    }

    fn hoard_device_memory(&self, from: Handle<dyn DmaAllocator>, pages: u32) -> RpcResult<u64> {
        let mut hoard = self.shared.device.lock();
        loop {
            match from.allocate(pages) {
                Ok(memory) => {
                    hoard.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
                    hoard.push(memory);
                }
                Err(HardwareError::Rpc(RpcError::NoMemory)) => return Ok(hoard.len() as u64),
                Err(_) => return Err(RpcError::Refused),
            }
        }
    }

    fn hold_pages(
        &self,
        window: Handle<dyn DmaWindow>,
        first: u64,
        count: u64,
        direction: DmaDirection,
    ) -> Result<u64, MemoryError> {
        let room = RVec::filled(0, count.min(256) as usize).map_err(MemoryError::Rpc)?;
        let (_, hold) = window.hold(first, count, direction, room)?;
        Ok(hold)
    }

    fn fill_object(
        &self,
        objects: Handle<dyn MemoryObjects>,
        pages: u64,
    ) -> RpcResult<(Handle<dyn VmoOwner>, u64)> {
        let owner = objects.create(pages, VmoFill::Zero).map_err(rpc)?;
        let view = owner.view(READ_WRITE).map_err(rpc)?;
        let mut done = 0;
        while done < pages {
            let mark = RVec::from_slice(&canary(done))?;
            match view.write(done * PAGE, &mark) {
                Ok(_) => done += 1,
                Err(MemoryError::Rpc(RpcError::NoMemory)) => break,
                Err(error) => return Err(rpc(error)),
            }
        }
        Ok((owner, done))
    }

    fn begin_load(&self, object: Handle<dyn VmoOwner>, first: u64, count: u64) -> RpcResult<u64> {
        object.load(first, count).map_err(rpc)
    }

    fn await_load(&self, object: Handle<dyn VmoView>, page: u64) -> RpcResult<bool> {
        object.await_load(page, None).map_err(rpc)
    }

    fn adopt(&self, object: Handle<dyn VmoOwner>) -> RpcResult<bool> {
        match object.adopt() {
            Ok(()) => Ok(true),
            Err(MemoryError::Rpc(RpcError::NoMemory)) => Ok(false),
            Err(error) => Err(rpc(error)),
        }
    }

    fn churn(&self, object: Handle<dyn VmoView>, seed: u64) -> RpcResult<u64> {
        let pages = object.limit()?;
        let mut random = seed;
        loop {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let page = (random >> 33) % pages;
            let (seen, _) = match object.read(page * PAGE, RVec::filled(1, 8)?) {
                Ok(seen) => seen,
                Err(MemoryError::Loading | MemoryError::Absent) => continue,
                Err(error) => return Err(rpc(error)),
            };
            // What is read while somebody writes is a mix of both.
            let mut bytes = seen.iter().zip(canary(page));
            if !bytes.all(|(seen, right)| *seen == 0 || *seen == right) {
                return Ok(page);
            }
            match object.write(page * PAGE, &RVec::from_slice(&canary(page))?) {
                Ok(_) | Err(MemoryError::Rpc(RpcError::NoMemory)) => {}
                Err(error) => return Err(rpc(error)),
            }
        }
    }

    fn make_space(&self, maker: Handle<dyn AddressSpaces>) -> RpcResult<Handle<dyn AddressSpace>> {
        maker.create().map_err(|error| match error {
            SpaceError::Rpc(error) => error,
            _ => RpcError::Refused,
        })
    }

    fn crowd_in_ring3(&self, maker: Handle<dyn AddressSpaces>, threads: u64) -> RpcResult<u64> {
        spaces::crowd_in_ring3(&maker, threads)
    }

    fn random_programs(
        &self,
        maker: Handle<dyn AddressSpaces>,
        seed: u64,
        programs: u64,
    ) -> RpcResult<u64> {
        monkeys::run(&maker, seed, programs)
    }

    fn loop_in_ring3(&self, maker: Handle<dyn AddressSpaces>) -> RpcResult<()> {
        spaces::loop_in_ring3(&maker)
    }

    fn fork_often(
        &self,
        maker: Handle<dyn AddressSpaces>,
        object: Handle<dyn VmoView>,
        seed: u64,
    ) -> RpcResult<u64> {
        spaces::fork_often(&maker, &object, seed)
    }

    fn fill_user(&self, to: &UserBuf<'_>, seed: u64) -> RpcResult<u64> {
        Ok(users::fill(to, seed))
    }

    fn sum_user(&self, from: &UserBuf<'_>) -> RpcResult<(u64, u64)> {
        Ok(users::sum(from))
    }

    fn harm_with_user(&self, memory: &UserBuf<'_>, how: Misdeed) -> RpcResult<u64> {
        black_box(memory.read(0, &mut [0]) + memory.write(0, &[1]));
        self.harm(how)
    }

    fn lend_user(&self, spaces: Handle<dyn AddressSpaces>) -> RpcResult<u64> {
        let next = self.next().ok_or(RpcError::Refused)?;
        users::lend(&spaces, &next)
    }

    fn make_event(&self, events: Handle<dyn Events>) -> RpcResult<NewEvent> {
        events.event()
    }

    fn raise_often(&self, raiser: Handle<dyn Raiser>, times: u64) -> RpcResult<u64> {
        (0..times).try_for_each(|_| raiser.raise())?;
        Ok(times)
    }

    fn make_timer(
        &self,
        events: Handle<dyn Events>,
        raiser: Handle<dyn Raiser>,
    ) -> Result<Handle<dyn Timer>, TimerError> {
        events.timer(raiser)
    }

    fn keep_timers(
        &self,
        events: Handle<dyn Events>,
        raiser: Handle<dyn Raiser>,
        count: u64,
        deadline: u64,
        period: Option<u64>,
    ) -> RpcResult<u64> {
        let keep = |timer: Handle<dyn Timer>| {
            timer.set(deadline, period).map_err(|_| RpcError::Refused)?;
            self.shared.timers.lock().push(timer);
            Ok(())
        };
        for made in 0..count {
            match events.timer(raiser.duplicate()?) {
                Ok(timer) => keep(timer)?,
                Err(_) => return Ok(made),
            }
        }
        Ok(count)
    }

    fn fill_often(
        &self,
        random: Handle<dyn Random>,
        buffer: RVec<u8>,
        times: u64,
    ) -> Result<RVec<u8>, RandomError> {
        (0..times).try_fold(buffer, |buffer, _| random.fill(buffer))
    }

    fn await_events(&self, word: Handle<dyn WaitWord>) -> RpcResult<u64> {
        let none = Fired {
            tag: 0,
            count: 0,
            ended: false,
        };
        let mut fired = RVec::filled(none, 16)?;
        loop {
            fired = word.wait(None, fired)?;
            if fired.len() < 16 {
                fired = RVec::filled(none, 16)?;
            }
        }
    }

    fn keep_trace(&self, tracer: Handle<dyn Tracer>, id: u32) -> RpcResult<()> {
        self.shared.traces.lock().push(tracer.trace(id)?);
        Ok(())
    }

    fn verify(&self, loader: Handle<dyn Loader>, file: RVec<u8>) -> RpcResult<Handle<dyn Image>> {
        loader.prepare(file).map_err(|_| RpcError::Refused)
    }

    fn gather(&self, count: u64) -> RpcResult<()> {
        for _ in 0..count {
            let mut first = self.shared.gathered.lock();
            let link = Link {
                next: first.take(),
                _rest: [count; 7],
            };
            *first = Some(Box::new(link));
        }
        Ok(())
    }

    fn gather_more(&self, count: u64) -> RpcResult<()> {
        self.gather(count)
    }

    fn shed(&self) -> RpcResult<u64> {
        let memory = core::mem::take(&mut *self.shared.memory.lock());
        let mut bytes = memory.iter().map(|block| block.len() as u64).sum();
        let mut next = self.shared.gathered.lock().take();
        while let Some(mut link) = next {
            bytes += size_of::<Link>() as u64;
            next = link.next.take();
        }
        Ok(bytes)
    }
}
