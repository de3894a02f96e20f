//! The texts of `/proc`. Each is lines of fields with blanks between them, for programs to take
//! apart; names in `domains` and `processes` stand at the end of their lines. How long a text gets
//! depends on how many processes and domains there are, so there may be no memory for it.

use alloc::vec::Vec;
use core::fmt::{self, Write as _};
use domain_rt::time;
use interfaces::{DomainState, FsStatistics};

use crate::mount_table::Listed;
use crate::system::System;

/// One file.
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// What is in it now.
    text: fn(&System, &mut Text) -> fmt::Result,
}

impl File {
    /// What is in it now; `None` if there is no memory for that.
    pub fn text(&self, system: &System) -> Option<Vec<u8>> {
        let mut text = Text(Vec::new());
        (self.text)(system, &mut text).ok()?;
        Some(text.0)
    }
}

/// A text that is written. The only error is that there is no memory for more of it.
struct Text(Vec<u8>);

impl Text {
    fn bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.0.try_reserve(bytes.len()).map_err(|_| fmt::Error)?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes())
    }
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
fn command_line(system: &System, text: &mut Text) -> fmt::Result {
    writeln!(text, "{}", system.command_line())
}

/// Nanoseconds.
const MILLISECOND: u64 = 1_000_000;

/// How the processors' time was used since boot: each line a name and milliseconds.
fn times(system: &System, text: &mut Text) -> fmt::Result {
    let monitor = system.monitor();
    let Some((Ok(time), Ok(processors))) =
        monitor.map(|monitor| (monitor.time(), monitor.processors()))
    else {
        return Ok(());
    };
    let all = time.since_boot.saturating_mul(u64::from(processors));
    let lines = [
        ("all", all),
        ("busy", time.busy),
        ("idle", all.saturating_sub(time.busy)),
        ("kernel", time.kernel),
        ("gone", time.gone),
    ];
    for (name, ns) in lines {
        writeln!(text, "{name} {}", ns / MILLISECOND)?;
    }
    Ok(())
}

/// Number, parent's number, state, bytes of private heap and image, shared objects, handles,
/// threads, calls, processor time of its own code in milliseconds, name.
fn domains(system: &System, text: &mut Text) -> fmt::Result {
    let Some(monitor) = system.monitor() else {
        return Ok(());
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
        writeln!(
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
        )?;
    }
    Ok(())
}

/// As Linux writes it, with what there is.
fn memory(system: &System, text: &mut Text) -> fmt::Result {
    let Some(Ok(memory)) = system.monitor().map(|monitor| monitor.memory()) else {
        return Ok(());
    };
    let lines = [
        ("MemTotal:", memory.total),
        ("MemFree:", memory.free),
        ("Shared:", memory.shared),
    ];
    for (name, bytes) in lines {
        writeln!(text, "{name:<16}{:>8} kB", bytes / 1024)?;
    }
    Ok(())
}

/// As Linux writes it: device, path, kind, options, two zeros.
fn mounts(system: &System, text: &mut Text) -> fmt::Result {
    for mounted in system.volumes.mounts.list() {
        if let Ok(None) = mounted.mount.live() {
            // It never was there.
            continue;
        }
        write!(text, "{} ", mounted.device.as_str())?;
        escape(&mounted.path, text)?;
        let (kind, access) = match statistics(&mounted) {
            Some(of) => (of.kind, if of.read_only { "ro" } else { "rw" }),
            None => ("down".into(), "ro"),
        };
        writeln!(text, " {kind} {access} 0 0")?;
    }
    Ok(())
}

fn statistics(mounted: &Listed) -> Option<FsStatistics> {
    let live = mounted.mount.live().ok()??;
    mounted.mount.settle(&live, live.fs.statistics()).ok()
}

/// Writes a path with blanks, tabs, line breaks and backslashes as octal numbers.
fn escape(path: &[u8], text: &mut Text) -> fmt::Result {
    path.iter().try_for_each(|&byte| match byte {
        b' ' | b'\t' | b'\n' | b'\\' => write!(text, "\\{byte:03o}"),
        byte => text.bytes(&[byte]),
    })
}

/// Number, parent's number, number of the domain, state, processor time in its own code and in
/// others' in milliseconds, name.
fn processes(system: &System, text: &mut Text) -> fmt::Result {
    for info in (0..).map_while(|index| system.process(index)) {
        let state = match (info.ended, info.stopped) {
            (true, _) => "ended",
            (false, true) => "stopped",
            (false, false) => "running",
        };
        let (pid, parent, domain, name) = (info.pid, info.parent, info.domain, info.name);
        let (user, system) = (info.user_ns / MILLISECOND, info.system_ns / MILLISECOND);
        writeln!(
            text,
            "{pid} {parent} {domain} {state} {user} {system} {name}"
        )?;
    }
    Ok(())
}

/// Seconds since boot.
fn uptime(_: &System, text: &mut Text) -> fmt::Result {
    let hundredths = time::now() / 10_000_000;
    writeln!(text, "{}.{:02}", hundredths / 100, hundredths % 100)
}

fn version(_: &System, text: &mut Text) -> fmt::Result {
    writeln!(text, "Trefoil 0.1.0")
}
