//! `domains`: lists the domains: what each is doing, what it uses, and which interfaces it holds.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use interfaces::{DomainInfo, DomainState, Holdings, Monitor, ServiceInfo, Supervisor};
use textutil::table::{Side, Table, human_bytes, processor_time};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: domains [-iq]
Lists the domains: number, name, state, number of the domain that started it, private heap, objects on the
shared heap, threads, calls into it, processor time of its code, crashes, restarts and updates since boot, and the
interfaces that it holds, with the domain behind each. -q: without the interfaces. -i: with the name in its image. Domains that crashed too
often are shown as `down`.";

const COLUMNS: [(&str, Side); 12] = [
    ("ID", Side::Right),
    ("NAME", Side::Left),
    ("STATE", Side::Left),
    ("PARENT", Side::Right),
    ("HEAP", Side::Right),
    ("SHARED", Side::Right),
    ("THREADS", Side::Right),
    ("CALLS", Side::Right),
    ("TIME", Side::Right),
    ("CRASHES", Side::Right),
    ("RESTARTS", Side::Right),
    ("UPDATES", Side::Right),
];

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options_alone(USAGE, "iqv")?;
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let services = services(env);
    let mut columns = Vec::from(COLUMNS);
    columns.extend(options.has('i').then_some(("IMAGE", Side::Left)));
    columns.extend((!options.has('q')).then_some(("HOLDS", Side::Left)));
    let mut table = Table::new(&columns);
    for info in ulib::domains(&monitor)? {
        let service = services.iter().find(|service| service.id == info.id);
        let mut cells = cells(&info, monitor.holdings(info.id)?, service);
        if options.has('i') {
            cells.push(service.map_or(String::from("-"), |service| service.image.to_string()));
        }
        if !options.has('q') {
            cells.push(held(&monitor, info.id)?);
        }
        table.row(cells);
    }
    for service in services.iter().filter(|service| service.id == 0) {
        let mut cells = absent(service);
        cells.extend(options.has('i').then(|| service.image.to_string()));
        table.row(cells);
    }
    for line in table.lines() {
        println!(env, "{line}")?;
    }
    Ok(0)
}

/// What `init` knows of the domains that it supervises; nothing if it does not answer.
fn services(env: &Env) -> Vec<ServiceInfo> {
    let Ok(supervisor) = env.service::<dyn Supervisor>("supervisor") else {
        return Vec::new();
    };
    let mut services = Vec::new();
    while let Ok(Some(service)) = supervisor.service(services.len() as u32) {
        services.push(service);
    }
    services
}

fn cells(info: &DomainInfo, owned: Holdings, service: Option<&ServiceInfo>) -> Vec<String> {
    let state = match info.state {
        DomainState::Starting => "starting",
        DomainState::Running => "running",
        DomainState::Dying => "dying",
        DomainState::Gone => "gone",
    };
    let count = |value: fn(&ServiceInfo) -> u32| {
        service.map_or(String::from("-"), |service| format!("{}", value(service)))
    };
    Vec::from([
        info.id.to_string(),
        info.name.to_string(),
        state.to_string(),
        info.parent.to_string(),
        human_bytes(info.heap_bytes),
        owned.objects.to_string(),
        info.threads.to_string(),
        info.calls.to_string(),
        processor_time(info.own_ns),
        count(|service| service.crashes),
        count(|service| service.restarts),
        count(|service| service.updates),
    ])
}

/// The row of a supervised domain that has no instance now.
fn absent(service: &ServiceInfo) -> Vec<String> {
    let state = if service.gave_up {
        "down"
    } else {
        "not running"
    };
    let mut cells = Vec::from(["-", service.name.as_str(), state].map(String::from));
    cells.extend((0..6).map(|_| String::from("-")));
    let counts = [service.crashes, service.restarts, service.updates];
    cells.extend(counts.map(|count| count.to_string()));
    cells
}

/// The interfaces that a domain holds, as `Block(virtio-blk)`; equal ones once, with their number.
fn held(monitor: &Handle<dyn Monitor>, id: u32) -> Result<String, Stop> {
    let mut all: Vec<(String, u32)> = Vec::new();
    let mut index = 0;
    while let Some((interface, server)) = monitor.holds(id, index)? {
        index += 1;
        let text = format!("{interface}({server})");
        match all.iter_mut().find(|(other, _)| *other == text) {
            Some((_, count)) => *count += 1,
            None => all.push((text, 1)),
        }
    }
    let shown = all.into_iter().map(|(text, count)| match count {
        1 => text,
        _ => format!("{count}x{text}"),
    });
    Ok(shown.collect::<Vec<_>>().join(" "))
}
