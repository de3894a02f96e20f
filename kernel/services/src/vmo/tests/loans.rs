//! Loans of a device: how many there can be, their numbers, and that they end.

use super::*;
use crate::vmo::loans::{MOST_LOANS, Pays, Share};
use crate::vmo::object::MOST_LENT;
use interfaces::DmaDirection::{self, FromDevice, ToDevice};
use interfaces::DmaRun;
use isolation::lock::Lock;
use std::ops::Deref;

type Loans = crate::vmo::loans::Loans<Host, Purse, Bill>;

const BUSY: MemoryError = MemoryError::Rpc(RpcError::Busy);

/// A device, and who pays for its loans: with a page for a page.
pub(super) struct Device {
    loans: Lock<Loans>,
    pub(super) payer: Purse,
}

impl Deref for Device {
    type Target = Lock<Loans>;
    fn deref(&self) -> &Lock<Loans> {
        &self.loans
    }
}

impl Device {
    /// Whether it has no loan, nobody pays for one, and no page is noted.
    fn is_idle(&self) -> bool {
        let mut loans = self.lock();
        loans.is_empty() && loans.each().count() == 0 && self.payer.used() == 0
    }
}

pub(super) fn device() -> Device {
    let payer = purse(usize::MAX);
    let loans = Loans::with_room(Bill(payer.clone(), 0));
    Device {
        loans: Lock::new(loans.expect("there is memory")),
        payer,
    }
}

impl Share for Bill {
    fn grow(&mut self, pages: usize) -> bool {
        let more = Payer::charge(&self.0, pages);
        more.is_some_and(|more| self.absorb(more).is_ok())
    }
    fn shrink(&mut self, pages: usize) {
        assert!(pages <= self.1, "it is charged for all");
        drop(self.split(pages));
    }
}

impl Pays<Bill> for Purse {
    fn pays(&self, charge: &Bill) -> bool {
        Arc::ptr_eq(&self.0, &charge.0.0)
    }
    fn charge(&self, pages: usize) -> Result<Bill, MemoryError> {
        Payer::charge(self, pages).ok_or(RpcError::NoMemory.into())
    }
}

/// Pages that a device is to use.
pub const fn run(first: u64, pages: u64, direction: DmaDirection) -> DmaRun {
    DmaRun {
        first,
        pages,
        direction,
        hold: u64::MAX,
    }
}

/// A loan that is charged with its pages.
fn lend(
    device: &Device,
    object: &Arc<Object>,
    first: u64,
    count: u64,
    to: DmaDirection,
) -> Result<u64, MemoryError> {
    let mut runs = [run(first, count, to)];
    lend_all(device, object, &mut runs)?;
    Ok(runs[0].hold)
}

/// Loans that are charged with their pages; how many.
fn lend_all(
    device: &Device,
    object: &Arc<Object>,
    runs: &mut [DmaRun],
) -> Result<usize, MemoryError> {
    Loans::lend(device, object, runs, &device.payer, |_| (), || true)
}

fn full(memory: Host, purse: &Purse) -> Arc<Object> {
    let object = Arc::new(object(memory, purse, 1000, VmoFill::Zero));
    (0..MOST_LENT).for_each(|page| put(&object, page, 1).expect("there is memory"));
    object
}

/// As many loans of each length as there are pieces or places for, again and again.
#[test]
fn there_are_so_many_and_room_comes_back() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    for (count, most) in [
        (1, MOST_LOANS),
        (16, MOST_LOANS),
        (17, 512),
        (MOST_LENT, 64),
        (MOST_LENT - 15, 64),
        (1, MOST_LOANS),
    ] {
        let mut numbers = Vec::new();
        let refused = loop {
            match lend(&device, &object, 0, count, ToDevice) {
                Ok(number) => numbers.push(number),
                Err(why) => break why,
            }
        };
        assert_eq!((numbers.len(), refused), (most, BUSY), "{count} pages");
        let mut all = device.lock();
        let lent = count as usize * most;
        assert!(
            all.each()
                .all(|(pages, bill)| (pages, bill.1) == (lent, lent))
        );
        assert_eq!(all.each().count(), 1);
        drop(all);
        // Every other one first.
        let (even, odd): (Vec<u64>, Vec<u64>) = numbers.into_iter().partition(|it| it % 2 == 0);
        for number in even.into_iter().chain(odd) {
            assert!(Loans::end(&device, &[number]), "{number:x}");
            assert!(!Loans::end(&device, &[number]), "{number:x} twice");
        }
        assert!(device.is_idle());
        assert!((1..MOST_LENT).all(|frame| !memory.is_lent(frame)));
    }
}

/// Numbers that were made up, or are over, end nothing.
#[test]
fn a_number_ends_its_own_loan_alone() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    assert!(
        !Loans::end(&Lock::new(Loans::default()), &[0]),
        "no room yet"
    );
    let first = lend(&device, &object, 0, 1, ToDevice).expect("there is room");
    for number in [first + 1, first ^ 1 << 32, first | 1 << 63, u64::MAX] {
        assert!(!Loans::end(&device, &[number]), "{number:x}");
    }
    assert!(Loans::end(&device, &[first]));
    let second = lend(&device, &object, 0, 1, ToDevice).expect("there is room");
    assert_ne!(first, second);
    assert!(!Loans::end(&device, &[first]));
    assert!(Loans::end(&device, &[second]));
}

/// One that is refused at its last step has given all back, and lets the object be sealed.
#[test]
fn what_a_device_may_not_have_any_more_comes_back() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    let mut runs = [
        run(0, MOST_LENT, FromDevice),
        run(2, 1, FromDevice),
        run(2, 2, ToDevice),
    ];
    let refused = Loans::lend(&device, &object, &mut runs, &device.payer, |_| (), || false);
    assert_eq!(refused, Err(RpcError::Refused.into()));
    assert!((1..MOST_LENT).all(|frame| !memory.is_lent(frame)));
    assert_eq!(object.seal(), Ok(()));
    let all: Vec<_> = (0..64)
        .map(|_| lend(&device, &object, 0, MOST_LENT, ToDevice))
        .collect();
    assert!(all.iter().all(Result::is_ok), "pieces are lost");
}

/// Runs are lent in their order until one is refused, and what is behind that is not touched.
#[test]
fn a_batch_is_lent_up_to_the_first_that_is_refused() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    // More than are noted at once, of one page and of several.
    for bad in [0, 1, 15, 16, 17, 40, 63] {
        let mut runs: Vec<_> = (0..64)
            .map(|at| run(at, 1 + at % 3 * 9, ToDevice))
            .collect();
        runs[bad].first = 999;
        runs[bad].pages = 2;
        let mut told = 0;
        let lent = Loans::lend(
            &device,
            &object,
            &mut runs,
            &device.payer,
            |_| told += 1,
            || true,
        );
        let wanted = if bad == 0 {
            Err(MemoryError::Beyond)
        } else {
            Ok(bad)
        };
        assert_eq!(lent, wanted);
        let lent: u64 = runs[..bad].iter().map(|run| run.pages).sum();
        assert_eq!(told, lent, "of others nothing is told");
        assert!(runs[bad..].iter().all(|run| run.hold == u64::MAX));
        let numbers: Vec<_> = runs[..bad].iter().map(|run| run.hold).collect();
        let mut all = device.lock();
        assert_eq!(all.each().map(|(pages, _)| pages as u64).sum::<u64>(), lent);
        drop(all);
        assert!(Loans::end(&device, &numbers));
        assert!(device.is_idle());
        assert!((1..FRAMES as u64).all(|frame| !memory.is_lent(frame)));
    }
}

/// Where there is room for some of a batch, those are lent.
#[test]
fn a_batch_is_lent_as_far_as_there_is_room() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    let fill = |count: u64| -> Vec<u64> {
        let lend = |page| lend(&device, &object, page % 200, 1, ToDevice);
        (0..count).map(|page| lend(page).expect("room")).collect()
    };
    for left in [1, 20] {
        let others = fill(MOST_LOANS as u64 - left);
        let mut runs = [const { run(7, 1, FromDevice) }; 40];
        let lent = lend_all(&device, &object, &mut runs);
        assert_eq!(lent, Ok(left as usize));
        let more = lend_all(&device, &object, &mut runs[39..]);
        assert_eq!(more, Err(BUSY));
        let numbers: Vec<_> = runs[..left as usize].iter().map(|run| run.hold).collect();
        assert!(Loans::end(&device, &numbers));
        assert!(Loans::end(&device, &others));
    }
    assert!(device.is_idle());
    assert_eq!(object.seal(), Ok(()), "no write is left");
}

/// Of a batch of numbers, one of which is wrong or comes twice, all others end.
#[test]
fn a_wild_number_in_a_batch_keeps_no_other() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    for wild in [None, Some(u64::MAX), Some(1 << 32), Some(5000)] {
        let mut runs: Vec<_> = (0..20).map(|at| run(at, 1 + at, FromDevice)).collect();
        let lent = lend_all(&device, &object, &mut runs);
        assert_eq!(lent, Ok(20));
        let mut numbers: Vec<_> = runs.iter().map(|run| run.hold).collect();
        // `None`: one that is there already.
        numbers.insert(3, wild.unwrap_or(numbers[2]));
        assert!(!Loans::end(&device, &numbers));
        assert!(device.is_idle(), "{wild:x?}");
        assert!((1..FRAMES as u64).all(|frame| !memory.is_lent(frame)));
    }
    assert_eq!(object.seal(), Ok(()));
}

/// Pages of several objects, some of which were written, that are given back by one call, with a
/// wrong number among them: each is marked that was written, which is told, and no other one.
#[test]
fn pages_that_are_given_back_together_are_marked_one_by_one() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (objects, device) = ([full(memory, &purse), full(memory, &purse)], device());
    for object in &objects {
        assert_eq!(object.clean(0, 1000), Ok(Some((0, MOST_LENT))));
        assert_eq!(object.commit(0, MOST_LENT), Ok(MOST_LENT));
    }
    let waiters = objects.each_ref().map(|object| told::told(object));
    let way = |page| {
        if page % 3 == 0 { ToDevice } else { FromDevice }
    };
    let whose = |page: u64| (page / 6 % 2) as usize;
    let lend = |page| lend(&device, &objects[whose(page)], page, 1, way(page));
    let mut numbers: Vec<_> = (0..24).map(|page| lend(page).expect("room")).collect();
    numbers.insert(10, u64::MAX);
    assert!(!Loans::end(&device, &numbers));
    assert!(device.is_idle());
    assert!((1..FRAMES as u64).all(|frame| !memory.is_lent(frame)));
    for (at, object) in objects.iter().enumerate() {
        assert_eq!(waiters[at].take().count, 1, "it is told once");
        for page in 0..24 {
            let is_dirty = object.next(page, PageKind::Dirty) == Some(page);
            let is_written = whose(page) == at && way(page) == FromDevice;
            assert_eq!(is_dirty, is_written, "page {page} of object {at}");
        }
        assert_eq!(object.seal(), Ok(()), "no write is left");
    }
}

/// What is left of a device ends its loans, whatever has become of the object.
#[test]
fn loans_end_with_the_device() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (stays, goes) = (full(memory, &purse), full(memory, &purse));
    let device = device();
    lend(&device, &stays, 3, 40, FromDevice).expect("there is room");
    lend(&device, &goes, 0, 20, FromDevice).expect("there is room");
    drop(goes);
    assert_eq!(memory.used() as u64, MOST_LENT + 20, "what the device has");
    assert_eq!(stays.seal(), Err(BUSY));
    Loans::end_all(&device);
    assert_eq!(memory.used() as u64, MOST_LENT);
    assert!(device.is_idle());
    lend(&device, &stays, 3, 40, FromDevice).expect_err("it is being sealed");
    lend(&device, &stays, 3, 40, ToDevice).expect("there is room");
    drop(device);
    assert_eq!(stays.seal(), Ok(()));
    drop(stays);
    assert_eq!((memory.used(), purse.used()), (0, 0));
}

/// Threads lend and end at the same time, while others take the pages away.
#[test]
fn devices_on_several_threads_lose_nothing() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (object, device) = (&object, &device);
            scope.spawn(move || {
                for round in 0..200 {
                    let (first, count) = (round * 7 % 100, 1 + (round * 31 + thread) % 60);
                    let to = if round % 3 == 0 { FromDevice } else { ToDevice };
                    let number = lend(device, object, first, count, to);
                    assert!(Loans::end(device, &[number.expect("there is memory")]));
                }
            });
        }
        scope.spawn(|| (0..100).for_each(|round| assert_eq!(object.cut(round, 3), Ok(3))));
    });
    assert!(device.is_idle());
    assert!((1..FRAMES as u64).all(|frame| !memory.is_lent(frame)));
    assert_eq!(object.seal(), Ok(()));
    drop(object);
    assert_eq!((memory.used(), purse.used()), (0, 0));
}

/// A run whose later pages cannot be had is not lent in part: its pages, their room and the right
/// to write come back, again and again.
#[test]
fn a_run_that_ends_where_memory_does_is_not_lent() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    memory.0.left.store(0, Ordering::SeqCst);
    for round in 0..300 {
        let there = [1, 15, 16, 17, 40, 200][round % 6];
        let to = [FromDevice, ToDevice][round % 2];
        let mut runs = [
            run(0, 1, ToDevice),
            run(MOST_LENT - there, there + 1, to),
            run(1, 1, ToDevice),
        ];
        let lent = lend_all(&device, &object, &mut runs);
        assert_eq!(lent, Ok(1));
        let alone = lend_all(&device, &object, &mut runs[1..]);
        assert_eq!(alone, Err(RpcError::NoMemory.into()));
        assert!(Loans::end(&device, &[runs[0].hold]));
        assert!((1..FRAMES as u64).all(|frame| !memory.is_lent(frame)));
    }
    let all: Vec<_> = (0..64)
        .map(|_| lend(&device, &object, 0, MOST_LENT, ToDevice))
        .collect();
    assert!(all.iter().all(Result::is_ok), "pieces are lost");
    Loans::end_all(&device);
    assert_eq!(object.seal(), Ok(()), "no write is left");
}

/// A device is stopped, and all that it has ended, while threads lend it batches: what comes after
/// that is refused, and neither pages nor charges nor room stay behind.
#[test]
fn a_device_that_is_stopped_under_batches_has_nothing() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    for round in 0..300 {
        let (stopped, lent) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (object, device, stopped, lent) = (&object, &device, &stopped, &lent);
                scope.spawn(move || {
                    loop {
                        let pages = 1 + (round + thread) % 40;
                        let mut runs = [
                            run(0, 1, FromDevice),
                            run(1, pages, FromDevice),
                            run(9, 1, ToDevice),
                        ];
                        let may = || !stopped.load(Ordering::SeqCst);
                        let payer = &device.payer;
                        let held = Loans::lend(device, object, &mut runs, payer, |_| (), may);
                        let Ok(held) = held else { break };
                        lent.fetch_add(held, Ordering::Relaxed);
                        let numbers = runs.map(|run| run.hold);
                        // Some are left to who stops it; it may have been faster with the rest.
                        Loans::end(device, &numbers[..thread as usize]);
                    }
                });
            }
            while lent.load(Ordering::Relaxed) < 10 {
                std::thread::yield_now();
            }
            stopped.store(true, Ordering::SeqCst);
            Loans::end_all(&device);
        });
        assert!(device.is_idle(), "round {round}");
    }
    assert!((1..FRAMES as u64).all(|frame| !memory.is_lent(frame)));
    let all: Vec<_> = (0..64)
        .map(|_| lend(&device, &object, 0, MOST_LENT, ToDevice))
        .collect();
    assert!(all.iter().all(Result::is_ok), "room is lost");
    Loans::end_all(&device);
    assert_eq!(object.seal(), Ok(()));
}

/// A payer's limit refuses a sum: the first run is lent alone. He pays for what is lent and no
/// more, before it and afterwards.
#[test]
fn a_limit_lets_the_first_run_alone() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    let limit = &device.payer.0.limit;
    for (pages, others) in [(1, 1), (1, 40), (3, 1), (40, 2)] {
        for warm in [false, true] {
            if warm {
                // The account is there already.
                let number = lend(&device, &object, 0, 1, ToDevice).expect("there is room");
                assert!(Loans::end(&device, &[number]));
            }
            let mut runs = [
                run(0, pages, FromDevice),
                run(50, others, FromDevice),
                run(0, 1, ToDevice),
            ];
            limit.store(pages as usize - 1, Ordering::SeqCst);
            let refused = lend_all(&device, &object, &mut runs);
            assert_eq!(refused, Err(RpcError::NoMemory.into()));
            assert!(device.is_idle());
            for most in [pages, pages + others, pages + others + 1] {
                limit.store(most as usize, Ordering::SeqCst);
                let held = lend_all(&device, &object, &mut runs).expect("the first fits");
                let all = most > pages + others;
                assert_eq!(
                    held,
                    if all { 3 } else { 1 },
                    "{pages} + {others} of {most}"
                );
                let lent = if all { most } else { pages };
                assert_eq!(device.payer.used() as u64, lent);
                let numbers: Vec<_> = runs[..held].iter().map(|run| run.hold).collect();
                assert!(Loans::end(&device, &numbers));
                assert!(device.is_idle());
            }
            limit.store(usize::MAX, Ordering::SeqCst);
        }
    }
    assert_eq!(object.seal(), Ok(()), "no write is left");
}

/// Loans of as many objects as there can be loans, in turn and of two payers: each has what is its
/// own, is charged to who asked, and ends with nothing left of it.
#[test]
fn accounts_are_as_many_as_loans() {
    let (memory, other) = (memory(), purse(usize::MAX));
    let (device, purse) = (device(), purse(usize::MAX));
    let objects: Vec<_> = (0..MOST_LOANS)
        .map(|_| {
            let object = Arc::new(object(memory, &purse, 1, VmoFill::Zero));
            put(&object, 0, 1).expect("there is memory");
            object
        })
        .collect();
    for round in 0..3 {
        let mut numbers = Vec::new();
        for (at, object) in objects.iter().enumerate() {
            let payer = if at % 2 == 0 { &device.payer } else { &other };
            let mut runs = [run(0, 1, FromDevice)];
            let held = Loans::lend(&device, object, &mut runs, payer, |_| (), || true);
            assert_eq!(held, Ok(1), "object {at} in round {round}");
            numbers.push(runs[0].hold);
        }
        assert_eq!(lend(&device, &objects[0], 0, 1, ToDevice), Err(BUSY));
        let half = MOST_LOANS / 2;
        assert_eq!((device.payer.used(), other.used()), (half, half));
        assert_eq!(device.lock().each().count(), MOST_LOANS);
        // In another order each round.
        numbers.rotate_left(round * 300);
        for some in numbers.chunks(64 - round) {
            assert!(Loans::end(&device, some));
        }
        assert!(device.is_idle());
        assert_eq!(other.used(), 0);
        assert!((1..FRAMES as u64).all(|frame| !memory.is_lent(frame)));
    }
    objects.iter().for_each(|it| assert_eq!(it.seal(), Ok(())));
}

/// An object is not sealed before the last of what was written to it together is given back, in
/// whatever order; what is only read does not count.
#[test]
fn a_seal_waits_for_the_last_write_of_an_account() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let (object, device) = (full(memory, &purse), device());
        let mut runs = [
            run(0, 1, ToDevice),
            run(1, 1, FromDevice),
            run(2, 3, FromDevice),
            run(9, 1, FromDevice),
        ];
        assert_eq!(lend_all(&device, &object, &mut runs), Ok(4));
        let mut writes = 3;
        for at in order {
            assert!(Loans::end(&device, &[runs[at].hold]));
            writes -= usize::from(at != 0);
            let wanted = if writes == 0 { Ok(()) } else { Err(BUSY) };
            assert_eq!(object.seal(), wanted, "{order:?} up to {at}");
        }
        assert!(device.is_idle());
        assert_eq!(lend(&device, &object, 1, 1, ToDevice).map(drop), Ok(()));
        let refused = lend(&device, &object, 1, 1, FromDevice);
        assert_eq!(refused, Err(MemoryError::Sealed));
    }
}

/// An account that waits for the next call keeps no object, and is not taken for that of another
/// one.
#[test]
fn an_idle_account_keeps_nothing() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let device = device();
    for round in 0..50 {
        let object = full(memory, &purse);
        let number = lend(&device, &object, round, 1, FromDevice).expect("there is room");
        assert!(Loans::end(&device, &[number]));
        drop(object);
        assert_eq!((memory.used(), purse.used()), (0, 0), "round {round}");
        assert!(device.is_idle());
    }
}

/// Nor does a device keep one whose loans were ended for good.
#[test]
fn no_account_is_kept_for_a_device_that_stops() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    let number = lend(&device, &object, 0, 1, FromDevice).expect("there is room");
    assert!(Loans::end(&device, &[number]));
    assert_eq!(Arc::weak_count(&object), 1, "it is kept for the next call");
    Loans::end_all(&device);
    assert_eq!(Arc::weak_count(&object), 0);
}

/// While a batch is lent, the leaf that its last page was found in goes to other pages of the
/// object: of those none is lent.
#[test]
fn a_leaf_that_is_others_since_the_run_before_is_not_lent() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    object.set_limit(64).expect("nobody else does");
    let mut told = Vec::new();
    let tell = |frame| {
        told.push(frame);
        if told.len() == 1 {
            assert_eq!(object.cut(0, 64), Ok(64));
            object.set_limit(1000).expect("nobody else does");
            put(&object, 64 * 5 + 1, 1).expect("there is memory");
        }
    };
    let mut runs = [run(0, 1, FromDevice), run(1, 1, FromDevice)];
    let held = Loans::lend(&device, &object, &mut runs, &device.payer, tell, || true);
    assert_eq!(held, Ok(2), "the second is a new page of zeros");
    let mut other = [run(64 * 5 + 1, 1, ToDevice)];
    let mut frame = 0;
    let tell = |of| frame = of;
    let held_other = Loans::lend(&device, &object, &mut other, &device.payer, tell, || true);
    assert_eq!(held_other, Ok(1));
    assert!(!told.contains(&frame), "that is another page's");
    let numbers = [runs[0].hold, runs[1].hold, other[0].hold];
    assert!(Loans::end(&device, &numbers));
    assert!(device.is_idle());
    assert!((1..FRAMES as u64).all(|frame| !memory.is_lent(frame)));
}
