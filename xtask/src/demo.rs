//! `cargo xtask demo` (`make demo`): a tour of half a minute that needs no typing.
//!
//! It boots to Debian's bash and has Debian's own `md5sum` check the files of all packages, while
//! the disk driver, the file system and the file service crash again and again; then the log tells
//! of it. Where no packages can be had, the tour is one of Trefoil's own shell: a checksum over the
//! disk, whose driver crashes meanwhile. Where something is not as it should be the tour fails.

use std::path::Path;
use std::process::{self, Command};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result};

use machine::image;
use machine::qemu::{Ended, Machine};
use machine::session::{PROMPT, ROOT_PROMPT, Session};
use machine::{debian, disk};
use trefoil_gate::project::Project;
use trefoil_gate::{build, setup, tool};

const LIMIT: Duration = Duration::from_secs(300);
/// Time to read what was printed.
const PAUSE: Duration = Duration::from_millis(1500);

/// A line that is typed, and what the spectator is told before it.
type Step = (&'static str, &'static str);

const OF_DEBIAN: [Step; 5] = [
    (
        "This is Debian's bash on a disk of Debian's packages, unmodified. What is below it are \
         domains: each was compiled, signed and loaded on its own.",
        "trefoil domains",
    ),
    (
        "The screen is wide, so that lines fit.",
        "stty cols 160; cd /",
    ),
    (
        "Debian's md5sum checks the files of all packages. Meanwhile the disk driver, the file \
         system and the file service crash again and again.",
        "cat /var/lib/dpkg/info/*.md5sums | md5sum --quiet --check & while sleep 1; \
         kill -0 $! 2>/dev/null; do trefoil crash virtio-blk ext2 files; done; \
         wait $!; echo \"md5sum ends with $?\"",
    ),
    (
        "It did not notice. What the kernel has to say about it:",
        "trefoil log | tail -12",
    ),
    (
        "The domains that crashed have new numbers; bash and its personality, linux, have the old ones.",
        "trefoil domains",
    ),
];
/// What is on the screen then, besides a line for each crash.
const CHECKED: &str = "\nmd5sum ends with 0\n";
const CRASHED: [&str; 3] = ["virtio-blk", "ext2", "vfs"];
const AWAY: &str = " crashed and was away for ";

const OF_RV6: [Step; 4] = [
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
/// What the log says of the driver's next instance.
const RESTARTED: &str = "restart 1 after 1 crashes";

/// The command; its result is our exit status.
///
/// # Errors
/// If the system cannot be built or booted, or a step hangs.
pub fn demo(project: &Project) -> Result<i32> {
    setup::machine()?;
    let folder = project.out.join(format!("demo-{}", process::id()));
    fs::create_dir_all(&folder)?;
    let ended = match debian::default(project) {
        Ok(disk) => of_debian(project, &folder, &disk),
        Err(error) => {
            println!("# No Debian packages ({error}), so this is Trefoil's own shell.");
            of_rv6(project, &folder)
        }
    };
    fs::remove_dir_all(folder)?;
    ended
}

fn of_debian(project: &Project, folder: &Path, disk: &Path) -> Result<i32> {
    let manifest = project.root.join("images/linux.toml");
    let built = build::build(project, Some(&manifest))?;
    // The disk itself may be that of a machine that runs.
    let copy = folder.join("debian.img");
    let mut copied = Command::new("cp");
    tool::output(copied.arg("--sparse=always").arg(disk).arg(&copy))?;
    let mut machine = Machine::new(&built.kernel, folder);
    (machine.archive, machine.disk) = (Some(built.archive), Some(copy));
    machine.memory = "1G".into();
    let (screen, is_off) = tour(&machine, ROOT_PROMPT, &OF_DEBIAN)?;
    let is_right = screen.contains(CHECKED);
    let crashes = |name: &str| screen.matches(&format!("{name}{AWAY}")).count();
    let crashes = CRASHED.map(crashes);
    let told = CRASHED.iter().zip(crashes);
    let told: Vec<_> = told
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    say(&format!(
        "Times that each crashed: {}. All files are right: {}.",
        told.join(", "),
        if is_right { "yes" } else { "NO" }
    ));
    let is_good = is_right && crashes.iter().all(|count| *count > 0) && is_off;
    Ok(i32::from(!is_good))
}

fn of_rv6(project: &Project, folder: &Path) -> Result<i32> {
    let built = build::build(project, None)?;
    let disk = disk::default(project)?;
    let expected = host_sum(&disk, folder)?;
    let mut machine = Machine::new(&built.kernel, folder);
    (machine.archive, machine.disk) = (Some(built.archive), Some(disk));
    let (screen, is_off) = tour(&machine, PROMPT, &OF_RV6)?;
    let (is_right, has_crashed) = (screen.contains(&expected), screen.contains(RESTARTED));
    say(&format!(
        "The host computes the same sum: {}.",
        if is_right { "yes" } else { "NO" }
    ));
    if !has_crashed {
        say("But the driver was not started again: it did not crash.");
    }
    Ok(i32::from(!(is_right && has_crashed && is_off)))
}

/// Types the lines; what was on the screen, and whether the machine was switched off as it should.
fn tour(machine: &Machine, prompt: &'static str, steps: &[Step]) -> Result<(String, bool)> {
    let mut machine = machine.clone();
    machine.words.push("panic=off".into());
    say("Trefoil boots.");
    let mut session = Session::start(&machine, true)?.with_prompt(prompt);
    session.prompt(LIMIT)?;
    for (text, line) in steps {
        say(text);
        session.run(line, LIMIT)?;
        thread::sleep(PAUSE);
    }
    session.type_line(b"poweroff")?;
    let ended = session.end(LIMIT)?;
    let is_off = matches!(ended, Ended::Status(0) | Ended::Off);
    Ok((session.screen(), is_off))
}

fn say(text: &str) {
    println!("\n\n# {text}");
}

/// The SHA-256 of `/big` on the disk, by the host's tools.
fn host_sum(disk: &Path, folder: &Path) -> Result<String> {
    let copy = folder.join("big");
    fs::write(&copy, image::file_by_host(disk, "/big", folder)?)?;
    let text = tool::output(Command::new("sha256sum").arg(&copy));
    fs::remove_file(copy)?;
    let sum = text?.split_whitespace().next().map(str::to_string);
    sum.context("sha256sum prints a sum")
}
