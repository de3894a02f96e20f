//! Stopping the world, for a visitor who looks at each thread.

use super::{
    ARRIVALS, BLOCKED, CURRENT, HOLD, PARKED, PATIENCE, Thread, address_of, futex_wait, futex_wake,
    registry,
};
use crate::signals;
use hosted_core::View;
use std::sync::atomic::Ordering;

/// Called by the handler of the stop signal: stands still as long as somebody wants it.
pub fn park(thread: &Thread, registers: usize) {
    if thread.state.load(Ordering::SeqCst) & HOLD == 0 {
        return;
    }
    let outer = thread.registers.swap(registers, Ordering::SeqCst);
    loop {
        let state = thread.state.load(Ordering::SeqCst);
        if state & HOLD == 0 {
            break;
        }
        if state & PARKED == 0 {
            thread.swap_state(state, state | PARKED);
            ARRIVALS.fetch_add(1, Ordering::SeqCst);
            futex_wake(address_of(&ARRIVALS), 1);
        } else {
            // SAFETY: the word is a field of this thread's own block.
            unsafe { futex_wait(address_of(&thread.state), state, None) };
        }
    }
    thread.registers.store(outer, Ordering::SeqCst);
}

/// See [`hosted_core::Host::stop_world`].
///
/// # Safety
/// `visit` is the address of an `extern "C" fn(usize, usize)` for the addresses of its context and
/// of a [`View`]; it takes no lock and allocates nothing.
pub unsafe extern "C" fn stop_world(visit: usize, context: usize) {
    // SAFETY: by the caller's duty.
    let visit: extern "C" fn(usize, usize) = unsafe { std::mem::transmute(visit) };
    let own = CURRENT.get();
    // Held until the world goes on: no thread comes or goes meanwhile, and there is one stopper at
    // a time.
    let registry = registry();
    let others = || {
        let all = registry.iter().filter(|entry| entry.0 != own);
        // SAFETY: what is in the registry is alive as long as its lock is held.
        all.map(|entry| unsafe { &*entry.0 })
    };
    others().for_each(Thread::hold);
    others().for_each(Thread::await_stop);
    for entry in registry.iter() {
        // SAFETY: as above.
        show(unsafe { &*entry.0 }, entry.0 == own, visit, context);
    }
    others().for_each(Thread::let_go);
}

/// Shows one thread, which stands still or is the caller, to the visitor.
fn show(thread: &Thread, is_caller: bool, visit: extern "C" fn(usize, usize), context: usize) {
    let blocked = thread.state.load(Ordering::SeqCst) & BLOCKED != 0;
    let registers = if blocked || is_caller {
        0
    } else {
        thread.registers.load(Ordering::SeqCst)
    };
    let mut view = View {
        // The thread writes it through GS; it does not now.
        top: thread.words.top.load(Ordering::Relaxed),
        stack_low: thread.words.stack_low.load(Ordering::Relaxed),
        registers,
        blocked: u32::from(blocked),
        interrupt: 0,
    };
    visit(context, (&raw mut view) as usize);
    if view.interrupt != 0 {
        thread.interrupt.store(1, Ordering::SeqCst);
        // A blocked thread that does not sleep yet is met again in the next round.
        signals::send_wake(thread.number);
    }
}

impl Thread {
    /// Whether somebody wants it to stand still.
    pub fn is_held(&self) -> bool {
        self.state.load(Ordering::SeqCst) & HOLD != 0
    }

    fn hold(&self) {
        let before = self.state.fetch_or(HOLD, Ordering::SeqCst);
        if before & BLOCKED == 0 {
            signals::send_stop(self.number);
        }
    }

    fn stands_still(&self) -> bool {
        self.state.load(Ordering::SeqCst) & (BLOCKED | PARKED) != 0
    }

    fn await_stop(&self) {
        for _ in 0..PATIENCE {
            if self.stands_still() {
                return;
            }
            std::hint::spin_loop();
        }
        loop {
            let arrivals = ARRIVALS.load(Ordering::SeqCst);
            if self.stands_still() {
                return;
            }
            // SAFETY: a static.
            unsafe { futex_wait(address_of(&ARRIVALS), arrivals, None) };
        }
    }

    fn let_go(&self) {
        self.state.fetch_and(!(HOLD | PARKED), Ordering::SeqCst);
        futex_wake(address_of(&self.state), u32::MAX);
    }
}
