//! Archive, command line, power switch and memory of the process as interface objects.

use crate::frames::POOL;
use crate::host::{bytes, host};
use abi::{AnyHandle, Handle, RVec, RpcError, RpcResult, Text};
use hosted_core::File;
use interfaces::{
    Archive, ArchiveEntry, CommandLine, DomainControl, Events, HeapAudit, Loader, MemoryObjects,
    Monitor, Power, Random, Tracer,
};
use services::random::Unfit;
use services::{
    Auditor, Control, ImageLoader, KernelEvents, KernelMonitor, KernelObjects, KernelRandom,
    KernelTracer, Machine, Noise,
};

/// A file that the launcher was given.
pub struct Given {
    /// Its name.
    pub name: &'static str,
    /// Its content.
    pub content: &'static [u8],
}

/// File number `index`.
pub fn file(index: usize) -> Option<Given> {
    let mut file = File::default();
    // SAFETY: the launcher writes a `File` there.
    if unsafe { (host().file)(index, (&raw mut file) as usize) } == 0 {
        return None;
    }
    // SAFETY: the launcher keeps names and contents as long as the process lives.
    let (name, content) = unsafe {
        (
            bytes(file.name[0], file.name[1]),
            bytes(file.content[0], file.content[1]),
        )
    };
    Some(Given {
        name: core::str::from_utf8(name).unwrap_or(""),
        content,
    })
}

/// The file with this name.
pub fn named(name: &str) -> Option<Given> {
    (0..).map_while(file).find(|file| file.name == name)
}

/// The files that the launcher was given.
pub struct Files;

impl Archive for Files {
    fn entry(&self, index: u32) -> RpcResult<Option<ArchiveEntry>> {
        let file = file(index as usize);
        Ok(file.map(|file| ArchiveEntry {
            path: Text::new(file.name),
            size: file.content.len() as u64,
        }))
    }

    fn read(&self, index: u32, offset: u64, mut buffer: RVec<u8>) -> RpcResult<RVec<u8>> {
        let content = file(index as usize).map_or(&[][..], |file| file.content);
        let tail = usize::try_from(offset)
            .ok()
            .and_then(|offset| content.get(offset..))
            .unwrap_or(&[]);
        let count = tail.len().min(buffer.len());
        buffer[..count].copy_from_slice(&tail[..count]);
        Ok(buffer.truncated(count))
    }
}

/// No line.
struct NoLine;

impl CommandLine for NoLine {
    fn text(&self) -> RpcResult<RVec<u8>> {
        RVec::from_slice(&[])
    }
}

/// Ends the process.
struct ProcessEnd;

impl Power for ProcessEnd {
    fn off(&self, status: u8) -> RpcResult<()> {
        (host().exit)(u32::from(status))
    }

    fn reset(&self) -> RpcResult<()> {
        Err(RpcError::Refused)
    }
}

/// What the monitor shows.
struct ProcessMachine;

impl Noise for ProcessMachine {
    fn words(&self, words: &mut [u64]) -> usize {
        // SAFETY: so many words are there, and the launcher says how many of them it wrote.
        unsafe { (host().random)(words.as_mut_ptr() as usize, words.len()) }
    }

    fn jitter(&self) -> u64 {
        (host().now)()
    }

    fn now(&self) -> u64 {
        (host().now)()
    }

    fn broken(&self, why: Unfit) {
        crate::log::print(format_args!(
            "random: the system's source is broken and not used any more: {why:?}"
        ));
    }
}

impl Machine for ProcessMachine {
    fn memory(&self) -> (u64, u64) {
        ((host().memory)(0), (host().memory)(1))
    }

    fn log(&self, from: u64, buffer: &mut [u8]) -> (u64, usize) {
        crate::log::read(from, buffer)
    }

    fn processors(&self) -> u32 {
        (host().processors)()
    }

    fn time(&self) -> (u64, u64) {
        ((host().now)(), (host().processor_time)(0))
    }

    /// Linux has the figure for the running thread alone.
    fn thread_ns(&self, _id: u64) -> Option<u64> {
        None
    }
}

/// The core's service of this name; none if it has no such.
///
/// # Errors
/// [`RpcError::NoMemory`].
pub fn service(name: &str) -> Result<Option<AnyHandle>, RpcError> {
    Ok(Some(match name {
        "loader" => Handle::<dyn Loader>::new(ImageLoader)?.into_any(),
        "monitor" => Handle::<dyn Monitor>::new(KernelMonitor(ProcessMachine))?.into_any(),
        "control" => Handle::<dyn DomainControl>::new(Control)?.into_any(),
        "power" => Handle::<dyn Power>::new(ProcessEnd)?.into_any(),
        "events" => Handle::<dyn Events>::new(KernelEvents)?.into_any(),
        "tracer" => Handle::<dyn Tracer>::new(KernelTracer)?.into_any(),
        "objects" => Handle::<dyn MemoryObjects>::new(KernelObjects(POOL))?.into_any(),
        "random" => Handle::<dyn Random>::new(KernelRandom(ProcessMachine))?.into_any(),
        "archive" => Handle::<dyn Archive>::new(Files)?.into_any(),
        "command_line" => Handle::<dyn CommandLine>::new(NoLine)?.into_any(),
        "auditor" => Handle::<dyn HeapAudit>::new(Auditor(ProcessMachine))?.into_any(),
        _ => return Ok(None),
    }))
}
