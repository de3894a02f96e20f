//! `cargo xtask check`: format, lints, the rules of the folders, and what domain code must not
//! contain.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::Result;
use serde_json::Value;

use crate::test::runs_on_the_host;
use crate::{arch, folders, loops, sources, subjects, texts};
use trefoil_gate::packages::{self, Package, Packages};
use trefoil_gate::project::Project;
use trefoil_gate::rules::{self, Zone};
use trefoil_gate::setup::{self, TARGET, Toolchain};
use trefoil_gate::trust::{self, Breach};
use trefoil_gate::{build, fallible, tool};

/// What to check.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Only the folder rules and the sources; no formatter, no lints
    #[arg(long)]
    pub rules: bool,
}

/// The command; its result is our exit status.
///
/// # Errors
/// If a check cannot be run. What the checks find is no error here.
pub fn check(project: &Project, options: &Options) -> Result<i32> {
    let toolchain = setup::toolchain()?;
    let packages = packages::ours(project, &toolchain)?;
    tool::step("folder rules and sources");
    let mut breaches = breaches(project, &packages)?;
    breaches.extend(texts::breaches(project)?);
    breaches.extend(folders::breaches(project)?);
    for breach in &breaches {
        println!(
            "{}:{}: {}",
            project.relative(&breach.file).display(),
            breach.line,
            breach.text
        );
    }
    let mut failed = !breaches.is_empty();
    if !options.rules {
        failed |= !format(project, &toolchain)?;
        failed |= !lint_for_the_host(project, &toolchain, &packages)?;
        failed |= !lint_for_the_target(project, &toolchain, &packages)?;
    }
    println!(
        "{}",
        if failed {
            "check failed"
        } else {
            "all checks passed"
        }
    );
    Ok(i32::from(failed))
}

/// All breaches of the folder rules.
///
/// # Errors
/// If a file cannot be read.
pub fn breaches(project: &Project, packages: &Packages) -> Result<Vec<Breach>> {
    let mut found = Vec::new();
    for package in packages.list.iter().filter(|package| package.is_ours) {
        found.extend(of_package(project, package)?);
    }
    Ok(found)
}

fn of_package(project: &Project, package: &Package) -> Result<Vec<Breach>> {
    let zone = rules::zone(project, package);
    let may_be_unsafe = matches!(
        zone,
        Zone::Abi | Zone::Runtime | Zone::Kernel | Zone::Campaign
    );
    let mut found = rules::dependencies(project, package);
    found.extend(sources::generated(package));
    if zone.is_safe() {
        found.extend(trust::package(package)?);
    }
    // The launcher of the hosted platform is the one tool that needs unsafe code.
    let is_launcher = package.name == "hosted";
    if zone.is_safe() || zone == Zone::Example || zone == Zone::Host && !is_launcher {
        found.extend(sources::forbids_unsafe(package));
    }
    for file in trust::rust_files(&package.folder)?
        .iter()
        .filter(|file| !file.is_symlink())
    {
        // What a generator is to write.
        if file.iter().any(|part| part == "golden") {
            continue;
        }
        let text = fs::read_to_string(file)?;
        found.extend(sources::header(file, &text));
        found.extend(fallible::breaches(project.relative(file), &text));
        if let Ok(in_framework) = project.relative(file).strip_prefix(arch::FRAMEWORK) {
            found.extend(arch::breaches(file, in_framework, &text));
        }
        found.extend(subjects::breaches(project.relative(file), &text));
        found.extend(loops::breaches(project.relative(file), &text));
        found.extend(sources::exclusive_heads(
            file,
            project.relative(file),
            &text,
        ));
        if may_be_unsafe || is_launcher {
            found.extend(sources::safety_comments(file, &text));
        }
    }
    Ok(found)
}

fn format(project: &Project, toolchain: &Toolchain) -> Result<bool> {
    tool::step("format");
    if !toolchain.has("fmt") {
        return Ok(missing("rustfmt-web", "rustfmt"));
    }
    succeeds(toolchain.cargo(project).args(["fmt", "--all", "--check"]))
}

fn lint_for_the_host(
    project: &Project,
    toolchain: &Toolchain,
    packages: &Packages,
) -> Result<bool> {
    tool::step("lints of what runs on the host");
    if !toolchain.has("clippy") {
        return Ok(missing("rust-web-clippy", "clippy"));
    }
    let mut command = toolchain.cargo(project);
    command.args(["clippy", "--all-targets"]);
    let chosen = packages
        .list
        .iter()
        .filter(|package| runs_on_the_host(project, package));
    for package in chosen {
        command.args(["--package", &package.name]);
    }
    lints_clean(&mut command)
}

fn lint_for_the_target(
    project: &Project,
    toolchain: &Toolchain,
    packages: &Packages,
) -> Result<bool> {
    tool::step("lints of what runs in the system");
    if !toolchain.has("clippy") {
        return Ok(missing("rust-web-clippy", "clippy"));
    }
    let mut command = toolchain.cargo(project);
    build::for_target(project, toolchain, &mut command);
    // What the images are stamped with matters not here, but must be there.
    command
        .env("TREFOIL_FINGERPRINT", "0".repeat(64))
        .env("TREFOIL_PUBLIC_KEY", "0".repeat(64));
    command.args([
        "clippy",
        "--release",
        "--target",
        TARGET,
        "-Zbuild-std=core,alloc,compiler_builtins",
    ]);
    let is_linked = |package: &&Package| rules::zone(project, package).is_linked();
    for package in packages.list.iter().filter(is_linked) {
        command.args(["--package", &package.name]);
    }
    lints_clean(&mut command)
}

/// Runs clippy and shows all that it has to say, not only about the first package; whether that is
/// nothing.
fn lints_clean(command: &mut Command) -> Result<bool> {
    let output = command
        .args(["--quiet", "--message-format=json"])
        .stderr(Stdio::inherit())
        .output()?;
    let mut complaints: Vec<String> = Vec::new();
    for message in String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(rendered)
    {
        // A library is looked at again for its tests.
        if !complaints.contains(&message) {
            tool::print(&message);
            complaints.push(message);
        }
    }
    Ok(output.status.success() && complaints.is_empty())
}

/// The text of a warning or error in one line of cargo's messages.
fn rendered(line: &str) -> Option<String> {
    let value: Value = serde_json::from_str(line).ok()?;
    let message = &value["message"];
    let is_complaint = matches!(message["level"].as_str(), Some("warning" | "error"));
    let has_place = message["spans"]
        .as_array()
        .is_some_and(|spans| !spans.is_empty());
    let text = message["rendered"]
        .as_str()
        .filter(|_| is_complaint && has_place)?;
    Some(text.to_string())
}

fn missing(package: &str, component: &str) -> bool {
    println!(
        "{component} is missing: `rustup component add {component}`, or install Debian's package {package}"
    );
    false
}

fn succeeds(command: &mut Command) -> Result<bool> {
    Ok(command.status()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// How many workspaces were made: tests run side by side, some with packages of one name.
    static MADE: AtomicUsize = AtomicUsize::new(0);

    /// A package `name` in `folder` of a workspace in a folder of its own, with one source file.
    fn checked(folder: &str, source: &str) -> Vec<(String, usize)> {
        let root = std::env::temp_dir().join(format!(
            "trefoil-check-{}-{}",
            std::process::id(),
            MADE.fetch_add(1, Ordering::Relaxed)
        ));
        let package = root.join(folder);
        fs::create_dir_all(package.join("src")).expect("made");
        fs::write(package.join("src/lib.rs"), source).expect("written");
        fs::write(package.join("Cargo.toml"), "[package]\n").expect("written");
        let file = package.join("src/lib.rs");
        let project = Project {
            root: root.clone(),
            target: root.join("target"),
            out: root.join("target/trefoil"),
        };
        let package = Package {
            is_ours: true,
            folder: package,
            targets: vec![("lib".into(), file)],
            ..Package::default()
        };
        let found = of_package(&project, &package).expect("read");
        fs::remove_dir_all(&root).expect("removed");
        found
            .into_iter()
            .map(|breach| (breach.text, breach.line))
            .collect()
    }

    #[test]
    fn unsafe_in_domains_and_libraries_fails() {
        for folder in ["domains/fs/a", "domains/libs/b", "lib/c", "kernel/policy"] {
            let found = checked(
                folder,
                "//! A crate.\n#![forbid(unsafe_code)]\nfn a() {\n    unsafe { b() }\n}\n",
            );
            assert_eq!(found.len(), 1, "{folder}: {found:?}");
            assert_eq!(found[0].1, 4);
        }
    }

    #[test]
    fn complaints_are_taken_from_cargos_messages() {
        let line = |level: &str| {
            let message =
                serde_json::json!({ "level": level, "spans": [{}], "rendered": "text\n" });
            serde_json::json!({ "reason": "compiler-message", "message": message }).to_string()
        };
        assert_eq!(rendered(&line("warning")), Some("text\n".into()));
        assert_eq!(rendered(&line("note")), None);
        assert_eq!(rendered("{\"reason\":\"build-finished\"}"), None);
        assert_eq!(rendered("no JSON"), None);
    }

    #[test]
    fn decent_packages_pass() {
        assert_eq!(
            checked("lib/d", "//! A crate.\n#![forbid(unsafe_code)]\n"),
            []
        );
        assert_eq!(
            checked(
                "kernel/framework",
                "//! A crate.\n// SAFETY: always.\nunsafe impl Send for A {}\n"
            ),
            []
        );
    }

    #[test]
    fn the_kernel_explains_its_unsafe_code() {
        assert_eq!(
            checked(
                "kernel/isolation",
                "//! A crate.\nunsafe impl Send for A {}\n"
            )
            .len(),
            1
        );
    }

    #[test]
    fn the_framework_leaves_instructions_to_the_machine() {
        let text = "//! A crate.\nfn a() {\n    core::arch::asm!(\"cli\");\n}\n";
        let found = checked("kernel/framework", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].1, 3);
        assert_eq!(checked("kernel/image", text), []);
    }

    #[test]
    fn safe_packages_say_so_to_the_compiler() {
        assert_eq!(checked("xtask", "//! A tool.\n").len(), 1);
        assert_eq!(checked("lib/e", "//! A crate.\n").len(), 1);
    }

    #[test]
    fn what_is_generated_has_no_doctests() {
        let folder = std::env::temp_dir().join(format!("trefoil-doc-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let build = packages::Dependency {
            name: "idlc".into(),
            kind: "build".into(),
            ..packages::Dependency::default()
        };
        let mut package = Package {
            folder: folder.clone(),
            ..Package::default()
        };
        fs::write(folder.join("Cargo.toml"), "[lib]\n").expect("written");
        assert_eq!(sources::generated(&package), None);
        package.dependencies.push(build);
        assert!(sources::generated(&package).is_some());
        fs::write(folder.join("Cargo.toml"), "[lib]\ndoctest = false\n").expect("written");
        assert_eq!(sources::generated(&package), None);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn files_without_a_header_fail() {
        assert_eq!(checked("kernel/image", "fn a() {}\n").len(), 1);
    }
}
