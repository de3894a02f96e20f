//! What stands between the system under attack and the kernel: its `init` starts all others through
//! these objects, so each handle that one domain is granted, or offers to others, passes here, and
//! a second one to the same object is kept for the foes.

use crate::stand_ins;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use domain_rt::{log, time};
use interfaces::{
    AnyHandle, Archive, Block, DmaAllocator, Domain, DomainSpec, Gate, Handle, Image, Incarnation,
    Interface, Interrupt, LoadError, Loader, MemoryObjects, PciDevice, Port, Ports, Process, RVec,
    Respawn, RespawnError, RpcResult, StartError, Started, Text,
};
use line::Line;

/// Handles with one interface that are kept; the oldest goes first.
const OF_ONE_KIND: usize = 6;

/// A domain that was started.
pub struct Held {
    /// Its instance.
    pub id: u32,
    /// Its name.
    pub name: Text<32>,
    /// It is a program: others have its `Process`, which may end it.
    pub is_program: bool,
    /// Authority over it.
    pub control: Handle<dyn Domain>,
}

/// What was caught.
#[derive(Default)]
pub struct Net {
    handles: Mutex<Vec<AnyHandle>>,
    /// All domains that were started and are not known to be dead.
    pub domains: Mutex<Vec<Held>>,
}

impl Net {
    /// Keeps a second handle to the same object, unless it is a part of a device: a driver that is
    /// started again could not have it while we do, and whoever has it may drive the device, by
    /// right.
    pub fn catch(&self, handle: &AnyHandle) {
        let of_devices = [
            <dyn Ports>::NUMBER,
            <dyn Interrupt>::NUMBER,
            <dyn PciDevice>::NUMBER,
            <dyn DmaAllocator>::NUMBER,
        ];
        if of_devices.contains(&handle.interface()) {
            return;
        }
        if let Ok(twin) = handle.duplicate() {
            self.keep(twin);
        }
    }

    /// Keeps the handle.
    pub fn keep(&self, handle: AnyHandle) {
        let number = handle.interface();
        let mut handles = self.handles.lock();
        handles.push(handle);
        let same = |it: &AnyHandle| it.interface() == number;
        let count = handles.iter().filter(|it| same(it)).count();
        let oldest = handles
            .iter()
            .position(same)
            .filter(|_| count > OF_ONE_KIND);
        let former = oldest.map(|at| handles.remove(at));
        drop(handles);
        drop(former);
    }

    /// Second handles to everything that `fits` says, the oldest first.
    pub fn all(&self, fits: impl Fn(u64) -> bool) -> Vec<AnyHandle> {
        let handles = self.handles.lock();
        let fitting = handles.iter().filter(|it| fits(it.interface()));
        fitting.filter_map(|it| it.duplicate().ok()).collect()
    }

    /// A second handle to what was caught last with this interface.
    pub fn newest<I: ?Sized + Interface>(&self) -> Option<Handle<I>> {
        self.all(|it| it == I::NUMBER).pop()?.downcast().ok()
    }

    /// Gives all handles up.
    pub fn empty(&self) {
        let handles = core::mem::take(&mut *self.handles.lock());
        drop(handles);
        let domains = core::mem::take(&mut *self.domains.lock());
        drop(domains);
    }

    /// Notes a domain that was started.
    pub fn hold(&self, control: &Handle<dyn Domain>, is_program: bool) -> RpcResult<()> {
        let info = control.info()?;
        let held = Held {
            id: info.id,
            name: info.name,
            is_program,
            control: control.duplicate()?,
        };
        self.domains.lock().push(held);
        Ok(())
    }
}

/// The loader that the system under attack has.
pub struct Door {
    /// The kernel's.
    pub loader: Handle<dyn Loader>,
    /// The boot archive.
    pub archive: Arc<Handle<dyn Archive>>,
    /// What was caught.
    pub net: Arc<Net>,
}

impl Loader for Door {
    fn prepare(&self, file: RVec<u8>) -> Result<Handle<dyn Image>, LoadError> {
        let image = self.loader.prepare(file)?;
        Ok(Handle::new(Blueprint {
            image,
            archive: self.archive.clone(),
            net: self.net.clone(),
        })?)
    }
}

/// An image that the system under attack starts instances of.
struct Blueprint {
    image: Handle<dyn Image>,
    archive: Arc<Handle<dyn Archive>>,
    net: Arc<Net>,
}

impl Blueprint {
    /// Respawns go through a [`Relay`]; everything is caught. Whether it is a program's grant.
    fn look_at(&self, grants: &mut [Option<AnyHandle>]) -> bool {
        let mut is_program = false;
        for grant in grants.iter_mut() {
            let Some(handle) = grant.take() else {
                continue;
            };
            self.net.catch(&handle);
            is_program |= handle.interface() == <dyn Process>::NUMBER;
            *grant = match handle.downcast::<dyn Respawn>() {
                Ok(respawn) => self.relay(respawn),
                Err(other) => Some(other),
            };
        }
        is_program
    }

    fn relay(&self, respawn: Handle<dyn Respawn>) -> Option<AnyHandle> {
        let relay = Relay {
            respawn,
            net: self.net.clone(),
        };
        let relay: RpcResult<Handle<dyn Respawn>> = Handle::new(relay);
        relay.ok().map(Handle::into_any)
    }
}

impl Image for Blueprint {
    fn name(&self) -> RpcResult<Text<32>> {
        self.image.name()
    }

    fn port(&self, index: u32) -> RpcResult<Option<Port>> {
        self.image.port(index)
    }

    fn start(
        &self,
        spec: DomainSpec,
        mut grants: [Option<AnyHandle>; 16],
        options: RVec<u8>,
    ) -> Result<Started, StartError> {
        let is_program = self.look_at(&mut grants);
        let started = self.image.start(spec, grants, options)?;
        self.net.hold(&started.control, is_program)?;
        for offer in started.offers.iter().flatten() {
            self.net.catch(offer);
        }
        if self.image.name()?.as_str() == "memory-disk"
            && let Err(why) = self.fill(&started)
        {
            log!("the disk stays empty: {why}");
        }
        Ok(started)
    }
}

/// The file system that a disk in memory has from the start.
const DISK: &str = "hostile-disk.img";
/// Bytes of it that are written at a time.
const PART: usize = 256 << 10;

impl Blueprint {
    /// Gives a disk in memory its content.
    fn fill(&self, started: &Started) -> Result<(), String> {
        let offer = started.offers[0].as_ref().ok_or("it offers nothing")?;
        let offer = offer.duplicate().map_err(|it| format!("{it}"))?;
        let disk = offer.downcast::<dyn Block>();
        let disk = disk.map_err(|_| String::from("it offers no device"))?;
        let objects = self.net.newest::<dyn MemoryObjects>();
        let objects = objects.ok_or("there is no memory for it")?;
        // A disk in memory answers at once.
        let line = Line::<1>::open(&disk, &objects, PART, || time::sleep(1_000));
        let line = line.map_err(|it| format!("{it:?}"))?;
        let content = stand_ins::file(&self.archive, DISK)?;
        for (index, part) in content.chunks(PART).enumerate() {
            if part.iter().all(|byte| *byte == 0) {
                continue;
            }
            let written = line.write(0, (index * PART / 512) as u64, part);
            written.map_err(|it| format!("{it:?}"))?;
        }
        Ok(())
    }
}

/// The right to ask for instances, which catches the gates that are attached.
struct Relay {
    respawn: Handle<dyn Respawn>,
    net: Arc<Net>,
}

impl Respawn for Relay {
    fn instance(&self, failed: u32) -> Result<Incarnation, RespawnError> {
        self.respawn.instance(failed)
    }

    fn attach(&self, gate: Handle<dyn Gate>) -> RpcResult<()> {
        self.net.catch(&gate.duplicate()?.into_any());
        self.respawn.attach(gate)
    }
}
