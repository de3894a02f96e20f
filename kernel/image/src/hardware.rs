//! Device memory, ports, interrupts and DMA memory as interface objects.
//!
//! A device may write to its DMA memory at any time, so that memory is not given back while the device could
//! still do it: buffers that a driver drops go back to the device's pool, and the pool is freed only after the
//! kernel itself has switched the device's bus mastering off. When a domain that used a pool dies, its device
//! is stopped at once, before anything is freed and before a successor starts.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use framework::dma::DmaCoherent;
use framework::io::{IoError, IoMem, IoPort};
use framework::irq::{IrqError, IrqLine, Polarity, Trigger};
use framework::mem::{PAGE_SIZE, phys_to_virt};
use framework::pci::QuiesceError;
use interfaces::{
    DmaAllocator, DmaMemory, Handle, Hardware, HardwareError, Interrupt, Message, Mmio, PciAddress,
    Ports, RVec, RpcError, RpcResult,
};
use isolation::lock::Lock;
use isolation::platform::WaitResult;

/// Hands out ranges of the machine.
pub struct MachineHardware;

fn refusal(error: IoError) -> HardwareError {
    match error {
        IoError::Sensitive => HardwareError::Sensitive,
        IoError::Taken => HardwareError::InUse,
        IoError::NoMemory => HardwareError::Rpc(RpcError::NoMemory),
        _ => HardwareError::NoSuchResource,
    }
}

fn irq_refusal(error: IrqError) -> HardwareError {
    match error {
        IrqError::InputInUse => HardwareError::InUse,
        _ => HardwareError::NoSuchResource,
    }
}

impl Hardware for MachineHardware {
    fn mmio(&self, physical: u64, length: u64) -> Result<Handle<dyn Mmio>, HardwareError> {
        let length = usize::try_from(length).map_err(|_| HardwareError::NoSuchResource)?;
        let memory = IoMem::acquire(physical, length).map_err(refusal)?;
        Ok(Handle::new(MmioObject(memory))?)
    }

    fn ports(&self, first: u16, count: u16) -> Result<Handle<dyn Ports>, HardwareError> {
        let ports = IoPort::acquire(first, count).map_err(refusal)?;
        Ok(Handle::new(PortsObject(ports))?)
    }

    fn interrupt(&self, line: u32) -> Result<Handle<dyn Interrupt>, HardwareError> {
        let isa = u8::try_from(line).ok().filter(|irq| *irq < 16);
        let line = match isa {
            Some(irq) => IrqLine::for_isa(irq),
            None => IrqLine::for_gsi(line, Trigger::Level, Polarity::Low),
        };
        Ok(Handle::new(InterruptObject {
            line: line.map_err(irq_refusal)?,
            message: false,
        })?)
    }

    fn message_interrupt(&self) -> Result<Handle<dyn Interrupt>, HardwareError> {
        let line = IrqLine::alloc().map_err(irq_refusal)?;
        Ok(Handle::new(InterruptObject {
            line,
            message: true,
        })?)
    }

    fn dma(&self, device: PciAddress) -> Result<Handle<dyn DmaAllocator>, HardwareError> {
        let pool = Arc::new(Pool {
            device,
            stopped: AtomicBool::new(false),
            state: Lock::new(PoolState {
                users: Vec::new(),
                spare: Vec::new(),
            }),
        });
        let mut pools = POOLS.lock();
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(&pool));
        drop(pools);
        Ok(Handle::new(AllocatorObject(pool))?)
    }

    fn configuration_space(&self) -> RpcResult<Option<(u64, u8, u8)>> {
        let first = framework::pci::ecam()
            .iter()
            .find(|segment| segment.segment == 0);
        Ok(first.map(|segment| (segment.base, segment.first_bus, segment.last_bus)))
    }
}

struct MmioObject(IoMem);

impl Mmio for MmioObject {
    fn base(&self) -> RpcResult<u64> {
        Ok(self.0.address() as u64)
    }

    fn length(&self) -> RpcResult<u64> {
        Ok(self.0.bytes() as u64)
    }
}

struct PortsObject(IoPort);

impl Ports for PortsObject {
    fn read8(&self, offset: u16) -> Result<u8, HardwareError> {
        self.0.read(offset).map_err(refusal)
    }

    fn write8(&self, offset: u16, value: u8) -> Result<(), HardwareError> {
        self.0.write(offset, value).map_err(refusal)
    }

    fn write8_all(&self, offset: u16, bytes: &RVec<u8>) -> Result<(), HardwareError> {
        bytes
            .iter()
            .try_for_each(|byte| self.0.write(offset, *byte))
            .map_err(refusal)
    }

    fn read16(&self, offset: u16) -> Result<u16, HardwareError> {
        self.0.read(offset).map_err(refusal)
    }

    fn write16(&self, offset: u16, value: u16) -> Result<(), HardwareError> {
        self.0.write(offset, value).map_err(refusal)
    }

    fn read32(&self, offset: u16) -> Result<u32, HardwareError> {
        self.0.read(offset).map_err(refusal)
    }

    fn write32(&self, offset: u16, value: u32) -> Result<(), HardwareError> {
        self.0.write(offset, value).map_err(refusal)
    }
}

struct InterruptObject {
    line: IrqLine,
    message: bool,
}

impl Interrupt for InterruptObject {
    fn count(&self) -> RpcResult<u32> {
        Ok(self.line.count())
    }

    fn wait(&self, seen: u32, deadline: Option<u64>) -> RpcResult<u32> {
        match isolation::platform::wait(self.line.counter(), seen, deadline) {
            WaitResult::Interrupted => Err(RpcError::Interrupted),
            _ => Ok(self.line.count()),
        }
    }

    fn acknowledge(&self) -> RpcResult<()> {
        self.line.ack();
        Ok(())
    }

    fn message(&self) -> Result<Message, HardwareError> {
        if !self.message {
            return Err(HardwareError::NoSuchResource);
        }
        let (address, data) = self.line.msi_message();
        Ok(Message { address, data })
    }
}

/// All pools that are in use.
static POOLS: Lock<Vec<Weak<Pool>>> = Lock::new(Vec::new());

/// The memory that one device may use.
struct Pool {
    device: PciAddress,
    /// The device was stopped because a user died; the pool serves nobody any more.
    stopped: AtomicBool,
    state: Lock<PoolState>,
}

struct PoolState {
    /// Domains that were given memory.
    users: Vec<u32>,
    /// Memory that is not in use, but that the device may still know.
    spare: Vec<DmaCoherent>,
}

impl Pool {
    /// Makes the device leave memory alone, once.
    fn stop(&self) {
        if !self.stopped.swap(true, Ordering::SeqCst) {
            self.quiesce();
        }
    }

    /// Makes the device leave memory alone; whether it does now.
    fn quiesce(&self) -> bool {
        let PciAddress {
            bus,
            device,
            function,
        } = self.device;
        match framework::pci::quiesce(bus, device, function) {
            Ok(()) | Err(QuiesceError::Absent) => true,
            Err(error) => {
                framework::kprintln!(
                    "pci {bus:02x}:{device:02x}.{function}: cannot be stopped: {error:?}"
                );
                false
            }
        }
    }

    /// Whether somebody else has a pool for the same device by now.
    fn is_succeeded(&self) -> bool {
        live_pools().iter().any(|pool| pool.device == self.device)
    }

    fn take(&self, pages: usize) -> Option<DmaCoherent> {
        let mut state = self.state.lock();
        if let Some(user) = isolation::domain::caller()
            && !state.users.contains(&user.id)
        {
            state.users.push(user.id);
        }
        let index = state
            .spare
            .iter()
            .position(|memory| memory.bytes() == pages * PAGE_SIZE)?;
        Some(state.spare.swap_remove(index))
    }
}

impl Drop for Pool {
    /// Stops the device before the spare memory is freed, which is what happens next. It may have been
    /// stopped before, when a user died, but a thread of his that had not left yet may have set it going
    /// again. If somebody else drives it by now, he has reset it and it must not be stopped under him.
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        if !self.is_succeeded() && !self.quiesce() {
            // Lost for ever, since the device may still write to it.
            self.state
                .lock()
                .spare
                .drain(..)
                .for_each(core::mem::forget);
        }
    }
}

/// All pools that are in use. Whoever looks at them does so without the lock: stopping a device maps its
/// configuration space, and this may turn out to be the last share in a pool.
fn live_pools() -> Vec<Arc<Pool>> {
    POOLS.lock().iter().filter_map(Weak::upgrade).collect()
}

/// Stops every device that works for the dead domain `id`.
pub fn stop_devices_of(id: u32) {
    let all = live_pools();
    let used = all
        .iter()
        .filter(|pool| pool.state.lock().users.contains(&id));
    used.for_each(|pool| pool.stop());
}

struct AllocatorObject(Arc<Pool>);

impl DmaAllocator for AllocatorObject {
    fn allocate(&self, pages: u32) -> Result<Handle<dyn DmaMemory>, HardwareError> {
        let pages = pages as usize;
        if pages == 0 || self.0.stopped.load(Ordering::SeqCst) {
            return Err(HardwareError::NoSuchResource);
        }
        let memory = match self.0.take(pages) {
            Some(memory) => {
                clear(&memory)?;
                memory
            }
            None => {
                let memory = isolation::relief::or_wait(pages * PAGE_SIZE, || {
                    let spare = crate::platform::can_spare(pages);
                    spare.then(|| DmaCoherent::alloc(pages).ok()).flatten()
                });
                memory.ok_or(RpcError::NoMemory)?
            }
        };
        Ok(Handle::new(MemoryObject {
            memory: Some(memory),
            pool: self.0.clone(),
        })?)
    }
}

/// Fills used memory with zeros.
fn clear(memory: &DmaCoherent) -> Result<(), HardwareError> {
    let zeros = [0; 512];
    let mut places = (0..memory.bytes()).step_by(zeros.len());
    places
        .try_for_each(|at| memory.write_bytes(at, &zeros))
        .map_err(refusal)
}

struct MemoryObject {
    memory: Option<DmaCoherent>,
    pool: Arc<Pool>,
}

impl MemoryObject {
    fn memory(&self) -> RpcResult<&DmaCoherent> {
        self.memory.as_ref().ok_or(RpcError::Refused)
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
        if let Some(memory) = self.memory.take() {
            self.pool.state.lock().spare.push(memory);
        }
    }
}
