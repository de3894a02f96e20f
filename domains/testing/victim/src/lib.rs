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
mod misdeeds;
mod monkeys;
mod objects;
mod spaces;
mod users;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use domain_rt::sync::{Condvar, Mutex, RwLock, Wait};
use domain_rt::{memory, thread, time};
use interfaces::{
    AddressSpace, AddressSpaces, CallTrace, DmaAllocator, DmaDirection, DmaMemory, DmaRun,
    DmaWindow, Events, Fired, Handle, HardwareError, Image, Loader, MemoryError, MemoryObjects,
    Misdeed, Nest, NewEvent, RRef, RVec, Raiser, Random, RandomError, RpcError, RpcResult,
    SpaceError, Subject, Timer, TimerError, Tracer, UserBuf, VmoOwner, VmoView, WaitWord,
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
            black_box(misdeeds::recurse(0, &[1; 64]));
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
            black_box(misdeeds::sink(levels));
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
    /// How often it was written to, and whether somebody reads it.
    written: RwLock<u64>,
    reads: AtomicBool,
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
        misdeeds::harm(self, how)
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
        misdeeds::harm(self, how)
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

    fn scratch(&self) -> RpcResult<()> {
        drop(core::hint::black_box(Box::new([0_u64; 8])));
        Ok(())
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
        runs: u32,
        direction: DmaDirection,
    ) -> Result<RVec<u64>, MemoryError> {
        let room = (count * u64::from(runs)).min(4096) as usize;
        let room = RVec::filled(0, room).map_err(MemoryError::Rpc)?;
        let run = DmaRun {
            first,
            pages: count,
            direction,
            hold: 0,
        };
        let mut all = RVec::filled(run, runs as usize).map_err(MemoryError::Rpc)?;
        for (run, number) in all.iter_mut().zip(0..) {
            run.first += number * count;
        }
        // Now, as afterwards there may be no memory for it.
        let mut numbers = RVec::filled(u64::MAX, runs as usize).map_err(MemoryError::Rpc)?;
        let (all, _, held) = window.hold(all, runs, room)?;
        for (number, run) in numbers.iter_mut().zip(&all[..held as usize]) {
            *number = run.hold;
        }
        Ok(numbers)
    }

    fn begin_load(&self, object: Handle<dyn VmoOwner>, first: u64, count: u64) -> RpcResult<u64> {
        object.load(first, count).map_err(objects::rpc)
    }

    fn await_load(&self, object: Handle<dyn VmoView>, page: u64) -> RpcResult<bool> {
        object.await_load(page, None).map_err(objects::rpc)
    }

    fn fill_object(
        &self,
        objects: Handle<dyn MemoryObjects>,
        pages: u64,
    ) -> RpcResult<(Handle<dyn VmoOwner>, u64)> {
        objects::fill(&objects, pages)
    }

    fn adopt(&self, object: Handle<dyn VmoOwner>) -> RpcResult<bool> {
        objects::adopt(&object)
    }

    fn tend(&self, object: Handle<dyn VmoOwner>, seed: u64) -> RpcResult<u64> {
        objects::tend(&object, seed)
    }

    fn churn(&self, object: Handle<dyn VmoView>, seed: u64) -> RpcResult<u64> {
        objects::churn(&object, seed)
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
        misdeeds::harm(self, how)
    }

    fn lend_user(&self, spaces: Handle<dyn AddressSpaces>) -> RpcResult<u64> {
        let next = self.next().ok_or(RpcError::Refused)?;
        users::lend(&spaces, &next)
    }

    fn copy_often(
        &self,
        maker: Handle<dyn AddressSpaces>,
        object: Handle<dyn VmoView>,
        seed: u64,
    ) -> RpcResult<u64> {
        users::copy_often(&maker, &object, seed)
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
