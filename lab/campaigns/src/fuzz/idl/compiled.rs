//! What `idlc` wrote, given to the compiler: the crates `interfaces`, `hostile-calls` and `proxies`
//! with the sample in place of the project's own files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use trefoil_gate::project::Project;
use trefoil_gate::{setup, tool};

use super::Written;

/// The compiler, and the crates that generated code uses.
pub(super) struct Compiler {
    rustc: PathBuf,
    root: PathBuf,
    /// What is written, and what comes of it.
    folder: PathBuf,
    /// Where the crates of the system are that `abi` and `isolation` use.
    libraries: PathBuf,
    abi: PathBuf,
    isolation: PathBuf,
}

impl Compiler {
    /// Builds the crates.
    ///
    /// # Errors
    /// If they cannot be built.
    pub(super) fn new(project: &Project) -> Result<Self> {
        let toolchain = setup::toolchain()?;
        let mut command = toolchain.cargo(project);
        command.args(["build", "--quiet", "--package", "isolation"]);
        let output = tool::output(command.arg("--message-format=json"))?;
        let library = |name: &str| -> Result<PathBuf> {
            let mut artifacts = output.lines().filter_map(|line| {
                let message: serde_json::Value = serde_json::from_str(line).ok()?;
                let is_meant = message["target"]["name"] == name;
                let file = message["filenames"].as_array()?.first()?.as_str()?;
                is_meant.then(|| PathBuf::from(file))
            });
            let found = artifacts.next_back();
            found.with_context(|| format!("cargo has built no {name}"))
        };
        let folder = project.out.join("fuzz-idl");
        fs::create_dir_all(&folder)?;
        let (abi, isolation) = (library("abi")?, library("isolation")?);
        Ok(Compiler {
            rustc: toolchain.bin.join("rustc"),
            root: project.root.clone(),
            folder,
            libraries: project.target.join("debug/deps"),
            abi,
            isolation,
        })
    }

    /// Compiles what was written: the proxies down to machine code, since their assertions are
    /// about what the machine is to do.
    ///
    /// # Errors
    /// What the compiler says.
    pub(super) fn check(&self, written: &Written) -> Result<()> {
        let files = [
            ("interfaces.rs", &written.interfaces),
            ("hostile.rs", &written.hostile),
            ("proxies.rs", &written.proxies),
        ];
        for (name, text) in files {
            fs::write(self.folder.join(name), text)?;
        }
        let interfaces = self.folder.join("libinterfaces.rlib");
        let ours = [("interfaces", interfaces.as_path())];
        self.compile("abi/interfaces/src/lib.rs", "interfaces", &[])?;
        self.compile("abi/interfaces/hostile/src/lib.rs", "hostile", &ours)?;
        let both = [ours[0], ("isolation", self.isolation.as_path())];
        self.compile("kernel/proxies/src/lib.rs", "proxies", &both)
    }

    fn compile(&self, file: &str, name: &str, uses: &[(&str, &Path)]) -> Result<()> {
        let emitted = match name {
            // The proxies take code of it, too.
            "interfaces" => "link",
            "proxies" => "obj",
            _ => "metadata",
        };
        let mut command = std::process::Command::new(&self.rustc);
        command
            .args(["--edition=2024", "--crate-type=lib", "--crate-name", name])
            .args(["--cap-lints=allow", "-Cmetadata=sample", "-Cpanic=abort"])
            .args(["--emit", emitted])
            .arg("--out-dir")
            .arg(&self.folder)
            .arg(self.root.join(file))
            .arg(format!("-Ldependency={}", self.libraries.display()))
            .arg(format!("--extern=abi={}", self.abi.display()))
            .env("OUT_DIR", &self.folder);
        for (name, path) in uses {
            command.arg(format!("--extern={name}={}", path.display()));
        }
        let output = command.output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let errors: String = errors.chars().take(2000).collect();
            bail!("{file} does not compile:\n{errors}");
        }
        Ok(())
    }
}
