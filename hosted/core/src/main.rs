//! The isolation half of the kernel inside a Linux process.
//!
//! It is built for the bare target, as the domain images are, so that all of them agree on the ABI.
//! A small Linux program loads it and gives it a table of functions ([`hosted_core::Host`]). What
//! kills, unwinds and reclaims is the very code that runs on the bare machine.
//!
//! - [`frames`]: the pages of memory objects, with counts;
//! - [`host`]: the table, and the heap that comes from it;
//! - [`platform`]: the Linux process as the isolation half wants to see it;
//! - [`log`]: the log's lines and its ring;
//! - [`machine`]: archive, power switch and the like as interface objects;
//! - [`run`]: starts the first domain;
//! - [`plug`]: plug-ins of the program around it;
//! - [`steps`]: kills a domain at every instruction of a call;
//! - [`faults`]: carries out fault campaigns;
//! - [`bench`]: measures calls, deaths and reclaim.
//!
//! On the host the crate builds to an empty program, so that workspace-wide commands work.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod bench;
#[cfg(target_os = "none")]
mod faults;
#[cfg(target_os = "none")]
mod frames;
#[cfg(target_os = "none")]
mod host;
#[cfg(target_os = "none")]
mod log;
#[cfg(target_os = "none")]
mod machine;
#[cfg(target_os = "none")]
mod platform;
#[cfg(target_os = "none")]
mod plug;
#[cfg(target_os = "none")]
mod run;
#[cfg(target_os = "none")]
mod steps;

#[cfg(target_os = "none")]
mod core_image {
    //! The entry of the image.

    use hosted_core::{Core, Host, VERSION};

    /// Called once by the launcher, first thing; 1 if the core runs.
    ///
    /// # Safety
    /// `host` and `core` are valid; `host` stays so.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn _start(host: *const Host, core: *mut Core) -> u64 {
        // SAFETY: by the caller's duty; the version is the first field in every version.
        unsafe {
            if (*host).version != VERSION {
                return 0;
            }
            crate::host::set(&*host);
            core.write(Core {
                fault: crate::platform::fault,
                tick: crate::platform::tick,
                run: crate::run::run,
                steps: crate::steps::run,
                bench: crate::bench::run,
                faults: crate::faults::run,
                plug_load: crate::plug::load,
                plug_call: crate::plug::call,
                plug_update: crate::plug::update,
                plug_end: crate::plug::end,
            });
        }
        crate::platform::init();
        1
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("this is a part of the hosted platform: build it for x86_64-unknown-none");
}
