//! The block queue that is open, and the driver's queue behind it.
//!
//! A *front* is what a submitter has opened: its requests by tag, and the views of its slots. A
//! *back* is a queue of one instance of the driver. Requests go to the back in their order under
//! numbers of the book ([`requests`]), with their barriers, which the driver keeps. When the back
//! is lost all that have no answer wait again, the next instance gets the views, and then these
//! requests in the same order. That is right since each of them done twice is as if done once, as
//! long as its submitter has no answer.
//!
//! # The fence
//! There is one front. [`Volume::open`] puts another one in its place, which ends all that the old
//! one has here, and then opens a queue of the driver, which ends all that the old one has there. A
//! driver that dies meanwhile leaves nothing: the next one resets its device.
//!
//! A front whose submitter has gone, and that has a group ([`requests::group`]) which is not done,
//! is *ending*: the keeper carries the group out, and who opens the next front waits for that.
//!
//! # A request that is lost
//! A driver may live and never answer a request. The keeper looks every few seconds, as long as the
//! driver has any, which is the oldest; if that stays the same for [`LOOKS`] looks, and has no
//! answer that nobody has taken, the driver is replaced like a dead one. Time is counted in looks,
//! so that a machine that was stopped for a while loses no driver. A driver finds a device that
//! does not answer much sooner.
//!
//! # Who does what
//! Submitting and taking answers is done by the submitter's threads alone, and never waits for a
//! driver to start: while there is no back, requests wait in the book. The *keeper*, a thread of
//! this domain, finds the next driver. It is told by whoever meets an error, and by the drop of the
//! [`Forward`] that the lost driver had. The lock of [`Volume::state`] is held over calls of the
//! back, which do not wait. What the driver calls, and what drops with it, does not take it.

use alloc::sync::Arc;

use domain_rt::sync::{Condvar, Mutex, MutexGuard, Wait};
use domain_rt::{is_kernel_object, log, time};
use gate::Pass;
use interfaces::{
    Block, BlockError, BlockQueue, Failure, Handle, QueueError, QueueLimits, Raiser, RpcError,
    RpcResult,
};
use respawn::ATTEMPTS;

use crate::Way;
use crate::front::{Back, Front, REQUESTS, SLOTS, Slot};

/// How long it takes until what failed for want of memory is tried again, in nanoseconds.
const PAUSE: u64 = 10_000_000;
/// How often it is looked for answers for a front that is ending, in nanoseconds.
const LOOK: u64 = 1_000_000;

/// What the lock guards.
#[derive(Default)]
pub struct State {
    pub front: Option<Front>,
    fronts: u64,
    backs: u64,
    /// The keeper knows that the driver has requests, and looks at them.
    pub is_watched: bool,
}

/// How often it is looked whether the driver answers, in nanoseconds, and how often a request may
/// be found to be the oldest before it is taken for lost.
const WATCH: u64 = 5_000_000_000;
const LOOKS: u32 = 6;

/// What the keeper has seen of the driver's requests.
#[derive(Default)]
struct Watch {
    /// The oldest: the number of its back, and its own.
    oldest: Option<(u64, u64)>,
    looks: u32,
    /// When it looks again; `None` while the driver has none.
    next: Option<u64>,
}

/// What the keeper is told.
#[derive(Default)]
struct Alarm {
    /// The last back whose driver let go of it.
    lost: u64,
    is_due: bool,
}

/// See the module.
#[derive(Default)]
pub struct Volume {
    pub state: Mutex<State>,
    /// A front that was ending is gone.
    ended: Condvar,
    alarm: Arc<(Mutex<Alarm>, Condvar)>,
}

/// What the driver raises: passes it on to the submitter, and tells the keeper when it is dropped.
struct Forward {
    to: Arc<Handle<dyn Raiser>>,
    back: u64,
    alarm: Arc<(Mutex<Alarm>, Condvar)>,
}

impl Raiser for Forward {
    fn raise(&self) -> RpcResult<()> {
        self.to.raise()
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        ring(&self.alarm, self.back);
    }
}

fn ring(alarm: &(Mutex<Alarm>, Condvar), lost: u64) {
    let mut state = alarm.0.lock();
    state.lost = state.lost.max(lost);
    state.is_due = true;
    drop(state);
    alarm.1.notify_all();
}

impl Volume {
    /// Opens a front in place of the one before, when nothing of that happens any more; its number.
    ///
    /// # Errors
    /// Those of the driver; [`BlockError::Rpc`] with `Refused` if the raiser is not the kernel's.
    pub fn open(&self, way: &Way, raiser: Option<Handle<dyn Raiser>>) -> Result<u64, BlockError> {
        // A raiser of a domain could keep the driver's thread that raises it.
        if raiser.as_ref().is_some_and(|it| !is_kernel_object(it)) {
            return Err(BlockError::Rpc(RpcError::Refused));
        }
        let mut front = Front::new(raiser.map(Arc::new))?;
        let mut state = self.fence()?;
        state.fronts += 1;
        front.id = state.fronts;
        let (id, old) = (front.id, state.front.replace(front));
        drop(state);
        // With it goes the old queue of the driver, which carries nothing more out from then on.
        drop(old);
        match self.connect(way, id) {
            Ok(()) => self.begin(id),
            Err(error) => {
                self.close(id);
                return Err(error);
            }
        }
        Ok(id)
    }

    /// The lock, when no group is under way any more.
    fn fence(&self) -> RpcResult<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        while let Some(front) = state.front.as_mut().filter(|front| front.has_group()) {
            front.is_ending = true;
            ring(&self.alarm, 0);
            let wait;
            (state, wait) = self.ended.wait(state);
            if wait == Wait::Interrupted {
                return Err(RpcError::Interrupted);
            }
        }
        Ok(state)
    }

    /// From now on the keeper looks after this front.
    fn begin(&self, id: u64) {
        let mut state = self.state.lock();
        let front = state.front.as_mut().filter(|front| front.id == id);
        let is_due = front.is_some_and(|front| {
            front.is_open = true;
            front.back.is_none()
        });
        drop(state);
        if is_due {
            ring(&self.alarm, 0);
        }
    }

    /// The driver is about to be replaced: the next one gets what has no answer.
    pub fn forget(&self) {
        let mut state = self.state.lock();
        let old = state.front.as_mut().and_then(|front| {
            let old = front.lose();
            // It has not failed: if it is not replaced after all, it goes on.
            front.failed = 0;
            old
        });
        drop(state);
        drop(old);
        ring(&self.alarm, 0);
    }

    /// The front goes, with all that it has: a group when that is done.
    pub fn close(&self, id: u64) {
        let mut state = self.state.lock();
        let mut is_ending = false;
        let front = state.front.take_if(|front| {
            is_ending = front.id == id && front.has_group();
            front.is_ending |= is_ending;
            front.id == id && !is_ending
        });
        drop(state);
        drop(front);
        if is_ending {
            ring(&self.alarm, 0);
        }
    }

    /// Finds a driver for a front that has none, and has it go on with what waits.
    fn connect(&self, way: &Way, id: u64) -> Result<(), BlockError> {
        let mut failed = match &self.state.lock().front {
            Some(front) if front.id == id => front.failed,
            _ => return Ok(()),
        };
        for _ in 0..ATTEMPTS {
            let pass = way.passage.enter()?;
            let live = way.driver.live::<BlockError>(failed)?;
            let number = {
                let mut state = self.state.lock();
                state.backs += 1;
                state.backs
            };
            match self.open_back(&live.service, id, number) {
                Ok(queue) => {
                    let back = Back {
                        instance: live.id,
                        number,
                        queue,
                    };
                    if self.attach(id, back, &pass) {
                        return Ok(());
                    }
                    failed = live.id;
                }
                Err(error) if error.is_gone() || crate::is_dead(&live.service) => failed = live.id,
                Err(error) => return Err(error),
            }
        }
        log!("gave up to find a driver after {ATTEMPTS} instances");
        Err(BlockError::Gone)
    }

    fn open_back(
        &self,
        driver: &Handle<dyn Block>,
        id: u64,
        number: u64,
    ) -> Result<Handle<dyn BlockQueue>, BlockError> {
        let state = self.state.lock();
        let front = state.front.as_ref().filter(|front| front.id == id);
        let to = front.and_then(|front| front.raiser.clone());
        drop(state);
        let alarm = self.alarm.clone();
        let forward = to.map(|to| {
            Handle::<dyn Raiser>::new(Forward {
                to,
                back: number,
                alarm,
            })
        });
        driver.open(forward.transpose()?)
    }

    /// Puts a new back behind the front, which gets the views and what waits. False: it is lost
    /// already.
    fn attach(&self, id: u64, back: Back, _pass: &Pass<'_>) -> bool {
        let limits = back.queue.limits();
        let mut state = self.state.lock();
        let Some(front) = state.front.as_mut().filter(|front| front.id == id) else {
            // Somebody else has opened one meanwhile.
            return true;
        };
        for (slot, number) in front.slots.iter().zip(0..) {
            let Some(Slot { view, .. }) = slot else {
                continue;
            };
            // It was registered before; for want of memory the next driver may do better.
            let registered = view.duplicate().map_err(QueueError::Rpc);
            let registered = registered.and_then(|view| back.queue.register(number, view));
            if let Err(error) = registered {
                log!("slot {number} is not to be had with the next driver: {error:?}");
                front.failed = back.instance;
                return false;
            }
        }
        let Ok(limits) = limits else {
            return false;
        };
        front.limits = QueueLimits {
            requests: limits.requests.min(REQUESTS as u32),
            slots: limits.slots.min(SLOTS as u32),
            ..limits
        };
        front.back = Some(back);
        front.is_dead = false;
        let lives = front.pump();
        let lost = if lives { None } else { front.lose() };
        drop(state);
        drop(lost);
        lives
    }

    /// Has the keeper look whether there is a driver.
    pub fn ring(&self) {
        ring(&self.alarm, 0);
    }

    /// The body of the thread that finds the next driver, and carries out groups whose submitter is
    /// gone.
    pub fn keep(&self, way: &Way) {
        let mut watch = Watch::default();
        let mut until = None;
        while let Some(lost) = self.wait_for_alarm(until) {
            self.mend(way, lost);
            let is_ending = self.finish(way);
            let is_stuck = self.push(way);
            self.watch(way, &mut watch);
            until = match (is_ending, is_stuck) {
                (true, _) => Some(time::now() + LOOK),
                (false, true) => Some(time::now() + PAUSE),
                (false, false) => watch.next,
            };
        }
    }

    /// Waits until there is something to do, or `until` then; the last back that is lost. `None` if
    /// the thread is to end.
    fn wait_for_alarm(&self, until: Option<u64>) -> Option<u64> {
        let mut alarm = self.alarm.0.lock();
        let mut wait = Wait::Woken;
        while !alarm.is_due && wait == Wait::Woken {
            (alarm, wait) = match until {
                Some(until) => self.alarm.1.wait_until(alarm, until),
                None => self.alarm.1.wait(alarm),
            };
        }
        alarm.is_due = false;
        (wait != Wait::Interrupted).then_some(alarm.lost)
    }

    /// Goes on with the group of a front that is ending; whether there is more to be done.
    fn finish(&self, way: &Way) -> bool {
        let pass = way.passage.try_enter();
        let mut state = self.state.lock();
        let Some(front) = state.front.as_mut().filter(|front| front.is_ending) else {
            return false;
        };
        // What fails for want of memory is tried again.
        let lives = match pass {
            None => true,
            Some(_) => front.gather(&mut []).map_or(true, |it| it.1) && front.pump(),
        };
        let lost = if lives { None } else { front.lose() };
        let is_over = front.is_dead || !front.has_group();
        if is_over && front.has_group() {
            log!("a group of writes is lost with the driver");
        }
        let old = state.front.take_if(|_| is_over);
        drop(state);
        drop((lost, old));
        if is_over {
            self.ended.notify_all();
        } else if !lives {
            ring(&self.alarm, 0);
        }
        !is_over
    }

    /// Hands on what a submitter could not, for want of memory or stack, or since the gate was
    /// closed; whether it is to be tried again.
    fn push(&self, way: &Way) -> bool {
        let pass = way.passage.try_enter();
        let mut state = self.state.lock();
        let Some(front) = state.front.as_mut().filter(|front| front.is_stuck()) else {
            return false;
        };
        if pass.is_none() {
            return true;
        }
        let lives = front.pump();
        let is_stuck = lives && front.is_stuck();
        let lost = if lives { None } else { front.lose() };
        drop(state);
        drop(lost);
        if !lives {
            ring(&self.alarm, 0);
        }
        is_stuck
    }

    /// Looks whether the driver has lost a request, if it is time.
    fn watch(&self, way: &Way, watch: &mut Watch) {
        let now = time::now();
        if watch.next.is_some_and(|next| now < next) {
            return;
        }
        let pass = way.passage.try_enter();
        let mut state = self.state.lock();
        let oldest = state.front.as_ref().and_then(Front::oldest);
        state.is_watched = oldest.is_some();
        watch.next = oldest.map(|_| now + WATCH);
        watch.looks = match oldest == watch.oldest {
            true => watch.looks + 1,
            false => 1,
        };
        watch.oldest = oldest;
        let front = state.front.as_mut();
        let Some(front) = front.filter(|_| oldest.is_some() && watch.looks > LOOKS) else {
            return;
        };
        if pass.is_none() {
            return;
        }
        // It may have its answer, and nobody has looked.
        let mut lives = front.gather(&mut []).map_or(true, |it| it.1) && front.pump();
        if lives && front.oldest() == oldest {
            log!("the driver has lost a request: it is replaced");
            lives = false;
        }
        // What was found here nobody else is told of.
        let raiser = front.whom_to_tell();
        let lost = if lives { None } else { front.lose() };
        drop(state);
        drop(lost);
        if let Some(raiser) = raiser {
            // Its submitter may be dead by now.
            let _ = raiser.raise();
        }
        if !lives {
            ring(&self.alarm, 0);
        }
    }

    /// Finds a driver, if the front has none or its back is `lost`.
    fn mend(&self, way: &Way, lost: u64) {
        let mut state = self.state.lock();
        let Some(front) = &mut state.front else {
            return;
        };
        let is_lost = front.back.as_ref().is_some_and(|it| it.number <= lost);
        let old = if is_lost { front.lose() } else { None };
        // Before its first back a front is its opener's affair.
        let (id, is_due) = (front.id, front.back.is_none() && front.is_open);
        drop(state);
        drop(old);
        if !is_due {
            return;
        }
        match self.connect(way, id) {
            Ok(()) | Err(BlockError::Rpc(RpcError::Interrupted)) => {}
            Err(BlockError::Rpc(RpcError::NoMemory | RpcError::Busy)) => {
                time::sleep(PAUSE);
                ring(&self.alarm, 0);
            }
            Err(error) => {
                log!("there is no driver for the queue: {error:?}");
                self.tell_dead(id);
            }
        }
    }

    fn tell_dead(&self, id: u64) {
        let mut state = self.state.lock();
        let Some(front) = state.front.as_mut().filter(|front| front.id == id) else {
            return;
        };
        front.is_dead = true;
        let raiser = front.raiser.clone();
        drop(state);
        if let Some(raiser) = raiser {
            // Its submitter may be dead by now.
            let _ = raiser.raise();
        }
    }
}
