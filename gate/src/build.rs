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

mod compiler;
mod images;
mod pack;

pub use compiler::{compiler, fingerprint_now, for_target, products};
pub use pack::{files_below, packed, packed_with, write_whole};

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::packages::Packages;
use crate::project::Project;
use crate::{cargo_toml, glue, rules, stamp, tool, trust};
use compiler::Compiler;

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

/// The kernel of the guide, and its package.
const EXAMPLE: &str = "example-kernel";

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
    let archive = pack::pack(project, manifest)?;
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

/// Builds the kernel of `kernel/example`, which needs neither domains nor an archive.
///
/// # Errors
/// If it does not compile.
pub fn build_example(project: &Project) -> Result<PathBuf> {
    let compiler = Compiler::new(project)?;
    tool::timed("building the example kernel", || {
        compiler.cargo(&["--package", EXAMPLE])
    })?;
    Ok(products(project).join(EXAMPLE))
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
    images::sign_all(project, &domains, &compiler.model, &compiler.fingerprint)
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
            tool::plain(&breach.text)
        );
    }
    bail!(
        "{} breaches of the rules for domain code; nothing was signed",
        breaches.len()
    )
}
