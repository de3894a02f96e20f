//! The Linux process as the isolation half wants to see it: pages, image space, threads, time,
//! stopping the world.

use crate::host::host;
use abi::api::{Api, set_api};
use abi::hex::{ZEROS, digits};
use alloc::boxed::Box;
use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use hosted_core::{
    INTERRUPTED, MISMATCH, NO_DEADLINE, READ, READ_EXECUTE, READ_WRITE, Registers, TIMED_OUT, View,
};
use isolation::Reason;
use isolation::death::kill::Culprit;
use isolation::load::verify::Identity;
use isolation::platform::{
    Attributes, Frame, ImageSpace, Landing, PAGE, Place, Platform, Protection, ThreadView,
    WaitResult,
};

/// The process.
struct Process;

static PROCESS: Process = Process;

/// What the build put in: hexadecimal digits, 64 each.
static IDENTITY: Identity = Identity {
    fingerprint: digits(match option_env!("TREFOIL_FINGERPRINT") {
        Some(text) => text,
        None => ZEROS,
    }),
    public_key: digits(match option_env!("TREFOIL_PUBLIC_KEY") {
        Some(text) => text,
        None => ZEROS,
    }),
};

/// Puts the isolation half on top of the process. Called once, by the first thread.
pub fn init() {
    const API: Api = isolation::load::entry::API;
    // SAFETY: nothing of the core has used the shared heap yet, and no domain exists.
    unsafe { set_api(API) };
    isolation::set_platform(&PROCESS);
    isolation::load::verify::set_identity(&IDENTITY);
    isolation::call::handle::set_registry(proxies::REGISTRY);
    isolation::death::kill::init();
    services::timer::init();
}

impl Platform for Process {
    fn pages(&self, count: usize) -> Option<NonNull<u8>> {
        NonNull::new((host().pages)(count) as *mut u8)
    }

    unsafe fn free_pages(&self, start: NonNull<u8>, count: usize) {
        // SAFETY: by the caller's duty, pages from `pages` that nobody uses.
        unsafe { (host().free_pages)(start.as_ptr() as usize, count) };
    }

    fn image_space(&self, pages: usize) -> Option<Box<dyn ImageSpace>> {
        let start = NonNull::new((host().image_take)(pages) as *mut u8)?;
        Some(Box::new(Space { start, pages }))
    }

    fn spawn(
        &self,
        _name: &str,
        entry: extern "C" fn(usize),
        argument: usize,
        attributes: &Attributes,
    ) -> Option<u64> {
        // Linux schedules, and promises nothing to an ordinary process.
        if attributes.deadline.is_some() {
            return None;
        }
        // SAFETY: the entry is a function of this image, which stays.
        let id = unsafe { (host().spawn)(entry as usize, argument, attributes.stack) };
        (id != 0).then_some(id)
    }

    fn wait(&self, word: &AtomicU32, expected: u32, deadline: Option<u64>) -> WaitResult {
        let deadline = deadline.unwrap_or(NO_DEADLINE);
        // SAFETY: the word is borrowed for the call.
        match unsafe { (host().wait)(core::ptr::from_ref(word) as usize, expected, deadline) } {
            MISMATCH => WaitResult::Mismatch,
            TIMED_OUT => WaitResult::TimedOut,
            INTERRUPTED => WaitResult::Interrupted,
            _ => WaitResult::Woken,
        }
    }

    fn wake(&self, word: &AtomicU32, count: u32) -> u32 {
        (host().wake)(core::ptr::from_ref(word) as usize, count)
    }

    fn memory(&self) -> usize {
        (host().memory)(0) as usize / PAGE
    }

    fn can_spare(&self, pages: usize) -> bool {
        (host().memory)(1) as usize / PAGE >= pages
    }

    fn is_ample(&self, pages: usize) -> bool {
        let kept = (self.memory() / 32).clamp(256, 2048);
        (host().memory)(1) as usize / PAGE > pages.saturating_add(kept)
    }

    fn yield_now(&self) {
        (host().yield_now)();
    }

    fn thread_ns(&self) -> u64 {
        (host().processor_time)(1)
    }

    fn now(&self) -> u64 {
        (host().now)()
    }

    fn wall(&self) -> u64 {
        (host().wall)()
    }

    fn counted(&self, cell: usize) -> u64 {
        (host().counted)(cell)
    }

    fn text(&self) -> Range<usize> {
        text()
    }

    fn log(&self, line: fmt::Arguments<'_>) {
        crate::log::line(line);
    }

    fn stop_world(&self, visit: &mut dyn FnMut(&mut ThreadView<'_>)) {
        let mut visit = visit;
        // SAFETY: `show` takes the context for what it is here, which is borrowed for the call.
        unsafe { (host().stop_world)(show as *const () as usize, (&raw mut visit) as usize) };
    }

    /// There are no devices.
    fn stop_devices(&self, _id: u32) {}
}

/// Shows one stopped thread to the visitor.
///
/// # Safety
/// `context` is the address of a `&mut dyn FnMut(&mut ThreadView)`, `view` that of a [`View`].
unsafe extern "C" fn show(context: usize, view: usize) {
    // SAFETY: by the caller's duty. The registers are those of a thread that does not run.
    unsafe {
        let visit = &mut *(context as *mut &mut dyn FnMut(&mut ThreadView<'_>));
        let view = &mut *(view as *mut View);
        let mut frame = (view.registers as *mut Registers).as_mut().map(Interrupted);
        let mut shown = ThreadView {
            top: view.top as *mut _,
            stack_low: view.stack_low,
            frame: frame.as_mut().map(|frame| frame as &mut dyn Frame),
            blocked: view.blocked != 0,
            interrupt: false,
        };
        visit(&mut shown);
        let interrupt = shown.interrupt;
        view.interrupt = u32::from(interrupt);
    }
}

/// The registers of an interrupted thread.
struct Interrupted<'a>(&'a mut Registers);

/// Direction flag.
const FLAGS_DF: u64 = 1 << 10;

impl Frame for Interrupted<'_> {
    fn ip(&self) -> usize {
        self.0.rip as usize
    }

    fn interruptible(&self) -> bool {
        in_core(self.0.rip as usize) && isolation::lock::held() == 0
    }

    fn place(&self) -> Option<Place> {
        let [ip, sp, bp] = [self.0.rip, self.0.rsp, self.0.rbp].map(|word| word as usize);
        Some(Place { ip, sp, bp })
    }

    fn redirect(&mut self, landing: &Landing) {
        let registers = &mut *self.0;
        registers.rip = landing.ip as u64;
        registers.rsp = landing.sp as u64;
        registers.rdi = landing.rdi as u64;
        let [rbx, rbp, r12, r13, r14, r15] = landing.saved.map(|word| word as u64);
        (registers.rbx, registers.rbp) = (rbx, rbp);
        registers.r[4..].copy_from_slice(&[r12, r13, r14, r15]);
        registers.flags &= !FLAGS_DF;
    }
}

/// Whether `address` is in the core's own code.
fn in_core(address: usize) -> bool {
    text().contains(&address)
}

/// The addresses of the core's own code.
fn text() -> Range<usize> {
    // SAFETY: the linker defines them. Only their addresses are used.
    unsafe extern "C" {
        // The linker puts them at the first byte of the image and behind the last one of its code.
        static __executable_start: u8;
        static etext: u8;
    }
    &raw const __executable_start as usize..&raw const etext as usize
}

/// See [`hosted_core::Core::fault`].
///
/// # Safety
/// `registers` is the address of those of the running thread, which is in a signal handler for a
/// fault.
pub unsafe extern "C" fn fault(registers: usize, reason: u32, address: usize) -> u32 {
    let reason = Reason::from_number(reason.into()).unwrap_or(Reason::Exception);
    // SAFETY: by the caller's duty.
    let mut frame = Interrupted(unsafe { &mut *(registers as *mut Registers) });
    let culprit = isolation::death::kill::fault(&mut frame, reason, address);
    u32::from(culprit == Culprit::Domain)
}

/// See [`hosted_core::Core::tick`].
///
/// # Safety
/// `registers` is the address of those of the running thread, which is in a signal handler for a
/// tick.
pub unsafe extern "C" fn tick(registers: usize, ns: u64) {
    // SAFETY: by the caller's duty.
    let mut frame = Interrupted(unsafe { &mut *(registers as *mut Registers) });
    isolation::death::kill::tick(&mut frame, ns);
}

/// Space for an image.
struct Space {
    start: NonNull<u8>,
    pages: usize,
}

// SAFETY: plain memory; who may touch what is the isolation half's affair.
unsafe impl Send for Space {}
// SAFETY: as above.
unsafe impl Sync for Space {}

impl ImageSpace for Space {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn pages(&self) -> usize {
        self.pages
    }

    fn protect(&self, first: usize, count: usize, protection: Protection) {
        assert!(
            first
                .checked_add(count)
                .is_some_and(|end| end <= self.pages),
            "outside of the space"
        );
        let protection = match protection {
            Protection::Read => READ,
            Protection::ReadWrite => READ_WRITE,
            Protection::ReadExecute => READ_EXECUTE,
        };
        let start = self.start.as_ptr() as usize + first * isolation::platform::PAGE;
        // SAFETY: within the space.
        unsafe { (host().image_protect)(start, count, protection) };
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: the space came from `image_take`, and nobody uses it any more.
        unsafe { (host().image_give)(self.start.as_ptr() as usize, self.pages) };
    }
}
