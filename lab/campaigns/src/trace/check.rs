//! Reads the files again and looks whether they keep to their formats, more strictly than those who
//! open them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// What was found in `trace.json`.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Intervals by category.
    pub intervals: BTreeMap<String, usize>,
    /// Moments by category.
    pub moments: BTreeMap<String, Vec<String>>,
    /// Names of intervals.
    pub names: BTreeSet<String>,
    /// What it says of events that were lost.
    pub lost: u64,
}

fn text<'a>(event: &'a Value, name: &str) -> Result<&'a str> {
    let found = event[name].as_str();
    found.with_context(|| format!("no text `{name}`: {event}"))
}

/// Microseconds as nanoseconds.
fn nanoseconds(event: &Value, name: &str) -> Result<i64> {
    let micros = event[name].as_f64();
    let micros = micros.with_context(|| format!("no number `{name}`: {event}"))?;
    ensure!(micros.is_finite() && micros >= 0.0, "`{name}`: {event}");
    Ok((micros * 1000.0).round() as i64)
}

fn number(event: &Value, name: &str) -> Result<u64> {
    let found = event[name].as_u64();
    found.with_context(|| format!("no whole number `{name}`: {event}"))
}

/// A lane of the Trace Event Format.
type Lane = (u64, u64);

/// Checks a file in the Trace Event Format: known phases alone; all that they need; each lane
/// named, its intervals in their order and inside of each other or beside each other.
///
/// # Errors
/// What is wrong.
pub fn trace_events(file: &str) -> Result<Found> {
    let file: Value = serde_json::from_str(file).context("it is no JSON")?;
    let events = file["traceEvents"].as_array().context("no `traceEvents`")?;
    let mut found = Found {
        lost: number(&file["otherData"], "lost events")?,
        ..Found::default()
    };
    let (mut named, mut used) = (BTreeSet::<Lane>::new(), BTreeSet::<Lane>::new());
    let mut open: BTreeMap<Lane, (i64, Vec<i64>)> = BTreeMap::new();
    for event in events {
        let lane = (number(event, "pid")?, number(event, "tid")?);
        let name = text(event, "name")?;
        match text(event, "ph")? {
            "M" => {
                ensure!(
                    matches!(name, "process_name" | "thread_name"),
                    "metadata: {event}"
                );
                text(&event["args"], "name")?;
                ensure!(named.insert(lane), "a second name: {event}");
            }
            "X" => {
                let (from, length) = (nanoseconds(event, "ts")?, nanoseconds(event, "dur")?);
                let (before, inside) = open.entry(lane).or_default();
                ensure!(from >= *before, "not in order: {event}");
                *before = from;
                inside.retain(|to| *to > from);
                if let Some(around) = inside.last() {
                    ensure!(from + length <= *around, "across another interval: {event}");
                }
                inside.push(from + length);
                ensure!(event["args"].is_object(), "no `args`: {event}");
                *found
                    .intervals
                    .entry(text(event, "cat")?.into())
                    .or_default() += 1;
                found.names.insert(name.into());
                used.insert(lane);
            }
            "i" => {
                nanoseconds(event, "ts")?;
                ensure!(matches!(text(event, "s")?, "g" | "t"), "no scope: {event}");
                let moments = found.moments.entry(text(event, "cat")?.into()).or_default();
                moments.push(name.into());
                used.insert(lane);
            }
            phase => bail!("phase {phase}: {event}"),
        }
    }
    for lane in used {
        ensure!(named.contains(&lane), "lane {lane:?} has no name");
        ensure!(
            named.contains(&(lane.0, 0)),
            "process {} has no name",
            lane.0
        );
    }
    Ok(found)
}

/// Checks a file of Speedscope's own format: evented profiles whose frames begin and end in pairs,
/// in their order and inside the profile. The names of the profiles.
///
/// # Errors
/// What is wrong.
pub fn speedscope(file: &str) -> Result<Vec<String>> {
    let file: Value = serde_json::from_str(file).context("it is no JSON")?;
    ensure!(
        text(&file, "$schema")? == super::speedscope::SCHEMA,
        "another schema"
    );
    text(&file, "name")?;
    let frames = file["shared"]["frames"].as_array().context("no frames")?;
    for frame in frames {
        text(frame, "name")?;
    }
    let profiles = file["profiles"].as_array().context("no profiles")?;
    let checked = profiles.iter().map(|profile| {
        let name = text(profile, "name")?;
        evented(profile, frames.len()).with_context(|| format!("profile `{name}`"))?;
        Ok(name.to_string())
    });
    checked.collect()
}

fn evented(profile: &Value, frames: usize) -> Result<()> {
    ensure!(text(profile, "type")? == "evented", "another type");
    ensure!(text(profile, "unit")? == "nanoseconds", "another unit");
    let (start, end) = (number(profile, "startValue")?, number(profile, "endValue")?);
    let mut now = start;
    let mut open = Vec::new();
    for event in profile["events"].as_array().context("no events")? {
        let (frame, at) = (number(event, "frame")?, number(event, "at")?);
        ensure!((now..=end).contains(&at), "not in order: {event}");
        ensure!(frame < frames as u64, "no such frame: {event}");
        now = at;
        match text(event, "type")? {
            "O" => open.push(frame),
            "C" => ensure!(
                open.pop() == Some(frame),
                "not the frame that is open: {event}"
            ),
            kind => bail!("type {kind}"),
        }
    }
    ensure!(open.is_empty(), "{} frames stay open", open.len());
    Ok(())
}

/// Checks a picture: all that is opened is closed, and it names nothing outside of itself. Its
/// texts and titles.
///
/// # Errors
/// What is wrong.
pub fn picture(file: &str) -> Result<Vec<String>> {
    let head = "<svg xmlns=\"http://www.w3.org/2000/svg\" ";
    let body = file.strip_prefix(head).context("it begins otherwise")?;
    ensure!(
        !body.contains("http") && !body.contains("href"),
        "it names something outside"
    );
    let (mut open, mut texts) = (vec!["svg"], Vec::new());
    let (_, mut rest) = body.split_once('>').context("no end of the first tag")?;
    while let Some((before, after)) = rest.split_once('<') {
        if !before.trim().is_empty() {
            texts.push(before.to_string());
        }
        let (tag, after) = after.split_once('>').context("a tag without an end")?;
        if let Some(name) = tag.strip_prefix('/') {
            ensure!(open.pop() == Some(name), "</{name}> closes nothing");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap_or_default());
        }
        rest = after;
    }
    ensure!(
        open.is_empty() && rest.trim().is_empty(),
        "{open:?} stay open"
    );
    Ok(texts)
}
