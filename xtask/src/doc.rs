//! `cargo xtask doc` and `cargo xtask idlc`: the manuals, and the interface compiler, with the
//! project's own toolchain, whichever one cargo would take by itself.

use std::fs;

use anyhow::{Context, Result};

use trefoil_gate::project::Project;
use trefoil_gate::{setup, tool};

/// The crates whose documentation authors of domains and of the kernel read.
const CRATES: [&str; 4] = ["abi", "domain-rt", "interfaces", "isolation"];

/// Writes the manual of all interfaces, as a page, and the documentation of the crates beside it.
///
/// # Errors
/// If an interface breaks a rule, or a tool fails.
pub fn doc(project: &Project) -> Result<()> {
    let toolchain = setup::toolchain()?;
    tool::step("documentation of the crates");
    let mut command = toolchain.cargo(project);
    command.args(["doc", "--quiet", "--no-deps"]);
    for name in CRATES {
        command.args(["--package", name]);
    }
    tool::run(&mut command)?;
    tool::step("manual of the interfaces");
    let model = idlc::load(&project.root).map_err(|report| anyhow::anyhow!("{report}"))?;
    let folder = project.target.join("doc");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let manual = folder.join("manual.md");
    fs::write(&manual, idlc::emit_manual(&model))?;
    let mut command = toolchain.rustdoc();
    command.arg(&manual).arg("--output").arg(&folder);
    tool::run(command.arg("--edition=2024"))?;
    for page in [
        "manual",
        "domain_rt/index",
        "interfaces/index",
        "isolation/index",
    ] {
        println!("{}", folder.join(page).with_extension("html").display());
    }
    Ok(())
}

/// Runs the interface compiler with `arguments`; its exit status.
///
/// # Errors
/// If it cannot be built.
pub fn idlc(project: &Project, arguments: &[String]) -> Result<i32> {
    let mut command = setup::toolchain()?.cargo(project);
    command.args(["run", "--quiet", "--package", "idlc", "--"]);
    let status = command.args(arguments).status()?;
    Ok(status.code().unwrap_or(1))
}
