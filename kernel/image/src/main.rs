//! The bootable kernel: puts framework, isolation and policies together.
//!
//! - [`platform`]: the framework as the isolation half wants to see it;
//! - [`hardware`]: device memory, ports, interrupts and DMA as interface objects;
//! - [`space`]: address spaces as interface objects;
//! - [`machine`]: archive, command line, power switch and log as interface objects;
//! - [`root`]: starts `init`, the only domain that the kernel itself starts;
//! - `bench` and `faults`, with the feature `testing`: measure calls and carry out fault campaigns,
//!   instead of starting anything.
//!
//! On the host the crate builds to an empty program, so that workspace-wide commands work.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(all(target_os = "none", feature = "testing"))]
mod bench;
#[cfg(target_os = "none")]
mod dma;
#[cfg(all(target_os = "none", feature = "testing"))]
mod faults;
#[cfg(target_os = "none")]
mod hardware;
#[cfg(target_os = "none")]
mod machine;
#[cfg(target_os = "none")]
mod platform;
#[cfg(target_os = "none")]
mod root;
#[cfg(target_os = "none")]
mod space;

#[cfg(target_os = "none")]
mod kernel {
    //! From the framework's boot to the first domain.

    static SCHEDULER: policy::KernelScheduler = policy::KernelScheduler::new();
    static FRAMES: policy::BuddyFrames = policy::BuddyFrames::new();

    framework::kernel_main!(main);

    /// The framework calls this on the boot stack once memory and traps work.
    fn main() -> ! {
        framework::kprintln!("Trefoil");
        if FRAMES.install().is_err() {
            framework::kprintln!("boot: no memory for the frame policy; the built-in one stays");
        }
        framework::task::start(&SCHEDULER, first_thread, 0)
    }

    /// Runs with everything in the framework up.
    extern "C" fn first_thread(_: usize) {
        #[cfg(feature = "testing")]
        run_selftests();
        framework::log::start_sender();
        crate::platform::init();
        crate::space::clock::init();
        isolation::call::thread::with_root(|| {
            #[cfg(feature = "testing")]
            if crate::bench::requested() {
                crate::bench::run();
            }
            #[cfg(feature = "testing")]
            if crate::faults::requested() {
                crate::faults::run();
            }
            crate::root::start();
        });
    }

    /// Runs the framework's tests instead of anything else, if the command line asks for it.
    #[cfg(feature = "testing")]
    fn run_selftests() {
        let line = framework::boot::command_line();
        if let Some(filter) = framework::selftest::requested(line) {
            let passed = framework::selftest::run(filter);
            framework::power::off_with_status(u8::from(!passed));
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("this is a kernel: build it for x86_64-unknown-none");
}
