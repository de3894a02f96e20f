//! Control blocks: what the kernel knows of every domain, the table of them, and the events of
//! their lives.
//!
//! A domain instance is `Starting` while its start function runs, `Running` while it can be called,
//! `Dying` from the moment it is dead until nobody is inside, and `Gone` when everything it owned
//! is taken back. `alive` is the only word that calls look at.

pub mod account;
pub mod group;
pub(crate) mod quota;
pub(crate) mod text;
pub mod thread;
pub(crate) mod words;

use crate::death::drops::Drops;
use crate::domain::group::{Group, GroupSpec, Seat};
use crate::domain::quota::Quota;
use crate::domain::thread::{PLACES, place};
use crate::domain::words::LastWords;
use crate::load::kept::Loaded;
use crate::load::loader::File;
use crate::lock::Lock;
use crate::memory::owner::Owner;
use crate::memory::relief;
use crate::platform::{PAGE, WaitResult, platform, wait};
use crate::sync::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use abi::RpcError;
use abi::Text;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

/// [`ControlBlock::alive`]: calls are turned away.
pub const DEAD: u32 = 0;
/// [`ControlBlock::alive`]: calls are let in.
pub const ALIVE: u32 = 1;
/// [`ControlBlock::alive`]: the next call makes the domain panic.
pub const CRASH_NEXT: u32 = 2;

/// [`ControlBlock::alive`]: calls are let in one by one, because there is a budget for those under
/// way.
pub const ALIVE_COUNTED: u32 = 3;
/// [`ControlBlock::alive`]: the domain lives on its reserve of memory; only calls that free are let
/// in.
///
/// Changes of this word, all by compare-and-swap but the last: open ([`ALIVE`] or
/// [`ALIVE_COUNTED`], for good one of the two) to `SHORT` and back by the domain's runtime; open or
/// `SHORT` to [`CRASH_NEXT`] by an operator; `CRASH_NEXT` to open by who makes it crash; anything
/// to [`DEAD`].
pub const SHORT: u32 = 4;

/// Budget of a call where neither interface nor domain says anything, in milliseconds.
pub const DEFAULT_BUDGET_MS: u32 = 5_000;

/// What a domain is doing, and why it ended: as the interfaces have it.
pub use interfaces::{CrashReason as Reason, DomainState as State};

/// What a new domain may have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Private heap, in pages. 0: no limit.
    pub pages: usize,
    /// What it owns on the shared heap, its handles included, in pages. 0: no limit.
    pub shared: usize,
    /// Threads. 0: no limit.
    pub threads: u32,
    /// Calls from other domains that are under way in it at a time. 0: no limit.
    pub calls: u32,
    /// Budget of a call, in milliseconds, where the interface says nothing or more; and how long a
    /// thread that the domain creates may run without waiting. 0: the default where the interface
    /// says nothing, and no limit for threads.
    pub call_ms: u32,
    /// While its group has less memory than this, in pages, it may use the reserve that is kept for
    /// recovery.
    pub reserve: usize,
    /// Bytes per second that it may write to the log in the long run. 0: the usual rate.
    pub log_rate: u32,
    /// The group that it belongs to.
    pub group: GroupSpec,
}

impl Limits {
    /// None at all.
    pub const NONE: Limits = Limits {
        pages: 0,
        shared: 0,
        threads: 0,
        calls: 0,
        call_ms: 0,
        reserve: 0,
        log_rate: 0,
        group: GroupSpec::NONE,
    };
}

/// The kernel's record of one domain instance. Its number is never used again.
///
/// What every call reads comes first and is written only at birth and death; what changes while the
/// domain runs is on cache lines of its own.
#[repr(C, align(64))]
pub struct ControlBlock {
    /// [`ALIVE`], [`ALIVE_COUNTED`], [`SHORT`], [`DEAD`] or [`CRASH_NEXT`].
    pub alive: AtomicU32,
    /// The instance's number.
    pub id: u32,
    image_start: AtomicUsize,
    image_end: AtomicUsize,
    /// Address of the runtime's function that panics, or 0.
    pub crash_entry: AtomicUsize,
    /// Address of the runtime's function that looks for memory, or 0.
    pub restock_entry: AtomicUsize,
    /// The instance that started it; 0: none.
    pub parent: u32,
    pub(crate) limits: Limits,
    /// The group it belongs to; `None`: it is the kernel.
    pub(crate) group: Option<Arc<Group>>,
    /// Who is charged with this block as long as it exists: the group of the domain that started
    /// this one.
    payer: Option<Arc<Group>>,
    name: Text<32>,
    /// Counters.
    pub counters: Counters,
    memory: Lock<Memory>,
    words: Lock<Option<LastWords>>,
    quota: Lock<Quota>,
    pub(crate) drops: Drops,
    calls: [Calls; PLACES],
}

/// Calls into a domain from one place. Alone on its cache line.
#[repr(align(64))]
struct Calls(AtomicU64);

/// [`ControlBlock::alive`] while calls are let in, for a domain with these limits.
const fn open(limits: &Limits) -> u32 {
    match limits.calls {
        0 => ALIVE,
        _ => ALIVE_COUNTED,
    }
}

/// What changes while a domain runs.
#[repr(align(64))]
pub struct Counters {
    state: AtomicU8,
    reason: AtomicU8,
    pub(crate) pages: AtomicUsize,
    /// Bytes that the kernel keeps for it.
    pub(crate) notes: AtomicUsize,
    /// Bytes that devices may use for it.
    pub(crate) dma: AtomicUsize,
    /// Threads that it created and that still run.
    pub threads: AtomicU32,
    /// Nanoseconds of processor time that were charged to its code, at ticks.
    own_ns: AtomicU64,
    /// Nanoseconds of processor time that those of its threads used which have ended, wherever they
    /// were.
    threads_ns: AtomicU64,
    /// Calls under way, where they are counted.
    pub(crate) calls_inside: AtomicU32,
    /// What [`crate::memory::budget`] knows of its shared memory: bytes that it may allocate before
    /// more are granted.
    pub(crate) allowance: AtomicUsize,
    /// And bytes that its group is charged with for it.
    pub(crate) granted: AtomicUsize,
    /// It is cleared away, so nothing is to be granted any more.
    pub(crate) closed: AtomicBool,
    /// When its runtime was last asked to look for memory, in nanoseconds since boot.
    pub(crate) restocked: AtomicU64,
    gone: AtomicU32,
}

struct Memory {
    /// Private heap: start address and pages of each run.
    runs: BTreeMap<usize, usize>,
    image: Option<Loaded>,
    /// Files that it had verified, and the number of the next one.
    files: BTreeMap<u64, Arc<File>>,
    next_file: u64,
}

impl ControlBlock {
    const fn new(
        id: u32,
        parent: u32,
        name: Text<32>,
        limits: Limits,
        group: Option<Arc<Group>>,
        payer: Option<Arc<Group>>,
    ) -> Self {
        ControlBlock {
            alive: AtomicU32::new(open(&limits)),
            id,
            image_start: AtomicUsize::new(0),
            image_end: AtomicUsize::new(0),
            crash_entry: AtomicUsize::new(0),
            restock_entry: AtomicUsize::new(0),
            parent,
            limits,
            group,
            payer,
            name,
            counters: Counters {
                state: AtomicU8::new(State::Starting.number()),
                reason: AtomicU8::new(Reason::None.number()),
                pages: AtomicUsize::new(0),
                notes: AtomicUsize::new(0),
                dma: AtomicUsize::new(0),
                threads: AtomicU32::new(0),
                own_ns: AtomicU64::new(0),
                threads_ns: AtomicU64::new(0),
                calls_inside: AtomicU32::new(0),
                allowance: AtomicUsize::new(0),
                granted: AtomicUsize::new(0),
                closed: AtomicBool::new(false),
                restocked: AtomicU64::new(0),
                gone: AtomicU32::new(0),
            },
            memory: Lock::new(Memory {
                runs: BTreeMap::new(),
                image: None,
                files: BTreeMap::new(),
                next_file: 0,
            }),
            words: Lock::new(None),
            quota: Lock::new(Quota::new(limits.log_rate)),
            drops: Drops::new(),
            calls: [const { Calls(AtomicU64::new(0)) }; PLACES],
        }
    }

    /// Counts a call. Two threads that count at one place may lose a count; that is the price of no
    /// atomic operation.
    #[inline(always)]
    pub fn count_call(&self) {
        let Calls(calls) = &self.calls[place()];
        calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Calls into it since its start.
    pub fn calls(&self) -> u64 {
        let calls = self.calls.iter();
        calls
            .map(|Calls(calls)| calls.load(Ordering::Relaxed))
            .sum()
    }

    /// Charges it with `ns` nanoseconds of processor time, at the end of which its code was met.
    /// The only place that does is [`crate::death::kill::tick`].
    pub(crate) fn charge(&self, ns: u64) {
        self.counters.own_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Nanoseconds of processor time that its code has used, by samples: see
    /// [`crate::death::kill::tick`].
    pub fn own_ns(&self) -> u64 {
        self.counters.own_ns.load(Ordering::Relaxed)
    }

    /// A thread that it created has ended after `ns` nanoseconds on processors.
    pub(crate) fn thread_ended(&self, ns: u64) {
        self.counters.threads_ns.fetch_add(ns, Ordering::Relaxed);
        self.give_thread();
    }

    /// Nanoseconds of processor time that those of its threads used which have ended, in it and in
    /// the domains that they called.
    pub fn threads_ns(&self) -> u64 {
        self.counters.threads_ns.load(Ordering::Relaxed)
    }

    /// It as the owner of what it has on the shared heaps.
    pub fn owner(&self) -> Owner {
        // SAFETY: the number was given to this instance; only the last one there is, which is never
        // given, stands for what is not whole.
        unsafe { Owner::new(self.id) }
    }

    /// Its name.
    pub fn name(&self) -> Text<32> {
        self.name
    }

    /// Whether calls are let in (or would crash it).
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed) != DEAD
    }

    /// Whether `address` is in its image.
    pub fn in_image(&self, address: usize) -> bool {
        let start = self.image_start.load(Ordering::Relaxed);
        (start..self.image_end.load(Ordering::Relaxed)).contains(&address)
    }

    /// Where its image starts.
    pub(crate) fn image_start(&self) -> usize {
        self.image_start.load(Ordering::Relaxed)
    }

    /// What it is doing.
    pub fn state(&self) -> State {
        let state = u64::from(self.counters.state.load(Ordering::Acquire));
        match State::from_number(state).expect("only numbers of states are stored") {
            // The reaper has not got to it yet.
            State::Starting | State::Running if !self.is_alive() => State::Dying,
            state => state,
        }
    }

    /// Whether the start of `state`, or of a later one, was announced.
    pub(crate) fn has_entered(&self, state: State) -> bool {
        self.counters.state.load(Ordering::Acquire) >= state.number()
    }

    /// Keeps what the log is to say of its crash.
    pub(crate) fn put_down(&self, words: LastWords) {
        *self.words.lock() = Some(words);
    }

    /// What the log has not said yet of its crash.
    pub(crate) fn take_words(&self) -> Option<LastWords> {
        self.words.lock().take()
    }

    /// Counts a line of `bytes` bytes that it writes to the log. How many were lost since the last
    /// one that was not; `None` if this one is.
    pub(crate) fn take_line(&self, bytes: usize) -> Option<u32> {
        let now = platform().now();
        self.quota.lock().take(now, bytes as u64)
    }

    /// Lines of its that the log has lost and does not tell of yet; they count as told.
    pub(crate) fn take_lost_lines(&self) -> u32 {
        self.quota.lock().take_lost()
    }

    /// Why it ended.
    pub fn reason(&self) -> Reason {
        let reason = u64::from(self.counters.reason.load(Ordering::Relaxed));
        Reason::from_number(reason).expect("only numbers of reasons are stored")
    }

    /// What [`alive`](Self::alive) is while calls are let in.
    pub(crate) fn open(&self) -> u32 {
        open(&self.limits)
    }

    /// Lets only calls in that free, or all again. Nothing for one that is dead or to crash.
    pub(crate) fn set_short(&self, short: bool) {
        let (from, to) = match short {
            true => (self.open(), SHORT),
            false => (SHORT, self.open()),
        };
        #[cfg(test)]
        if crate::sync::is_broken(crate::sync::Broken::OpenedBlindly) {
            if self.alive.load(Ordering::Relaxed) == from {
                crate::sync::spin();
                self.alive.store(to, Ordering::SeqCst);
            }
            return;
        }
        let _ = self
            .alive
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// Whether a call that begins now may come in, where it does not do so at once; if it was
    /// counted.
    ///
    /// # Errors
    /// Why not. What follows from [`CRASH_NEXT`] is the caller's affair.
    pub(crate) fn admit(&self, frees: bool) -> Result<bool, RpcError> {
        match self.alive.load(Ordering::Relaxed) {
            // Opened between `enter` and here.
            ALIVE => Ok(false),
            SHORT if !frees => Err(RpcError::NoMemory),
            SHORT if self.limits.calls == 0 => Ok(false),
            ALIVE_COUNTED | SHORT if self.take_call() => Ok(true),
            ALIVE_COUNTED | SHORT => Err(RpcError::Busy),
            _ => Err(RpcError::DomainCrashed),
        }
    }

    /// Bytes that it may own on the shared heap; 0: no limit.
    pub fn shared_limit(&self) -> usize {
        self.limits.shared.saturating_mul(PAGE)
    }

    /// Counts a call that begins, if there may be one more; whether there may.
    pub(crate) fn take_call(&self) -> bool {
        let before = self.counters.calls_inside.fetch_add(1, Ordering::Relaxed);
        let taken = before < self.limits.calls;
        if !taken {
            self.give_call();
        }
        taken
    }

    /// Counts the end of a call that was counted.
    pub(crate) fn give_call(&self) {
        self.counters.calls_inside.fetch_sub(1, Ordering::Relaxed);
    }

    /// Bytes of image.
    pub fn image_bytes(&self) -> usize {
        self.image_end.load(Ordering::Relaxed) - self.image_start.load(Ordering::Relaxed)
    }

    /// Milliseconds that a call may run for which the interface says `budget`; 0: it says nothing.
    pub fn budget_of(&self, budget: u32) -> u32 {
        match (budget, self.limits.call_ms) {
            (crate::call::UNBOUNDED, _) => budget,
            (0, _) => self.call_ms(),
            (_, 0) => budget,
            (_, own) => budget.min(own),
        }
    }

    /// Milliseconds that a thread which it created may run in it without waiting.
    pub fn thread_ms(&self) -> u32 {
        match self.limits.call_ms {
            0 => crate::call::UNBOUNDED,
            own => own,
        }
    }

    /// Milliseconds that a call may run where the interface says nothing.
    pub fn call_ms(&self) -> u32 {
        if self.limits.call_ms == 0 {
            DEFAULT_BUDGET_MS
        } else {
            self.limits.call_ms
        }
    }

    /// Announces the start of a new state and tells those who wait for events.
    pub(crate) fn enter_state(self: &Arc<Self>, state: State) {
        self.counters.state.store(state.number(), Ordering::Release);
        announce(self, state);
        if state == State::Gone {
            self.counters.gone.store(1, Ordering::Release);
            platform().wake(&self.counters.gone, u32::MAX);
        }
    }

    /// Announces that it has started, unless it died in doing so.
    pub(crate) fn enter_running(&self) {
        let (from, to) = (State::Starting.number(), State::Running.number());
        let changed =
            self.counters
                .state
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        if changed.is_ok() {
            announce(self, State::Running);
        }
    }

    /// Marks it dead for `reason`; whether this was the first to do so.
    pub(crate) fn die(&self, reason: Reason) -> bool {
        if self.alive.swap(DEAD, Ordering::SeqCst) == DEAD {
            return false;
        }
        self.counters
            .reason
            .store(reason.number(), Ordering::Relaxed);
        true
    }

    /// Blocks until it is gone.
    ///
    /// # Errors
    /// [`RpcError::Interrupted`] if a domain that waits here dies meanwhile.
    pub fn wait_gone(&self) -> Result<Reason, RpcError> {
        self.await_end(None).map(|_| self.reason())
    }

    /// Blocks until it is gone, until `deadline` (nanoseconds since boot) at most; whether it is.
    ///
    /// # Errors
    /// As [`wait_gone`](Self::wait_gone).
    pub fn wait_gone_until(&self, deadline: u64) -> Result<bool, RpcError> {
        self.await_end(Some(deadline))
    }

    fn await_end(&self, deadline: Option<u64>) -> Result<bool, RpcError> {
        while self.counters.gone.load(Ordering::Acquire) == 0 {
            match wait(&self.counters.gone, 0, deadline) {
                WaitResult::Interrupted => return Err(RpcError::Interrupted),
                WaitResult::TimedOut => return Ok(false),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Notes a run of the private heap.
    pub(crate) fn note_run(&self, start: NonNull<u8>, count: usize) {
        let mut memory = self.memory.lock();
        memory.runs.insert(start.as_ptr() as usize, count);
    }

    /// Takes back the note of a run; its pages.
    pub(crate) fn forget_run(&self, start: NonNull<u8>) -> Option<usize> {
        self.memory.lock().runs.remove(&(start.as_ptr() as usize))
    }

    /// Keeps a file that it had verified, until it is forgotten or this domain is gone; its number.
    /// A thread that is in the domain, or in a call of its, calls this.
    pub(crate) fn note_file(&self, file: File) -> u64 {
        let file = Arc::new(file);
        let mut memory = self.memory.lock();
        let number = memory.next_file;
        memory.next_file += 1;
        memory.files.insert(number, file);
        number
    }

    /// The file with this number, if it is still kept.
    pub(crate) fn file(&self, number: u64) -> Option<Arc<File>> {
        self.memory.lock().files.get(&number).cloned()
    }

    /// Takes back the note of a file. To be dropped without a lock.
    pub(crate) fn forget_file(&self, number: u64) -> Option<Arc<File>> {
        self.memory.lock().files.remove(&number)
    }

    /// Makes `image` its image, with which its group has been charged.
    fn set_image(&self, image: Loaded) {
        let space = image.space();
        let start = space.start().as_ptr() as usize;
        self.image_start.store(start, Ordering::Relaxed);
        self.image_end
            .store(start + space.pages() * PAGE, Ordering::Relaxed);
        self.memory.lock().image = Some(image);
    }

    /// Overwrites code at `offset` of its image with `code`, for the fault campaign; whether there
    /// is an image with so many bytes.
    ///
    /// # Safety
    /// The place is in executable pages; nobody executes code of the domain, or ends it, meanwhile;
    /// and the code can do no harm outside of the domain.
    #[cfg(feature = "faults")]
    pub unsafe fn plant(&self, offset: usize, code: &[u8]) -> bool {
        use crate::platform::Protection;
        // The lock is not held while pages change their rights, for which processors wait for each
        // other.
        let Some(mut loaded) = self.memory.lock().image.take() else {
            return false;
        };
        loaded.is_altered();
        let image = loaded.space();
        let end = offset.saturating_add(code.len());
        let fits = !code.is_empty() && end <= image.pages() * PAGE;
        if fits {
            let first = offset / PAGE;
            let count = end.div_ceil(PAGE) - first;
            image.protect(first, count, Protection::ReadWrite);
            // SAFETY: inside the image, writable now; by the caller's duty nobody executes it.
            unsafe {
                let target = image.start().as_ptr().add(offset);
                target.copy_from_nonoverlapping(code.as_ptr(), code.len());
            }
            image.protect(first, count, Protection::ReadExecute);
        }
        self.memory.lock().image = Some(loaded);
        fits
    }

    /// Frees private heap, verified files and image, unless that is kept for the next instance;
    /// bytes without those of files. Nobody is inside.
    pub(crate) fn free_memory(&self) -> usize {
        let (runs, image, files) = {
            let mut memory = self.memory.lock();
            let runs = core::mem::take(&mut memory.runs);
            let files = core::mem::take(&mut memory.files);
            (runs, memory.image.take(), files)
        };
        drop(files);
        let bytes = self.heap_bytes() + self.image_bytes();
        self.give_memory(self.heap_charge(runs.len()) + self.image_bytes());
        for (start, count) in runs {
            if let Some(start) = NonNull::new(start as *mut u8) {
                // SAFETY: the run belonged to the dead domain alone.
                unsafe { platform().free_pages(start, count) };
            }
        }
        self.counters.pages.store(0, Ordering::Relaxed);
        self.image_start.store(0, Ordering::Relaxed);
        self.image_end.store(0, Ordering::Relaxed);
        if let Some(image) = image {
            image.retire();
        }
        bytes
    }
}

static KERNEL: ControlBlock = ControlBlock::new(
    abi::shared::KERNEL_OWNER,
    0,
    Text::empty(),
    Limits {
        call_ms: u32::MAX,
        ..Limits::NONE
    },
    None,
    None,
);

/// The kernel's own control block: callee of calls to kernel objects. It never dies.
pub fn kernel_block() -> *const ControlBlock {
    &raw const KERNEL
}

/// What was charged to domains that are gone, in nanoseconds.
static GONE_NS: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds of processor time that were charged to the kernel itself, and to domains that are
/// gone.
pub fn other_ns() -> (u64, u64) {
    (KERNEL.own_ns(), GONE_NS.load(Ordering::Relaxed))
}

/// A share in a control block; for the kernel's own, which is static, none is needed.
#[derive(Clone)]
pub enum BlockRef {
    /// The kernel.
    Kernel,
    /// A domain.
    Domain(Arc<ControlBlock>),
}

impl BlockRef {
    /// The block's address.
    pub fn as_ptr(&self) -> *const ControlBlock {
        match self {
            BlockRef::Kernel => kernel_block(),
            BlockRef::Domain(block) => Arc::as_ptr(block),
        }
    }

    /// The block.
    pub(crate) fn block(&self) -> &ControlBlock {
        match self {
            BlockRef::Kernel => &KERNEL,
            BlockRef::Domain(block) => block,
        }
    }

    /// The domain, unless it is the kernel.
    pub fn domain(&self) -> Option<&Arc<ControlBlock>> {
        match self {
            BlockRef::Kernel => None,
            BlockRef::Domain(block) => Some(block),
        }
    }
}

static TABLE: Lock<Table> = Lock::new(Table {
    next: abi::shared::KERNEL_OWNER + 1,
    blocks: BTreeMap::new(),
});

struct Table {
    next: u32,
    blocks: BTreeMap<u32, Arc<ControlBlock>>,
}

/// What a control block is charged with, in bytes: the block, its group, and their places in
/// tables.
const BLOCK_BYTES: usize = size_of::<ControlBlock>() + size_of::<Group>() + 128;

/// Control blocks that there are, also of domains that are gone, without the kernel's own.
static BLOCKS: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

/// Counts one more block, and makes room for it wherever a dead domain waits; whether there is.
fn make_room() -> bool {
    let count = BLOCKS.fetch_add(1, Ordering::Relaxed) + 1;
    let is_room =
        crate::death::kill::make_room(count) && crate::death::undertaker::make_room(count);
    if !is_room {
        BLOCKS.fetch_sub(1, Ordering::Relaxed);
    }
    is_room
}

impl Drop for ControlBlock {
    fn drop(&mut self) {
        BLOCKS.fetch_sub(1, Ordering::Relaxed);
        if let Some(payer) = &self.payer {
            payer.give_memory(BLOCK_BYTES);
        }
    }
}

/// The domain that starts another: the one whose code runs, or that called the kernel object whose
/// code runs. `None`: the kernel.
pub(crate) fn starter() -> Option<Arc<ControlBlock>> {
    match crate::domain::thread::current_id() {
        abi::shared::KERNEL_OWNER => caller(),
        id => find(id),
    }
}

/// A new domain in state `Starting` with `image`, which `starter` starts and which takes `seat` in
/// a group. From the moment at which it can be found anybody may end it, so it has all by then that
/// it was charged with.
///
/// # Errors
/// [`RpcError::NoMemory`] when only the kernel's own reserve is left, the starter may have no more,
/// or four thousand million instances have lived.
pub(crate) fn create(
    name: &str,
    limits: Limits,
    starter: Option<&Arc<ControlBlock>>,
    seat: Seat,
    image: Loaded,
) -> Result<Arc<ControlBlock>, RpcError> {
    // The block lies in the kernel's heap, and stays as long as a handle names it. An image that
    // was kept took no memory that could have been refused.
    let spare = || (platform().can_spare(1) && seat.may_take(1, &limits)).then_some(());
    relief::or_wait(PAGE, spare).ok_or(RpcError::NoMemory)?;
    let payer = starter.and_then(|starter| starter.group().cloned());
    if payer
        .as_ref()
        .is_some_and(|payer| !payer.take_memory(BLOCK_BYTES))
    {
        return Err(RpcError::NoMemory);
    }
    let refuse = |payer: Option<Arc<Group>>| {
        payer.inspect(|payer| payer.give_memory(BLOCK_BYTES));
        Err(RpcError::NoMemory)
    };
    if !make_room() {
        return refuse(payer);
    }
    let parent = starter.map_or(abi::shared::KERNEL_OWNER, |starter| starter.id);
    let name = crate::domain::text::clean(name);
    let mut table = TABLE.lock();
    let id = table.next;
    let Some(next) = id.checked_add(1) else {
        drop(table);
        BLOCKS.fetch_sub(1, Ordering::Relaxed);
        return refuse(payer);
    };
    // The last number is never given: it stands for what is not whole.
    table.next = next;
    let group = Some(seat.take());
    let block = Arc::new(ControlBlock::new(id, parent, name, limits, group, payer));
    block.set_image(image);
    table.blocks.insert(id, block.clone());
    drop(table);
    announce(&block, State::Starting);
    Ok(block)
}

/// The number of the domain that called the kernel object whose code runs; 0: the kernel itself.
pub fn caller_id() -> u32 {
    caller().map_or(0, |block| block.id)
}

/// The domain that called the kernel object whose code runs.
pub fn caller() -> Option<Arc<ControlBlock>> {
    let top = crate::domain::thread::top();
    // SAFETY: records of the running thread; the block that one names is not freed.
    let id = unsafe {
        let previous = (!top.is_null()).then(|| (*top).previous)?;
        (!previous.is_null()).then(|| (*(*previous).domain).id)?
    };
    find(id)
}

/// The domain with this number, if it is not gone.
pub fn find(id: u32) -> Option<Arc<ControlBlock>> {
    TABLE.lock().blocks.get(&id).cloned()
}

/// The first domain with a number of at least `from` that is not gone.
pub fn next(from: u32) -> Option<Arc<ControlBlock>> {
    TABLE
        .lock()
        .blocks
        .range(from..)
        .next()
        .map(|(_, block)| block.clone())
}

/// Takes a domain that is gone off the table.
pub(crate) fn forget(id: u32) {
    let Some(block) = TABLE.lock().blocks.remove(&id) else {
        return;
    };
    GONE_NS.fetch_add(block.own_ns(), Ordering::Relaxed);
    if let Some(group) = &block.group {
        group.leave();
    }
}

/// Something that happened to a domain.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Consecutive number, from 1.
    pub number: u64,
    /// The instance.
    pub id: u32,
    /// Its name.
    pub name: Text<32>,
    /// The state it entered.
    pub state: State,
    /// Why it ended, if it did.
    pub reason: Reason,
}

/// Events that are kept.
const KEPT_EVENTS: usize = 256;

static EVENTS: Lock<VecDeque<Event>> = Lock::new(VecDeque::new());
static EVENT_COUNT: AtomicU32 = AtomicU32::new(0);
static EVENT_NUMBER: AtomicU64 = AtomicU64::new(0);

fn announce(block: &ControlBlock, state: State) {
    let mut events = EVENTS.lock();
    if events.len() == KEPT_EVENTS {
        events.pop_front();
    }
    let number = EVENT_NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
    events.push_back(Event {
        number,
        id: block.id,
        name: block.name,
        state,
        reason: block.reason(),
    });
    EVENT_COUNT.store(number as u32, Ordering::Release);
    drop(events);
    platform().wake(&EVENT_COUNT, u32::MAX);
}

/// Blocks until an event with a number above `after` has happened; the oldest such that is kept.
///
/// # Errors
/// [`RpcError::Interrupted`] if a domain that waits here dies meanwhile.
pub fn wait_event(after: u64) -> Result<Event, RpcError> {
    loop {
        let seen = EVENT_COUNT.load(Ordering::Acquire);
        if let Some(event) = EVENTS.lock().iter().find(|event| event.number > after) {
            return Ok(*event);
        }
        if wait(&EVENT_COUNT, seen, None) == WaitResult::Interrupted {
            return Err(RpcError::Interrupted);
        }
    }
}

/// Reserves the memory for events, so that a death needs none.
pub(crate) fn prepare_events() {
    EVENTS.lock().reserve(KEPT_EVENTS);
}
