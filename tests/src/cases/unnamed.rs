//! Files that are open and have lost their last name: a power cut leaves none of them, and nothing
//! that a user makes is taken for one, however he calls it. By `rv6` and by a program of Linux.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use machine::disk;
use machine::qemu::{Event, Machine};
use trefoil_gate::{setup, tool};

use super::recovery::with_limits;
use super::{Case, case, mapping};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("unnamed-files-go-with-a-power-cut", |bench| {
        power_cut(bench, Whose::Shell)
    }),
    case("unnamed-files-of-linux-go-with-a-power-cut", |bench| {
        power_cut(bench, Whose::Program)
    }),
    case("unnamed-files-take-no-name-of-users", |bench| {
        names_of_users(bench, Whose::Shell)
    }),
    case("unnamed-files-take-no-name-of-users-of-linux", |bench| {
        names_of_users(bench, Whose::Program)
    }),
];

/// Where they have names.
const UNNAMED: &str = "/.trefoil-unnamed";
/// Blocks of the file that loses its name.
const BLOCKS: usize = 3072;

/// Who has the file open.
#[derive(Clone, Copy)]
enum Whose {
    /// The shell, by `rv6`.
    Shell,
    /// A program of Linux, by `linux`.
    Program,
}

impl Whose {
    fn machine(self, bench: &Bench<'_>, disk: &Path) -> Result<Machine> {
        match self {
            Whose::Shell => {
                let manifest = with_limits(bench, &["vfs", "ext2"], "restarts = 1000")?;
                let mut machine = bench.machine_by(&manifest)?;
                machine.disk = Some(disk.to_path_buf());
                Ok(machine)
            }
            Whose::Program => mapping::machine(bench, &setup::busybox()?, disk, ""),
        }
    }

    /// These commands, which are in the disk's root directory.
    fn does(self, commands: &str) -> String {
        match self {
            Whose::Shell => format!("cd /; {commands}"),
            Whose::Program => format!("{} 'cd /disk; {commands}'", mapping::RUN),
        }
    }
}

/// What the commands have said.
fn text_of(stdout: &str) -> String {
    let lines = stdout
        .lines()
        .filter(|line| !line.starts_with("linux: exited"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Names in a directory of a disk, as the host sees them; none if there is no such directory.
fn host_names(disk: &Path, directory: &str) -> Result<Vec<String>> {
    let debugfs = tool::need("debugfs", "e2fsprogs")?;
    let request = format!("ls -p \"{directory}\"");
    let text = tool::output(Command::new(debugfs).args(["-R", &request]).arg(disk))?;
    let names = text.lines().filter_map(|line| line.split('/').nth(5));
    let others = names.filter(|name| !matches!(*name, "" | "." | ".."));
    Ok(others.map(str::to_string).collect())
}

/// Fails if a file without a name is left on a disk.
pub(super) fn expect_none(disk: &Path) -> Result<()> {
    let names = host_names(disk, UNNAMED)?;
    ensure!(names.is_empty(), "{names:?} are left");
    Ok(())
}

fn free_blocks(disk: &Path) -> Result<usize> {
    let dumpe2fs = tool::need("dumpe2fs", "e2fsprogs")?;
    let text = tool::output(Command::new(dumpe2fs).arg("-h").arg(disk))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Free blocks:"));
    Ok(line
        .context("dumpe2fs shows no free blocks")?
        .trim()
        .parse()?)
}

/// The power goes while a file is open that has no name, when its removal is on the disk. The next
/// boot frees it.
fn power_cut(bench: &Bench<'_>, whose: Whose) -> Result<()> {
    let disk = bench.small_disk("16M", &["-b", "1024", "-j"], |root| {
        Ok(fs::write(root.join("big"), disk::noise(BLOCKS << 10, 9))?)
    })?;
    let before = free_blocks(&disk)?;
    let line = whose.does("{ rm big; sync; echo cut now; sleep 1000; } < big");
    let mut guest = bench.begin(whose.machine(bench, &disk)?, &line)?;
    let (deadline, mut said) = (Instant::now() + LIMIT, String::new());
    while !said.contains("cut now") {
        match guest.receive(deadline) {
            Event::Bytes(bytes) => said += &String::from_utf8_lossy(&bytes),
            _ => bail!("it says no more: {said}\n{}", guest.log()),
        }
    }
    guest.kill();
    while let Event::Bytes(_) = guest.receive(deadline) {}
    let hidden = host_names(&disk, UNNAMED)?;
    ensure!(hidden.len() == 1, "{hidden:?} is open");
    ensure!(host_names(&disk, "/")?.iter().all(|name| name != "big"));
    let answer = bench.exec_on(
        whose.machine(bench, &disk)?,
        "ls -a / | grep -c trefoil; sync",
    )?;
    let answer = answer.logs("removed 1 files that were open without a name")?;
    ensure!(answer.stdout.starts_with('0'), "{}", answer.stdout);
    expect_none(&disk)?;
    bench.expect_clean(&disk)?;
    let after = free_blocks(&disk)?;
    ensure!(
        after >= before + BLOCKS,
        "{before} blocks were free, now {after}"
    );
    Ok(())
}

/// Names that the service might take for its own, of this version and of earlier ones, made by
/// another system and by this one: all are shown, stay over crashes and the next boot, and can be
/// removed, while files are open without a name.
fn names_of_users(bench: &Bench<'_>, whose: Whose) -> Result<()> {
    let disk = bench.small_disk("8M", &["-b", "1024", "-j"], |root| {
        fs::write(root.join("keep"), "kept\n")?;
        fs::create_dir(root.join(".trefoil-unnamed-1"))?;
        Ok(fs::write(root.join(".trefoil-orphan-7"), "seven\n")?)
    })?;
    const ALL: &str = ".trefoil-orphan-7\n.trefoil-orphan-8\n.trefoil-orphan-x\n.trefoil-unnamed\n\
                       .trefoil-unnamed-1\n";
    let make = whose.does(
        "cp keep f; { rm f; echo x > .trefoil-orphan-x; mkdir .trefoil-unnamed; \
         echo in > .trefoil-unnamed/4; echo eight > g; mv g .trefoil-orphan-8; cat; } < f",
    );
    let show = whose.does(
        "ls -a . | grep trefoil; cat .trefoil-orphan-7 .trefoil-orphan-8 .trefoil-orphan-x \
         .trefoil-unnamed/4",
    );
    let content = "seven\neight\nx\nin\n";
    let line = format!("{make}; crash vfs; {show}; crash ext2; {show}; kill-domain vfs; {show}");
    let answer = bench
        .exec_on(whose.machine(bench, &disk)?, &line)?
        .status(0)?;
    let right = format!("kept\n{}", format!("{ALL}{content}").repeat(3));
    let said = text_of(&answer.stdout);
    ensure!(said == right, "{said}\n{}\n{}", answer.stderr, answer.log);
    bench.expect_clean(&disk)?;
    // It may hold what was closed at the very time of a crash, until the next boot.
    let directory = host_names(&disk, "/")?;
    ensure!(
        directory.iter().any(|name| name == ".trefoil-unnamed-2"),
        "{directory:?}"
    );
    let remove = whose.does(
        "rm .trefoil-orphan-7 .trefoil-orphan-8 .trefoil-orphan-x; rm -r .trefoil-unnamed \
         .trefoil-unnamed-1; ls -a . | grep -c trefoil",
    );
    let line = format!("{show}; {remove}; true");
    let answer = bench
        .exec_on(whose.machine(bench, &disk)?, &line)?
        .status(0)?;
    let said = text_of(&answer.stdout);
    ensure!(
        said == format!("{ALL}{content}0\n"),
        "{said}\n{}",
        answer.stderr
    );
    let hidden = host_names(&disk, "/.trefoil-unnamed-2")?;
    ensure!(hidden.is_empty(), "{hidden:?} is left");
    bench.expect_clean(&disk)
}
