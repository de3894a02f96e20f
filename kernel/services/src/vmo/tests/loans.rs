//! Loans of a device: how many there can be, their numbers, and that they end.

use super::*;
use crate::vmo::loans::MOST_LOANS;
use crate::vmo::object::MOST_LENT;
use interfaces::DmaDirection::{self, FromDevice, ToDevice};
use isolation::lock::Lock;

type Loans = crate::vmo::loans::Loans<Host, Purse, usize>;

const BUSY: MemoryError = MemoryError::Rpc(RpcError::Busy);

fn device() -> Lock<Loans> {
    Lock::new(Loans::with_room(0).expect("there is memory"))
}

/// A loan that is charged with 1.
fn lend(
    device: &Lock<Loans>,
    object: &Arc<Object>,
    first: u64,
    count: u64,
    to: DmaDirection,
) -> Result<u64, MemoryError> {
    Loans::lend(device, object, (first, count), to, 1, |_| (), || true)
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
        assert!(all.each().all(|it| it == (count as usize, &mut 1)));
        assert_eq!(all.each().count(), most);
        drop(all);
        // Every other one first.
        let (even, odd): (Vec<u64>, Vec<u64>) = numbers.into_iter().partition(|it| it % 2 == 0);
        for number in even.into_iter().chain(odd) {
            assert!(Loans::end(&device, number), "{number:x}");
            assert!(!Loans::end(&device, number), "{number:x} twice");
        }
        assert!(device.lock().is_empty());
        assert!((1..MOST_LENT).all(|frame| !memory.is_lent(frame)));
    }
}

/// Numbers that were made up, or are over, end nothing.
#[test]
fn a_number_ends_its_own_loan_alone() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    assert!(!Loans::end(&Lock::new(Loans::default()), 0), "no room yet");
    let first = lend(&device, &object, 0, 1, ToDevice).expect("there is room");
    for number in [first + 1, first ^ 1 << 32, first | 1 << 63, u64::MAX] {
        assert!(!Loans::end(&device, number), "{number:x}");
    }
    assert!(Loans::end(&device, first));
    let second = lend(&device, &object, 0, 1, ToDevice).expect("there is room");
    assert_ne!(first, second);
    assert!(!Loans::end(&device, first));
    assert!(Loans::end(&device, second));
}

/// One that is refused at its last step has given all back, and lets the object be sealed.
#[test]
fn what_a_device_may_not_have_any_more_comes_back() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let (object, device) = (full(memory, &purse), device());
    let pages = (0, MOST_LENT);
    let refused = Loans::lend(&device, &object, pages, FromDevice, 1, |_| (), || false);
    assert_eq!(refused, Err(RpcError::Refused.into()));
    assert!((1..MOST_LENT).all(|frame| !memory.is_lent(frame)));
    assert_eq!(object.seal(), Ok(()));
    let all: Vec<_> = (0..64)
        .map(|_| lend(&device, &object, 0, MOST_LENT, ToDevice))
        .collect();
    assert!(all.iter().all(Result::is_ok), "pieces are lost");
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
    assert!(device.lock().is_empty());
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
                    assert!(Loans::end(device, number.expect("there is memory")));
                }
            });
        }
        scope.spawn(|| (0..100).for_each(|round| assert_eq!(object.cut(round, 3), Ok(3))));
    });
    assert!(device.lock().is_empty());
    assert!((1..FRAMES as u64).all(|frame| !memory.is_lent(frame)));
    assert_eq!(object.seal(), Ok(()));
    drop(object);
    assert_eq!((memory.used(), purse.used()), (0, 0));
}
