//! `cargo xtask tcb`: the trusted code, in three figures.
//!
//! Counted are the lines with code in the functions that the kernel and the images of the default
//! manifest contain, by their debug information: no comments, no blank lines, no tests, nothing
//! that the linker left out.
//!
//! 1. *Crates that may write `unsafe`*: those of ours that do not forbid it, generated code, and
//!    each package of the registry, wherever it is linked. A mistake here can break memory safety.
//! 2. *Safe code in the kernel*: crates that forbid `unsafe` and the kernel links. A mistake here
//!    cannot break memory safety by itself, but stop the machine.
//! 3. *Tools that must be trusted*: `idlc`, which writes the proxies, and `gate`, which refuses
//!    what must not be built, with the packages that they link. They are not part of the running
//!    system. What of a package is linked is seen in `xtask`, which links `gate` and uses some of
//!    them itself.
//!
//! Everything else that a domain of the default manifest or a program links is not trusted. Every
//! library that the kernel links has its reason in the root `Cargo.toml`; one without is an error.
//!
//! The kernel's own tests and measurements, which only run when the command line asks for them,
//! are shown apart. The compiler and its library are counted nowhere. The goals stand in
//! `docs/figures.md`, P15.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use crate::linked::{self, Linked};
use crate::sources;
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
    /// In the kernel or beside every domain, and may write `unsafe`.
    #[default]
    Unsafe,
    /// A package of the registry that only domains link.
    Package,
    /// Safe code that the kernel links.
    Kernel,
    /// A tool that makes the images, or what it links.
    Tool,
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
    let Figures {
        may_be_unsafe,
        safe_in_kernel,
        tools,
        linked,
    } = figures(&rows);
    let halves = [Half::Framework, Half::Isolation].map(|half| half_lines(&rows, half));
    let share = |lines: usize| lines as f64 / linked.max(1) as f64;
    if options.json {
        let object = json!({ "unsafe_lines": may_be_unsafe, "safe_kernel_lines": safe_in_kernel, "tool_lines": tools,
                    "linked_lines": linked, "unsafe_share": share(may_be_unsafe), "safe_kernel_share": share(safe_in_kernel),
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
    let percent = |lines| share(lines) * 100.0;
    tool::print(&format!(
        "crates that may write `unsafe`, with packages of the registry: {may_be_unsafe} of {linked} linked lines, {:.1} %\n\
         safe code in the kernel: {safe_in_kernel}, {:.1} %\n\
         tools that must be trusted, with the packages that they link: {tools}\n",
        percent(may_be_unsafe),
        percent(safe_in_kernel)
    ));
    Ok(())
}

fn table(rows: &[Row]) -> String {
    let parts = [
        (Part::Unsafe, "may write `unsafe`"),
        (Part::Package, "packages that only domains link"),
        (Part::Kernel, "safe, in the kernel"),
        (Part::Tool, "tools that must be trusted"),
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

/// The libraries in the kernel and why it links them.
fn reasons(rows: &[Row], packages: &Packages) -> Result<BTreeMap<String, String>> {
    let libraries = rows.iter().filter(|row| is_trusted(row)).filter_map(|row| {
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

/// Whether it is linked into the kernel or into every domain, and is not a policy, whose answers
/// the framework checks.
fn is_trusted(row: &Row) -> bool {
    matches!(row.part, Part::Unsafe | Part::Kernel) && row.name != "kernel/policy"
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
    let trusted = rows.iter().filter(|row| is_trusted(row));
    let lines = trusted
        .filter(|row| half(&row.name) == of)
        .map(|row| row.lines);
    lines.sum()
}

/// The three figures, and what the system links in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Figures {
    may_be_unsafe: usize,
    safe_in_kernel: usize,
    tools: usize,
    linked: usize,
}

fn figures(rows: &[Row]) -> Figures {
    let lines = |part: Part| -> usize {
        let of_part = rows.iter().filter(|row| row.part == part);
        of_part.map(|row| row.lines).sum()
    };
    let may_be_unsafe = lines(Part::Unsafe) + lines(Part::Package);
    let safe_in_kernel = lines(Part::Kernel);
    Figures {
        may_be_unsafe,
        safe_in_kernel,
        tools: lines(Part::Tool),
        linked: may_be_unsafe + safe_in_kernel + lines(Part::Untrusted),
    }
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
    let builders = BUILDERS.iter().filter_map(|name| packages.named(name));
    let in_tools: Vec<_> = builders
        .flat_map(|builder| packages.linked(builder))
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
    let of_system = linked
        .iter()
        .map(|it| (it, owner(project, &packages, &in_kernel, it.0)));
    let of_tools = tools
        .iter()
        .map(|it| (it, tool_owner(project, &packages, &in_tools, it.0)));
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

/// What a source file that a tool links belongs to: one of [`BUILDERS`], or something that they
/// link. `None` for what `xtask` has besides.
fn tool_owner(
    project: &Project,
    packages: &Packages,
    in_tools: &[&str],
    file: &Path,
) -> Option<(String, Part)> {
    let package = package_of(project, packages, file)?;
    let name = name_of(project, package);
    let name = match BUILDERS.contains(&package.name.as_str()) {
        true => name,
        // The system may link it, too.
        false => format!("{name}, in the tools"),
    };
    in_tools
        .contains(&package.id.as_str())
        .then_some((name, Part::Tool))
}

fn package_of<'a>(project: &Project, packages: &'a Packages, file: &Path) -> Option<&'a Package> {
    let is_below =
        |package: &&Package| file.starts_with(&package.folder) && !file.starts_with(&project.out);
    // A package may stand in the folder of another.
    let below = packages.list.iter().filter(is_below);
    below.max_by_key(|package| package.folder.as_os_str().len())
}

/// What a source file of the system belongs to, and where that counts; `None` for the compiler's
/// library.
fn owner(
    project: &Project,
    packages: &Packages,
    in_kernel: &[&str],
    file: &Path,
) -> Option<(String, Part)> {
    let Some(package) = package_of(project, packages, file) else {
        return generated(project, file);
    };
    let name = name_of(project, package);
    let is_in_kernel = in_kernel.contains(&package.id.as_str());
    match rules::zone(project, package) {
        Zone::Kernel if is_measuring(file) => {
            Some((format!("{name}: tests and measurements"), Part::Apart))
        }
        Zone::Abi | Zone::Runtime | Zone::Kernel | Zone::Campaign | Zone::Interfaces => {
            let is_safe = sources::forbids_unsafe(package).is_none();
            Some((name, if is_safe { Part::Kernel } else { Part::Unsafe }))
        }
        Zone::Policy => Some((name, Part::Kernel)),
        Zone::Foreign if is_in_kernel => Some((name, Part::Unsafe)),
        Zone::Foreign => Some((name, Part::Package)),
        _ if is_in_kernel => Some((name, Part::Kernel)),
        Zone::Host | Zone::Example => None,
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
    Some((format!("generated: {name}"), Part::Unsafe))
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
