//! The rules that give the folders their meaning: who may depend on whom, where `unsafe` may stand,
//! and how every file begins. `ARCHITECTURE.md` has them under "Folders"; this is that table as
//! code.

use std::fs;
use std::path::{Path, PathBuf};

use crate::lexer::{self, Kind, Token};
use crate::packages::{Dependency, Package, Packages};
use crate::project::Project;
use crate::trust::{Breach, VETTED};

/// What kind of folder a package stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// `abi/base`: what both sides of the boundary share; trusted, with `unsafe`.
    Abi,
    /// `runtime`: linked into every domain; trusted, with `unsafe`.
    Runtime,
    /// `kernel/*` but the policies, and what is built with it: trusted, with `unsafe`.
    Kernel,
    /// `kernel/policy`: injected into the kernel and checked by it.
    Policy,
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
            Kernel => matches!(other, Library | Kernel | Policy | Abi | Interfaces),
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
        Zone::Policy => Some(&["framework"]),
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
        (Some("kernel"), _) | (Some("hosted"), Some("core")) | (Some("lab"), Some("faults")) => {
            Zone::Kernel
        }
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
    let is_testing = project.relative(&package.folder).starts_with(TESTING);
    let manifest = package.folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).unwrap_or_default();
    let wrong = package.dependencies.iter().filter_map(|dependency| {
        let text_of = forbidden(project, own, is_testing, dependency)?;
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
    is_testing: bool,
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
            true => not_vetted(dependency),
            false => None,
        };
    };
    let other = zone_of(project.relative(path));
    if name == HOSTILE && !is_testing {
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

/// Why a package of the registry must not be linked.
fn not_vetted(dependency: &Dependency) -> Option<String> {
    let Dependency { name, version, .. } = dependency;
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
        Zone::Policy => "policies",
        Zone::Interfaces => "the interfaces",
        Zone::Domain => "domains",
        Zone::DomainLibrary => "libraries of domains",
        Zone::Library => "libraries in lib/",
        Zone::Host | Zone::Foreign => "host tools",
    }
}

/// Whether the package forbids unsafe code to the compiler, as all but the kernel must.
pub fn forbids_unsafe(package: &Package) -> Option<Breach> {
    let manifest = package.folder.join("Cargo.toml");
    let is_in_manifest = fs::read_to_string(&manifest)
        .unwrap_or_default()
        .contains("unsafe_code = \"forbid\"");
    if is_in_manifest {
        return None;
    }
    let roots = package
        .targets
        .iter()
        .filter(|(kind, _)| matches!(kind.as_str(), "lib" | "bin"));
    let lacks = |file: &&PathBuf| {
        !fs::read_to_string(file)
            .unwrap_or_default()
            .contains("#![forbid(unsafe_code)]")
    };
    let file = roots.map(|(_, file)| file).find(lacks)?;
    let text =
        "`#![forbid(unsafe_code)]` is missing (or `unsafe_code = \"forbid\"` in Cargo.toml)".into();
    Some(Breach {
        file: file.clone(),
        line: 1,
        text,
    })
}

/// A package whose code a build script writes, and whose documentation `cargo test` would compile
/// and run: there stands what domains' authors wrote.
pub fn generated(package: &Package) -> Option<Breach> {
    let is_generated = package.dependencies.iter().any(|it| it.kind == "build");
    let file = package.folder.join("Cargo.toml");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let is_off = text.lines().any(|line| line.trim() == "doctest = false");
    let text = "what is generated has no doctests: `doctest = false` is missing".into();
    (is_generated && !is_off).then_some(Breach {
        file,
        line: 1,
        text,
    })
}

/// A file that does not begin by saying what it is for.
pub fn header(file: &Path, text: &str) -> Option<Breach> {
    let first = lexer::tokens(text).into_iter().next();
    let says =
        first.is_some_and(|token| token.kind == Kind::Comment && token.text.starts_with("//!"));
    let text = "the file does not begin with `//!` and what it is for".into();
    if says {
        None
    } else {
        Some(Breach {
            file: file.to_path_buf(),
            line: 1,
            text,
        })
    }
}

/// Uses of `unsafe` without a comment that says why they are sound.
pub fn safety_comments(file: &Path, text: &str) -> Vec<Breach> {
    let tokens = lexer::tokens(text);
    let code: Vec<(usize, &Token<'_>)> = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.kind != Kind::Comment)
        .collect();
    let mut found = Vec::new();
    for (index, (at, token)) in code.iter().copied().enumerate() {
        let next = |steps: usize| code.get(index + steps).map_or("", |(_, next)| next.text);
        let is_foreign = next(1) == "extern" && (next(2) == "{" || next(3) == "{");
        let needs = token.text == "unsafe" && (matches!(next(1), "{" | "impl") || is_foreign);
        if needs && !is_explained(&tokens[..at], token.line) {
            let text = "`unsafe` without a `// SAFETY:` comment before it".into();
            found.push(Breach {
                file: file.to_path_buf(),
                line: token.line,
                text,
            });
        }
    }
    found
}

/// Whether a SAFETY comment stands in the ten lines before `line`, comments not counted.
fn is_explained(before: &[Token<'_>], line: usize) -> bool {
    let mut code_lines = 0;
    let mut last = line;
    for token in before.iter().rev() {
        if token.kind == Kind::Comment {
            if token.text.contains("SAFETY") {
                return true;
            }
            last = last.min(token.line);
            continue;
        }
        code_lines += last.saturating_sub(token.line);
        last = last.min(token.line);
        if code_lines > 10 {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> Project {
        Project {
            root: "/w".into(),
            target: "/w/target".into(),
            out: "/w/target/trefoil".into(),
        }
    }

    fn depends(folder: &str, name: &str, path: Option<&str>, kind: &str) -> Option<String> {
        let path = path.map(|path| Path::new("/w").join(path));
        let (name, version) = name.split_once(' ').unwrap_or((name, ""));
        let dependency = Dependency {
            name: name.into(),
            path,
            version: version.into(),
            kind: kind.into(),
        };
        let is_testing = folder.starts_with(TESTING);
        forbidden(
            &project(),
            zone_of(Path::new(folder)),
            is_testing,
            &dependency,
        )
    }

    #[test]
    fn hostile_calls_are_for_tests() {
        let depends = |folder| depends(folder, HOSTILE, Some("abi/interfaces/hostile"), "normal");
        assert_eq!(depends("domains/testing/hostile"), None);
        assert!(depends("domains/fs/ext2").is_some());
        assert!(depends("kernel/image").is_some());
        assert!(depends("abi/interfaces").is_some());
    }

    #[test]
    fn what_the_table_allows() {
        assert_eq!(
            depends("domains/fs/ext2", "ext2", Some("lib/fs/ext2"), "normal"),
            None
        );
        assert_eq!(
            depends(
                "domains/fs/ext2",
                "interfaces",
                Some("abi/interfaces"),
                "normal"
            ),
            None
        );
        assert_eq!(
            depends("domains/fs/ext2", "domain-rt", Some("runtime"), "normal"),
            None
        );
        assert_eq!(
            depends("programs/ls", "ulib", Some("programs/ulib"), "normal"),
            None
        );
        assert_eq!(
            depends("kernel/proxies", "idlc", Some("abi/idlc"), "build"),
            None
        );
        assert_eq!(
            depends("kernel/isolation", "ed25519-compact ^2.1", None, "normal"),
            None
        );
        assert_eq!(depends("lib/fs/ext2", "proptest", None, "dev"), None);
        assert_eq!(depends("xtask", "clap", None, "normal"), None);
    }

    #[test]
    fn a_domain_never_depends_on_another() {
        let text = depends(
            "domains/fs/ext2",
            "virtio-blk",
            Some("domains/drivers/virtio-blk"),
            "normal",
        );
        assert_eq!(
            text.as_deref(),
            Some("`virtio-blk`: domains must not depend on domains")
        );
    }

    #[test]
    fn a_domain_does_not_reach_into_the_kernel() {
        assert!(
            depends(
                "domains/fs/ext2",
                "framework",
                Some("kernel/framework"),
                "normal"
            )
            .is_some()
        );
        assert!(
            depends(
                "programs/ulib",
                "isolation",
                Some("kernel/isolation"),
                "normal"
            )
            .is_some()
        );
    }

    #[test]
    fn a_library_knows_nothing_of_this_system() {
        assert!(
            depends(
                "lib/fs/ext2",
                "interfaces",
                Some("abi/interfaces"),
                "normal"
            )
            .is_some()
        );
        assert!(depends("lib/fs/ext2", "abi", Some("abi/base"), "normal").is_some());
    }

    #[test]
    fn the_kernel_depends_on_no_domain() {
        assert!(depends("kernel/image", "init", Some("domains/init"), "normal").is_some());
        assert!(depends("kernel/image", "ulib", Some("programs/ulib"), "normal").is_some());
    }

    #[test]
    fn interfaces_use_the_shared_vocabulary_alone() {
        assert_eq!(
            depends("abi/interfaces", "abi", Some("abi/base"), "normal"),
            None
        );
        assert!(
            depends(
                "abi/interfaces",
                "isolation",
                Some("kernel/isolation"),
                "normal"
            )
            .is_some()
        );
    }

    #[test]
    fn packages_that_nobody_vetted() {
        assert!(depends("domains/fs/ext2", "rand", None, "normal").is_some());
        assert!(depends("kernel/framework", "rand", None, "normal").is_some());
        assert!(depends("lib/fs/ext2", "rand", None, "normal").is_some());
    }

    #[test]
    fn packages_that_were_vetted_as_another_version() {
        assert_eq!(depends("lib/fs/ext2", "spin ^0.10", None, "normal"), None);
        for version in ["^0.5", "=0.10.0", "*", ">=0.5", "^0.10, <0.10.1", "^0.1"] {
            let name = format!("spin {version}");
            assert!(
                depends("lib/fs/ext2", &name, None, "normal").is_some(),
                "{name}"
            );
        }
    }

    #[test]
    fn names_are_given_once() {
        let package = |name: &str, image: &str, update: Option<&str>| Package {
            name: name.into(),
            is_ours: true,
            domain: Some(crate::packages::Domain {
                image: image.into(),
                entry: "a".into(),
                path: format!("boot/domains/{image}"),
                update: update.map(String::from),
            }),
            ..Package::default()
        };
        let clashing = |other| {
            let first = package("virtio-blk", "virtio-blk", Some("virtio-blk-2"));
            clashes(&Packages::of(vec![first, other])).len()
        };
        assert_eq!(clashing(package("a", "a", Some("a-2"))), 0);
        assert_eq!(clashing(package("a", "virtio-blk-2", None)), 1);
        assert_eq!(clashing(package("a", "a", Some("virtio-blk-2"))), 1);
        assert_eq!(clashing(package("a", "a", Some("a"))), 1);
        assert_eq!(clashing(package("a", "a", Some(&"a".repeat(33)))), 1);
        assert_eq!(clashing(package("virtio_blk", "a", None)), 1);
        assert_eq!(clashing(package("core", "a", None)), 1);
    }

    #[test]
    fn nothing_runs_at_build_time_in_a_domain() {
        assert!(depends("domains/fs/ext2", "cc", None, "build").is_some());
        assert!(depends("domains/fs/ext2", "idlc", Some("abi/idlc"), "build").is_some());
    }

    #[test]
    fn files_say_what_they_are_for() {
        assert!(header(Path::new("a.rs"), "//! A file.\nfn a() {}").is_none());
        assert!(header(Path::new("a.rs"), "// A file.\nfn a() {}").is_some());
        assert!(header(Path::new("a.rs"), "").is_some());
    }

    #[test]
    fn unsafe_blocks_are_explained() {
        let lines = |text: &str| -> Vec<usize> {
            safety_comments(Path::new("a.rs"), text)
                .iter()
                .map(|breach| breach.line)
                .collect()
        };
        assert!(lines("// SAFETY: it is.\nunsafe { a() }").is_empty());
        assert!(lines("// SAFETY: it is,\n// really.\nlet x =\n    unsafe { a() };").is_empty());
        assert!(lines("unsafe fn a() {}").is_empty());
        assert_eq!(lines("fn a() {\n    unsafe { a() }\n}"), [2]);
        assert_eq!(lines("unsafe impl Send for A {}"), [1]);
        assert_eq!(lines("unsafe extern \"C\" { static a: u8; }"), [1]);
        assert!(lines("struct A { a: unsafe extern \"C\" fn() }").is_empty());
        assert_eq!(
            lines(&format!(
                "// SAFETY: far away.\n{}unsafe {{ a() }}",
                "b();\n".repeat(20)
            )),
            [22]
        );
    }

    #[test]
    fn forbidding_unsafe_is_asked_for() {
        let folder = std::env::temp_dir().join(format!("trefoil-rules-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let file = folder.join("lib.rs");
        let package = Package {
            folder: folder.clone(),
            targets: vec![("lib".into(), file.clone())],
            ..Package::default()
        };
        fs::write(&file, "//! A file.\n").expect("written");
        assert!(forbids_unsafe(&package).is_some());
        fs::write(&file, "//! A file.\n#![forbid(unsafe_code)]\n").expect("written");
        assert!(forbids_unsafe(&package).is_none());
        fs::remove_dir_all(folder).expect("removed");
    }
}
