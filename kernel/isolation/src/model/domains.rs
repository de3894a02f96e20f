//! Domains for the tests: their code is here, what they own is tracked as the real one's is, and
//! they are called through real proxies of one interface, [`Probe`].

#![allow(dropping_copy_types)] // The macro drops results of every kind.

use super::machine::{is_live, wrong};
use super::threads::domain_step;
use crate::call::end::crash_here;
use crate::call::handle::{ProxyEntry, pass};
use crate::call::thread::current;
use crate::call::{Method, guarded, internal};
use crate::domain::group::Seat;
use crate::domain::words::Crash;
use crate::domain::{self, ControlBlock, Limits, State};
use crate::lock::Lock;
use crate::memory::kept::Loaded;
use crate::platform::{PAGE, platform};
use crate::{Reason, proxy};
use abi::handle::{Handle, Interface, ObjectOf};
use abi::shared::KERNEL_OWNER;
use abi::{Exchangeable, RRef, RpcError, RpcResult, Transfer};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// A value that shows whether it was overwritten.
#[derive(Clone, Copy, Debug)]
pub struct Tagged {
    tag: u64,
    inverse: u64,
}

// SAFETY: two numbers.
unsafe impl Exchangeable for Tagged {}

impl Tagged {
    pub fn new(tag: u64) -> Self {
        Tagged { tag, inverse: !tag }
    }

    /// Complains if it is not what was made.
    pub fn check(&self, whose: &str) {
        if self.tag != !self.inverse {
            wrong(format_args!(
                "a shared object was overwritten while {whose} had it"
            ));
        }
    }
}

/// A shared object that owns another.
#[derive(Debug)]
pub struct Nest {
    pub inner: RRef<Tagged>,
}

// SAFETY: transfers the only thing that it owns.
unsafe impl Exchangeable for Nest {
    unsafe fn transfer(&mut self, transfer: &Transfer) -> RpcResult<()> {
        // SAFETY: the caller's duty is passed on unchanged.
        unsafe { self.inner.transfer(transfer) }
    }
}

/// What the domains of the tests can do.
pub trait Probe: Send + Sync + 'static {
    /// Works for some steps.
    fn work(&self, steps: u32) -> RpcResult<u32>;
    /// Never returns by itself.
    fn stay(&self) -> RpcResult<()>;
    /// Panics after some steps.
    fn crash(&self, steps: u32) -> RpcResult<()>;
    /// As `work`, also for a domain that is short of memory.
    fn release(&self, steps: u32) -> RpcResult<u32>;
    /// Says that the domain is short of memory, or is not.
    fn run_short(&self, short: bool, steps: u32) -> RpcResult<()>;
    /// Takes objects, makes one, gives back.
    fn exchange(&self, nest: RRef<Nest>) -> RpcResult<RRef<Nest>>;
    /// Keeps the object until the next one comes.
    fn keep(&self, nest: RRef<Nest>) -> RpcResult<()>;
    /// Looks at a lent object for some steps.
    fn lend(&self, object: &RRef<Tagged>, steps: u32) -> RpcResult<u32>;
    /// Keeps the handle until the next one comes.
    fn befriend(&self, friend: Option<Handle<dyn Probe>>) -> RpcResult<()>;
    /// Calls `work` of what it keeps.
    fn relay(&self, steps: u32) -> RpcResult<u32>;
    /// Calls `stay` of what it keeps.
    fn stay_there(&self) -> RpcResult<()>;
    /// A new object of its own.
    fn give(&self) -> RpcResult<Handle<dyn Probe>>;
}

// SAFETY: the only interface of the tests.
unsafe impl Interface for dyn Probe {
    const NUMBER: u64 = 7;
    const NAME: &'static str = "Probe";
}

// SAFETY: the pointer is only unsized.
unsafe impl<T: Probe> ObjectOf<T> for dyn Probe {
    fn object(pointer: *mut T) -> *mut Self {
        pointer
    }
}

proxy!(ProbeProxy: Probe, "Probe" {
    fn work(&self, steps: u32) -> RpcResult<u32>; moved []; budget 0; frees false; seen [steps] []; fails (_);
    fn stay(&self) -> RpcResult<()>; moved []; budget 0; frees false; seen [] []; fails (_);
    fn crash(&self, steps: u32) -> RpcResult<()>; moved []; budget 0; frees false; seen [steps] []; fails (_);
    fn release(&self, steps: u32) -> RpcResult<u32>; moved []; budget 0; frees true; seen [steps] []; fails (_);
    fn run_short(&self, short: bool, steps: u32) -> RpcResult<()>; moved []; budget 0; frees true; seen [short, steps] []; fails (_);
    fn exchange(&self, nest: RRef<Nest>) -> RpcResult<RRef<Nest>>; moved [nest]; budget 0; frees false; seen [] []; fails (_);
    fn keep(&self, nest: RRef<Nest>) -> RpcResult<()>; moved [nest]; budget 0; frees false; seen [] []; fails (_);
    fn lend(&self, object: &RRef<Tagged>, steps: u32) -> RpcResult<u32>; moved []; budget 0; frees false; seen [steps] []; fails (_);
    fn befriend(&self, friend: Option<Handle<dyn Probe>>) -> RpcResult<()>; moved [friend]; budget 0; frees false; seen [] []; fails (_);
    fn relay(&self, steps: u32) -> RpcResult<u32>; moved []; budget 0; frees false; seen [steps] []; fails (_);
    fn stay_there(&self) -> RpcResult<()>; moved []; budget 0; frees false; seen [] []; fails (_);
    fn give(&self) -> RpcResult<Handle<dyn Probe>>; moved []; budget 0; frees false; seen [] []; fails (_);
});

pub static REGISTRY: &[ProxyEntry] = &[ProbeProxy::entry(<dyn Probe as Interface>::NUMBER)];

const LIVES: u32 = 0x11fe_5afe;

/// An object of a domain. It lies in the tests' own heap, where it stays when its domain dies; the
/// page stands for the domain's memory.
struct Part {
    block: *const ControlBlock,
    page: usize,
    /// [`LIVES`] until it is dropped.
    state: AtomicU32,
    kept: Lock<Option<RRef<Nest>>>,
    friend: Lock<Option<Handle<dyn Probe>>>,
    /// Its drop takes until this domain is gone.
    awaits: Option<Arc<ControlBlock>>,
}

// SAFETY: the block is only used from inside the domain, by whose record it is kept.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

impl Part {
    fn new(block: &ControlBlock, page: usize) -> Self {
        Part {
            block,
            page,
            state: AtomicU32::new(LIVES),
            kept: Lock::new(None),
            friend: Lock::new(None),
            awaits: None,
        }
    }

    /// A piece of the domain's own code: its memory must be there, and the thread must be inside.
    fn step(&self, patient: bool) {
        if !core::ptr::eq(current(), self.block) {
            return wrong(format_args!("code of a domain runs in the name of another"));
        }
        // SAFETY: the record on top names it.
        let block = unsafe { &*self.block };
        domain_step(block.image_start(), patient);
        if !is_live(self.page) || block.state() == State::Gone {
            wrong(format_args!(
                "a domain was cleared away with a thread inside"
            ));
        }
        if self.state.load(Ordering::Relaxed) != LIVES {
            wrong(format_args!("an object was dropped while it was called"));
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(block) = &self.awaits {
            let _ = block.wait_gone();
        }
        if self.state.swap(0, Ordering::Relaxed) != LIVES {
            wrong(format_args!("an object was dropped twice"));
        }
    }
}

impl Probe for Part {
    fn work(&self, steps: u32) -> RpcResult<u32> {
        (0..steps).for_each(|_| self.step(false));
        Ok(steps)
    }

    fn stay(&self) -> RpcResult<()> {
        loop {
            self.step(true);
        }
    }

    fn crash(&self, steps: u32) -> RpcResult<()> {
        self.work(steps)?;
        crash_here(Reason::Panic, &Crash::of_panic("on purpose", "here", 1))
    }

    fn release(&self, steps: u32) -> RpcResult<u32> {
        self.work(steps)
    }

    fn run_short(&self, short: bool, steps: u32) -> RpcResult<()> {
        self.work(steps)?;
        // SAFETY: the record on top names the block.
        unsafe { (*self.block).set_short(short) };
        self.work(steps).map(|_| ())
    }

    fn exchange(&self, nest: RRef<Nest>) -> RpcResult<RRef<Nest>> {
        self.step(false);
        let inner = RRef::new(Tagged::new(3))?;
        nest.inner.check("its receiver");
        let answer = RRef::new(Nest { inner })?;
        self.step(false);
        answer.inner.check("its maker");
        drop(nest);
        Ok(answer)
    }

    fn keep(&self, nest: RRef<Nest>) -> RpcResult<()> {
        let before = self.kept.lock().replace(nest);
        self.step(false);
        if let Some(before) = &before {
            before.inner.check("its keeper");
        }
        Ok(())
    }

    fn lend(&self, object: &RRef<Tagged>, steps: u32) -> RpcResult<u32> {
        for _ in 0..steps {
            self.step(false);
            object.check("its borrower");
        }
        Ok(steps)
    }

    fn befriend(&self, friend: Option<Handle<dyn Probe>>) -> RpcResult<()> {
        let before = core::mem::replace(&mut *self.friend.lock(), friend);
        self.step(false);
        drop(before);
        Ok(())
    }

    fn relay(&self, steps: u32) -> RpcResult<u32> {
        let friend = self.friend.lock().as_ref().map(Handle::duplicate);
        let result = friend.ok_or(RpcError::Refused)??.work(steps);
        self.step(false);
        result
    }

    fn stay_there(&self) -> RpcResult<()> {
        let friend = self.friend.lock().as_ref().map(Handle::duplicate);
        let result = friend.ok_or(RpcError::Refused)??.stay();
        self.step(false);
        result
    }

    fn give(&self) -> RpcResult<Handle<dyn Probe>> {
        self.step(false);
        // SAFETY: the record on top names the block.
        Handle::new(Part::new(unsafe { &*self.block }, self.page))
    }
}

static INSIDE: Method = internal("test", 0);

/// Runs `body` as code of `block`, on a thread of its own.
///
/// # Errors
/// [`RpcError::DomainCrashed`] if it was dead, or died meanwhile.
pub fn inside(block: &ControlBlock, mut body: impl FnMut()) -> RpcResult<()> {
    unsafe extern "C" fn run<F: FnMut()>(body: *mut u8) {
        // SAFETY: `inside` passes its own closure, of this type.
        unsafe { (*body.cast::<F>())() };
    }
    fn runner<F: FnMut()>(_: &F) -> unsafe extern "C" fn(*mut u8) {
        run::<F>
    }
    let function = runner(&body);
    block.counters.threads.fetch_add(1, Ordering::Relaxed);
    // SAFETY: function and data belong together.
    let done = unsafe { guarded(block, &INSIDE, function, (&raw mut body).cast()) };
    block.counters.threads.fetch_sub(1, Ordering::Release);
    done
}

/// A new domain with an image and a page, which lets in `calls` calls at a time, and a handle of
/// the kernel's to its first object.
pub fn start(name: &str, calls: u32) -> (Arc<ControlBlock>, Handle<dyn Probe>) {
    let limits = Limits {
        calls,
        ..Limits::NONE
    };
    start_as(name, limits)
}

/// As [`start`], with these limits.
pub fn start_as(name: &str, limits: Limits) -> (Arc<ControlBlock>, Handle<dyn Probe>) {
    let mut seat = Seat::new(None, &limits.group).expect("memory");
    assert!(seat.charge(PAGE).is_granted(), "there is no limit");
    let image = Loaded::for_once(platform().image_space(1).expect("memory"));
    let block = domain::create(name, limits, None, seat, image).expect("there are numbers left");
    let page = block.take_pages(1).expect("memory").as_ptr() as usize;
    block.enter_running();
    let handle = offer(&block, Part::new(&block, page)).expect("it was just born");
    (block, handle)
}

/// Gives `holder`, to keep, a handle to a new object of `block` whose drop takes until `awaits` is
/// gone.
pub fn endow(holder: &ControlBlock, block: &Arc<ControlBlock>, awaits: Arc<ControlBlock>) {
    let mut part = Part::new(block, 0);
    part.awaits = Some(awaits);
    hand_over(holder, offer(block, part).expect("it lives"));
}

/// Gives `holder`, to keep, a handle of the kernel's.
pub fn hand_over(holder: &ControlBlock, handle: Handle<dyn Probe>) {
    let mut handle = Some(handle);
    let given = inside(holder, || {
        // SAFETY: it passes from the kernel to the callee of the top record.
        unsafe { pass(&mut handle, domain::kernel_block(), holder.id).expect("a proxy passes") };
        core::mem::forget(handle.take());
    });
    given.expect("it lives");
}

/// A handle of the kernel's to `part`, a new object of `block`.
fn offer(block: &Arc<ControlBlock>, part: Part) -> Option<Handle<dyn Probe>> {
    let mut part = Some(part);
    let mut offered = None;
    let done = inside(block, || {
        let Some(part) = part.take() else { return };
        let mut handle = Handle::<dyn Probe>::new(part).expect("memory");
        // SAFETY: it passes from the callee of the top record to the kernel.
        unsafe { pass(&mut handle, Arc::as_ptr(block), KERNEL_OWNER).expect("memory") };
        offered = Some(handle);
    });
    done.ok().and(offered)
}

/// Runs `body` as code of `block`, which is given `handle`.
pub fn as_client(
    block: &ControlBlock,
    handle: Handle<dyn Probe>,
    mut body: impl FnMut(&Handle<dyn Probe>),
) -> RpcResult<()> {
    let mut handle = Some(handle);
    inside(block, || {
        if let Some(handle) = &mut handle {
            // SAFETY: it passes from the kernel to the callee of the top record.
            unsafe { pass(handle, domain::kernel_block(), block.id).expect("a proxy passes") };
        }
        // From here on it is the domain's: if that dies, it is reclaimed with it.
        if let Some(handle) = handle.take() {
            body(&handle);
        }
    })
}
