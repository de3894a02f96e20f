//! What the kernel keeps of a program's thread: vector registers and bases of segments.
//!
//! They change when a processor goes from one program to another, not at each entry. Two words
//! must agree for the registers of a processor to hold a thread's state: the processor's `user_id`,
//! which state it loaded last, and the thread's `processor`, where it was loaded last. A number is
//! never used again, so what is gone is nobody's.
//!
//! ```text
//!   attach:  save who is live here -> load, unless both words agree -> live = this thread
//!   run:     ring 3 and back, as often as one likes, with nothing saved or loaded
//!   leave:   (the kernel's thread goes off the processor) save who is live here -> live = none
//! ```
//!
//! While it is *live* the registers are newer than what is in memory. A live state belongs to the
//! thread of the kernel that ran it, which has not left the processor since; whoever wants to run
//! it elsewhere has that thread give way first. The processor's word for the live one is a counted
//! reference, so dropping a thread takes nothing away under a processor.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::VmSpace;
use crate::arch::cpu::{PerCpu, cpu_index, this_cpu};
use crate::arch::user::{self, Registers, VectorState};
use crate::sync::IrqOff;
use crate::{smp, task};
use abi::user::UserEvent;

/// The number of the next thread.
static NEXT: AtomicU64 = AtomicU64::new(1);

struct State {
    id: u64,
    vector: VectorState,
    /// What was loaded for FS and GS. Only who runs the thread uses it.
    bases: [AtomicU64; 2],
    /// 1 + the processor that it was loaded on last; only who runs the thread uses it.
    processor: AtomicUsize,
    /// 1 + the processor on which it is live, or 0.
    live_on: AtomicUsize,
    /// Somebody runs it.
    is_taken: AtomicBool,
}

/// A program's thread, without those registers that whoever runs it keeps for himself.
pub struct UserThread(Arc<State>);

impl Default for UserThread {
    fn default() -> Self {
        Self::new()
    }
}

impl UserThread {
    /// One whose vector registers are as a new program finds them. Takes [`bytes`](Self::bytes) of
    /// the kernel's heap.
    pub fn new() -> Self {
        Self(Arc::new(State {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            vector: VectorState::new(),
            bases: [const { AtomicU64::new(0) }; 2],
            processor: AtomicUsize::new(0),
            live_on: AtomicUsize::new(0),
            is_taken: AtomicBool::new(false),
        }))
    }

    /// Bytes of memory that a thread takes.
    pub fn bytes() -> usize {
        size_of::<State>() + VectorState::bytes()
    }

    /// Runs the program with these registers until it traps, and then gives way if another thread's
    /// turn has come. [`UserEvent::Refused`]: somebody runs it now.
    ///
    /// `may` is asked with interrupts off, right before: if it says no, the answer is
    /// [`UserEvent::Interrupted`]. Whoever makes it say no and then calls
    /// [`interrupt`](Self::interrupt) knows that the program stops.
    pub fn run(
        &self,
        space: &VmSpace,
        registers: &mut Registers,
        may: impl FnOnce() -> bool,
    ) -> UserEvent {
        if self.0.is_taken.swap(true, Ordering::Acquire) {
            return UserEvent::Refused;
        }
        let event = match user::prepare(registers) {
            Ok(()) => self.run_prepared(space, registers, may),
            Err(event) => event,
        };
        task::preempt_point();
        self.0.is_taken.store(false, Ordering::Release);
        event
    }

    #[inline]
    fn run_prepared(
        &self,
        space: &VmSpace,
        registers: &mut Registers,
        may: impl FnOnce() -> bool,
    ) -> UserEvent {
        let mut irq = IrqOff::new();
        if this_cpu().user_live.load(Ordering::Relaxed) != self.address() {
            irq = self.take_over(irq, registers);
        }
        self.load_bases(registers);
        if !may() {
            return UserEvent::Interrupted;
        }
        // SAFETY: interrupts are off until `irq` is dropped. The address space shares the kernel's
        // half and is lent for as long as the program runs; `prepare` had nothing against the
        // registers, and what is loaded besides is this thread's.
        let event = unsafe {
            space.load();
            user::enter(registers)
        };
        drop(irq);
        event
    }

    /// Makes this the live one here, when it is not live on another processor any more. Interrupts
    /// are off but for as long as it is waited for.
    #[cold]
    fn take_over(&self, mut irq: IrqOff, registers: &Registers) -> IrqOff {
        while let Some(processor) = self.live_elsewhere() {
            drop(irq);
            smp::request_reschedule(processor);
            task::yield_now();
            irq = IrqOff::new();
        }
        self.attach(this_cpu(), registers);
        irq
    }

    /// The other processor on which it is live.
    fn live_elsewhere(&self) -> Option<usize> {
        let processor = self.0.live_on.load(Ordering::Acquire).checked_sub(1)?;
        (processor != cpu_index()).then_some(processor)
    }

    /// Makes this the live one here. Interrupts are off.
    fn attach(&self, block: &PerCpu, registers: &Registers) {
        leave(block);
        let (state, here) = (&*self.0, cpu_index() + 1);
        let id = block.user_id.swap(state.id, Ordering::Relaxed);
        let last = state.processor.swap(here, Ordering::Relaxed);
        if (id, last) != (state.id, here) {
            let bases = user::bases(registers);
            // SAFETY: interrupts are off, `is_taken` is ours, and it is live nowhere, so nobody
            // saves; `prepare` had nothing against the bases.
            unsafe {
                state.vector.load();
                user::load_segments(bases);
            }
            state.keep_bases(bases);
        }
        let live = Arc::into_raw(self.0.clone()) as usize;
        block.user_live.store(live, Ordering::Relaxed);
        // Whoever then sees to it that `may` says no finds it here, or has been seen by `may`.
        state.live_on.store(here, Ordering::SeqCst);
    }

    /// Loads the bases of segments, if others are wanted than are loaded. Interrupts are off and
    /// this is live here.
    #[inline]
    fn load_bases(&self, registers: &Registers) {
        let bases = user::bases(registers);
        let loaded = self.0.bases.each_ref();
        if bases != loaded.map(|base| base.load(Ordering::Relaxed)) {
            // SAFETY: interrupts are off, and `prepare` had nothing against them.
            unsafe { user::load_bases(bases) };
            self.0.keep_bases(bases);
        }
    }

    /// Has the program come back if it runs on another processor, also if it is just about to.
    pub fn interrupt(&self) {
        let processor = self.0.live_on.load(Ordering::SeqCst);
        let _irq = IrqOff::new();
        if processor != 0 && processor - 1 != cpu_index() {
            smp::request_reschedule(processor - 1);
        }
    }

    /// Copies out what the program has in its vector registers, in the form in which the processor
    /// keeps it; how many bytes that takes. Where there is room for fewer, nothing is copied. 0:
    /// somebody runs it now.
    pub fn vector(&self, bytes: &mut [u8]) -> usize {
        self.alone(|state| {
            // SAFETY: nobody runs it, and it is live nowhere: nobody saves or loads it.
            let own = unsafe { state.vector.as_bytes() };
            if let Some(place) = bytes.get_mut(..own.len()) {
                place.copy_from_slice(own);
            }
            own.len()
        })
        .unwrap_or(0)
    }

    /// Sets what the program finds in its vector registers, in the same form. Components that the
    /// processor lacks are left out. `false`: bits that the processor would refuse are set, there
    /// are too few bytes, or somebody runs it now; then all stays as it is.
    pub fn set_vector(&self, bytes: &[u8]) -> bool {
        self.alone(|state| {
            // The registers of the processor that it was loaded on last hold another state now.
            state.processor.store(0, Ordering::Relaxed);
            // SAFETY: as above.
            unsafe { state.vector.replace(bytes) }
        })
        .unwrap_or(false)
    }

    /// Does something with the state while nobody runs it and it is live nowhere.
    fn alone<T>(&self, act: impl FnOnce(&State) -> T) -> Option<T> {
        if self.0.is_taken.swap(true, Ordering::Acquire) {
            return None;
        }
        let mut irq = IrqOff::new();
        while let Some(processor) = self.live_elsewhere() {
            drop(irq);
            smp::request_reschedule(processor);
            task::yield_now();
            irq = IrqOff::new();
        }
        if this_cpu().user_live.load(Ordering::Relaxed) == self.address() {
            leave(this_cpu());
        }
        drop(irq);
        let result = act(&self.0);
        self.0.is_taken.store(false, Ordering::Release);
        Some(result)
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

impl Drop for UserThread {
    /// Nobody wants what is live here any more.
    fn drop(&mut self) {
        let _irq = IrqOff::new();
        let block = this_cpu();
        if block.user_live.load(Ordering::Relaxed) == self.address() {
            drop(take_live(block));
        }
    }
}

impl State {
    fn keep_bases(&self, bases: user::Bases) {
        for (place, base) in self.bases.iter().zip(bases) {
            place.store(base, Ordering::Relaxed);
        }
    }
}

/// Takes out of this processor's word who is live here. Interrupts are off.
fn take_live(block: &PerCpu) -> Option<Arc<State>> {
    let live = block.user_live.swap(0, Ordering::Relaxed) as *const State;
    // SAFETY: the word is null, or owns a count that `attach` gave it; only this processor writes
    // it, with interrupts off.
    (!live.is_null()).then(|| unsafe { Arc::from_raw(live) })
}

/// Saves the state that is live on this processor, if there is one: its thread of the kernel leaves
/// the processor, or runs another program. Interrupts are off.
#[inline]
pub(crate) fn leave(block: &PerCpu) {
    if block.user_live.load(Ordering::Relaxed) != 0 {
        save(block);
    }
}

#[cold]
fn save(block: &PerCpu) {
    if let Some(state) = take_live(block) {
        // SAFETY: interrupts are off. It is live here, and until the next line nobody else loads it
        // or saves it.
        unsafe { state.vector.save() };
        state.live_on.store(0, Ordering::Release);
    }
}
