//! `calls`: shows which domain calls which, and how long it takes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;
use interfaces::{CallCount, Counting, Monitor};
use textutil::table::{Side, Table, percent};
use ulib::{
    Env, Handle, Process, Program, RpcResult, Stop, call_counts, call_samples, caller_name,
    method_name, println, sampled_name, timed_calls,
};

const USAGE: &str = "
usage: calls [-s] [on | timed | traced | profiled | off | reset]
Shows the calls between domains since counting was switched on: who called whom, what, how often, how many ended with an error of the
call itself, the time inside (with waits, and calls further on), and two latencies: half of the calls took no longer than P50, 99 of
100 no longer than P99; both are powers of two. Times are from one call in 512 (`~`), unless all are timed. The kernel counts by names: all
instances of a domain or program are one. Calls that found no room in its table stand under `others`.
on: switches counting on; a call takes a little longer then. timed: the same, and every call is timed. traced: as timed, and the
kernel keeps the last events of each processor for `cargo xtask trace`, which reads them from outside. profiled: calls are not
counted, but at each tick the kernel notes the stack, for `cargo xtask profile`. off: switches it off; what was
counted is kept. reset: all counts begin anew.
-s: which domain was inside which in the last samples (one every 10 ms on a busy processor). They are always there, and shown also
where nothing was counted.";

const COLUMNS: [(&str, Side); 8] = [
    ("CALLER", Side::Left),
    ("CALLEE", Side::Left),
    ("METHOD", Side::Left),
    ("CALLS", Side::Right),
    ("ERRORS", Side::Right),
    ("TIME", Side::Right),
    ("P50", Side::Right),
    ("P99", Side::Right),
];

const SAMPLED: [(&str, Side); 4] = [
    ("CALLER", Side::Left),
    ("INSIDE", Side::Left),
    ("SAMPLES", Side::Right),
    ("TIME%", Side::Right),
];

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "s")?;
    let how = match options.operands.as_slice() {
        [] => None,
        [word] => Some(counting(word)?),
        _ => return Err(Stop::usage("one word is enough; `calls --help` says more")),
    };
    let monitor = env.service::<dyn Monitor>("monitor")?;
    if let Some(how) = how {
        monitor.count_calls(how)?;
        return Ok(0);
    }
    let counts = call_counts(&monitor)?;
    let table = match options.has('s') || counts.is_empty() {
        true => sampled(&monitor)?,
        false => counted(counts),
    };
    for line in table.lines() {
        println!(env, "{line}")?;
    }
    Ok(0)
}

fn counting(word: &[u8]) -> Result<Counting, Stop> {
    Ok(match word {
        b"on" => Counting::On,
        b"timed" => Counting::Timed,
        b"traced" => Counting::Traced,
        b"profiled" => Counting::Profiled,
        b"off" => Counting::Off,
        b"reset" => Counting::Reset,
        _ => {
            let text = format!(
                "`{}` is not understood; `calls --help` says more",
                String::from_utf8_lossy(word)
            );
            return Err(Stop::usage(&text));
        }
    })
}

/// The time inside of all calls of a count, as far as those say that were timed.
fn total(count: &CallCount) -> u64 {
    let all =
        u128::from(count.ns) * u128::from(count.calls) / u128::from(timed_calls(count).max(1));
    u64::try_from(all).unwrap_or(u64::MAX)
}

/// What was counted, the most time first.
fn counted(mut counts: Vec<CallCount>) -> Table {
    counts.sort_by_key(|count| Reverse((total(count), count.calls)));
    let mut table = Table::new(&COLUMNS);
    for count in &counts {
        let name = method_name(count.interface, count.method);
        let [caller, callee] = match count.interface {
            0 => ["others", "others"],
            _ => [caller_name(&count.caller), caller_name(&count.callee)],
        };
        let timed = timed_calls(count);
        let about = if timed < count.calls { "~" } else { "" };
        let latency = |percent| match timed {
            0 => String::from("-"),
            _ => short_time(quantile(count, percent)),
        };
        table.row(Vec::from([
            caller.to_string(),
            callee.to_string(),
            name.unwrap_or_else(|| format!("method {}", count.method)),
            count.calls.to_string(),
            count.errors.to_string(),
            format!("{about}{}", short_time(total(count))),
            latency(50),
            latency(99),
        ]));
    }
    table
}

/// The power of two of nanoseconds that `percent` of the timed calls did not exceed.
fn quantile(count: &CallCount, percent: u64) -> u64 {
    let all = timed_calls(count);
    let mut seen = 0;
    let power = count.latency.iter().position(|&calls| {
        seen += u64::from(calls);
        seen * 100 >= all * percent
    });
    2 << power.unwrap_or(0)
}

/// Nanoseconds in a unit that leaves at most four digits.
fn short_time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns}ns"),
        10_000..10_000_000 => format!("{}us", ns / 1000),
        10_000_000..10_000_000_000 => format!("{}ms", ns / 1_000_000),
        _ => format!("{}s", ns / 1_000_000_000),
    }
}

/// Who was met inside whom at the last ticks, the most time first.
fn sampled(monitor: &Handle<dyn Monitor>) -> Result<Table, Stop> {
    let domains = ulib::domains(monitor)?;
    let mut pairs: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    let mut all = 0;
    for sample in call_samples(monitor)? {
        let names = [sample.caller, sample.callee].map(|id| sampled_name(&domains, id));
        let (count, ns) = pairs.entry(names.into()).or_default();
        *count += 1;
        *ns += sample.ns;
        all += sample.ns;
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_by_key(|(_, (_, ns))| Reverse(*ns));
    let mut table = Table::new(&SAMPLED);
    for ((caller, callee), (count, ns)) in pairs {
        table.row(Vec::from([
            caller,
            callee,
            count.to_string(),
            percent(ns, all),
        ]));
    }
    Ok(table)
}
