//! `domains`: lists the domains: what each is doing, what it uses, and which interfaces it holds.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod dot;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use interfaces::{
    DescriptorKind, DomainInfo, DomainState, Holdings, Monitor, ServiceInfo, Supervisor,
};
use textutil::table::{Side, Table, human_bytes, processor_time};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

const USAGE: &str = "
usage: domains [-aiq]
       domains --dot
Lists the domains: number, name, state, number of the domain that started it, memory of all kinds, threads with their
limit; the group that it shares a budget with, that group's memory and threads with their limits; restarts since boot.
-q: instead, all that is known: private heap, image, stacks, the kernel's notes, memory of devices, objects on the shared heap and
their bytes, threads, calls into it, processor time of its code, weight and processor time of its group, crashes, restarts and
updates since boot. -a: with the interfaces that it holds, too, and the domain behind each. -i: with the name in its image. Domains that crashed too often are shown as
`down`.
--dot: instead, who holds handles to whom, and how often who called whom while `calls` counted, as a graph for Graphviz.";

/// What is shown, unless more is asked for: some 85 characters.
const SHORT: [(&str, Side); 9] = [
    ("ID", Side::Right),
    ("NAME", Side::Left),
    ("STATE", Side::Left),
    ("BY", Side::Right),
    ("MEMORY", Side::Right),
    ("THREADS", Side::Right),
    ("GROUP", Side::Right),
    ("ITS-THREADS", Side::Right),
    ("RESTARTS", Side::Right),
];

/// What of that is left out, one after the other, where the terminal is too narrow.
const DISPENSABLE: [&str; 3] = ["ITS-THREADS", "BY", "THREADS"];

const ALL: [(&str, Side); 20] = [
    ("ID", Side::Right),
    ("NAME", Side::Left),
    ("STATE", Side::Left),
    ("PARENT", Side::Right),
    ("HEAP", Side::Right),
    ("IMAGE-SIZE", Side::Right),
    ("STACKS", Side::Right),
    ("NOTES", Side::Right),
    ("DMA", Side::Right),
    ("MEMOBJ", Side::Right),
    ("SHARED", Side::Right),
    ("SHARED-SIZE", Side::Right),
    ("THREADS", Side::Right),
    ("CALLS", Side::Right),
    ("TIME", Side::Right),
    ("WEIGHT", Side::Right),
    ("GROUP-TIME", Side::Right),
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
    if matches!(env.arguments(), [only] if only == b"--dot") {
        let monitor = env.service::<dyn Monitor>("monitor")?;
        env.write(dot::graph(&monitor)?.as_bytes())?;
        return Ok(0);
    }
    let options = env.options_alone(USAGE, "aiqv")?;
    let monitor = env.service::<dyn Monitor>("monitor")?;
    let services = services(env);
    let (holds, image) = (options.has('a'), options.has('i'));
    let all = holds || options.has('q');
    let mut columns = Vec::from(if all { &ALL[..] } else { &SHORT[..] });
    columns.extend(image.then_some(("IMAGE", Side::Left)));
    columns.extend(holds.then_some(("HOLDS", Side::Left)));
    let mut table = Table::new(&columns);
    for info in ulib::domains(&monitor)? {
        let service = services.iter().find(|service| service.id == info.id);
        let owned = monitor.holdings(info.id)?;
        let mut cells = match all {
            true => all_cells(&info, owned, service),
            false => short_cells(&info, owned, service),
        };
        if image {
            cells.push(service.map_or(String::from("-"), |service| service.image.to_string()));
        }
        if holds {
            cells.push(held(&monitor, info.id)?);
        }
        table.row(cells);
    }
    for service in services.iter().filter(|service| service.id == 0) {
        let mut cells = absent(service, all);
        cells.extend(image.then(|| service.image.to_string()));
        table.row(cells);
    }
    if let Some(width) = width(env).filter(|_| !all) {
        table.fit(width, &DISPENSABLE);
    }
    for line in table.lines() {
        println!(env, "{line}")?;
    }
    Ok(0)
}

/// How wide the terminal is, if what is printed goes there and somebody has said it.
fn width(env: &Env) -> Option<usize> {
    let is_shown = matches!(env.process().kind(1), Ok(DescriptorKind::Console));
    let environment = env.environment().ok().filter(|_| is_shown)?;
    let (_, text) = environment.iter().find(|(name, _)| name == "COLUMNS")?;
    core::str::from_utf8(text).ok()?.parse().ok()
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

fn state(info: &DomainInfo) -> String {
    let state = match info.state {
        DomainState::Starting => "starting",
        DomainState::Running => "running",
        DomainState::Dying => "dying",
        DomainState::Gone => "gone",
    };
    state.to_string()
}

/// A number that `init` counts for a domain.
fn counted(service: Option<&ServiceInfo>, value: fn(&ServiceInfo) -> u32) -> String {
    service.map_or(String::from("-"), |service| value(service).to_string())
}

/// What is used, and the limit if there is one.
fn of(used: String, limit: Option<String>) -> String {
    limit.map_or(used.clone(), |limit| format!("{used}/{limit}"))
}

fn short_cells(info: &DomainInfo, owned: Holdings, service: Option<&ServiceInfo>) -> Vec<String> {
    let bytes = |limit: u64| (limit != 0).then(|| human_bytes(limit));
    let count = |limit: u32| (limit != 0).then(|| limit.to_string());
    let kinds = [
        info.heap_bytes,
        info.image_bytes,
        info.stack_bytes,
        info.note_bytes,
        info.dma_bytes,
        info.object_bytes,
        owned.bytes,
    ];
    let group_bytes = of(human_bytes(info.group_bytes), bytes(info.group_limit));
    Vec::from([
        info.id.to_string(),
        info.name.to_string(),
        state(info),
        info.parent.to_string(),
        human_bytes(kinds.iter().sum()),
        of(info.threads.to_string(), count(info.thread_limit)),
        format!("{}:{group_bytes}", info.group),
        of(
            info.group_threads.to_string(),
            count(info.group_thread_limit),
        ),
        counted(service, |service| service.restarts),
    ])
}

fn all_cells(info: &DomainInfo, owned: Holdings, service: Option<&ServiceInfo>) -> Vec<String> {
    Vec::from([
        info.id.to_string(),
        info.name.to_string(),
        state(info),
        info.parent.to_string(),
        human_bytes(info.heap_bytes),
        human_bytes(info.image_bytes),
        human_bytes(info.stack_bytes),
        human_bytes(info.note_bytes),
        human_bytes(info.dma_bytes),
        human_bytes(info.object_bytes),
        owned.objects.to_string(),
        human_bytes(owned.bytes),
        info.threads.to_string(),
        info.calls.to_string(),
        processor_time(info.own_ns),
        info.group_weight.to_string(),
        processor_time(info.group_ns),
        counted(service, |service| service.crashes),
        counted(service, |service| service.restarts),
        counted(service, |service| service.updates),
    ])
}

/// The row of a supervised domain that has no instance now.
fn absent(service: &ServiceInfo, all: bool) -> Vec<String> {
    let state = if service.gave_up {
        "down"
    } else {
        "not running"
    };
    let mut cells = Vec::from(["-", service.name.as_str(), state].map(String::from));
    let empty = if all { ALL.len() - 6 } else { SHORT.len() - 4 };
    cells.extend((0..empty).map(|_| String::from("-")));
    let restarts = service.restarts.to_string();
    match all {
        true => cells.extend([
            service.crashes.to_string(),
            restarts,
            service.updates.to_string(),
        ]),
        false => cells.push(restarts),
    }
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
