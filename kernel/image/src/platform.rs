//! The framework as the isolation half wants to see it: pages, image space, threads, time, stopping
//! the world.

use abi::UserBuf;
use abi::api::{Api, api, set_api};
use abi::hex::{ZEROS, digits};
use abi::user::{UserEvent, UserRegisters};
use alloc::boxed::Box;
use core::any::Any;
use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use framework::arch::trap::TrapFrame;
use framework::fault::{Fault, FaultKind, FaultOutcome};
use framework::mem::kspace::{self, Prot, Region};
use framework::{smp, task, time};
use isolation::Reason;
use isolation::death::kill::{self, Culprit};
use isolation::load::verify::Identity;
use isolation::platform::{
    Attributes, Deadline, Frame, ImageSpace, Landing, PAGE, Place, Platform, Protection,
    ThreadView, WaitResult,
};

/// Pages that only the kernel itself may use: domains are refused before memory is so short that
/// the kernel could not do its own bookkeeping.
const RESERVE_PAGES: usize = 1024;

/// Those of them that are not spent on notes for domains either, of which a domain may cause many
/// without taking a page itself.
const OWN_PAGES: usize = RESERVE_PAGES / 2;

/// Free pages, beyond those that are kept for recovery, below which those are asked for some that
/// can give some back, before anybody needs it.
const SCARCE_PAGES: usize = 1024;

/// Pages, besides the kernel's own, that only domains get which recovery needs, such as drivers
/// that are started again.
fn recovery_pages() -> usize {
    (framework::mem::frames::stats().total / 32).clamp(256, 2048)
}

/// Whether `count` pages can be given to a domain without touching those. May be called anywhere.
pub fn can_spare(count: usize) -> bool {
    let left = framework::mem::frames::stats().free.checked_sub(count);
    let scarce = RESERVE_PAGES + recovery_pages() + SCARCE_PAGES;
    if left.is_some_and(|left| left < scarce) && !SCARCE.swap(true, Ordering::Relaxed) {
        isolation::memory::relief::ring(count * PAGE);
    } else if left.is_some_and(|left| left > scarce + SCARCE_PAGES)
        && SCARCE.load(Ordering::Relaxed)
    {
        SCARCE.store(false, Ordering::Relaxed);
    }
    left.is_some_and(|left| left > RESERVE_PAGES) && !services::lacks_memory()
}

/// The bell was rung because few pages are free, and since then there never were many.
static SCARCE: AtomicBool = AtomicBool::new(false);

/// The bare machine.
struct Machine;

static MACHINE: Machine = Machine;

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

/// Puts the isolation half on top of the framework. Called once, by the first thread.
pub fn init() {
    const API: Api = isolation::load::entry::API;
    // SAFETY: nothing of the kernel has used the shared heap yet, and no domain exists.
    unsafe { set_api(API) };
    debug_assert!(api().now as usize == API.now as usize);
    isolation::set_platform(&MACHINE);
    isolation::load::verify::set_identity(&IDENTITY);
    isolation::call::handle::set_registry(proxies::REGISTRY);
    // SAFETY: isolation redirects a frame only to the landing of the call record that the faulting
    // domain was entered by, with the registers saved there.
    unsafe { framework::fault::set_hook(on_fault) };
    // SAFETY: likewise.
    unsafe { framework::time::set_tick_hook(on_tick) };
    // SAFETY: looks at the top record alone, and at the domain that it names.
    unsafe { task::set_service_hook(is_in_service) };
    kill::init();
    services::timer::init();
}

/// The group of threads with these attributes.
fn group_of(attributes: &Attributes) -> task::Group {
    let Attributes {
        weight, percent, ..
    } = *attributes;
    task::Group::of(attributes.group, task::Share { weight, percent })
}

fn is_in_service(top_record: usize, group: u64) -> bool {
    // SAFETY: the framework asks for the top record of a thread on this processor, if it has one.
    unsafe { isolation::call::thread::is_in_service(top_record as *const _, group) }
}

impl Platform for Machine {
    fn pages(&self, count: usize) -> Option<NonNull<u8>> {
        can_spare(count)
            .then(|| framework::mem::alloc_pages(count))
            .flatten()
    }

    unsafe fn free_pages(&self, start: NonNull<u8>, count: usize) {
        // SAFETY: by the caller's duty, pages from `pages` that nobody uses.
        unsafe { framework::mem::free_pages(start, count) };
    }

    fn image_space(&self, pages: usize) -> Option<Box<dyn ImageSpace>> {
        let region = can_spare(pages).then(|| kspace::map_region_to_fill(pages));
        Some(Box::new(Space(region?.ok()?)))
    }

    fn spawn(
        &self,
        name: &str,
        entry: extern "C" fn(usize),
        argument: usize,
        attributes: &Attributes,
    ) -> Option<u64> {
        let pages = attributes.stack / PAGE;
        let kind = match attributes.urgent {
            true => task::Attributes::URGENT,
            false => task::Attributes::NORMAL,
        };
        let kind = match attributes.deadline {
            Some(Deadline { runtime, period }) => task::Attributes {
                class: task::Class::Deadline { runtime, period },
                ..kind
            },
            None => kind,
        };
        let group = || group_of(attributes);
        let spawn = || task::spawn_as(name, entry, argument, pages, kind, group());
        let thread = can_spare(pages).then(spawn);
        thread?.ok().map(|id| id.0)
    }

    fn join_group(&self, attributes: &Attributes) {
        task::join_group(group_of(attributes));
    }

    fn wait(&self, word: &AtomicU32, expected: u32, deadline: Option<u64>) -> WaitResult {
        match task::wait_on(word, expected, deadline) {
            task::WaitResult::Woken => WaitResult::Woken,
            task::WaitResult::Mismatch => WaitResult::Mismatch,
            task::WaitResult::TimedOut => WaitResult::TimedOut,
            task::WaitResult::Interrupted => {
                if let Some(id) = task::current_id() {
                    task::clear_interrupt(id);
                }
                WaitResult::Interrupted
            }
        }
    }

    fn wake(&self, word: &AtomicU32, count: u32) -> u32 {
        task::wake(word, count as usize) as u32
    }

    fn wake_later(&self, word: &AtomicU32) {
        task::wake_later(word);
    }

    fn memory(&self) -> usize {
        framework::mem::frames::stats().total
    }

    fn can_spare(&self, pages: usize) -> bool {
        can_spare(pages)
    }

    fn is_ample(&self, pages: usize) -> bool {
        let kept = RESERVE_PAGES + recovery_pages();
        framework::mem::frames::stats().free > pages.saturating_add(kept)
    }

    fn can_note(&self) -> bool {
        framework::mem::frames::stats().free > OWN_PAGES && !services::lacks_memory()
    }

    unsafe fn run_user(
        &self,
        thread: *const u8,
        registers: &mut UserRegisters,
        event: &mut UserEvent,
    ) {
        // SAFETY: by the caller's duty.
        *event = unsafe { crate::space::thread::run(thread, registers) };
    }

    unsafe fn vector_of_user(&self, thread: *const u8, bytes: &mut [u8]) -> usize {
        // SAFETY: by the caller's duty.
        unsafe { crate::space::thread::vector(thread, bytes) }
    }

    unsafe fn set_vector_of_user(&self, thread: *const u8, bytes: &[u8]) -> bool {
        // SAFETY: by the caller's duty.
        unsafe { crate::space::thread::set_vector(thread, bytes) }
    }

    unsafe fn read_user(&self, space: *const u8, at: u64, bytes: &mut [u8]) -> usize {
        // SAFETY: by the caller's duty.
        unsafe { crate::space::read(space, at, bytes) }
    }

    unsafe fn write_user(&self, space: *const u8, at: u64, bytes: &[u8]) -> usize {
        // SAFETY: by the caller's duty.
        unsafe { crate::space::write(space, at, bytes) }
    }

    fn program<'a>(&self, memory: &'a UserBuf<'_>) -> Option<&'a dyn Any> {
        crate::space::lent(memory).map(|space| space as &dyn Any)
    }

    unsafe fn exchange_user(&self, space: *const u8, at: u64, old: u32, new: u32) -> Option<u32> {
        // SAFETY: by the caller's duty.
        unsafe { crate::space::exchange(space, at, old, new) }
    }

    unsafe fn load_user(&self, space: *const u8, at: u64) -> Option<u32> {
        // SAFETY: by the caller's duty.
        unsafe { crate::space::load(space, at) }
    }

    fn yield_now(&self) {
        task::yield_now();
    }

    fn thread_ns(&self) -> u64 {
        task::current().map_or(0, |thread| thread.processor_ns())
    }

    fn now(&self) -> u64 {
        time::now_ns()
    }

    fn wall(&self) -> u64 {
        time::wall_seconds()
    }

    fn counted(&self, cell: usize) -> u64 {
        let blocks = (0..smp::online()).map(framework::arch::cpu::block);
        blocks
            .map(|block| block.counts.0[cell].load(Ordering::Relaxed))
            .sum()
    }

    fn watch(&self, watcher: Option<fn(u32, u64)>) {
        framework::trace::set_watcher(watcher);
    }

    fn text(&self) -> Range<usize> {
        framework::mem::kernel_text()
    }

    fn log(&self, line: fmt::Arguments<'_>) {
        framework::kprintln!("{line}");
    }

    fn stop_world(&self, visit: &mut dyn FnMut(&mut ThreadView<'_>)) {
        let mut is_any = false;
        let mut look = |thread: smp::ThreadView<'_>| {
            let interrupted = thread.interrupted;
            if show(thread, visit) {
                interrupted.store(true, Ordering::SeqCst);
                is_any = true;
            }
        };
        // SAFETY: isolation moves threads only to the landings of their call records.
        smp::stop_world(|world| unsafe { world.threads(&mut look) });
        if is_any {
            task::interrupt_marked();
        }
    }

    fn stop_devices(&self, id: u32) {
        crate::dma::stop_devices_of(id);
    }
}

/// Shows one thread; whether its wait is to end.
fn show(thread: smp::ThreadView<'_>, visit: &mut dyn FnMut(&mut ThreadView<'_>)) -> bool {
    let mut frame = thread.frame.map(Registers);
    let mut view = ThreadView {
        top: thread.top_record.cast(),
        stack_low: thread.stack_low,
        frame: frame.as_mut().map(|frame| frame as &mut dyn Frame),
        blocked: thread.blocked,
        interrupt: false,
    };
    visit(&mut view);
    view.interrupt
}

/// The registers of an interrupted thread.
struct Registers<'a>(&'a mut TrapFrame);

impl Frame for Registers<'_> {
    fn ip(&self) -> usize {
        self.0.instruction()
    }

    fn interruptible(&self) -> bool {
        self.0.interrupts_were_on()
    }

    fn is_user(&self) -> bool {
        self.0.is_user()
    }

    fn place(&self) -> Option<Place> {
        let [ip, sp, bp] = self.0.place();
        Some(Place { ip, sp, bp })
    }

    fn redirect(&mut self, landing: &Landing) {
        self.0
            .redirect(landing.ip, landing.sp, landing.rdi, landing.saved);
    }
}

fn on_fault(frame: &mut TrapFrame, fault: Fault) -> FaultOutcome {
    let reason = match fault.kind {
        FaultKind::PageFault { .. } => Reason::PageFault,
        FaultKind::StackOverflow => Reason::StackOverflow,
        FaultKind::Divide => Reason::DivideError,
        FaultKind::InvalidOpcode => Reason::InvalidOpcode,
        _ => Reason::Exception,
    };
    match kill::fault(&mut Registers(frame), reason, fault.address as usize) {
        Culprit::Domain => FaultOutcome::Handled,
        Culprit::Other => FaultOutcome::Unhandled,
    }
}

fn on_tick(frame: &mut TrapFrame) {
    kill::tick(&mut Registers(frame), task::take_busy_ns());
}

/// Space for an image.
struct Space(Region);

impl ImageSpace for Space {
    fn start(&self) -> NonNull<u8> {
        NonNull::new(self.0.as_ptr()).expect("kernel space does not start at 0")
    }

    fn pages(&self) -> usize {
        self.0.pages()
    }

    fn protect(&self, first: usize, count: usize, protection: Protection) {
        let prot = match protection {
            Protection::Read => Prot::Read,
            Protection::ReadWrite => Prot::ReadWrite,
            Protection::ReadExecute => Prot::ReadExecute,
        };
        self.0.protect(first..first + count, prot);
    }
}
