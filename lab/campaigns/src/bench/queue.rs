//! `bench queue`: what 4 KiB read from a disk and written to it take a domain, through block shadow
//! and driver, of virtio and of NVMe: by a block queue, polled and by event, in batches of 1 and of
//! 32, and by the calls of `Block` that wait, where the driver has them. Beside it a program on
//! Debian's kernel, which asks for the same by rings of io_uring with registered buffers, and by
//! `pread` and `pwrite`, past the page cache; and Debian's `fio`, by which the trade measures
//! disks.
//!
//! The machine has one processor, whose clock counts the guest's instructions (`-icount shift=0`),
//! and a disk of zeros, with two queues, as Linux wants one for what is polled. What is counted is
//! said in `domains/testing/queuebench` and in `lab/peers/queue`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::figure::Figure;
use super::side::{counting, peer_words, write_rows};
use crate::peer;
use machine::qemu::{Machine, exec_word};
use machine::session::Session;
use trefoil_gate::build;
use trefoil_gate::project::Project;
use trefoil_gate::tool;

use crate::fuzz::queues::{attach, manifest_for};

const LIMIT: Duration = Duration::from_secs(600);
/// A driver, and what is told of it.
struct Subject {
    driver: &'static str,
    /// In front of the names of its rows.
    prefix: &'static str,
    /// What is told of it: for two verbs two ways with two sizes of batches, and calls, if any.
    lines: usize,
    /// The peer's device, and the word of its kernel's command line.
    device: &'static str,
    word: &'static str,
}

const SUBJECTS: [Subject; 2] = [
    Subject {
        driver: "virtio-blk",
        prefix: "",
        lines: 8,
        device: "/dev/vda",
        word: "",
    },
    Subject {
        driver: "nvme",
        prefix: "NVMe: ",
        lines: 8,
        device: "/dev/nvme0n1",
        word: "nvme.poll_queues=1",
    },
];
/// Memory of the machine with `fio`, whose libraries are a third of it.
const FIO_MEMORY: &str = "1G";
/// What the peer prints at its end.
const END: &str = "queuebench-ended";
/// The peer's lines, once its device `DEVICE` is there.
const SCRIPT: &str = "$bb mkdir /proc && $bb mount -t proc proc /proc
until $bb test -b DEVICE; do $bb usleep 10000; done
/program DEVICE && /program DEVICE polled";
/// The lines of the machine with `fio`.
const FIO_SCRIPT: &str = "$bb mkdir /proc /sys /tmp && $bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
until $bb test -b DEVICE; do $bb usleep 10000; done
/program DEVICE";
/// Rows of it: for two verbs two sizes of batches.
const FIO_LINES: usize = 4;
/// More than the manifest of the gate has.
const SERVICES: &str =
    "disk = \"block\"\nobjects = \"kernel.objects\"\nevents = \"kernel.events\"\n";

/// Measures, `alone` without Debian's kernel, and writes a list of the rows.
///
/// # Errors
/// If the system does not do the work.
pub fn queue(project: &Project, alone: bool) -> Result<Vec<Figure>> {
    let folder = project.out.join("bench-queue");
    fs::create_dir_all(&folder)?;
    let mut figures = Vec::new();
    for subject in &SUBJECTS {
        figures.extend(of_driver(project, &folder, subject, alone)?);
    }
    write_rows(project, "queue", &figures)?;
    Ok(figures)
}

fn of_driver(
    project: &Project,
    folder: &Path,
    subject: &Subject,
    alone: bool,
) -> Result<Vec<Figure>> {
    let manifest = folder.join("manifest.toml");
    let section =
        "[program.queuebench]\nservices = [\"disk\", \"objects\", \"events\", \"monitor\"]\n";
    let text = manifest_for(subject.driver, "", SERVICES) + section;
    fs::write(&manifest, text)?;
    let built = build::build(project, Some(&manifest))?;
    let mut ours = counting(&built.kernel, folder, built.archive);
    let line = exec_word("/boot/testing/queuebench");
    ours.words.extend([line, "panic=off".into()]);
    tool::step("counting what 4 KiB of a disk take");
    let own = measure(&mut ours, folder, subject, subject.lines)?;
    ensure!(
        own.len() == subject.lines,
        "{} figures in place of {}",
        own.len(),
        subject.lines
    );
    let figure = |(name, value): &(String, f64)| {
        let name = format!("{}{name}", subject.prefix);
        Figure::new("queue", &name, *value, None, "instructions")
    };
    if alone {
        return Ok(own.iter().map(figure).collect());
    }
    let [mut theirs, mut fio] = peers(project, folder, subject)?;
    tool::step("counting what Debian's kernel takes");
    let other = measure(&mut theirs, folder, subject, subject.lines)?;
    tool::step("counting what Debian's fio takes");
    let fio = measure(&mut fio, folder, subject, FIO_LINES)?;
    let beside = |row: &(String, f64)| {
        let name = &row.0;
        let peer =
            value_of(&other, name).with_context(|| format!("Debian did not count {name}"))?;
        let figure = figure(row).at_most(peer).beside("Debian", peer);
        // It is told by interrupts, whether ours is or looks itself.
        let its = name
            .rsplit_once(", ")
            .map(|(request, _)| format!("{request}, fio"));
        let its = its.and_then(|its| value_of(&fio, &its));
        Ok(match its {
            Some(value) => figure.beside("fio", value),
            None => figure,
        })
    };
    own.iter().map(beside).collect()
}

/// Debian's kernel with the program, and with `fio`.
fn peers(project: &Project, folder: &Path, subject: &Subject) -> Result<[Machine; 2]> {
    let mut debian = peer::debian(project)?;
    let work = peer(project, folder, subject, &debian, ("work", SCRIPT))?;
    let fio = tool::find("fio");
    debian.take_along(&fio.context("fio is missing: install Debian's package fio")?)?;
    let mut fio = peer(project, folder, subject, &debian, ("fio", FIO_SCRIPT))?;
    fio.memory = FIO_MEMORY.into();
    Ok([work, fio])
}

/// Debian's kernel that runs `script`, in which the program of that name is at hand.
fn peer(
    project: &Project,
    folder: &Path,
    subject: &Subject,
    debian: &peer::Peer,
    (name, script): (&str, &str),
) -> Result<Machine> {
    let program = folder.join(name);
    let mut command = Command::new(tool::need("gcc", "gcc")?);
    command
        .args(["-O2", "-Wall", "-static", "-o"])
        .arg(&program);
    let sources = project.root.join("lab/peers/queue");
    command.arg(sources.join(format!("{name}.c")));
    tool::run(&mut command)?;
    let archive: PathBuf = folder.join(format!("{name}.cpio"));
    let script = script.replace("DEVICE", subject.device);
    let disk = debian.drivers_with(&fs::read(&program)?, "poll_queues=1", &script, END)?;
    fs::write(&archive, disk)?;
    let mut machine = counting(&debian.kernel, folder, archive);
    machine.words = peer_words();
    machine.words.push(subject.word.into());
    Ok(machine)
}

/// Has `machine` do the work on a disk of zeros: names and instructions.
fn measure(
    machine: &mut Machine,
    folder: &Path,
    subject: &Subject,
    lines: usize,
) -> Result<Vec<(String, f64)>> {
    let disk = folder.join("disk.img");
    fs::write(&disk, vec![0; 1 << 20])?;
    attach(machine, subject.driver, disk);
    machine.disk_queues = 2;
    machine.idle_takes_time = true;
    let mut session = Session::start(machine, false)?;
    session.end(LIMIT)?;
    let screen = session.screen();
    let told = screen.lines().filter_map(parse_line);
    let told: Vec<_> = told
        .map(|(name, value)| (name.to_string(), value))
        .collect();
    ensure!(
        told.len() >= lines,
        "{} figures are too few\n{}",
        told.len(),
        session.report()
    );
    Ok(told)
}

fn value_of(rows: &[(String, f64)], name: &str) -> Option<f64> {
    let row = rows.iter().find(|(other, _)| other == name);
    row.map(|(_, value)| *value)
}

/// Name and value of a line.
fn parse_line(text: &str) -> Option<(&str, f64)> {
    let (_, rest) = text.split_once("queuebench instructions \"")?;
    let (name, value) = rest.split_once("\" ")?;
    Some((name, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_a_number() {
        let line = "queuebench instructions \"read of 4 KiB, batch 1, polled\" 1234\r";
        assert_eq!(
            parse_line(line),
            Some(("read of 4 KiB, batch 1, polled", 1234.0))
        );
        assert_eq!(parse_line("queuebench instructions \"x"), None);
    }
}
