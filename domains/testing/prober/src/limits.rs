//! Limits of memory of each kind and of threads, of one domain and of groups; what is charged is
//! given back; and what is kept for recovery is not for everybody. Whoever is at a limit gets
//! `NoMemory`, and nobody else does.

use crate::lab::{Lab, Victim, say, unlimited, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{
    DmaAllocator, DomainInfo, DomainSpec, Handle, HardwareError, Misdeed, PciAddress, RVec,
    RpcError, StartError, Subject,
};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("limits-threads-of-a-domain-are-exact", threads),
    ("limits-threads-of-a-group-are-exact", threads_of_a_group),
    ("limits-stacks-are-charged", stacks),
    ("limits-images-are-charged", images),
    ("limits-exports-are-charged", exports),
    ("limits-private-heap-of-a-group", private),
    ("limits-shared-heap-of-a-group", shared),
    ("limits-verified-files-are-charged", files),
    ("limits-verified-files-count-what-was-cut-off", cut_off),
    ("limits-verified-files-end-with-their-payer", handed_on),
    ("limits-waiting-drops-are-charged", waiting_drops),
    ("limits-device-memory-is-charged", device_memory),
    ("limits-no-memory-for-invented-devices", invented_devices),
    (
        "limits-left-device-memory-is-the-next-ones",
        left_device_memory,
    ),
    ("limits-everything-is-given-back", given_back),
    ("limits-recovery-has-a-reserve", reserve),
];

/// What a thread is charged with, in bytes: 128 KiB of stack, and a page.
const THREAD: u64 = 33 * 4096;

/// What an object that has left its domain is charged with, in bytes.
const EXPORT: u64 = 256;

/// A group's limit that is more than a victim needs, in pages.
pub const SOME: u64 = 512;

/// A victim in group `number`, which may have `pages` pages.
pub fn spec(number: u32, pages: u64) -> DomainSpec {
    DomainSpec {
        group: number,
        group_pages: pages,
        ..unlimited()
    }
}

pub fn start(lab: &Lab, spec: DomainSpec) -> Result<Victim, String> {
    lab.start_as(None, spec, b"")?.map_err(say)
}

/// The victim's description, with what it owns counted.
pub fn info(lab: &Lab, victim: &Victim) -> Result<DomainInfo, String> {
    lab.holdings(victim.id)?;
    lab.info(victim.id)?
        .ok_or_else(|| String::from("it is gone"))
}

/// What domains have got from others, which counts whatever the limit says, in bytes.
const GOT: u64 = 16 << 10;

/// Fails unless the group keeps its limit of `pages` pages and the victim answers.
pub fn is_well(lab: &Lab, victim: &Victim, pages: u64) -> Verdict {
    let info = info(lab, victim)?;
    let (used, limit) = (info.group_bytes, info.group_limit);
    ensure!(limit == pages * 4096, "a limit of {limit} bytes");
    ensure!(used <= limit + GOT, "{used} bytes of {limit} are used");
    let answer = victim.subject.add(1, 1);
    ensure!(answer == Ok(2), "it does not answer: {answer:?}");
    Ok(())
}

fn threads(lab: &Lab) -> Verdict {
    let spec = DomainSpec {
        thread_limit: 10,
        ..unlimited()
    };
    let victim = start(lab, spec)?;
    victim.subject.threads(9).map_err(say)?;
    victim.subject.threads(1).map_err(say)?;
    let more = victim.subject.threads(1);
    ensure!(more == Err(RpcError::NoMemory), "an 11th thread: {more:?}");
    let info = info(lab, &victim)?;
    let shown = (info.threads, info.thread_limit, info.stack_bytes);
    ensure!(shown == (10, 10, 10 * THREAD), "{shown:?}");
    ensure!(victim.subject.add(1, 1) == Ok(2), "it ended of it");
    victim.end()
}

fn threads_of_a_group(lab: &Lab) -> Verdict {
    let spec = DomainSpec {
        group: 21,
        group_threads: 6,
        ..unlimited()
    };
    let (one, two) = (start(lab, spec)?, start(lab, spec)?);
    one.subject.threads(4).map_err(say)?;
    two.subject.threads(2).map_err(say)?;
    for victim in [&one, &two] {
        let more = victim.subject.threads(1);
        ensure!(more == Err(RpcError::NoMemory), "a 7th thread: {more:?}");
    }
    let other = lab.start()?;
    other.subject.threads(7).map_err(say)?;
    one.end()?;
    // The threads of a dead domain end when they have left it.
    wait_for("its threads to end", || two.subject.threads(1).is_ok())?;
    other.end()?;
    two.end()
}

/// A domain that makes threads until it gets no more has as many as its group has memory for.
fn stacks(lab: &Lab) -> Verdict {
    const PAGES: u64 = 1024;
    lab.conserves_memory(|| {
        let victim = start(lab, spec(0, PAGES))?;
        let before = info(lab, &victim)?.group_bytes;
        let room = (PAGES * 4096 - before) / THREAD;
        let made = victim.subject.misbehave(Misdeed::HoardThreads);
        // What the domain itself needs for each is private heap, a few pages in all.
        let expected = matches!(made, Ok(made) if made <= room && made + 2 >= room);
        ensure!(expected, "{made:?} threads, there was room for {room}");
        is_well(lab, &victim, PAGES)?;
        let bystander = lab.start()?;
        bystander.subject.threads(1).map_err(say)?;
        bystander.end()?;
        victim.end()?;
        domain_rt::time::sleep(5_000_000);
        Ok(())
    })
}

/// Instances of an image are started until the group has no room for another.
fn images(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let first = start(lab, spec(22, SOME))?;
        let image = info(lab, &first)?.image_bytes;
        let mut all = Vec::from([first]);
        let refused = loop {
            ensure!(all.len() < 1000, "there is no end of it");
            match lab.start_as(None, spec(22, SOME), b"")? {
                Ok(victim) => all.push(victim),
                Err(error) => break error,
            }
        };
        // Either there was no room for the image, or none for what its start function takes, which
        // is its own affair.
        let is_right = matches!(
            refused,
            StartError::Rpc(RpcError::NoMemory)
                | StartError::Failed(RpcError::NoMemory)
                | StartError::Crashed
        );
        ensure!(is_right, "the last was refused by {refused:?}");
        let (count, most) = (all.len() as u64, SOME * 4096 / image);
        ensure!((2..=most).contains(&count), "{count} of at most {most}");
        all.iter().try_for_each(|one| is_well(lab, one, SOME))?;
        // Others are started all the same, and in its place, when one has ended, another.
        lab.start()?.end()?;
        all.pop().ok_or("there are some")?.end()?;
        start(lab, spec(22, SOME))?.end()?;
        all.iter().try_for_each(Victim::end)
    })
}

/// Every object that crosses costs its domain, as long as somebody holds it.
fn exports(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let victim = start(lab, spec(0, SOME))?;
        let before = info(lab, &victim)?;
        let mut held: Vec<Handle<dyn Subject>> = Vec::new();
        let refused = loop {
            ensure!(held.len() < 100_000, "there is no end of it");
            match victim.subject.offspring() {
                Ok(child) => held.push(child),
                Err(error) => break error,
            }
        };
        ensure!(refused == RpcError::NoMemory, "{refused:?}");
        let after = info(lab, &victim)?;
        let (count, notes) = (held.len() as u64, after.note_bytes - before.note_bytes);
        ensure!(notes == count * EXPORT, "{count} cost {notes} bytes");
        is_well(lab, &victim, SOME)?;
        drop(held);
        let last = info(lab, &victim)?.note_bytes;
        ensure!(last == before.note_bytes, "{last} bytes of notes are left");
        victim.subject.offspring().map(drop).map_err(say)?;
        victim.end()
    })
}

/// Has the victim take private heap until it gets no more.
fn fill(victim: &Victim) -> Verdict {
    for bytes in [64 << 10, 16 << 10, 4096] {
        while victim.subject.grow(bytes).is_ok() {}
    }
    let more = victim.subject.grow(4096);
    ensure!(more == Err(RpcError::NoMemory), "{more:?} when full");
    Ok(())
}

/// What one domain of a group has taken, another cannot have; what the first gives back, it can.
fn private(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (one, two) = (start(lab, spec(23, SOME))?, start(lab, spec(23, SOME))?);
        fill(&one)?;
        let refused = two.subject.grow(64 << 10);
        ensure!(refused == Err(RpcError::NoMemory), "{refused:?}");
        is_well(lab, &two, SOME)?;
        let other = start(lab, spec(24, SOME))?;
        other.subject.grow(64 << 10).map_err(say)?;
        other.end()?;
        one.end()?;
        two.subject.grow(64 << 10).map_err(say)?;
        fill(&two)?;
        two.end()
    })
}

/// Has the victim make and keep nests until it gets no more; how many.
fn fill_shared(victim: &Victim) -> Result<u64, String> {
    for count in 0..100_000 {
        let nest = victim.subject.make_nest(count);
        match nest.and_then(|nest| victim.subject.keep_nest(nest)) {
            Ok(()) => {}
            Err(RpcError::NoMemory) => return Ok(count),
            Err(error) => return Err(say(error)),
        }
    }
    Err(String::from("it never got enough"))
}

fn shared(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let (one, two) = (start(lab, spec(25, SOME))?, start(lab, spec(25, SOME))?);
        let first = fill_shared(&one)?;
        let second = fill_shared(&two)?;
        // The last steps that are granted may fall to the second.
        ensure!(first > 500 && second < first / 4, "{first}, then {second}");
        is_well(lab, &two, SOME)?;
        one.end()?;
        let third = fill_shared(&two)?;
        ensure!(third > first / 2, "only {third} nests after the end of it");
        two.end()
    })
}

/// Bytes that the kernel keeps on the prober's account.
fn own_notes(lab: &Lab) -> Result<u64, String> {
    let info = lab.info(domain_rt::self_id())?.ok_or("it is me")?;
    Ok(info.note_bytes)
}

/// The kernel keeps the file of a verified image on the account of whoever gave it.
fn files(lab: &Lab) -> Verdict {
    let before = own_notes(lab)?;
    let file = lab.victim_file()?;
    let bytes = file.len() as u64;
    let image = lab.loader.prepare(file).map_err(say)?;
    let charged = own_notes(lab)? - before;
    ensure!(charged >= bytes, "{charged} bytes for a file of {bytes}");
    drop(image);
    let after = own_notes(lab)?;
    ensure!(after == before, "{} bytes are left", after - before);
    Ok(())
}

/// A file that was cut off from something long still takes all of its memory.
fn cut_off(lab: &Lab) -> Verdict {
    const LONG: usize = 8 << 20;
    let before = own_notes(lab)?;
    let whole = lab.victim_file()?;
    let mut file = RVec::zeroed(LONG - 4096).map_err(say)?;
    file[..whole.len()].copy_from_slice(&whole);
    let image = lab.loader.prepare(file.truncated(whole.len()));
    let image = image.map_err(say)?;
    let charged = own_notes(lab)? - before;
    ensure!(charged >= LONG as u64, "{charged} bytes are charged");
    drop(image);
    let after = own_notes(lab)?;
    ensure!(after == before, "{} bytes are left", after - before);
    Ok(())
}

/// Whoever has a file verified, hands the image on and ends leaves no memory behind.
fn handed_on(lab: &Lab) -> Verdict {
    let mut images = Vec::new();
    lab.conserves_memory(|| {
        let victim = start(lab, spec(0, 4 * SOME))?;
        let before = info(lab, &victim)?.note_bytes;
        let file = lab.victim_file()?;
        let bytes = file.len() as u64;
        let loader = lab.loader.duplicate().map_err(say)?;
        let image = victim.subject.verify(loader, file).map_err(say)?;
        let charged = info(lab, &victim)?.note_bytes - before;
        ensure!(charged >= bytes, "{charged} bytes for a file of {bytes}");
        image.name().map_err(say)?;
        victim.end()?;
        let answer = image.name();
        ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
        let nothing = RVec::from_slice(&[]).map_err(say)?;
        let started = image.start(unlimited(), [const { None }; 16], nothing);
        let refused = matches!(started, Err(StartError::Rpc(RpcError::DomainCrashed)));
        ensure!(refused, "it was started from a file that is gone");
        images.push(image);
        Ok(())
    })
}

/// Objects whose drops wait for the one before them are their domain's until they are dropped; so
/// are the stacks of the threads that are in drops.
fn waiting_drops(lab: &Lab) -> Verdict {
    const CHILDREN: u64 = 300;
    lab.conserves_memory(|| {
        let (victim, holder) = (start(lab, spec(0, 2 * SOME))?, lab.start()?);
        let before = info(lab, &victim)?.note_bytes;
        let answer = victim.subject.misbehave(Misdeed::BlockInDrops);
        ensure!(answer == Ok(0), "{answer:?}");
        // The first drop has the thread that clears away the holder, so that it is nobody's here.
        let first = victim.subject.offspring().map_err(say)?;
        holder.subject.follow(Some(first)).map_err(say)?;
        holder.domain.kill().map_err(say)?;
        wait_for("the first drop to begin", || {
            victim.subject.offspring_alive() == Ok(0)
        })?;
        domain_rt::time::sleep(50_000_000);
        for _ in 1..CHILDREN {
            drop(victim.subject.offspring().map_err(say)?);
        }
        wait_for("the second drop to begin", || {
            victim.subject.offspring_alive() == Ok(CHILDREN as u32 - 2)
        })?;
        let notes = info(lab, &victim)?.note_bytes - before;
        let expected = CHILDREN * EXPORT + 2 * THREAD;
        ensure!(notes == expected, "{notes} bytes instead of {expected}");
        is_well(lab, &victim, 2 * SOME)?;
        victim.end()?;
        holder.gone()?;
        // What its first object costs stays, since we hold that.
        wait_for(
            "its notes to be given back",
            || matches!(victim.domain.info(), Ok(info) if info.note_bytes == before),
        )
    })
}

/// A device of the machine that never uses memory by itself: the controller of the system
/// management bus.
pub const IDLE: PciAddress = PciAddress {
    bus: 0,
    device: 31,
    function: 3,
};

/// Device memory counts, and goes on doing so while the device's pool has it.
fn device_memory(lab: &Lab) -> Verdict {
    let Some(hardware) = &lab.hardware else {
        // A Linux process has none.
        return Ok(());
    };
    lab.conserves_memory(|| {
        let victim = start(lab, spec(0, SOME))?;
        let before = info(lab, &victim)?.dma_bytes;
        let pool = hardware.dma(IDLE).map_err(say)?;
        // What the round before had is kept for a device that may know it, until this is said.
        pool.reset_done().map_err(say)?;
        let taken = victim.subject.hoard_device_memory(pool, 8).map_err(say)?;
        ensure!((8..SOME / 8).contains(&taken), "{taken} times 8 pages");
        let charged = info(lab, &victim)?.dma_bytes - before;
        ensure!(charged == taken * 8 * 4096, "{charged} bytes for {taken}");
        is_well(lab, &victim, SOME)?;
        victim.end()
    })
}

/// Addresses at which there is no device get no pool, so nobody fills the kernel's table of devices
/// with them.
fn invented_devices(lab: &Lab) -> Verdict {
    let Some(hardware) = &lab.hardware else {
        return Ok(());
    };
    let addresses = [
        (0, 31, 7),
        (0, 32, 0),
        (0, 31, 8),
        (0, 255, 255),
        (0xfe, 0, 0),
    ];
    for (bus, device, function) in addresses {
        let address = PciAddress {
            bus,
            device,
            function,
        };
        let pool = hardware.dma(address).map(drop);
        let refused = matches!(pool, Err(HardwareError::NoSuchResource));
        ensure!(refused, "{bus:x}:{device:x}.{function}: {pool:?}");
    }
    hardware.dma(IDLE).map(drop).map_err(say)
}

/// What a device may still know of a dead driver's memory is charged to whoever takes memory for it
/// before it is reset.
fn left_device_memory(lab: &Lab) -> Verdict {
    let Some(hardware) = &lab.hardware else {
        return Ok(());
    };
    const PIECE: u64 = 8 * 4096;
    let pool = || hardware.dma(IDLE).map_err(say);
    let hoard = |victim: &Victim, pool: Handle<dyn DmaAllocator>| {
        victim.subject.hoard_device_memory(pool, 8).map_err(say)
    };
    lab.conserves_memory(|| {
        let (dead, own) = (start(lab, spec(0, SOME))?, pool()?);
        own.reset_done().map_err(say)?;
        let left = hoard(&dead, own)?;
        ensure!(left > 8, "{left} times 8 pages");
        dead.end()?;
        let next = start(lab, spec(0, 4 * SOME))?;
        let own = pool()?;
        let taken = hoard(&next, own.duplicate().map_err(say)?)?;
        let charged = info(lab, &next)?.dma_bytes;
        // At the limit the last piece may have had room, but not its handle: it lies ready for the
        // next who asks, and is paid for.
        let ready = charged - (left + taken) * PIECE;
        ensure!(
            ready == 0 || ready == PIECE,
            "{charged} bytes for {left} that were left and {taken} of its own"
        );
        is_well(lab, &next, 4 * SOME)?;
        own.reset_done().map_err(say)?;
        let charged = info(lab, &next)?.dma_bytes;
        let own_bytes = taken * PIECE + ready;
        ensure!(charged == own_bytes, "{charged} bytes for {taken}");
        // An older driver's word counts no more.
        let younger = pool()?;
        let late = own.reset_done();
        ensure!(late.is_err(), "a late word is heard");
        next.end()?;
        drop(own);
        younger.reset_done().map_err(say)
    })
}

/// Whatever a member of a group has had, its death leaves nothing on the account of the group.
fn given_back(lab: &Lab) -> Verdict {
    let keeper = start(lab, spec(26, 8 * SOME))?;
    let used = || info(lab, &keeper).map(|info| (info.group_bytes, info.group_threads));
    let before = used()?;
    for round in 0..4 {
        let victim = start(lab, spec(26, 8 * SOME))?;
        victim.subject.grow(300_000).map_err(say)?;
        victim.subject.threads(3).map_err(say)?;
        (0..40).try_for_each(|value| {
            let nest = victim.subject.make_nest(value).map_err(say)?;
            victim.subject.keep_nest(nest).map_err(say)
        })?;
        let children: Result<Vec<_>, _> = (0..10).map(|_| victim.subject.offspring()).collect();
        let children = children.map_err(say)?;
        ensure!(used()?.0 > before.0 + 300_000, "nothing was charged");
        if round % 2 == 0 {
            drop(children);
            victim.end()?;
            drop(victim);
        } else {
            let answer = victim.subject.misbehave(Misdeed::Panic);
            ensure!(answer == Err(RpcError::DomainCrashed), "{answer:?}");
            victim.gone()?;
            // Objects of the dead that others hold cost it to the end.
            drop((children, victim));
        }
        // A thread is charged until it has left the last kernel function.
        wait_for("it to be given back", || used() == Ok(before))
            .map_err(|error| format!("{error}: {:?} after {before:?}", used()))?;
    }
    keeper.end()
}

/// When programs have taken all that they can have, what is needed for recovery still starts.
fn reserve(lab: &Lab) -> Verdict {
    lab.conserves_memory(|| {
        let eater = lab.start()?;
        fill(&eater)?;
        let ordinary = lab.start_as(None, unlimited(), b"")?.err();
        let needed = DomainSpec {
            reserve_pages: 512,
            ..unlimited()
        };
        let driver = lab.start_as(None, needed, b"")?;
        eater.end()?;
        // A kept image takes no memory, so it may be the start function that gets none.
        let is_right = matches!(
            ordinary,
            Some(StartError::Rpc(RpcError::NoMemory) | StartError::Crashed)
        );
        ensure!(is_right, "an ordinary domain: {ordinary:?}");
        let driver = driver.map_err(say)?;
        driver.subject.threads(2).map_err(say)?;
        driver.end()
    })
}
