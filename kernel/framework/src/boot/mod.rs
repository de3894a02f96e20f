//! From the boot loader to `kernel_main`.
//!
//! The loader enters the machine's own code, which makes provisional page tables and calls
//! `boot_main` in the higher half with the address of what the loader says. `boot_main` brings up
//! the log, the processor, memory and the heap in that order and calls what the image named
//! with [`kernel_main!`](crate::kernel_main).

pub mod start_info;

use crate::{acpi, arch, dma, kprintln, log, mem};

pub use start_info::{command_line, module};

/// Names the function, a `fn() -> !`, that the framework calls on the boot stack with interrupts
/// off and memory ready; most go on to [`task::start`](crate::task::start). To be used once in the
/// image: a symbol with a fixed name is not for safe code to define, since its type is not checked
/// where it is called, but this macro checks it.
#[macro_export]
macro_rules! kernel_main {
    ($main:path) => {
        // SAFETY: no other symbol has this name, and the framework declares it with this type.
        #[unsafe(no_mangle)]
        fn kernel_main() -> ! {
            let main: fn() -> ! = $main;
            main()
        }
    };
}

// SAFETY: only `kernel_main!` defines it, with this type and the compiler and flags of this crate.
unsafe extern "Rust" {
    /// The image crate's entry: runs on the boot stack with interrupts off and memory ready.
    fn kernel_main() -> !;
}

/// Called by the machine on the boot stack, with interrupts off.
pub(crate) extern "C" fn boot_main(start_info: u64) -> ! {
    log::init();
    if arch::init_cpu(0).is_err() {
        kprintln!("boot: no memory for the boot processor");
        arch::interrupts::halt_forever();
    }
    arch::cpu::this_cpu().words.stack_low.store(
        arch::boot_stack_low(),
        core::sync::atomic::Ordering::Relaxed,
    );
    start_info::read(start_info);
    if command_line()
        .split_whitespace()
        .any(|word| word == "log=com2")
    {
        log::use_mirror_only();
    }
    if command_line()
        .split_whitespace()
        .any(|word| word == "log=com2")
    {
        // COM1 belongs to the programs alone; only a panic prints there.
        log::use_console(false);
    }
    mem::init();
    arch::cpu::log_features();
    acpi::init();
    dma::log_confinement();
    // SAFETY: `kernel_main!` defines the function with exactly this signature.
    unsafe { kernel_main() }
}
