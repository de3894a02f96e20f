//! The thread object.
//!
//! Which field belongs to whom: `context`, `top_record` and `stack` belong to the processor that
//! has the thread RUNNING (or, while it is not running, to whoever moves it out of its state, or
//! to the visitor of a stopped world); `wait_*` are guarded by the lock of the wait bucket named in
//! `wait_bucket`; `link` by the queue that the thread is in. The rest are independent atomics.

use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::{fmt, ptr};

use super::group::{self, Group};
use super::policy::{Attributes, Class};
use super::queue::Link;
use super::sched;
use crate::arch::trap::TrapFrame;
use crate::mem::kspace::Region;
use crate::time::{Alarm, Stopwatch, now_ns};

/// Names a thread; never used again after it has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadId(pub u64);

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A counted reference to a thread. It keeps the object, not the thread, alive.
pub type ThreadRef = Arc<Thread>;

/// Where a thread is in its life; the module's documentation has the diagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum State {
    /// Runnable, context saved, on no processor.
    Ready,
    /// On a processor.
    Running,
    /// On its way off a processor to wait.
    Blocking,
    /// Waiting, context saved.
    Blocked,
    /// Woken while [`State::Blocking`].
    Woken,
    /// Will never run again.
    Exited,
}

const STATES: [State; 6] = [
    State::Ready,
    State::Running,
    State::Blocking,
    State::Blocked,
    State::Woken,
    State::Exited,
];

/// A [`State`] that changes by compare-and-swap.
pub(super) struct StateWord(AtomicU32);

impl StateWord {
    pub(super) const fn new(state: State) -> Self {
        Self(AtomicU32::new(state as u32))
    }

    pub(super) fn get(&self) -> State {
        STATES[self.0.load(Ordering::Acquire) as usize]
    }

    pub(super) fn set(&self, state: State) {
        self.0.store(state as u32, Ordering::Release);
    }

    /// Changes `from` to `to`; says whether it was `from`.
    pub(super) fn change(&self, from: State, to: State) -> bool {
        self.0
            .compare_exchange(from as u32, to as u32, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// How to resume a thread that is not running.
pub(super) struct Context {
    /// Stack pointer of a voluntary switch, or 0 if `frame` is what to resume.
    pub sp: usize,
    /// Registers of a preempted thread.
    pub frame: TrapFrame,
}

/// Words of a thread that belong to the policy.
pub const POLICY_WORDS: usize = 8;

/// Bytes of a thread's name that are kept.
const NAME_BYTES: usize = 24;

/// A kernel thread.
pub struct Thread {
    id: ThreadId,
    name: [u8; NAME_BYTES],
    pub(super) state: StateWord,
    /// The processor it runs on, or ran on last.
    pub(super) cpu: AtomicUsize,
    /// Depth of [`super::PreemptOff`] guards; written by the thread itself.
    pub(super) preempt_off: AtomicU32,
    pub(super) context: UnsafeCell<Context>,
    pub(super) top_record: AtomicUsize,
    pub(crate) stack_low: usize,
    stack: UnsafeCell<Option<Region>>,
    pub(super) link: Link,
    /// Index of the wait bucket it waits in, plus one; 0 if it does not wait.
    pub(super) wait_bucket: AtomicUsize,
    pub(super) wait_key: AtomicUsize,
    pub(super) wait_result: AtomicU8,
    pub(super) wait_interruptible: AtomicBool,
    /// End of the present wait in nanoseconds since boot; `u64::MAX` for none.
    pub(super) deadline: AtomicU64,
    alarm: Alarm,
    pub(crate) interrupted: AtomicBool,
    policy_words: [AtomicU64; POLICY_WORDS],
    attributes: Attributes,
    /// The number of its group, with a count of it. Changed by the thread itself.
    pub(super) group: AtomicU32,
    /// It is about to leave its processor in favour of others.
    pub(super) gives_way: AtomicBool,
    /// Runs while the thread does.
    pub(super) watch: Stopwatch,
}

// SAFETY: the fields that are not atomics or constants are `context`, `stack` and the insides of
// `link`; the module's documentation says who alone may touch each, and each access repeats it.
unsafe impl Send for Thread {}
// SAFETY: as above.
unsafe impl Sync for Thread {}

impl Thread {
    /// A thread that will resume at stack pointer `sp` of `stack`.
    #[allow(clippy::too_many_arguments, reason = "they are its parts")]
    pub(super) fn new(
        id: ThreadId,
        name: &str,
        stack: Region,
        stack_low: usize,
        sp: usize,
        attributes: Attributes,
        group: Group,
        alarm: Alarm,
    ) -> Self {
        let mut bytes = [0; NAME_BYTES];
        // Domains choose the names of their threads, and debuggers show them on a terminal.
        let fit = name.bytes().filter(|byte| matches!(byte, b' '..=b'~'));
        for (to, from) in bytes.iter_mut().zip(fit) {
            *to = from;
        }
        Self {
            id,
            name: bytes,
            state: StateWord::new(State::Ready),
            cpu: AtomicUsize::new(0),
            preempt_off: AtomicU32::new(0),
            context: UnsafeCell::new(Context {
                sp,
                frame: TrapFrame::default(),
            }),
            top_record: AtomicUsize::new(0),
            stack_low,
            stack: UnsafeCell::new(Some(stack)),
            link: Link::new(),
            wait_bucket: AtomicUsize::new(0),
            wait_key: AtomicUsize::new(0),
            wait_result: AtomicU8::new(0),
            wait_interruptible: AtomicBool::new(false),
            deadline: AtomicU64::new(u64::MAX),
            alarm,
            interrupted: AtomicBool::new(false),
            policy_words: [const { AtomicU64::new(0) }; POLICY_WORDS],
            attributes,
            group: AtomicU32::new(group.into_number()),
            gives_way: AtomicBool::new(false),
            watch: Stopwatch::new(),
        }
    }

    /// Its id.
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// Its name, cut to 24 ASCII characters; control characters are left out.
    pub fn name(&self) -> &str {
        let end = self.name.iter().position(|b| *b == 0).unwrap_or(NAME_BYTES);
        core::str::from_utf8(&self.name[..end]).unwrap_or("?")
    }

    /// The processor it runs on, or ran on last.
    pub fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed)
    }

    /// Its state now; it may have changed when the caller looks.
    pub fn state(&self) -> State {
        self.state.get()
    }

    /// Words that the scheduler policy may use as it likes; 0 at first.
    pub fn policy_words(&self) -> &[AtomicU64; POLICY_WORDS] {
        &self.policy_words
    }

    /// What was asked for it.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The number of its group.
    pub fn group(&self) -> u32 {
        self.group.load(Ordering::Relaxed)
    }

    /// The key of its group, which is held as long as the thread is there.
    pub(super) fn group_key(&self) -> u64 {
        group::key_of(self.group())
    }

    /// Nanoseconds that it has been on a processor so far.
    pub fn processor_ns(&self) -> u64 {
        self.watch.read(now_ns())
    }

    /// End of the present wait in nanoseconds since boot.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.deadline.load(Ordering::Relaxed)
    }

    /// What ends its waits with a deadline.
    pub(crate) fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// The saved top record and, if the thread was preempted, its registers (null otherwise). Of
    /// use only while it does not run.
    pub(crate) fn saved_context(&self) -> (usize, *mut TrapFrame) {
        let context = self.context.get();
        // SAFETY: forms the address of a field, and reads the other one, which is written only on
        // the way off a processor; a torn or stale value would only be a wrong answer.
        let (sp, frame) = unsafe { ((*context).sp, &raw mut (*context).frame) };
        let frame = if sp == 0 { frame } else { ptr::null_mut() };
        (self.top_record.load(Ordering::Relaxed), frame)
    }

    /// Another counted reference to this thread.
    pub(crate) fn to_ref(&self) -> ThreadRef {
        // SAFETY: every `Thread` lives in an `Arc` (`life::spawn` is the only maker), and `&self`
        // shows that its count is not zero.
        unsafe {
            Arc::increment_strong_count(self);
            Arc::from_raw(self)
        }
    }

    /// Takes the stack out, to free it.
    ///
    /// # Safety
    /// The thread has exited, its processor has left the stack, and the caller is the only one to
    /// do this.
    pub(super) unsafe fn take_stack(&self) -> Option<Region> {
        // SAFETY: the caller is the only one to touch the field now.
        unsafe { (*self.stack.get()).take() }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        drop(Group::from_number(*self.group.get_mut()));
        if let Class::Deadline { runtime, period } = self.attributes.class {
            let cpu = self.attributes.affinity.trailing_zeros() as usize;
            sched::policy().release(cpu, runtime, period);
        }
    }
}
