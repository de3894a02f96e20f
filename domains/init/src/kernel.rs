//! What the kernel grants to `init`, and through it to others.

use interfaces::{
    AddressSpaces, AnyHandle, Archive, CommandLine, DomainControl, Events, Handle, Hardware,
    HeapAudit, Legacy, Loader, MemoryObjects, MemoryWatch, Monitor, Power, Random, RpcError,
    RpcResult, Tracer,
};
use manifest::KernelService;

/// The kernel's services.
pub struct Kernel {
    /// Checks images.
    pub loader: Handle<dyn Loader>,
    /// Shows all domains.
    pub monitor: Handle<dyn Monitor>,
    /// Ends any domain.
    pub control: Handle<dyn DomainControl>,
    /// Hands out the machine.
    pub hardware: Handle<dyn Hardware>,
    /// Switches it off.
    pub power: Handle<dyn Power>,
    /// The boot archive.
    pub archive: Handle<dyn Archive>,
    /// The line that the machine was started with.
    pub command_line: Handle<dyn CommandLine>,
    /// Tells how much memory is left.
    pub memory: Handle<dyn MemoryWatch>,
    /// Makes memory objects.
    pub objects: Handle<dyn MemoryObjects>,
    /// Makes events.
    pub events: Handle<dyn Events>,
    /// Shows calls.
    pub tracer: Handle<dyn Tracer>,
    /// Makes random numbers.
    pub random: Handle<dyn Random>,
    /// Makes address spaces, where there are any.
    pub spaces: Option<Handle<dyn AddressSpaces>>,
    /// Tells what the kernel keeps of memory, in kernels for tests.
    pub auditor: Option<Handle<dyn HeapAudit>>,
    /// Keeps what the next instance of `init` is to have.
    pub legacy: Option<Handle<dyn Legacy>>,
    /// How often `init` has ended before.
    pub deaths: u32,
}

impl Kernel {
    /// Another handle to a service, for a domain that is granted it.
    ///
    /// # Errors
    /// No memory. [`RpcError::Refused`]: the machine has no such service.
    pub fn service(&self, service: KernelService) -> RpcResult<AnyHandle> {
        Ok(match service {
            KernelService::Loader => self.loader.duplicate()?.into_any(),
            KernelService::Monitor => self.monitor.duplicate()?.into_any(),
            KernelService::Control => self.control.duplicate()?.into_any(),
            KernelService::Hardware => self.hardware.duplicate()?.into_any(),
            KernelService::Power => self.power.duplicate()?.into_any(),
            KernelService::Archive => self.archive.duplicate()?.into_any(),
            KernelService::CommandLine => self.command_line.duplicate()?.into_any(),
            KernelService::Memory => self.memory.duplicate()?.into_any(),
            KernelService::Objects => self.objects.duplicate()?.into_any(),
            KernelService::Random => self.random.duplicate()?.into_any(),
            KernelService::Events => self.events.duplicate()?.into_any(),
            KernelService::Tracer => self.tracer.duplicate()?.into_any(),
            KernelService::Spaces => {
                let spaces = self.spaces.as_ref().ok_or(RpcError::Refused)?;
                spaces.duplicate()?.into_any()
            }
            KernelService::Auditor => {
                let auditor = self.auditor.as_ref().ok_or(RpcError::Refused)?;
                auditor.duplicate()?.into_any()
            }
        })
    }
}
