//! What `/proc` tells of the machine (proc(5)).

use super::{Special, TEXT, names};
use crate::errno::{ENOENT, Error};
use crate::system::System;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use domain_rt::time;
use linux::files::DIRECTORY;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// Files below `sys`, with what they say.
const SETTINGS: [(&str, &str); 8] = [
    ("kernel/ostype", "Linux\n"),
    ("kernel/osrelease", "6.1.0\n"),
    ("kernel/hostname", "trefoil\n"),
    ("kernel/pid_max", "4194304\n"),
    ("kernel/ngroups_max", "65536\n"),
    ("kernel/cap_last_cap", "40\n"),
    ("vm/overcommit_memory", "0\n"),
    ("fs/pipe-max-size", "65536\n"),
];

/// The names of what it tells.
pub(super) fn all() -> impl Iterator<Item = (Vec<u8>, u32)> {
    let texts = [
        "filesystems",
        "meminfo",
        "uptime",
        "loadavg",
        "version",
        "stat",
        "cpuinfo",
    ];
    let texts = texts.map(|name| (name.as_bytes().to_vec(), TEXT));
    texts.into_iter().chain(names(&["sys"], DIRECTORY))
}

/// What stands at a path behind `/proc` that is not of a process.
pub(super) fn find(system: &System, path: &[&[u8]]) -> Result<Special, Error> {
    let text = match path {
        [b"filesystems"] => "\text3\nnodev\tproc\n".into(),
        [b"version"] => "Linux version 6.1.0 (trefoil) Trefoil\n".into(),
        [b"uptime"] => uptime(),
        [b"meminfo"] => meminfo(system),
        [b"loadavg"] => format!("0.00 0.00 0.00 1/{} 1\n", system.processes().len()),
        [b"stat"] => format!(
            "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\nbtime {}\n",
            system.wall().saturating_sub(time::now()) / SECOND
        ),
        [b"cpuinfo"] => "processor\t: 0\nvendor_id\t: unknown\nmodel name\t: x86-64\n\n".into(),
        [b"sys", rest @ ..] => return setting(rest),
        _ => return Err(ENOENT),
    };
    Ok(Special::Text(text.into_bytes()))
}

fn meminfo(system: &System) -> String {
    let (total, free) = system.memory();
    let mut text = String::new();
    for (name, bytes) in [
        ("MemTotal", total),
        ("MemFree", free),
        ("MemAvailable", free),
        ("Buffers", 0),
        ("Cached", 0),
        ("SwapCached", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Shmem", 0),
        ("SReclaimable", 0),
    ] {
        let label = format!("{name}:");
        text += &format!("{label:<16}{:>8} kB\n", bytes / 1024);
    }
    text
}

fn uptime() -> String {
    let hundredths = time::now() / (SECOND / 100);
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    format!("{whole}.{rest:02} 0.00\n")
}

fn setting(path: &[&[u8]]) -> Result<Special, Error> {
    let path = path.join(&b'/');
    let below = |name: &&'static str| match path.is_empty() {
        true => Some(*name),
        false => name
            .as_bytes()
            .strip_prefix(&path[..])?
            .strip_prefix(b"/")
            .and_then(|rest| core::str::from_utf8(rest).ok()),
    };
    if let Some((_, text)) = SETTINGS.iter().find(|(name, _)| name.as_bytes() == path) {
        return Ok(Special::Text(text.as_bytes().to_vec()));
    }
    let mut found: Vec<(Vec<u8>, u32)> = Vec::new();
    for rest in SETTINGS.iter().map(|(name, _)| name).filter_map(below) {
        let (name, kind) = match rest.split_once('/') {
            Some((name, _)) => (name, DIRECTORY),
            None => (rest, TEXT),
        };
        if found.iter().all(|(other, _)| *other != name.as_bytes()) {
            found.push((name.as_bytes().to_vec(), kind));
        }
    }
    match found.is_empty() {
        true => Err(ENOENT),
        false => Ok(Special::Directory(found)),
    }
}
