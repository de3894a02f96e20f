//! Archive, command line, power switch and log as interface objects.

use alloc::vec::Vec;
use framework::kprintln;
use framework::mem::PAGE_SIZE;
use framework::sync::Once;
use interfaces::{Archive, ArchiveEntry, CommandLine, Power, RVec, RpcResult, Text};
use services::random::Unfit;
use services::{Machine, Noise};

/// The boot archive, which stays in memory as the boot loader left it.
pub struct BootArchive;

impl Archive for BootArchive {
    fn entry(&self, index: u32) -> RpcResult<Option<ArchiveEntry>> {
        let entry = files().get(index as usize);
        Ok(entry.map(|file| ArchiveEntry {
            path: Text::new(file.path),
            size: file.content.len() as u64,
        }))
    }

    fn read(&self, index: u32, offset: u64, mut buffer: RVec<u8>) -> RpcResult<RVec<u8>> {
        let content = files()
            .get(index as usize)
            .map_or(&[][..], |file| file.content);
        let tail = usize::try_from(offset)
            .ok()
            .and_then(|offset| content.get(offset..))
            .unwrap_or(&[]);
        let count = tail.len().min(buffer.len());
        buffer[..count].copy_from_slice(&tail[..count]);
        Ok(buffer.truncated(count))
    }
}

/// The regular files of the archive. It is read only once, since who lists it asks for one file
/// after the other.
pub fn files() -> &'static [cpio::Entry<'static>] {
    static FILES: Once<Vec<cpio::Entry<'static>>> = Once::new();
    FILES.call_once(|| {
        let archive = framework::boot::module().unwrap_or(&[]);
        cpio::entries(archive)
            .filter(cpio::Entry::is_file)
            .collect()
    })
}

/// The line that the machine was started with.
pub struct BootLine;

impl CommandLine for BootLine {
    fn text(&self) -> RpcResult<RVec<u8>> {
        RVec::from_slice(framework::boot::command_line().as_bytes())
    }
}

/// The power switch.
pub struct PowerSwitch;

impl Power for PowerSwitch {
    fn off(&self, status: u8) -> RpcResult<()> {
        switch_off(status)
    }

    fn reset(&self) -> RpcResult<()> {
        framework::power::reset()
    }
}

/// Switches the machine off. Where the command line says that there is a `debug-exit` device, the
/// emulator ends with a status that tells `status`.
pub fn switch_off(status: u8) -> ! {
    framework::power::off_with_status(status)
}

/// What the monitor shows.
pub struct BareMachine;

impl Noise for BareMachine {
    fn words(&self, words: &mut [u64]) -> usize {
        framework::arch::entropy::words(words)
    }

    fn jitter(&self) -> u64 {
        framework::time::tsc()
    }

    fn now(&self) -> u64 {
        framework::time::now_ns()
    }

    fn broken(&self, why: Unfit) {
        kprintln!("random: the processor's source is broken and not used any more: {why:?}");
    }
}

impl Machine for BareMachine {
    fn memory(&self) -> (u64, u64) {
        let stats = framework::mem::frames::stats();
        (
            (stats.total * PAGE_SIZE) as u64,
            (stats.free * PAGE_SIZE) as u64,
        )
    }

    fn copied(&self) -> [u64; 3] {
        use framework::mem::copied::{Between, bytes};
        [
            Between::PageAndProgram,
            Between::PageAndDomain,
            Between::ProgramAndDomain,
        ]
        .map(bytes)
    }

    fn log(&self, from: u64, buffer: &mut [u8]) -> (u64, usize) {
        let (start, count) = framework::log::read(from, buffer);
        (start + count as u64, count)
    }

    fn processors(&self) -> u32 {
        framework::smp::online() as u32
    }

    fn time(&self) -> (u64, u64) {
        (framework::time::now_ns(), framework::task::busy_ns())
    }

    fn thread_ns(&self, id: u64) -> Option<u64> {
        let thread = framework::task::find(framework::task::ThreadId(id));
        thread.map(|thread| thread.processor_ns())
    }

    #[cfg(feature = "testing")]
    fn keeps(&self) -> interfaces::KernelKeeps {
        let (pages, bytes) = framework::mem::small_objects();
        interfaces::KernelKeeps {
            pages: pages as u64,
            bytes: bytes as u64,
            tables: framework::mem::kspace::tables() as u64,
        }
    }
}
