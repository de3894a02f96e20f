//! `uname`: shows the name and version of the system.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: uname [-asnrm]
Shows the name of the system. -s: this (usual), -n: the name of the machine, -r: the version,
-m: the processor; -a: all of these.";

/// What `/proc/version` begins with, where there is no such file.
const NAME: &str = "Trefoil";
/// There is no network that would know the machine by another name.
const MACHINE: &str = "trefoil";
/// The only kind of processor that this runs on.
const PROCESSOR: &str = "x86_64";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options_alone(USAGE, "asnrm")?;
    let version = version(env);
    let (name, release) = version.split_once(' ').unwrap_or((NAME, "?"));
    let all = [
        ('s', name),
        ('n', MACHINE),
        ('r', release.trim_end()),
        ('m', PROCESSOR),
    ];
    let chosen: Vec<&str> = all
        .into_iter()
        .filter(|(letter, _)| options.has(*letter) || options.has('a'))
        .map(|(_, text)| text)
        .collect();
    match chosen.is_empty() {
        true => println!(env, "{name}")?,
        false => println!(env, "{}", chosen.join(" "))?,
    }
    Ok(0)
}

/// What the system says of itself.
fn version(env: &Env) -> String {
    let text = env
        .open(b"/proc/version")
        .and_then(|mut file| file.read_to_end());
    let text = text.unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}
