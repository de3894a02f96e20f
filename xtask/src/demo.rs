//! `cargo xtask demo` (`make demo`): a tour of half a minute that needs no typing.
//!
//! It boots, shows the domains, crashes the disk driver while a checksum is being computed over the
//! disk, and shows that the sum is right and what was restarted. Where one of these is not so it
//! fails.

use std::path::Path;
use std::process::{self, Command};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result};

use machine::disk;
use machine::image;
use machine::qemu::{Ended, Machine};
use machine::session::Session;
use trefoil_gate::project::Project;
use trefoil_gate::{build, setup, tool};

const LIMIT: Duration = Duration::from_secs(120);
/// Time to read what was printed.
const PAUSE: Duration = Duration::from_millis(1500);

/// What the log says of the driver's next instance.
const RESTARTED: &str = "restart 1 after 1 crashes";

/// A line that is typed, and what the spectator is told before it.
const TOUR: [(&str, &str); 4] = [
    (
        "Every part of the system is a domain: compiled, signed and loaded on its own.",
        "domains",
    ),
    (
        "A checksum of 8 MiB on the disk; meanwhile the disk driver is made to crash.",
        "sha256sum /big & crash virtio-blk; wait",
    ),
    (
        "Nobody noticed. What the kernel has to say about it:",
        "dmesg | grep virtio-blk",
    ),
    (
        "The driver was restarted, and the block shadow gave it the requests that were under way again.",
        "domains",
    ),
];

/// The command; its result is our exit status.
///
/// # Errors
/// If the system cannot be built or booted, or a step hangs.
pub fn demo(project: &Project) -> Result<i32> {
    setup::machine()?;
    let built = build::build(project, None)?;
    let disk = disk::default(project)?;
    let expected = host_sum(&disk, &project.out)?;
    let mut machine = Machine::new(&built.kernel, &project.out.join("demo"));
    (machine.archive, machine.disk) = (Some(built.archive), Some(disk));
    machine.words.push("panic=off".into());
    say("Trefoil boots.");
    let mut session = Session::start(&machine, true)?;
    session.prompt(LIMIT)?;
    for (text, line) in TOUR {
        say(text);
        session.run(line, LIMIT)?;
        thread::sleep(PAUSE);
    }
    let is_right = session.screen().contains(&expected);
    let has_crashed = session.screen().contains(RESTARTED);
    session.type_line(b"poweroff")?;
    let ended = session.end(LIMIT)?;
    say(&format!(
        "The host computes the same sum: {}.",
        if is_right { "yes" } else { "NO" }
    ));
    if !has_crashed {
        say("But the driver was not started again: it did not crash.");
    }
    let is_good = is_right && has_crashed && matches!(ended, Ended::Status(0) | Ended::Off);
    Ok(i32::from(!is_good))
}

fn say(text: &str) {
    println!("\n\n# {text}");
}

/// The SHA-256 of `/big` on the disk, by the host's tools.
fn host_sum(disk: &Path, folder: &Path) -> Result<String> {
    let copy = folder.join(format!("big-{}", process::id()));
    fs::write(&copy, image::file_by_host(disk, "/big", folder)?)?;
    let text = tool::output(Command::new("sha256sum").arg(&copy));
    fs::remove_file(copy)?;
    let sum = text?.split_whitespace().next().map(str::to_string);
    sum.context("sha256sum prints a sum")
}
