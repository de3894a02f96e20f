//! `top [-n COUNT] [-d SECONDS]`: shows the domains and programs live, those first that use the
//! processors most.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod keys;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;
use interfaces::{DomainInfo, DomainState, Monitor, ProcessInfo, TimeInfo};
use keys::Keys;
use textutil::table::{Side, Table, human_bytes, percent, processor_time};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, print, println};

const USAGE: &str = "
usage: top [-b] [-n COUNT] [-d SECONDS]
Shows memory, processors and domains every 2 seconds (-d) until `q` or Ctrl-C, or COUNT times. -b: one below the other.
%CPU: share of one processor since the picture before (in the first one since boot) in the domain's own code; TIME:
the same since its start; PROCESS: of a process, with what others did on its behalf.";

const COLUMNS: [(&str, Side); 11] = [
    ("ID", Side::Right),
    ("PID", Side::Right),
    ("NAME", Side::Left),
    ("STATE", Side::Left),
    ("%CPU", Side::Right),
    ("TIME", Side::Right),
    ("PROCESS", Side::Right),
    ("CALLS/S", Side::Right),
    ("HEAP", Side::Right),
    ("SHARED", Side::Right),
    ("THREADS", Side::Right),
];

/// Lines of the screen that are no rows: the head, the titles, and the last one, where the cursor
/// is.
const OTHER_LINES: usize = 3;
/// The kernel's number among the domains.
const KERNEL: u32 = 1;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options_alone(USAGE, "bn:d:")?;
    let number = |letter: char, usual: u64| match options.value(letter) {
        None => Ok(usual),
        Some(text) => {
            let number = core::str::from_utf8(text)
                .ok()
                .and_then(|it| it.parse().ok());
            number
                .filter(|number| *number > 0)
                .ok_or_else(|| Stop::usage("a number above 0 is needed; `top --help` says more"))
        }
    };
    let (rounds, pause) = (number('n', u64::MAX)?, number('d', 2)?);
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let below = options.has('b') || rounds == 1;
    let screen = match below {
        true => Screen::ENDLESS,
        false => Screen::of(env),
    };
    let keys = match below {
        true => None,
        false => Some(Keys::watch(env)?),
    };
    let mut before = Picture::default();
    for round in 0..rounds {
        if round > 0 {
            env.flush()?;
            let pause = pause.saturating_mul(1_000_000_000);
            match &keys {
                Some(keys) if keys.sleep(env, pause) => return Ok(0),
                Some(_) => {}
                None => env
                    .process()
                    .sleep(pause)
                    .map_err(|errno| Stop::about(b"sleep", errno))?,
            }
        }
        let now = Picture::take(env, &monitor)?;
        if !below {
            print!(env, "\x1b[H\x1b[J")?;
        }
        now.show_head(env, &monitor, &before, screen)?;
        now.show_rows(env, &before, screen)?;
        before = now;
    }
    Ok(0)
}

/// How much fits on the terminal.
#[derive(Clone, Copy)]
struct Screen {
    columns: usize,
    lines: usize,
}

impl Screen {
    const ENDLESS: Screen = Screen {
        columns: usize::MAX,
        lines: usize::MAX,
    };

    /// As the environment says, or 80 columns and 24 lines.
    fn of(env: &Env) -> Screen {
        let environment = env.environment().unwrap_or_default();
        let number = |name: &str| {
            let (_, text) = environment.iter().find(|(other, _)| other == name)?;
            core::str::from_utf8(text).ok()?.parse().ok()
        };
        Screen {
            columns: number("COLUMNS").unwrap_or(80),
            lines: number("LINES").unwrap_or(24),
        }
    }

    /// As much of the line as fits.
    fn cut(self, line: &str) -> &str {
        let end = line.char_indices().nth(self.columns);
        end.map_or(line, |(at, _)| &line[..at])
    }
}

/// What is known of a domain, or of the kernel.
struct Row {
    name: String,
    state: &'static str,
    own_ns: u64,
    calls: u64,
    heap: String,
    shared: String,
    threads: String,
}

/// The system at one moment.
#[derive(Default)]
struct Picture {
    /// Nanoseconds since boot.
    since_boot: u64,
    /// Nanoseconds that all processors were busy.
    busy: u64,
    rows: BTreeMap<u32, Row>,
    /// By the numbers of their domains.
    processes: BTreeMap<u32, ProcessInfo>,
}

impl Picture {
    fn take(env: &Env, monitor: &Handle<dyn Monitor>) -> Result<Self, Stop> {
        let time = monitor.time()?;
        let domains = ulib::domains(monitor)?;
        let mut rows: BTreeMap<u32, Row> = domains
            .iter()
            .map(|info| Ok((info.id, Row::of_domain(monitor, info)?)))
            .collect::<Result<_, Stop>>()?;
        rows.insert(KERNEL, Row::of_kernel(&time));
        Ok(Picture {
            since_boot: time.since_boot,
            busy: time.busy,
            rows,
            processes: processes(env),
        })
    }

    fn show_head(
        &self,
        env: &Env,
        monitor: &Handle<dyn Monitor>,
        before: &Self,
        screen: Screen,
    ) -> Result<(), Stop> {
        let memory = monitor.memory()?;
        let processors = monitor.processors()?;
        let busy = self.busy.saturating_sub(before.busy);
        let head = format!(
            "up {} s, {} domains, {} processes; {} of {} free; {processors} CPU, {}% busy",
            self.since_boot / 1_000_000_000,
            self.rows.len() - 1,
            self.processes.len(),
            human_bytes(memory.free),
            human_bytes(memory.total),
            percent(busy, self.passed(before) * u64::from(processors)),
        );
        println!(env, "{}", screen.cut(&head))
    }

    /// Nanoseconds between two pictures.
    fn passed(&self, before: &Self) -> u64 {
        self.since_boot.saturating_sub(before.since_boot).max(1)
    }

    fn show_rows(&self, env: &Env, before: &Self, screen: Screen) -> Result<(), Stop> {
        let most = screen.lines.saturating_sub(OTHER_LINES);
        let used = |id: u32, row: &Row| {
            let then = before.rows.get(&id).map_or(0, |row| row.own_ns);
            row.own_ns.saturating_sub(then)
        };
        let mut order: Vec<(u32, &Row)> = self.rows.iter().map(|(id, row)| (*id, row)).collect();
        order.sort_by_key(|&(id, row)| (Reverse(used(id, row)), Reverse(row.own_ns), id));
        let passed = self.passed(before);
        let mut table = Table::new(&COLUMNS);
        for (id, row) in order.into_iter().take(most) {
            let then = before.rows.get(&id).map_or(0, |row| row.calls);
            let calls = u128::from(row.calls.saturating_sub(then));
            let rate = calls * 1_000_000_000 / u128::from(passed);
            let process = self.processes.get(&id);
            table.row(Vec::from([
                id.to_string(),
                process.map_or("-".to_string(), |info| info.pid.to_string()),
                row.name.clone(),
                row.state.to_string(),
                percent(used(id, row), passed),
                processor_time(row.own_ns),
                process.map_or("-".to_string(), |info| {
                    processor_time(info.user_ns + info.system_ns)
                }),
                rate.to_string(),
                row.heap.clone(),
                row.shared.clone(),
                row.threads.clone(),
            ]));
        }
        for line in table.lines() {
            println!(env, "{}", screen.cut(&line))?;
        }
        Ok(())
    }
}

impl Row {
    fn of_domain(monitor: &Handle<dyn Monitor>, info: &DomainInfo) -> Result<Self, Stop> {
        let owned = monitor.holdings(info.id)?;
        Ok(Row {
            name: info.name.to_string(),
            state: match info.state {
                DomainState::Starting => "starting",
                DomainState::Running => "running",
                DomainState::Dying => "dying",
                DomainState::Gone => "gone",
            },
            own_ns: info.own_ns,
            calls: info.calls,
            heap: human_bytes(info.heap_bytes),
            shared: owned.objects.to_string(),
            threads: info.threads.to_string(),
        })
    }

    /// Calls of its objects are not counted.
    fn of_kernel(time: &TimeInfo) -> Self {
        let none = || "-".to_string();
        Row {
            name: "(kernel)".to_string(),
            state: "running",
            own_ns: time.kernel,
            calls: 0,
            heap: none(),
            shared: none(),
            threads: none(),
        }
    }
}

/// The processes by the numbers of their domains.
fn processes(env: &Env) -> BTreeMap<u32, ProcessInfo> {
    let mut found = BTreeMap::new();
    let mut index = 0;
    while let Ok(Some(info)) = env.process().process(index) {
        found.insert(info.domain, info);
        index += 1;
    }
    found
}
