//! Among `bench files`: 4 KiB of a file that is in memory, read and written, and small files made,
//! read and removed, and others read from the disk, by a static program of Linux
//! (`lab/peers/cached/work.c`), on the personality `linux` and on Debian's kernel; in guest
//! instructions.

use std::fs;
use std::process::Command;

use anyhow::Result;
use machine::manifests;
use machine::qemu::{Machine, exec_word};
use trefoil_gate::project::Project;
use trefoil_gate::{build, tool};

use super::figure::Figure;
use super::files::{self, Work};
use super::side::{counting, peer_words};
use crate::peer;

const WORK: Work = Work {
    option: "-c /disk",
    made: &files::OPTIONS,
    kind: "ext2",
    phases: 7,
    small: 1000,
    is_counted: true,
};

/// Measures.
///
/// # Errors
/// If one of the systems does not do the work.
pub fn cached(project: &Project) -> Result<Vec<Figure>> {
    let folder = project.out.join("bench-files");
    fs::create_dir_all(&folder)?;
    let file = folder.join("cached");
    let mut command = Command::new(tool::need("gcc", "gcc")?);
    command.args(["-O2", "-Wall", "-static", "-o"]).arg(&file);
    command.arg(project.root.join("lab/peers/cached/work.c"));
    tool::run(&mut command)?;
    let program = fs::read(file)?;

    let built = build::build(project, None)?;
    let usual = fs::read_to_string(project.root.join("images/default.toml"))?;
    let manifest = manifests::with_guest(&usual)?;
    let packed = build::packed_with(project, manifest.as_bytes(), &[("busybox", &program)])?;
    let archive = folder.join("cached.cpio");
    fs::write(&archive, packed)?;
    let mut ours = counting(&built.kernel, &folder, archive);
    let line = "/boot/testing/guest linux /disk";
    ours.words.push(exec_word(line));

    let debian = peer::debian(project)?;
    let archive = folder.join("peer-cached.cpio");
    let packed = debian.disk_with(&program, WORK.option, WORK.kind, files::END)?;
    fs::write(&archive, packed)?;
    let mut theirs = Machine {
        words: peer_words(),
        ..counting(&debian.kernel, &folder, archive)
    };
    files::compare(&WORK, &mut ours, &mut theirs, &folder, 1)
}
