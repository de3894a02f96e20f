//! Speedscope's own format: an evented profile for each processor, for each thread, and for each
//! name of which a domain has died.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::intervals::{Lane, Step};
use super::perfetto::{domains, processors, threads};
use super::timeline::Timeline;

/// The schema that the file keeps to.
pub const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes `line`, which `title` describes.
///
/// # Errors
/// Those of `out`.
pub fn write(line: &Timeline, title: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut frames = Frames::default();
    let lanes = [processors(line), threads(line), domains(line), gaps(line)].concat();
    let used = lanes.iter().filter(|lane| !lane.intervals.is_empty());
    let profiles: Vec<Value> = used.map(|lane| profile(line, lane, &mut frames)).collect();
    let name = match line.lost {
        0 => title.to_string(),
        lost => format!("{title} ({lost} events are lost)"),
    };
    let file = json!({
        "$schema": SCHEMA,
        "exporter": "trefoil",
        "name": name,
        "activeProfileIndex": 0,
        "shared": { "frames": frames.list },
        "profiles": profiles,
    });
    serde_json::to_writer(&mut *out, &file)?;
    writeln!(out)
}

/// Each name once.
#[derive(Default)]
struct Frames {
    list: Vec<Value>,
    numbers: HashMap<String, usize>,
}

impl Frames {
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.list.len();
        self.list.push(json!({ "name": name }));
        self.numbers.insert(name.to_string(), number);
        number
    }
}

fn profile(line: &Timeline, lane: &Lane, frames: &mut Frames) -> Value {
    let (mut events, mut open) = (Vec::new(), Vec::new());
    let walked: Result<(), std::convert::Infallible> = lane.walk(|step| {
        let (kind, frame, at) = match step {
            Step::Begin(interval) => {
                let frame = frames.number(&interval.name);
                open.push(frame);
                ("O", frame, interval.from)
            }
            Step::End(at) => ("C", open.pop().unwrap_or_default(), at),
        };
        events.push(json!({ "type": kind, "frame": frame, "at": at - line.from }));
        Ok(())
    });
    let Ok(()) = walked;
    json!({
        "type": "evented", "name": lane.name, "unit": "nanoseconds",
        "startValue": 0, "endValue": line.to - line.from, "events": events,
    })
}

/// A lane of what is missing, if something is.
fn gaps(line: &Timeline) -> Vec<Lane> {
    let gaps = line
        .gaps
        .iter()
        .map(|&(from, to, lost)| super::intervals::Interval {
            from,
            to,
            name: format!("{lost} events are lost"),
            sort: "lost",
            more: Vec::new(),
        });
    vec![Lane {
        number: 0,
        name: "lost events".into(),
        intervals: gaps.collect(),
    }]
}
