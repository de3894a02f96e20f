//! Stopping the world: all other processors park, and the caller may look at every thread and
//! change the registers of those that were interrupted.
//!
//! ```text
//!   stopper: take STOPPER -> send STOP to the others -> wait until each parked in this round
//!            -> visit -> publish the round as over, give STOPPER back
//!   others:  interrupt (or a wait of this module) -> publish the frame, then the round
//!            -> wait until the round is over -> withdraw the frame, go on
//! ```
//!
//! A processor parks with interrupts enabled before, or from a wait whose caller holds no spin
//! lock; so while the world stands still every spin lock is free (but for those the visitor takes).
//! An idle processor is not asked; it parks before it runs a thread.
//! Two that want to stop the world: the one that finds STOPPER taken parks for the other first.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::{others, poll_flush, request};
use crate::arch::trap::TrapFrame;
use crate::arch::{MAX_CPUS, cpu};
use crate::sync::{IrqOff, relax};
use crate::task::{self, State, Thread, ThreadId};

/// Index of the stopping processor plus one, or 0.
static STOPPER: AtomicUsize = AtomicUsize::new(0);
/// Number of the present or last round.
static ROUND: AtomicU64 = AtomicU64::new(0);
/// Number of the last round that is over.
static OVER: AtomicU64 = AtomicU64::new(0);

struct Parking {
    /// Round for which the processor is parked.
    round: AtomicU64,
    /// Registers of the thread it interrupted to park; null if it parked in a wait.
    frame: AtomicPtr<TrapFrame>,
}

static PARKINGS: [Parking; MAX_CPUS] = [const {
    Parking {
        round: AtomicU64::new(0),
        frame: AtomicPtr::new(ptr::null_mut()),
    }
}; MAX_CPUS];

/// The stopped world.
pub struct World {
    /// The stopping processor.
    here: usize,
    not_send: PhantomData<*const ()>,
}

/// A thread of the stopped world.
pub struct ThreadView<'a> {
    /// Its id.
    pub id: ThreadId,
    /// Its top call record.
    pub top_record: *mut u8,
    /// The lowest address of its stack.
    pub stack_low: usize,
    /// The registers with which it goes on, if it was interrupted; `None` if it waits, gave way by
    /// itself, or is the caller.
    pub frame: Option<&'a mut TrapFrame>,
    /// Whether it is the thread that stopped the world (or was interrupted by what did).
    pub is_caller: bool,
    /// Whether it waits.
    pub blocked: bool,
    /// If this is set, [`task::interrupt_marked`] ends its wait, or else its next ones end so.
    pub interrupted: &'a AtomicBool,
}

/// Stops all other processors, calls `visit`, and lets them go on.
///
/// May be called by a thread or in interrupt context, with no spin lock held. `visit` runs with
/// interrupts off and may take spin locks. While the caller waits for its turn, others may visit.
pub fn stop_world<R>(visit: impl FnOnce(&mut World) -> R) -> R {
    let _irq = IrqOff::new();
    let here = cpu::cpu_index();
    while STOPPER
        .compare_exchange(0, here + 1, Ordering::SeqCst, Ordering::SeqCst)
        .is_err()
    {
        request::poll();
        relax();
    }
    let round = ROUND.fetch_add(1, Ordering::SeqCst) + 1;
    // Idle processors see the round before they run a thread, since it is published by now.
    let busy = others()
        .filter(|index| !task::is_idle(*index))
        .fold(0_u32, |mask, index| mask | 1 << index);
    let busy = || others().filter(move |index| busy & 1 << index != 0);
    busy().for_each(|index| request::send(index, request::STOP));
    for index in busy() {
        while PARKINGS[index].round.load(Ordering::Acquire) != round {
            poll_flush();
            relax();
        }
    }
    let result = visit(&mut World {
        here,
        not_send: PhantomData,
    });
    OVER.store(round, Ordering::SeqCst);
    STOPPER.store(0, Ordering::SeqCst);
    result
}

/// Waits while the world is stopped by another processor. `frame` holds the registers of the
/// interrupted thread, or is null. Interrupts are off.
pub(super) fn park(frame: *mut TrapFrame) {
    let round = ROUND.load(Ordering::SeqCst);
    if OVER.load(Ordering::SeqCst) >= round {
        return;
    }
    let parking = &PARKINGS[cpu::cpu_index()];
    parking.frame.store(frame, Ordering::Relaxed);
    parking.round.store(round, Ordering::Release);
    while OVER.load(Ordering::Acquire) < round {
        poll_flush();
        relax();
    }
    parking.frame.store(ptr::null_mut(), Ordering::Relaxed);
}

impl World {
    /// Calls `visit` for every living thread.
    ///
    /// # Safety
    /// `visit` changes registers only so that the thread may go on from them.
    pub unsafe fn threads(&mut self, mut visit: impl FnMut(ThreadView<'_>)) {
        let here = self.here;
        task::for_each(|thread| {
            // SAFETY: a `World` exists only while all other processors are parked, and `&mut self`
            // makes this the only visit.
            let view = unsafe { view(thread, here) };
            visit(view);
        });
    }
}

/// What there is to see of a thread.
///
/// # Safety
/// The world is stopped by processor `here`, the caller, and no other view of the thread exists.
unsafe fn view(thread: &Arc<Thread>, here: usize) -> ThreadView<'_> {
    let state = thread.state();
    let on_cpu = (state == State::Running).then(|| thread.cpu());
    let (top_record, frame) = match on_cpu {
        Some(index) => (
            cpu::block(index).words.top.load(Ordering::Relaxed),
            PARKINGS[index].frame.load(Ordering::Relaxed),
        ),
        None => thread.saved_context(),
    };
    let is_caller = on_cpu == Some(here);
    ThreadView {
        id: thread.id(),
        top_record: top_record as *mut u8,
        stack_low: thread.stack_low,
        // SAFETY: the frame of a processor parked by interrupt is on its interrupt stack, which it
        // does not touch until the world goes on; a saved frame is in the thread, which nobody
        // runs meanwhile. The stopping processor has no parking frame.
        frame: if is_caller {
            None
        } else {
            unsafe { frame.as_mut() }
        },
        is_caller,
        blocked: state == State::Blocked,
        interrupted: &thread.interrupted,
    }
}
