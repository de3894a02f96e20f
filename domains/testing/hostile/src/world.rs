//! The system under attack: an `init` of its own, with all that it starts, and some more domains to
//! be called.

use crate::director::Kernel;
use crate::doors::{Door, Net};
use crate::stand_ins::{self, Line, NoHardware, NoPower, NoShortage, Shelf};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use domain_rt::{log, time};
use interfaces::{
    AnyHandle, Archive, CommandLine, DomainSpec, Handle, Hardware, Image, Loader, MemoryWatch,
    PciAddress, PciBus, Power, Process, RVec, RpcError, Services, Started, Text, VmoFill,
    VmoRights,
};

/// The system where there are devices, and where there are none.
const MANIFESTS: [&str; 2] = [include_str!("bare.toml"), include_str!("hosted.toml")];
/// How long the system may take to start, in nanoseconds.
const PATIENCE: u64 = 30_000_000_000;
/// Domains that are there to be ill-treated.
const VICTIMS: usize = 3;
/// The controller of the system management bus, which uses no memory by itself: DMA memory for it
/// can do no harm.
const NOBODY: PciAddress = PciAddress {
    bus: 0,
    device: 31,
    function: 3,
};
/// The disk controller of QEMU's machine, which the system does not use.
const SPARE_DEVICE: PciAddress = PciAddress {
    bus: 0,
    device: 31,
    function: 2,
};
/// A serial port that the system does not use, and that can do no harm: the scratch register of
/// COM4.
const SCRATCH: (u16, u16) = (0x2ef, 1);

/// Pages of a memory object for that device, and how many of them have content.
const LIMIT: u64 = 64;
const FILLED: usize = 8;
/// What a view of it is for.
const ALL: VmoRights = VmoRights {
    read: true,
    write: true,
    map: true,
    execute: false,
};

/// Limits of a domain that is called `name`.
pub fn limits(name: &str, pages: u64, shared: u64, threads: u32) -> DomainSpec {
    DomainSpec {
        name: Text::new(name),
        page_limit: pages,
        shared_limit: shared,
        thread_limit: threads,
        call_limit: 0,
        call_budget_ms: 0,
        reserve_pages: 0,
        log_rate: 0,
        group: 0,
        group_pages: 0,
        group_threads: 0,
        weight: 0,
        cpu_percent: 0,
        deadline_percent: 0,
    }
}

/// The system under attack.
pub struct World {
    /// What was caught of it.
    pub net: Arc<Net>,
    power: NoPower,
}

fn say(error: RpcError) -> String {
    format!("{error}")
}

impl World {
    /// Starts it and waits until a shell runs.
    ///
    /// # Errors
    /// In words.
    pub fn start(kernel: &Kernel) -> Result<Self, String> {
        let world = World {
            net: Arc::default(),
            power: NoPower::default(),
        };
        world.start_init(kernel)?;
        world.start_others(kernel)?;
        world.add_the_kernel(kernel).map_err(say)?;
        let end = time::now() + PATIENCE * kernel.stretch();
        while world.net.newest::<dyn Process>().is_none() {
            if time::now() > end || world.is_over() {
                return Err("the system under attack does not start".into());
            }
            time::sleep(1_000_000);
        }
        world.claim_a_device();
        world.ask_for_the_updater();
        Ok(world)
    }

    /// Programs get it by its name, which a foe would not guess.
    fn ask_for_the_updater(&self) {
        let services = self.net.newest::<dyn Services>();
        let updater = services.and_then(|it| it.service(Text::new("updater")).ok()?);
        match updater {
            Some(updater) => self.net.keep(updater),
            None => log!("there is no updater"),
        }
    }

    /// Foes may have a device that nobody uses.
    fn claim_a_device(&self) {
        let Some(bus) = self.net.newest::<dyn PciBus>() else {
            return;
        };
        match bus.claim(SPARE_DEVICE) {
            Ok(device) => self.net.keep(device.into_any()),
            Err(error) => log!("there is no spare device: {error:?}"),
        }
    }

    /// Whether somebody has switched it off.
    pub fn is_over(&self) -> bool {
        self.power.0.load(Ordering::SeqCst)
    }

    fn start_init(&self, kernel: &Kernel) -> Result<(), String> {
        let grants = self.grants_of_init(kernel).map_err(say)?;
        let image = kernel.image("domains/init")?;
        self.start_one(&image, limits("init", 0, 0, 0), grants, b"")
    }

    /// In the order of its declaration.
    fn grants_of_init(&self, kernel: &Kernel) -> Result<Vec<AnyHandle>, RpcError> {
        let archive = || kernel.archive.duplicate();
        let door = Door {
            loader: kernel.loader.duplicate()?,
            archive: Arc::new(archive()?),
            net: self.net.clone(),
        };
        let hardware: Handle<dyn Hardware> = match &kernel.hardware {
            Some(hardware) => hardware.duplicate()?,
            None => Handle::new(NoHardware)?,
        };
        let memory: Handle<dyn MemoryWatch> = match &kernel.memory {
            Some(memory) => memory.duplicate()?,
            None => Handle::new(NoShortage(kernel.monitor.duplicate()?))?,
        };
        let manifest = MANIFESTS[usize::from(kernel.hardware.is_none())];
        let shelf = Shelf {
            archive: archive()?,
            manifest: manifest.into(),
        };
        Ok(Vec::from([
            Handle::<dyn Loader>::new(door)?.into_any(),
            kernel.monitor.duplicate()?.into_any(),
            kernel.control.duplicate()?.into_any(),
            hardware.into_any(),
            Handle::<dyn Power>::new(self.power.clone())?.into_any(),
            Handle::<dyn Archive>::new(shelf)?.into_any(),
            Handle::<dyn CommandLine>::new(Line(""))?.into_any(),
            memory.into_any(),
            kernel.objects.duplicate()?.into_any(),
            kernel.events.duplicate()?.into_any(),
            kernel.tracer.duplicate()?.into_any(),
            kernel.random.duplicate()?.into_any(),
        ]))
    }

    /// Victims, and a plug-in.
    fn start_others(&self, kernel: &Kernel) -> Result<(), String> {
        (0..VICTIMS).try_for_each(|_| self.start_victim(kernel))?;
        let plug_in = kernel.image("domains/filter-one")?;
        self.start_one(
            &plug_in,
            limits("filter-one", 4096, 4096, 16),
            Vec::new(),
            b"",
        )
    }

    /// A domain that does harm when it is told to, within limits.
    ///
    /// # Errors
    /// In words.
    pub fn start_victim(&self, kernel: &Kernel) -> Result<(), String> {
        let image = kernel.image("domains/victim")?;
        self.start_one(&image, limits("victim", 2048, 2048, 32), Vec::new(), b"")?;
        // Its end is nobody's loss, so foes may have authority over it.
        let domains = self.net.domains.lock();
        let victim = domains.iter().rev().find(|it| it.name.as_str() == "victim");
        let control = victim.map(|it| it.control.duplicate());
        drop(domains);
        if let Some(Ok(control)) = control {
            self.net.keep(control.into_any());
        }
        Ok(())
    }

    fn start_one(
        &self,
        image: &Handle<dyn Image>,
        spec: DomainSpec,
        given: Vec<AnyHandle>,
        options: &[u8],
    ) -> Result<(), String> {
        let mut grants = [const { None }; 16];
        for (grant, handle) in grants.iter_mut().zip(given) {
            *grant = Some(handle);
        }
        let options = RVec::from_slice(options).map_err(say)?;
        let Started { control, offers } = image
            .start(spec, grants, options)
            .map_err(|error| format!("{} does not start: {error:?}", spec.name))?;
        self.net.hold(&control, false).map_err(say)?;
        for offer in offers.into_iter().flatten() {
            self.net.keep(offer);
        }
        Ok(())
    }

    /// The kernel's own objects.
    fn add_the_kernel(&self, kernel: &Kernel) -> Result<(), RpcError> {
        let net = &self.net;
        net.keep(kernel.loader.duplicate()?.into_any());
        net.keep(kernel.monitor.duplicate()?.into_any());
        net.keep(kernel.control.duplicate()?.into_any());
        net.keep(kernel.archive.duplicate()?.into_any());
        net.keep(kernel.objects.duplicate()?.into_any());
        net.keep(kernel.events.duplicate()?.into_any());
        net.keep(kernel.tracer.duplicate()?.into_any());
        net.keep(kernel.random.duplicate()?.into_any());
        if let Some(spaces) = &kernel.spaces {
            net.keep(spaces.duplicate()?.into_any());
        }
        if let Some(line) = &kernel.command_line {
            net.keep(line.duplicate()?.into_any());
        }
        if let Some(memory) = &kernel.memory {
            net.keep(memory.duplicate()?.into_any());
        }
        if let Some(legacy) = &kernel.legacy {
            net.keep(legacy.duplicate()?.into_any());
        }
        if let Some(hardware) = &kernel.hardware {
            net.keep(hardware.duplicate()?.into_any());
            let ports = hardware.ports(SCRATCH.0, SCRATCH.1).map(Handle::into_any);
            ports.into_iter().for_each(|it| net.keep(it));
            let pool = hardware.dma(NOBODY).map(Handle::into_any);
            pool.into_iter().for_each(|it| net.keep(it));
        }
        if let Ok(image) = kernel.image("domains/victim") {
            net.keep(image.into_any());
        }
        Ok(())
    }
}

/// What drives the device that nobody has: an allocator of memory for it, a view of a memory object
/// that does not grow at our cost, and what makes further ones. Each foe gets its own, as the
/// kernel serves nobody by an allocator of which a user is dead.
///
/// # Errors
/// In words.
pub fn equipment(kernel: &Kernel) -> Result<Vec<AnyHandle>, String> {
    let Some(hardware) = &kernel.hardware else {
        return Ok(Vec::new());
    };
    let say_not = |error| format!("no object for devices: {error:?}");
    let pool = hardware.dma(NOBODY);
    let pool = pool.map_err(|error| format!("no memory for devices: {error:?}"))?;
    let object = kernel.objects.create(LIMIT, VmoFill::Zero);
    let object = object.map_err(say_not)?;
    let view = object.view(ALL).map_err(say_not)?;
    let content = RVec::filled(1, FILLED * 4096).map_err(say)?;
    view.write(0, &content).map_err(say_not)?;
    Ok(Vec::from([
        pool.into_any(),
        view.into_any(),
        kernel.objects.duplicate().map_err(say)?.into_any(),
    ]))
}

/// Has the kernel free what it keeps for the device that nobody has.
pub fn forget_device_memory(kernel: &Kernel) {
    let pool = kernel.hardware.as_ref().map(|it| it.dma(NOBODY));
    if let Some(Ok(pool)) = pool {
        // There is nothing to be started.
        let _ = pool.reset_done();
    }
}

/// The image at `path` in the boot archive.
///
/// # Errors
/// In words.
pub fn image(kernel: &Kernel, path: &str) -> Result<Handle<dyn Image>, String> {
    let file = stand_ins::file(&kernel.archive, path)?;
    let image = kernel.loader.prepare(file);
    image.map_err(|error| format!("{path}: {error:?}"))
}
