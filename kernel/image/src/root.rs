//! Starts `init`, the only domain that the kernel itself starts. Everything else is `init`'s
//! affair.

use crate::hardware::MachineHardware;
use crate::machine::{BareMachine, BootArchive, BootLine, PowerSwitch, files, switch_off};
use crate::space::Spaces;
use abi::image::PORT_OFFER;
use abi::{AnyHandle, Handle, RVec, RpcError, Text};
use alloc::sync::Arc;
use core::fmt::Write as _;
use framework::kprintln;
use framework::mem::untyped::POOL;
use interfaces::{
    AddressSpaces, Archive, CommandLine, DomainControl, Events, Hardware, Legacy, Loader,
    MemoryObjects, MemoryWatch, Monitor, Power, Random, Tracer,
};
use isolation::domain::group::GroupSpec;
use isolation::domain::{ControlBlock, Limits};
use isolation::load::loader::{self, MOST_GRANTS, Prepared, StartError};
use services::{
    Bequest, Control, ImageLoader, KernelEvents, KernelMemory, KernelMonitor, KernelObjects,
    KernelRandom, KernelTracer, Left,
};

/// Where the image of `init` is in the archive. The word `root=PATH` on the command line has
/// another domain started in its place, with the same grants and the options that the word
/// `options=TEXT` says: the isolation tests run so.
const INIT: &str = "domains/init";
/// Lives that `init` gets: a restarted one finds the other domains still running, but if it keeps
/// crashing the machine is of no use.
const MOST_LIVES: usize = 5;
/// What one life leaves to the next.
static LEFT: Left = Left::new(None);

/// Starts `init` and watches it: when it crashes it is started again.
pub fn start() {
    let prepared = match prepare() {
        Ok(prepared) => prepared,
        Err(why) => give_up(&why),
    };
    for life in 0..MOST_LIVES {
        match start_init(&prepared, life) {
            Ok(block) => {
                // The kernel's own thread is never interrupted.
                let _ = block.wait_gone();
                kprintln!("init: ended ({:?}), life {}", block.reason(), life + 1);
            }
            Err(error) => give_up(&alloc::format!("init does not start: {error:?}")),
        }
    }
    give_up("init crashed too often")
}

/// Says why on the terminal as well: whoever sits there has nobody else to tell it.
fn give_up(why: &str) -> ! {
    framework::log::take_console();
    kprintln!("Trefoil cannot go on: {why}");
    switch_off(1)
}

fn prepare() -> Result<Prepared, alloc::string::String> {
    if framework::boot::module().is_none() {
        return Err("there is no boot archive (start it with -initrd)".into());
    }
    let path = word("root=").unwrap_or(INIT);
    let file = files().iter().find(|file| file.path == path);
    let file = file.ok_or_else(|| alloc::format!("there is no {path} in the boot archive"))?;
    let bytes =
        RVec::from_slice(file.content).map_err(|error| alloc::format!("{path}: {error}"))?;
    loader::prepare(bytes).map_err(|error| alloc::format!("{path} is refused: {error:?}"))
}

/// What follows `name` on the command line.
fn word(name: &str) -> Option<&'static str> {
    let mut words = framework::boot::command_line().split_whitespace();
    words.find_map(|word| word.strip_prefix(name))
}

/// What `init` may take of the memory that is kept for recovery, in pages: all, since it is who
/// recovers.
const INIT_RESERVE: usize = usize::MAX;

/// Starts `init`, which has ended `deaths` times before.
fn start_init(prepared: &Prepared, deaths: usize) -> Result<Arc<ControlBlock>, StartError> {
    let mut grants = [const { None }; MOST_GRANTS];
    let file = prepared
        .file()
        .ok_or(StartError::Rpc(RpcError::DomainCrashed))?;
    let image = file.image();
    let wants = image.ports().filter(|port| port.flags & PORT_OFFER == 0);
    for (grant, port) in grants.iter_mut().zip(wants) {
        *grant = service(port.name).map_err(|_| StartError::Rpc(RpcError::NoMemory))?;
    }
    let mut of_init = Text::<32>::empty();
    // It has room for every number.
    let _ = write!(of_init, "deaths {deaths}");
    let options = match word("root=") {
        Some(_) => word("options=").unwrap_or_default(),
        None => of_init.as_str(),
    };
    let options =
        RVec::from_slice(options.as_bytes()).map_err(|_| StartError::Rpc(RpcError::NoMemory))?;
    let limits = Limits {
        reserve: INIT_RESERVE,
        group: GroupSpec::FIRST,
        ..Limits::NONE
    };
    let instance = prepared.start(image.name(), limits, grants, options)?;
    // Nobody holds what init offers: dropping it ends the objects.
    Ok(instance.block)
}

/// The kernel's service of this name.
fn service(name: &str) -> Result<Option<AnyHandle>, RpcError> {
    Ok(Some(match name {
        "loader" => Handle::<dyn Loader>::new(ImageLoader)?.into_any(),
        "monitor" => Handle::<dyn Monitor>::new(KernelMonitor(BareMachine))?.into_any(),
        "memory" => Handle::<dyn MemoryWatch>::new(KernelMemory(BareMachine))?.into_any(),
        "objects" => Handle::<dyn MemoryObjects>::new(KernelObjects(POOL))?.into_any(),
        "spaces" => Handle::<dyn AddressSpaces>::new(Spaces)?.into_any(),
        "control" => Handle::<dyn DomainControl>::new(Control)?.into_any(),
        "hardware" => Handle::<dyn Hardware>::new(MachineHardware)?.into_any(),
        "power" => Handle::<dyn Power>::new(PowerSwitch)?.into_any(),
        "legacy" => Handle::<dyn Legacy>::new(Bequest(&LEFT))?.into_any(),
        "archive" => Handle::<dyn Archive>::new(BootArchive)?.into_any(),
        #[cfg(feature = "testing")]
        "auditor" => {
            Handle::<dyn interfaces::HeapAudit>::new(services::Auditor(BareMachine))?.into_any()
        }
        "events" => Handle::<dyn Events>::new(KernelEvents)?.into_any(),
        "tracer" => Handle::<dyn Tracer>::new(KernelTracer)?.into_any(),
        "random" => Handle::<dyn Random>::new(KernelRandom(BareMachine))?.into_any(),
        "command_line" => Handle::<dyn CommandLine>::new(BootLine)?.into_any(),
        _ => return Ok(None),
    }))
}
