//! `strain WORD ...`: goes to the limits of files, names and memory, and says exactly what it met.
//! For tests.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod files;
mod memory;
mod names;
mod starve;
mod threads;

use alloc::string::String;
use alloc::vec::Vec;
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: strain open N PATH          opens PATH N times at once
       strain write PATH AT TEXT   writes TEXT at byte AT
       strain read PATH AT N       prints N bytes from byte AT on
       strain cut PATH SIZE        sets the size
       strain room PATH            free blocks and inodes of the file system
       strain fill PATH            writes until there is no room
       strain make DIRECTORY N     makes N files, lists them
       strain clear DIRECTORY      removes all files
       strain names DIRECTORY      names of 255 and 256 bytes, paths of 4,095 and 4,096
       strain eat                  takes all memory that can be had, and says how it ended
       strain hold N S             takes N MiB, keeps them for S seconds, and says how it ended
       strain burst                takes memory until it is ended for it
       strain spin N               N threads that compute for ever
       strain pipes N SIZE S       writes SIZE bytes into each of N pipes, less where that is refused, and keeps them for S seconds
       strain starved NAME PATH    takes all memory, makes the domain crash, and reads PATH; its check sum
       strain calls                takes all memory, tries each system call, and again with memory";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let operands: Vec<&[u8]> = env.arguments().iter().map(Vec::as_slice).collect();
    match operands.as_slice() {
        [b"open", count, path] => files::open_many(env, number(count)?, path),
        [b"write", path, at, text] => files::write(env, path, number(at)?, text),
        [b"read", path, at, count] => files::read(env, path, number(at)?, number(count)?),
        [b"cut", path, size] => files::cut(env, path, number(size)?),
        [b"room", path] => files::room(env, path),
        [b"fill", path] => files::fill(env, path),
        [b"make", directory, count] => names::make(env, directory, number(count)?),
        [b"clear", directory] => names::clear(env, directory),
        [b"names", directory] => names::limits(env, directory),
        [b"eat"] => memory::eat(env),
        [b"hold", amount, seconds] => memory::hold(env, number(amount)?, number(seconds)?),
        [b"burst"] => memory::burst(),
        [b"spin", count] => threads::spin(env, number(count)?),
        [b"pipes", count, size, seconds] => {
            starve::pipes(env, number(count)?, number(size)?, number(seconds)?)
        }
        [b"starved", name, path] => starve::reads(env, name, path),
        [b"calls"] => starve::calls(env),
        _ => Err(Stop::usage(USAGE.trim_ascii())),
    }
}

fn number(text: &[u8]) -> Result<u64, Stop> {
    let text = String::from_utf8_lossy(text);
    let wrong = |_| Stop::about(text.as_bytes(), Error::text("not a number"));
    text.parse().map_err(wrong)
}
