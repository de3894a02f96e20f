//! Single steps: stops a thread after an exact number of instructions, until others have done
//! something.
//!
//! For the attack that kills a domain at every instruction of a call. The thread sets its trap flag
//! itself; from then on every instruction ends in a signal. When the number is reached, the thread
//! stands still in the handler, just as if the signal that stops the world had hit it there, and
//! goes on at full speed afterwards.

use crate::threads::{current, park};
use hosted_core::{REACHED, REACHED_ALONE, REACHED_LOCKED, Registers};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The trap flag.
const TRAP: u64 = 1 << 8;
/// How long the thread waits for the others. Where it holds a lock of the C library, they may need
/// that.
const PATIENCE: Duration = Duration::from_millis(500);

/// Instructions to go; 0: nobody is being stepped.
static LEFT: AtomicU64 = AtomicU64::new(0);
/// The address of the word of [`arm`].
static WORD: AtomicUsize = AtomicUsize::new(0);

/// See [`hosted_core::Host::step`].
///
/// # Safety
/// `reached` is the address of a word that stays mapped.
pub unsafe extern "C" fn arm(count: u64, reached: usize) {
    WORD.store(reached, Ordering::SeqCst);
    LEFT.store(count, Ordering::SeqCst);
}

/// An instruction has ended in a trap; whether that was a step.
///
/// # Safety
/// `registers` is the address of those of a handler's context on the running thread.
pub unsafe fn stepped(registers: usize) -> bool {
    // SAFETY: by the caller's duty.
    let frame = unsafe { &mut *(registers as *mut Registers) };
    let left = LEFT.load(Ordering::SeqCst);
    if left == 0 {
        // The step after the last one, when the thread clears the flag.
        frame.flags &= !TRAP;
        return true;
    }
    LEFT.store(left - 1, Ordering::SeqCst);
    if left == 1 {
        frame.flags &= !TRAP;
        // SAFETY: `arm` was given a word that stays mapped.
        let reached = unsafe { &*(WORD.load(Ordering::SeqCst) as *const AtomicU32) };
        stand_still(registers, reached);
    }
    true
}

/// Says that the place is reached, and waits until the world is stopped: nobody does that but the
/// reaper, and it has nothing to do before the kill.
fn stand_still(registers: usize, reached: &AtomicU32) {
    let Some(thread) = current() else { return };
    // Whoever holds a lock of the core is not waited for by others; it goes on, they come
    // meanwhile.
    let is_locked = thread.words.locks.load(Ordering::Relaxed) != 0;
    let said = if is_locked { REACHED_LOCKED } else { REACHED };
    reached.store(said, Ordering::SeqCst);
    crate::threads::wake(reached.as_ptr() as usize, 1);
    let end = Instant::now() + PATIENCE;
    while !is_locked && Instant::now() < end {
        if thread.is_held() {
            park(thread, registers);
            return;
        }
        std::hint::spin_loop();
        std::thread::yield_now();
    }
    if !is_locked {
        reached.store(REACHED_ALONE, Ordering::SeqCst);
    }
}
