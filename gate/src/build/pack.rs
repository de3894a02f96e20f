//! The archive that the kernel gets at boot: all images and the manifest.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::archive::Archive;
use crate::project::Project;
use crate::{stamp, wiring};

/// Packs the images and the manifest, if they are newer than the archive.
pub(super) fn pack(project: &Project, manifest: Option<&Path>) -> Result<PathBuf> {
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
        write_whole(&archive, &packed(project, &text)?)?;
        fs::write(&mark, wanted)?;
    }
    Ok(archive)
}

/// Writes `content` to `file`, which is renamed when complete: another run may be reading the old
/// one.
///
/// # Errors
/// If it cannot be written.
pub fn write_whole(file: &Path, content: &[u8]) -> Result<()> {
    fs::create_dir_all(file.parent().context("a file has a folder")?)?;
    let new = file.with_extension(format!("new{}", std::process::id()));
    fs::write(&new, content).with_context(|| new.display().to_string())?;
    fs::rename(&new, file).with_context(|| file.display().to_string())
}

/// The archive with all images and the text `manifest`, which is taken as it is.
///
/// # Errors
/// If an image cannot be read.
pub fn packed(project: &Project, manifest: &[u8]) -> Result<Vec<u8>> {
    packed_with(project, manifest, &[])
}

/// As [`packed`], with further files: name and content.
///
/// # Errors
/// As [`packed`].
pub fn packed_with(project: &Project, manifest: &[u8], files: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    archive.add("manifest.toml", manifest);
    let images = project.images();
    for file in files_below(&images)? {
        let name = file.strip_prefix(&images)?.display().to_string();
        archive.add(&name, &fs::read(&file)?);
    }
    for (name, content) in files {
        archive.add_program(name, content);
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
