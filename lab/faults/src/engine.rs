//! One run after the other: start what is needed, make a fault, let the clients work, look what
//! came of it.

mod ending;

use crate::clients::{CLIENTS, Clients, Device, Outcome, REGION, ROOM};
use crate::counts::Counts;
use crate::ledger::{Course, Found, stuck};
use crate::plan::{self, Fault, Kind};
use crate::store::{Store, Trouble, pause};
use crate::supervisor::{Respawner, Supervisor};
use abi::{Handle, RVec, RpcResult};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use interfaces::{Block, Events, Hardware, MemoryObjects, Respawn};
use isolation::Reason;
use isolation::death::kill::kill;
use isolation::domain::{ControlBlock, Limits};
use isolation::load::loader::{self, MOST_GRANTS, Prepared};
use isolation::platform::platform;
use line::Line;

/// The image of the driver.
const DRIVER: &str = "domains/frail-disk";
/// The image of the shadow.
const SHADOW: &str = "domains/block-shadow";
/// Runs without a fault before the first one, so that everything has the size that it keeps.
const WARM_UP: u64 = 20;
/// Nanoseconds that memory is waited for after each of those.
const WARM_UP_PATIENCE: u64 = 100_000_000;
/// Nanoseconds that a run may take, and that a dead domain may take to be cleared away.
const PATIENCE: u64 = 20_000_000_000;

/// Nanoseconds after which answers are looked for again.
const PERIOD: u64 = 10_000;

/// Private memory of a shadow that lacks some, in pages: the reserve that it sets aside when it
/// starts, without which it does not start, and one run to work with.
const SHADOW_PAGES: usize = 32 + 16;

/// What the campaign needs of the platform.
#[derive(Clone, Copy)]
pub struct Ground {
    /// The image with this path in the archive.
    pub image: fn(&str) -> Option<&'static [u8]>,
    /// Free bytes of memory.
    pub free: fn() -> u64,
    /// Bytes in use in the kernel's own heap.
    pub heap: fn() -> u64,
    /// Makes memory objects.
    pub objects: fn() -> RpcResult<Handle<dyn MemoryObjects>>,
    /// Makes events.
    pub events: fn() -> RpcResult<Handle<dyn Events>>,
    /// The devices of the machine, if it has any.
    pub hardware: fn() -> RpcResult<Handle<dyn Hardware>>,
    /// Takes one line of JSON.
    pub report: fn(&str),
    /// Bytes that a thread takes besides its stack.
    pub stack_extra: u64,
    /// Bytes that may come and go without being a leak.
    pub slack: u64,
    /// How many times slower than a processor of today it is, for moments and delays.
    pub stretch: u64,
}

impl Ground {
    /// Opens the queue of a device where there is none of use. It may fail, if the driver does.
    fn keep_open(&self, device: &mut Arc<Device>) -> Result<(), String> {
        if device.line.as_ref().is_some_and(Line::is_alive) {
            return Ok(());
        }
        let device =
            Arc::get_mut(device).ok_or("the device of a run that is over is still used")?;
        device.line = None;
        let objects = (self.objects)().map_err(|error| format!("{error:?}"))?;
        device.line = Line::open(&device.block, &objects, ROOM, || pause(PERIOD)).ok();
        Ok(())
    }
}

/// Carries out a plan: the first line names what is to fail (`driver`, `shadow`, `ramfs`, `keep`,
/// `ext2`, `virtio-blk`, `nvme`, `disk-shadow`, `vfs`, `vfs-keep`) or says `cycles COUNT`; then one
/// fault a line.
///
/// # Errors
/// If it cannot begin or go on; what had to be reported was reported.
pub fn run(plan: &str, ground: &Ground) -> Result<(), String> {
    let mut lines = plan.lines();
    let first = lines.next().unwrap_or_default();
    if let Some(count) = first.strip_prefix("cycles ") {
        let count = count.trim().parse().map_err(|_| "how many cycles?")?;
        return crate::cycles::run(count, ground);
    }
    let target = match first.trim() {
        "driver" => Target::Driver,
        "shadow" => Target::Shadow,
        target @ ("ramfs" | "keep" | "ext2" | "virtio-blk" | "nvme" | "disk-shadow" | "vfs"
        | "vfs-keep") => {
            return crate::files::run(target, lines, ground);
        }
        other => return Err(format!("there is no domain {other:?} in the campaign")),
    };
    let mut campaign = Campaign::new(target, ground)?;
    for run in 0..WARM_UP {
        campaign.one(&Fault::harmless(run))?;
    }
    campaign.baseline = Some(Counts::now(ground, campaign.shadow_id()));
    for line in lines.filter(|line| !line.is_empty()) {
        let fault = plan::parse(line).ok_or_else(|| format!("no fault: {line}"))?;
        let report = campaign.one(&fault)?;
        (ground.report)(&report);
    }
    Ok(())
}

/// What is made to fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Driver,
    Shadow,
}

/// Something that is made once and lives as long as the kernel.
pub fn keep<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// The image at `path`, verified.
pub fn prepare(ground: &Ground, path: &str) -> Result<Prepared, String> {
    let content = (ground.image)(path).ok_or_else(|| format!("there is no {path}"))?;
    let file = RVec::from_slice(content).map_err(|error| format!("{path}: {error:?}"))?;
    loader::prepare(file).map_err(|error| format!("{path} is refused: {error:?}"))
}

/// A supervisor of the driver with an empty medium.
pub fn supervisor(ground: &Ground) -> Result<&'static Supervisor, String> {
    let store = keep(Store::new(CLIENTS * REGION));
    Ok(keep(Supervisor::new(
        prepare(ground, DRIVER)?,
        store,
        ground.stretch,
    )))
}

struct Campaign<'a> {
    target: Target,
    ground: &'a Ground,
    supervisor: &'static Supervisor,
    clients: &'static Clients,
    shadow_image: Prepared,
    shadow: Option<Shadow>,
    /// What is to be there again after every run, so that small losses add up to a leak.
    baseline: Option<Counts>,
}

struct Shadow {
    block: Arc<ControlBlock>,
    device: Arc<Device>,
}

impl<'a> Campaign<'a> {
    fn new(target: Target, ground: &'a Ground) -> Result<Self, String> {
        let supervisor = supervisor(ground)?;
        let clients = keep(Clients::new(supervisor));
        if !clients.spawn() {
            return Err("no memory for the clients".into());
        }
        let shadow_image = prepare(ground, SHADOW)?;
        Ok(Campaign {
            target,
            ground,
            supervisor,
            clients,
            shadow_image,
            shadow: None,
            baseline: None,
        })
    }

    /// One run; its line of the ledger. An error ends the campaign.
    fn one(&mut self, fault: &Fault) -> Result<String, String> {
        let now = || Counts::now(self.ground, self.shadow_id());
        let before = self.baseline.unwrap_or_else(now);
        let missing =
            (fault.kind == Kind::Memory && self.target == Target::Driver).then_some(fault.amount);
        self.supervisor.begin(missing);
        let shadow = self.shadow(fault)?;
        // The driver starts here, and with it the fault may come.
        let start = platform().now();
        let ready = shadow.block.geometry().is_ok() && shadow.line.is_some();
        let victim = self.victim();
        if let Some(victim) = &victim {
            plant(victim, fault);
        }
        self.make_trouble(fault, true);
        self.clients.begin(shadow.clone(), fault.seed);
        let killed = victim
            .as_ref()
            .and_then(|victim| self.kill_in_time(victim, fault));
        let deadline = platform().now() + PATIENCE;
        let Some(clients) = self.clients.finish(deadline) else {
            (self.ground.report)(&stuck(fault, "the clients do not come back"));
            return Err(format!("run {}: the clients hang", fault.run));
        };
        self.end_aside(victim.as_ref(), fault);
        let reached = self.was_reached(fault, victim.as_deref(), ready);
        let latency = reached
            .then(|| latency(&clients, killed.or((!ready).then_some(start)), fault))
            .flatten();
        self.make_trouble(fault, false);
        let is_over = !victim.as_ref().is_some_and(|victim| victim.is_alive());
        let (id, reason) = victim.map_or((0, Reason::None), |victim| (victim.id, victim.reason()));
        drop(shadow);
        let (restarts, after) = self.end_run(fault, &before, is_over)?;
        if self.baseline.is_some() && !after.is_back(&before, self.ground.slack) {
            // This loss is told once.
            self.baseline = Some(after);
        }
        let course = Course {
            fault,
            domain: match self.target {
                Target::Driver => "frail-disk",
                Target::Shadow => "block-shadow",
            },
            amount: match fault.kind {
                Kind::Failure => fault.count,
                _ => fault.amount,
            },
            id,
            reason,
            reached,
            latency,
            restarts,
            found: Found::joined(clients.iter().map(Outcome::found)),
            before,
            after,
            slack: self.ground.slack,
        };
        Ok(course.line())
    }

    /// The domain that is to fail.
    fn victim(&self) -> Option<Arc<ControlBlock>> {
        match self.target {
            Target::Driver => self.supervisor.current(),
            Target::Shadow => self.shadow.as_ref().map(|shadow| shadow.block.clone()),
        }
    }

    fn shadow_id(&self) -> u32 {
        self.shadow.as_ref().map_or(0, |shadow| shadow.block.id)
    }

    /// The shadow's device; the shadow is started if there is none.
    fn shadow(&mut self, fault: &Fault) -> Result<Arc<Device>, String> {
        if let Some(shadow) = &mut self.shadow {
            self.ground.keep_open(&mut shadow.device)?;
            return Ok(shadow.device.clone());
        }
        let respawn = Handle::<dyn Respawn>::new(Respawner(self.supervisor));
        let respawn = respawn.map_err(|error| format!("{error:?}"))?;
        let mut grants = [const { None }; MOST_GRANTS];
        grants[0] = Some(respawn.into_any());
        let options = RVec::from_slice(&[]).map_err(|error| format!("{error:?}"))?;
        let lacks = self.target == Target::Shadow && fault.kind == Kind::Memory;
        let limits = Limits {
            pages: if lacks { SHADOW_PAGES } else { 0 },
            call_ms: if self.target == Target::Shadow { 30 } else { 0 },
            ..Limits::default()
        };
        let mut instance = self
            .shadow_image
            .start("shadow", limits, grants, options)
            .map_err(|error| format!("the shadow does not start: {error:?}"))?;
        let device = instance.offers[0]
            .take()
            .ok_or("the shadow offers nothing")?;
        let device = device
            .downcast::<dyn Block>()
            .map_err(|_| "the shadow offers no block device")?;
        let mut device = Arc::new(Device {
            block: device,
            line: None,
        });
        self.ground.keep_open(&mut device)?;
        self.shadow = Some(Shadow {
            block: instance.block,
            device: device.clone(),
        });
        Ok(device)
    }

    /// Tells the medium what is to go wrong with it, or that nothing is.
    fn make_trouble(&self, fault: &Fault, begins: bool) {
        let delay = match fault.kind {
            Kind::Delay => u64::from(fault.amount) * 1000 * self.ground.stretch,
            _ => 0,
        };
        let is_trouble = matches!(fault.kind, Kind::Delay | Kind::Failure);
        let trouble = (begins && is_trouble).then_some(Trouble {
            request: fault.count,
            delay,
        });
        self.supervisor.store().trouble(trouble);
    }

    /// Ends the victim at the moment that the fault says, if it says so; when that was.
    fn kill_in_time(&self, victim: &Arc<ControlBlock>, fault: &Fault) -> Option<u64> {
        if fault.kind != Kind::Kill {
            return None;
        }
        pause(u64::from(fault.amount) * 1000 * self.ground.stretch);
        let now = platform().now();
        kill(victim, Reason::Killed);
        Some(now)
    }

    fn was_reached(&self, fault: &Fault, victim: Option<&ControlBlock>, ready: bool) -> bool {
        let reason = victim.map_or(Reason::None, ControlBlock::reason);
        match fault.kind {
            Kind::Opcode => reason == Reason::InvalidOpcode,
            Kind::Overflow => reason == Reason::StackOverflow,
            // A hang in the driver's own thread is found out by the driver: its device does not
            // answer.
            Kind::Hang => matches!(reason, Reason::Hang | Reason::Exited),
            Kind::Kill | Kind::Aside => reason == Reason::Killed,
            Kind::Memory => {
                reason == Reason::Panic || self.supervisor.failed_starts() > 0 || !ready
            }
            Kind::Delay | Kind::Failure => self.supervisor.store().was_troubled(),
        }
    }
}

/// Replaces the instruction that the fault names, if it does.
pub fn plant(victim: &ControlBlock, fault: &Fault) {
    let code = fault.kind.code(fault.at.length);
    if !code.is_empty() {
        // SAFETY: the domain is idle: it was started just now, nobody calls it, and its own
        // threads, if it has any, wait in the kernel (those of `ramfs` and of the shadow of files
        // for a tenth of a second, or until somebody writes; nobody has asked a device for anything
        // for a while, so it has raised no interrupt). The bytes stay inside one instruction, so
        // nothing but an exception or a loop can come of them. Only this thread ends domains of the
        // campaign, and it does not now.
        let planted = unsafe { victim.plant(fault.at.place as usize, code) };
        // Who is gone already has no image; then the run shows what a death at the start does.
        let _ = planted;
    }
}

/// Nanoseconds from the fault to the first good call after it. Where the moment of the fault is not
/// known it is taken to be the start of the first call that it hit, so the figure is rather too
/// large.
fn latency(clients: &[Outcome], known: Option<u64>, fault: &Fault) -> Option<u64> {
    if fault.kind == Kind::Delay {
        return clients.iter().map(|client| client.longest).max();
    }
    let good = clients.iter().filter_map(|client| client.first_good);
    let end = good.clone().map(|(_, end)| end).min()?;
    let start = known.or_else(|| good.map(|(start, _)| start).min())?;
    Some(end.saturating_sub(start))
}
