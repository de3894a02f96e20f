//! The metadata word of a frame: its state machine, independent of where the word lies.
//!
//! ```text
//!              claim                  publish(kind)
//!   UNUSED ------------> BUSY --------------------------> IN USE (kind, count = 1)
//!      ^                  |  ^                             |  ^  |
//!      +------------------+  +---- release, last owner ----+  +--+ share / release
//!           give up
//!   RESERVED: never leaves that state (not memory, or the kernel's own)
//! ```
//!
//! An untyped frame with one owner can be frozen for some instructions: then nobody becomes an
//! owner or ceases to be one until it is thawed, or given up and unused. Whoever freezes keeps his
//! processor until then, as others wait for it.
//!
//! `claim` is the one door into use and is a compare-and-swap, so a frame allocator that hands out
//! a frame twice is caught instead of believed.

use core::sync::atomic::{AtomicU64, Ordering};

/// What a frame in use is for. Only [`FrameKind::Untyped`] may be mapped to user space or given to
/// a device; the kernel never makes a reference into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// Kernel objects, reached through the direct map.
    Kernel = 1,
    /// A page table.
    PageTable = 2,
    /// Mapped in kernel space: stacks, domain images.
    Kspace = 3,
    /// Plain bytes that a device or a user program may change at any time.
    Untyped = 4,
}

impl FrameKind {
    /// The kind behind its number.
    fn from_number(number: u64) -> Option<Self> {
        [Self::Kernel, Self::PageTable, Self::Kspace, Self::Untyped]
            .into_iter()
            .find(|&kind| kind as u64 == number)
    }
}

/// Why a frame could not be claimed or shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaError {
    /// The frame is not the allocator's to give.
    Reserved,
    /// The frame is in use or being set up.
    NotUnused,
    /// The frame is not in use as the kind expected.
    WrongKind,
    /// Too many owners.
    Overflow,
}

const UNUSED: u64 = 0;
const BUSY: u64 = 1 << 63;
const RESERVED: u64 = 1 << 62;
const KIND_SHIFT: u32 = 48;
const COUNT_MASK: u64 = u32::MAX as u64;
/// One device more that uses an untyped frame, each of which is an owner, too.
const DEVICE: u64 = 1 << 32;
const DEVICES_MASK: u64 = 0xffff << 32;
/// An untyped frame that is frozen; its kind and count cannot be read meanwhile.
const FROZEN: u64 = BUSY | 1;

/// Whether a slot of this value is that of a frame in use as `kind`, which is not frozen.
#[inline]
fn is_of(value: u64, kind: FrameKind) -> bool {
    value >> KIND_SHIFT == kind as u64
}

/// A slot of a frame in use as `kind` that has one owner.
#[inline]
const fn alone(kind: FrameKind) -> u64 {
    (kind as u64) << KIND_SHIFT | 1
}

/// A slot of an untyped frame that has two owners, none of them a device.
const SHARED: u64 = alone(FrameKind::Untyped) + 1;

/// The metadata of one frame.
#[derive(Debug)]
#[repr(transparent)]
pub struct Slot(AtomicU64);

impl Slot {
    /// A frame that may be claimed.
    pub const fn unused() -> Self {
        Self(AtomicU64::new(UNUSED))
    }

    /// A frame that never may be.
    pub const fn reserved() -> Self {
        Self(AtomicU64::new(RESERVED))
    }

    /// Takes an unused frame for the caller alone (state BUSY).
    pub fn claim(&self) -> Result<(), MetaError> {
        match self
            .0
            .compare_exchange(UNUSED, BUSY, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => Ok(()),
            Err(RESERVED) => Err(MetaError::Reserved),
            Err(_) => Err(MetaError::NotUnused),
        }
    }

    /// A claimed frame comes into use with one owner.
    ///
    /// # Panics
    /// If the frame is not claimed: that is a bug in the framework.
    pub fn publish(&self, kind: FrameKind) {
        let value = (kind as u64) << KIND_SHIFT | 1;
        let before = self.0.swap(value, Ordering::Release);
        assert!(before == BUSY, "published a frame in state {before:#x}");
    }

    /// A claimed frame becomes unused.
    ///
    /// # Panics
    /// If the frame is not claimed.
    pub fn give_up(&self) {
        let before = self.0.swap(UNUSED, Ordering::Release);
        assert!(before == BUSY, "gave up a frame in state {before:#x}");
    }

    /// Replaces the one value by the other, if it is there; else what is.
    #[inline]
    fn replace(&self, from: u64, to: u64, order: Ordering) -> Result<u64, u64> {
        self.0.compare_exchange(from, to, order, Ordering::Relaxed)
    }

    /// Adds an owner to a frame in use as `kind`. Acquires: who gets a share of a frame in its next
    /// life sees what was done before it was given up in the last.
    #[inline]
    pub fn share(&self, kind: FrameKind) -> Result<(), MetaError> {
        // Nearly always there is one owner, and nobody else at it.
        match self.replace(alone(kind), alone(kind) + 1, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(value) => self.share_from(value, kind),
        }
    }

    #[inline(never)]
    fn share_from(&self, mut value: u64, kind: FrameKind) -> Result<(), MetaError> {
        loop {
            if !is_of(value, kind) {
                return Err(MetaError::WrongKind);
            }
            if value & COUNT_MASK == COUNT_MASK {
                return Err(MetaError::Overflow);
            }
            match self.0.compare_exchange_weak(
                value,
                value + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(now) => value = now,
            }
        }
    }

    /// Removes an owner. Returns whether it was the last: the frame is BUSY then, and the caller
    /// must [`give_up`](Self::give_up) once nothing refers to it any more. Waits while it is
    /// frozen.
    ///
    /// # Panics
    /// If the frame is not in use as `kind`.
    pub fn release(&self, kind: FrameKind) -> bool {
        // Nearly always there is one owner, and nobody else at it.
        let Err(mut value) = self.replace(alone(kind), BUSY, Ordering::AcqRel) else {
            return true;
        };
        loop {
            if value == FROZEN {
                core::hint::spin_loop();
                value = self.0.load(Ordering::Relaxed);
                continue;
            }
            assert!(
                self.decode(value) == Some(kind),
                "released a frame in state {value:#x}"
            );
            let last = value & (COUNT_MASK | DEVICES_MASK) == 1;
            let next = if last { BUSY } else { value - 1 };
            match self
                .0
                .compare_exchange_weak(value, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return last,
                Err(now) => value = now,
            }
        }
    }

    /// Counts one more of the owners of an untyped frame, of whom the caller is one, as a device.
    ///
    /// # Errors
    /// [`MetaError::Overflow`]; [`MetaError::WrongKind`].
    #[inline]
    pub fn lend(&self) -> Result<(), MetaError> {
        // Nearly always there are the page and who lends it.
        match self.replace(SHARED, SHARED + DEVICE, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(value) => self.lend_from(value),
        }
    }

    #[inline(never)]
    fn lend_from(&self, mut value: u64) -> Result<(), MetaError> {
        loop {
            if !is_of(value, FrameKind::Untyped) {
                return Err(MetaError::WrongKind);
            }
            if value & DEVICES_MASK == DEVICES_MASK {
                return Err(MetaError::Overflow);
            }
            match self.0.compare_exchange_weak(
                value,
                value + DEVICE,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(now) => value = now,
            }
        }
    }

    /// Counts one device less. Its owner's count is to be released afterwards.
    ///
    /// # Panics
    /// If there is none.
    pub fn take_back(&self) {
        let before = self.0.fetch_sub(DEVICE, Ordering::Release);
        let was_lent = self.decode(before).is_some() && before & DEVICES_MASK != 0;
        assert!(was_lent, "took back a frame in state {before:#x}");
    }

    /// [`take_back`](Self::take_back) and [`release`](Self::release) of an untyped frame at once.
    /// It is not frozen, as only a frame is that no device uses.
    ///
    /// # Panics
    /// If no device uses it.
    #[inline]
    pub fn end_loan(&self) -> bool {
        // Nearly always the page has it, too, and no other device.
        match self.replace(SHARED + DEVICE, SHARED - 1, Ordering::AcqRel) {
            Ok(_) => false,
            Err(value) => self.end_loan_from(value),
        }
    }

    #[inline(never)]
    fn end_loan_from(&self, mut value: u64) -> bool {
        loop {
            let is_lent = value & DEVICES_MASK != 0 && value & COUNT_MASK != 0;
            assert!(
                is_lent && is_of(value, FrameKind::Untyped),
                "ended a loan of a frame in state {value:#x}"
            );
            let left = value - DEVICE - 1;
            let last = left & (COUNT_MASK | DEVICES_MASK) == 0;
            let next = if last { BUSY } else { left };
            match self
                .0
                .compare_exchange_weak(value, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return last,
                Err(now) => value = now,
            }
        }
    }

    /// Devices that use the frame.
    pub fn devices(&self) -> u16 {
        let value = self.0.load(Ordering::Acquire);
        self.decode(value)
            .map_or(0, |_| ((value & DEVICES_MASK) >> 32) as u16)
    }

    /// Freezes an untyped frame with one owner; whether it did.
    pub fn freeze(&self) -> bool {
        let alone = (FrameKind::Untyped as u64) << KIND_SHIFT | 1;
        self.0
            .compare_exchange(alone, FROZEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Gives a frozen frame its owner back.
    ///
    /// # Panics
    /// If the frame is not frozen.
    pub fn thaw(&self) {
        let alone = (FrameKind::Untyped as u64) << KIND_SHIFT | 1;
        let before = self.0.swap(alone, Ordering::Release);
        assert!(before == FROZEN, "thawed a frame in state {before:#x}");
    }

    /// Takes the owner of a frozen frame away: it is as after the last [`release`](Self::release).
    ///
    /// # Panics
    /// If the frame is not frozen.
    pub fn break_up(&self) {
        let before = self.0.swap(BUSY, Ordering::Release);
        assert!(before == FROZEN, "broke up a frame in state {before:#x}");
    }

    /// What the frame is in use for, if it is.
    pub fn kind(&self) -> Option<FrameKind> {
        self.decode(self.0.load(Ordering::Acquire))
    }

    /// Number of owners; 0 if not in use.
    pub fn owners(&self) -> u32 {
        (self.0.load(Ordering::Acquire) & COUNT_MASK) as u32
    }

    /// The kind in a word of a frame in use.
    fn decode(&self, value: u64) -> Option<FrameKind> {
        if value & (BUSY | RESERVED) != 0 {
            return None;
        }
        FrameKind::from_number(value >> KIND_SHIFT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_from_unused_to_unused() {
        let slot = Slot::unused();
        slot.claim().unwrap();
        slot.publish(FrameKind::Untyped);
        slot.share(FrameKind::Untyped).unwrap();
        assert_eq!(slot.owners(), 2);
        assert!(!slot.release(FrameKind::Untyped));
        assert!(slot.release(FrameKind::Untyped));
        slot.give_up();
        slot.claim().unwrap();
    }

    #[test]
    fn a_frame_cannot_be_claimed_twice() {
        let slot = Slot::unused();
        slot.claim().unwrap();
        assert_eq!(slot.claim(), Err(MetaError::NotUnused));
        slot.publish(FrameKind::Kernel);
        assert_eq!(slot.claim(), Err(MetaError::NotUnused));
    }

    #[test]
    fn a_reserved_frame_cannot_be_claimed() {
        assert_eq!(Slot::reserved().claim(), Err(MetaError::Reserved));
    }

    #[test]
    fn typed_memory_cannot_be_shared_as_untyped() {
        let slot = Slot::unused();
        slot.claim().unwrap();
        slot.publish(FrameKind::PageTable);
        assert_eq!(slot.share(FrameKind::Untyped), Err(MetaError::WrongKind));
    }

    #[test]
    #[should_panic(expected = "released a frame")]
    fn releasing_an_unused_frame_panics() {
        Slot::unused().release(FrameKind::Kernel);
    }

    #[test]
    fn a_frozen_frame_is_shared_with_nobody() {
        let slot = Slot::unused();
        slot.claim().unwrap();
        assert!(!slot.freeze(), "it is not in use");
        slot.publish(FrameKind::Untyped);
        slot.share(FrameKind::Untyped).unwrap();
        assert!(!slot.freeze(), "it has two owners");
        slot.release(FrameKind::Untyped);
        assert!(slot.freeze());
        assert!(!slot.freeze());
        assert_eq!(slot.share(FrameKind::Untyped), Err(MetaError::WrongKind));
        slot.thaw();
        assert_eq!(slot.owners(), 1);
        assert!(slot.freeze());
        slot.break_up();
        slot.give_up();
        slot.claim().unwrap();
    }

    #[test]
    fn a_frame_with_a_device_is_neither_frozen_nor_free() {
        let slot = Slot::unused();
        assert_eq!(slot.lend(), Err(MetaError::WrongKind));
        slot.claim().unwrap();
        slot.publish(FrameKind::Untyped);
        slot.share(FrameKind::Untyped).unwrap();
        slot.lend().unwrap();
        assert_eq!((slot.owners(), slot.devices()), (2, 1));
        assert!(!slot.freeze());
        assert!(!slot.release(FrameKind::Untyped), "the page's count");
        assert_eq!((slot.owners(), slot.devices()), (1, 1));
        assert!(!slot.freeze(), "only a device has it");
        slot.take_back();
        assert_eq!(slot.devices(), 0);
        assert!(slot.release(FrameKind::Untyped));
        slot.give_up();
        slot.claim().unwrap();
    }

    #[test]
    fn a_loan_ends_with_its_count() {
        let slot = Slot::unused();
        slot.claim().unwrap();
        slot.publish(FrameKind::Untyped);
        for owners in [2, 3] {
            slot.share(FrameKind::Untyped).unwrap();
            slot.lend().unwrap();
            assert_eq!(slot.owners(), owners);
        }
        assert!(!slot.end_loan(), "the page and another device have it");
        assert_eq!((slot.owners(), slot.devices()), (2, 1));
        assert!(!slot.freeze());
        assert!(!slot.release(FrameKind::Untyped), "the page's count");
        assert!(slot.end_loan(), "that was the last");
        slot.give_up();
        slot.claim().unwrap();
    }

    #[test]
    #[should_panic(expected = "ended a loan of a frame")]
    fn a_loan_that_is_none_does_not_end() {
        let slot = Slot::unused();
        slot.claim().unwrap();
        slot.publish(FrameKind::Untyped);
        slot.end_loan();
    }

    #[test]
    fn devices_are_counted_to_their_limit() {
        let slot = Slot::unused();
        slot.claim().unwrap();
        slot.publish(FrameKind::Untyped);
        (0..u16::MAX).for_each(|_| slot.lend().unwrap());
        assert_eq!(slot.lend(), Err(MetaError::Overflow));
        assert_eq!((slot.owners(), slot.devices()), (1, u16::MAX));
        assert_eq!(slot.kind(), Some(FrameKind::Untyped));
        (0..u16::MAX).for_each(|_| slot.take_back());
        assert!(slot.freeze());
    }

    #[test]
    #[should_panic(expected = "took back a frame")]
    fn a_frame_that_no_device_has_is_not_taken_back() {
        let slot = Slot::unused();
        slot.claim().unwrap();
        slot.publish(FrameKind::Untyped);
        slot.take_back();
    }

    #[test]
    fn typed_memory_is_lent_to_no_device() {
        let slot = Slot::unused();
        slot.claim().unwrap();
        slot.publish(FrameKind::Kernel);
        assert_eq!(slot.lend(), Err(MetaError::WrongKind));
    }

    #[test]
    fn only_untyped_frames_are_frozen() {
        let slot = Slot::unused();
        slot.claim().unwrap();
        slot.publish(FrameKind::Kernel);
        assert!(!slot.freeze());
    }

    #[test]
    fn a_release_waits_for_the_thaw() {
        let slot = Slot::unused();
        slot.claim().unwrap();
        slot.publish(FrameKind::Untyped);
        assert!(slot.freeze());
        let was_last = std::thread::scope(|scope| {
            let release = scope.spawn(|| slot.release(FrameKind::Untyped));
            std::thread::sleep(std::time::Duration::from_millis(20));
            slot.thaw();
            release.join().unwrap()
        });
        assert!(was_last);
    }

    #[test]
    fn only_one_of_many_claims_wins() {
        let slot = Slot::unused();
        let wins: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| usize::from(slot.claim().is_ok())))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(wins, 1);
    }
}
