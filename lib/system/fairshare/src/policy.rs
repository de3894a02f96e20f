//! The policy as the kernel asks it: who is kept, who runs, what is counted.
//!
//! Where threads wait is in `place`, what processors take from each other in `balance`.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::balance::First;
use crate::group::{Group, Share};
use crate::nodes;
use crate::place::Candidate;
use crate::processor::{Processor, rank_of};
use crate::queue::{Newcomer, Queue, Tables};
use crate::task::{
    Attributes, CUT_SHORT, Class, GAVE_WAY, Left, Moment, OVERDRAWN, Picked, Placement, SERVICE,
    SLICES, Task, Why, Word, asked, get, granted, set, wanted,
};
use crate::{
    BONUS, GRACE, GROUP_LAG, MOST_GROUPS, MOST_PROCESSORS, NEVER, PATIENCE, PERIODS, POLL,
    PROMISED, SLICE, scaled,
};

/// Room beyond what was asked for, for those who ask at the same time.
const SPARE: usize = nodes::PIECE;

/// A lock around a value. Holders are quick and take no other.
pub trait Guarded<V> {
    /// Calls `body` with the value.
    fn with<R>(&self, body: impl FnOnce(&mut V) -> R) -> R;
}

/// The policy. `C` is a [`Guarded`] queue of threads `T`.
pub struct Policy<C> {
    pub(crate) queues: [C; MOST_PROCESSORS],
    pub(crate) processors: [Processor; MOST_PROCESSORS],
    pub(crate) groups: [Group; MOST_GROUPS],
    /// The greatest virtual time of a group when it was picked, on any processor.
    floor: AtomicU64,
    /// Where groups wake up at the least since all processors idled last.
    idle: AtomicU64,
    /// Threads that there is room for on `ready_for` processors.
    room: AtomicUsize,
    ready_for: AtomicUsize,
}

impl<C> Policy<C> {
    /// A policy without room, with these queues.
    pub const fn new(queues: [C; MOST_PROCESSORS]) -> Self {
        Self {
            queues,
            processors: [const { Processor::new() }; MOST_PROCESSORS],
            groups: [const { Group::new() }; MOST_GROUPS],
            floor: AtomicU64::new(0),
            idle: AtomicU64::new(0),
            room: AtomicUsize::new(0),
            ready_for: AtomicUsize::new(0),
        }
    }

    pub(crate) fn group(&self, group: u32) -> &Group {
        &self.groups[group as usize % MOST_GROUPS]
    }

    /// A group begins, which has no threads.
    pub fn open(&self, group: u32, share: Share) {
        self.group(group).open(share);
    }

    /// Changes what a group gets.
    pub fn set_share(&self, group: u32, share: Share) {
        self.group(group).set(share);
    }

    /// Nanoseconds that a group's threads have used since it began.
    pub fn used(&self, group: u32) -> u64 {
        self.group(group).used()
    }

    /// Promises a thread `runtime` of each `period` on a processor, whose number is the answer: its
    /// affinity must name this one alone. `None`: more than is left of any, or nonsense.
    pub fn promise(&self, runtime: u64, period: u64, online: usize) -> Option<usize> {
        let part = part(runtime, period)?;
        let all = &self.processors[..online.clamp(1, MOST_PROCESSORS)];
        let promised = |cpu: &usize| all[*cpu].promised.load(Ordering::Relaxed);
        let cpu = (0..all.len()).min_by_key(promised)?;
        let more = |old: u32| Some(old + part).filter(|new| *new <= PROMISED);
        let words = (Ordering::Relaxed, Ordering::Relaxed);
        all[cpu]
            .promised
            .fetch_update(words.0, words.1, more)
            .ok()?;
        Some(cpu)
    }

    /// Takes a promise back that was made for `cpu`.
    pub fn release(&self, cpu: usize, runtime: u64, period: u64) {
        let less = |old: u32| Some(old.saturating_sub(part(runtime, period).unwrap_or(0)));
        let promised = &self.processors[cpu % MOST_PROCESSORS].promised;
        let _ = promised.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// Millionths of a processor's time, rounded up.
fn part(runtime: u64, period: u64) -> Option<u32> {
    if runtime < POLL || runtime > period || !(PERIODS.0..=PERIODS.1).contains(&period) {
        return None;
    }
    let part = (u128::from(runtime) * 1_000_000).div_ceil(u128::from(period));
    u32::try_from(part).ok()
}

impl<C> Policy<C> {
    /// Makes room for so many threads on each of so many processors. The only function that
    /// allocates. Whether there is room.
    pub fn admit<T>(&self, threads: usize, online: usize) -> bool
    where
        C: Guarded<Queue<T>>,
    {
        let online = online.clamp(1, MOST_PROCESSORS);
        let enough = |have: &AtomicUsize, wanted| have.load(Ordering::Acquire) >= wanted;
        if enough(&self.room, threads) && enough(&self.ready_for, online) {
            return true;
        }
        let wanted = threads + SPARE;
        if !self.queues[..online]
            .iter()
            .all(|queue| grow(queue, wanted))
        {
            return false;
        }
        if enough(&self.ready_for, online) {
            self.room.fetch_max(wanted, Ordering::AcqRel);
        } else {
            self.room.store(wanted, Ordering::Release);
            self.ready_for.store(online, Ordering::Release);
        }
        true
    }
}

/// Makes a queue's room `wanted` or more.
fn grow<T>(queue: &impl Guarded<Queue<T>>, wanted: usize) -> bool {
    if !queue.with(|queue| queue.is_made()) {
        let Some(tables) = Tables::new() else {
            return false;
        };
        drop(queue.with(|queue| queue.make(tables)));
    }
    while queue.with(|queue| queue.capacity()) < wanted {
        let Some(piece) = nodes::piece() else {
            return false;
        };
        if let Err(piece) = queue.with(|queue| queue.add(piece)) {
            drop(piece);
            return false;
        }
    }
    true
}

impl<C> Policy<C> {
    /// Where groups wake up at the least: while all idle it grows with time, up to [`BONUS`], as if
    /// somebody used the processors. Otherwise a group that wants little, and alone, would itself
    /// be the measure, and behind all that wake up later by their bonus.
    fn idle_floor(&self, at: Moment) -> u64 {
        let all = &self.processors[..at.online];
        let idle = self.idle.load(Ordering::Relaxed);
        if all.iter().any(|it| it.rank.load(Ordering::Relaxed) != 0) {
            return idle;
        }
        let greatest = |of: fn(&Processor) -> &AtomicU64| {
            let values = all.iter().map(|it| of(it).load(Ordering::Relaxed));
            values.max().unwrap_or(0)
        };
        let rested = at.now.saturating_sub(greatest(|it| &it.since));
        idle.max(greatest(|it| &it.floor))
            .saturating_add(rested.min(BONUS))
    }

    /// Makes what [`idle_floor`](Self::idle_floor) says hold; time counts anew from here.
    fn idle_is_over(&self, at: Moment) -> u64 {
        let floor = self.idle_floor(at);
        self.idle.fetch_max(floor, Ordering::Relaxed);
        let since = &self.processors[at.cpu].since;
        since.store(at.now, Ordering::Relaxed);
        floor
    }

    /// Counts a thread as ready in its group. One that waited is put beside those who did not.
    fn activate<T: Task>(&self, task: &T, asked: &Attributes, why: Why, last: usize, at: Moment) {
        let group = &self.groups[asked.group()];
        if group.enters() {
            let floor = self.processors[last].floor.load(Ordering::Relaxed);
            let least = self.floor.load(Ordering::Relaxed).saturating_sub(GROUP_LAG);
            let floor = floor.max(least).max(self.idle_floor(at));
            group.raise(floor.saturating_sub(BONUS));
        }
        set(task, Word::Counted, asked.group() as u64 + 1);
        let bonus = if why == Why::New { 0 } else { BONUS };
        let least = group.threads_at().saturating_sub(bonus);
        set(task, Word::Virtual, get(task, Word::Virtual).max(least));
        set(task, Word::Slice, 0);
    }

    /// Moves a thread that was put into another group while it ran.
    fn follow<T: Task>(&self, task: &T, asked: &Attributes) {
        let counted = get(task, Word::Counted);
        if counted == 0 || counted == asked.group() as u64 + 1 {
            return;
        }
        self.group(counted as u32 - 1).leaves();
        let group = &self.groups[asked.group()];
        if group.enters() {
            let floor = self.floor.load(Ordering::Relaxed);
            group.raise(floor.saturating_sub(BONUS));
        }
        set(task, Word::Counted, asked.group() as u64 + 1);
        set(task, Word::Virtual, group.threads_at());
        set(task, Word::Slice, 0);
    }

    /// A thread has run `used` nanoseconds since it was counted last. `service`: it is in one, and
    /// may hold what others wait for.
    pub fn ran<Q, T>(&self, task: &T, used: u64, left: Left, service: bool, at: Moment)
    where
        C: Guarded<Queue<Q>>,
        Q: Task,
        T: Task,
    {
        let asked = asked(task);
        self.follow(task, &asked);
        let group = &self.groups[asked.group()];
        group.charge(used, at.now);
        let cut_short =
            left == Left::Preempted && get(task, Word::Slice) + used < slice_of(task, group, at);
        set(task, Word::Slice, get(task, Word::Slice) + used);
        match asked.class {
            Class::Fair => {
                let virtual_time = get(task, Word::Virtual);
                let new = virtual_time.saturating_add(scaled(used, asked.weight()));
                set(task, Word::Virtual, new);
            }
            Class::Deadline { runtime, period } => spend(task, used, runtime, period),
            _ => self.queues[at.cpu].with(|queue| queue.spend_real_time(used, at.now)),
        }
        let processor = &self.processors[at.cpu];
        processor
            .thread
            .store(standing(task, &asked), Ordering::Relaxed);
        processor.since.store(at.now, Ordering::Relaxed);
        if left != Left::Still {
            leave(task, left, service, cut_short);
        }
        if left == Left::Waits {
            // It may have woken others, who wait at a processor that is late.
            processor.look_at.store(0, Ordering::Relaxed);
        }
        if matches!(left, Left::Waits | Left::Ended) && get(task, Word::Counted) != 0 {
            group.leaves();
            set(task, Word::Counted, 0);
            set(task, Word::Waited, at.now);
        }
    }
}

/// For how long a thread runs while others wait. One that was in a service when it was taken off
/// has all there is: others may wait for what it holds.
fn slice_of<T: Task>(task: &T, group: &Group, at: Moment) -> u64 {
    match get(task, Word::Flags) & SERVICE {
        0 => group.slice(at.online),
        _ => SLICE,
    }
}

/// Takes what a thread with a deadline has used from its budget. For what it ran beyond, since the
/// end was noticed late, its period is as much longer as that is of its budget.
fn spend<T: Task>(task: &T, used: u64, runtime: u64, period: u64) {
    let (deadline, budget) = (get(task, Word::Deadline), get(task, Word::Budget));
    let beyond = u128::from(used.saturating_sub(budget));
    let longer = beyond * u128::from(period) / u128::from(runtime.max(1));
    let longer = u64::try_from(longer).unwrap_or(u64::MAX);
    set(task, Word::Budget, budget.saturating_sub(used));
    set(task, Word::Deadline, deadline.saturating_add(longer));
}

/// What a thread is compared by with others of its class.
fn standing<T: Task>(task: &T, asked: &Attributes) -> u64 {
    match asked.class {
        Class::Deadline { .. } => get(task, Word::Deadline),
        _ => get(task, Word::Virtual),
    }
}

/// Notes how a thread left its processor.
///
/// Who uses up slice after slice in a service does not hold something for a moment. After
/// [`PATIENCE`] of them its siblings have their turn, the one among them that waits to end it, too;
/// and so on from the start.
fn leave<T: Task>(task: &T, left: Left, service: bool, cut_short: bool) {
    let before = get(task, Word::Flags) / SLICES;
    let slices = match left {
        Left::Preempted if !service => 0,
        Left::Preempted => before + u64::from(!cut_short),
        _ => 0,
    };
    let slices = if slices > PATIENCE { 0 } else { slices };
    let goes_first = service && (left != Left::Preempted || cut_short || slices > 0);
    let flags = [
        (goes_first, SERVICE),
        (left == Left::Yielded, GAVE_WAY),
        (left == Left::Preempted && cut_short, CUT_SHORT),
    ];
    let set_ones = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag);
    set(task, Word::Flags, set_ones.sum::<u64>() + slices * SLICES);
    set(task, Word::Grace, 0);
    if left != Left::Preempted || !cut_short {
        set(task, Word::Slice, 0);
    }
}

impl<C> Policy<C> {
    /// Takes over a thread that is ready. Gives it back if there is no room, which
    /// [`admit`](Self::admit) was not asked for then.
    ///
    /// # Errors
    /// The thread.
    pub fn enqueue<T: Task>(&self, task: T, why: Why, at: Moment) -> Result<Placement, T>
    where
        C: Guarded<Queue<T>>,
    {
        let at = bounded(at);
        let wanted = wanted(&task);
        let last = task.last_cpu() % at.online;
        match why {
            Why::Ran if get(&task, Word::Counted) != 0 => self.follow(&task, &wanted),
            _ => self.activate(&task, &wanted, why, last, at),
        }
        let flags = get(&task, Word::Flags);
        let rests = match wanted.class {
            Class::Deadline { runtime, period } => {
                let service = flags & SERVICE != 0;
                plan(&task, runtime, period, service, why == Why::Ran, at.now)
            }
            _ => false,
        };
        let asked = granted(&task, wanted);
        let new = Candidate {
            asked: &asked,
            why,
            thread: standing(&task, &asked),
            slept: at.now.saturating_sub(get(&task, Word::Waited)),
            rank: rank_of(asked.class),
        };
        let cpu = self.place(&new, last, at);
        let preempt = why != Why::WokenLater && !rests && self.beats(&new, cpu, at.now);
        let ran = why == Why::Ran;
        let kept = self.queues[cpu].with(|queue| {
            let kept = match asked.class {
                Class::Fair => {
                    let slice = scaled(get(&task, Word::Slice), asked.weight());
                    let new = Newcomer {
                        group: asked.group(),
                        key: new.thread.saturating_sub(slice),
                        service: flags & SERVICE != 0,
                        gives_way: ran && flags & GAVE_WAY != 0,
                        task,
                    };
                    queue.insert_fair(new, &self.groups)
                }
                Class::Fifo(priority) => {
                    queue.insert_real_time(task, priority, ran && flags & GAVE_WAY == 0)
                }
                Class::RoundRobin(priority) => {
                    queue.insert_real_time(task, priority, ran && flags & CUT_SHORT != 0)
                }
                Class::Deadline { .. } => queue.insert_deadline(task, rests),
            };
            self.processors[cpu].show(queue.sign());
            kept
        });
        kept.map(|()| Placement { cpu, preempt })
    }

    /// Whether nobody waits to whom a thread that gives way on processor `cpu` could give way.
    pub fn is_alone(&self, cpu: usize, online: usize) -> bool {
        let at = bounded(Moment {
            now: 0,
            cpu,
            online,
        });
        let waits = |cpu: usize| self.processors[cpu].has_waiting();
        !waits(at.cpu) && !self.others(at).any(waits)
    }

    /// Gives up the thread that runs now.
    pub fn pick<T: Task>(&self, at: Moment) -> Picked<T>
    where
        C: Guarded<Queue<T>>,
    {
        let at = bounded(at);
        let processor = &self.processors[at.cpu];
        processor.idle.store(false, Ordering::Relaxed);
        let idle = match processor.rank.load(Ordering::Relaxed) {
            0 => self.idle_is_over(at),
            _ => self.idle.load(Ordering::Relaxed),
        };
        let mut returns = NEVER;
        let own = || {
            self.queues[at.cpu].with(|queue| {
                queue.wake_up_at(idle);
                let task = queue.take(&self.groups, at);
                processor.show(queue.sign());
                returns = queue.next_return();
                task
            })
        };
        let task = self.fetch_better(at).or_else(own);
        let Some(task) = task.or_else(|| self.fetch_any(at)) else {
            processor.rank.store(0, Ordering::Relaxed);
            processor.idle.store(true, Ordering::Release);
            let elsewhere = self
                .others(at)
                .any(|cpu| self.processors[cpu].has_waiting());
            let again = if elsewhere { at.now + SLICE } else { NEVER };
            let until = again.min(returns);
            return Picked { task: None, until };
        };
        let until = self.runs(&task, at).min(returns.max(at.now + 1));
        Picked {
            task: Some(task),
            until,
        }
    }

    /// A thread begins to run; until when it may.
    fn runs<T: Task>(&self, task: &T, at: Moment) -> u64 {
        let asked = asked(task);
        let (group, processor) = (&self.groups[asked.group()], &self.processors[at.cpu]);
        let thread = standing(task, &asked);
        processor
            .rank
            .store(rank_of(asked.class), Ordering::Relaxed);
        processor
            .group
            .store(asked.group() as u32, Ordering::Relaxed);
        processor.thread.store(thread, Ordering::Relaxed);
        processor.since.store(at.now, Ordering::Relaxed);
        let slice = match asked.class {
            Class::Deadline { .. } => get(task, Word::Budget),
            Class::Fair => {
                if self.floor.load(Ordering::Relaxed) < group.now() {
                    self.floor.fetch_max(group.now(), Ordering::Relaxed);
                }
                let quota = group.left(at.now).unwrap_or(NEVER);
                quota.min(slice_of(task, group, at).saturating_sub(get(task, Word::Slice)))
            }
            _ => SLICE,
        };
        let least = if let Class::Deadline { .. } = asked.class {
            1
        } else {
            POLL
        };
        at.now.saturating_add(slice.max(least))
    }

    /// The running thread's time is over, or somebody's rest; it has been counted. `None`: it gives
    /// way; otherwise it goes on until then.
    pub fn slice_over<Q, T>(&self, task: &T, service: bool, at: Moment) -> Option<u64>
    where
        C: Guarded<Queue<Q>>,
        Q: Task,
        T: Task,
    {
        let at = bounded(at);
        let asked = asked(task);
        let (waits, returns) = self.queues[at.cpu].with(|queue| {
            queue.wake_due(&self.groups, at.now);
            self.processors[at.cpu].show(queue.sign());
            (queue.waits(asked.class, at.now), queue.next_return())
        });
        let until = match asked.class {
            Class::Deadline { .. } => {
                let left = get(task, Word::Budget);
                (left > 0 && !waits).then_some(at.now.saturating_add(left))
            }
            Class::Fair => self.fair_slice_over(task, &asked, waits, service, at),
            _ => (!waits).then(|| {
                set(task, Word::Slice, 0);
                self.runs(task, at)
            }),
        };
        until.map(|until| until.min(returns.max(at.now + 1)))
    }

    /// As [`slice_over`](Self::slice_over), for a fair thread; others wait at its processor if it
    /// `waits`.
    fn fair_slice_over<T: Task>(
        &self,
        task: &T,
        asked: &Attributes,
        waits: bool,
        service: bool,
        at: Moment,
    ) -> Option<u64> {
        let (group, processor) = (&self.groups[asked.group()], &self.processors[at.cpu]);
        let held = group.held_until(at.now).is_some();
        if !waits && !held {
            let thread = get(task, Word::Virtual);
            // Whoever comes new, or is woken, is put beside it. Otherwise he would be as far ahead
            // as this one has run alone.
            group.threads_reach(thread);
            let first = First {
                limit: group.now(),
                group: asked.group() as u32,
                thread,
            };
            set(task, Word::Slice, 0);
            set(task, Word::Grace, 0);
            if asked.affinity.count_ones() == 1 || !self.is_behind(at, &first) {
                return Some(self.runs(task, at));
            }
            // The other is fetched in its stead, unless he may not run here.
            processor.look_at.store(at.now, Ordering::Relaxed);
            return None;
        }
        let urgent = processor.urgent.load(Ordering::Relaxed);
        let rest = slice_of(task, group, at).saturating_sub(get(task, Word::Slice));
        if !urgent && !held && rest >= POLL && processor.next() > group.now() {
            return Some(at.now + rest);
        }
        let since = match get(task, Word::Grace) {
            0 => at.now,
            since => since,
        };
        let graced = service && !urgent && at.now < since + GRACE;
        set(task, Word::Grace, if graced { since } else { 0 });
        graced.then_some(at.now + POLL)
    }
}

/// The moment, with numbers of processors that there are.
#[inline] // In every call from another crate.
fn bounded(at: Moment) -> Moment {
    let online = at.online.clamp(1, MOST_PROCESSORS);
    let cpu = at.cpu % online;
    Moment { online, cpu, ..at }
}

/// Gives a thread with a deadline its next period if the present one is over or cannot be kept;
/// whether it has to rest until then. Who may hold what others wait for does not rest, but goes on
/// as a fair thread: with another budget at once it would be before all others for as long as it
/// keeps to services.
fn plan<T: Task>(task: &T, runtime: u64, period: u64, service: bool, ran: bool, now: u64) -> bool {
    let (deadline, budget) = (get(task, Word::Deadline), get(task, Word::Budget));
    let budget = if budget == OVERDRAWN { 0 } else { budget };
    let left = deadline.saturating_sub(now);
    let fits = u128::from(budget) * u128::from(period) <= u128::from(left) * u128::from(runtime);
    // One that was only taken off keeps its deadline.
    if left == 0 || budget > 0 && !fits && !ran {
        set(task, Word::Deadline, now.saturating_add(period));
        set(task, Word::Budget, runtime);
        return false;
    }
    if budget == 0 {
        set(task, Word::Budget, if service { OVERDRAWN } else { 0 });
    }
    budget == 0 && !service
}
