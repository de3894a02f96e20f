//! Writes the workspace that the images are linked in: one small package per domain, with nothing
//! but the entry that joins `domain-rt`, the generated entry and the domain's `start` function.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::packages::{Domain, Package};
use crate::project::Project;

/// Writes the workspace for `domains` into `folder`. Files that would not change are left alone, so
/// that cargo does not build them again.
///
/// # Errors
/// If a file cannot be written.
pub fn write(project: &Project, folder: &Path, domains: &[(&Package, &Domain)]) -> Result<()> {
    let images: Vec<_> = domains
        .iter()
        .map(|(_, domain)| domain.image.as_str())
        .collect();
    put(&folder.join("Cargo.toml"), &workspace(&images))?;
    for (package, domain) in domains {
        let member = folder.join(&domain.image);
        put(
            &member.join("Cargo.toml"),
            &manifest(&project.root, package, domain),
        )?;
        put(&member.join("main.rs"), &source(package, domain))?;
    }
    // The same versions of everything as in the kernel.
    let lock = fs::read_to_string(project.root.join("Cargo.lock")).unwrap_or_default();
    let copied = folder.join("Cargo.lock.copied");
    if fs::read_to_string(&copied).unwrap_or_default() != lock
        || !folder.join("Cargo.lock").exists()
    {
        put(&folder.join("Cargo.lock"), &lock)?;
        put(&copied, &lock)?;
    }
    Ok(())
}

fn workspace(images: &[&str]) -> String {
    format!(
        "# Written by `cargo xtask build`.\n[workspace]\nresolver = \"3\"\nmembers = {images:?}\n\n\
         [profile.release]\nopt-level = 3\npanic = \"abort\"\ncodegen-units = 1\ndebug = 1\n"
    )
}

fn manifest(root: &Path, package: &Package, domain: &Domain) -> String {
    let Domain { image, .. } = domain;
    let dependency = |name: &str, path: &Path| format!("{name} = {{ path = {path:?} }}\n");
    // The glue has a name of its own, so that it may depend on a package called as the image.
    let mut text = format!(
        "# Written by `cargo xtask build`.\n[package]\nname = \"glue-{image}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [[bin]]\nname = \"{image}\"\npath = \"main.rs\"\ntest = false\n\n[dependencies]\n"
    );
    text += &dependency("interfaces", &root.join("abi/interfaces"));
    text += &dependency("domain-rt", &root.join("runtime"));
    text += &dependency(&package.name, &package.folder);
    text
}

fn source(package: &Package, domain: &Domain) -> String {
    let (entry, name) = (&domain.entry, package.name.replace('-', "_"));
    format!(
        "//! Written by `cargo xtask build`: the entry of `{}`.\n#![no_std]\n#![no_main]\n\n\
         domain_rt::entry!(interfaces::domains::{entry}, {name}::start);\n",
        domain.image
    )
}

fn put(file: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(file).is_ok_and(|present| present == text) {
        return Ok(());
    }
    let write = || {
        fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
        fs::write(file, text)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Package, Domain) {
        let package = Package {
            name: "virtio-blk".into(),
            folder: "/w/domains/drivers/virtio-blk".into(),
            ..Package::default()
        };
        let domain = Domain {
            image: "virtio-blk".into(),
            entry: "virtio_blk".into(),
            path: "domains/virtio-blk".into(),
            update: None,
        };
        (package, domain)
    }

    #[test]
    fn the_glue_names_entry_and_start() {
        let (package, domain) = sample();
        let text = source(&package, &domain);
        assert!(
            text.ends_with(
                "domain_rt::entry!(interfaces::domains::virtio_blk, virtio_blk::start);\n"
            )
        );
        let manifest = manifest(Path::new("/w"), &package, &domain);
        assert!(manifest.contains("virtio-blk = { path = \"/w/domains/drivers/virtio-blk\" }\n"));
        assert!(manifest.contains("domain-rt = { path = \"/w/runtime\" }\n"));
    }

    #[test]
    fn what_is_already_there_is_not_written_again() {
        let file = std::env::temp_dir()
            .join(format!("trefoil-glue-{}", std::process::id()))
            .join("a");
        put(&file, "text").expect("written");
        let first = fs::metadata(&file)
            .and_then(|meta| meta.modified())
            .expect("is there");
        put(&file, "text").expect("left alone");
        assert_eq!(
            fs::metadata(&file)
                .and_then(|meta| meta.modified())
                .expect("is there"),
            first
        );
        fs::remove_dir_all(file.parent().expect("has one")).expect("removed");
    }
}
