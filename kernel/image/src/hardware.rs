//! Device memory, ports and interrupts as interface objects. DMA memory is in [`crate::dma`].

use framework::io::{IoError, IoMem, IoPort};
use framework::irq::{IrqError, IrqLine, Polarity, Trigger};
use interfaces::{
    DmaAllocator, Handle, Hardware, HardwareError, Interrupt, Message, Mmio, PciAddress, Ports,
    RVec, RpcError, RpcResult,
};
use isolation::platform::WaitResult;

/// Hands out ranges of the machine.
pub struct MachineHardware;

/// Why a range of the machine was not given, as it crosses to others.
pub fn refusal(error: IoError) -> HardwareError {
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

    fn message_interrupt(&self, processor: u32) -> Result<Handle<dyn Interrupt>, HardwareError> {
        let line = IrqLine::alloc_on(processor as usize).map_err(irq_refusal)?;
        Ok(Handle::new(InterruptObject {
            line,
            message: true,
        })?)
    }

    fn dma(&self, device: PciAddress) -> Result<Handle<dyn DmaAllocator>, HardwareError> {
        crate::dma::allocator(device)
    }

    fn buses(&self) -> RpcResult<Option<(u8, u8)>> {
        let first = framework::pci::ecam()
            .iter()
            .find(|segment| segment.segment == 0);
        Ok(first.map(|segment| (segment.first_bus, segment.last_bus)))
    }

    fn configuration(&self, bus: u8) -> Result<Handle<dyn Mmio>, HardwareError> {
        let memory = framework::pci::configuration(bus).map_err(refusal)?;
        Ok(Handle::new(MmioObject(memory))?)
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
