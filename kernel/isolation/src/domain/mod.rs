//! Control blocks: what the kernel knows of every domain, the table of them, and the events of
//! their lives.
//!
//! A domain instance is `Starting` while its start function runs, `Running` while it can be called,
//! `Dying` from the moment it is dead until nobody is inside, and `Gone` when everything it owned
//! is taken back. `alive` is the only word that calls look at.

pub mod account;
mod admission;
pub mod budget;
mod claim;
pub(crate) mod debugger;
mod events;
pub(crate) mod exports;
pub mod group;
mod holdings;
mod life;
mod limits;
mod log;
pub(crate) mod queues;
pub(crate) mod quota;
mod reference;
mod table;
pub(crate) mod text;
pub(crate) mod times;
pub(crate) mod trace;
pub(crate) mod words;

pub(crate) use admission::Admitted;
use admission::open;
pub use claim::Claim;
use events::announce;
pub(crate) use events::prepare_events;
pub use events::{Event, wait_event};
use holdings::Memory;
pub(crate) use life::Died;
pub use life::Ended;
pub use limits::Limits;
use reference::KERNEL;
pub use reference::{BlockRef, kernel_block};
pub(crate) use table::{create, forget};
pub use table::{find, next, other_ns};
use times::{Calls, PLACES};

use crate::domain::exports::Drops;
use crate::domain::group::Group;
use crate::domain::quota::Quota;
use crate::domain::words::LastWords;
use crate::lock::Lock;
use crate::memory::owner::Owner;
use crate::platform::PAGE;
use crate::sync::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use abi::{RpcError, Text};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
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

/// A budget of no limit, in milliseconds.
pub const UNBOUNDED: u32 = u32::MAX;

/// Budget of a call where neither interface nor domain says anything, in milliseconds.
pub const DEFAULT_BUDGET_MS: u32 = 5_000;

/// What a domain is doing, and why it ended: as the interfaces have it.
pub use interfaces::{CrashReason as Reason, DomainState as State};

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
    /// What tells its image from all others: the beginning of its signature.
    pub(crate) build: AtomicU64,
    /// Counters.
    pub counters: Counters,
    memory: Lock<Memory>,
    words: Lock<LastWords>,
    quota: Lock<Quota>,
    pub(crate) drops: Drops,
    calls: [Calls; PLACES],
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
    /// Bytes of memory objects that it pays for.
    pub(crate) objects: AtomicUsize,
    /// Threads that it created and that still run.
    pub threads: AtomicU32,
    /// Its objects that others have handles to, or whose drop is not over.
    pub(crate) exports: AtomicUsize,
    /// Bytes that it is charged with for them.
    pub(crate) stacks: AtomicUsize,
    /// Nanoseconds of processor time that were charged to its code, at ticks.
    own_ns: AtomicU64,
    /// Nanoseconds of processor time that those of its threads used which have ended, wherever they
    /// were.
    threads_ns: AtomicU64,
    /// Calls under way, where they are counted.
    pub(crate) calls_inside: AtomicU32,
    /// What [`crate::domain::budget`] knows of its shared memory: bytes that it may allocate before
    /// more are granted.
    pub(crate) allowance: AtomicUsize,
    /// And bytes that its group is charged with for it.
    pub(crate) granted: AtomicUsize,
    /// A stack of a thread inside of it, dead, is noted or told.
    pub(crate) told: AtomicBool,
    /// It is cleared away, so nothing is to be granted any more.
    pub(crate) closed: AtomicBool,
    /// When its runtime was last asked to look for memory, in nanoseconds since boot.
    pub(crate) restocked: AtomicU64,
    gone: AtomicU32,
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
            build: AtomicU64::new(0),
            counters: Counters {
                state: AtomicU8::new(State::Starting.number()),
                reason: AtomicU8::new(Reason::None.number()),
                pages: AtomicUsize::new(0),
                notes: AtomicUsize::new(0),
                dma: AtomicUsize::new(0),
                objects: AtomicUsize::new(0),
                threads: AtomicU32::new(0),
                exports: AtomicUsize::new(0),
                stacks: AtomicUsize::new(0),
                own_ns: AtomicU64::new(0),
                threads_ns: AtomicU64::new(0),
                calls_inside: AtomicU32::new(0),
                allowance: AtomicUsize::new(0),
                granted: AtomicUsize::new(0),
                told: AtomicBool::new(false),
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
            words: Lock::new(LastWords::NONE),
            quota: Lock::new(Quota::new(limits.log_rate)),
            drops: Drops::new(),
            calls: [const { Calls(AtomicU64::new(0)) }; PLACES],
        }
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

    /// Bytes that it may own on the shared heap; 0: no limit.
    pub fn shared_limit(&self) -> usize {
        self.limits.shared.saturating_mul(PAGE)
    }

    /// Bytes of image.
    pub fn image_bytes(&self) -> usize {
        self.image_end.load(Ordering::Relaxed) - self.image_start.load(Ordering::Relaxed)
    }

    /// Milliseconds that a call may run for which the interface says `budget`; 0: it says nothing.
    pub fn budget_of(&self, budget: u32) -> u32 {
        match (budget, self.limits.call_ms) {
            (UNBOUNDED, _) => budget,
            (0, _) => self.call_ms(),
            (_, 0) => budget,
            (_, own) => budget.min(own),
        }
    }

    /// Milliseconds that a thread which it created may run in it without waiting.
    pub fn thread_ms(&self) -> u32 {
        match self.limits.call_ms {
            0 => UNBOUNDED,
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
}

/// What a control block is charged with, in bytes: the block, its group, and their places in
/// tables.
const BLOCK_BYTES: usize = size_of::<ControlBlock>() + size_of::<Group>() + 128;

/// Control blocks that there are, also of domains that are gone, without the kernel's own.
static BLOCKS: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

/// For so many blocks room has been made wherever a dead domain waits. What waits there keeps its
/// memory, so there is never less.
static ROOM: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

/// Counts one more block, and makes room for it wherever a dead domain waits.
///
/// # Errors
/// [`RpcError::NoMemory`]; it is not counted then.
fn make_room() -> Result<(), RpcError> {
    let count = BLOCKS.fetch_add(1, Ordering::Relaxed) + 1;
    if count <= ROOM.load(Ordering::Relaxed) {
        return Ok(());
    }
    queues::make_room(count)
        .inspect(|()| _ = ROOM.fetch_max(count, Ordering::Relaxed))
        .inspect_err(|_| _ = BLOCKS.fetch_sub(1, Ordering::Relaxed))
}

impl Drop for ControlBlock {
    fn drop(&mut self) {
        BLOCKS.fetch_sub(1, Ordering::Relaxed);
        if let Some(payer) = &self.payer {
            payer.give_memory(BLOCK_BYTES);
        }
    }
}
