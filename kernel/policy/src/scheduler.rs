//! The scheduler: the library `fairshare` behind the framework's trait.
//!
//! Only what one needs of the other is here: attributes in the library's words, locks around the
//! queues. The framework admits a thread before it makes it, so there is room for each; should
//! there be none all the same, the thread goes into a plain queue that is looked at when there is
//! nobody else, for it must not be lost.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fairshare::{Guarded, Policy, Queue, Task, Why};
use framework::arch::MAX_CPUS;
use framework::sync::SpinLock;
use framework::task::{
    self, Choice, Left, MAX_GROUPS, Moment, POLICY_WORDS, Placement, Reason, RunQueue, Scheduler,
    Share, Thread, ThreadRef,
};

const _: () = assert!(MAX_CPUS == fairshare::MOST_PROCESSORS);
const _: () = assert!(MAX_GROUPS == fairshare::MOST_GROUPS);
const _: () = assert!(POLICY_WORDS == fairshare::WORDS);

/// A thread in a queue.
struct Ready(ThreadRef);

/// A thread that runs.
struct Seen<'a>(&'a Thread);

fn attributes(thread: &Thread) -> fairshare::Attributes {
    let asked = thread.attributes();
    fairshare::Attributes {
        class: match asked.class {
            task::Class::Fair => fairshare::Class::Fair,
            task::Class::Fifo(priority) => fairshare::Class::Fifo(priority),
            task::Class::RoundRobin(priority) => fairshare::Class::RoundRobin(priority),
            task::Class::Deadline { runtime, period } => {
                fairshare::Class::Deadline { runtime, period }
            }
        },
        weight: asked.weight,
        affinity: asked.affinity,
        group: thread.group(),
    }
}

impl Task for Ready {
    fn attributes(&self) -> fairshare::Attributes {
        attributes(&self.0)
    }
    fn words(&self) -> &[AtomicU64; POLICY_WORDS] {
        self.0.policy_words()
    }
    fn last_cpu(&self) -> usize {
        self.0.cpu()
    }
}

impl Task for Seen<'_> {
    fn attributes(&self) -> fairshare::Attributes {
        attributes(self.0)
    }
    fn words(&self) -> &[AtomicU64; POLICY_WORDS] {
        self.0.policy_words()
    }
    fn last_cpu(&self) -> usize {
        self.0.cpu()
    }
}

/// A queue and its lock.
struct Locked(SpinLock<Queue<Ready>>);

impl Guarded<Queue<Ready>> for Locked {
    fn with<R>(&self, body: impl FnOnce(&mut Queue<Ready>) -> R) -> R {
        body(&mut self.0.lock())
    }
}

/// The scheduler.
pub struct FairShare {
    policy: Policy<Locked>,
    /// Threads for which there was no room.
    crowd: SpinLock<RunQueue>,
    is_crowded: AtomicBool,
}

impl FairShare {
    /// A scheduler without threads.
    pub const fn new() -> Self {
        Self {
            policy: Policy::new([const { Locked(SpinLock::new(Queue::new())) }; MAX_CPUS]),
            crowd: SpinLock::new(RunQueue::new()),
            is_crowded: AtomicBool::new(false),
        }
    }

    /// Keeps a thread for which there was no room. One that is in a queue already is not kept: a
    /// policy in front of this one has given it away twice.
    #[cold]
    fn crowd(&self, thread: ThreadRef, at: Moment) -> Placement {
        let kept = self.crowd.lock().push_back(thread);
        drop(kept);
        self.is_crowded.store(true, Ordering::Release);
        let (cpu, preempt) = (at.cpu, false);
        Placement { cpu, preempt }
    }

    fn of_crowd(&self) -> Option<ThreadRef> {
        if !self.is_crowded.load(Ordering::Acquire) {
            return None;
        }
        let mut crowd = self.crowd.lock();
        let thread = crowd.pop_front();
        self.is_crowded.store(!crowd.is_empty(), Ordering::Release);
        thread
    }
}

impl Default for FairShare {
    fn default() -> Self {
        Self::new()
    }
}

fn moment(at: Moment) -> fairshare::Moment {
    fairshare::Moment {
        now: at.now,
        cpu: at.cpu,
        online: at.online,
    }
}

impl Scheduler for FairShare {
    fn admit(&self, threads: usize, online: usize) -> bool {
        self.policy.admit(threads, online)
    }

    fn promise(&self, runtime: u64, period: u64, online: usize) -> Option<usize> {
        self.policy.promise(runtime, period, online)
    }

    fn release(&self, cpu: usize, runtime: u64, period: u64) {
        self.policy.release(cpu, runtime, period);
    }

    fn open_group(&self, group: u32, share: Share) {
        let Share { weight, percent } = share;
        self.policy
            .open(group, fairshare::Share { weight, percent });
    }

    fn enqueue(&self, thread: ThreadRef, why: Reason, at: Moment) -> Placement {
        let why = match why {
            Reason::New => Why::New,
            Reason::Woken => Why::Woken,
            Reason::WokenLater => Why::WokenLater,
            Reason::Ran => Why::Ran,
        };
        match self.policy.enqueue(Ready(thread), why, moment(at)) {
            Ok(fairshare::Placement { cpu, preempt }) => Placement { cpu, preempt },
            Err(Ready(thread)) => self.crowd(thread, at),
        }
    }

    fn pick(&self, at: Moment) -> Choice {
        let picked = self.policy.pick(moment(at));
        let thread = picked.task.map(|Ready(thread)| thread);
        Choice {
            thread: thread.or_else(|| self.of_crowd()),
            until: picked.until,
        }
    }

    fn is_alone(&self, cpu: usize, online: usize) -> bool {
        !self.is_crowded.load(Ordering::Acquire) && self.policy.is_alone(cpu, online)
    }

    fn ran(&self, thread: &Thread, used: u64, left: Left, in_service: bool, at: Moment) {
        let left = match left {
            Left::Still => fairshare::Left::Still,
            Left::Preempted => fairshare::Left::Preempted,
            Left::Yielded => fairshare::Left::Yielded,
            Left::Waits => fairshare::Left::Waits,
            Left::Ended => fairshare::Left::Ended,
        };
        self.policy
            .ran(&Seen(thread), used, left, in_service, moment(at));
    }

    fn slice_over(&self, thread: &Thread, in_service: bool, at: Moment) -> Option<u64> {
        self.policy
            .slice_over(&Seen(thread), in_service, moment(at))
    }
}

/// The scheduler that the kernel runs.
pub type KernelScheduler = FairShare;
