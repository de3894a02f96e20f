//! Objects on frames of the host: against a model, with many threads, and when memory ends at each
//! step.

extern crate std;

mod device;
mod loans;
mod programs;
mod told;

use super::object::{MOST_PAGES, Mapped, Vmo};
use super::payer::{Charged, Payer};
use interfaces::{MemoryError, PageKind, RpcError, VmoFill};
use pages::{Bytes, Frames, Pool, Run};
use std::boxed::Box;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::vec::Vec;

const PAGE: u64 = 4096;
const FRAMES: usize = 1024;
const FROZEN: u64 = 1 << 63;
const DEVICE: u64 = 1 << 32;

/// Frames of the host, with counts.
struct Memory {
    counts: [AtomicU64; FRAMES],
    bytes: Box<[[AtomicU64; 512]]>,
    /// Claims that still succeed.
    left: AtomicUsize,
    /// Done once, before somebody gets a count.
    before_share: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

#[derive(Clone, Copy)]
struct Host(&'static Memory);

fn memory() -> Host {
    let page = || [const { AtomicU64::new(0) }; 512];
    Host(Box::leak(Box::new(Memory {
        counts: [const { AtomicU64::new(0) }; FRAMES],
        bytes: (0..FRAMES).map(|_| page()).collect(),
        left: AtomicUsize::new(usize::MAX),
        before_share: Mutex::new(None),
    })))
}

impl Host {
    fn count(&self, frame: u64) -> &AtomicU64 {
        &self.0.counts[frame as usize - 1]
    }

    fn change(&self, frame: u64, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let count = self.count(frame);
        count
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
            .ok()
    }

    fn used(&self) -> usize {
        let used = |count: &&AtomicU64| count.load(Ordering::SeqCst) != 0;
        self.0.counts.iter().filter(used).count()
    }
}

impl Frames for Host {
    fn claim(&self) -> Option<u64> {
        let less = |left: usize| left.checked_sub(1);
        self.0
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
            .ok()?;
        let free = |frame: &u64| {
            self.change(*frame, |count| (count == 0).then_some(FROZEN))
                .is_some()
        };
        let frame = (1..=FRAMES as u64).find(free)?;
        for word in &self.0.bytes[frame as usize - 1] {
            word.store(0, Ordering::Relaxed);
        }
        self.thaw(frame);
        Some(frame)
    }
    fn share(&self, frame: u64) -> bool {
        let before = self.0.before_share.lock().expect("no test ended").take();
        before.into_iter().for_each(|act| act());
        self.change(frame, |count| {
            (count != 0 && count != FROZEN).then_some(count + 1)
        })
        .is_some()
    }
    fn release(&self, frame: u64) {
        let less = |count: u64| {
            let less = || count.checked_sub(1).expect("it is in use");
            (count != FROZEN).then(less)
        };
        while self.change(frame, less).is_none() {
            self.pause();
        }
    }
    fn freeze(&self, frame: u64) -> bool {
        self.change(frame, |count| (count == 1).then_some(FROZEN))
            .is_some()
    }
    fn thaw(&self, frame: u64) {
        assert_eq!(self.count(frame).swap(1, Ordering::AcqRel), FROZEN);
    }
    fn lend(&self, frame: u64) -> bool {
        self.change(frame, |count| Some(count + DEVICE)).is_some()
    }
    fn take_back(&self, frame: u64) {
        self.change(frame, |count| Some(count - DEVICE));
    }
    fn is_lent(&self, frame: u64) -> bool {
        let count = self.count(frame).load(Ordering::SeqCst);
        count != FROZEN && count >= DEVICE
    }
    fn give_up(&self, frame: u64) {
        assert_eq!(self.count(frame).swap(0, Ordering::AcqRel), FROZEN);
    }
    fn wake(&self) {}
    fn pause(&self) {
        std::thread::yield_now();
    }
}

/// Whole words only.
impl Bytes for Host {
    type Program = programs::Program;

    fn copy_out(&self, frame: u64, at: usize, bytes: &mut [u8]) {
        let words = &self.0.bytes[frame as usize - 1];
        let mut done = 0;
        while done < bytes.len() {
            // Once for all bytes of it, as others may write meanwhile.
            let (index, from) = ((at + done) / 8, (at + done) % 8);
            let word = words[index].load(Ordering::Relaxed).to_le_bytes();
            let count = (8 - from).min(bytes.len() - done);
            bytes[done..done + count].copy_from_slice(&word[from..from + count]);
            done += count;
        }
    }
    fn copy_in(&self, frame: u64, at: usize, bytes: &[u8]) {
        let words = &self.0.bytes[frame as usize - 1];
        assert!(
            at.is_multiple_of(8) && bytes.len().is_multiple_of(8),
            "whole words"
        );
        for (index, eight) in bytes.chunks_exact(8).enumerate() {
            let word = u64::from_le_bytes(eight.try_into().expect("eight"));
            words[at / 8 + index].store(word, Ordering::Relaxed);
        }
    }
    fn copy_to(&self, frame: u64, at: usize, run: Run<'_, programs::Program>) -> usize {
        let mut bytes = [0; PAGE as usize];
        let bytes = &mut bytes[..run.count];
        self.copy_out(frame, at, bytes);
        run.program.write(run.address, bytes)
    }
    fn copy_from(&self, frame: u64, at: usize, run: Run<'_, programs::Program>) -> usize {
        let mut bytes = [0; PAGE as usize];
        let count = run.program.read(run.address, &mut bytes[..run.count]);
        self.copy_in(frame, at, &bytes[..count]);
        count
    }
}

/// A purse with a limit.
#[derive(Clone)]
struct Purse(Arc<Sums>);

struct Sums {
    used: AtomicUsize,
    limit: AtomicUsize,
    dead: AtomicBool,
}

fn purse(limit: usize) -> Purse {
    Purse(Arc::new(Sums {
        used: AtomicUsize::new(0),
        limit: AtomicUsize::new(limit),
        dead: AtomicBool::new(false),
    }))
}

struct Bill(Purse, usize);

impl Purse {
    fn used(&self) -> usize {
        self.0.used.load(Ordering::SeqCst)
    }
}

impl Payer for Purse {
    type Charge = Bill;
    fn charge(&self, bytes: usize) -> Option<Bill> {
        let limit = self.0.limit.load(Ordering::SeqCst);
        let more = |used: usize| Some(used + bytes).filter(|sum| *sum <= limit);
        let taken = self
            .0
            .used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        taken.is_ok().then(|| Bill(self.clone(), bytes))
    }
    fn charge_anyway(&self, bytes: usize) -> Bill {
        self.0.used.fetch_add(bytes, Ordering::SeqCst);
        Bill(self.clone(), bytes)
    }
    fn claim<T>(&self, _: usize, claim: &mut dyn FnMut() -> Option<T>) -> Option<T> {
        claim()
    }
    fn is_alive(&self) -> bool {
        !self.0.dead.load(Ordering::SeqCst)
    }
}

impl Charged<Purse> for Bill {
    fn bytes(&self) -> usize {
        self.1
    }
    fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.1);
        self.1 -= bytes;
        Bill(self.0.clone(), bytes)
    }
    fn absorb(&mut self, mut other: Self) -> Result<(), Self> {
        if !Arc::ptr_eq(&self.0.0, &other.0.0) {
            return Err(other);
        }
        self.1 += core::mem::take(&mut other.1);
        Ok(())
    }
    fn pass_to(&mut self, to: &Purse) -> bool {
        Arc::ptr_eq(&self.0.0, &to.0)
    }
}

impl Drop for Bill {
    fn drop(&mut self) {
        self.0.0.used.fetch_sub(self.1, Ordering::SeqCst);
    }
}

type Object = Vmo<Host, Purse>;

fn object(memory: Host, purse: &Purse, limit: u64, fill: VmoFill) -> Object {
    Vmo::new(Pool::new(memory), purse.clone(), limit, fill).expect("there is memory")
}

fn word(object: &Object, page: u64) -> Result<u64, MemoryError> {
    let mut bytes = [0xaa; 8];
    assert_eq!(object.read(page * PAGE, &mut bytes)?, 8);
    Ok(u64::from_le_bytes(bytes))
}

fn put(object: &Object, page: u64, value: u64) -> Result<(), MemoryError> {
    assert_eq!(object.write(page * PAGE, &value.to_le_bytes())?, 8);
    Ok(())
}

fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    *state >> 33
}

#[test]
fn pages_all_over_an_object_are_as_a_model_says() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, MOST_PAGES, VmoFill::Zero);
    let mut model = BTreeMap::new();
    let mut state = 7;
    for step in 1..20_000_u64 {
        // Blocks near each other and far apart, so that the tree grows and shrinks.
        let page = match random(&mut state) % 3 {
            0 => random(&mut state) % 300,
            1 => (random(&mut state) % 8) << 33,
            _ => (random(&mut state) % 40) * 64 * 64 + random(&mut state) % 3,
        };
        match random(&mut state) % 6 {
            0 => {
                let count = random(&mut state) % 200;
                object.cut(page, count).expect("it is within");
                let gone: Vec<u64> = model
                    .range(page..page + count)
                    .map(|(page, _)| *page)
                    .collect();
                model.retain(|at, _| !gone.contains(at));
            }
            1 | 2 if model.len() < 900 => {
                put(&object, page, step).expect("there is memory");
                model.insert(page, step);
            }
            3 => {
                let next = object.next(page, PageKind::Present);
                let right = model.range(page..).next().map(|(page, _)| *page);
                assert_eq!(next, right, "the next page from {page} on");
            }
            _ => {
                let right = model.get(&page).copied().unwrap_or(0);
                assert_eq!(word(&object, page), Ok(right), "page {page} at step {step}");
            }
        }
        let info = object.info();
        assert_eq!(info.pages, model.len() as u64, "pages at step {step}");
        assert_eq!(memory.used() as u64, info.pages, "frames at step {step}");
        assert_eq!(purse.used() as u64, info.bytes, "charged at step {step}");
    }
    drop(object);
    assert_eq!((memory.used(), purse.used()), (0, 0));
}

#[test]
fn a_limit_cuts_and_does_not_bring_back() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, 1000, VmoFill::Zero);
    (0..600).for_each(|page| put(&object, page, page + 1).expect("there is memory"));
    object.set_limit(70).expect("it is not sealed");
    assert_eq!((object.info().pages, memory.used()), (70, 70));
    assert_eq!(word(&object, 70), Err(MemoryError::Beyond));
    object.set_limit(1000).expect("it is not sealed");
    assert_eq!((word(&object, 69), word(&object, 70)), (Ok(70), Ok(0)));
    assert_eq!(object.set_limit(MOST_PAGES + 1), Err(MemoryError::Beyond));
}

/// Memory, or the payer's limit, ends at each single step: whoever asked gets an error, and all
/// that was there is there.
#[test]
fn the_end_of_memory_at_each_step_loses_nothing() {
    let far = [0, 1, 64, 64 * 64, 1 << 20, 1 << 30, MOST_PAGES - 1];
    for frames in 0..far.len() {
        let (memory, purse) = (memory(), purse(usize::MAX));
        let object = object(memory, &purse, MOST_PAGES, VmoFill::Zero);
        memory.0.left.store(frames, Ordering::SeqCst);
        for (index, page) in far.into_iter().enumerate() {
            let right = match index < frames {
                true => Ok(()),
                false => Err(MemoryError::Rpc(RpcError::NoMemory)),
            };
            assert_eq!(put(&object, page, page + 1), right);
        }
        let there = far.iter().take(frames);
        assert!(
            there
                .clone()
                .all(|page| word(&object, *page) == Ok(*page + 1))
        );
        assert_eq!(object.info().pages, frames as u64);
        assert_eq!(memory.used(), frames);
    }
    let mut limit = 0;
    loop {
        let (memory, purse) = (memory(), purse(limit));
        let made = Vmo::new(Pool::new(memory), purse.clone(), MOST_PAGES, VmoFill::Zero);
        let Ok(object) = made else {
            assert_eq!(purse.used(), 0);
            limit += 100;
            continue;
        };
        let done = far
            .iter()
            .filter(|page| put(&object, **page, 1).is_ok())
            .count();
        assert_eq!(object.info().pages, done as u64);
        assert_eq!(purse.used() as u64, object.info().bytes);
        assert!(purse.used() <= limit, "{} of {limit}", purse.used());
        drop(object);
        assert_eq!((memory.used(), purse.used()), (0, 0));
        if done == far.len() {
            break;
        }
        limit += 100;
    }
}

#[test]
fn a_dead_loaders_pages_are_nobodys() {
    let (memory, owner, loader) = (memory(), purse(usize::MAX), purse(usize::MAX));
    let object = object(memory, &owner, 100, VmoFill::Load);
    assert_eq!(object.load(&loader, 0, 10), Ok(10));
    assert_eq!(object.load(&owner, 3, 1), Err(MemoryError::Present));
    assert_eq!(word(&object, 3), Err(MemoryError::Loading));
    assert_eq!(put(&object, 3, 1), Err(MemoryError::Loading));
    loader.0.dead.store(true, Ordering::SeqCst);
    assert_eq!(word(&object, 3), Err(MemoryError::Absent));
    assert_eq!(put(&object, 4, 1), Err(MemoryError::Absent));
    assert_eq!(object.load(&owner, 5, 1), Ok(1));
    let mut content = [0; PAGE as usize];
    content[..8].copy_from_slice(&77_u64.to_le_bytes());
    assert_eq!(object.end_load(5, &content), Ok(1));
    assert_eq!(object.end_load(5, &content), Ok(0));
    assert_eq!(object.end_load(5, &content[1..]), Err(MemoryError::Invalid));
    assert_eq!(word(&object, 5), Ok(77));
    assert_eq!(
        object.break_off(0, 100),
        Ok(7),
        "three were broken off, or have come"
    );
    assert_eq!((object.info().pages, memory.used()), (1, 1));
    // A load that was cut off brings nothing.
    assert_eq!(object.load(&owner, 8, 1), Ok(1));
    assert_eq!(object.cut(8, 1), Ok(1));
    assert_eq!(object.end_load(8, &content), Ok(0));
    assert_eq!(word(&object, 8), Err(MemoryError::Absent));
    drop(object);
    assert_eq!((memory.used(), owner.used()), (0, 0));
}

#[test]
fn what_is_written_during_a_write_back_is_written_back_again() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, 1000, VmoFill::Zero);
    [10, 11, 12, 700]
        .iter()
        .for_each(|page| put(&object, *page, 1).expect("there is memory"));
    assert_eq!(object.clean(0, 1000), Ok(Some((10, 3))));
    put(&object, 11, 2).expect("it is there");
    assert_eq!(object.evict(0, 100), Ok(0), "they are being written back");
    assert_eq!(object.clean(0, 1000), Ok(Some((700, 1))));
    assert_eq!(object.clean(0, 1000), Ok(None));
    assert_eq!(object.commit(10, 3), Ok(3));
    assert_eq!(object.commit(10, 3), Ok(0));
    assert_eq!(object.evict(0, 100), Ok(2));
    assert_eq!(object.redo(700, 1), Ok(1));
    assert_eq!(object.clean(0, 1000), Ok(Some((11, 1))));
    assert_eq!(object.clean(0, 1000), Ok(Some((700, 1))));
    assert_eq!(object.cut(700, 1), Ok(1));
    assert_eq!(object.commit(700, 1), Ok(0));
    assert_eq!(memory.used() as u64, object.info().pages);
}

/// Runs that begin in front of others, over the ends of leaves, and end in any order.
#[test]
fn runs_are_written_back_in_any_order() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, 1000, VmoFill::Zero);
    let write = |pages: core::ops::Range<u64>| {
        pages.for_each(|page| put(&object, page, 1).expect("there is memory"));
    };
    write(500..510);
    assert_eq!(object.clean(0, 1000), Ok(Some((500, 10))));
    write(100..270);
    assert_eq!(object.clean(0, 1000), Ok(Some((100, 170))));
    write(50..60);
    write(300..301);
    assert_eq!(object.clean(0, 1000), Ok(Some((50, 10))));
    assert_eq!(object.clean(0, 1000), Ok(Some((300, 1))));
    assert_eq!(object.clean(0, 1000), Ok(None));
    assert_eq!(object.commit(120, 100), Ok(100));
    assert_eq!(object.commit(0, 512), Ok(10 + 70 + 1 + 10));
    assert_eq!(object.commit(0, 512), Ok(0));
    assert_eq!(object.next(0, PageKind::Dirty), None);
    write(60..70);
    assert_eq!(
        object.clean(0, 65),
        Ok(Some((60, 5))),
        "no further than asked"
    );
    assert_eq!(object.cut(61, 2), Ok(2));
    assert_eq!(object.redo(0, 512), Ok(3), "two of five were cut");
    assert_eq!(object.clean(0, 1000), Ok(Some((60, 1))));
    assert_eq!(object.clean(0, 1000), Ok(Some((63, 7))));
    drop(object);
    assert_eq!((memory.used(), purse.used()), (0, 0));
}

/// A sealed object is as it was, whatever its owner does.
#[test]
fn nothing_comes_or_goes_after_a_seal() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, 100, VmoFill::Load);
    let content = [7; PAGE as usize];
    assert_eq!(object.load(&purse, 0, 2), Ok(2));
    assert_eq!(object.end_load(0, &content), Ok(1));
    object.seal().expect("nobody writes");
    assert_eq!(object.end_load(1, &content), Err(MemoryError::Sealed));
    assert_eq!(object.load(&purse, 2, 1), Err(MemoryError::Sealed));
    assert_eq!(object.evict(0, 10), Err(MemoryError::Sealed));
    assert_eq!(object.cut(0, 10), Err(MemoryError::Sealed));
    assert_eq!(object.set_limit(50), Err(MemoryError::Sealed));
    assert_eq!(put(&object, 0, 1), Err(MemoryError::Sealed));
    assert_eq!(object.break_off(1, 1), Ok(1));
    assert_eq!(word(&object, 0), Ok(0x0707_0707_0707_0707));
    assert_eq!(word(&object, 1), Err(MemoryError::Absent));
}

/// Mappings that a sealed object does not note cost it nothing; those before are noted.
#[test]
fn a_sealed_object_notes_no_mapping() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, 100, VmoFill::Zero);
    put(&object, 3, 1).expect("there is memory");
    let space = || Weak::<Unmapped>::new();
    let first = object.add_mapping(space(), 0, 0..100);
    assert_ne!(first, Ok(0), "it can still change");
    let before = purse.used();
    object.seal().expect("nobody writes");
    for _ in 0..10_000 {
        assert_eq!(object.add_mapping(space(), 0, 0..100), Ok(0));
    }
    assert_eq!(
        object.add_mapping(space(), 0, 0..MOST_PAGES + 1),
        Err(MemoryError::Beyond)
    );
    assert_eq!(purse.used(), before);
}

struct Unmapped;

impl Mapped for Unmapped {
    fn unmap(&self, _: core::ops::Range<u64>) {}
    fn protect(&self, _: core::ops::Range<u64>) {}
}

/// Whoever maps while others do is not refused because they were faster.
#[test]
fn mappings_that_are_noted_at_once_all_have_room() {
    for _ in 0..200 {
        let (memory, purse) = (memory(), purse(usize::MAX));
        let object = object(memory, &purse, 100, VmoFill::Zero);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for at in 0..100 {
                        let noted = object.add_mapping(Weak::<Unmapped>::new(), at, 0..100);
                        assert!(noted.is_ok(), "{noted:?}");
                    }
                });
            }
        });
    }
}

/// Lists grow with what is under way, and nobody gets them for nothing.
#[test]
fn what_is_under_way_is_paid_for() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, 1000, VmoFill::Load);
    assert_eq!(object.load(&purse, 0, 1), Ok(1));
    let one = purse.used();
    assert_eq!(object.load(&purse, 1, 63), Ok(63));
    let more = purse.used() - one - 63 * PAGE as usize;
    assert!(
        more >= 56 * 16,
        "{more} bytes for a list of 64 in place of 8"
    );
    assert_eq!(purse.used() as u64, object.info().bytes);
    purse.0.limit.store(purse.used(), Ordering::SeqCst);
    let full = object.load(&purse, 64, 1);
    assert_eq!(full, Err(MemoryError::Rpc(RpcError::NoMemory)));
    drop(object);
    assert_eq!((memory.used(), purse.used()), (0, 0));
}

/// A tree whose loads are broken off uses its leaves again.
#[test]
fn leaves_of_loads_that_break_off_are_used_again() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, MOST_PAGES, VmoFill::Load);
    let once = |round: u64| {
        let page = round * 100_003 % MOST_PAGES;
        assert_eq!(object.load(&purse, page, 1), Ok(1));
        assert_eq!(object.break_off(page, 1), Ok(1));
    };
    // The farthest first, so that the tree is as high as it will be.
    once(499);
    (0..10).for_each(once);
    let bytes = object.info().bytes;
    (10..499).for_each(once);
    assert_eq!(object.info().bytes, bytes);
}

#[test]
fn who_adopts_pays() {
    let (memory, first, poor, rich) = (memory(), purse(usize::MAX), purse(9000), purse(1 << 20));
    let object = object(memory, &first, 100, VmoFill::Zero);
    (0..10).for_each(|page| put(&object, page, 1).expect("there is memory"));
    let bytes = first.used();
    assert_eq!(
        object.adopt(&poor),
        Err(MemoryError::Rpc(RpcError::NoMemory))
    );
    assert_eq!((first.used(), poor.used()), (bytes, 0));
    object.adopt(&rich).expect("it has enough");
    assert_eq!((first.used(), rich.used()), (0, bytes));
    put(&object, 10, 1).expect("there is memory");
    assert_eq!((first.used(), rich.used()), (0, bytes + PAGE as usize));
}

/// Readers, writers, one who cuts, one who writes back and evicts, and one who sets limits: no page
/// ever shows what was never written to it, and the sums are right in the end.
#[test]
fn threads_on_one_object_see_no_others_bytes() {
    const PAGES: u64 = 200;
    let rounds = std::env::var("TREFOIL_STRESS_RUNS");
    let rounds = rounds.map_or(2_000, |text| text.parse().expect("a number of runs"));
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = object(memory, &purse, PAGES, VmoFill::Zero);
    let marked = |page: u64| page << 32 | 0xfeed;
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let object = &object;
            scope.spawn(move || {
                let mut state = seed;
                for _ in 0..rounds * 4 {
                    let page = random(&mut state) % PAGES;
                    match put(object, page, marked(page)) {
                        Ok(()) | Err(MemoryError::Beyond) => {}
                        Err(error) => panic!("{error:?} from a write"),
                    }
                    let page = random(&mut state) % PAGES;
                    match word(object, page) {
                        Ok(seen) => {
                            assert!(seen == 0 || seen == marked(page), "{seen:#x} in {page}")
                        }
                        Err(error) => assert_eq!(error, MemoryError::Beyond),
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut state = 99;
            for _ in 0..rounds {
                let first = random(&mut state) % PAGES;
                let _ = object.cut(first, random(&mut state) % 70);
            }
        });
        scope.spawn(|| {
            for _ in 0..rounds / 4 {
                if let Ok(Some((first, count))) = object.clean(0, 50) {
                    let _ = object.commit(first, count);
                }
                let _ = object.evict(0, 50);
            }
        });
        scope.spawn(|| {
            let mut state = 5;
            for _ in 0..rounds / 4 {
                let limit = 50 + random(&mut state) % 150;
                object.set_limit(limit).expect("it is not sealed");
                object.set_limit(PAGES).expect("it is not sealed");
            }
        });
    });
    let info = object.info();
    let present = (0..PAGES).filter(|page| object.next(*page, PageKind::Present) == Some(*page));
    assert_eq!(info.pages, present.count() as u64);
    assert_eq!(memory.used() as u64, info.pages);
    assert_eq!(purse.used() as u64, info.bytes);
    object.set_limit(0).expect("it is not sealed");
    assert_eq!(memory.used(), 0);
    drop(object);
    assert_eq!(purse.used(), 0);
}
