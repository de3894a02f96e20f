//! `cargo xtask run --static`: static Linux programs in ring 3.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use machine::manifests;
use object::Object as _;
use object::read::elf::{ElfFile64, FileHeader as _};

use trefoil_gate::build;
use trefoil_gate::project::Project;
use trefoil_gate::{setup, stamp};

/// The manifest.
const MANIFEST: &str = "images/static.toml";
/// What the default manifest has that leads to files of a disk.
const OF_DISK: [&str; 6] = ["pci", "virtio-blk", "block", "ext2", "vfs", "keep"];
/// A line of the manifest, and what stands behind it where programs have a disk.
const GRANT: &str = "    spaces = \"kernel.spaces\",\n";
const DISK: &str = "    disk = \"vfs.respawn\",\n";
/// What the program is called in the archive.
const NAME: &str = "busybox";

/// The manifest's file; `with_disk`: one in which programs have the files of a disk, below `/disk`.
///
/// # Errors
/// It cannot be made of those that there are.
pub fn manifest(project: &Project, with_disk: bool) -> Result<PathBuf> {
    let own = project.root.join(MANIFEST);
    if !with_disk {
        return Ok(own);
    }
    let usual = fs::read_to_string(project.root.join("images/default.toml"))?;
    let file = project.out.join("static-disk.toml");
    let text = disk_added(&fs::read_to_string(own)?, &usual)?;
    build::write_whole(&file, text.as_bytes())?;
    Ok(file)
}

fn disk_added(own: &str, usual: &str) -> Result<String> {
    ensure!(own.contains(GRANT), "{MANIFEST} lacks {GRANT:?}");
    let mut text = own.replacen(GRANT, &format!("{GRANT}{DISK}"), 1);
    for domain in OF_DISK {
        text += &format!("\n{}\n", manifests::section(usual, domain)?);
    }
    Ok(text)
}

/// The archive with the images, this manifest and `program`, or else the host's busybox.
///
/// # Errors
/// There is none, or it is no static program.
pub fn archive(project: &Project, manifest: &Path, program: Option<&Path>) -> Result<PathBuf> {
    let program = match program {
        Some(program) => program.to_path_buf(),
        None => setup::busybox()?,
    };
    let bytes = fs::read(&program)
        .with_context(|| format!("cannot read the program {}", program.display()))?;
    if let Err(why) = check(&bytes) {
        bail!("{} {why}", program.display());
    }
    // Named by what is in it: another run may boot with another program or disk meanwhile.
    let inputs = stamp::of(&[&project.images(), manifest, &program]);
    let archive = project
        .out
        .join(format!("manifests/static-{inputs:016x}.cpio"));
    if !archive.exists() {
        let manifest = fs::read(manifest)?;
        let packed = build::packed_with(project, &manifest, &[(NAME, &bytes)])?;
        build::write_whole(&archive, &packed)?;
    }
    Ok(archive)
}

/// Whether it is a program that `linux` can load.
fn check(bytes: &[u8]) -> Result<(), &'static str> {
    let Ok(file) = ElfFile64::<object::Endianness>::parse(bytes) else {
        return Err("is no program for 64-bit Linux");
    };
    let header = file.elf_header();
    let kind = header.e_type(file.endian());
    if file.architecture() != object::Architecture::X86_64 {
        return Err("is no program for x86-64");
    }
    if kind == object::elf::ET_DYN {
        return Err(
            "is linked dynamically, or may be loaded anywhere: only static programs at a fixed address run (Debian's package busybox-static has one)",
        );
    }
    if kind != object::elf::ET_EXEC {
        return Err("is no program");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_comes_with_all_that_leads_to_it() {
        let text = |name: &str| {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
            fs::read_to_string(root.join(name)).expect("it is there")
        };
        let (own, usual) = (text(MANIFEST), text("images/default.toml"));
        let with_disk = disk_added(&own, &usual).expect("it has what is changed");
        assert_eq!(
            with_disk.matches("[domain.").count(),
            own.matches("[domain.").count() + OF_DISK.len()
        );
        assert!(with_disk.contains(&format!("{GRANT}{DISK}")));
        assert!(disk_added("[boot]", &usual).is_err());
    }

    #[test]
    fn runs_with_other_programs_or_manifests_have_archives_of_their_own() {
        let root = std::env::temp_dir().join(format!("trefoil-static-{}", std::process::id()));
        let (target, out) = (root.clone(), root.join("out"));
        let project = Project {
            root: root.clone(),
            target,
            out,
        };
        fs::create_dir_all(project.images()).expect("a folder can be made");
        let file = |name: &str, bytes: &[u8]| {
            fs::write(root.join(name), bytes).expect("a file can be written");
            root.join(name)
        };
        let manifests = [file("plain", b"[boot]"), file("disk", b"[boot]\n# disk")];
        let busybox = fs::read(setup::busybox().expect("there is one")).expect("it can be read");
        let other = [&busybox[..], b"more"].concat();
        let programs = [file("one", &busybox), file("two", &other)];
        let mut archives = Vec::new();
        for (manifest, program) in manifests
            .iter()
            .flat_map(|m| programs.iter().map(move |p| (m, p)))
        {
            let packed = || archive(&project, manifest, Some(program)).expect("it is packed");
            let path = packed();
            assert_eq!(path, packed());
            archives.push(path);
        }
        archives.sort();
        archives.dedup();
        assert_eq!(archives.len(), 4, "{archives:?}");
        fs::remove_dir_all(root).expect("the folder can be removed");
    }

    #[test]
    fn what_is_no_static_program_is_refused() {
        assert!(check(b"#!/bin/sh\n").is_err_and(|why| why.contains("no program")));
        // This test itself is linked dynamically.
        let own = std::env::current_exe().expect("there is a program");
        let bytes = fs::read(own).expect("it can be read");
        assert!(check(&bytes).is_err_and(|why| why.contains("dynamically")));
    }
}
