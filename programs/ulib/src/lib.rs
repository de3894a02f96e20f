//! What every program uses: its arguments, files, buffered input and output, and messages that a
//! Unix user knows.
//!
//! A program is a crate with two functions. `start` is its entry, and always the same:
//! ```ignore
//! pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
//!     ulib::program(process, main)
//! }
//! fn main(env: &Env) -> Result<i32, Stop> { ... }
//! ```
//! `main` gives the exit status, or a [`Stop`]: then the program ends at once, with a message where
//! there is something to say. So `?` is all the error handling that most programs need.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod calls;
pub mod command;
mod domains;
pub mod ends;
mod env;
mod error;
mod file;
mod output;

pub use calls::{call_counts, call_samples, caller_name, method_name, sampled_name, timed_calls};
pub use domains::{Found, domains, find_domain};
pub use env::Env;
pub use error::{Error, Stop, load_error_text, rpc_error_text, start_error_text};
pub use file::{FileWriter, READ, Reader};
pub use interfaces::{Handle, Process, Program, RpcResult};
pub use output::{Output, write_all};

use alloc::rc::Rc;

/// A program's main function: its exit status.
pub type Main = fn(&Env) -> Result<i32, Stop>;

/// Exit status of a program whose output nobody reads any more, as a Unix shell shows it.
pub const STATUS_BROKEN_PIPE: i32 = 141;
/// Exit status of a program that was ended.
pub const STATUS_KILLED: i32 = 137;

/// Seconds since 1970-01-01 UTC.
pub fn wall_seconds() -> u64 {
    domain_rt::time::wall_seconds()
}

/// Nanoseconds since 1970-01-01 UTC, as files have it for their times.
pub fn file_time() -> u64 {
    domain_rt::time::wall_coarse()
}

/// Nanoseconds since boot.
pub fn nanoseconds_since_boot() -> u64 {
    domain_rt::time::now()
}

struct Instance {
    process: Handle<dyn Process>,
    main: Main,
}

/// Makes a program of a main function.
///
/// # Errors
/// There is no memory for it.
pub fn program(process: Handle<dyn Process>, main: Main) -> RpcResult<Handle<dyn Program>> {
    Handle::<dyn Program>::new(Instance { process, main })
}

impl Program for Instance {
    fn run(&self) -> RpcResult<i32> {
        let process = Rc::new(self.process.duplicate()?);
        match Env::new(process) {
            Ok(env) => {
                let result = (self.main)(&env);
                Ok(env.finish(result))
            }
            Err(_) => Ok(1),
        }
    }
}

/// Writes formatted text to the standard output: `print!(env, "{}", x)?`.
#[macro_export]
macro_rules! print {
    ($env:expr, $($text:tt)*) => { $env.print(::core::format_args!($($text)*)) };
}

/// Writes formatted text and a line break to the standard output: `println!(env, "{}", x)?`.
#[macro_export]
macro_rules! println {
    ($env:expr, $($text:tt)*) => { $env.print_line(::core::format_args!($($text)*)) };
}
