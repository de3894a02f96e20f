//! Bringing in the other processors, one after the other, and the first thing each does.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::ONLINE;
use crate::arch::{self, MAX_CPUS, controller, interrupts};
use crate::mem::{self, Stack};
use crate::{kprintln, task, time};

/// Pages of a scheduler stack.
const STACK_PAGES: usize = 4;

/// The index, plus one, of the processor that has arrived last.
static ARRIVED: AtomicUsize = AtomicUsize::new(0);
/// Low end and top of the stack of the processor being started.
static STACK_LOW: AtomicUsize = AtomicUsize::new(0);
static STACK_TOP: AtomicUsize = AtomicUsize::new(0);

/// Starts all processors that the firmware lists as usable, up to [`MAX_CPUS`].
pub(crate) fn start_processors() {
    mem::tlb::set_shootdown(super::flush_everywhere);
    for number in arch::start::others() {
        let index = super::online();
        if index == MAX_CPUS {
            kprintln!("smp: more than {MAX_CPUS} processors; the others stay off");
            break;
        }
        if let Err(why) = start(index, number) {
            kprintln!("smp: processor with APIC id {number}: {why}");
        }
    }
    kprintln!("smp: {} processors", super::online());
}

/// Starts the processor that the machine knows by `number`, as number `index`.
fn start(index: usize, number: u32) -> Result<(), &'static str> {
    let stack = mem::alloc_stack(STACK_PAGES).map_err(|_| "no memory for its stack")?;
    STACK_LOW.store(stack.low, Ordering::Relaxed);
    STACK_TOP.store(stack.top, Ordering::Relaxed);
    let is_here = || ARRIVED.load(Ordering::Acquire) == index + 1;
    // SAFETY: the stack is fresh and the processor's alone, and stays mapped for ever.
    match unsafe { arch::start::start(index, number, stack.top, &is_here) } {
        true => Ok(()),
        false => Err("does not start"),
    }
}

/// Sets up the started processor, on its scheduler stack, and lets it run threads. Interrupts have
/// been off since the start.
pub(crate) extern "C" fn arrive() -> ! {
    let index = super::online();
    if arch::init_cpu(index).is_err() {
        interrupts::halt_forever();
    }
    controller::enable();
    time::enable_on_this_processor();
    let (low, top) = (
        STACK_LOW.load(Ordering::Relaxed),
        STACK_TOP.load(Ordering::Relaxed),
    );
    ONLINE.store(index + 1, Ordering::SeqCst);
    ARRIVED.store(index + 1, Ordering::Release);
    // SAFETY: the stack was allocated for this processor; nothing on it is needed again;
    // interrupts have been off since the start.
    unsafe { task::run_processor(low, top) }
}

/// Lets the boot processor run threads.
///
/// # Panics
/// If there is no memory for its scheduler stack.
pub(crate) fn enter_boot_processor() -> ! {
    let Stack { low, top } = mem::alloc_stack(STACK_PAGES).expect("memory at boot");
    // SAFETY: the stack is fresh, the boot stack is not needed any more, interrupts are off.
    unsafe { task::run_processor(low, top) }
}
