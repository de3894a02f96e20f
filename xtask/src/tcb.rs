//! `cargo xtask tcb`: the trusted share of the code that is linked into the default image.
//!
//! Counted are lines with code: no comments, no blank lines, no tests. Trusted is what runs in the
//! kernel or writes code for it: `kernel/*` but the policies, what `idlc` generates, `idlc` itself,
//! and every library and package that the kernel links. Everything else that the kernel, a domain
//! of the default manifest or a program links is not trusted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use crate::lexer;
use crate::packages::{self, Domain, Package, Packages};
use crate::project::Project;
use crate::rules::{self, Zone};
use crate::{setup, trust};

/// How to show it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

/// A folder or package, and what it contributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    name: String,
    is_trusted: bool,
    lines: usize,
    unsafes: usize,
}

/// The command.
///
/// # Errors
/// If the sources cannot be read.
pub fn tcb(project: &Project, options: &Options) -> Result<()> {
    let rows = rows(project)?;
    let (trusted, total) = sums(&rows);
    let share = if total == 0 {
        0.0
    } else {
        trusted as f64 / total as f64
    };
    if options.json {
        println!(
            "{}",
            json!({ "trusted_lines": trusted, "total_lines": total, "trusted_share": share })
        );
        return Ok(());
    }
    for (title, is_trusted) in [("trusted", true), ("not trusted", false)] {
        println!("{:<44} {:>8} {:>8}", title, "lines", "unsafe");
        for row in rows.iter().filter(|row| row.is_trusted == is_trusted) {
            println!("  {:<42} {:>8} {:>8}", row.name, row.lines, row.unsafes);
        }
    }
    println!(
        "{trusted} of {total} lines are trusted: {:.1} %",
        share * 100.0
    );
    Ok(())
}

fn sums(rows: &[Row]) -> (usize, usize) {
    let trusted = rows
        .iter()
        .filter(|row| row.is_trusted)
        .map(|row| row.lines)
        .sum();
    (trusted, rows.iter().map(|row| row.lines).sum())
}

fn rows(project: &Project) -> Result<Vec<Row>> {
    let toolchain = setup::toolchain()?;
    let packages = packages::all(project, &toolchain)?;
    let kernel = packages
        .named("image")
        .context("there is no kernel/image")?;
    let mut rows = BTreeMap::new();
    for package in packages.linked(kernel) {
        let is_trusted = rules::zone(project, package) != Zone::Policy;
        rows.insert(package.id.clone(), row(project, package, is_trusted)?);
    }
    for package in domains(project, &packages)?
        .into_iter()
        .flat_map(|domain| packages.linked(domain))
    {
        if !rows.contains_key(&package.id) {
            let is_trusted = rules::zone(project, package) == Zone::Kernel;
            rows.insert(package.id.clone(), row(project, package, is_trusted)?);
        }
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.push(row(
        project,
        packages.named("idlc").context("there is no idlc")?,
        true,
    )?);
    let model = idlc::load(&project.root).map_err(|report| anyhow::anyhow!("{report}"))?;
    rows.push(generated("generated: proxies", &idlc::emit_proxies(&model)));
    rows.push(generated(
        "generated: interfaces",
        &idlc::emit_interfaces(&model),
    ));
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

/// The domains that the default manifest starts, and all programs.
fn domains<'a>(project: &Project, packages: &'a Packages) -> Result<Vec<&'a Package>> {
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
        .filter(|(_, domain)| is_used(domain))
        .map(|(package, _)| package)
        .collect())
}

fn row(project: &Project, package: &Package, is_trusted: bool) -> Result<Row> {
    let name = match package.is_ours {
        true => project.relative(&package.folder).display().to_string(),
        false => format!("dependency {}", package.name),
    };
    let mut row = Row {
        name,
        is_trusted,
        ..Row::default()
    };
    let sources = package.folder.join("src");
    for file in trust::rust_files(&sources)
        .unwrap_or_default()
        .iter()
        .filter(|file| !is_test(file, &sources))
    {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        row.lines += lexer::code_lines(&text).len();
        row.unsafes += unsafes(&text);
    }
    Ok(row)
}

fn generated(name: &str, text: &str) -> Row {
    Row {
        name: name.into(),
        is_trusted: true,
        lines: lexer::code_lines(text).len(),
        unsafes: unsafes(text),
    }
}

/// Whether the file is compiled for tests alone, by its name.
fn is_test(file: &Path, sources: &Path) -> bool {
    let parts = file.strip_prefix(sources).unwrap_or(file).iter();
    parts.into_iter().any(|part| {
        matches!(
            part.to_str(),
            Some("tests" | "tests.rs" | "test" | "test.rs")
        )
    })
}

fn unsafes(text: &str) -> usize {
    lexer::code_tokens(text)
        .iter()
        .filter(|token| token.text == "unsafe")
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_trusted_lines_over_all_lines() {
        let row = |is_trusted, lines| Row {
            is_trusted,
            lines,
            ..Row::default()
        };
        assert_eq!(
            sums(&[row(true, 30), row(false, 60), row(false, 10)]),
            (30, 100)
        );
    }

    #[test]
    fn generated_code_is_trusted_and_its_unsafe_is_counted() {
        let row = generated(
            "x",
            "// unsafe\nunsafe impl A for B {}\n\nfn a() { unsafe { b() } }\n",
        );
        assert_eq!((row.lines, row.unsafes, row.is_trusted), (2, 2, true));
    }

    #[test]
    fn files_for_tests_are_told_by_their_names() {
        let sources = Path::new("/w/lib/a/src");
        assert!(is_test(&sources.join("tests.rs"), sources));
        assert!(is_test(&sources.join("tests/b.rs"), sources));
        assert!(!is_test(&sources.join("latest.rs"), sources));
    }
}
