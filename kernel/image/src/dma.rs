//! DMA memory as interface objects; [`pool`] has the memory of each device.
//!
//! A device may write to its DMA memory at any time, so that memory is not given back while the
//! device could still do it. Buffers that a driver drops go back to the device's pool. When a
//! domain that used a pool dies, its device is stopped at once (bus mastering off), before anything
//! is freed and before a successor starts. When the pool ends, its memory is kept until a successor
//! has reset the device: see [`framework::dma_ledger`].
//!
//! What is kept is charged to who had it. When he is dead, whoever takes memory for the device pays
//! for it, until he has said that the device is reset.
//!
//! What happens to a device (it is started or stopped, a pool begins or ends) happens under the
//! lock of the ledger, one after the other. No pool is dropped under it.

mod pool;

use alloc::sync::Arc;
use framework::dma::DmaCoherent;
use framework::mem::PAGE_SIZE;
use framework::mem::phys_to_virt;
use framework::mem::untyped::Untyped;
use interfaces::{
    DmaAllocator, DmaDirection, DmaMemory, DmaRun, DmaWindow, Handle, HardwareError, MemoryError,
    PciAddress, RVec, RpcError, RpcResult, VmoRights, VmoView,
};
use isolation::call::thread::{caller, caller_id};
use pool::{Lent, Pool, User, each_pool, stop_refusal};
use services::vmo::Object;
use services::vmo::object::MOST_LENT;

/// Runs that are held or released by one call.
const MOST_RUNS: usize = 64;

/// An allocator of memory for a device.
///
/// # Errors
/// [`HardwareError::NoSuchResource`]: no device answers there. [`RpcError::NoMemory`].
pub fn allocator(device: PciAddress) -> Result<Handle<dyn DmaAllocator>, HardwareError> {
    let PciAddress {
        bus,
        device: place,
        function,
    } = device;
    framework::pci::answers(bus, place, function).map_err(stop_refusal)?;
    // The pool lies in the kernel's heap.
    if !isolation::platform::platform().can_note() {
        return Err(RpcError::NoMemory.into());
    }
    let pool = Pool::begin(device)?;
    Ok(Handle::new(AllocatorObject(pool))?)
}

/// Stops every device that works for the dead domain `id`.
pub fn stop_devices_of(id: u32) {
    each_pool(|pool| {
        if pool.serves(id) {
            pool.stop();
        }
    });
}

struct AllocatorObject(Arc<Pool>);

impl DmaAllocator for AllocatorObject {
    fn reset_done(&self) -> Result<(), HardwareError> {
        self.0.start(caller().as_ref())
    }

    fn allocate(&self, pages: u32) -> Result<Handle<dyn DmaMemory>, HardwareError> {
        let pages = pages as usize;
        if pages == 0 || self.0.is_stopped() {
            return Err(HardwareError::NoSuchResource);
        }
        let user = caller();
        self.0.note(user.as_ref())?;
        self.0.take_over(user.as_ref())?;
        let lent = match self.0.reuse(pages, user.as_ref())? {
            Some(lent) => lent,
            None => self.0.extend(pages, user.as_ref())?,
        };
        Ok(Handle::new(MemoryObject {
            lent: Some(lent),
            pool: self.0.clone(),
        })?)
    }

    fn register(&self, view: Handle<dyn VmoView>) -> Result<Handle<dyn DmaWindow>, MemoryError> {
        let (object, rights) = services::vmo::viewed(&view).ok_or(MemoryError::Denied)?;
        self.0.prepare_holds(caller().as_ref())?;
        if !isolation::platform::platform().can_note() {
            return Err(RpcError::NoMemory.into());
        }
        let pool = self.0.clone();
        Ok(Handle::<dyn DmaWindow>::new(Window {
            pool,
            object,
            rights,
        })?)
    }
}

/// The pages of one memory object, for one device.
struct Window {
    pool: Arc<Pool>,
    object: Arc<Object<Untyped>>,
    rights: VmoRights,
}

impl Window {
    /// Whether pages may be held so by this view.
    #[inline]
    fn allows(&self, run: &DmaRun) -> bool {
        match run.direction {
            DmaDirection::ToDevice => self.rights.read,
            DmaDirection::FromDevice => self.rights.write,
        }
    }
}

impl DmaWindow for Window {
    fn hold(
        &self,
        mut runs: RVec<DmaRun>,
        count: u32,
        mut addresses: RVec<u64>,
    ) -> Result<(RVec<DmaRun>, RVec<u64>, u32), MemoryError> {
        let wanted = runs.get_mut(..count as usize);
        let wanted = wanted.filter(|runs| (1..=MOST_RUNS).contains(&runs.len()));
        let wanted = wanted.ok_or(MemoryError::Invalid)?;
        let (mut pages, mut fit) = (0, 0);
        for run in wanted.iter() {
            // So no sum of pages overflows.
            let has_pages = (1..=MOST_LENT).contains(&run.pages);
            if !has_pages || !self.allows(run) || pages + run.pages > addresses.len() as u64 {
                break;
            }
            pages += run.pages;
            fit += 1;
        }
        match wanted.first() {
            Some(first) if fit == 0 && !self.allows(first) => return Err(MemoryError::Denied),
            _ if fit == 0 => return Err(MemoryError::Invalid),
            _ => {}
        }
        let mut room = addresses.iter_mut();
        let tell = |frame| {
            if let Some(address) = room.next() {
                *address = frame * PAGE_SIZE as u64;
            }
        };
        let wanted = &mut wanted[..fit];
        let held = self
            .pool
            .hold(&self.object, wanted, User(caller_id()), tell)?;
        Ok((runs, addresses, held as u32))
    }

    fn release(&self, holds: &RVec<u64>, count: u32) -> Result<(), MemoryError> {
        let holds = holds.get(..count as usize);
        let holds = holds.filter(|holds| (1..=MOST_RUNS).contains(&holds.len()));
        let holds = holds.ok_or(MemoryError::Invalid)?;
        let are_released = self.pool.release(holds);
        are_released.then_some(()).ok_or(MemoryError::Invalid)
    }
}

struct MemoryObject {
    lent: Option<Lent>,
    pool: Arc<Pool>,
}

impl MemoryObject {
    fn memory(&self) -> RpcResult<&DmaCoherent> {
        let lent = self.lent.as_ref().ok_or(RpcError::Refused)?;
        Ok(&lent.memory)
    }
}

impl DmaMemory for MemoryObject {
    fn base(&self) -> RpcResult<u64> {
        Ok(phys_to_virt(self.memory()?.physical()) as u64)
    }

    fn device_address(&self) -> RpcResult<u64> {
        Ok(self.memory()?.physical())
    }

    fn length(&self) -> RpcResult<u64> {
        Ok(self.memory()?.bytes() as u64)
    }
}

impl Drop for MemoryObject {
    fn drop(&mut self) {
        if let Some(lent) = self.lent.take() {
            self.pool.put_back(lent);
        }
    }
}
