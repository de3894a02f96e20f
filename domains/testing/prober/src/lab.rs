//! What the tests have in common: starting victims, waiting for the end of them, counting memory.

use crate::Verdict;
use alloc::format;
use alloc::string::String;
use domain_rt::sync::Mutex;
use domain_rt::time;
use interfaces::{
    AddressSpaces, AnyHandle, Archive, CrashReason, Domain, DomainControl, DomainInfo, DomainSpec,
    DomainState, Events, Handle, Hardware, HeapAudit, Holdings, Image, LoadError, Loader,
    MemoryObjects, MemoryWatch, Monitor, RVec, Random, RpcError, StartError, Subject, Text, Tracer,
};

/// The tools of the tests.
pub struct Lab {
    /// Verifies images.
    pub loader: Handle<dyn Loader>,
    /// Shows domains.
    pub monitor: Handle<dyn Monitor>,
    /// Ends domains.
    pub control: Handle<dyn DomainControl>,
    /// The boot archive.
    pub archive: Handle<dyn Archive>,
    /// Tells who needs memory; not on every platform.
    pub memory: Option<Handle<dyn MemoryWatch>>,
    /// Looks at the heaps, in kernels for tests.
    pub auditor: Option<Handle<dyn HeapAudit>>,
    /// Makes memory objects.
    pub objects: Option<Handle<dyn MemoryObjects>>,
    /// Makes events.
    pub events: Option<Handle<dyn Events>>,
    /// Shows calls.
    pub tracer: Option<Handle<dyn Tracer>>,
    /// Makes random numbers.
    pub random: Option<Handle<dyn Random>>,
    /// Makes address spaces; not in a Linux process.
    pub spaces: Option<Handle<dyn AddressSpaces>>,
    /// What random tests depend on; 0 in the usual run.
    pub seed: u64,
    victim: Mutex<Option<Handle<dyn Image>>>,
    /// Devices; a Linux process has none.
    pub hardware: Option<Handle<dyn Hardware>>,
}

/// A running victim.
pub struct Victim {
    /// Its object.
    pub subject: Handle<dyn Subject>,
    /// Authority over it.
    pub domain: Handle<dyn Domain>,
    /// Its instance.
    pub id: u32,
}

/// A victim without limits of its own.
pub fn unlimited() -> DomainSpec {
    DomainSpec {
        name: Text::new("victim"),
        page_limit: 0,
        shared_limit: 0,
        thread_limit: 0,
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

/// Longer than anything here takes; in nanoseconds.
const PATIENCE: u64 = 20_000_000_000;

/// How often it looks at least.
const LOOKS: u32 = 500;

/// Memory in use: pages, but for those of the kernel's small objects, which come back when all that
/// is in one has been freed, and for tables of kernel space, which stay; and bytes of the former.
#[derive(Debug, PartialEq, Eq)]
struct Used {
    pages: u64,
    bytes: u64,
}

impl Used {
    fn is_as(&self, before: &Used) -> bool {
        self.pages == before.pages && self.bytes.abs_diff(before.bytes) < 4096
    }
}

impl Lab {
    /// The lab with these grants.
    #[allow(clippy::too_many_arguments, reason = "they are the entry's")]
    pub fn new(
        loader: Handle<dyn Loader>,
        monitor: Handle<dyn Monitor>,
        control: Handle<dyn DomainControl>,
        archive: Handle<dyn Archive>,
        memory: Option<Handle<dyn MemoryWatch>>,
        hardware: Option<Handle<dyn Hardware>>,
        objects: Option<Handle<dyn MemoryObjects>>,
        spaces: Option<Handle<dyn AddressSpaces>>,
    ) -> Self {
        Lab {
            loader,
            monitor,
            control,
            archive,
            memory,
            objects,
            events: None,
            tracer: None,
            random: None,
            auditor: None,
            spaces,
            hardware,
            seed: 0,
            victim: Mutex::new(None),
        }
    }

    /// The bytes of the victim's image file.
    pub fn victim_file(&self) -> Result<RVec<u8>, String> {
        self.file("domains/victim")
    }

    /// The bytes of the image file at `path`.
    fn file(&self, path: &str) -> Result<RVec<u8>, String> {
        for index in 0.. {
            let entry = self.archive.entry(index).map_err(say)?;
            let entry = entry.ok_or_else(|| format!("no {path} in the archive"))?;
            if entry.path.as_str() == path {
                let buffer = RVec::filled(0, entry.size as usize).map_err(say)?;
                return self.archive.read(index, 0, buffer).map_err(say);
            }
        }
        Err("the archive has no end".into())
    }

    /// The image at `path`.
    pub fn image(&self, path: &str) -> Result<Handle<dyn Image>, String> {
        self.loader.prepare(self.file(path)?).map_err(say)
    }

    /// A victim's image, verified once.
    pub fn victim_image(&self) -> Result<Handle<dyn Image>, String> {
        let known = self.victim.lock().as_ref().map(Handle::duplicate);
        if let Some(image) = known {
            return image.map_err(say);
        }
        let image = self
            .loader
            .prepare(self.victim_file()?)
            .map_err(|error: LoadError| say(error))?;
        let copy = image.duplicate().map_err(say)?;
        *self.victim.lock() = Some(image);
        Ok(copy)
    }

    /// A new victim with these limits (pages, threads), whose next in the chain is `next`.
    pub fn start_limited(
        &self,
        next: Option<&Victim>,
        pages: u64,
        threads: u32,
        options: &[u8],
    ) -> Result<Result<Victim, StartError>, String> {
        let spec = DomainSpec {
            page_limit: pages,
            thread_limit: threads,
            ..unlimited()
        };
        self.start_as(next, spec, options)
    }

    /// A new victim with everything as `spec` says.
    pub fn start_as(
        &self,
        next: Option<&Victim>,
        spec: DomainSpec,
        options: &[u8],
    ) -> Result<Result<Victim, StartError>, String> {
        let mut grants: [Option<AnyHandle>; 16] = [const { None }; 16];
        grants[0] = next
            .map(|next| next.subject.duplicate())
            .transpose()
            .map_err(say)?
            .map(Handle::into_any);
        let options = RVec::from_slice(options).map_err(say)?;
        let mut started = match self.victim_image()?.start(spec, grants, options) {
            Ok(started) => started,
            Err(error) => return Ok(Err(error)),
        };
        let service = started.offers[0]
            .take()
            .ok_or("the victim offers nothing")?;
        let subject = service
            .downcast()
            .map_err(|_| String::from("the victim offers something else"))?;
        let id = started.control.info().map_err(say)?.id;
        Ok(Ok(Victim {
            subject,
            domain: started.control,
            id,
        }))
    }

    /// A new victim.
    pub fn start(&self) -> Result<Victim, String> {
        self.start_limited(None, 0, 0, b"")?
            .map_err(|error| format!("no start: {error:?}"))
    }

    /// A new victim whose next in the chain is `next`.
    pub fn start_before(&self, next: &Victim) -> Result<Victim, String> {
        self.start_limited(Some(next), 0, 0, b"")?
            .map_err(|error| format!("no start: {error:?}"))
    }

    /// Free memory, in bytes.
    pub fn free(&self) -> Result<u64, String> {
        Ok(self.monitor.memory().map_err(say)?.free)
    }

    /// Memory in use by the shared heap, in bytes.
    pub fn shared(&self) -> Result<u64, String> {
        Ok(self.monitor.memory().map_err(say)?.shared)
    }

    /// Runs `work` until free memory is the same before and after, a few times at most: what is
    /// allocated once and kept (tables that grow, chunks of the shared heap) does not count, what
    /// is lost every time does.
    pub fn conserves_memory(&self, mut work: impl FnMut() -> Verdict) -> Verdict {
        const TRIES: usize = 8;
        let mut lost = 0;
        for _ in 0..TRIES {
            let before = self.free()?;
            work()?;
            lost = before as i64 - self.free()? as i64;
            if lost <= 0 {
                return Ok(());
            }
        }
        Err(format!("{lost} bytes are lost every time"))
    }

    /// Runs `work`, and after each of a few times all memory is back to the page, not more and not
    /// less, and of the kernel's own small objects no page's worth is there in addition: a thread
    /// of the kernel's own may wait or not. The first times do not count, as tables grow once.
    pub fn returns_each_page(&self, mut work: impl FnMut() -> Verdict) -> Verdict {
        const WARM: usize = 2;
        const ROUNDS: usize = 3;
        for _ in 0..WARM {
            work()?;
            self.rest()?;
        }
        let before = self.used()?;
        for _ in 0..ROUNDS {
            work()?;
            let mut after = Err(String::new());
            wait_for("the memory", || {
                after = self.used();
                after.as_ref().is_ok_and(|after| after.is_as(&before))
            })
            .map_err(|why| format!("{why}: {before:?} became {after:?}"))?;
        }
        Ok(())
    }

    /// What is in use, but for the private heap of this domain, which grows by what a test notes.
    fn used(&self) -> Result<Used, String> {
        let own = self.info(domain_rt::self_id())?;
        let own = own.ok_or("this domain is nobody")?.heap_bytes;
        let memory = self.monitor.memory().map_err(say)?;
        let keeps = self.auditor.as_ref().map(|it| it.keeps());
        let keeps = keeps.transpose().map_err(say)?;
        let kept = keeps.as_ref().map_or(0, |it| it.pages + it.tables);
        Ok(Used {
            pages: (memory.total - memory.free - own) / 4096 - kept,
            bytes: keeps.map_or(0, |it| it.bytes),
        })
    }

    /// Waits until what goes on after a death, such as the freeing of stacks, is over: until
    /// nothing has come or gone in a fifth of a second.
    fn rest(&self) -> Verdict {
        const LOOKS: u32 = 10;
        let (mut last, mut same) = (self.used()?, 0);
        while same < LOOKS {
            time::sleep(20_000_000);
            let now = self.used()?;
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
        Ok(())
    }

    /// The heaps of shared objects and of handles are as they must be, where somebody can tell.
    pub fn audit(&self) -> Verdict {
        let Some(auditor) = &self.auditor else {
            return Ok(());
        };
        match auditor.audit().map_err(say)? {
            None => Ok(()),
            Some(what) => Err(format!("the heaps: {what}")),
        }
    }

    /// What the victim owns and holds.
    pub fn holdings(&self, id: u32) -> Result<Holdings, String> {
        self.monitor.holdings(id).map_err(say)
    }

    /// The victim's description, if it is not gone.
    pub fn info(&self, id: u32) -> Result<Option<DomainInfo>, String> {
        let info = self.monitor.next(id).map_err(say)?;
        Ok(info.filter(|info| info.id == id))
    }
}

impl Victim {
    /// Waits until everything of it is taken back; why it ended.
    pub fn gone(&self) -> Result<CrashReason, String> {
        self.domain.wait().map_err(say)
    }

    /// Ends it and waits until it is gone.
    pub fn end(&self) -> Verdict {
        self.domain.kill().map_err(say)?;
        self.gone().map(drop)
    }

    /// Whether it is dead, for whatever reason.
    pub fn has_died(&self) -> Result<bool, String> {
        let info = self.domain.info().map_err(say)?;
        Ok(info.state != DomainState::Running)
    }

    /// Whether calls to it fail as they must.
    pub fn is_dead(&self) -> bool {
        self.subject.null() == Err(RpcError::DomainCrashed)
    }
}

/// Waits until `condition` holds. Gives up by the clock, but not before [`LOOKS`]: on a host that
/// stood still the clock jumps, and nobody here has run meanwhile.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) -> Verdict {
    let end = time::now() + PATIENCE;
    let mut looks = 0;
    while !condition() {
        looks += 1;
        if looks > LOOKS && time::now() > end {
            return Err(format!("waited in vain for {what}, in {looks} looks"));
        }
        time::sleep(200_000);
    }
    Ok(())
}

/// Waits until the callers' threads are gone, so that their stacks are back.
pub fn settle(lab: &Lab) -> Verdict {
    let mine = domain_rt::self_id();
    wait_for(
        "the callers' threads to end",
        || matches!(lab.info(mine), Ok(Some(info)) if info.threads == 1),
    )?;
    time::sleep(2_000_000);
    Ok(())
}

/// Any error as text.
pub fn say(error: impl core::fmt::Debug) -> String {
    format!("{error:?}")
}
