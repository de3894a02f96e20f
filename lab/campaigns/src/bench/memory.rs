//! `bench memory`: what memory objects and address spaces take a domain, beside the nearest that
//! Debian's kernel has: `pread` and `pwrite` of a file of tmpfs, `mmap`, `fork`, and two `mprotect`
//! for a clean of what is mapped twice.
//!
//! Both systems boot in the same machine with one processor, whose clock counts the guest's
//! instructions (`-icount shift=0`), and do the work of `lib/testing/memorywork` and, with spaces,
//! that of `domains/testing/memorybench` and `lab/peers/spaces/work.c`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use memorywork::{LINES, LINES_OF_SPACES, parse_line};

use super::figure::Figure;
use super::side::{counting, peer_words, write_rows};
use crate::peer;
use machine::qemu::{Machine, exec_word};
use machine::session::Session;
use trefoil_gate::project::Project;
use trefoil_gate::{build, setup, tool};

const LIMIT: Duration = Duration::from_secs(180);
/// What the peer prints when it is done.
const END: &str = "memorywork-ended";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The peer's lines.
const SCRIPT: &str = "$bb mkdir /t && $bb mount -t tmpfs tmpfs /t && /program /t/file";
/// Where the default manifest gets the service that the program wants.
const SECTION: &str = "[services]\n";

/// Measures, and writes a list of the rows.
///
/// # Errors
/// If one of the systems does not do the work.
pub fn memory(project: &Project) -> Result<Vec<Figure>> {
    let folder = project.out.join("bench-memory");
    fs::create_dir_all(&folder)?;
    let manifest = folder.join("manifest.toml");
    let text = fs::read_to_string(project.root.join("images/default.toml"))?;
    fs::write(&manifest, with_objects(&text)?)?;
    let built = build::build(project, Some(&manifest))?;
    let mut ours = counting(&built.kernel, &folder, built.archive);
    let line = exec_word("/boot/testing/memorybench");
    ours.words.extend([line, "panic=off".into()]);
    let debian = peer::debian(project)?;
    tool::step("counting what memory objects and address spaces take");
    let own = measure(&ours, LINES + LINES_OF_SPACES)?;
    tool::step("counting what Debian's kernel takes");
    let mut other = Vec::new();
    for (program, lines) in [
        (files_program(project)?, LINES),
        (spaces_program(project, &folder)?, LINES_OF_SPACES),
    ] {
        let archive = folder.join("peer.cpio");
        fs::write(&archive, debian.script_with(&program, SCRIPT, END)?)?;
        let mut theirs = counting(&debian.kernel, &folder, archive);
        theirs.words = peer_words();
        other.extend(measure(&theirs, lines)?);
    }
    let beside = |(name, value): &(String, f64)| {
        let peer = other.iter().find(|(other, _)| other == name);
        let (_, peer) = peer.with_context(|| format!("Debian did not count {name}"))?;
        let figure = Figure::new("memory", name, *value, None, "instructions");
        Ok(figure.at_most(*peer).beside("Debian", *peer))
    };
    let figures = own.iter().map(beside).collect::<Result<Vec<_>>>()?;
    write_rows(project, "memory", &figures)?;
    Ok(figures)
}

/// The manifest in which the program is handed memory objects and address spaces.
fn with_objects(text: &str) -> Result<String> {
    ensure!(
        text.contains(SECTION),
        "the default manifest has no {SECTION:?}"
    );
    let text = text.replacen(
        SECTION,
        &format!("{SECTION}objects = \"kernel.objects\"\nspaces = \"kernel.spaces\"\n"),
        1,
    );
    Ok(text + "\n[program.memorybench]\nservices = [\"objects\", \"spaces\"]\n")
}

/// The peer's program for files.
fn files_program(project: &Project) -> Result<Vec<u8>> {
    let target = project.out.join("cargo-peer");
    let mut command = setup::toolchain()?.cargo(project);
    command.args(["build", "--quiet", "--release", "--package"]);
    command.args(["linux-memory", "--target", TARGET]);
    command.env("CARGO_TARGET_DIR", &target);
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    tool::run(&mut command)?;
    Ok(fs::read(target.join(TARGET).join("release/linux-memory"))?)
}

/// The peer's program for spaces.
fn spaces_program(project: &Project, folder: &Path) -> Result<Vec<u8>> {
    let program: PathBuf = folder.join("spaces");
    let mut command = Command::new(tool::need("gcc", "gcc")?);
    command
        .args(["-O2", "-Wall", "-static", "-o"])
        .arg(&program);
    command.arg(project.root.join("lab/peers/spaces/work.c"));
    tool::run(&mut command)?;
    Ok(fs::read(program)?)
}

/// Has `machine` do the work, which tells so many `lines`: name and instructions.
fn measure(machine: &Machine, lines: usize) -> Result<Vec<(String, f64)>> {
    let mut session = Session::start(machine, false)?;
    session.end(LIMIT)?;
    let screen = session.screen();
    let told = screen.lines().filter_map(parse_line);
    let values: Vec<_> = told
        .map(|(name, value)| (name.to_string(), value))
        .collect();
    ensure!(
        values.len() == lines,
        "{} figures in place of {lines}\n{}",
        values.len(),
        session.report()
    );
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_gets_memory_objects() {
        let text = "[services]\nmonitor = \"kernel.monitor\"\n[program.domains]\nservices = []\n";
        let text = with_objects(text).expect("it has the section");
        assert!(
            text.contains("[services]\nobjects = \"kernel.objects\"\nspaces = \"kernel.spaces\"\n"),
            "{text}"
        );
        assert!(
            text.ends_with("[program.memorybench]\nservices = [\"objects\", \"spaces\"]\n"),
            "{text}"
        );
        assert!(with_objects("[boot]\n").is_err());
    }
}
