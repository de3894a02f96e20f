//! Trefoil's domains inside an ordinary Linux process.
//!
//! The isolation half of the kernel is an image built for the bare target (`hosted/core`). This
//! library loads it, gives it memory, threads and time, and turns signals into what it expects of a
//! machine:
//!
//! - [`launch`]: loading the core, and the table of functions it gets;
//! - [`memory`]: pages and image space from `mmap`;
//! - [`plug`]: plug-ins for Linux programs;
//! - [`threads`]: blocks behind GS, waiting, stopping the world;
//! - [`signals`]: faults, ticks, standing still; `step`: that, after an exact number of
//!   instructions;
//! - [`watch`]: somebody who looks in from outside.

pub mod launch;
pub mod memory;
pub mod plug;
pub mod signals;
mod step;
pub mod threads;
pub mod watch;

/// Ends the process because going on would break a promise.
pub fn abort(why: &str) -> ! {
    eprintln!("the hosted platform cannot go on: {why}");
    std::process::abort()
}
