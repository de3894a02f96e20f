//! The memory that one device may use: who has it, who pays for it, and when nobody may have it.
//!
//! [`crate::dma`] says what happens under which lock.

use abi::shared::KERNEL_OWNER;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use framework::dma::DmaCoherent;
use framework::dma_ledger::{Birth, Ledger, NoReset, Remains, Spares};
use framework::mem::PAGE_SIZE;
use framework::mem::untyped::Untyped;
use framework::pci::StopError;
use framework::sync::SpinLock;
use interfaces::{DmaRun, HardwareError, MemoryError, PciAddress, RpcError, RpcResult};
use isolation::ControlBlock;
use isolation::call::thread::caller;
use isolation::domain::account::{Charge, Kind};
use isolation::lock::Lock;
use services::vmo::Object;
use services::vmo::loans::{self, Pays};
use services::vmo::payer::Domain;

use crate::hardware::refusal;

/// Pages of memory objects that a device may use, and what its driver is charged with for them.
type Loans = loans::Loans<Untyped, Domain, Option<Charge>>;

/// All pools that are in use, with their devices.
static POOLS: Lock<Vec<(PciAddress, Weak<Pool>)>> = Lock::new(Vec::new());

/// What each device may still know. Its holder may map and unmap memory, as those who wait for this
/// kind of lock answer to that.
static LEDGER: SpinLock<Ledger<Left>> = SpinLock::new(Ledger::new());

/// In [`Pool::stopped_at`]: not stopped yet.
const RUNS: u64 = u64::MAX;

/// In [`Pool::noted`]: no user was.
const NOBODY: u64 = u64::MAX;

/// The memory that one device may use.
pub(super) struct Pool {
    device: PciAddress,
    birth: Birth,
    /// It serves nobody any more: a user died, and the device was stopped.
    stopped: AtomicBool,
    /// When the device was stopped, as the ledger counts; [`RUNS`] before.
    stopped_at: AtomicU64,
    state: Lock<PoolState>,
    /// The user that was noted last; [`NOBODY`] before.
    noted: AtomicU64,
    /// Pages of memory objects that the device may use.
    holds: Lock<Loans>,
}

struct PoolState {
    /// Domains that were given memory, or have started the device.
    users: Vec<u32>,
    /// Memory that is not in use, but that the device may still know. Whoever had it last pays for
    /// it.
    spare: Spares<Lent>,
}

/// Device memory, and what its user is charged with for it.
pub(super) struct Lent {
    pub(super) memory: DmaCoherent,
    charge: Option<Charge>,
}

impl Lent {
    fn pages(&self) -> usize {
        self.memory.bytes() / PAGE_SIZE
    }
}

/// What a pool leaves.
#[derive(Default)]
struct Left {
    memory: Vec<Lent>,
    holds: Loans,
}

impl Remains for Left {
    fn is_nothing(&self) -> bool {
        self.memory.is_empty() && self.holds.is_empty()
    }
}

impl Left {
    /// How much it is.
    fn bytes(&mut self) -> usize {
        let memory: usize = self.memory.iter().map(Lent::pages).sum();
        let held: usize = self.holds.each().map(|(pages, _)| pages).sum();
        (memory + held) * PAGE_SIZE
    }

    /// Charges `user` with what somebody paid for who is dead.
    fn charge_to(&mut self, user: Option<&Arc<ControlBlock>>) -> RpcResult<()> {
        let memory = self.memory.iter_mut();
        let memory = memory.map(|lent| (lent.pages(), &mut lent.charge));
        let mut unpaid = memory
            .chain(self.holds.each())
            .filter(|(_, paid)| is_unpaid(paid));
        unpaid.try_for_each(|(pages, paid)| {
            // Within a group nothing more is asked of its limit.
            let stays = paid.as_mut().zip(user);
            if !stays.is_some_and(|(paid, user)| paid.pass_to(user)) {
                *paid = charge(user, pages)?;
            }
            Ok(())
        })
    }
}

/// Who has a device hold pages: a domain's number, or the kernel's. It is the one that calls.
#[derive(Clone, Copy)]
pub(super) struct User(pub(super) u32);

impl Pays<Option<Charge>> for User {
    #[inline]
    fn pays(&self, charge: &Option<Charge>) -> bool {
        let payer = charge.as_ref().map_or(KERNEL_OWNER, |it| it.block().id);
        payer == self.0
    }

    fn charge(&self, pages: usize) -> Result<Option<Charge>, MemoryError> {
        Ok(charge(caller().as_ref(), pages)?)
    }
}

/// Whether somebody paid who is dead.
fn is_unpaid(charge: &Option<Charge>) -> bool {
    let payer = charge.as_ref().map(Charge::block);
    payer.is_some_and(|payer| !payer.is_alive())
}

/// Charges `user`, unless it is the kernel, with `pages` pages.
fn charge(user: Option<&Arc<ControlBlock>>, pages: usize) -> RpcResult<Option<Charge>> {
    let bytes = pages.checked_mul(PAGE_SIZE).ok_or(RpcError::NoMemory)?;
    let charged = |user: &Arc<ControlBlock>| {
        Charge::new(user.clone(), Kind::Dma, bytes).ok_or(RpcError::NoMemory)
    };
    user.map(charged).transpose()
}

/// A device's number in the ledger.
fn number(device: PciAddress) -> u32 {
    u32::from(device.bus) << 16 | u32::from(device.device) << 8 | u32::from(device.function)
}

/// Why a device could not be started, as it crosses to others.
pub(super) fn stop_refusal(error: StopError) -> HardwareError {
    match error {
        StopError::NoMemory => HardwareError::Rpc(RpcError::NoMemory),
        _ => HardwareError::NoSuchResource,
    }
}

impl Pool {
    /// A pool for `device`, whose memory is noted in the ledger from here on.
    pub(super) fn begin(device: PciAddress) -> RpcResult<Arc<Pool>> {
        let mut ledger = LEDGER.lock();
        let mut pools = POOLS.lock();
        pools.retain(|(_, pool)| pool.strong_count() > 0);
        pools.try_reserve(1).map_err(|_| RpcError::NoMemory)?;
        let birth = ledger.begin(number(device));
        let pool = Arc::new(Pool {
            device,
            birth: birth.map_err(|_| RpcError::NoMemory)?,
            stopped: AtomicBool::new(false),
            stopped_at: AtomicU64::new(RUNS),
            state: Lock::new(PoolState {
                users: Vec::new(),
                spare: Spares::new(),
            }),
            noted: AtomicU64::new(NOBODY),
            holds: Lock::new(Loans::default()),
        });
        pools.push((device, Arc::downgrade(&pool)));
        Ok(pool)
    }

    /// Whether it serves nobody any more.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Whether the domain `id` was given memory of it, or has started the device.
    pub(super) fn serves(&self, id: u32) -> bool {
        self.state.lock().users.contains(&id)
    }

    /// Takes back what a user had.
    pub(super) fn put_back(&self, lent: Lent) {
        self.state.lock().spare.put_back(lent);
    }

    /// Makes the device leave memory alone, once.
    pub(super) fn stop(&self) {
        if !self.stopped.swap(true, Ordering::SeqCst) {
            self.quiesce(&mut LEDGER.lock());
        }
    }

    /// Makes the device leave memory alone; whether it does now.
    fn quiesce(&self, ledger: &mut Ledger<Left>) -> bool {
        let PciAddress {
            bus,
            device,
            function,
        } = self.device;
        let now = ledger.stop(number(self.device));
        match framework::pci::quiesce(bus, device, function) {
            Ok(()) | Err(StopError::Absent) => {
                // The first time counts: what the device was told later is no business of this
                // pool.
                let stopped_at = &self.stopped_at;
                let _ = stopped_at.compare_exchange(RUNS, now, Ordering::SeqCst, Ordering::SeqCst);
                true
            }
            Err(error) => {
                ledger.runs_on(number(self.device));
                framework::kprintln!(
                    "pci {bus:02x}:{device:02x}.{function}: cannot be stopped: {error:?}"
                );
                false
            }
        }
    }

    /// Whether somebody else has a pool for the same device by now. For the last holder of this
    /// one.
    fn is_shared(&self) -> bool {
        let pools = POOLS.lock();
        let mut others = pools.iter().filter(|(device, _)| *device == self.device);
        others.any(|(_, pool)| pool.strong_count() > 0)
    }

    /// `user` says that it has reset the device: memory that it may have known before is free, and
    /// it may run.
    pub(super) fn start(&self, user: Option<&Arc<ControlBlock>>) -> Result<(), HardwareError> {
        // Noted before its life is looked at: whoever ends it after that finds it among the users,
        // and waits for the ledger to stop the device.
        self.note(user)?;
        let PciAddress {
            bus,
            device,
            function,
        } = self.device;
        let (mut free, started) = {
            let mut ledger = LEDGER.lock();
            let lives = user.is_none_or(|user| user.is_alive());
            let lives = lives && !self.stopped.load(Ordering::SeqCst);
            let free = ledger.reset(number(self.device), self.birth, lives);
            let free = free.map_err(|why| match why {
                NoReset::Outdated | NoReset::Gone => HardwareError::NoSuchResource,
                NoReset::NoMemory => HardwareError::Rpc(RpcError::NoMemory),
            })?;
            (free, framework::pci::start(bus, device, function))
        };
        if !free.is_empty() {
            framework::kprintln!(
                "pci {bus:02x}:{device:02x}.{function} was reset: {} bytes that it knew are free",
                free.iter_mut().map(Left::bytes).sum::<usize>()
            );
        }
        each_pool(|pool| pool.end_forgotten(self.device));
        started.map_err(stop_refusal)
    }

    /// Notes a user, at whose death the device is to be stopped.
    pub(super) fn note(&self, user: Option<&Arc<ControlBlock>>) -> RpcResult<()> {
        self.note_number(user.map_or(KERNEL_OWNER, |user| user.id))
    }

    /// As [`note`](Self::note), by the user's number.
    #[inline]
    fn note_number(&self, user: u32) -> RpcResult<()> {
        // Users stay noted, and nearly always there is one, who asks again and again.
        if user == KERNEL_OWNER || self.noted.load(Ordering::Acquire) == u64::from(user) {
            return Ok(());
        }
        self.note_new(user)
    }

    /// Notes a user that may be new.
    #[cold]
    fn note_new(&self, user: u32) -> RpcResult<()> {
        let mut state = self.state.lock();
        if !state.users.contains(&user) {
            let room = state.users.try_reserve(1);
            room.map_err(|_| RpcError::NoMemory)?;
            state.users.push(user);
        }
        self.noted.store(user.into(), Ordering::Release);
        Ok(())
    }

    /// Charges `user` with what the device may still know of memory whose payer is dead.
    pub(super) fn take_over(&self, user: Option<&Arc<ControlBlock>>) -> RpcResult<()> {
        let taken = LEDGER.lock().take_kept(number(self.device));
        let mut taken = taken.map_err(|_| RpcError::NoMemory)?;
        let mut all = taken.memory.iter_mut();
        let result = all.try_for_each(|left| left.charge_to(user));
        let free = LEDGER.lock().put_back(number(self.device), taken);
        drop(free);
        result
    }

    /// Gives a user what another had, if there is a piece of that length.
    pub(super) fn reuse(
        &self,
        pages: usize,
        user: Option<&Arc<ControlBlock>>,
    ) -> Result<Option<Lent>, HardwareError> {
        let Some(mut lent) = self.take(pages) else {
            return Ok(None);
        };
        let payer = lent.charge.as_ref();
        let payer = payer.map(|charge| Arc::as_ptr(charge.block()));
        if payer != user.map(Arc::as_ptr) {
            match charge(user, pages) {
                Ok(charge) => lent.charge = charge,
                Err(error) => {
                    self.state.lock().spare.put_back(lent);
                    return Err(error.into());
                }
            }
        }
        if let Err(error) = clear(&lent.memory) {
            self.state.lock().spare.put_back(lent);
            return Err(error);
        }
        Ok(Some(lent))
    }

    fn take(&self, pages: usize) -> Option<Lent> {
        let mut state = self.state.lock();
        state.spare.take(|lent| lent.pages() == pages)
    }

    /// Memory for `user` that nobody had.
    pub(super) fn extend(&self, pages: usize, user: Option<&Arc<ControlBlock>>) -> RpcResult<Lent> {
        let place = self.state.lock().spare.lend();
        place.map_err(|_| RpcError::NoMemory)?;
        new_memory(pages, user).inspect_err(|_| self.state.lock().spare.never_mind())
    }

    /// Makes room for holds, which `user` pays for, if there is none.
    pub(super) fn prepare_holds(
        &self,
        user: Option<&Arc<ControlBlock>>,
    ) -> Result<(), MemoryError> {
        if self.is_stopped() {
            return Err(RpcError::Refused.into());
        }
        self.note(user)?;
        if self.holds.lock().has_room() {
            return Ok(());
        }
        let room = Loans::with_room(charge(user, Loans::BYTES.div_ceil(PAGE_SIZE))?)?;
        let mut holds = self.holds.lock();
        let unused = match holds.has_room() {
            true => room,
            false => core::mem::replace(&mut *holds, room),
        };
        drop(holds);
        drop(unused);
        Ok(())
    }

    /// Has the device hold `runs` of pages of `object`, on behalf of `user`, in their order until
    /// one is refused: notes their numbers there, and tells `tell` the numbers of their frames. How
    /// many are held. Takes no memory for itself. There are some runs, of as many pages as can be.
    pub(super) fn hold(
        &self,
        object: &Arc<Object<Untyped>>,
        runs: &mut [DmaRun],
        user: User,
        tell: impl FnMut(u64),
    ) -> Result<usize, MemoryError> {
        // Who has a window has prepared holds.
        if self.is_stopped() {
            return Err(RpcError::Refused.into());
        }
        self.note_number(user.0)?;
        // With the lock of the holds: who ends those of a pool that was stopped finds this one, or
        // this finds that it was.
        let may = || !self.is_stopped();
        Loans::lend(&self.holds, object, runs, &user, tell, may)
    }

    /// The device uses the pages of these holds no more; whether there were all.
    pub(super) fn release(&self, numbers: &[u64]) -> bool {
        Loans::end(&self.holds, numbers)
    }

    /// Ends the holds that the device has forgotten, since it was stopped and then reset by another
    /// driver. Others may have this pool for ever.
    fn end_forgotten(&self, device: PciAddress) {
        let at = self.stopped_at.load(Ordering::SeqCst);
        let is_meant = self.device == device && self.is_stopped() && at != RUNS;
        if is_meant && LEDGER.lock().has_forgotten(number(device), at) {
            Loans::end_all(&self.holds);
        }
    }
}

impl Drop for Pool {
    /// Stops the device, unless somebody else drives it by now, and leaves the memory to the
    /// ledger.
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        let memory = self.state.lock().spare.end();
        let holds = core::mem::take(&mut *self.holds.lock());
        let left = Left { memory, holds };
        let mut ledger = LEDGER.lock();
        // It may have been stopped before, when a user died, but a thread of his that had not left
        // yet may have reached the device since.
        if !self.is_shared() && !self.quiesce(&mut ledger) {
            // Lost for ever, since the device may still write to it.
            core::mem::forget(left);
            return;
        }
        let at = self.stopped_at.load(Ordering::SeqCst);
        let stopped = (at != RUNS).then_some(at);
        let free = ledger.end(number(self.device), self.birth, stopped, left);
        drop(ledger);
        drop(free);
    }
}

/// Shows all pools that are in use to `look`, without the lock: stopping a device maps its
/// configuration space, and this may turn out to be the last share in a pool.
///
/// Backwards: what is taken off the list meanwhile brings those before it no closer to the end. It
/// takes no memory, as it is part of clearing the dead away.
pub(super) fn each_pool(mut look: impl FnMut(&Pool)) {
    let mut index = POOLS.lock().len();
    while index > 0 {
        index -= 1;
        let pool = {
            let pools = POOLS.lock();
            pools.get(index).and_then(|(_, pool)| pool.upgrade())
        };
        if let Some(pool) = pool {
            look(&pool);
        }
    }
}

/// Memory for `user` that nobody had.
fn new_memory(pages: usize, user: Option<&Arc<ControlBlock>>) -> RpcResult<Lent> {
    let charge = charge(user, pages)?;
    let attempt = || {
        let may_take = user.is_none_or(|user| user.may_take(pages));
        (may_take && crate::platform::can_spare(pages))
            .then(|| DmaCoherent::alloc(pages).ok())
            .flatten()
    };
    let memory = isolation::memory::relief::or_wait(pages * PAGE_SIZE, attempt);
    Ok(Lent {
        memory: memory.ok_or(RpcError::NoMemory)?,
        charge,
    })
}

/// Fills used memory with zeros.
fn clear(memory: &DmaCoherent) -> Result<(), HardwareError> {
    let zeros = [0; 512];
    let mut places = (0..memory.bytes()).step_by(zeros.len());
    places
        .try_for_each(|at| memory.write_bytes(at, &zeros))
        .map_err(refusal)
}
