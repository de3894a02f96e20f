//! A copy of the sources in which a guide is carried out: what the kernel and `init` need, and the
//! files that the guide adds.
//!
//! The copy keeps its place between runs, so that only what has changed is compiled again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use trefoil_gate::build::{self, Built};
use trefoil_gate::project::Project;

/// What is copied. `lab/faults` is named by the kernel's manifest, and names a part of
/// `domains/libs`.
const PARTS: [&str; 9] = [
    "Cargo.lock",
    "abi",
    "domains/init",
    "domains/libs",
    "domains/template",
    "kernel",
    "lab/faults",
    "lib",
    "runtime",
];

/// There is one place, for one test at a time.
static PLACE: Mutex<()> = Mutex::new(());

/// The copy.
pub struct Scratch {
    project: Project,
    /// The original's `Cargo.toml`.
    workspace: String,
    _place: MutexGuard<'static, ()>,
}

impl Scratch {
    /// Copies the sources as they are now, without what an earlier test has added.
    ///
    /// # Errors
    /// If they cannot be copied.
    pub fn new(from: &Project) -> Result<Self> {
        let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
        let root = from.out.join("scratch");
        for folder in ["domains", "lab", "images"] {
            fs::create_dir_all(root.join(folder))?;
        }
        for entry in fs::read_dir(root.join("domains"))? {
            let entry = entry?;
            let kept = Path::new("domains").join(entry.file_name());
            if !PARTS.iter().any(|part| kept == Path::new(part)) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        for part in PARTS {
            same(&from.root.join(part), &root.join(part))?;
        }
        let workspace = fs::read_to_string(from.root.join("Cargo.toml"))?;
        let target = root.join("target");
        let out = target.join("trefoil");
        Ok(Scratch {
            project: Project { root, target, out },
            workspace,
            _place: place,
        })
    }

    /// Adds a file, or puts it in the place of one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&self, path: &str, text: &str) -> Result<()> {
        write(&self.project.root.join(path), text.as_bytes())
    }

    /// Builds the system that the manifest at `manifest` describes.
    ///
    /// # Errors
    /// If it does not build.
    pub fn build(&self, manifest: &str) -> Result<Built> {
        let root = &self.project.root;
        let workspace = members_of(root, &quickly_built(&self.workspace)?)?;
        write(&root.join("Cargo.toml"), workspace.as_bytes())?;
        build::build(&self.project, Some(&root.join(manifest)))
    }
}

/// The workspace's manifest with less work for the compiler: what is built is booted once.
fn quickly_built(manifest: &str) -> Result<String> {
    let [usual, quick] = [
        "opt-level = 3\npanic = \"abort\"\ncodegen-units = 1\n",
        "opt-level = 1\npanic = \"abort\"\ncodegen-units = 16\n",
    ];
    ensure!(manifest.contains(usual), "the profile is another one");
    Ok(manifest.replace(usual, quick))
}

/// The workspace's manifest without the members that are not in the folder `root`: cargo refuses a
/// pattern that nothing fits.
fn members_of(root: &Path, manifest: &str) -> Result<String> {
    let mut kept = String::new();
    for line in manifest.lines() {
        let member = line
            .strip_prefix("    \"")
            .and_then(|rest| rest.strip_suffix("\","));
        if member.map_or(Ok(true), |member| is_there(root, member))? {
            kept += line;
            kept += "\n";
        }
    }
    Ok(kept)
}

/// Whether a path, or one that fits a pattern with `*` at its end, is in the folder `root`.
fn is_there(root: &Path, member: &str) -> Result<bool> {
    let folder = root.join(member.split("/*").next().unwrap_or(member));
    let is_pattern = member.contains('*');
    Ok(folder.is_dir() && (!is_pattern || !names_in(&folder)?.is_empty()))
}

/// Writes a file unless it has this content: an untouched one need not be compiled again.
fn write(file: &Path, content: &[u8]) -> Result<()> {
    if fs::read(file).is_ok_and(|there| there == content) {
        return Ok(());
    }
    fs::create_dir_all(file.parent().context("a file has a folder")?)?;
    fs::write(file, content).with_context(|| file.display().to_string())
}

/// Makes `to` the same as `from`, file or folder.
fn same(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        let content = fs::read(from).with_context(|| from.display().to_string())?;
        return write(to, &content);
    }
    fs::create_dir_all(to)?;
    let names = names_in(from)?;
    for name in names_in(to)?.difference(&names) {
        let extra = to.join(name);
        match extra.is_dir() {
            true => fs::remove_dir_all(extra)?,
            false => fs::remove_file(extra)?,
        }
    }
    names
        .iter()
        .try_for_each(|name| same(&from.join(name), &to.join(name)))
}

fn names_in(folder: &Path) -> Result<BTreeSet<OsString>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    entries
        .map(|entry| Ok(entry?.file_name()))
        .collect::<Result<_>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_not_there_are_left_out() {
        let manifest =
            "members = [\n    \"src\",\n    \"no\",\n    \"src/*\",\n    \"no/*\",\n]\nx = \"y\"\n";
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let expected = "members = [\n    \"src\",\n    \"src/*\",\n]\nx = \"y\"\n";
        assert_eq!(members_of(root, manifest).expect("readable"), expected);
    }

    #[test]
    fn a_folder_becomes_the_same() {
        let place = std::env::temp_dir().join(format!("trefoil-same-{}", std::process::id()));
        let (from, to) = (place.join("from"), place.join("to"));
        for (file, text) in [
            ("from/a/b", "1"),
            ("from/c", "2"),
            ("to/a/old", "3"),
            ("to/c", "4"),
        ] {
            write(&place.join(file), text.as_bytes()).expect("written");
        }
        same(&from, &to).expect("copied");
        assert_eq!(fs::read(to.join("a/b")).expect("there"), b"1");
        assert_eq!(fs::read(to.join("c")).expect("there"), b"2");
        assert!(!to.join("a/old").exists());
        fs::remove_dir_all(place).expect("removed");
    }
}
