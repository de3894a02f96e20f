//! The table of all domains, and how one gets there.

use super::{BLOCK_BYTES, BLOCKS, Claim, ControlBlock, KERNEL, Limits, announce, make_room};
use crate::domain::group::{Group, Seat};
use crate::lock::Lock;
use crate::memory::kept::Loaded;
use crate::memory::relief;
use crate::platform::{PAGE, platform};
use crate::sync::AtomicU64;
use abi::RpcError;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use interfaces::DomainState as State;

/// What was charged to domains that are gone, in nanoseconds.
static GONE_NS: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds of processor time that were charged to the kernel itself, and to domains that are
/// gone.
pub fn other_ns() -> (u64, u64) {
    (KERNEL.own_ns(), GONE_NS.load(Ordering::Relaxed))
}

static TABLE: Lock<Table> = Lock::new(Table {
    next: abi::shared::KERNEL_OWNER + 1,
    blocks: BTreeMap::new(),
});

struct Table {
    next: u32,
    blocks: BTreeMap<u32, Arc<ControlBlock>>,
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
        .is_some_and(|payer| payer.take_memory(BLOCK_BYTES) == Claim::Refused)
    {
        return Err(RpcError::NoMemory);
    }
    let refuse = |payer: Option<Arc<Group>>| {
        payer.inspect(|payer| payer.give_memory(BLOCK_BYTES));
        Err(RpcError::NoMemory)
    };
    if make_room().is_err() {
        return refuse(payer);
    }
    let parent = starter.map_or(abi::shared::KERNEL_OWNER, |starter| starter.id);
    let name = abi::Text::name(name);
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
}
