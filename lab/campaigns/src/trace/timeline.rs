//! What the events mean, as [`builder`](super::builder) finds it.

use std::collections::BTreeMap;

use interfaces::DomainState;

use super::names::Domains;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned.
    Returned,
    /// It returned an `RpcError`.
    Failed,
    /// Its thread left without returning, because its caller had died.
    Left,
    /// It was not over when the trace was.
    Open,
    /// Events were lost while it ran, and its end may be among them.
    Unknown,
}

/// A call from a domain into another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Nanoseconds since boot.
    pub from: u64,
    /// Likewise.
    pub to: u64,
    /// The thread, by the number of [`Thread`].
    pub thread: u64,
    /// Number of the domain that calls; 0: the kernel.
    pub caller: u32,
    /// Number of the domain that is called.
    pub callee: u32,
    /// `Block.open`.
    pub method: String,
    /// `sector 12, buffer 4096 elements`.
    pub arguments: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The same was asked of an earlier instance, and failed.
    pub repeats: bool,
}

/// Why a thread does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It waits for something.
    Waits,
    /// It waits for a processor.
    Ready,
}

/// What a thread did.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// The domain in which it was met first.
    pub home: u32,
    /// The domain in which the longest of its outermost calls was, and how long.
    pub inside: Option<(u32, u64)>,
    /// From, until, why.
    pub pauses: Vec<(u64, u64, Pause)>,
}

/// A thread on a processor, in one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Nanoseconds since boot.
    pub from: u64,
    /// Likewise.
    pub to: u64,
    /// The thread.
    pub thread: u64,
    /// The domain.
    pub domain: u32,
}

/// What a processor did.
#[derive(Clone, Debug, Default)]
pub struct Processor {
    /// What ran on it.
    pub runs: Vec<Run>,
    /// From, until, number.
    pub interrupts: Vec<(u64, u64, u64)>,
}

/// What sort of moment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A domain crashed or was ended.
    Death,
    /// A domain, a program most of the time, came to its end.
    End,
    /// A domain was started.
    Start,
    /// A domain of a name was started of which another instance had died.
    Restart,
    /// A call repeats one that failed.
    Repeat,
    /// Events were lost.
    Lost,
}

/// A moment that is worth to be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Nanoseconds since boot.
    pub at: u64,
    /// What sort.
    pub kind: MarkKind,
    /// What it says.
    pub text: String,
    /// The thread that did it, where that matters.
    pub thread: Option<u64>,
}

/// Part of the life of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Nanoseconds since boot.
    pub from: u64,
    /// Likewise.
    pub to: u64,
    /// Number of the domain.
    pub domain: u32,
    /// What it did then.
    pub state: DomainState,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The first moment.
    pub from: u64,
    /// The last one.
    pub to: u64,
    /// Events that were read.
    pub events: usize,
    /// Events that were lost.
    pub lost: u64,
    /// From, until, how many.
    pub gaps: Vec<(u64, u64, u64)>,
    /// By number.
    pub processors: Vec<Processor>,
    /// By number; those whose number is not known are above `NAMELESS`.
    pub threads: BTreeMap<u64, Thread>,
    /// By their beginnings.
    pub calls: Vec<Call>,
    /// By their time.
    pub marks: Vec<Mark>,
    /// Of all domains that died.
    pub stages: Vec<Stage>,
    /// Their names.
    pub domains: Domains,
}

/// Added to the stack of a thread whose number nobody knows.
pub const NAMELESS: u64 = 1 << 40;

impl Timeline {
    /// The marks of this kind.
    pub fn marked(&self, kind: MarkKind) -> impl Iterator<Item = &Mark> {
        self.marks.iter().filter(move |mark| mark.kind == kind)
    }
}
