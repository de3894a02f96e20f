//! What stands in for the kernel where it has no such thing (the hosted platform), or where the
//! attack would end the run.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use domain_rt::time;
use interfaces::{
    Archive, ArchiveEntry, CommandLine, Console, DmaAllocator, Handle, Hardware, HardwareError,
    Interrupt, MemoryWatch, Mmio, Monitor, PciAddress, Ports, Power, RVec, RpcError, RpcResult,
    Shortage, Text,
};

/// A terminal on which nobody types.
pub struct SilentConsole;

/// How long somebody waits who waits for ever, in nanoseconds.
const FOR_EVER: u64 = 3_600_000_000_000;

impl Console for SilentConsole {
    fn write(&self, _: &RVec<u8>) -> RpcResult<()> {
        Ok(())
    }

    fn read(&self, _: RVec<u8>) -> RpcResult<RVec<u8>> {
        time::sleep(FOR_EVER);
        Err(RpcError::Interrupted)
    }
}

/// A power switch that only notes that it was used.
#[derive(Clone, Default)]
pub struct NoPower(pub Arc<AtomicBool>);

impl Power for NoPower {
    fn off(&self, _: u8) -> RpcResult<()> {
        self.0.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn reset(&self) -> RpcResult<()> {
        self.off(0)
    }
}

/// A machine without devices.
pub struct NoHardware;

impl Hardware for NoHardware {
    fn mmio(&self, _: u64, _: u64) -> Result<Handle<dyn Mmio>, HardwareError> {
        Err(HardwareError::NoSuchResource)
    }

    fn ports(&self, _: u16, _: u16) -> Result<Handle<dyn Ports>, HardwareError> {
        Err(HardwareError::NoSuchResource)
    }

    fn interrupt(&self, _: u32) -> Result<Handle<dyn Interrupt>, HardwareError> {
        Err(HardwareError::NoSuchResource)
    }

    fn message_interrupt(&self, _: u32) -> Result<Handle<dyn Interrupt>, HardwareError> {
        Err(HardwareError::NoSuchResource)
    }

    fn dma(&self, _: PciAddress) -> Result<Handle<dyn DmaAllocator>, HardwareError> {
        Err(HardwareError::NoSuchResource)
    }

    fn buses(&self) -> RpcResult<Option<(u8, u8)>> {
        Ok(None)
    }

    fn configuration(&self, _: u8) -> Result<Handle<dyn Mmio>, HardwareError> {
        Err(HardwareError::NoSuchResource)
    }
}

/// Never short of memory.
pub struct NoShortage(pub Handle<dyn Monitor>);

impl MemoryWatch for NoShortage {
    fn free(&self) -> RpcResult<u64> {
        Ok(self.0.memory()?.free)
    }

    fn shortage(&self, _: u32, _: u64) -> RpcResult<Shortage> {
        time::sleep(FOR_EVER);
        Err(RpcError::Interrupted)
    }
}

/// A command line.
pub struct Line(pub &'static str);

impl CommandLine for Line {
    fn text(&self) -> RpcResult<RVec<u8>> {
        RVec::from_slice(self.0.as_bytes())
    }
}

/// The boot archive, with another manifest in front.
pub struct Shelf {
    /// The boot archive.
    pub archive: Handle<dyn Archive>,
    /// The manifest.
    pub manifest: Vec<u8>,
}

impl Archive for Shelf {
    fn entry(&self, index: u32) -> RpcResult<Option<ArchiveEntry>> {
        match index.checked_sub(1) {
            Some(index) => self.archive.entry(index),
            None => Ok(Some(ArchiveEntry {
                path: Text::new("manifest.toml"),
                size: self.manifest.len() as u64,
            })),
        }
    }

    fn read(&self, index: u32, offset: u64, mut buffer: RVec<u8>) -> RpcResult<RVec<u8>> {
        if let Some(index) = index.checked_sub(1) {
            return self.archive.read(index, offset, buffer);
        }
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.manifest.get(offset..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(buffer.truncated(count))
    }
}

/// The first file whose path ends with `path`.
///
/// # Errors
/// In words.
pub fn file(archive: &Handle<dyn Archive>, path: &str) -> Result<RVec<u8>, String> {
    let say = |error: RpcError| alloc::format!("{path}: {error}");
    for index in 0.. {
        let entry = archive.entry(index).map_err(say)?;
        let entry = entry.ok_or_else(|| alloc::format!("there is no {path} in the archive"))?;
        if entry.path.as_str().ends_with(path) {
            let buffer = RVec::filled(0, entry.size as usize).map_err(say)?;
            return archive.read(index, 0, buffer).map_err(say);
        }
    }
    Err("the archive has no end".into())
}
