//! From a PCI function to a controller with a pair of queues for each processor, which interrupt,
//! and one for whoever looks for answers himself.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use domain_rt::io::{DmaBuffer, IoMem};
use domain_rt::{log, time};
use interfaces::{DmaAllocator, Handle, HardwareError, Interrupt, PciDevice, PciError, RpcError};
use lanes::start::{MOST_LINES, interrupts, patiently};
use nvme_queues::PAGE;
use nvme_queues::admin::{self, Admin, AdminError};
use nvme_queues::command::{self, Structure};
use nvme_queues::identify::{self, Controller, IdentifyError, Namespace};
use nvme_queues::queue::{Layout, Pair};
use nvme_queues::registers::{self, AdminQueues, Capabilities, SetupError};
use nvme_queues::smart::{self, Health};

use crate::line::{Line, Serves};
use crate::memory::{PLACES, Places, Rings, Window, allocate};

/// Entries of the rings of a pair: more than there are commands under way.
const ENTRIES: u16 = 128;
/// The interrupt vector of the first pair. Number 0 is the admin queue's, which is polled.
const VECTOR: u16 = 1;

/// The interrupts of the pairs that have one, in their order.
type Interrupts = Vec<Handle<dyn Interrupt>>;

/// Why the device cannot be used.
#[derive(Debug)]
pub enum Trouble {
    /// A call failed.
    Rpc(RpcError),
    /// The kernel did not give a resource.
    Hardware(HardwareError),
    /// The PCI domain did not do what it was asked.
    Pci(PciError),
    /// The controller did not come up.
    Setup(SetupError),
    /// An admin command was not done.
    Admin(AdminError),
    /// What it says of itself, or of the namespace, is not served.
    Identify(IdentifyError),
    /// It has no such namespace.
    NoNamespace,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Rpc(error) => write!(f, "{error}"),
            Trouble::Hardware(error) => write!(f, "a resource is not to be had: {error:?}"),
            Trouble::Pci(error) => write!(f, "the PCI bus says: {error:?}"),
            Trouble::Setup(error) => write!(f, "{error}"),
            Trouble::Admin(error) => write!(f, "{error}"),
            Trouble::Identify(error) => write!(f, "{error}"),
            Trouble::NoNamespace => f.write_str("it has no such namespace in use"),
        }
    }
}

macro_rules! wrap {
    ($($variant:ident($type:ty)),*) => { $(
        impl From<$type> for Trouble {
            fn from(error: $type) -> Self {
                Trouble::$variant(error)
            }
        }
    )* };
}

wrap!(
    Rpc(RpcError),
    Hardware(HardwareError),
    Pci(PciError),
    Setup(SetupError),
    Admin(AdminError),
    Identify(IdentifyError)
);

/// The admin queue.
pub type AdminQueue = Admin<Window, Rings>;

/// What a running controller consists of.
pub struct Parts {
    /// The function; it stays claimed for as long as this is kept.
    pub function: Handle<dyn PciDevice>,
    /// The registers.
    pub registers: Window,
    /// What they say that it can do.
    pub capabilities: Capabilities,
    /// The admin queue.
    pub admin: AdminQueue,
    /// Pairs that interrupt and, if the controller has two, a last one that does not.
    pub lines: Vec<Line>,
    /// What registers memory objects for the device.
    pub allocator: Handle<dyn DmaAllocator>,
    /// What the controller says of itself.
    pub controller: Controller,
    /// The number of the namespace.
    pub number: u32,
    /// What the controller says of it.
    pub namespace: Namespace,
}

/// A millisecond's wait.
pub fn pause() {
    time::sleep(1_000_000);
}

/// Brings the controller up (7.6.1), with namespace `wanted`, or the first if that is 0.
///
/// # Errors
/// See [`Trouble`].
pub fn bring_up(
    function: Handle<dyn PciDevice>,
    wanted: u32,
) -> Result<(Parts, Interrupts), Trouble> {
    let memory = IoMem::new(patiently(|| function.region(0))?)?;
    let (bytes, registers) = (memory.len(), Window(Arc::new(memory)));
    let capabilities = Capabilities::read(&registers, bytes)?;
    // A reset, before the device can reach any memory: it may still be at work for a driver that
    // crashed.
    registers::reset(&registers, &capabilities, pause)?;
    let allocator = function.dma()?;
    let mut admin = start(&registers, capabilities, &allocator)?;
    let structure = allocate(&allocator, PAGE)?;
    let controller = identify_controller(&mut admin, &structure)?;
    let (number, namespace) = find_namespace(&mut admin, &structure, wanted)?;
    let (lines, interrupts) = make_pairs(&function, &mut admin, &allocator, &capabilities)?;
    announce(&controller, number, &namespace, lines.len());
    tell_health(&mut admin, &structure);
    let parts = Parts {
        function,
        registers,
        capabilities,
        admin,
        lines,
        allocator,
        controller,
        number,
        namespace,
    };
    Ok((parts, interrupts))
}

/// Starts a controller that was reset.
fn start(
    registers: &Window,
    capabilities: Capabilities,
    allocator: &Handle<dyn DmaAllocator>,
) -> Result<AdminQueue, Trouble> {
    let layout = Layout::new(admin::ENTRIES);
    let rings = Rings(allocate(allocator, layout.bytes)?);
    let address = rings.0.device_address();
    let queues = AdminQueues {
        submission: address,
        completion: address + layout.answers as u64,
        entries: layout.entries,
    };
    // Since the reset the device was told of no memory.
    allocator.reset_done()?;
    registers::start(registers, &capabilities, &queues, pause)?;
    let admin = Admin::new(registers.clone(), rings, capabilities);
    Ok(admin.map_err(|_| RpcError::NoMemory)?)
}

fn read_page(structure: &DmaBuffer) -> [u8; PAGE] {
    let mut bytes = [0; PAGE];
    structure.read_bytes(0, &mut bytes);
    bytes
}

fn identify_controller(
    admin: &mut AdminQueue,
    structure: &DmaBuffer,
) -> Result<Controller, Trouble> {
    admin.identify(Structure::Controller, 0, structure.device_address(), pause)?;
    Ok(Controller::read(&read_page(structure))?)
}

fn find_namespace(
    admin: &mut AdminQueue,
    structure: &DmaBuffer,
    wanted: u32,
) -> Result<(u32, Namespace), Trouble> {
    let address = structure.device_address();
    // The list has those above the number that is given.
    admin.identify(
        Structure::Namespaces,
        wanted.saturating_sub(1),
        address,
        pause,
    )?;
    let first = identify::namespaces(&read_page(structure)).next();
    let number = first.filter(|first| wanted == 0 || *first == wanted);
    let number = number.ok_or(Trouble::NoNamespace)?;
    admin.identify(Structure::Namespace, number, address, pause)?;
    Ok((number, Namespace::read(&read_page(structure))?))
}

/// Makes pairs that interrupt and, if the controller has more than one, a last one that does not.
fn make_pairs(
    function: &Handle<dyn PciDevice>,
    admin: &mut AdminQueue,
    allocator: &Handle<dyn DmaAllocator>,
    capabilities: &Capabilities,
) -> Result<(Vec<Line>, Interrupts), Trouble> {
    let wanted = MOST_LINES as u16 + 1;
    let granted = command::granted_pairs(admin.run(&command::ask_for_pairs(wanted), pause)?);
    let doorbells = capabilities.pairs() as u32 - 1;
    let count = granted.min(doorbells).min(wanted.into()) as u16;
    let (interrupts, first) = interrupts_for(function, count.saturating_sub(1))?;
    let told = interrupts.len() as u16;
    let count = count.min(told + 1);
    let layout = Layout::new(capabilities.entries.min(ENTRIES.into()) as u16);
    let mut lines = Vec::new();
    for number in 1..=count {
        let (serves, places) = match number {
            _ if count == 1 => (Serves::All, PLACES),
            _ if number <= told => (Serves::Told, PLACES / usize::from(told)),
            _ => (Serves::Polled, PLACES),
        };
        let vector = (serves != Serves::Polled).then_some(first + number - 1);
        let rings = Rings(allocate(allocator, layout.bytes)?);
        admin.make_pair(number, layout, rings.0.device_address(), vector, pause)?;
        let pair = Pair::new(number, layout, places).map_err(|_| RpcError::NoMemory)?;
        let places = Places::new(allocator, places)?;
        lines.push(Line::new(pair, rings, places, serves)?);
    }
    Ok((lines, interrupts))
}

/// An interrupt for each of so many pairs, as far as there are processors and vectors, and the
/// vector of the first.
fn interrupts_for(
    function: &Handle<dyn PciDevice>,
    pairs: u16,
) -> Result<(Interrupts, u16), Trouble> {
    let ask = |number: u16| function.interrupt(VECTOR + number, number.into());
    match interrupts(pairs.into(), ask) {
        // There is none but that of the admin queue, which is polled.
        Err(PciError::NoSuchDevice) => {
            let only = interrupts(1, |_| function.interrupt(0, 0))?;
            Ok((only, 0))
        }
        asked => Ok((asked?, VECTOR)),
    }
}

fn announce(controller: &Controller, number: u32, namespace: &Namespace, pairs: usize) {
    let kind = if namespace.read_only {
        ", read-only"
    } else {
        ""
    };
    log!(
        "{} {}, namespace {number}: {} sectors of 512 bytes{kind}, {pairs} pairs of queues",
        controller.model,
        controller.serial,
        namespace.blocks
    );
}

/// Says in the log how the controller is, if it knows.
fn tell_health(admin: &mut AdminQueue, structure: &DmaBuffer) {
    if let Err(error) = admin.run(&command::smart(structure.device_address()), pause) {
        log!("its health is not known: {error}");
        return;
    }
    let mut bytes = [0; smart::BYTES];
    structure.read_bytes(0, &mut bytes);
    log!("health: {}", Health::read(&bytes));
}
