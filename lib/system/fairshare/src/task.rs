//! What the policy knows of a thread, and what it is asked and answers.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::{MOST_GROUPS, NORMAL_WEIGHT, PERIODS, POLL, THREAD_WEIGHTS};

/// In which order threads run. Each class goes before those above it in this list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// By shares.
    Fair,
    /// Until it waits; the greater priority first.
    Fifo(u8),
    /// In turn with others of its priority.
    RoundRobin(u8),
    /// The earliest deadline first: so much of each period, on the processor that its affinity
    /// names. Whose budget ends in a service is fair until it is met after the end of its period,
    /// or rests when it is met elsewhere.
    Deadline {
        /// Nanoseconds that it may run in each period.
        runtime: u64,
        /// Nanoseconds.
        period: u64,
    },
}

/// What was asked for a thread. Any value is allowed and brought into bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Its class.
    pub class: Class,
    /// Its weight within its group, in the fair class.
    pub weight: u32,
    /// A bit for each processor that it may run on. If none of them is there: all.
    pub affinity: u64,
    /// Number of its group.
    pub group: u32,
}

impl Attributes {
    /// A fair thread of group 0.
    pub const NORMAL: Self = Self {
        class: Class::Fair,
        weight: NORMAL_WEIGHT,
        affinity: u64::MAX,
        group: 0,
    };

    /// With a class that makes sense.
    #[inline] // In every call from another crate, several times.
    fn bounded(self) -> Self {
        let Class::Deadline { runtime, period } = self.class else {
            return self;
        };
        let period = period.clamp(PERIODS.0, PERIODS.1);
        let runtime = runtime.clamp(POLL, period);
        let class = Class::Deadline { runtime, period };
        Self { class, ..self }
    }

    pub(crate) fn weight(&self) -> u32 {
        self.weight.clamp(THREAD_WEIGHTS.0, THREAD_WEIGHTS.1)
    }

    pub(crate) fn group(&self) -> usize {
        self.group as usize % MOST_GROUPS
    }

    /// Whether it may run on `cpu` of `online` processors.
    pub(crate) fn allows(&self, cpu: usize, online: usize) -> bool {
        let all = (1 << online.min(63)) - 1;
        self.affinity & all == 0 || self.affinity >> cpu & 1 != 0
    }
}

/// Words that the policy keeps in each thread; 0 at first.
pub const WORDS: usize = 8;

/// A counted reference to a thread.
pub trait Task {
    /// What was asked for it. Changes only while it runs or before it is enqueued first.
    fn attributes(&self) -> Attributes;
    /// The policy's notes. Nobody else writes them.
    fn words(&self) -> &[AtomicU64; WORDS];
    /// The processor it ran on last.
    fn last_cpu(&self) -> usize;
}

/// What is in the words.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Word {
    /// Virtual time within its group.
    Virtual,
    /// Nanoseconds of its slice that it has used.
    Slice,
    /// Number of the group, plus one, that it counts in as ready or running.
    Counted,
    /// How it left its processor last: [`SERVICE`], [`GAVE_WAY`], [`CUT_SHORT`], [`SLICES`].
    Flags,
    /// End of its period, in the deadline class.
    Deadline,
    /// What it may still run until then.
    Budget,
    /// When it first was left where it is for being in a service; 0: it was not.
    Grace,
    /// When it began to wait last.
    Waited,
}

/// It was in a service.
pub(crate) const SERVICE: u64 = 1;
/// It gave way by itself.
pub(crate) const GAVE_WAY: u64 = 2;
/// It was taken off before its slice was over.
pub(crate) const CUT_SHORT: u64 = 4;
/// Times this: slices that it has used up in services since it waited last.
pub(crate) const SLICES: u64 = 8;

/// [`Word::Budget`] of a thread that has used up its budget in a service.
pub(crate) const OVERDRAWN: u64 = u64::MAX;

/// What was asked for a thread, in bounds.
pub(crate) fn wanted<T: Task>(task: &T) -> Attributes {
    task.attributes().bounded()
}

/// What holds for a thread now: one that has used up its budget in a service is fair for a while.
pub(crate) fn asked<T: Task>(task: &T) -> Attributes {
    granted(task, wanted(task))
}

/// The same of a thread for which `asked` was asked.
pub(crate) fn granted<T: Task>(task: &T, asked: Attributes) -> Attributes {
    let has_deadline = matches!(asked.class, Class::Deadline { .. });
    if has_deadline && get(task, Word::Budget) == OVERDRAWN {
        return Attributes {
            class: Class::Fair,
            ..asked
        };
    }
    asked
}

pub(crate) fn get<T: Task>(task: &T, word: Word) -> u64 {
    task.words()[word as usize].load(Ordering::Relaxed)
}

pub(crate) fn set<T: Task>(task: &T, word: Word, value: u64) {
    task.words()[word as usize].store(value, Ordering::Relaxed);
}

/// When and where the policy is asked.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Nanoseconds since boot.
    pub now: u64,
    /// The processor that asks.
    pub cpu: usize,
    /// Processors that there are; at least 1.
    pub online: usize,
}

/// Why a thread is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// It was just made.
    New,
    /// It waited.
    Woken,
    /// It waited, for something that is not urgent.
    WokenLater,
    /// It ran.
    Ran,
}

/// Why a thread's time is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// It goes on.
    Still,
    /// It was taken off.
    Preempted,
    /// It gave way by itself.
    Yielded,
    /// It waits now.
    Waits,
    /// It has ended.
    Ended,
}

/// Where a thread was queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The processor.
    pub cpu: usize,
    /// Whether the thread that runs there should give way at once.
    pub preempt: bool,
}

/// Who runs now.
#[derive(Debug)]
pub struct Picked<T> {
    /// Nobody: the processor idles.
    pub task: Option<T>,
    /// When the policy is to be asked again at the latest.
    pub until: u64,
}
