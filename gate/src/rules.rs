//! The rules that give the folders their meaning: who may depend on whom, and where `unsafe` may
//! stand. `ARCHITECTURE.md` has them under "Folders"; this is that table as code.

use std::fs;
use std::path::Path;

use crate::packages::{Dependency, Package, Packages};
use crate::project::Project;
use crate::trust::{Breach, IN_ONE_FOLDER, VETTED};

/// What kind of folder a package stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// `abi/base`: what both sides of the boundary share; trusted, with `unsafe`.
    Abi,
    /// `runtime`: linked into every domain; trusted, with `unsafe`.
    Runtime,
    /// `kernel/*` but the policies, and what is built with it: trusted, with `unsafe`.
    Kernel,
    /// `lab/faults`: in the kernel that tests boot, with `unsafe`; never in the system.
    Campaign,
    /// `kernel/policy`: injected into the kernel and checked by it.
    Policy,
    /// `kernel/example`: a kernel of its own, of the framework and safe code.
    Example,
    /// `abi/interfaces`: generated from the `.idl` files.
    Interfaces,
    /// `domains/*` and `programs/*`.
    Domain,
    /// `domains/libs/*` and `programs/ulib`: shared by domains.
    DomainLibrary,
    /// `lib/*`.
    Library,
    /// Tools for the host, tests, benchmarks.
    Host,
    /// Not a package of the workspace.
    Foreign,
}

impl Zone {
    /// Whether `unsafe` and all that [`crate::trust`] looks for is forbidden.
    pub fn is_safe(self) -> bool {
        matches!(
            self,
            Zone::Policy | Zone::Domain | Zone::DomainLibrary | Zone::Library
        )
    }

    /// Whether what stands here ends up in the system, so that only vetted packages may be linked.
    pub fn is_linked(self) -> bool {
        !matches!(self, Zone::Host | Zone::Foreign)
    }

    fn may_use(self, other: Zone) -> bool {
        use Zone::*;
        match self {
            Abi => false,
            Library => other == Library,
            Policy => matches!(other, Library | Abi | Kernel),
            Example => matches!(other, Kernel | Policy),
            Kernel => matches!(
                other,
                Library | Kernel | Campaign | Policy | Abi | Interfaces
            ),
            Campaign => Kernel.may_use(other) || other == DomainLibrary,
            Interfaces | Runtime => matches!(other, Abi | Interfaces),
            Domain | DomainLibrary => {
                matches!(other, Abi | Interfaces | Runtime | Library | DomainLibrary)
            }
            Host | Foreign => true,
        }
    }
}

/// The crates of the kernel that each kind of package may use, where it is not all of them.
fn kernel_crates(zone: Zone) -> Option<&'static [&'static str]> {
    match zone {
        Zone::Policy | Zone::Example => Some(&["framework"]),
        _ => None,
    }
}

/// The zone of `package`.
pub fn zone(project: &Project, package: &Package) -> Zone {
    match package.is_ours {
        true => zone_of(project.relative(&package.folder)),
        false => Zone::Foreign,
    }
}

fn zone_of(folder: &Path) -> Zone {
    let mut parts = folder
        .iter()
        .map(|part| part.to_string_lossy().into_owned());
    match (parts.next().as_deref(), parts.next().as_deref()) {
        (Some("abi"), Some("base")) => Zone::Abi,
        (Some("abi"), Some("interfaces")) => Zone::Interfaces,
        (Some("runtime"), _) => Zone::Runtime,
        (Some("kernel"), Some("policy")) => Zone::Policy,
        (Some("kernel"), Some("example")) => Zone::Example,
        (Some("kernel"), _) | (Some("hosted"), Some("core")) => Zone::Kernel,
        (Some("lab"), Some("faults")) => Zone::Campaign,
        (Some("domains"), Some("libs")) => Zone::DomainLibrary,
        (Some("programs"), Some("ulib")) => Zone::DomainLibrary,
        (Some("domains" | "programs"), _) => Zone::Domain,
        (Some("lib"), _) => Zone::Library,
        _ => Zone::Host,
    }
}

/// The dependencies of `package` that it may not have.
pub fn dependencies(project: &Project, package: &Package) -> Vec<Breach> {
    let own = zone(project, package);
    let folder = project.relative(&package.folder);
    let manifest = package.folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap_or_default();
    let wrong = package.dependencies.iter().filter_map(|dependency| {
        let text_of = forbidden(project, own, folder, dependency)?;
        let line = text.lines().position(|line| {
            line.trim_start()
                .trim_matches('"')
                .starts_with(&dependency.name)
        });
        Some(Breach {
            file: manifest.clone(),
            line: line.map_or(1, |line| line + 1),
            text: text_of,
        })
    });
    wrong.collect()
}

/// The crate that calls every method with hostile values, and where it may be used: what users run
/// has nothing of it.
const HOSTILE: &str = "hostile-calls";
const TESTING: &str = "domains/testing";

fn forbidden(
    project: &Project,
    own: Zone,
    folder: &Path,
    dependency: &Dependency,
) -> Option<String> {
    let name = &dependency.name;
    if dependency.kind == "dev" || own == Zone::Host {
        return None;
    }
    if dependency.kind == "build" {
        let is_generator = name == "idlc" && matches!(own, Zone::Interfaces | Zone::Kernel);
        return if is_generator {
            None
        } else {
            Some(format!("`{name}` must not run at build time here"))
        };
    }
    let Some(path) = &dependency.path else {
        return match own.is_linked() {
            true => not_vetted(folder, dependency),
            false => None,
        };
    };
    let other = zone_of(project.relative(path));
    if name == HOSTILE && !folder.starts_with(TESTING) {
        return Some(format!(
            "`{name}`: only what stands in {TESTING} may call with hostile values"
        ));
    }
    if !own.may_use(other) {
        return Some(format!(
            "`{name}`: {} must not depend on {}",
            plural(own),
            plural(other)
        ));
    }
    let allowed = kernel_crates(own).filter(|_| other == Zone::Kernel)?;
    match allowed.contains(&name.as_str()) {
        true => None,
        false => Some(format!(
            "`{name}`: {} may use only {} of the kernel",
            plural(own),
            allowed.join(" and ")
        )),
    }
}

/// Why a package of the registry must not be linked by that of ours in `folder`.
fn not_vetted(folder: &Path, dependency: &Dependency) -> Option<String> {
    let Dependency { name, version, .. } = dependency;
    let only = IN_ONE_FOLDER.iter().find(|(_, listed, _)| listed == name);
    if let Some((only, ..)) = only.filter(|(only, ..)| folder != Path::new(only)) {
        return Some(format!("`{name}` is for {only} alone (gate/src/trust.rs)"));
    }
    let listed = VETTED.iter().find(|(vetted, _)| vetted == name);
    match listed {
        None => Some(format!(
            "`{name}` is not on the list of vetted packages (gate/src/trust.rs)"
        )),
        Some((_, vetted)) if version.strip_prefix('^') == Some(vetted) => None,
        Some((_, vetted)) => Some(format!(
            "`{name}` was vetted as version {vetted}, not as `{version}` (gate/src/trust.rs)"
        )),
    }
}

/// Longest name of an image, in bytes.
const LONGEST_NAME: usize = abi::image::NAME_LENGTH;

/// The language's own crates, which every other one names without saying so.
const LANGUAGE: [&str; 6] = [
    "alloc",
    "compiler_builtins",
    "core",
    "proc_macro",
    "std",
    "test",
];

/// Names that are taken, by another package or by what else the build makes, or too long: of
/// crates, of images, and of the images that `update` is tried with.
pub fn clashes(packages: &Packages) -> Vec<Breach> {
    let mut crates = LANGUAGE.map(String::from).to_vec();
    let mut images = vec!["trefoil".to_string(), "hosted-core".to_string()];
    let mut found = Vec::new();
    for package in packages.list.iter().filter(|package| package.is_ours) {
        let breach = |text| Breach {
            file: package.folder.join("Cargo.toml"),
            line: 1,
            text,
        };
        // As the compiler sees it.
        let name = package.name.replace('-', "_");
        if crates.contains(&name) {
            found.push(breach(format!("the name `{name}` of the crate is taken")));
        }
        crates.push(name);
        let domain = package.domain.iter();
        for name in domain.flat_map(|domain| [Some(&domain.image), domain.update.as_ref()]) {
            let Some(name) = name else {
                continue;
            };
            if images.contains(name) {
                found.push(breach(format!("the name `{name}` of the image is taken")));
            } else if name.len() > LONGEST_NAME {
                found.push(breach(format!(
                    "the name `{name}` of the image is longer than {LONGEST_NAME} bytes"
                )));
            }
            images.push(name.clone());
        }
    }
    found
}

fn plural(zone: Zone) -> &'static str {
    match zone {
        Zone::Abi => "the contract in abi/base",
        Zone::Runtime => "the runtime",
        Zone::Kernel => "crates of the kernel",
        Zone::Campaign => "campaigns in the testing kernel",
        Zone::Policy => "policies",
        Zone::Example => "the example kernel",
        Zone::Interfaces => "the interfaces",
        Zone::Domain => "domains",
        Zone::DomainLibrary => "libraries of domains",
        Zone::Library => "libraries in lib/",
        Zone::Host | Zone::Foreign => "host tools",
    }
}

#[cfg(test)]
mod tests;
