//! Timers, which raise events of domains.
//!
//! Which is due next is known to `lib/system/deadlines`; here are the lock, who pays, and the
//! thread that raises. It waits until the earliest deadline. Whoever sets an earlier one rings it.
//! It takes what is due under the lock, some at a time, and raises and drops without it.
//!
//! The thread goes before all others, and what it does is nobody's processor time, so it has a part
//! of each millisecond only: where more is due, timers come late, and periods become overruns. A
//! deadline in the past is taken for the present one, so that those who are late already come
//! before whatever is set anew.

use crate::event::{self, Raiser};
use alloc::sync::Arc;
use core::num::NonZeroU64;
use core::sync::atomic::{AtomicU32, Ordering};
use deadlines::{Deadlines, NoPlace, Room};
use interfaces::{Handle, RpcError, RpcResult, Timer, TimerError, TimerState};
use isolation::domain::account::Charge;
use isolation::lock::Lock;
use isolation::platform::{Attributes, platform};

/// The shortest period, in nanoseconds.
pub const SHORTEST_PERIOD: u64 = 100_000;
/// The most timers that are taken with the lock held once.
const AT_ONCE: usize = 16;
/// In each window of so many nanoseconds the thread works for `BUSY` of them at the most, but for
/// the batch that it has begun.
const WINDOW: u64 = 1_000_000;
const BUSY: u64 = 500_000;

/// What a timer raises, and who pays for it; `None`: the kernel itself.
struct Alarm {
    raiser: Arc<Raiser>,
    _payment: Option<Charge>,
}

static ALARMS: Lock<Deadlines<Alarm>> = Lock::new(Deadlines::new());
/// How often a deadline was set that is earlier than all others. The thread waits for it.
static RINGS: AtomicU32 = AtomicU32::new(0);
/// Nobody rings this one.
static SILENT: AtomicU32 = AtomicU32::new(0);

/// Starts the thread that raises. Called once at boot.
///
/// # Panics
/// If there is no memory for it.
pub fn init() {
    platform()
        .spawn("timers", raise_all, 0, &Attributes::URGENT)
        .expect("memory for a thread at boot");
}

/// A timer for the event of `raiser`, which the caller pays for.
pub(crate) fn make(
    raiser: &Handle<dyn interfaces::Raiser>,
) -> Result<Handle<dyn Timer>, TimerError> {
    let alarm = Alarm {
        raiser: event::raiser(raiser).ok_or(TimerError::NoRaiser)?,
        _payment: event::paid()?,
    };
    book()?;
    let timer = TimerObject(Arc::new(deadlines::Timer::new(alarm)));
    Ok(Handle::<dyn Timer>::new(timer)?)
}

/// Books a place for one more timer.
fn book() -> Result<(), TimerError> {
    loop {
        let booked = ALARMS.lock().book();
        let chunks = match booked {
            Ok(()) => return Ok(()),
            Err(NoPlace::Full) => return Err(TimerError::Full),
            Err(NoPlace::Grow(chunks)) => chunks,
        };
        // What is left of it is dropped here, behind the lock.
        let mut room = Room::new(chunks).ok_or(RpcError::NoMemory)?;
        ALARMS.lock().extend(&mut room);
    }
}

struct TimerObject(Arc<deadlines::Timer<Alarm>>);

impl Timer for TimerObject {
    fn set(&self, deadline: u64, period: Option<u64>) -> Result<(), TimerError> {
        if period.is_some_and(|period| period < SHORTEST_PERIOD) {
            return Err(TimerError::TooShort);
        }
        let period = period.and_then(NonZeroU64::new);
        let deadline = deadline.max(platform().now());
        let mut alarms = ALARMS.lock();
        if alarms.set(&self.0, deadline, period) {
            // Whoever sets a later deadline from here on does not ring, and counts on this ring. So
            // it comes before the lock is given back: behind it the caller may have no processor
            // for long, by a limit of its own for instance, and others' timers would wait for it.
            RINGS.fetch_add(1, Ordering::Release);
            platform().wake(&RINGS, 1);
        }
        drop(alarms);
        Ok(())
    }

    fn cancel(&self) -> RpcResult<bool> {
        let cancelled = ALARMS.lock().cancel(&self.0);
        Ok(cancelled.is_some())
    }

    fn state(&self) -> RpcResult<TimerState> {
        let state = ALARMS.lock().state(&self.0);
        Ok(TimerState {
            is_set: state.deadline.is_some(),
            deadline: state.deadline.unwrap_or(0),
            overruns: state.overruns,
        })
    }
}

impl Drop for TimerObject {
    fn drop(&mut self) {
        let forgotten = ALARMS.lock().forget(&self.0);
        drop(forgotten);
    }
}

/// The first function of the thread.
extern "C" fn raise_all(_: usize) {
    let mut part = Part::new();
    loop {
        part.keep_to();
        // Whoever sets an earlier deadline after this look rings after it, too.
        let seen = RINGS.load(Ordering::Acquire);
        if raise_due() == 0 {
            let next = ALARMS.lock().next();
            platform().wait(&RINGS, seen, next);
        }
    }
}

/// Raises what is due, [`AT_ONCE`] at the most; how many.
fn raise_due() -> usize {
    let mut due = [const { None }; AT_ONCE];
    let now = platform().now();
    let count = ALARMS.lock().take_due(now, &mut due);
    for due in due.into_iter().flatten() {
        due.timer.value().raiser.raise_times(due.times);
    }
    count
}

/// The thread's part of the processor.
struct Part {
    /// When this window began.
    begun: u64,
    /// How long the thread had worked by then.
    worked: u64,
}

impl Part {
    fn new() -> Self {
        Part {
            begun: platform().now(),
            worked: platform().thread_ns(),
        }
    }

    /// Waits for the next window, if this one's part is used up.
    fn keep_to(&mut self) {
        let end = self.begun.saturating_add(WINDOW);
        let worked = platform().thread_ns().saturating_sub(self.worked);
        if platform().now() < end {
            if worked < BUSY {
                return;
            }
            platform().wait(&SILENT, 0, Some(end));
        }
        *self = Part::new();
    }
}
