//! What must hold when a foe, or the whole system under attack, has come to its end.

use crate::director::{Director, Duel, MS, PATIENCE, say};
use crate::world::{self, World};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use domain_rt::sync::Mutex;
use domain_rt::{log, thread, time};
use interfaces::{
    Block, Counting, CrashReason, Disks, Domain, DomainState, FileSystem, Handle, Net, PciBus,
    Process, Supervisor,
};

/// Memory that may be missing at the end of a system in which others have lived, in bytes: tables
/// that have grown, and pages that a device may know.
const SLACK: u64 = 1 << 20;
/// Systems that nobody attacks, started and ended one after the other when more is missing. What a
/// device may still know when its driver has died comes back when the next driver has reset it:
/// with a disk's queue that is as much as the requests under way, here up to 4 MiB. What is lost
/// does not come back.
const QUIET: u32 = 3;
/// How long the threads of a dead foe may be in calls before the tireless are ended.
const SOON: u64 = 20 * MS;
/// Domains for tests and benchmarks that do something without end if that is what they are told.
const TIRELESS: [&str; 3] = ["victim", "packet-source", "hash-bench"];

/// Instances, with authority over them.
type Family = Vec<(u32, Handle<dyn Domain>)>;

impl Director {
    /// Ends the foe and what it has started, and looks whether anything is left of it.
    pub fn finish(&mut self, world: &World, duel: Duel) -> Result<(), String> {
        let last = duel.watch.last();
        drop(duel.foe);
        duel.control.kill().map_err(say)?;
        let mut family = Vec::from([(duel.id, duel.control)]);
        family.extend(self.children(duel.id)?);
        let soon = time::now() + SOON * self.options.stretch;
        if family
            .iter()
            .any(|(_, control)| control.wait_until(soon) != Ok(true))
        {
            self.end_the_tireless(world);
        }
        let deadline = time::now() + PATIENCE * self.options.stretch;
        for (id, control) in family {
            if control.wait_until(deadline) != Ok(true) {
                let info = control.info().map_err(say)?;
                return Err(format!(
                    "instance {id} does not go away; last calls:{last}; {:?} by {:?}, {} threads",
                    info.state, info.reason, info.threads
                ));
            }
            let reason = control.info().map_err(say)?.reason;
            if is_unsound(reason) {
                return Err(format!("a foe ended by {reason:?}; last calls:{last}"));
            }
            let left = self.kernel.monitor.holdings(id).map_err(say)?;
            if (left.objects, left.handles) != (0, 0) {
                return Err(format!(
                    "instance {id} is gone and has {left:?}; last calls:{last}"
                ));
            }
        }
        Ok(())
    }

    /// Ends the domains whose methods run as long as they are told to: the foe's threads may be in
    /// there.
    fn end_the_tireless(&mut self, world: &World) {
        let domains = world.net.domains.lock();
        for one in domains
            .iter()
            .filter(|it| TIRELESS.contains(&it.name.as_str()))
        {
            self.ended.push(one.id);
            let _ = one.control.kill();
        }
    }

    /// Ends the domains that `parent` has started.
    fn children(&self, parent: u32) -> Result<Family, String> {
        let mut found = Vec::new();
        for (id, of) in self.living() {
            if of != parent {
                continue;
            }
            if let Some(control) = self.kernel.control.domain(id).map_err(say)? {
                control.kill().map_err(say)?;
                found.push((id, control));
            }
        }
        Ok(found)
    }

    /// All domains that are not gone, with their parents.
    pub fn living(&self) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Ok(Some(info)) = self.kernel.monitor.next(from) {
            found.push((info.id, info.parent));
            from = info.id.saturating_add(1);
        }
        found
    }

    /// Looks for domains that died without having been ended.
    pub fn judge(&mut self, world: &World) -> Result<(), String> {
        let mut wrong = Vec::new();
        let mut victims = 0;
        let held = core::mem::take(&mut *world.net.domains.lock());
        let mut dead = Vec::new();
        let mut alive = Vec::new();
        for one in held {
            let info = one.control.info().map_err(say)?;
            if matches!(info.state, DomainState::Starting | DomainState::Running) {
                alive.push(one);
                continue;
            }
            victims += usize::from(one.name.as_str() == "victim");
            let on_purpose = self.ended.contains(&one.id);
            let is_ill_treated = one.is_program || one.name.as_str() == "victim";
            let is_doomed = is_ill_treated && !self.options.strict;
            let is_usual = matches!(info.reason, CrashReason::Killed | CrashReason::Exited);
            if is_unsound(info.reason) || !(on_purpose || is_doomed || is_usual) {
                wrong.push(format!("{} ({}) died: {:?}", one.name, one.id, info.reason));
            }
            dead.push(one);
        }
        world.net.domains.lock().extend(alive);
        drop(dead);
        for _ in 0..victims {
            world.start_victim(&self.kernel)?;
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(wrong.join("; "))
        }
    }

    /// Has the kernel look at its heaps.
    pub fn audit(&self) -> Result<(), String> {
        let Some(auditor) = &self.kernel.auditor else {
            return Ok(());
        };
        match auditor.audit().map_err(say)? {
            Some(what) => Err(format!("the heaps are not sound: {what}")),
            None => Ok(()),
        }
    }

    /// Asks everybody something simple; each must answer, whatever.
    pub fn probe(&self, world: &World) -> Result<(), String> {
        let answered = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(Mutex::new(""));
        let (told, name, net) = (answered.clone(), asked.clone(), world.net.clone());
        let body = move || {
            let ask = |what| *name.lock() = what;
            ask("init");
            _ = net
                .newest::<dyn Supervisor>()
                .map(|it| it.service(0).is_ok());
            ask("the disks");
            _ = net.newest::<dyn Disks>().map(|it| it.disk(0).is_ok());
            ask("a file system");
            _ = net.newest::<dyn FileSystem>().map(|it| it.root().is_ok());
            ask("a block device");
            _ = net.newest::<dyn Block>().map(|it| it.geometry().is_ok());
            ask("the network");
            _ = net.newest::<dyn Net>().map(|it| it.address().is_ok());
            ask("the bus");
            _ = net.newest::<dyn PciBus>().map(|it| it.function(0).is_ok());
            ask("the personality");
            _ = net.newest::<dyn Process>().map(|it| it.pid().is_ok());
            drop(net);
            told.store(true, Ordering::SeqCst);
        };
        thread::spawn("probe", body).map_err(say)?;
        let deadline = time::now() + PATIENCE * self.options.stretch;
        while !answered.load(Ordering::SeqCst) {
            if time::now() > deadline {
                return Err(format!("no answer from {}", *asked.lock()));
            }
            time::sleep(200_000);
        }
        Ok(())
    }

    /// Ends the system, and looks whether anything is left of it.
    pub fn end_world(&mut self, world: World, before: &[(u32, u32)]) -> Result<(), String> {
        self.put_out(world, before)?;
        self.baseline()?;
        for _ in 0..QUIET {
            // Long enough for what is freed behind a death.
            let missing = self.wait_for_memory(PATIENCE / 8)?;
            if missing <= SLACK {
                return Ok(());
            }
            log!("{missing} bytes are missing: a system that nobody attacks");
            let world = World::start(&self.kernel)?;
            self.put_out(world, before)?;
        }
        match self.wait_for_memory(PATIENCE)? {
            missing if missing > SLACK => Err(format!("{missing} bytes do not come back")),
            _ => Ok(()),
        }
    }

    /// Ends all domains but those from `before`.
    fn put_out(&mut self, world: World, before: &[(u32, u32)]) -> Result<(), String> {
        world.net.empty();
        drop(world);
        let own = domain_rt::self_id();
        let deadline = time::now() + PATIENCE * self.options.stretch;
        loop {
            let old = |id: u32| id == own || before.iter().any(|(known, _)| *known == id);
            let left: Vec<u32> = self
                .living()
                .into_iter()
                .map(|it| it.0)
                .filter(|id| !old(*id))
                .collect();
            if left.is_empty() {
                break;
            }
            for id in &left {
                if let Ok(Some(control)) = self.kernel.control.domain(*id) {
                    let _ = control.kill();
                }
            }
            if time::now() > deadline {
                return Err(format!(
                    "{} domains of the system do not go away",
                    left.len()
                ));
            }
            time::sleep(MS);
        }
        self.ended.clear();
        world::forget_device_memory(&self.kernel);
        self.audit()
    }

    /// Free memory without a system under attack, at the end of the first.
    fn baseline(&mut self) -> Result<u64, String> {
        let monitor = &self.kernel.monitor;
        if let Some(baseline) = self.baseline {
            return Ok(baseline);
        }
        // What the kernel takes for good when somebody traces first.
        for how in [Counting::Traced, Counting::Profiled, Counting::Off] {
            monitor.count_calls(how).map_err(say)?;
        }
        let free = monitor.memory().map_err(say)?.free;
        self.baseline = Some(free);
        Ok(free)
    }

    /// Waits until no more than [`SLACK`] is missing, for so long at most; how much is missing.
    fn wait_for_memory(&mut self, patience: u64) -> Result<u64, String> {
        let baseline = self.baseline()?;
        let deadline = time::now() + patience * self.options.stretch;
        loop {
            let free = self.kernel.monitor.memory().map_err(say)?.free;
            let missing = baseline.saturating_sub(free);
            if missing <= SLACK || time::now() > deadline {
                self.most_missing = self.most_missing.max(missing);
                return Ok(missing);
            }
            time::sleep(10 * MS);
        }
    }
}

/// Reasons that safe code cannot have.
fn is_unsound(reason: CrashReason) -> bool {
    matches!(
        reason,
        CrashReason::PageFault
            | CrashReason::InvalidOpcode
            | CrashReason::DivideError
            | CrashReason::Exception
    )
}
