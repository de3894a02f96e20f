//! The texts of `/proc`. Each is lines of fields with blanks between them, for programs to take apart; names in `domains` and `processes` stand
//! at the end of their lines.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;
use domain_rt::time;
use interfaces::{DomainState, FsStatistics};

use crate::mount_table::Listed;
use crate::system::System;

/// One file.
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// What is in it now.
    pub text: fn(&System) -> Vec<u8>,
}

/// All files.
pub const FILES: &[File] = &[
    File {
        name: "cmdline",
        text: command_line,
    },
    File {
        name: "domains",
        text: domains,
    },
    File {
        name: "meminfo",
        text: memory,
    },
    File {
        name: "mounts",
        text: mounts,
    },
    File {
        name: "processes",
        text: processes,
    },
    File {
        name: "times",
        text: times,
    },
    File {
        name: "uptime",
        text: uptime,
    },
    File {
        name: "version",
        text: version,
    },
];

/// The kernel's command line.
fn command_line(system: &System) -> Vec<u8> {
    format!("{}\n", system.command_line()).into_bytes()
}

/// Nanoseconds.
const MILLISECOND: u64 = 1_000_000;

/// How the processors' time was used since boot: each line a name and milliseconds.
fn times(system: &System) -> Vec<u8> {
    let monitor = system.monitor();
    let Some((Ok(time), Ok(processors))) =
        monitor.map(|monitor| (monitor.time(), monitor.processors()))
    else {
        return Vec::new();
    };
    let all = time.since_boot.saturating_mul(u64::from(processors));
    let lines = [
        ("all", all),
        ("busy", time.busy),
        ("idle", all.saturating_sub(time.busy)),
        ("kernel", time.kernel),
        ("gone", time.gone),
    ];
    let lines = lines.map(|(name, ns)| format!("{name} {}\n", ns / MILLISECOND));
    lines.concat().into_bytes()
}

/// Number, parent's number, state, bytes of private heap and image, shared objects, handles, threads, calls,
/// processor time of its own code in milliseconds, name.
fn domains(system: &System) -> Vec<u8> {
    let mut text = String::new();
    let Some(monitor) = system.monitor() else {
        return Vec::new();
    };
    let mut from = 0;
    while let Ok(Some(info)) = monitor.next(from) {
        from = info.id + 1;
        let Ok(owned) = monitor.holdings(info.id) else {
            break;
        };
        let state = match info.state {
            DomainState::Starting => "starting",
            DomainState::Running => "running",
            DomainState::Dying => "dying",
            DomainState::Gone => "gone",
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{} {} {state} {} {} {} {} {} {} {} {}",
            info.id,
            info.parent,
            info.heap_bytes,
            info.image_bytes,
            owned.objects,
            owned.handles,
            info.threads,
            info.calls,
            info.own_ns / MILLISECOND,
            info.name
        );
    }
    text.into_bytes()
}

/// As Linux writes it, with what there is.
fn memory(system: &System) -> Vec<u8> {
    let Some(Ok(memory)) = system.monitor().map(|monitor| monitor.memory()) else {
        return Vec::new();
    };
    let line =
        |name: &str, bytes: u64| format!("{:<16}{:>8} kB\n", format!("{name}:"), bytes / 1024);
    let lines = [
        line("MemTotal", memory.total),
        line("MemFree", memory.free),
        line("Shared", memory.shared),
    ];
    lines.concat().into_bytes()
}

/// As Linux writes it: device, path, kind, options, two zeros.
fn mounts(system: &System) -> Vec<u8> {
    let mut text = Vec::new();
    for mounted in system.volumes.mounts.list() {
        if let Ok(None) = mounted.mount.live() {
            // It never was there.
            continue;
        }
        text.extend_from_slice(mounted.device.as_str().as_bytes());
        text.push(b' ');
        text.extend(escaped(&mounted.path));
        let (kind, access) = match statistics(&mounted) {
            Some(of) => (of.kind, if of.read_only { "ro" } else { "rw" }),
            None => ("down".into(), "ro"),
        };
        text.extend_from_slice(format!(" {kind} {access} 0 0\n").as_bytes());
    }
    text
}

fn statistics(mounted: &Listed) -> Option<FsStatistics> {
    let live = mounted.mount.live().ok()??;
    mounted.mount.settle(&live, live.fs.statistics()).ok()
}

/// A path with blanks, tabs, line breaks and backslashes as octal numbers.
fn escaped(path: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for &byte in path {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => text.extend(format!("\\{byte:03o}").into_bytes()),
            byte => text.push(byte),
        }
    }
    text
}

/// Number, parent's number, number of the domain, state, processor time in its own code and in others' in
/// milliseconds, name.
fn processes(system: &System) -> Vec<u8> {
    let mut text = String::new();
    for info in (0..).map_while(|index| system.process(index)) {
        let state = match (info.ended, info.stopped) {
            (true, _) => "ended",
            (false, true) => "stopped",
            (false, false) => "running",
        };
        let (pid, parent, domain, name) = (info.pid, info.parent, info.domain, info.name);
        let (user, system) = (info.user_ns / MILLISECOND, info.system_ns / MILLISECOND);
        let _ = writeln!(
            text,
            "{pid} {parent} {domain} {state} {user} {system} {name}"
        );
    }
    text.into_bytes()
}

/// Seconds since boot.
fn uptime(_: &System) -> Vec<u8> {
    let hundredths = time::now() / 10_000_000;
    format!("{}.{:02}\n", hundredths / 100, hundredths % 100).into_bytes()
}

fn version(_: &System) -> Vec<u8> {
    (*b"Trefoil 0.1.0\n").into()
}
