//! Pages that a device uses while all kinds of things happen to them.

use super::loans::{Device, device, run};
use super::*;
use interfaces::DmaDirection;
use interfaces::DmaDirection::{FromDevice, ToDevice};

const LOTS: usize = 1 << 20;

fn shared(memory: Host, purse: &Purse, fill: VmoFill) -> Arc<Object> {
    Arc::new(object(memory, purse, 1000, fill))
}

/// What a device does that was told of this frame.
fn device_writes(memory: Host, frame: u64, value: u64) {
    memory.0.bytes[frame as usize - 1][0].store(value, Ordering::SeqCst);
}

type Loans = crate::vmo::loans::Loans<Host, Purse, Bill>;

/// A loan of a device that has no other.
struct Loan {
    loans: Device,
    number: u64,
    frames: Vec<u64>,
}

impl Drop for Loan {
    fn drop(&mut self) {
        assert!(
            Loans::end(&self.loans, &[self.number]),
            "nobody else ends it"
        );
    }
}

fn lend(
    object: &Arc<Object>,
    first: u64,
    count: u64,
    direction: DmaDirection,
) -> Result<Loan, MemoryError> {
    let (loans, mut frames) = (device(), Vec::new());
    let tell = |frame| frames.push(frame);
    let mut runs = [run(first, count, direction)];
    let lent = Loans::lend(&loans, object, &mut runs, &loans.payer, tell, || true)?;
    assert_eq!(lent, 1, "all or an error");
    let number = runs[0].hold;
    Ok(Loan {
        loans,
        number,
        frames,
    })
}

fn frames(loan: &Loan) -> Vec<u64> {
    loan.frames.clone()
}

#[test]
fn a_range_is_lent_whole_or_not_at_all() {
    let (memory, purse) = (memory(), purse(LOTS));
    let object = shared(memory, &purse, VmoFill::Load);
    assert_eq!(object.load(&purse, 0, 3), Ok(3));
    assert_eq!(object.end_load(0, &[7; 3 * PAGE as usize]), Ok(3));
    let refused = |first, count, direction| lend(&object, first, count, direction).err();
    for (first, count, why) in [
        (0, 0, MemoryError::Invalid),
        (0, 257, MemoryError::Invalid),
        (0, u64::MAX, MemoryError::Invalid),
        (u64::MAX, 1, MemoryError::Beyond),
        (u64::MAX - 5, 200, MemoryError::Beyond),
        (999, 2, MemoryError::Beyond),
        (2, 2, MemoryError::Absent),
    ] {
        assert_eq!(
            refused(first, count, ToDevice),
            Some(why),
            "{first} {count}"
        );
        assert_eq!(
            refused(first, count, FromDevice),
            Some(why),
            "{first} {count}"
        );
    }
    assert!(
        (1..4).all(|frame| !memory.is_lent(frame)),
        "a part was kept"
    );
    assert!(
        object.seal().is_ok(),
        "a refused loan keeps the object open"
    );
    let loan = lend(&object, 0, 3, ToDevice).expect("a sealed object is read");
    assert_eq!(loan.frames.len(), 3);
    assert_eq!(refused(0, 3, FromDevice), Some(MemoryError::Sealed));
}

#[test]
fn a_lent_page_is_not_evicted_and_a_cut_one_lives_on() {
    let (memory, purse) = (memory(), purse(LOTS));
    let object = shared(memory, &purse, VmoFill::Zero);
    put(&object, 0, 5).unwrap();
    assert_eq!(object.clean(0, 1), Ok(Some((0, 1))));
    assert_eq!(object.commit(0, 1), Ok(1));
    let loan = lend(&object, 0, 1, ToDevice).unwrap();
    assert_eq!(object.evict(0, 1), Ok(0), "the device reads it");
    let frame = frames(&loan)[0];
    assert_eq!(object.cut(0, 1), Ok(1));
    assert!(memory.is_lent(frame));
    assert_eq!(
        memory.0.bytes[frame as usize - 1][0].load(Ordering::SeqCst),
        5
    );
    put(&object, 0, 6).unwrap();
    assert_ne!(frames(&lend(&object, 0, 1, ToDevice).unwrap())[0], frame);
    drop(object);
    assert_eq!(memory.used(), 1, "only what the device has");
    assert_eq!(purse.used(), 0, "the object's payer has it no more");
    drop(loan);
    assert_eq!(memory.used(), 0);
}

#[test]
fn what_a_device_has_written_is_dirty_afterwards() {
    let (memory, purse) = (memory(), purse(LOTS));
    let object = shared(memory, &purse, VmoFill::Zero);
    put(&object, 1, 5).unwrap();
    let clean = || {
        assert_eq!(object.clean(0, 4), Ok(Some((1, 1))));
        assert_eq!(object.commit(1, 1), Ok(1));
    };
    clean();
    drop(lend(&object, 1, 1, ToDevice).unwrap());
    assert_eq!(object.next(0, PageKind::Dirty), None, "it was read");
    let loan = lend(&object, 1, 1, FromDevice).unwrap();
    device_writes(memory, frames(&loan)[0], 6);
    assert_eq!(object.next(0, PageKind::Dirty), None, "not yet");
    assert_eq!(object.seal(), Err(MemoryError::Rpc(RpcError::Busy)));
    drop(loan);
    assert_eq!(object.next(0, PageKind::Dirty), Some(1));
    assert_eq!(word(&object, 1), Ok(6));
    assert_eq!(object.seal(), Ok(()), "nobody writes any more");
}

#[test]
fn a_write_back_that_a_device_writes_over_is_written_again() {
    let (memory, purse) = (memory(), purse(LOTS));
    let object = shared(memory, &purse, VmoFill::Zero);
    put(&object, 0, 5).unwrap();
    assert_eq!(object.clean(0, 1), Ok(Some((0, 1))));
    let (out, back) = (
        lend(&object, 0, 1, ToDevice).unwrap(),
        lend(&object, 0, 1, FromDevice).unwrap(),
    );
    assert_eq!(frames(&out), frames(&back));
    drop(back);
    drop(out);
    assert_eq!(object.commit(0, 1), Ok(1));
    assert_eq!(object.next(0, PageKind::Dirty), Some(0));
}

#[test]
fn a_device_fills_pages_that_are_being_loaded() {
    let (memory, purse) = (memory(), purse(LOTS));
    let object = shared(memory, &purse, VmoFill::Load);
    assert_eq!(object.load(&purse, 4, 2), Ok(2));
    assert_eq!(
        lend(&object, 4, 2, ToDevice).err(),
        Some(MemoryError::Loading)
    );
    let loan = lend(&object, 4, 2, FromDevice).unwrap();
    device_writes(memory, frames(&loan)[0], 8);
    assert_eq!(object.loaded(4, 2), Ok(0), "the device is not done");
    assert_eq!(object.end_load(4, &[0; PAGE as usize]), Ok(0));
    assert_eq!(word(&object, 4), Err(MemoryError::Loading));
    drop(loan);
    assert_eq!(object.next(0, PageKind::Dirty), None);
    assert_eq!(object.loaded(4, 2), Ok(2));
    assert_eq!(object.loaded(4, 2), Ok(0));
    assert_eq!((word(&object, 4), word(&object, 5)), (Ok(8), Ok(0)));
    assert_eq!(
        object.next(0, PageKind::Dirty),
        None,
        "it came from the device"
    );
}

#[test]
fn a_load_that_breaks_off_leaves_its_frame_to_the_device() {
    let (memory, dead) = (memory(), purse(LOTS));
    let (loader, payer) = (dead.clone(), purse(LOTS));
    let object = shared(memory, &payer, VmoFill::Load);
    assert_eq!(object.load(&loader, 0, 1), Ok(1));
    let loan = lend(&object, 0, 1, FromDevice).unwrap();
    dead.0.dead.store(true, Ordering::SeqCst);
    assert_eq!(
        lend(&object, 0, 1, FromDevice).err(),
        Some(MemoryError::Absent)
    );
    assert_eq!(object.load(&payer, 0, 1), Ok(1), "the next one loads it");
    let next = lend(&object, 0, 1, FromDevice).unwrap();
    assert_ne!(frames(&loan), frames(&next));
    device_writes(memory, frames(&next)[0], 3);
    drop(next);
    assert_eq!(object.loaded(0, 1), Ok(1));
    // The old request comes late.
    device_writes(memory, frames(&loan)[0], 666);
    drop(loan);
    assert_eq!(word(&object, 0), Ok(3));
    assert_eq!(
        object.next(0, PageKind::Dirty),
        None,
        "the late one marked it"
    );
    drop(object);
    assert_eq!((memory.used(), payer.used()), (0, 0));
}

#[test]
fn a_sealed_object_gets_nothing_from_a_load_under_way() {
    let (memory, purse) = (memory(), purse(LOTS));
    let object = shared(memory, &purse, VmoFill::Load);
    assert_eq!(object.load(&purse, 0, 1), Ok(1));
    let loan = lend(&object, 0, 1, FromDevice).unwrap();
    assert_eq!(object.seal(), Ok(()));
    drop(loan);
    assert_eq!(object.loaded(0, 1), Err(MemoryError::Sealed));
    assert_eq!(word(&object, 0), Err(MemoryError::Loading));
}

#[test]
fn a_driver_in_software_fills_what_is_being_loaded_and_nothing_else() {
    let (memory, purse) = (memory(), purse(LOTS));
    let object = shared(memory, &purse, VmoFill::Load);
    assert_eq!(object.load(&purse, 0, 2), Ok(2));
    assert_eq!(object.fill(PAGE - 8, &[9; 16]), Ok(16));
    assert_eq!(
        object.fill(2 * PAGE - 8, &[9; 16]),
        Ok(8),
        "page 2 is absent"
    );
    assert_eq!(object.fill(2 * PAGE, &[9; 8]), Err(MemoryError::Absent));
    assert_eq!(object.loaded(0, 2), Ok(2));
    assert_eq!(object.fill(0, &[1; 8]), Err(MemoryError::Present));
    for offset in [1000 * PAGE, u64::MAX, u64::MAX - 4] {
        assert_eq!(object.fill(offset, &[1; 8]), Err(MemoryError::Beyond));
    }
    let nines = u64::from_le_bytes([9; 8]);
    assert_eq!(word(&object, 1), Ok(nines));
}

#[test]
fn the_end_of_memory_at_each_page_of_a_loan_leaves_nothing_lent() {
    let (memory, purse) = (memory(), purse(LOTS));
    for left in 0..5 {
        let object = shared(memory, &purse, VmoFill::Zero);
        memory.0.left.store(left, Ordering::SeqCst);
        let loan = lend(&object, 10, 5, FromDevice);
        assert_eq!(loan.err(), Some(MemoryError::Rpc(RpcError::NoMemory)));
        assert!((1..9).all(|frame| !memory.is_lent(frame)));
        assert_eq!(object.seal(), Ok(()));
        drop(object);
        assert_eq!((memory.used(), purse.used()), (0, 0));
    }
}

#[test]
fn what_a_device_has_written_is_told() {
    let (memory, purse) = (memory(), purse(LOTS));
    let object = shared(memory, &purse, VmoFill::Zero);
    let waiter = super::told::told(&object);
    let loan = lend(&object, 0, 3, FromDevice).expect("there is memory");
    assert_eq!(waiter.take().count, 0, "it is not done");
    drop(loan);
    assert_eq!(waiter.take().count, 1, "told once");
}

/// A write-back takes no memory.
#[test]
fn pages_are_written_back_when_there_is_no_memory() {
    const PAGES: u64 = 100;
    let (memory, purse) = (memory(), purse(LOTS));
    let object = shared(memory, &purse, VmoFill::Zero);
    (0..PAGES).for_each(|page| put(&object, page, page).expect("there is memory"));
    purse.0.limit.store(purse.used(), Ordering::SeqCst);
    memory.0.left.store(0, Ordering::SeqCst);
    let full = put(&object, PAGES, 1);
    assert_eq!(full, Err(MemoryError::Rpc(RpcError::NoMemory)));
    let charged = purse.used();
    assert_eq!(object.clean(0, PAGES), Ok(Some((0, PAGES))));
    drop(lend(&object, 0, PAGES, ToDevice).expect("it has content"));
    assert_eq!(object.commit(0, PAGES), Ok(PAGES));
    assert_eq!(purse.used(), charged, "it took memory");
    assert_eq!(object.evict(0, PAGES), Ok(PAGES));
    assert_eq!(charged - purse.used(), (PAGES * PAGE) as usize);
    memory.0.left.store(1, Ordering::SeqCst);
    assert_eq!(put(&object, PAGES, 1), Ok(()), "what was made room for");
}

/// Before a frame is counted for who lends page 0, its leaf has become others' pages.
#[test]
fn a_leaf_that_is_others_by_now_is_not_lent() {
    let (memory, purse) = (memory(), purse(usize::MAX));
    let object = Arc::new(object(memory, &purse, 1000, VmoFill::Zero));
    put(&object, 0, 1).expect("there is memory");
    let other = object.clone();
    let swap = move || {
        other.cut(0, 1).expect("it is not sealed");
        put(&other, 64, 2).expect("there is memory");
    };
    *memory.0.before_share.lock().expect("no test ended") = Some(Box::new(swap));
    let mut seen = [0xaa; 8];
    let lent = object.lend(0, 1, ToDevice, |lent| {
        let frame = lent[0].as_ref().expect("it is lent").frame();
        memory.copy_out(frame, 0, &mut seen);
    });
    assert_eq!((lent, seen), (Ok(false), [0; 8]), "another page is lent");
    assert_eq!(word(&object, 64), Ok(2));
}
