//! `trace [-n COUNT] NAME [-- COMMAND...]`: shows the calls of a domain, and those to it, with
//! their arguments.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod names;

use alloc::format;
use alloc::vec::Vec;
use calltext::{Open, Tables, Traced};
use interfaces::{ARGUMENTS, CallEvent, CallTrace, INTERFACES, Monitor, RVec, Tracer};
use names::Names;
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, command, println};

const USAGE: &str = "
usage: trace [-n COUNT] NAME [-- COMMAND [ARGUMENT...]]
Shows the calls that the domain NAME (or with that number; see `domains`) makes and is asked, when they end: seconds since the trace
began, caller, callee, method, its arguments, how it ended, and seconds that it took. Of arguments the first four are shown that are
numbers, names of variants, or runs of data, of these the length; `_` stands for all others.
Until Ctrl-C, or the domain ends, or COMMAND does, which is run meanwhile and whose status is this one's, or COUNT calls were shown.
While it runs, all calls of the system take longer. Calls of `trace` itself are left out; others that its output causes are not.";

/// How long to wait before there may be more, in nanoseconds.
const PAUSE: u64 = 20_000_000;
/// Events that are asked for at once.
const CHUNK: usize = 512;

const TABLES: Tables = Tables {
    interfaces: INTERFACES,
    arguments: ARGUMENTS,
};

const NOTHING: CallEvent = CallEvent {
    time: 0,
    begun: 0,
    caller: 0,
    callee: 0,
    interface: 0,
    method: 0,
    failed: false,
    arguments: [0; 4],
};

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let (most, name, command) = arguments(env)?;
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let tracer = env.service::<dyn Tracer>("tracer")?;
    let id = ulib::find_domain(&monitor, &name)?.id;
    let mut show = Show {
        env,
        names: Names::new(monitor),
        open: Open::default(),
        begun: ulib::nanoseconds_since_boot(),
        left: most,
    };
    let trace = tracer.trace(id)?;
    let child = match command.is_empty() {
        true => None,
        false => match command::begin(env, &command)? {
            Ok(pid) => Some(pid),
            Err(status) => return Ok(status),
        },
    };
    follow(&mut show, &trace, id, child)?;
    // No longer than it must be: what follows may take its time.
    drop(trace);
    env.flush()?;
    match child {
        Some(pid) => Ok(command::finish(env, pid)?),
        None => Ok(0),
    }
}

/// How many calls to show, the domain's name, and the command.
type Asked = (u64, Vec<u8>, Vec<Vec<u8>>);

fn arguments(env: &Env) -> Result<Asked, Stop> {
    let arguments = env.arguments();
    let end = command::options_end(arguments, b"n");
    let options = env.options_of(&arguments[..end], USAGE, "n:")?;
    let most = match options.value('n') {
        None => u64::MAX,
        Some(text) => {
            let number = core::str::from_utf8(text).ok();
            let number = number.and_then(|it| it.parse().ok());
            let wrong = || Stop::usage("a number above 0 is needed; `trace --help` says more");
            number.filter(|number| *number > 0).ok_or_else(wrong)?
        }
    };
    match &arguments[end..] {
        [] => Err(Stop::usage("a name is needed; `trace --help` says more")),
        [name] => Ok((most, name.clone(), Vec::new())),
        [name, dashes, command @ ..] if dashes == b"--" && !command.is_empty() => {
            Ok((most, name.clone(), command.to_vec()))
        }
        _ => Err(Stop::usage(
            "one name is enough, and `--` stands before a command; `trace --help` says more",
        )),
    }
}

/// Shows what is traced of domain `id` until that is over.
fn follow(
    show: &mut Show<'_>,
    trace: &Handle<dyn CallTrace>,
    id: u32,
    child: Option<u32>,
) -> Result<(), Stop> {
    let (mut from, mut lost, mut end) = (0, 0, u64::MAX);
    loop {
        // This first: what was done before it is over has been noted.
        let is_over = match child {
            Some(pid) => has_ended(show.env, pid),
            None => !show.names.is_alive(id)?,
        };
        if is_over {
            end = end.min(ulib::nanoseconds_since_boot());
        }
        let taken = trace.read(from, RVec::filled(NOTHING, CHUNK)?)?;
        (from, lost) = (taken.next, lost + taken.lost);
        let is_full = taken.events.len() == CHUNK;
        let mut is_past = false;
        for event in taken.events.iter() {
            // Of a domain that this program uses itself, there is always more.
            is_past |= event.time > end;
            if !is_past {
                show.take(event)?;
            }
        }
        if show.left == 0 || is_over && (is_past || !is_full) {
            show.give_up()?;
            return show.end(lost);
        }
        if !is_full {
            show.env.flush()?;
            let slept = show.env.process().sleep(PAUSE);
            slept.map_err(|errno| Stop::about(b"sleep", errno))?;
        }
    }
}

/// Whether this child has nothing more to do but to be waited for.
fn has_ended(env: &Env, pid: u32) -> bool {
    let mut all = (0..).map_while(|index| env.process().process(index).ok().flatten());
    all.find(|info| info.pid == pid)
        .is_none_or(|info| info.ended)
}

/// Prints calls.
struct Show<'a> {
    env: &'a Env,
    names: Names,
    open: Open,
    /// When the trace began.
    begun: u64,
    /// So many may still be shown.
    left: u64,
}

impl Show<'_> {
    fn take(&mut self, event: &CallEvent) -> Result<(), Stop> {
        if event.caller == domain_rt::self_id() {
            return Ok(());
        }
        // Now, since who is gone has no name.
        self.names.learn(self.env, [event.caller, event.callee])?;
        if event.begun != 0 {
            let how = if event.failed { "failed" } else { "returned" };
            let call = self.open.end(event.caller, event.callee, event.begun);
            return call.map_or(Ok(()), |call| self.print(&call, how, event.time));
        }
        let given_up = self.open.begin(Traced {
            begun: event.time,
            caller: event.caller,
            callee: event.callee,
            interface: event.interface,
            method: event.method,
            arguments: event.arguments,
        });
        given_up.map_or(Ok(()), |call| self.print(&call, "not over", event.time))
    }

    /// What is under way.
    fn give_up(&mut self) -> Result<(), Stop> {
        let now = ulib::nanoseconds_since_boot();
        while let Some(call) = self.open.give_up() {
            self.print(&call, "not over", now)?;
        }
        Ok(())
    }

    fn print(&mut self, call: &Traced, how: &str, until: u64) -> Result<(), Stop> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(());
        };
        self.left = left;
        let method = TABLES.method(call.interface, call.method);
        let arguments = TABLES.arguments(call.interface, call.method, &call.arguments);
        println!(
            self.env,
            "{} {} -> {}: {method}({arguments}) = {how} <{}>",
            seconds(call.begun.saturating_sub(self.begun)),
            self.names.of(call.caller),
            self.names.of(call.callee),
            seconds(until.saturating_sub(call.begun)),
        )
    }

    /// Says what is missing.
    fn end(&self, lost: u64) -> Result<(), Stop> {
        if lost > 0 {
            let text = format!("{lost} events of the system were lost: calls may be missing");
            self.env.report(format_args!("trace: {text}"));
        }
        Ok(())
    }
}

/// Nanoseconds as seconds.
fn seconds(ns: u64) -> alloc::string::String {
    format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000)
}
