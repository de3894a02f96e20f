//! Control blocks: what the kernel knows of every domain, the table of them, and the events of their lives.
//!
//! A domain instance is `Starting` while its start function runs, `Running` while it can be called, `Dying`
//! from the moment it is dead until nobody is inside, and `Gone` when everything it owned is taken back.
//! `alive` is the only word that calls look at.

use crate::lock::Lock;
use crate::platform::{ImageSpace, PAGE, WaitResult, platform, wait};
use abi::RpcError;
use abi::Text;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// [`ControlBlock::alive`]: calls are turned away.
pub const DEAD: u32 = 0;
/// [`ControlBlock::alive`]: calls are let in.
pub const ALIVE: u32 = 1;
/// [`ControlBlock::alive`]: the next call makes the domain panic.
pub const CRASH_NEXT: u32 = 2;

/// Budget of a call where neither interface nor domain says anything, in milliseconds.
pub const DEFAULT_BUDGET_MS: u32 = 5_000;

/// Most pages in one run; far more than any machine has, and far from where sums of pages overflow.
const MOST_PAGES: usize = 1 << 32;

/// What a domain is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Its start function runs.
    Starting,
    /// It can be called.
    Running,
    /// It is dead, but threads may still be inside.
    Dying,
    /// Everything that it owned is taken back.
    Gone,
}

/// Why a domain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// It did not.
    None,
    /// It panicked.
    Panic,
    /// It touched memory that is not there or not for this.
    PageFault,
    /// It used up its stack.
    StackOverflow,
    /// It divided by zero.
    DivideError,
    /// It ran into an instruction that does not exist.
    InvalidOpcode,
    /// Another processor exception.
    Exception,
    /// A call ran longer than its budget.
    Hang,
    /// It was ended from outside.
    Killed,
    /// It came to its own end.
    Exited,
}

/// What a new domain may have.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Private heap, in pages. 0: no limit.
    pub pages: usize,
    /// Threads. 0: no limit.
    pub threads: u32,
    /// Budget of a call, in milliseconds, where the interface says nothing or more; and how long a thread
    /// that the domain creates may run without waiting. 0: the default where the interface says nothing, and
    /// no limit for threads.
    pub call_ms: u32,
}

/// The kernel's record of one domain instance. Its number is never used again.
///
/// What every call reads comes first and is written only at birth and death; what changes while the domain
/// runs is on cache lines of its own.
#[repr(C, align(64))]
pub struct ControlBlock {
    /// [`ALIVE`], [`DEAD`] or [`CRASH_NEXT`].
    pub alive: AtomicU32,
    /// The instance's number.
    pub id: u32,
    image_start: AtomicUsize,
    image_end: AtomicUsize,
    /// Address of the runtime's function that panics, or 0.
    pub crash_entry: AtomicUsize,
    /// The instance that started it; 0: none.
    pub parent: u32,
    limits: Limits,
    name: Text<32>,
    /// Counters.
    pub counters: Counters,
    memory: Lock<Memory>,
}

/// What changes while a domain runs.
#[repr(align(64))]
pub struct Counters {
    state: AtomicU8,
    reason: AtomicU8,
    /// Calls into it through proxies that are gone; those through live ones are counted in the proxies.
    pub calls: AtomicU64,
    pages: AtomicUsize,
    /// Threads that it created and that still run.
    pub threads: AtomicU32,
    gone: AtomicU32,
}

struct Memory {
    /// Private heap: start address and pages of each run.
    runs: BTreeMap<usize, usize>,
    image: Option<Box<dyn ImageSpace>>,
}

impl ControlBlock {
    const fn new(id: u32, parent: u32, name: Text<32>, limits: Limits) -> Self {
        ControlBlock {
            alive: AtomicU32::new(ALIVE),
            id,
            image_start: AtomicUsize::new(0),
            image_end: AtomicUsize::new(0),
            crash_entry: AtomicUsize::new(0),
            parent,
            limits,
            name,
            counters: Counters {
                state: AtomicU8::new(State::Starting as u8),
                reason: AtomicU8::new(Reason::None as u8),
                calls: AtomicU64::new(0),
                pages: AtomicUsize::new(0),
                threads: AtomicU32::new(0),
                gone: AtomicU32::new(0),
            },
            memory: Lock::new(Memory {
                runs: BTreeMap::new(),
                image: None,
            }),
        }
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
        match self.counters.state.load(Ordering::Acquire) {
            0 => State::Starting,
            1 => State::Running,
            2 => State::Dying,
            _ => State::Gone,
        }
    }

    /// Why it ended.
    pub fn reason(&self) -> Reason {
        use Reason::*;
        const ALL: [Reason; 10] = [
            None,
            Panic,
            PageFault,
            StackOverflow,
            DivideError,
            InvalidOpcode,
            Exception,
            Hang,
            Killed,
            Exited,
        ];
        ALL[usize::from(self.counters.reason.load(Ordering::Relaxed)) % ALL.len()]
    }

    /// Bytes of private heap.
    pub fn heap_bytes(&self) -> usize {
        self.counters.pages.load(Ordering::Relaxed) * PAGE
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
        self.counters.state.store(state as u8, Ordering::Release);
        announce(self, state);
        if state == State::Gone {
            self.counters.gone.store(1, Ordering::Release);
            platform().wake(&self.counters.gone, u32::MAX);
        }
    }

    /// Announces that it has started, unless it died in doing so.
    pub(crate) fn enter_running(&self) {
        let (from, to) = (State::Starting as u8, State::Running as u8);
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
        self.counters.reason.store(reason as u8, Ordering::Relaxed);
        true
    }

    /// Blocks until it is gone.
    ///
    /// # Errors
    /// [`RpcError::Interrupted`] if a domain that waits here dies meanwhile.
    pub fn wait_gone(&self) -> Result<Reason, RpcError> {
        while self.counters.gone.load(Ordering::Acquire) == 0 {
            if wait(&self.counters.gone, 0, None) == WaitResult::Interrupted {
                return Err(RpcError::Interrupted);
            }
        }
        Ok(self.reason())
    }

    /// Counts a new thread.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`] over the limit.
    pub(crate) fn take_thread(&self) -> Result<(), RpcError> {
        let before = self.counters.threads.fetch_add(1, Ordering::Relaxed);
        if self.limits.threads != 0 && before >= self.limits.threads {
            self.counters.threads.fetch_sub(1, Ordering::Relaxed);
            return Err(RpcError::NoMemory);
        }
        Ok(())
    }

    /// `count` zeroed pages for the private heap.
    pub(crate) fn take_pages(&self, count: usize) -> Option<NonNull<u8>> {
        if count > MOST_PAGES {
            return None;
        }
        let before = self.counters.pages.fetch_add(count, Ordering::Relaxed);
        let allowed = self.limits.pages == 0 || before.saturating_add(count) <= self.limits.pages;
        let pages = if allowed {
            platform().pages(count)
        } else {
            None
        };
        match pages {
            Some(start) => {
                self.memory
                    .lock()
                    .runs
                    .insert(start.as_ptr() as usize, count);
            }
            None => {
                self.counters.pages.fetch_sub(count, Ordering::Relaxed);
            }
        }
        pages
    }

    /// Gives back pages of the private heap, if they are a run that [`take_pages`](Self::take_pages) gave.
    pub(crate) fn give_pages(&self, start: NonNull<u8>) {
        let Some(count) = self.memory.lock().runs.remove(&(start.as_ptr() as usize)) else {
            return;
        };
        self.counters.pages.fetch_sub(count, Ordering::Relaxed);
        // SAFETY: the run was the domain's and is not any more.
        unsafe { platform().free_pages(start, count) };
    }

    /// Makes `space` its image.
    pub(crate) fn set_image(&self, space: Box<dyn ImageSpace>) {
        let start = space.start().as_ptr() as usize;
        self.image_start.store(start, Ordering::Relaxed);
        self.image_end
            .store(start + space.pages() * PAGE, Ordering::Relaxed);
        self.memory.lock().image = Some(space);
    }

    /// Overwrites code at `offset` of its image with `code`, for the fault campaign; whether there is an
    /// image with so many bytes.
    ///
    /// # Safety
    /// The place is in executable pages; nobody executes code of the domain, or ends it, meanwhile; and the
    /// code can do no harm outside of the domain.
    #[cfg(feature = "faults")]
    pub unsafe fn plant(&self, offset: usize, code: &[u8]) -> bool {
        use crate::platform::Protection;
        // The lock is not held while pages change their rights, for which processors wait for each other.
        let Some(image) = self.memory.lock().image.take() else {
            return false;
        };
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
        self.memory.lock().image = Some(image);
        fits
    }

    /// Frees private heap and image; bytes. Nobody is inside.
    pub(crate) fn free_memory(&self) -> usize {
        let (runs, image) = {
            let mut memory = self.memory.lock();
            (core::mem::take(&mut memory.runs), memory.image.take())
        };
        let bytes = self.heap_bytes() + self.image_bytes();
        for (start, count) in runs {
            if let Some(start) = NonNull::new(start as *mut u8) {
                // SAFETY: the run belonged to the dead domain alone.
                unsafe { platform().free_pages(start, count) };
            }
        }
        self.counters.pages.store(0, Ordering::Relaxed);
        self.image_start.store(0, Ordering::Relaxed);
        self.image_end.store(0, Ordering::Relaxed);
        drop(image);
        bytes
    }
}

static KERNEL: ControlBlock = ControlBlock::new(
    abi::shared::KERNEL_OWNER,
    0,
    Text::empty(),
    Limits {
        pages: 0,
        threads: 0,
        call_ms: u32::MAX,
    },
);

/// The kernel's own control block: callee of calls to kernel objects. It never dies.
pub fn kernel_block() -> *const ControlBlock {
    &raw const KERNEL
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

/// A new domain in state `Starting`.
///
/// # Errors
/// [`RpcError::NoMemory`] when four thousand million instances have lived.
pub(crate) fn create(name: &str, limits: Limits) -> Result<Arc<ControlBlock>, RpcError> {
    let parent = crate::thread::current_id();
    let parent = if parent == abi::shared::KERNEL_OWNER {
        caller_id()
    } else {
        parent
    };
    let mut table = TABLE.lock();
    let id = table.next;
    table.next = id.checked_add(1).ok_or(RpcError::NoMemory)?;
    let name = crate::text::clean(name);
    let block = Arc::new(ControlBlock::new(id, parent, name, limits));
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
    let top = crate::thread::top();
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
    TABLE.lock().blocks.remove(&id);
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
