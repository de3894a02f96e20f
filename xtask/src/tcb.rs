//! `cargo xtask tcb`: the trusted share of the code that is linked into the default image.
//!
//! Counted are the lines with code in the functions that the kernel and the images contain, by
//! their debug information: no comments, no blank lines, no tests, nothing that the linker left
//! out. Trusted is what runs in the kernel, or beside every domain, or was generated: `kernel/*`
//! but the policies, generated code, and every library and package that the kernel links.
//! Everything else that the kernel, a domain of the default manifest or a program links is not
//! trusted.
//!
//! Every library that the kernel links has its reason in the root `Cargo.toml`; one without is an
//! error.
//!
//! Shown but not part of the share, since they are not part of the running system: `idlc`, which
//! writes trusted code, and the kernel's own tests and measurements, which only run when the
//! command line asks for them. The compiler and its library are counted nowhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use crate::linked::{self, Linked};
use trefoil_gate::lexer;
use trefoil_gate::packages::{self, Domain, Package, Packages};
use trefoil_gate::project::Project;
use trefoil_gate::rules::{self, Zone};
use trefoil_gate::{build, setup, tool};

/// How to show it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

/// On which side a line counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// A mistake here can break memory safety.
    #[default]
    Trusted,
    /// Safe code behind the isolation.
    Untrusted,
    /// Not part of the running system.
    Apart,
}

/// A half of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Framework,
    Isolation,
}

/// A folder or package, and what it contributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    name: String,
    part: Part,
    lines: usize,
    unsafes: usize,
}

/// The command.
///
/// # Errors
/// If the sources cannot be read.
pub fn tcb(project: &Project, options: &Options) -> Result<()> {
    let (rows, packages) = rows(project)?;
    let reasons = reasons(&rows, &packages)?;
    let (trusted, total) = sums(&rows);
    let halves = [Half::Framework, Half::Isolation].map(|half| half_lines(&rows, half));
    let share = if total == 0 {
        0.0
    } else {
        trusted as f64 / total as f64
    };
    if options.json {
        let object = json!({ "trusted_lines": trusted, "total_lines": total, "trusted_share": share,
                    "framework_lines": halves[0], "isolation_lines": halves[1], "libraries": reasons });
        tool::print(&format!("{object}\n"));
        return Ok(());
    }
    tool::print(&table(&rows));
    tool::print("why the kernel links each library\n");
    for (name, reason) in &reasons {
        tool::print(&format!("  {name}: {reason}\n"));
    }
    tool::print(&format!(
        "isolation half, with its libraries: {} lines; framework half: {}\n",
        halves[1], halves[0]
    ));
    tool::print(&format!(
        "{trusted} of {total} linked lines are trusted: {:.1} %\n",
        share * 100.0
    ));
    Ok(())
}

fn table(rows: &[Row]) -> String {
    let parts = [
        (Part::Trusted, "trusted"),
        (Part::Untrusted, "not trusted"),
        (Part::Apart, "apart, not counted"),
    ];
    let mut text = String::new();
    for (part, title) in parts {
        text += &format!("{title:<44} {:>8} {:>8}\n", "lines", "unsafe");
        for row in rows.iter().filter(|row| row.part == part) {
            text += &format!("  {:<42} {:>8} {:>8}\n", row.name, row.lines, row.unsafes);
        }
    }
    text
}

/// The trusted libraries and why the kernel links them.
fn reasons(rows: &[Row], packages: &Packages) -> Result<BTreeMap<String, String>> {
    let trusted = rows.iter().filter(|row| row.part == Part::Trusted);
    let libraries = trusted.filter_map(|row| {
        let name = row.name.strip_prefix("dependency ");
        name.or(row.name.strip_prefix("lib/").map(last))
    });
    let reason = |name: &str| {
        let reason = packages.reasons.get(name);
        let reason = reason.with_context(|| {
            format!("the kernel links `{name}`, and [workspace.metadata.trefoil.trusted] does not say why")
        })?;
        Ok((name.to_string(), reason.clone()))
    };
    libraries.map(reason).collect()
}

/// The last part of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Which half of the kernel a trusted row belongs to.
fn half(name: &str) -> Half {
    match name {
        "kernel/framework"
        | "kernel/image"
        | "lib/hardware/acpi-tables"
        | "lib/system/buddy"
        | "lib/system/cpio"
        | "lib/system/pages" => Half::Framework,
        _ => Half::Isolation,
    }
}

fn half_lines(rows: &[Row], of: Half) -> usize {
    let trusted = rows.iter().filter(|row| row.part == Part::Trusted);
    let lines = trusted
        .filter(|row| half(&row.name) == of)
        .map(|row| row.lines);
    lines.sum()
}

/// Trusted lines and all lines.
fn sums(rows: &[Row]) -> (usize, usize) {
    let lines = |part: Part| -> usize {
        rows.iter()
            .filter(|row| row.part == part)
            .map(|row| row.lines)
            .sum()
    };
    (
        lines(Part::Trusted),
        lines(Part::Trusted) + lines(Part::Untrusted),
    )
}

fn rows(project: &Project) -> Result<(Vec<Row>, Packages)> {
    build::build(project, None)?;
    let toolchain = setup::toolchain()?;
    let packages = packages::all(project, &toolchain)?;
    let kernel = packages
        .named("image")
        .context("there is no kernel/image")?;
    let in_kernel: Vec<_> = packages
        .linked(kernel)
        .iter()
        .map(|package| package.id.as_str())
        .collect();
    let mut linked = Linked::new();
    // Not from where cargo puts it: there the kernel with its tests may be.
    linked::add(&project.kernel(), &mut linked)?;
    for image in images(project, &packages)? {
        linked::add(&build::products(project).join(image), &mut linked)?;
    }
    let mut tools = Linked::new();
    for name in ["idlc", "xtask"] {
        linked::add(&host_tool(project, &toolchain, name)?, &mut tools)?;
    }
    let owner = |file: &Path| owner(project, &packages, &in_kernel, file);
    let of_system = linked.iter().map(|it| (it, owner(it.0)));
    // Tools link much of the system for themselves, and things that the system does not.
    let of_tools = tools.iter().map(|it| (it, owner(it.0).filter(is_builder)));
    let mut rows = BTreeMap::new();
    for ((file, source), owner) in of_system.chain(of_tools) {
        let Some((name, part)) = owner else {
            continue;
        };
        let row: &mut Row = rows.entry(name.clone()).or_default();
        let text = fs::read_to_string(file).unwrap_or_default();
        (row.name, row.part) = (name, part);
        row.lines += source.count(&text);
        row.unsafes += unsafes(&text);
    }
    Ok((rows.into_values().collect(), packages))
}

/// A tool with line tables, built for the host.
fn host_tool(project: &Project, toolchain: &setup::Toolchain, name: &str) -> Result<PathBuf> {
    tool::run(
        toolchain
            .cargo(project)
            .args(["build", "--quiet", "--release", "--package", name]),
    )?;
    Ok(project.target.join("release").join(name))
}

/// What makes the images: trusted as the kernel is, but not linked into the system.
const BUILDERS: [&str; 2] = ["idlc", "trefoil-gate"];

/// Whether what is linked into a tool counts, by its owner: what makes the images alone.
fn is_builder((_, part): &(String, Part)) -> bool {
    *part == Part::Apart
}

/// What the source file belongs to, and where that counts; `None` for the compiler's library and
/// for what only tools link.
fn owner(
    project: &Project,
    packages: &Packages,
    in_kernel: &[&str],
    file: &Path,
) -> Option<(String, Part)> {
    let is_below =
        |package: &&Package| file.starts_with(&package.folder) && !file.starts_with(&project.out);
    // A package may stand in the folder of another.
    let package = packages
        .list
        .iter()
        .filter(is_below)
        .max_by_key(|package| package.folder.as_os_str().len());
    let Some(package) = package else {
        return generated(project, file);
    };
    let name = name_of(project, package);
    let is_in_kernel = in_kernel.contains(&package.id.as_str());
    match rules::zone(project, package) {
        Zone::Kernel if is_measuring(file) => {
            Some((format!("{name}: tests and measurements"), Part::Apart))
        }
        Zone::Abi | Zone::Runtime | Zone::Kernel | Zone::Campaign | Zone::Interfaces => {
            Some((name, Part::Trusted))
        }
        Zone::Policy => Some((name, Part::Untrusted)),
        Zone::Host if BUILDERS.contains(&package.name.as_str()) => Some((name, Part::Apart)),
        _ if is_in_kernel => Some((name, Part::Trusted)),
        Zone::Host | Zone::Example | Zone::Foreign => None,
        Zone::Domain | Zone::DomainLibrary | Zone::Library => Some((name, Part::Untrusted)),
    }
}

/// Whether the file of the kernel only runs when the command line asks for tests or measurements.
fn is_measuring(file: &Path) -> bool {
    file.iter().any(|part| {
        matches!(
            part.to_str(),
            Some("selftest" | "selftest.rs" | "bench" | "bench.rs")
        )
    })
}

fn generated(project: &Project, file: &Path) -> Option<(String, Part)> {
    let text = file.strip_prefix(&project.out).ok()?.display().to_string();
    let names = ["proxies", "interfaces"];
    let name = names
        .into_iter()
        .find(|name| text.contains(&format!("/build/{name}-")));
    let name = name.or(text.starts_with("glue/").then_some("entries"))?;
    Some((format!("generated: {name}"), Part::Trusted))
}

fn name_of(project: &Project, package: &Package) -> String {
    match package.is_ours {
        true => project.relative(&package.folder).display().to_string(),
        false => format!("dependency {}", package.name),
    }
}

/// The images of `init`, of the domains that the default manifest starts, and of all programs.
fn images(project: &Project, packages: &Packages) -> Result<Vec<String>> {
    let text = fs::read_to_string(project.root.join("images/default.toml"))
        .context("images/default.toml")?;
    let manifest = manifest::Manifest::parse(&text)
        .map_err(|error| anyhow::anyhow!("images/default.toml: {error}"))?;
    let is_used = |domain: &Domain| {
        let is_program = domain.path.starts_with("boot/");
        is_program
            || domain.image == "init"
            || manifest
                .domains
                .iter()
                .any(|used| used.image == domain.image)
    };
    Ok(packages
        .domains()
        .map(|(_, domain)| domain)
        .filter(|domain| is_used(domain))
        .map(|domain| domain.image.clone())
        .collect())
}

fn unsafes(text: &str) -> usize {
    lexer::code_tokens(text)
        .iter()
        .filter(|token| token.text == "unsafe")
        .count()
}

#[cfg(test)]
mod tests;
