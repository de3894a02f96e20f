//! The work `map`: a Linux program in ring 3 writes to a mapping that is shared, and has a private
//! one of another file. It knows what there has to be, and says so; the host makes of it the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use machine::manifests;
use trefoil_gate::build;
use trefoil_gate::project::Project;

/// What it says in the end if it has seen nothing wrong.
pub const RIGHT: &str = "wrong 0, 0";

/// The program, made by the host's compiler.
///
/// # Errors
/// If it cannot be made.
pub fn program(project: &Project, folder: &Path) -> Result<PathBuf> {
    let program = folder.join("mapping");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-static", "-o"]).arg(&program);
    compiler.arg(project.root.join("lab/peers/mapping/mapping.c"));
    let made = compiler.output().context("gcc cannot be started")?;
    let errors = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "gcc failed: {errors}");
    Ok(program)
}

/// What boots by `manifest`, with a personality besides that has the program as its shell.
///
/// # Errors
/// If it cannot be packed.
pub fn archive(project: &Project, manifest: &str, program: &Path) -> Result<Vec<u8>> {
    let manifest = manifests::with_guest(manifest)?;
    let program = fs::read(program)?;
    build::packed_with(project, manifest.as_bytes(), &[("busybox", &program)])
}

/// What the shell does.
pub fn line() -> String {
    "/boot/testing/guest linux '/disk/tree churn'".into()
}

/// Has the host do the same to the files in a folder.
///
/// # Errors
/// If it is not right there.
pub fn work(program: &Path, tree: &Path) -> Result<()> {
    let line = format!("{} churn", tree.display());
    let output = Command::new(program).args(["-c", &line]).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(said.contains(RIGHT), "on the host: {said}");
    Ok(())
}
