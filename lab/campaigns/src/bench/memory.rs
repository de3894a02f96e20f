//! `bench memory`: reads and writes of a memory object by a domain, beside `pread` and `pwrite` of
//! a file of tmpfs on Debian's kernel.
//!
//! Both systems boot in the same machine with one processor, whose clock counts the guest's
//! instructions (`-icount shift=0`), and do the work of `lib/testing/memorywork`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use memorywork::{LINES, parse_line};

use super::figure::Figure;
use super::side::{counting, peer_words, write_rows};
use crate::peer::{self, Peer};
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
    let archive = peer_archive(project, &debian, &folder)?;
    let mut theirs = counting(&debian.kernel, &folder, archive);
    theirs.words = peer_words();
    tool::step("counting what memory objects take");
    let own = measure(&ours)?;
    tool::step("counting what Debian's kernel takes");
    let other = measure(&theirs)?;
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

/// The manifest in which the program is handed memory objects.
fn with_objects(text: &str) -> Result<String> {
    ensure!(
        text.contains(SECTION),
        "the default manifest has no {SECTION:?}"
    );
    let text = text.replacen(
        SECTION,
        &format!("{SECTION}objects = \"kernel.objects\"\n"),
        1,
    );
    Ok(text + "\n[program.memorybench]\nservices = [\"objects\"]\n")
}

/// The peer's initial disk with the program that does the work.
fn peer_archive(project: &Project, peer: &Peer, folder: &Path) -> Result<PathBuf> {
    let target = project.out.join("cargo-peer");
    let mut command = setup::toolchain()?.cargo(project);
    command.args(["build", "--quiet", "--release", "--package"]);
    command.args(["linux-memory", "--target", TARGET]);
    command.env("CARGO_TARGET_DIR", &target);
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    tool::run(&mut command)?;
    let program = fs::read(target.join(TARGET).join("release/linux-memory"))?;
    let archive = folder.join("peer.cpio");
    fs::write(&archive, peer.script_with(&program, SCRIPT, END)?)?;
    Ok(archive)
}

/// Has `machine` do the work: name and instructions.
fn measure(machine: &Machine) -> Result<Vec<(String, f64)>> {
    let mut session = Session::start(machine, false)?;
    session.end(LIMIT)?;
    let screen = session.screen();
    let lines = screen.lines().filter_map(parse_line);
    let values: Vec<_> = lines
        .map(|(name, value)| (name.to_string(), value))
        .collect();
    ensure!(
        values.len() == LINES,
        "{} figures in place of {LINES}\n{}",
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
            text.contains("[services]\nobjects = \"kernel.objects\"\n"),
            "{text}"
        );
        assert!(
            text.ends_with("[program.memorybench]\nservices = [\"objects\"]\n"),
            "{text}"
        );
        assert!(with_objects("[boot]\n").is_err());
    }
}
