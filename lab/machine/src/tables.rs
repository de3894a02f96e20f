//! Symbols for the system's own disk: `dmesg -b` looks for them in `/lib/symbols`, by the builds of
//! the kernel and of the images.

use std::fs;
use std::path::Path;
use std::process::Command;

use abi::image::SIGNATURE_LENGTH;
use anyhow::{Context, Result, ensure};
use symbols::{Made, compact_all};
use trefoil_gate::project::Project;
use trefoil_gate::tool;

use crate::disk;

/// Where on the disk they lie.
const FOLDER: &str = "/lib/symbols";
/// Digits of a build.
const DIGITS: usize = 16;

/// Makes the tables of `kernel` and of the images that are called so, or of all if there are no
/// names, in the new folder `to`.
///
/// # Errors
/// If an image is not there, or a file cannot be made.
pub fn make(project: &Project, kernel: &Path, names: &[String], to: &Path) -> Result<Vec<Made>> {
    let mut images = builds(&project.images())?;
    for name in names {
        let is_known = images.iter().any(|(image, _)| image == name);
        ensure!(is_known, "there is no image `{name}`: build first");
    }
    images.retain(|(image, _)| names.is_empty() || names.contains(image));
    let symbols = project.out.join(symbols::FOLDER);
    compact_all(&symbols, kernel, &images, &project.root, to)
}

/// Name and build of all images below `folder`.
fn builds(folder: &Path) -> Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(builds(&path)?);
            continue;
        }
        let image = fs::read(&path)?;
        let signature = image.len().checked_sub(SIGNATURE_LENGTH);
        let build = signature.and_then(|at| image.get(at..)?.first_chunk());
        if let Some(build) = build {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.push((name, u64::from_be_bytes(*build)));
        }
    }
    found.sort();
    Ok(found)
}

/// Puts what was made in the folder `from` on `disk`, in place of what is there of older builds.
///
/// # Errors
/// If it does not fit, or the disk is damaged.
pub fn put(disk: &Path, from: &Path, made: &[Made]) -> Result<()> {
    disk::repair(disk)?;
    let mut script = String::new();
    for folder in ["/lib", FOLDER] {
        if !disk::is_folder(disk, folder)? {
            script += &format!("mkdir {folder}\n");
        }
    }
    script += &format!("cd {FOLDER}\n");
    for old in there(disk)? {
        script += &format!("rm {old}\n");
    }
    for table in made {
        let file = from.join(&table.name);
        script += &format!("write \"{}\" {}\n", file.display(), table.name);
    }
    disk::change(disk, &script)?;
    // debugfs says nothing of a disk that is full, and gives files their lengths all the same.
    let back = from.join("back");
    fs::create_dir_all(&back)?;
    let read = disk::dump_tree(disk, FOLDER, &back);
    let is_there = |table: &Made| {
        let [old, new] = [&back.join("symbols"), from].map(|it| fs::read(it.join(&table.name)));
        old.is_ok() && old.ok() == new.ok()
    };
    let is_whole = read.is_ok() && made.iter().all(is_there);
    fs::remove_dir_all(&back)?;
    ensure!(is_whole, "the symbols do not fit on {}", disk.display());
    Ok(())
}

/// The builds of which symbols are on the disk.
fn there(disk: &Path) -> Result<Vec<String>> {
    let mut command = Command::new(tool::need("debugfs", "e2fsprogs")?);
    let list = tool::captured(command.args(["-R", &format!("ls -p {FOLDER}")]).arg(disk))?;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    Ok(list.lines().filter_map(listed).collect())
}

/// The name in a line such as `/13/100644/0/0/0ff475ab16808da8/2612/`.
fn listed(line: &str) -> Option<String> {
    let name = line.split('/').nth(5)?;
    let is_build = name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_build.then(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn symbols_are_known_by_their_names() {
        let line = "/13/100644/0/0/0ff475ab16808da8/2612/";
        assert_eq!(listed(line), Some("0ff475ab16808da8".into()));
        for other in ["/2/040755/0/0/..//", "/13/100644/0/0/notes/2612/", "", "/"] {
            assert_eq!(listed(other), None, "{other}");
        }
    }
}
