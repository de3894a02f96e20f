//! `uptime`: shows the time of day and how long the system has been running.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use textutil::date::Date;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: uptime [-s]
Shows the time of day (UTC) and how long the system has been running. -s: the seconds alone.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options_alone(USAGE, "s")?;
    let up = ulib::nanoseconds_since_boot();
    if options.has('s') {
        println!(env, "{}.{:02}", up / 1_000_000_000, up / 10_000_000 % 100)?;
        return Ok(0);
    }
    let now = Date::from_seconds(ulib::wall_seconds());
    let up = duration(up / 1_000_000_000);
    println!(
        env,
        " {:02}:{:02}:{:02} up {up}", now.hour, now.minute, now.second
    )?;
    Ok(0)
}

/// A duration in its two largest units.
fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours}:{:02}", minutes % 60),
        (_, _, _) => format!("{days} d {}:{:02}", hours % 24, minutes % 60),
    }
}
