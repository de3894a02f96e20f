//! The calls of one domain as lines of text, in the manner of `strace`.

use anyhow::{Result, bail};

use super::timeline::{Call, Outcome, Timeline};

/// A line for each call that a domain called `name` made or was asked, by their beginnings: when,
/// thread, caller, callee, method, arguments, how it ended, and how long it took.
///
/// # Errors
/// If nobody of that name called or was called.
pub fn of(line: &Timeline, name: &str) -> Result<String> {
    let is_named = |id: u32| line.domains.name(id) == name;
    let calls = line.calls.iter();
    let calls = calls.filter(|call| is_named(call.caller) || is_named(call.callee));
    let lines: Vec<String> = calls.map(|call| told(line, call)).collect();
    if lines.is_empty() {
        let both = line
            .calls
            .iter()
            .flat_map(|call| [call.caller, call.callee]);
        let mut names: Vec<String> = both.map(|id| line.domains.name(id)).collect();
        names.sort();
        names.dedup();
        bail!(
            "no call from or to `{name}`; there are calls of {}",
            names.join(", ")
        );
    }
    Ok(lines.concat())
}

fn told(line: &Timeline, call: &Call) -> String {
    let name = |id| line.domains.label(id);
    let outcome = match call.outcome {
        Outcome::Returned => "returned",
        Outcome::Failed => "failed",
        Outcome::Left => "left",
        Outcome::Open => "not over",
        Outcome::Unknown => "end lost",
    };
    format!(
        "{:12.6} thread {}: {} -> {}: {}({}){} = {outcome} <{:.6}>\n",
        (call.from - line.from) as f64 / 1e9,
        call.thread,
        name(call.caller),
        name(call.callee),
        call.method,
        call.arguments,
        if call.repeats { " (again)" } else { "" },
        (call.to - call.from) as f64 / 1e9,
    )
}
