//! The calls between domains that were counted, as a table.

use crate::errno::{EIO, ENOMEM, Error};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use interfaces::{CallCount, Handle, INTERFACES, Monitor};

/// Lines of the table at the most: those that took the most time.
const MOST_LINES: usize = 500;
/// Counts that are asked for at the most; the kernel has fewer.
const MOST_COUNTS: usize = 65_536;

/// All counts that are not 0, those that took the most time first.
pub(super) fn table(monitor: &Handle<dyn Monitor>) -> Result<Vec<u8>, Error> {
    let mut counts = counts(monitor)?;
    counts.sort_by_key(|count| Reverse((time(count), count.calls)));
    let mut text = String::from(
        "CALLER           CALLEE           METHOD                              CALLS  ERRORS   MEAN_NS\n",
    );
    for count in counts.iter().take(MOST_LINES) {
        let line = line(count);
        text.try_reserve(line.len()).map_err(|_| ENOMEM)?;
        text += &line;
    }
    Ok(text.into_bytes())
}

fn counts(monitor: &Handle<dyn Monitor>) -> Result<Vec<CallCount>, Error> {
    let (mut from, mut counts) = (0, Vec::new());
    for _ in 0..MOST_COUNTS {
        let Some(count) = monitor.call_count(from).map_err(|_| EIO)? else {
            break;
        };
        from = count.index.saturating_add(1);
        counts.try_reserve(1).map_err(|_| ENOMEM)?;
        counts.push(count);
    }
    Ok(counts)
}

/// How many of the calls were timed.
fn timed(count: &CallCount) -> u64 {
    count.latency.iter().map(|calls| u64::from(*calls)).sum()
}

/// The time of all calls, as far as those say that were timed, in nanoseconds.
fn time(count: &CallCount) -> u64 {
    let all = u128::from(count.ns) * u128::from(count.calls) / u128::from(timed(count).max(1));
    u64::try_from(all).unwrap_or(u64::MAX)
}

fn line(count: &CallCount) -> String {
    let name = |name: &str| String::from(if name.is_empty() { "kernel" } else { name });
    let others = || String::from("others");
    let (caller, callee) = match count.interface {
        // Calls that found no room of their own.
        0 => (others(), others()),
        _ => (name(count.caller.as_str()), name(count.callee.as_str())),
    };
    let known = INTERFACES.iter().find(|(it, _, _)| *it == count.interface);
    let method = known.and_then(|(_, interface, methods)| {
        let method = methods.get(count.method as usize)?;
        Some(format!("{interface}.{method}"))
    });
    let method = method.unwrap_or_else(|| format!("method {}", count.method));
    let mean = match timed(count) {
        0 => String::from("-"),
        timed => format!("{}", count.ns / timed),
    };
    format!(
        "{caller:<16} {callee:<16} {method:<32} {:>8} {:>7} {mean:>9}\n",
        count.calls, count.errors
    )
}
