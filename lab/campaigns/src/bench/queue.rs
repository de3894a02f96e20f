//! `bench queue`: what 4 KiB read from a virtio disk and written to it take a domain, through block
//! shadow and driver: by a block queue, polled and by event, in batches of 1 and of 32, and by the
//! calls of `Block` that wait.
//!
//! The machine has one processor, whose clock counts the guest's instructions (`-icount shift=0`),
//! and a disk of zeros. What is counted is said in `domains/testing/queuebench`.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::figure::Figure;
use super::side::{counting, write_rows};
use machine::qemu::exec_word;
use machine::session::Session;
use trefoil_gate::build;
use trefoil_gate::project::Project;
use trefoil_gate::tool;

use crate::fuzz::queues::manifest_for;

const LIMIT: Duration = Duration::from_secs(180);
/// What is told: for two verbs by calls, and two ways with two sizes of batches.
const LINES: usize = 10;
/// More than the manifest of the gate has.
const SERVICES: &str =
    "disk = \"block\"\nobjects = \"kernel.objects\"\nevents = \"kernel.events\"\n";

/// Measures, and writes a list of the rows.
///
/// # Errors
/// If the system does not do the work.
pub fn queue(project: &Project) -> Result<Vec<Figure>> {
    let folder = project.out.join("bench-queue");
    fs::create_dir_all(&folder)?;
    let manifest = folder.join("manifest.toml");
    let section =
        "[program.queuebench]\nservices = [\"disk\", \"objects\", \"events\", \"monitor\"]\n";
    fs::write(&manifest, manifest_for("", SERVICES) + section)?;
    let built = build::build(project, Some(&manifest))?;
    let disk = folder.join("disk.img");
    fs::write(&disk, vec![0; 1 << 20])?;
    let mut machine = counting(&built.kernel, &folder, built.archive);
    machine.disk = Some(disk);
    let line = exec_word("/boot/testing/queuebench");
    machine.words.extend([line, "panic=off".into()]);
    tool::step("counting what 4 KiB of a disk take");
    let mut session = Session::start(&machine, false)?;
    session.end(LIMIT)?;
    let screen = session.screen();
    let told: Vec<_> = screen.lines().filter_map(parse_line).collect();
    ensure!(
        told.len() == LINES,
        "{} figures in place of {LINES}\n{}",
        told.len(),
        session.report()
    );
    let figure =
        |(name, value): &(&str, f64)| Figure::new("queue", name, *value, None, "instructions");
    let figures: Vec<Figure> = told.iter().map(figure).collect();
    write_rows(project, "queue", &figures)?;
    Ok(figures)
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
