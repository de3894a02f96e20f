//! Interrupt lines: a vector of one's own and a counter of its interrupts that threads wait on.
//!
//! The handler only counts, masks what is level-triggered, acknowledges, and wakes; all else is
//! done by the thread that waits.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::{Polarity, Trigger};
use crate::arch::controller::{self, LINES};
use crate::arch::trap::TrapFrame;
use crate::irq;
use crate::smp;
use crate::sync::SpinLock;
use crate::task::{self, WaitResult};

/// In `Slot::gsi`: not connected to an input.
const NO_GSI: u32 = u32::MAX;
/// Why a line could not be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IrqError {
    /// All vectors are in use.
    NoVector,
    /// No controller has this input.
    NoSuchInput,
    /// The input already belongs to a line.
    InputInUse,
    /// There is no processor of this number.
    NoSuchProcessor,
}

struct Slot {
    used: AtomicBool,
    count: AtomicU32,
    gsi: AtomicU32,
    /// Masked by the handler until acknowledged.
    level: AtomicBool,
}

static SLOTS: [Slot; LINES] = [const {
    Slot {
        used: AtomicBool::new(false),
        count: AtomicU32::new(0),
        gsi: AtomicU32::new(NO_GSI),
        level: AtomicBool::new(false),
    }
}; LINES];

/// Guards who has which input: taken to look for an input among all slots and take it, to mask it
/// in the handler, and to give it back.
static INPUTS: SpinLock<()> = SpinLock::new(());

/// Where the search for a free vector goes on, so that one is reused as late as possible.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A device interrupt, of the line with this index.
pub(crate) fn handle(line: usize, frame: &mut TrapFrame) {
    let slot = &SLOTS[line];
    if !slot.used.load(Ordering::Acquire) {
        irq::count_unexpected();
        controller::end();
        return;
    }
    if slot.level.load(Ordering::Relaxed) {
        #[cfg(feature = "selftest")]
        before_masking();
        slot.mask();
    }
    slot.count.fetch_add(1, Ordering::SeqCst);
    controller::end();
    task::wake(&slot.count, usize::MAX);
    task::preempt_from(frame);
}

impl Slot {
    /// Masks its input, if it has one. The line may have been given up since it was seen in use,
    /// and the input be another's, who would never hear of it: so it is looked at under the lock.
    fn mask(&self) {
        let _inputs = INPUTS.lock();
        let gsi = self.gsi.load(Ordering::Relaxed);
        if gsi != NO_GSI && self.level.load(Ordering::Relaxed) {
            controller::set_masked(gsi, true);
        }
    }
}

/// What a test has happen between a handler's look at its slot and what it does then.
#[cfg(feature = "selftest")]
pub(crate) static BEFORE_MASKING: SpinLock<Option<fn()>> = SpinLock::new(None);

#[cfg(feature = "selftest")]
fn before_masking() {
    let happens = BEFORE_MASKING.lock().take();
    if let Some(happens) = happens {
        happens();
    }
}

/// An interrupt vector that belongs to its holder; dropping it gives the vector back.
#[derive(Debug)]
pub struct IrqLine {
    index: usize,
    /// The processor that handles it.
    processor: usize,
}

impl IrqLine {
    /// As [`alloc`](Self::alloc), for interrupts that this processor handles.
    pub fn alloc_on(processor: usize) -> Result<Self, IrqError> {
        if processor >= smp::online() {
            return Err(IrqError::NoSuchProcessor);
        }
        let mut line = Self::alloc()?;
        line.processor = processor;
        Ok(line)
    }

    /// Takes a free vector, for message-signalled interrupts.
    pub fn alloc() -> Result<Self, IrqError> {
        let start = NEXT.fetch_add(1, Ordering::Relaxed);
        let index = (0..LINES)
            .map(|step| (start + step) % LINES)
            .find(|index| !SLOTS[*index].used.swap(true, Ordering::AcqRel))
            .ok_or(IrqError::NoVector)?;
        NEXT.store(index + 1, Ordering::Relaxed);
        Ok(Self {
            index,
            processor: index % smp::online(),
        })
    }

    /// Takes a free vector and connects it to a global system interrupt of a controller.
    pub fn for_gsi(gsi: u32, trigger: Trigger, polarity: Polarity) -> Result<Self, IrqError> {
        if !controller::has_input(gsi) {
            return Err(IrqError::NoSuchInput);
        }
        let line = Self::alloc()?;
        let slot = line.slot();
        {
            let _inputs = INPUTS.lock();
            let taken = SLOTS
                .iter()
                .any(|slot| slot.gsi.load(Ordering::Relaxed) == gsi);
            if taken {
                return Err(IrqError::InputInUse);
            }
            slot.gsi.store(gsi, Ordering::Relaxed);
            slot.level
                .store(trigger == Trigger::Level, Ordering::Relaxed);
            controller::connect(gsi, line.index, line.processor, trigger, polarity);
        }
        Ok(line)
    }

    /// Like [`for_gsi`](Self::for_gsi), for one of the 16 ISA interrupts: honours the overrides in
    /// the ACPI tables, and is edge-triggered and active high without one.
    pub fn for_isa(irq: u8) -> Result<Self, IrqError> {
        let (gsi, trigger, polarity) = controller::legacy_input(irq);
        Self::for_gsi(gsi, trigger, polarity)
    }

    fn slot(&self) -> &'static Slot {
        &SLOTS[self.index]
    }

    /// Its vector.
    pub fn vector(&self) -> u8 {
        controller::vector(self.index)
    }

    /// The address and the value that a device must write to raise it by MSI or MSI-X.
    pub fn msi_message(&self) -> (u64, u32) {
        controller::message(self.index, self.processor)
    }

    /// How many interrupts came so far, modulo 2^32.
    pub fn count(&self) -> u32 {
        self.slot().count.load(Ordering::SeqCst)
    }

    /// The counter itself, for waiting on it by other means.
    pub fn counter(&self) -> &'static AtomicU32 {
        &self.slot().count
    }

    /// Sleeps until the count differs from `seen`, the deadline passes (nanoseconds since boot) or
    /// the thread is interrupted. `Mismatch` means that it differed already.
    pub fn wait(&self, seen: u32, deadline_ns: Option<u64>) -> WaitResult {
        task::wait_on(&self.slot().count, seen, deadline_ns)
    }

    /// Lets a level-triggered line interrupt again, after its cause was removed at the device.
    pub fn ack(&self) {
        let slot = self.slot();
        if slot.level.load(Ordering::Relaxed) {
            controller::set_masked(slot.gsi.load(Ordering::Relaxed), false);
        }
    }
}

impl Drop for IrqLine {
    fn drop(&mut self) {
        let slot = self.slot();
        {
            // Masked before it is free: else it would be masked under its next owner.
            let _inputs = INPUTS.lock();
            let gsi = slot.gsi.load(Ordering::Relaxed);
            if gsi != NO_GSI {
                controller::set_masked(gsi, true);
                slot.gsi.store(NO_GSI, Ordering::Relaxed);
            }
            slot.level.store(false, Ordering::Relaxed);
        }
        slot.used.store(false, Ordering::Release);
        // Whoever still waits looks again, and finds the line gone.
        slot.count.fetch_add(1, Ordering::SeqCst);
        task::wake(&slot.count, usize::MAX);
    }
}
