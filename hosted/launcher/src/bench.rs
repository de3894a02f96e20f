//! `trefoil-host bench`: runs the core's benchmarks and the peers on the same processor, and prints
//! both.

use anyhow::{Result, bail};
use hosted::launch::{self, Measured};
use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::time::Instant;

/// The images that the core's benchmarks start.
pub const IMAGES: [&str; 8] = [
    "domains/victim",
    "domains/forwarder",
    "domains/hash-bench",
    "domains/packet-source",
    "domains/nullnet",
    "domains/net-shadow",
    "domains/frail-disk",
    "domains/block-shadow",
];

/// Rounds, and calls in a round, as in the core.
const ROUNDS: usize = 4000;
const CALLS: u64 = 1000;
/// Rounds of something that takes microseconds.
const FEW: usize = 4000;

/// The benchmark that spreads over all processors.
const SPREAD: &str = "scaling";
/// All that there are.
const ALL: [&str; 7] = [
    "calls", "recovery", "reclaim", "hash", "nullnet", "scaling", "disk",
];

/// Measures what `names` name (all without names) on processor `cpu`; the process's status.
///
/// # Errors
/// If there is no such processor, or the core cannot measure.
pub fn run(names: &[String], cpu: Option<usize>, json: bool) -> Result<u32> {
    let cpu = cpu
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(0, |count| count.get() - 1));
    let all = ALL.map(String::from);
    let names = if names.is_empty() { &all } else { names };
    let frequency = frequency();
    let before = resident();
    let mut status = 0;
    for name in names {
        let bound = (name != SPREAD).then_some(cpu);
        status |= launch::on_thread(|| measure(name, bound))??;
    }
    eprintln!(
        "resident memory: {before} KiB before, {} KiB after",
        resident()
    );
    let mut figures = launch::take_figures();
    if names.iter().any(|name| name == "calls") {
        figures.extend(peers(cpu));
    }
    match json {
        true => println!("{}", as_json(&figures, frequency)),
        false => print(&figures, frequency, cpu),
    }
    Ok(status)
}

/// Has the core measure `name`, on processor `cpu` if that is said; its status.
fn measure(name: &str, cpu: Option<usize>) -> Result<u32> {
    if let Some(cpu) = cpu.filter(|&cpu| !pin(cpu)) {
        bail!("there is no processor {cpu}");
    }
    let (start, len) = (name.as_ptr() as usize, name.len());
    // SAFETY: the name lives until the call returns.
    Ok(unsafe { (launch::core().bench)(start, len) })
}

fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has both; neither touches memory.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

/// KiB of memory that the process has in use.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0u64) * 4
}

/// Ticks of the time-stamp counter in a microsecond.
fn frequency() -> f64 {
    let (begin, start) = (Instant::now(), tsc());
    while begin.elapsed().as_millis() < 50 {
        std::hint::spin_loop();
    }
    (tsc() - start) as f64 / begin.elapsed().as_secs_f64() / 1e6
}

/// Binds the running thread to one processor; whether that went well.
fn pin(cpu: usize) -> bool {
    // SAFETY: the set is filled in and read by the system.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

fn measured(id: &str, name: &str, rounds: Vec<u64>, calls: u64) -> Measured {
    let rounds = rounds.into_iter();
    Measured {
        id: id.into(),
        name: name.into(),
        unit: "ticks".into(),
        values: rounds.map(|round| round as f64 / calls as f64).collect(),
    }
}

fn rounds(count: usize, calls: u64, mut work: impl FnMut()) -> Vec<u64> {
    let round = |_| {
        let start = tsc();
        (0..calls).for_each(|_| work());
        tsc() - start
    };
    (0..count).map(round).collect()
}

trait Null {
    fn null(&self) -> Result<(), u32>;
}

struct Plain;

impl Null for Plain {
    #[inline(never)]
    fn null(&self) -> Result<(), u32> {
        black_box(Ok(()))
    }
}

/// What people would use instead.
fn peers(cpu: usize) -> Vec<Measured> {
    pin(cpu);
    let plain: &dyn Null = black_box(&Plain);
    let catch = || _ = black_box(std::panic::catch_unwind(|| black_box(plain_null())));
    let _ = plain.null();
    let mut all = vec![measured(
        "N1",
        "catch_unwind around a call",
        rounds(ROUNDS, CALLS, catch),
        CALLS,
    )];
    std::panic::set_hook(Box::new(|_| {}));
    let panics = || _ = black_box(std::panic::catch_unwind(|| panic!("deliberate")));
    all.push(measured(
        "N2",
        "panic and catch_unwind",
        rounds(FEW, 1, panics),
        1,
    ));
    let _ = std::panic::take_hook();
    all.extend(sockets(cpu).map(|rounds| {
        measured(
            "N3",
            "round trip through a Unix socket, one processor",
            rounds,
            1,
        )
    }));
    all.extend(
        pipes(cpu)
            .map(|rounds| measured("N4", "round trip through pipes, one processor", rounds, 1)),
    );
    all
}

#[inline(never)]
fn plain_null() -> Result<(), u32> {
    black_box(Ok(()))
}

/// One byte to another thread and back through a pair of Unix sockets.
fn sockets(cpu: usize) -> Option<Vec<u64>> {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    let (mut here, mut there) = UnixStream::pair().ok()?;
    let echo = std::thread::spawn(move || {
        pin(cpu);
        let mut byte = [0];
        while there
            .read_exact(&mut byte)
            .and_then(|()| there.write_all(&byte))
            .is_ok()
        {}
    });
    let mut byte = [1];
    let result = rounds(FEW, 1, || {
        let trip = here
            .write_all(&byte)
            .and_then(|()| here.read_exact(&mut byte));
        // A trip that fails would be noticed by its speed.
        let _ = black_box(trip);
    });
    drop(here);
    drop(echo.join());
    Some(result)
}

/// One byte to another thread and back.
fn pipes(cpu: usize) -> Option<Vec<u64>> {
    let (there, away) = std::io::pipe().ok()?;
    let (back, home) = std::io::pipe().ok()?;
    let pass = |from: i32, to: i32| {
        let mut byte = 0u8;
        // SAFETY: one byte of our own; the descriptors are open.
        unsafe {
            libc::read(from, (&raw mut byte).cast(), 1) == 1
                && libc::write(to, (&raw const byte).cast(), 1) == 1
        }
    };
    let (from, to) = (there.as_raw_fd(), home.as_raw_fd());
    let echo = std::thread::spawn(move || {
        pin(cpu);
        while pass(from, to) {}
        drop((there, home));
    });
    let (send, receive) = (away.as_raw_fd(), back.as_raw_fd());
    let trip = || {
        let mut byte = 1u8;
        // SAFETY: as above.
        unsafe {
            libc::write(send, (&raw const byte).cast(), 1);
            libc::read(receive, (&raw mut byte).cast(), 1);
        }
    };
    let result = rounds(FEW, 1, trip);
    drop(away);
    drop(echo.join());
    Some(result)
}

/// The best and the middle value of a figure. Of what is counted a second the most is best,
/// otherwise the least.
fn best_and_median(figure: &Measured) -> (f64, f64) {
    let mut values = figure.values.clone();
    values.sort_by(f64::total_cmp);
    let (least, most) = (values[0], values[values.len() - 1]);
    let best = if figure.unit == "ticks" { least } else { most };
    (best, values[values.len() / 2])
}

fn print(figures: &[Measured], frequency: f64, cpu: usize) {
    println!(
        "time-stamp counter {frequency:.0} ticks/us, pinned to processor {cpu}; per call or operation, best / median"
    );
    for figure in figures {
        let (best, median) = best_and_median(figure);
        let micros = match figure.unit == "ticks" && best > 2000.0 {
            true => format!(" = {:.2} / {:.2} us", best / frequency, median / frequency),
            false => String::new(),
        };
        let Measured { id, name, unit, .. } = figure;
        println!("{id:6} {name:58} {best:10.1} / {median:10.1} {unit}{micros}");
    }
}

/// A JSON array of the figures. What was counted a second goes with all its values, as it is a
/// course in time.
fn as_json(figures: &[Measured], frequency: f64) -> String {
    let one = |figure: &Measured| {
        let (best, median) = best_and_median(figure);
        let Measured {
            id,
            name,
            unit,
            values,
        } = figure;
        let course = match unit == "ticks" {
            true => String::new(),
            false => format!(",\"values\":{values:?}"),
        };
        format!(
            "{{\"id\":{id:?},\"name\":{name:?},\"best\":{best},\"median\":{median},\"unit\":{unit:?},\"ticks_per_us\":{frequency:.1}{course}}}"
        )
    };
    format!(
        "[{}]",
        figures.iter().map(one).collect::<Vec<_>>().join(",")
    )
}
