//! The Trace Event Format, which Perfetto and its trace processor open.
//!
//! Process 1 has a thread for each processor of the machine, process 2 one for each thread of the
//! system, process 3 one for each name of which a domain has died, and process 4 one for what
//! happened to all. Times are microseconds from the
//! beginning of the trace on.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::intervals::{Interval, Lane};
use super::timeline::{MarkKind, Outcome, Pause, Timeline};

/// The numbers of the processes.
pub const PROCESSORS: u64 = 1;
/// Likewise.
pub const THREADS: u64 = 2;
/// Likewise.
pub const DOMAINS: u64 = 3;
/// Likewise.
pub const MOMENTS: u64 = 4;

/// Writes `line`, which `title` describes.
///
/// # Errors
/// Those of `out`.
pub fn write(line: &Timeline, title: &str, out: &mut dyn Write) -> io::Result<()> {
    let about = json!({
        "title": title,
        "events": line.events,
        "lost events": line.lost,
        "nanoseconds since boot at 0": line.from,
    });
    writeln!(
        out,
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":["
    )?;
    let lost = match line.lost {
        0 => String::new(),
        lost => format!(" ({lost} events are lost)"),
    };
    let groups = [
        (PROCESSORS, format!("processors{lost}"), processors(line)),
        (THREADS, format!("threads{lost}"), threads(line)),
        (DOMAINS, "domains that died".into(), domains(line)),
        (MOMENTS, "what happened".into(), moments()),
    ];
    let mut before = "";
    for (process, name, lanes) in &groups {
        let named = json!({"ph": "M", "pid": process, "tid": 0, "name": "process_name", "args": {"name": name}});
        write!(out, "{before}{named}")?;
        before = ",\n";
        for lane in lanes {
            let named = json!({"ph": "M", "pid": process, "tid": lane.number, "name": "thread_name", "args": {"name": lane.name}});
            write!(out, ",\n{named}")?;
            for interval in &lane.intervals {
                write!(
                    out,
                    ",\n{}",
                    complete(line, *process, lane.number, interval)
                )?;
            }
        }
    }
    marks(line, out)?;
    writeln!(out, "\n]}}")
}

/// Nanoseconds as microseconds, with all their digits.
fn micros(ns: u64) -> Value {
    // Whole numbers of nanoseconds are exact up to a week.
    json!(ns as f64 / 1000.0)
}

fn complete(line: &Timeline, process: u64, thread: u64, interval: &Interval) -> Value {
    let more = interval
        .more
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value)));
    let more: serde_json::Map<String, Value> = more.collect();
    json!({
        "ph": "X", "pid": process, "tid": thread, "name": interval.name, "cat": interval.sort,
        "ts": micros(interval.from - line.from), "dur": micros(interval.to - interval.from), "args": more,
    })
}

/// What marks of this kind are called, in files and to people.
pub fn sort(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Death => "crash",
        MarkKind::End => "end",
        MarkKind::Start => "start",
        MarkKind::Restart => "restart",
        MarkKind::Repeat => "repeat",
        MarkKind::Lost => "lost",
    }
}

fn marks(line: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    for mark in &line.marks {
        let (scope, process, thread) = match mark.thread {
            Some(thread) => ("t", THREADS, thread),
            None => ("g", MOMENTS, 1),
        };
        let event = json!({
            "ph": "i", "s": scope, "pid": process, "tid": thread, "name": mark.text,
            "cat": sort(mark.kind), "ts": micros(mark.at - line.from),
        });
        write!(out, ",\n{event}")?;
    }
    Ok(())
}

/// The lane of the marks that are no thread's.
fn moments() -> Vec<Lane> {
    vec![Lane {
        number: 1,
        name: "starts, ends, crashes and restarts".into(),
        intervals: Vec::new(),
    }]
}

/// A lane for each processor: threads on it, in them the domains, in those interrupts.
pub fn processors(line: &Timeline) -> Vec<Lane> {
    let lanes = line
        .processors
        .iter()
        .enumerate()
        .map(|(number, processor)| {
            let mut lane = Lane {
                number: number as u64 + 1,
                name: format!("processor {number}"),
                intervals: Vec::new(),
            };
            let mut thread: Option<Interval> = None;
            for run in &processor.runs {
                let name = name_of(line, run.thread);
                match &mut thread {
                    Some(same) if same.name == name && same.to == run.from => same.to = run.to,
                    _ => {
                        let new = interval(run.from, run.to, name, "thread");
                        lane.intervals.extend(thread.replace(new));
                    }
                }
            }
            lane.intervals.extend(thread);
            for run in &processor.runs {
                let name = line.domains.label(run.domain);
                lane.intervals
                    .push(interval(run.from, run.to, name, "domain"));
            }
            for &(from, to, number) in &processor.interrupts {
                let name = super::names::interrupt(number);
                lane.intervals.push(interval(from, to, name, "interrupt"));
            }
            lane.sort();
            lane
        });
    lanes.collect()
}

fn interval(from: u64, to: u64, name: String, sort: &'static str) -> Interval {
    Interval {
        from,
        to,
        name,
        sort,
        more: Vec::new(),
    }
}

/// What people call a thread.
fn name_of(line: &Timeline, number: u64) -> String {
    let thread = line.threads.get(&number);
    let home = line.domains.label(thread.map_or(0, |thread| thread.home));
    let inside = thread.and_then(|thread| thread.inside);
    // The personality has a thread for each program, and so has the kernel for each entry.
    let inside = inside.filter(|(_, length)| *length > (line.to - line.from) / 100);
    let inside = inside.map_or(String::new(), |(id, _)| {
        format!(", in {}", line.domains.label(id))
    });
    match number < super::timeline::NAMELESS {
        true => format!("thread {number} of {home}{inside}"),
        false => format!("a thread of {home}{inside}"),
    }
}

/// A lane for each thread: its calls, and when it did not run.
pub fn threads(line: &Timeline) -> Vec<Lane> {
    let mut calls: std::collections::BTreeMap<u64, Vec<Interval>> = Default::default();
    for call in &line.calls {
        let (caller, callee) = (
            line.domains.label(call.caller),
            line.domains.label(call.callee),
        );
        let (again, how) = (
            if call.repeats { ", again" } else { "" },
            outcome(call.outcome),
        );
        let name = format!("{callee}: {}{again}{}", call.method, how.0);
        let mut new = interval(call.from, call.to, name, "call");
        new.more = vec![
            ("caller", format!("{caller} (domain {})", call.caller)),
            ("callee", format!("{callee} (domain {})", call.callee)),
            ("method", call.method.clone()),
            ("arguments", call.arguments.clone()),
            ("outcome", how.1.into()),
        ];
        if call.repeats {
            new.more
                .push(("repeats", "what failed with an earlier instance".into()));
        }
        calls.entry(call.thread).or_default().push(new);
    }
    let lanes = line.threads.iter().map(|(&number, thread)| {
        let mut intervals = calls.remove(&number).unwrap_or_default();
        intervals.extend(thread.pauses.iter().map(|&(from, to, why)| match why {
            Pause::Waits => interval(from, to, "waits".into(), "wait"),
            Pause::Ready => interval(from, to, "ready".into(), "ready"),
        }));
        let name = name_of(line, number);
        let mut lane = Lane {
            number,
            name,
            intervals,
        };
        lane.sort();
        lane
    });
    lanes.collect()
}

/// What is added to a name, and what it means.
fn outcome(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Returned => ("", "returned"),
        Outcome::Failed => (", failed", "failed with an RpcError"),
        Outcome::Left => (", left", "the thread left, since the caller had died"),
        Outcome::Open => (", open", "not over at the end of the trace"),
        Outcome::Unknown => (", end lost", "events were lost, perhaps its end"),
    }
}

/// A lane for each name of which a domain has died.
pub fn domains(line: &Timeline) -> Vec<Lane> {
    let mut names: Vec<String> = Vec::new();
    for stage in &line.stages {
        let name = line.domains.name(stage.domain);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let lanes = (1..).zip(names).flat_map(|(number, name)| {
        let stages = line.stages.iter();
        let stages = stages.filter(|stage| line.domains.name(stage.domain) == name);
        lives(line, stages.collect(), number, &name)
    });
    lanes.collect()
}

/// The lanes of one name. An instance may begin before the one before it is cleared away, so those
/// take turns in two lanes, and in more where that is not enough.
fn lives(
    line: &Timeline,
    stages: Vec<&super::timeline::Stage>,
    number: u64,
    name: &str,
) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    for stage in stages
        .iter()
        .filter(|stage| stage.state != interfaces::DomainState::Gone)
    {
        let label = line.domains.label(stage.domain);
        let new = interval(
            stage.from,
            stage.to,
            format!("{label}: {:?}", stage.state),
            "life",
        );
        let is_free = |lane: &&mut Lane| lane.intervals.iter().all(|last| last.to <= new.from);
        match lanes.iter_mut().find(is_free) {
            Some(lane) => lane.intervals.push(new),
            None => lanes.push(Lane {
                number: number * 1000 + lanes.len() as u64,
                name: name.to_string(),
                intervals: vec![new],
            }),
        }
    }
    lanes
}
