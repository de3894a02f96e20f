//! Pages of the process for memory objects, counted as the bare machine counts its frames.

use core::convert::Infallible;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use isolation::lock::Lock;
use isolation::memory::grown::Grown;
use isolation::platform::{PAGE, platform};
use pages::{Bytes, Frames, Pool, Run};

/// A page and its count. The records stay, so that whoever looks at a page that is gone sees that.
struct Record {
    /// 0: not in use; [`FROZEN`].
    count: AtomicU64,
    page: AtomicPtr<u8>,
    /// While it is not in use: the next such one, plus one; 0: there is none.
    next: AtomicU32,
}

const FROZEN: u64 = 1 << 63;
/// One more of those who have a count is a device, or stands for one.
const DEVICE: u64 = 1 << 32;

/// All records that there ever were.
static RECORDS: Grown<Record> = Grown::new();
static BOOK: Lock<Book> = Lock::new(Book { free: 0, made: 0 });

struct Book {
    /// The first record that is not in use, plus one; 0: there is none.
    free: u32,
    made: u32,
}

/// The counts. Nobody else has one of these.
#[derive(Clone, Copy, Debug)]
pub struct Counted(());

/// Where memory objects get pages of zeros from.
pub const POOL: Pool<Counted> = Pool::new(Counted(()));

/// The record of a frame, whose number is one more.
fn of(frame: u64) -> &'static Record {
    let index = (frame - 1) as usize;
    RECORDS.get(index).expect("who has a count has a frame")
}

/// A record that is not in use; its number.
fn take_record() -> Option<u32> {
    let mut book = BOOK.lock();
    if let Some(number) = book.free.checked_sub(1) {
        book.free = RECORDS.get(number as usize)?.next.load(Ordering::Relaxed);
        return Some(number);
    }
    let empty = || Record {
        count: AtomicU64::new(0),
        page: AtomicPtr::new(core::ptr::null_mut()),
        next: AtomicU32::new(0),
    };
    let number = book.made;
    if !RECORDS.grow(number as usize, empty) {
        return None;
    }
    book.made += 1;
    Some(number)
}

fn give_record(number: u32) {
    let mut book = BOOK.lock();
    let record = of(u64::from(number) + 1);
    record.next.store(book.free, Ordering::Relaxed);
    book.free = number + 1;
}

/// Frees the page of a frame that is frozen.
fn free(frame: u64) {
    let record = of(frame);
    let page = record.page.load(Ordering::Relaxed);
    if let Some(page) = NonNull::new(page) {
        // SAFETY: `claim` took one page, and nobody has a count on it.
        unsafe { platform().free_pages(page, 1) };
    }
    record.count.store(0, Ordering::Release);
    give_record((frame - 1) as u32);
}

/// Replaces the count by what `next` makes of it, until it says `None`; what it was.
fn change(frame: u64, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let count = &of(frame).count;
    count
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
        .ok()
}

/// The address of byte `at` of a frame, which has `bytes` more.
fn address(frame: u64, at: usize, bytes: usize) -> *mut u8 {
    let fits = at <= PAGE && bytes <= PAGE - at;
    assert!(fits, "{bytes} bytes from {at} are not in a page");
    of(frame).page.load(Ordering::Relaxed).wrapping_add(at)
}

impl Frames for Counted {
    fn claim(&self) -> Option<u64> {
        let number = take_record()?;
        let Some(page) = platform().pages(1) else {
            give_record(number);
            return None;
        };
        let frame = u64::from(number) + 1;
        of(frame).page.store(page.as_ptr(), Ordering::Relaxed);
        of(frame).count.store(1, Ordering::Release);
        Some(frame)
    }

    fn share(&self, frame: u64) -> bool {
        let more = |count| (count != 0 && count != FROZEN).then_some(count + 1);
        change(frame, more).is_some()
    }

    fn release(&self, frame: u64) {
        let less = |count| match count {
            FROZEN => None,
            1 => Some(FROZEN),
            _ => Some(count - 1),
        };
        let before = loop {
            match change(frame, less) {
                Some(before) => break before,
                None => self.pause(),
            }
        };
        if before == 1 {
            free(frame);
        }
    }

    fn freeze(&self, frame: u64) -> bool {
        change(frame, |count| (count == 1).then_some(FROZEN)).is_some()
    }

    fn thaw(&self, frame: u64) {
        of(frame).count.store(1, Ordering::Release);
    }

    fn lend(&self, frame: u64) -> bool {
        change(frame, |count| Some(count + DEVICE)).is_some()
    }

    fn take_back(&self, frame: u64) {
        change(frame, |count| Some(count - DEVICE));
    }

    fn is_lent(&self, frame: u64) -> bool {
        let count = of(frame).count.load(Ordering::Acquire);
        count != FROZEN && count >= DEVICE
    }

    fn give_up(&self, frame: u64) {
        free(frame);
    }

    fn wake(&self) {}

    fn pause(&self) {
        // Who has frozen it may have lost the processor.
        platform().yield_now();
    }
}

impl Bytes for Counted {
    /// There are no programs.
    type Program = Infallible;

    fn copy_out(&self, frame: u64, at: usize, bytes: &mut [u8]) {
        let from = address(frame, at, bytes.len());
        // SAFETY: only `pages` calls this, with a count on a frame that `claim` gave, so the page
        // is there. Others may write meanwhile: one string instruction reads it.
        unsafe {
            core::arch::asm!("rep movsb", inout("rsi") from => _,
                inout("rdi") bytes.as_mut_ptr() => _, inout("rcx") bytes.len() => _,
                options(nostack, preserves_flags))
        };
    }

    fn copy_in(&self, frame: u64, at: usize, bytes: &[u8]) {
        let to = address(frame, at, bytes.len());
        // SAFETY: as above.
        unsafe {
            core::arch::asm!("rep movsb", inout("rsi") bytes.as_ptr() => _,
                inout("rdi") to => _, inout("rcx") bytes.len() => _,
                options(nostack, preserves_flags))
        };
    }

    fn copy_to(&self, _: u64, _: usize, run: Run<'_, Infallible>) -> usize {
        match *run.program {}
    }

    fn copy_from(&self, _: u64, _: usize, run: Run<'_, Infallible>) -> usize {
        match *run.program {}
    }
}
