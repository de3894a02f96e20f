//! Pages of memory objects that a device holds: whose they can be, what may happen to them
//! meanwhile, and what becomes of them when the driver dies. The device is one that never uses
//! memory by itself, so nothing writes but the tests.

use crate::lab::{Lab, say};
use crate::limits::{IDLE, SOME, info, is_well, spec, start};
use crate::memory::all_memory;
use crate::objects::{ALL, PAGE, READ, bytes, object, read};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use interfaces::DmaDirection::{FromDevice, ToDevice};
use interfaces::{
    DmaAllocator, DmaDirection, DmaRun, DmaWindow, Handle, MemoryError, PageKind, RVec, RpcError,
    RpcResult, UserBuf, VmoFill, VmoOwner, VmoRights, VmoView,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("devices-views-have-rights", rights),
    ("devices-numbers-at-the-ends", ends),
    ("devices-hold-batches", batches),
    ("devices-batches-at-the-ends", batch_ends),
    ("devices-hold-what-is-taken-away", taken_away),
    ("devices-write-and-mark", marks),
    ("devices-load-pages", loads),
    ("devices-of-dead-drivers-hold-on", dead_driver),
    ("devices-left-pages-are-charged-once", left_pages),
    ("devices-are-reset-under-an-old-window", old_window),
    ("devices-hold-so-much", limits),
    ("devices-holds-are-charged", charged),
    ("devices-holds-take-no-memory", holds_take_no_memory),
    ("devices-write-back-without-memory", without_memory),
];

/// Who drives the idle device, with a device that was reset; `None`: a Linux process has none.
fn driver(lab: &Lab) -> Result<Option<Handle<dyn DmaAllocator>>, String> {
    let Some(hardware) = &lab.hardware else {
        return Ok(None);
    };
    let allocator = hardware.dma(IDLE).map_err(say)?;
    allocator.reset_done().map_err(say)?;
    Ok(Some(allocator))
}

/// What is held: addresses, and the hold's number.
type Held = Result<(Vec<u64>, u64), MemoryError>;

fn run(first: u64, pages: u64, direction: DmaDirection) -> DmaRun {
    DmaRun {
        first,
        pages,
        direction,
        hold: u64::MAX,
    }
}

fn hold(window: &Handle<dyn DmaWindow>, first: u64, count: u64, to: DmaDirection) -> Held {
    let room = RVec::filled(0, count.min(300) as usize).map_err(MemoryError::Rpc)?;
    let runs = RVec::from_slice(&[run(first, count, to)]).map_err(MemoryError::Rpc)?;
    let (runs, addresses, held) = window.hold(runs, 1, room)?;
    match held {
        1 => Ok((addresses.to_vec(), runs[0].hold)),
        _ => Err(MemoryError::Present),
    }
}

/// Says that the device does not use this hold any more.
fn release(window: &Handle<dyn DmaWindow>, hold: u64) -> Result<(), MemoryError> {
    let holds = RVec::from_slice(&[hold]).map_err(MemoryError::Rpc)?;
    window.release(&holds, 1)
}

/// A window on pages of `owner`, with all rights.
fn window(
    allocator: &Handle<dyn DmaAllocator>,
    owner: &Handle<dyn VmoOwner>,
) -> Result<Handle<dyn DmaWindow>, String> {
    let view = owner.view(ALL).map_err(say)?;
    allocator.register(view).map_err(say)
}

/// A view that some domain has made up.
struct MadeUp;

impl VmoView for MadeUp {
    fn rights(&self) -> RpcResult<VmoRights> {
        Ok(ALL)
    }
    fn restrict(&self, _: VmoRights) -> Result<Handle<dyn VmoView>, MemoryError> {
        Err(MemoryError::Denied)
    }
    fn limit(&self) -> RpcResult<u64> {
        Ok(1 << 30)
    }
    fn await_load(&self, _: u64, _: Option<u64>) -> Result<bool, MemoryError> {
        Ok(true)
    }
    fn read(&self, _: u64, buffer: RVec<u8>) -> Result<(RVec<u8>, u64), MemoryError> {
        Ok((buffer, 0))
    }
    fn write(&self, _: u64, data: &RVec<u8>) -> Result<u64, MemoryError> {
        Ok(data.len() as u64)
    }
    fn fill(&self, _: u64, data: &RVec<u8>) -> Result<u64, MemoryError> {
        Ok(data.len() as u64)
    }
    fn read_to(&self, _: u64, count: u64, _: &UserBuf<'_>, _: u64) -> Result<u64, MemoryError> {
        Ok(count)
    }
    fn write_from(&self, _: u64, count: u64, _: &UserBuf<'_>, _: u64) -> Result<u64, MemoryError> {
        Ok(count)
    }
    fn fill_from(&self, _: u64, count: u64, _: &UserBuf<'_>, _: u64) -> Result<u64, MemoryError> {
        Ok(count)
    }
}

/// A device can do what the view lets, and nothing with a view that is not the kernel's.
fn rights(lab: &Lab) -> Verdict {
    let Some(allocator) = driver(lab)? else {
        return Ok(());
    };
    let owner = object(lab, 4, VmoFill::Zero)?;
    let write = VmoRights {
        read: false,
        write: true,
        ..READ
    };
    for (rights, direction, other) in [(READ, ToDevice, FromDevice), (write, FromDevice, ToDevice)]
    {
        let view = owner.view(rights).map_err(say)?;
        let window = allocator.register(view).map_err(say)?;
        let answer = hold(&window, 0, 1, other);
        ensure!(answer == Err(MemoryError::Denied), "{other:?}: {answer:?}");
        let (_, number) = hold(&window, 0, 1, direction).map_err(say)?;
        release(&window, number).map_err(say)?;
    }
    let made_up = Handle::<dyn VmoView>::new(MadeUp).map_err(say)?;
    let answer = allocator.register(made_up).map(drop);
    ensure!(answer == Err(MemoryError::Denied), "made up: {answer:?}");
    Ok(())
}

/// Numbers at the ends of what there can be are refused, and hold nothing.
fn ends(lab: &Lab) -> Verdict {
    let Some(allocator) = driver(lab)? else {
        return Ok(());
    };
    let owner = object(lab, 1 << 36, VmoFill::Zero)?;
    let window = window(&allocator, &owner)?;
    for (first, count) in [
        (0, 0),
        (0, 257),
        (0, u64::MAX),
        (u64::MAX, 1),
        (u64::MAX - 10, 20),
        (1 << 36, 1),
        ((1 << 36) - 1, 2),
        (1 << 52, 1),
    ] {
        for direction in [ToDevice, FromDevice] {
            let answer = hold(&window, first, count, direction);
            ensure!(answer.is_err(), "{count} from {first}: {answer:?}");
        }
    }
    let short = RVec::filled(0, 3).map_err(say)?;
    let four = RVec::from_slice(&[run(0, 4, ToDevice)]).map_err(say)?;
    let answer = window.hold(four, 1, short).map(|(_, _, held)| held);
    ensure!(answer == Err(MemoryError::Invalid), "short: {answer:?}");
    let (addresses, number) = hold(&window, (1 << 36) - 1, 1, FromDevice).map_err(say)?;
    let is_one = addresses.len() == 1 && addresses[0] % PAGE == 0 && addresses[0] != 0;
    ensure!(is_one, "addresses {addresses:x?}");
    for invented in [number + 1, number ^ 1 << 32, number | 1 << 63, u64::MAX] {
        let answer = release(&window, invented);
        ensure!(
            answer == Err(MemoryError::Invalid),
            "{invented:x}: {answer:?}"
        );
    }
    release(&window, number).map_err(say)?;
    let twice = release(&window, number);
    ensure!(twice == Err(MemoryError::Invalid), "twice: {twice:?}");
    let (_, next) = hold(&window, 0, 1, ToDevice).map_err(say)?;
    ensure!(next != number, "a number that was released is used again");
    Ok(())
}

/// Has the device hold several runs.
fn hold_all(
    window: &Handle<dyn DmaWindow>,
    runs: &[DmaRun],
    room: usize,
) -> Result<(Vec<DmaRun>, Vec<u64>), MemoryError> {
    let count = runs.len() as u32;
    let runs = RVec::from_slice(runs).map_err(MemoryError::Rpc)?;
    let addresses = RVec::filled(0, room).map_err(MemoryError::Rpc)?;
    let (runs, addresses, held) = window.hold(runs, count, addresses)?;
    Ok((runs[..held as usize].to_vec(), addresses.to_vec()))
}

/// Releases some, by one call.
fn release_all(window: &Handle<dyn DmaWindow>, holds: &[u64]) -> Result<(), MemoryError> {
    let count = holds.len() as u32;
    let holds = RVec::from_slice(holds).map_err(MemoryError::Rpc)?;
    window.release(&holds, count)
}

/// Runs of a batch are held up to the first that is refused, with the addresses of their pages in
/// their order; released is what was held, though another number is wrong or comes twice.
fn batches(lab: &Lab) -> Verdict {
    let Some(allocator) = driver(lab)? else {
        return Ok(());
    };
    lab.conserves_memory(|| {
        let (owner, other) = (
            object(lab, 40, VmoFill::Zero)?,
            object(lab, 40, VmoFill::Zero)?,
        );
        let window_of = |owner| window(&allocator, owner);
        let (window, another) = (window_of(&owner)?, window_of(&other)?);
        let good = [
            run(0, 1, FromDevice),
            run(1, 20, ToDevice),
            run(21, 1, ToDevice),
            run(0, 3, FromDevice),
        ];
        let (single, number) = hold(&another, 0, 1, ToDevice).map_err(say)?;
        for bad in [
            run(39, 2, ToDevice),
            run(0, 0, ToDevice),
            run(0, 257, FromDevice),
        ] {
            let runs = [&good[..], &[bad], &good[..1]].concat();
            let (held, addresses) = hold_all(&window, &runs, 30).map_err(say)?;
            ensure!(held.len() == good.len(), "{} are held", held.len());
            let same = addresses[22..25] == addresses[..3];
            ensure!(same, "addresses are not in their order: {addresses:x?}");
            let all = &addresses[..25];
            let are_right = all.iter().all(|at| at % PAGE == 0 && *at != 0);
            ensure!(are_right && !all.contains(&single[0]), "{addresses:x?}");
            ensure!(evictable(&owner, 22)? == 0, "a page was evicted");
            let mut numbers: Vec<u64> = held.iter().map(|run| run.hold).collect();
            numbers.insert(1, u64::MAX);
            numbers.push(numbers[0]);
            // Another window says it.
            let answer = release_all(&another, &numbers);
            ensure!(answer == Err(MemoryError::Invalid), "wild: {answer:?}");
            ensure!(evictable(&owner, 22)? == 22, "not all were released");
        }
        release(&another, number).map_err(say)
    })
}

/// Counts, and room for addresses, at the ends of what there can be.
fn batch_ends(lab: &Lab) -> Verdict {
    let Some(allocator) = driver(lab)? else {
        return Ok(());
    };
    let owner = object(lab, 300, VmoFill::Zero)?;
    let window = window(&allocator, &owner)?;
    let runs: Vec<_> = (0..65).map(|at| run(at * 2, 2, ToDevice)).collect();
    for count in [0, 65, u32::MAX] {
        let copy = RVec::from_slice(&runs).map_err(say)?;
        let room = RVec::filled(0, 200).map_err(say)?;
        let answer = window.hold(copy, count, room).map(|(_, _, held)| held);
        ensure!(answer == Err(MemoryError::Invalid), "{count}: {answer:?}");
        let holds = RVec::filled(0, 65).map_err(say)?;
        let answer = window.release(&holds, count);
        ensure!(answer == Err(MemoryError::Invalid), "{count}: {answer:?}");
    }
    // There is room for the addresses of some.
    for (room, most) in [(128, 64), (127, 63), (3, 1)] {
        let (held, _) = hold_all(&window, &runs[..64], room).map_err(say)?;
        ensure!(held.len() == most, "{} with room for {room}", held.len());
        let numbers: Vec<u64> = held.iter().map(|run| run.hold).collect();
        release_all(&window, &numbers).map_err(say)?;
    }
    for room in [0, 1] {
        let answer = hold_all(&window, &runs[..64], room).map(drop);
        ensure!(answer == Err(MemoryError::Invalid), "{room}: {answer:?}");
    }
    Ok(())
}

/// A page that a device holds is not evicted, and its memory outlives the page and the object.
fn taken_away(lab: &Lab) -> Verdict {
    let Some(allocator) = driver(lab)? else {
        return Ok(());
    };
    lab.conserves_memory(|| {
        let owner = object(lab, 8, VmoFill::Zero)?;
        let window = window(&allocator, &owner)?;
        let (addresses, first) = hold(&window, 0, 8, ToDevice).map_err(say)?;
        ensure!(owner.evict(0, 8) == Ok(0), "a page was evicted");
        owner.cut(0, 4).map_err(say)?;
        owner.set_limit(6).map_err(say)?;
        let (again, second) = hold(&window, 0, 6, ToDevice).map_err(say)?;
        let differ = (0..4).all(|at| again[at] != addresses[at]);
        ensure!(differ, "memory that a device holds is used again");
        ensure!(again[4..] == addresses[4..6], "a page has moved");
        release(&window, first).map_err(say)?;
        ensure!(owner.evict(0, 6) == Ok(0), "a page was evicted");
        // The object goes before what the device holds of it.
        drop(owner);
        release(&window, second).map_err(say)
    })
}

/// What a device has written is dirty when it is released; until then nobody seals.
fn marks(lab: &Lab) -> Verdict {
    let Some(allocator) = driver(lab)? else {
        return Ok(());
    };
    let owner = object(lab, 4, VmoFill::Zero)?;
    let window = window(&allocator, &owner)?;
    let dirty = || owner.next(0, PageKind::Dirty).map_err(say);
    let (_, number) = hold(&window, 2, 1, ToDevice).map_err(say)?;
    release(&window, number).map_err(say)?;
    ensure!(dirty()?.is_none(), "a device that reads has marked");
    let (_, number) = hold(&window, 2, 1, FromDevice).map_err(say)?;
    let busy = Err(MemoryError::Rpc(RpcError::Busy));
    ensure!(owner.seal() == busy, "sealed while a device writes");
    release(&window, number).map_err(say)?;
    ensure!(dirty()? == Some(2), "what a device wrote is not marked");
    owner.seal().map_err(say)?;
    let answer = hold(&window, 2, 1, FromDevice);
    ensure!(answer == Err(MemoryError::Sealed), "sealed: {answer:?}");
    hold(&window, 2, 1, ToDevice).map(drop).map_err(say)
}

/// A load is over when the device is done, and not before; one that breaks off takes nothing from
/// the device.
fn loads(lab: &Lab) -> Verdict {
    let Some(allocator) = driver(lab)? else {
        return Ok(());
    };
    lab.conserves_memory(|| {
        let owner = object(lab, 8, VmoFill::Load)?;
        let (view, window) = (owner.view(ALL).map_err(say)?, window(&allocator, &owner)?);
        let answer = hold(&window, 0, 1, FromDevice);
        ensure!(answer == Err(MemoryError::Absent), "absent: {answer:?}");
        let loader = lab.start()?;
        let copy = owner.duplicate().map_err(say)?;
        loader.subject.begin_load(copy, 0, 4).map_err(say)?;
        let answer = hold(&window, 0, 4, ToDevice);
        ensure!(answer == Err(MemoryError::Loading), "loading: {answer:?}");
        let (old, late) = hold(&window, 0, 4, FromDevice).map_err(say)?;
        ensure!(owner.loaded(0, 4) == Ok(0), "over before the device is");
        loader.end()?;
        ensure!(owner.load(0, 4) == Ok(4), "it cannot be loaded again");
        let (new, number) = hold(&window, 0, 4, FromDevice).map_err(say)?;
        ensure!(
            (0..4).all(|at| !old.contains(&new[at])),
            "{old:x?} {new:x?}"
        );
        release(&window, number).map_err(say)?;
        view.fill(PAGE, &bytes(&[7; 16])?).map_err(say)?;
        ensure!(owner.loaded(0, 4) == Ok(4), "it is not over");
        let seen = read(&view, PAGE, 16).map_err(say)?;
        ensure!(seen == [7; 16], "{seen:?} was loaded");
        release(&window, late).map_err(say)?;
        ensure!(owner.next(0, PageKind::Dirty) == Ok(None), "a load marks");
        Ok(())
    })
}

/// How many of the first pages, once they are clean, can be evicted.
fn evictable(owner: &Handle<dyn VmoOwner>, count: u64) -> Result<u64, String> {
    owner.clean(0, count).map_err(say)?;
    owner.commit(0, count).map_err(say)?;
    owner.evict(0, count).map_err(say)
}

/// What a dead driver's device held stays held until the next driver has reset it.
fn dead_driver(lab: &Lab) -> Verdict {
    let Some(hardware) = &lab.hardware else {
        return Ok(());
    };
    lab.conserves_memory(|| {
        let owner = object(lab, 16, VmoFill::Zero)?;
        let allocator = driver(lab)?.ok_or("there is no device")?;
        let dead = lab.start()?;
        let window = window(&allocator, &owner)?;
        let held = dead.subject.hold_pages(window, 0, 4, 4, FromDevice);
        let all = held.as_ref().is_ok_and(|held| !held.contains(&u64::MAX));
        ensure!(all, "{held:?}");
        dead.end()?;
        drop(allocator);
        ensure!(evictable(&owner, 16)? == 0, "taken from under a device");
        // One that dies before it has reset the device changes nothing.
        drop(hardware.dma(IDLE).map_err(say)?);
        ensure!(evictable(&owner, 16)? == 0, "given back without a reset");
        let next = hardware.dma(IDLE).map_err(say)?;
        next.reset_done().map_err(say)?;
        let dirty = owner.next(0, PageKind::Dirty).map_err(say)?;
        ensure!(dirty == Some(0), "what the device wrote is not marked");
        ensure!(evictable(&owner, 16)? == 16, "still held after the reset");
        owner.seal().map_err(say)
    })
}

/// Pages that a dead driver's device may still have are the next driver's of its group, though that
/// has no room for them a second time.
fn left_pages(lab: &Lab) -> Verdict {
    let Some(hardware) = &lab.hardware else {
        return Ok(());
    };
    // Pages that the next one has room for besides, and runs.
    const MORE: u64 = 40;
    const RUNS: u64 = 16;
    let pool = || hardware.dma(IDLE).map_err(say);
    lab.conserves_memory(|| {
        let (dead, own) = (start(lab, spec(27, SOME))?, pool()?);
        own.reset_done().map_err(say)?;
        let owner = object(lab, SOME, VmoFill::Zero)?;
        let window = window(&own, &owner)?;
        let used = info(lab, &dead)?.group_bytes / 4096;
        let run = SOME.saturating_sub(used + MORE) / RUNS;
        ensure!(run * RUNS > 2 * MORE, "{used} pages are used before");
        let held = dead
            .subject
            .hold_pages(window, 0, run, RUNS as u32, FromDevice);
        let all = held.as_ref().is_ok_and(|held| !held.contains(&u64::MAX));
        ensure!(all, "{held:?}");
        dead.end()?;
        drop(own);
        let (next, own) = (start(lab, spec(27, SOME))?, pool()?);
        let taken = next
            .subject
            .hoard_device_memory(own.duplicate().map_err(say)?, 1);
        ensure!(taken.as_ref().is_ok_and(|taken| *taken > 0), "{taken:?}");
        is_well(lab, &next, SOME)?;
        own.reset_done().map_err(say)?;
        next.end()
    })
}

/// Whoever has a dead driver's window keeps nothing with it, once the device was reset.
fn old_window(lab: &Lab) -> Verdict {
    let Some(hardware) = &lab.hardware else {
        return Ok(());
    };
    lab.conserves_memory(|| {
        let owner = object(lab, 4, VmoFill::Zero)?;
        let allocator = driver(lab)?.ok_or("there is no device")?;
        let dead = lab.start()?;
        let old = window(&allocator, &owner)?;
        let copy = old.duplicate().map_err(say)?;
        let numbers = dead.subject.hold_pages(copy, 0, 2, 2, ToDevice);
        let numbers = numbers.map_err(say)?;
        ensure!(!numbers.contains(&u64::MAX), "{:x?} are held", &*numbers);
        dead.end()?;
        let answer = hold(&old, 0, 1, ToDevice);
        ensure!(answer.is_err(), "a stopped device holds more");
        ensure!(evictable(&owner, 4)? == 0, "taken from under a device");
        let next = hardware.dma(IDLE).map_err(say)?;
        next.reset_done().map_err(say)?;
        ensure!(evictable(&owner, 4)? == 4, "still held after the reset");
        let answer = old.release(&numbers, 2);
        ensure!(answer == Err(MemoryError::Invalid), "{answer:?}");
        Ok(())
    })
}

/// One driver holds so many runs and so many pages, and no more.
fn limits(lab: &Lab) -> Verdict {
    let Some(allocator) = driver(lab)? else {
        return Ok(());
    };
    const RUNS: usize = 1024;
    const PAGES: u64 = 16384;
    let busy = MemoryError::Rpc(RpcError::Busy);
    lab.conserves_memory(|| {
        let owner = object(lab, 256, VmoFill::Zero)?;
        let window = window(&allocator, &owner)?;
        for (count, most) in [(1, RUNS), (256, (PAGES / 256) as usize)] {
            let mut holds = Vec::new();
            let answer = loop {
                match hold(&window, 0, count, ToDevice) {
                    Ok((_, hold)) => holds.push(hold),
                    Err(error) => break error,
                }
            };
            let held = holds.len();
            ensure!(
                held == most && answer == busy,
                "{held} of {most}: {answer:?}"
            );
            for hold in holds {
                release(&window, hold).map_err(say)?;
            }
        }
        hold(&window, 0, 1, ToDevice)
            .and_then(|(_, hold)| release(&window, hold))
            .map_err(say)
    })
}

/// Who has a device hold pages pays for them, until they are released, and gets no more at his
/// limit.
fn charged(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let Some(allocator) = driver(lab)? else {
            return Ok(());
        };
        let owner = object(lab, 3 * 64, VmoFill::Zero)?;
        let window = window(&allocator, &owner)?;
        let victim = start(lab, spec(0, SOME))?;
        let before = info(lab, &victim)?.dma_bytes;
        let try_hold = || {
            let copy = window.duplicate().map_err(say)?;
            let held = victim.subject.hold_pages(copy, 0, 64, 3, ToDevice);
            Ok::<_, String>(held)
        };
        let mut holds = Vec::new();
        let answer = loop {
            match try_hold()? {
                Ok(held) => holds.extend(held.iter().copied().filter(|hold| *hold != u64::MAX)),
                Err(error) => break error,
            }
        };
        let none = MemoryError::Rpc(RpcError::NoMemory);
        ensure!(answer == none && holds.len() > 3, "{answer:?}");
        let taken = info(lab, &victim)?.dma_bytes - before;
        let held = holds.len() as u64 * 64 * PAGE;
        ensure!(taken == held, "{taken} bytes for {held}");
        is_well(lab, &victim, SOME)?;
        for hold in holds {
            release(&window, hold).map_err(say)?;
        }
        let left = info(lab, &victim)?.dma_bytes - before;
        ensure!(left == 0, "{left} bytes for nothing");
        victim.end()
    })
}

/// The first hold has brought all memory that any needs.
fn holds_take_no_memory(lab: &Lab) -> Verdict {
    let Some(allocator) = driver(lab)? else {
        return Ok(());
    };
    const PAGES: u64 = 256;
    let owner = object(lab, PAGES, VmoFill::Zero)?;
    let window = window(&allocator, &owner)?;
    let mut holds = Vec::new();
    holds.try_reserve(64).map_err(say)?;
    let room = RVec::filled(0, PAGES as usize).map_err(say)?;
    let runs = RVec::from_slice(&[run(0, PAGES, ToDevice)]).map_err(say)?;
    let mut numbers = RVec::filled(0, 1).map_err(say)?;
    let (mut runs, mut room, _) = window.hold(runs, 1, room).map_err(say)?;
    release(&window, runs[0].hold).map_err(say)?;
    let mut lost = 0;
    // Others take and give memory meanwhile.
    for _ in 0..8 {
        let before = lab.free()?;
        for _ in 0..64 {
            (runs, room, _) = window.hold(runs, 1, room).map_err(say)?;
            holds.push(runs[0].hold);
        }
        lost = before as i64 - lab.free()? as i64;
        for hold in holds.drain(..) {
            numbers[0] = hold;
            window.release(&numbers, 1).map_err(say)?;
        }
        if lost <= 0 {
            return Ok(());
        }
    }
    Err(format!("{lost} bytes for 64 holds every time"))
}

/// What a driver has for its calls, made while there is memory.
struct Room {
    runs: RVec<DmaRun>,
    addresses: RVec<u64>,
    holds: RVec<u64>,
}

/// Has the idle device hold pages and release them, as for a write to it.
fn write_out(window: &Handle<dyn DmaWindow>, room: Room) -> Result<(), MemoryError> {
    let mut holds = room.holds;
    let (runs, _, _) = window.hold(room.runs, 1, room.addresses)?;
    holds[0] = runs[0].hold;
    window.release(&holds, 1)
}

/// When somebody has taken all memory there is, pages are written back all the same, by a device
/// where there is one, and make room.
fn without_memory(lab: &Lab) -> Verdict {
    // Where memory has no end it is of no use to look for it.
    if lab.memory.is_none() {
        return Ok(());
    }
    const PAGES: u64 = 64;
    let allocator = driver(lab)?;
    lab.conserves_memory(|| {
        let owner = object(lab, PAGES + 1, VmoFill::Zero)?;
        let view = owner.view(ALL).map_err(say)?;
        let window = allocator
            .as_ref()
            .map(|it| window(it, &owner))
            .transpose()?;
        let room = Room {
            runs: RVec::from_slice(&[run(0, PAGES, ToDevice)]).map_err(say)?,
            addresses: RVec::filled(0, PAGES as usize).map_err(say)?,
            holds: RVec::filled(0, 1).map_err(say)?,
        };
        let mark = bytes(&[7; 8])?;
        for page in 0..PAGES {
            view.write(page * PAGE, &mark).map_err(say)?;
        }
        let rest = all_memory();
        let last = object(lab, 1 << 20, VmoFill::Zero)?;
        let filler = last.view(ALL).map_err(say)?;
        // What the pieces of heap have left.
        let mut page = 0;
        while filler.write(page * PAGE, &mark).is_ok() {
            page += 1;
        }
        let none = view.write(PAGES * PAGE, &mark);
        let begun = owner.clean(0, PAGES);
        let written = window.as_ref().map(|it| write_out(it, room));
        let ended = owner.commit(0, PAGES);
        let evicted = owner.evict(0, PAGES);
        let again = view.write(PAGES * PAGE, &mark);
        drop((rest, last, filler));
        let refused = Err(MemoryError::Rpc(RpcError::NoMemory));
        ensure!(none == refused, "there was memory: {none:?}");
        ensure!(begun == Ok(Some((0, PAGES))), "begun: {begun:?}");
        let is_written = written.as_ref().is_none_or(|written| written.is_ok());
        ensure!(is_written, "by the device: {written:?}");
        ensure!(ended == Ok(PAGES), "ended: {ended:?}");
        ensure!(evicted == Ok(PAGES), "evicted: {evicted:?}");
        ensure!(again == Ok(8), "there is no room: {again:?}");
        Ok(())
    })
}
