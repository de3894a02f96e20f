//! The compiler as it is called for the bare machine: its flags, its environment, and what kernel
//! and domains must agree on.

use std::fs;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::packages::{self, Packages};
use crate::project::Project;
use crate::setup::{self, TARGET, Toolchain};
use crate::{guard, keys, signer, tool, trust};

/// What decides how values are laid out, besides compiler and target; part of the ABI fingerprint.
const PROFILE: &str = "opt-level=3 panic=abort codegen-units=1";
/// What is needed to compile for the bare machine.
pub(super) struct Compiler<'a> {
    project: &'a Project,
    toolchain: Toolchain,
    pub(super) packages: Packages,
    pub(super) model: idlc::Model,
    pub(super) fingerprint: [u8; 32],
    /// In hexadecimal.
    public_key: String,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(project: &'a Project) -> Result<Self> {
        let toolchain = setup::toolchain()?;
        let packages = packages::ours(project, &toolchain)?;
        let model = idlc::load(&project.root).map_err(|report| anyhow::anyhow!("{report}"))?;
        let fingerprint = fingerprint(project, &toolchain, &model)?;
        let public_key = signer::public_key(project)?;
        Ok(Compiler {
            project,
            toolchain,
            packages,
            model,
            fingerprint,
            public_key,
        })
    }

    pub(super) fn cargo(&self, arguments: &[&str]) -> Result<()> {
        let mut command = compiler(self.project, &self.toolchain, &self.packages)?;
        command.env("TREFOIL_FINGERPRINT", keys::hex(&self.fingerprint));
        command.env("TREFOIL_PUBLIC_KEY", &self.public_key);
        tool::run(command.args(arguments))
    }
}

/// A cargo command that builds for the bare machine; what must be safe is compiled under watch.
///
/// # Errors
/// If the watch cannot be set up.
pub fn compiler(project: &Project, toolchain: &Toolchain, packages: &Packages) -> Result<Command> {
    let mut command = toolchain.cargo(project);
    for_target(project, toolchain, &mut command).arg("build");
    guard::renew(project, packages)?;
    guard::set(project, packages, &mut command)?;
    command.args(["--release", "--target", TARGET]);
    if !std::io::stderr().is_terminal() {
        command.arg("--quiet");
    }
    command.args([
        "-Zbuild-std=core,alloc,compiler_builtins",
        "-Zbuild-std-features=compiler-builtins-mem",
    ]);
    Ok(command)
}

/// Flags of the compiler, as cargo wants them. Panics name their places without the folders of the
/// machine that built them; the debug information keeps whole paths: debuggers and `cargo xtask
/// tcb` look for the files. And the linker may turn calls and addresses that go through the table
/// of global offsets into direct ones; else nearly all calls between crates would go through it,
/// and images would carry it with its relocations.
fn flags(project: &Project, toolchain: &Toolchain) -> String {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let places = [
        (Some(format!("{}/", project.root.display())), ""),
        (
            toolchain
                .bin
                .parent()
                .map(|folder| folder.display().to_string()),
            "rust",
        ),
        (
            home.map(|home| home.join("registry/src").display().to_string()),
            "registry",
        ),
    ];
    let mut flags = vec![
        String::from("--remap-path-scope=macro"),
        String::from("-Zrelax-elf-relocations=yes"),
    ];
    for (from, to) in places {
        flags.extend(from.map(|from| format!("--remap-path-prefix={from}={to}")));
    }
    flags.join("\x1f")
}

/// Sets what every cargo command for the bare machine needs in its environment.
pub fn for_target<'a>(
    project: &Project,
    toolchain: &Toolchain,
    command: &'a mut Command,
) -> &'a mut Command {
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", project.out.join("cargo"))
        .env("CARGO_ENCODED_RUSTFLAGS", flags(project, toolchain));
    if let Some(linker) = &toolchain.linker {
        command.env("CARGO_TARGET_X86_64_UNKNOWN_NONE_LINKER", linker);
    }
    command
}

/// The folder that cargo puts kernel and domains into.
pub fn products(project: &Project) -> PathBuf {
    project.out.join("cargo").join(TARGET).join("release")
}

/// The ABI fingerprint of the sources as they are.
///
/// # Errors
/// If they cannot be read, or an interface breaks a rule.
pub fn fingerprint_now(project: &Project) -> Result<[u8; 32]> {
    let model = idlc::load(&project.root).map_err(|report| anyhow::anyhow!("{report}"))?;
    fingerprint(project, &setup::toolchain()?, &model)
}

/// What kernel and domains must agree on: interfaces, shared vocabulary, compiler, target, flags.
fn fingerprint(project: &Project, toolchain: &Toolchain, model: &idlc::Model) -> Result<[u8; 32]> {
    let mut shared = Vec::new();
    for file in trust::rust_files(&project.root.join("abi/base/src"))? {
        shared.extend(fs::read(file)?);
    }
    Ok(model.fingerprint(&[
        &shared,
        toolchain.version.as_bytes(),
        TARGET.as_bytes(),
        PROFILE.as_bytes(),
    ]))
}
