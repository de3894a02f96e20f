//! `dmesg [-bw] [-s FOLDER]`: prints the kernel's log, and with -w what comes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod symbols;

use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{Monitor, RVec};
use stacktext::Reader;
use symbols::OnDisk;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: dmesg [-bw] [-s FOLDER]
Prints what is kept of the kernel's log. -w: then waits for more, until Ctrl-C.
-b: the stacks of domains that died are put into words, by the symbols in /lib/symbols (with -s: in FOLDER).
`cargo xtask symbols` puts them there. Of a build that has none there, offsets are shown, and that it has none.";
/// How long to wait before more of the log is asked for, in nanoseconds.
const PAUSE: u64 = 200_000_000;
/// Bytes that are asked for at once.
const CHUNK: usize = 16 * 1024;
/// Where symbols are looked for.
const FOLDER: &[u8] = b"/lib/symbols";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options_alone(USAGE, "bws:")?;
    let follow = options.has('w');
    let folder = options.value('s').unwrap_or(FOLDER);
    let is_read = options.has('b') || options.has('s');
    let mut words = is_read.then(|| Words::new(env, folder));
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let mut from = 0;
    loop {
        let (text, next) = monitor.log(from, RVec::filled(0, CHUNK)?)?;
        from = next;
        if !text.is_empty() {
            match &mut words {
                None => env.write(&text)?,
                Some(words) => env.write(words.whole_lines(&text).as_bytes())?,
            }
        } else if follow {
            env.flush()?;
            env.process()
                .sleep(PAUSE)
                .map_err(|errno| Stop::about(b"sleep", errno))?;
        } else {
            return Ok(0);
        }
    }
}

/// Puts stacks into words.
struct Words<'a> {
    reader: Reader<OnDisk<'a>>,
    /// A line whose end has not come yet.
    rest: Vec<u8>,
}

impl<'a> Words<'a> {
    fn new(env: &'a Env, folder: &[u8]) -> Self {
        Words {
            reader: Reader::new(OnDisk::new(env, folder)),
            rest: Vec::new(),
        }
    }

    /// What is to be printed for the lines that `text` ends.
    fn whole_lines(&mut self, text: &[u8]) -> String {
        self.rest.extend_from_slice(text);
        let end = self.rest.iter().rposition(|&byte| byte == b'\n');
        let lines: Vec<u8> = self.rest.drain(..end.map_or(0, |at| at + 1)).collect();
        self.reader.lines(&String::from_utf8_lossy(&lines))
    }
}
