//! `cargo xtask build`: the kernel, the domain images, and the archive that the kernel gets at
//! boot.
//!
//! 1. The manifests and sources of the domains and of the libraries they link are searched for what
//!    the compiler lets through ([`crate::cargo_toml`], [`crate::trust`]).
//! 2. The kernel and all domains are compiled for the bare machine, `core` and `alloc` included;
//!    what must be safe under watch ([`crate::guard`]).
//! 3. Each domain's ELF file gets its header (name, ABI fingerprint, ports). A process of its own
//!    signs them ([`crate::signer`]): none of the others can read the key ([`crate::confine`]).
//! 4. Images and manifest go into the archive.
//!
//! If no source has changed since the last build, nothing of this is done, and cargo is not called.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

use abi::image::{PORT_OFFER, PORT_OPTIONAL, Port};
use anyhow::{Context, Result, bail};

use crate::archive::Archive;
use crate::packages::{self, Domain, Package, Packages};
use crate::project::Project;
use crate::setup::{self, TARGET, Toolchain};
use crate::{cargo_toml, elf, glue, guard, keys, rules, signer, stamp, tool, trust, wiring};

/// What decides how values are laid out, besides compiler and target; part of the ABI fingerprint.
const PROFILE: &str = "opt-level=3 panic=abort codegen-units=1";
/// Folders and files whose change makes a new build necessary.
const SOURCES: [&str; 10] = [
    "abi",
    "runtime",
    "kernel",
    "lab/faults",
    "domains",
    "programs",
    "lib",
    "gate/src",
    "Cargo.toml",
    "Cargo.lock",
];

/// What can be booted.
#[derive(Clone, Debug)]
pub struct Built {
    /// The kernel.
    pub kernel: PathBuf,
    /// The archive of images with the manifest.
    pub archive: PathBuf,
}

/// Builds what has changed. `manifest` replaces `images/default.toml`.
///
/// # Errors
/// If something is missing, does not compile, or breaks a rule for domain code.
pub fn build(project: &Project, manifest: Option<&Path>) -> Result<Built> {
    let stamp = project.out.join("stamp");
    let now = || {
        format!(
            "{:016x}\n",
            stamp::of(&SOURCES.map(|name| project.root.join(name)))
        )
    };
    let before = now();
    let is_built = project.kernel().exists() && project.images().exists();
    if !is_built || fs::read_to_string(&stamp).unwrap_or_default() != before {
        let lock = stamp::of(&[project.root.join("Cargo.lock")]);
        compile_all(project)?;
        // Cargo may have completed its lock file; any other change meanwhile calls for another
        // build.
        let lock_changed = stamp::of(&[project.root.join("Cargo.lock")]) != lock;
        fs::write(&stamp, if lock_changed { now() } else { before })?;
    }
    let archive = pack(project, manifest)?;
    Ok(Built {
        kernel: project.kernel(),
        archive,
    })
}

/// Builds what has changed, with the kernel that has its own tests and benchmarks in it.
///
/// # Errors
/// As [`build`].
pub fn build_for_tests(project: &Project) -> Result<Built> {
    let built = build(project, None)?;
    let kernel = project.testing_kernel();
    let mark = project.out.join("stamp-testing");
    let wanted = fs::read_to_string(project.out.join("stamp"))?;
    if !kernel.exists() || fs::read_to_string(&mark).unwrap_or_default() != wanted {
        let compiler = Compiler::new(project)?;
        tool::timed("building the kernel with its tests", || {
            compiler.cargo(&["--package", "image", "--features", "testing"])
        })?;
        fs::copy(products(project).join("trefoil"), &kernel).context("no kernel was built")?;
        fs::write(&mark, wanted)?;
    }
    Ok(Built { kernel, ..built })
}

/// What is needed to compile for the bare machine.
struct Compiler<'a> {
    project: &'a Project,
    toolchain: Toolchain,
    packages: Packages,
    model: idlc::Model,
    fingerprint: [u8; 32],
    /// In hexadecimal.
    public_key: String,
}

impl<'a> Compiler<'a> {
    fn new(project: &'a Project) -> Result<Self> {
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

    fn cargo(&self, arguments: &[&str]) -> Result<()> {
        let mut command = compiler(self.project, &self.toolchain, &self.packages)?;
        command.env("TREFOIL_FINGERPRINT", keys::hex(&self.fingerprint));
        command.env("TREFOIL_PUBLIC_KEY", &self.public_key);
        tool::run(command.args(arguments))
    }
}

fn compile_all(project: &Project) -> Result<()> {
    let compiler = Compiler::new(project)?;
    let packages = &compiler.packages;
    let domains: Vec<_> = packages.domains().collect();
    // What is signed as a domain must be where the rules for domains are enforced.
    let stray = domains
        .iter()
        .find(|(package, _)| rules::zone(project, package) != rules::Zone::Domain);
    if let Some((package, domain)) = stray {
        bail!(
            "{}: the image `{}` is declared outside of domains/; nothing was signed",
            project.relative(&package.folder).display(),
            domain.image
        );
    }
    examine(project, packages)?;
    glue::write(project, &project.out.join("glue"), &domains)?;
    tool::timed("building the kernel", || {
        compiler.cargo(&["--package", "image"])
    })?;
    // At once: a domain's image stands in the same folder.
    fs::copy(products(project).join("trefoil"), project.kernel())
        .context("the kernel was not built")?;
    let glue = project.out.join("glue/Cargo.toml").display().to_string();
    tool::timed(&format!("building {} domains", domains.len()), || {
        if domains.is_empty() {
            Ok(())
        } else {
            compiler.cargo(&["--manifest-path", &glue, "--workspace"])
        }
    })?;
    sign_all(project, &domains, &compiler.model, &compiler.fingerprint)
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

/// What must not be in domains and in the libraries that they link, as far as their manifests and
/// sources show it before anything is compiled.
///
/// # Errors
/// If a file cannot be read.
pub fn breaches(project: &Project, packages: &Packages) -> Result<Vec<trust::Breach>> {
    let mut found = rules::clashes(packages);
    for package in packages
        .list
        .iter()
        .filter(|package| rules::zone(project, package).is_safe())
    {
        found.extend(cargo_toml::package(package)?);
        found.extend(trust::package(package)?);
        found.extend(rules::dependencies(project, package));
    }
    Ok(found)
}

/// Refuses code that must not be in a domain or in a library that domains link.
fn examine(project: &Project, packages: &Packages) -> Result<()> {
    let breaches = breaches(project, packages)?;
    if breaches.is_empty() {
        return Ok(());
    }
    for breach in &breaches {
        eprintln!(
            "{}:{}: {}",
            project.relative(&breach.file).display(),
            breach.line,
            breach.text
        );
    }
    bail!(
        "{} breaches of the rules for domain code; nothing was signed",
        breaches.len()
    )
}

/// Finishes all images and has them signed.
fn sign_all(
    project: &Project,
    domains: &[(&Package, &Domain)],
    model: &idlc::Model,
    fingerprint: &[u8; 32],
) -> Result<()> {
    let (images, finished) = (project.images(), project.out.join("unsigned"));
    for folder in [&images, &finished] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
    }
    for (_, domain) in domains {
        let file = fs::read(products(project).join(&domain.image))?;
        let elf = elf::stripped(&file).with_context(|| domain.image.clone())?;
        let mut names = vec![(&domain.image, domain.path.clone())];
        let another = domain.update.iter();
        names.extend(another.map(|name| (name, format!("boot/updates/{name}"))));
        for (name, path) in names {
            let image = unsigned(domain, name, model, fingerprint, &elf)?;
            let path = finished.join(path);
            fs::create_dir_all(path.parent().context("an image has a folder")?)?;
            fs::write(&path, image)?;
        }
    }
    signer::sign(project, &finished, &images)?;
    Ok(fs::remove_dir_all(&finished)?)
}

/// What is to be signed: the domain's image, called `name`.
fn unsigned(
    domain: &Domain,
    name: &str,
    model: &idlc::Model,
    fingerprint: &[u8; 32],
    elf: &[u8],
) -> Result<Vec<u8>> {
    let entries = model.entries();
    let entry = entries.iter().find(|(name, _)| *name == domain.entry);
    let (_, ports) = entry.with_context(|| {
        format!(
            "{}: no .idl file declares the entry `{}`",
            domain.image, domain.entry
        )
    })?;
    let flags = |offer, optional| if offer { PORT_OFFER } else { 0 } | if optional { PORT_OPTIONAL } else { 0 };
    let port = |port: &'_ idlc::model::Port| {
        (
            port.name.clone(),
            port.number(),
            flags(port.offer, port.optional),
        )
    };
    let ports: Vec<_> = ports.iter().map(port).collect();
    let ports: Vec<_> = ports
        .iter()
        .map(|(name, interface, flags)| Port {
            name,
            interface: *interface,
            flags: *flags,
        })
        .collect();
    Ok(abi::image::unsigned(name, fingerprint, &ports, elf))
}

/// Packs the images and the manifest, if they are newer than the archive.
fn pack(project: &Project, manifest: Option<&Path>) -> Result<PathBuf> {
    let default = project.root.join("images/default.toml");
    let source = manifest.unwrap_or(&default);
    let text = fs::read(source)
        .with_context(|| format!("cannot read the manifest {}", source.display()))?;
    let inputs = stamp::of(&[project.images(), source.to_path_buf()]);
    let archive = match manifest {
        None => project.archive(),
        Some(_) => project.out.join(format!("manifests/{inputs:016x}.cpio")),
    };
    let mark = archive.with_extension("stamp");
    let wanted = format!("{inputs:016x}");
    if !archive.exists() || fs::read_to_string(&mark).unwrap_or_default() != wanted {
        wiring::check(
            project.relative(source),
            &String::from_utf8_lossy(&text),
            &project.images(),
        )?;
        fs::create_dir_all(archive.parent().context("an archive has a folder")?)?;
        // Renamed when complete: another run may be reading the old one.
        let new = archive.with_extension(format!("new{}", std::process::id()));
        fs::write(&new, packed(project, &text)?)?;
        fs::rename(&new, &archive)?;
        fs::write(&mark, wanted)?;
    }
    Ok(archive)
}

/// The archive with all images and the text `manifest`, which is taken as it is.
///
/// # Errors
/// If an image cannot be read.
pub fn packed(project: &Project, manifest: &[u8]) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    archive.add("manifest.toml", manifest);
    let images = project.images();
    for file in files_below(&images)? {
        let name = file.strip_prefix(&images)?.display().to_string();
        archive.add(&name, &fs::read(&file)?);
    }
    Ok(archive.finish())
}

/// All files below `folder`, sorted.
///
/// # Errors
/// If a folder cannot be read.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        match path.is_dir() {
            true => files.extend(files_below(&path)?),
            false => files.push(path),
        }
    }
    files.sort();
    Ok(files)
}
