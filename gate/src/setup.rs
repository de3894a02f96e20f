//! `cargo xtask setup`: finds or installs what is needed to build and run the system.
//!
//! The compiler comes from rustup, or else from Debian's packages of the same version. When all is
//! there, nothing is executed but the compiler's version check.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::{confine, tool};

/// The compiler's version: the images of one system must all be built by the same.
pub const VERSION: &str = "1.96";
/// What the system is built for.
pub const TARGET: &str = "x86_64-unknown-none";

const COMPILER_PACKAGES: [&str; 4] = ["cargo-web", "rustc-web", "rust-web-src", "lld"];
const COMPONENTS: &str = "rust-src,rustfmt,clippy";

/// A compiler that can build the system.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The folder with `cargo` and `rustc`.
    pub bin: PathBuf,
    /// What `rustc -V` prints.
    pub version: String,
    /// A linker to use in place of the `rust-lld` that rustup's toolchains bring along.
    pub linker: Option<PathBuf>,
}

impl Toolchain {
    /// A command that runs this toolchain's cargo for the host, at the top of the sources, and is
    /// not misled by the cargo that runs us. Neither it nor what it starts finds the signing key.
    pub fn cargo(&self, project: &Project) -> Command {
        self.prepared(project, confine::command(project, &self.bin.join("cargo")))
    }

    /// The same for what needs the signing key, as tests of images do.
    pub fn cargo_with_key(&self, project: &Project) -> Command {
        self.prepared(project, Command::new(self.bin.join("cargo")))
    }

    fn prepared(&self, project: &Project, mut command: Command) -> Command {
        let inherited = |name: &OsString| {
            let name = name.to_string_lossy();
            name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST")
                || name.starts_with("RUSTUP_TOOLCHAIN")
                // The build script of a linked package takes its bounds from them.
                || name.starts_with("SMOLTCP_")
        };
        for (name, _) in env::vars_os().filter(|(name, _)| inherited(name)) {
            command.env_remove(name);
        }
        for name in [
            "CARGO",
            "LD_LIBRARY_PATH",
            "RUSTC",
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC_WRAPPER",
        ] {
            command.env_remove(name);
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = [self.bin.clone()]
            .into_iter()
            .chain(env::split_paths(&path));
        let path = env::join_paths(folders).unwrap_or(path);
        command
            .env("PATH", path)
            .env("CARGO_TARGET_DIR", &project.target)
            .current_dir(&project.root);
        command.env("CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS", "fallback");
        command
    }

    /// A command that runs its rustdoc.
    pub fn rustdoc(&self) -> Command {
        Command::new(self.bin.join("rustdoc"))
    }

    /// Whether the toolchain has cargo's subcommand `name`, such as `fmt`.
    pub fn has(&self, name: &str) -> bool {
        tool::is_program(&self.bin.join(format!("cargo-{name}")))
    }
}

/// The command: finds or installs everything.
///
/// # Errors
/// If something is missing and cannot be installed; the message has the command to run.
pub fn setup() -> Result<()> {
    let toolchain = toolchain()?;
    machine()?;
    println!(
        "compiler: {} in {}",
        toolchain.version,
        toolchain.bin.display()
    );
    println!(
        "machine:  {}",
        tool::need("qemu-system-x86_64", "qemu-system-x86")?.display()
    );
    // The system is built, booted and tested without it.
    match debugger() {
        Ok(gdb) => println!("debugger: {}", gdb.display()),
        Err(error) => eprintln!("debugger: none; {error:#}"),
    }
    match busybox() {
        Ok(busybox) => println!("busybox:  {}", busybox.display()),
        Err(error) => eprintln!("busybox:  none; {error:#}"),
    }
    Ok(())
}

/// The static busybox that `--static` runs, installed if need be.
///
/// # Errors
/// If there is none and it cannot be installed; the message has the command to run.
pub fn busybox() -> Result<PathBuf> {
    if tool::find("busybox").is_none() {
        apt_install(&["busybox-static"])?;
    }
    tool::need("busybox", "busybox-static")
}

/// gdb, installed if need be.
///
/// # Errors
/// If there is none and it cannot be installed; the message has the command to run.
pub fn debugger() -> Result<PathBuf> {
    if tool::find("gdb").is_none() {
        apt_install(&["gdb"])?;
    }
    tool::need("gdb", "gdb")
}

/// The compiler, installed if need be.
///
/// # Errors
/// If there is none and none can be installed.
pub fn toolchain() -> Result<Toolchain> {
    if let Some(found) = find() {
        return Ok(found);
    }
    if let Some(found) = with_rustup() {
        return Ok(found);
    }
    apt_install(&COMPILER_PACKAGES)?;
    find().with_context(|| format!("Rust {VERSION} is still missing after its installation"))
}

/// QEMU and the file system tools, installed if need be.
///
/// # Errors
/// If something is missing and cannot be installed.
pub fn machine() -> Result<()> {
    let programs = [
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("mke2fs", "e2fsprogs"),
    ];
    let missing: Vec<_> = programs
        .iter()
        .filter(|(name, _)| tool::find(name).is_none())
        .map(|(_, package)| *package)
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => apt_install(&missing),
    }
}

fn find() -> Option<Toolchain> {
    rustup_folders()
        .into_iter()
        .chain(path_folders())
        .find_map(|bin| examine(&bin))
}

/// The `bin` folders of rustup's toolchains that may be the right ones, best first.
fn rustup_folders() -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let rustup = env::var_os("RUSTUP_HOME").map_or(home.join(".rustup"), PathBuf::from);
    let entries = rustup
        .join("toolchains")
        .read_dir()
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| may_fit(path))
        .collect();
    names.sort();
    names.into_iter().map(|path| path.join("bin")).collect()
}

fn may_fit(toolchain: &Path) -> bool {
    let name = toolchain.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(VERSION) || name.starts_with("stable")
}

fn path_folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/bin")])
        .collect()
}

/// The toolchain in the folder `bin` if it is of our version and complete.
fn examine(bin: &Path) -> Option<Toolchain> {
    let rustc = bin.join("rustc");
    // rustup's stand-ins for rustc and cargo are links to rustup; they are no toolchain.
    let is_proxy = rustc
        .canonicalize()
        .is_ok_and(|file| file.ends_with("rustup"));
    let same_file = bin.join("rustup").exists();
    if is_proxy || same_file || !tool::is_program(&rustc) || !tool::is_program(&bin.join("cargo")) {
        return None;
    }
    let version = tool::output(Command::new(&rustc).arg("-V")).ok()?;
    if !version.starts_with(&format!("rustc {VERSION}.")) {
        return None;
    }
    let sysroot = bin.parent()?;
    let rustlib = sysroot.join("lib/rustlib");
    if !rustlib.join("src/rust/library/core/src/lib.rs").exists() {
        return None;
    }
    let own = rustlib.join("x86_64-unknown-linux-gnu/bin/rust-lld");
    let linker = if tool::is_program(&own) {
        None
    } else {
        Some(tool::find("ld.lld")?)
    };
    Some(Toolchain {
        bin: bin.to_path_buf(),
        version: version.trim().to_string(),
        linker,
    })
}

fn with_rustup() -> Option<Toolchain> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let rustup = tool::find("rustup")
        .or(Some(home.join(".cargo/bin/rustup")).filter(|file| tool::is_program(file)))?;
    tool::step(format_args!("installing Rust {VERSION} with rustup"));
    let mut command = Command::new(rustup);
    command.args([
        "toolchain",
        "install",
        VERSION,
        "--profile",
        "minimal",
        "--component",
        COMPONENTS,
    ]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let installed = command.status().is_ok_and(|status| status.success());
    if !installed {
        eprintln!("    rustup cannot install it; trying Debian's packages");
    }
    find()
}

/// Installs Debian packages, as root or with sudo.
///
/// # Errors
/// If that is not possible; the message has the command to run.
pub fn apt_install(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    let advice =
        format!("please run first, as root:\n    apt-get update && apt-get install -y {list}");
    let Some(apt) = tool::find("apt-get") else {
        bail!("missing: {list}\nThis is no Debian system; {advice}");
    };
    let Some(prefix) = root_prefix() else {
        bail!("missing: {list}\nNeither root nor sudo is at hand; {advice}");
    };
    tool::step(format_args!("installing {list} with apt-get"));
    let apt = apt.display().to_string();
    let run = |arguments: &[&str]| {
        let words: Vec<&str> = prefix
            .iter()
            .copied()
            .chain([apt.as_str()])
            .chain(arguments.iter().copied())
            .collect();
        tool::run(
            Command::new(words[0])
                .args(&words[1..])
                .env("DEBIAN_FRONTEND", "noninteractive")
                .stdout(Stdio::null()),
        )
    };
    let install = [
        &["install", "-q", "-y", "--no-install-recommends"],
        packages,
    ]
    .concat();
    // The lists of packages may be old or missing; a second try with new ones costs little.
    if run(&install).is_err() {
        run(&["update", "-q"])
            .and_then(|()| run(&install))
            .with_context(|| advice)?;
    }
    Ok(())
}

/// What to put before a command that needs root; `None` if we cannot become root.
fn root_prefix() -> Option<&'static [&'static str]> {
    let user = tool::output(Command::new("id").arg("-u")).ok()?;
    match user.trim() {
        "0" => Some(&[]),
        _ => tool::find("sudo").map(|_| &["sudo"][..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_toolchains_of_our_version_are_looked_at() {
        assert!(may_fit(Path::new("/x/1.96-x86_64-unknown-linux-gnu")));
        assert!(may_fit(Path::new("/x/stable-x86_64-unknown-linux-gnu")));
        assert!(!may_fit(Path::new("/x/nightly-x86_64-unknown-linux-gnu")));
    }

    #[test]
    fn a_folder_without_a_compiler_is_no_toolchain() {
        assert!(examine(Path::new("/nonexistent/bin")).is_none());
    }
}
