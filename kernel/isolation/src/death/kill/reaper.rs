//! The reaper: it stops the world, again and again, until nobody is inside a dead domain.

use super::{HELP_AFTER, LOOK_AGAIN, LOOK_AGAIN_LATER, LOOK_PAUSE, runs_code_of};
use crate::call::Record;
use crate::call::end::mark;
use crate::call::stack;
use crate::domain::queues::{self, DYING, INSIDE, REAPERS_WORK};
use crate::domain::{ControlBlock, State};
use crate::klog;
use crate::platform::{ThreadView, platform};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// How long the reaper rests between two looks, since when it finds work for which nobody is idle,
/// and which stacks it has told.
#[derive(Default)]
pub(crate) struct Patience {
    /// The dead that it looks at, and whether somebody is inside; empty between two looks.
    pub(super) dying: Vec<Arc<ControlBlock>>,
    pub(super) busy: Vec<bool>,
    pause: u64,
    last: u32,
    behind: Option<u64>,
    told: stack::Told,
}

impl Patience {
    /// Whether there is work that waits for a helper. If it has waited for a while, there is one
    /// more from now on.
    fn look_after_helpers(&mut self) -> bool {
        if !crate::death::undertaker::is_behind() {
            self.behind = None;
            return false;
        }
        let now = platform().now();
        // Another processor's clock may be a little behind.
        if now.saturating_sub(*self.behind.get_or_insert(now)) >= HELP_AFTER {
            // If there is none now, there may be after the next wait.
            let _ = crate::death::undertaker::add_helper();
            self.behind = None;
        }
        true
    }
}

/// What the reaper does again and again: it looks, and rests until there is reason to look again.
pub(crate) fn reaper_round(patience: &mut Patience) {
    let seen = REAPERS_WORK.load(Ordering::Acquire);
    patience.pause = if seen == patience.last {
        (patience.pause * 2).clamp(LOOK_AGAIN, LOOK_AGAIN_LATER)
    } else {
        LOOK_AGAIN
    };
    patience.last = seen;
    let left = reap(patience);
    // Who waits for the memory of the dead does not wait for lines of the log.
    stack::tell(&mut patience.told);
    let helpers_wait = patience.look_after_helpers();
    let pause = left.unwrap_or(0).max(patience.pause);
    let deadline = (left.is_some() || helpers_wait).then(|| platform().now() + pause);
    platform().wait(&REAPERS_WORK, seen, deadline);
}

/// One round: lets threads leave, hands over those domains that nobody is inside of. If some are
/// left, for how long nobody should look again at the least.
fn reap(patience: &mut Patience) -> Option<u64> {
    let Patience { dying, busy, .. } = patience;
    gather(dying, busy);
    if dying.is_empty() {
        return None;
    }
    // So most programs end, and others need not stand still for it.
    let is_quiet = dying.iter().all(|block| block.is_deserted());
    dying.iter().for_each(begin_to_die);
    dying.sort_unstable_by_key(|block| block.id);
    let pause = match is_quiet {
        true => 0,
        false => look(dying, busy),
    };
    #[cfg(test)]
    if crate::sync::is_broken(crate::sync::Broken::NobodyLooks) {
        busy.fill(false);
    }
    for (block, _) in dying.iter().zip(&*busy).filter(|(_, busy)| !**busy) {
        DYING.lock().retain(|other| !Arc::ptr_eq(other, block));
        queues::clear_away(block.clone());
    }
    dying.clear();
    busy.clear();
    (!DYING.lock().is_empty()).then_some(pause)
}

/// Shares in all dead domains, or in the first of them if there is no memory for all.
fn gather(dying: &mut Vec<Arc<ControlBlock>>, busy: &mut Vec<bool>) {
    let all = DYING.lock();
    // What fails leaves the room that there was.
    let _ = dying.try_reserve(all.len());
    let _ = busy.try_reserve(all.len());
    let room = dying.capacity().min(busy.capacity());
    dying.extend(all.iter().take(room).cloned());
    busy.resize(dying.len(), false);
}

/// Stops the world and lets threads leave the domains `dying`, which are in the order of their
/// numbers; sets `busy` for each of them that somebody is inside of. How long nobody should look
/// again, so that this takes little of all time.
pub(super) fn look(dying: &[Arc<ControlBlock>], busy: &mut [bool]) -> u64 {
    // Few threads are in a dead domain, and many domains may have died at once: so each record is
    // looked at once.
    let mut is_dying = |domain: *const ControlBlock| {
        // SAFETY: whoever calls this has it from a linked record, which keeps it in memory.
        let domain = unsafe { &*domain };
        let index = match domain.is_alive() {
            true => return false,
            false => dying.binary_search_by_key(&domain.id, |block| block.id),
        };
        if let Ok(index) = index {
            busy[index] = true;
        }
        index.is_ok()
    };
    let (mut inside, mut threads) = (0, 0);
    platform().stop_world(&mut |view| {
        threads += 1;
        inside += usher_out(view, &mut is_dying);
        // Before the world goes on, since they begin to leave then.
        INSIDE.store(inside, Ordering::Relaxed);
    });
    LOOK_PAUSE * threads
}

/// Tells the log and those who wait for events of a death that the reaper sees for the first time.
fn begin_to_die(block: &Arc<ControlBlock>) {
    if !block.has_entered(State::Dying) {
        if let Some(words) = block.words() {
            let caller = match words.has_caller() {
                true => "; its caller gets an error",
                false => "",
            };
            klog!("{}: domain {} {words}{caller}", block.name(), block.id);
        }
        block.enter_state(State::Dying);
    }
}

/// Helps a stopped thread out of domains that are dead; how many of its records name such.
pub(crate) fn usher_out(
    view: &mut ThreadView<'_>,
    is_dead: &mut dyn FnMut(*const ControlBlock) -> bool,
) -> u32 {
    let chain: *mut Record = view.top.cast();
    let inside = mark(chain, is_dead);
    if inside == 0 {
        return 0;
    }
    view.interrupt |= view.blocked;
    // SAFETY: the thread is stopped, its top record does not change. That names its callee.
    let (top, block) = unsafe { (&*chain, &*(*chain).domain) };
    if let Some(frame) = &mut view.frame
        && is_dead(block)
        && runs_code_of(block, &**frame)
    {
        if let Some(place) = frame.place() {
            // SAFETY: the thread stands still, in the code of its top record's callee.
            unsafe { stack::note(place, view.stack_low, chain) };
        }
        frame.redirect(&top.landing());
    }
    inside
}
