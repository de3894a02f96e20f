//! Frames of plain bytes for memory objects, counted in their slots.

use pages::{Bytes, Frames as Counts, Held, Pool, Run};

use super::copied::{Between, count};
use super::frames::{FrameKind, Frames, give_back_one};
use super::slots::slot;
use super::{PAGE_SIZE, phys_to_virt};
use crate::arch::untyped;
use crate::user::VmSpace;

/// The counts of untyped frames. Nobody else has one of these: who has may change any count.
#[derive(Clone, Copy, Debug)]
pub struct Untyped(());

/// Where memory objects get frames of zeros from.
pub const POOL: Pool<Untyped> = Pool::new(Untyped(()));

/// The frame that is held, for a mapping that owns it, too. `None`: it has too many owners.
pub fn share(held: &Held<Untyped>) -> Option<Frames> {
    of(held.frame()).share(FrameKind::Untyped).ok()?;
    let physical = held.frame() * PAGE_SIZE as u64;
    // SAFETY: the share that was just added is nobody's yet.
    Some(unsafe { Frames::from_raw(physical, 1, FrameKind::Untyped) })
}

/// The slot of a frame that [`Untyped::claim`] gave.
#[inline]
fn of(frame: u64) -> &'static super::meta::Slot {
    slot(frame as usize).expect("frames in use have slots")
}

/// The address of byte `at` of a frame, which has `bytes` more.
fn address(frame: u64, at: usize, bytes: usize) -> usize {
    let fits = at <= PAGE_SIZE && bytes <= PAGE_SIZE - at;
    assert!(fits, "{bytes} bytes from {at} are not in a page");
    phys_to_virt(frame * PAGE_SIZE as u64) + at
}

impl Counts for Untyped {
    fn claim(&self) -> Option<u64> {
        let frames = Frames::alloc_zeroed(1, FrameKind::Untyped)?;
        Some(frames.into_raw() / PAGE_SIZE as u64)
    }

    #[inline]
    fn share(&self, frame: u64) -> bool {
        of(frame).share(FrameKind::Untyped).is_ok()
    }

    #[inline]
    fn release(&self, frame: u64) {
        if of(frame).release(FrameKind::Untyped) {
            give_back_one(frame as usize);
        }
    }

    fn freeze(&self, frame: u64) -> bool {
        of(frame).freeze()
    }

    fn thaw(&self, frame: u64) {
        of(frame).thaw();
    }

    #[inline]
    fn lend(&self, frame: u64) -> bool {
        of(frame).lend().is_ok()
    }

    #[inline]
    fn take_back(&self, frame: u64) {
        of(frame).take_back();
    }

    #[inline]
    fn end_loan(&self, frame: u64) {
        if of(frame).end_loan() {
            give_back_one(frame as usize);
        }
    }

    fn is_lent(&self, frame: u64) -> bool {
        of(frame).devices() > 0
    }

    fn give_up(&self, frame: u64) {
        of(frame).break_up();
        give_back_one(frame as usize);
    }

    fn wake(&self) {}

    fn pause(&self) {
        core::hint::spin_loop();
    }
}

impl Bytes for Untyped {
    type Program = VmSpace;

    fn copy_out(&self, frame: u64, at: usize, bytes: &mut [u8]) {
        let from = address(frame, at, bytes.len());
        count(Between::PageAndDomain, bytes.len());
        // SAFETY: only what is in this crate and `pages` can call this, with a count on a frame
        // that `claim` gave: it is untyped, and in the direct map.
        unsafe { untyped::copy_out(from, bytes) };
    }

    fn copy_in(&self, frame: u64, at: usize, bytes: &[u8]) {
        let to = address(frame, at, bytes.len());
        count(Between::PageAndDomain, bytes.len());
        // SAFETY: as above; the direct map is writable.
        unsafe { untyped::copy_in(to, bytes) };
    }

    fn copy_to(&self, frame: u64, at: usize, run: Run<'_, VmSpace>) -> usize {
        let from = address(frame, at, run.count);
        // SAFETY: as above.
        let done = unsafe {
            run.program
                .write_untyped(run.address as usize, from, run.count)
        };
        count(Between::PageAndProgram, done);
        done
    }

    fn copy_from(&self, frame: u64, at: usize, run: Run<'_, VmSpace>) -> usize {
        let to = address(frame, at, run.count);
        // SAFETY: as above.
        let done = unsafe {
            run.program
                .read_untyped(run.address as usize, to, run.count)
        };
        count(Between::PageAndProgram, done);
        done
    }
}
