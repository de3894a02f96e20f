//! `cargo xtask run --mini`: static Linux programs in ring 3.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use object::Object as _;
use object::read::elf::{ElfFile64, FileHeader as _};

use trefoil_gate::build;
use trefoil_gate::project::Project;
use trefoil_gate::setup;

/// The manifest.
pub const MANIFEST: &str = "images/mini.toml";
/// What the program is called in the archive.
const NAME: &str = "busybox";

/// The archive with the images and `program`, or else the host's busybox.
///
/// # Errors
/// There is none, or it is no static program.
pub fn archive(project: &Project, program: Option<&Path>) -> Result<PathBuf> {
    let program = match program {
        Some(program) => program.to_path_buf(),
        None => setup::busybox()?,
    };
    let bytes = fs::read(&program)
        .with_context(|| format!("cannot read the program {}", program.display()))?;
    if let Err(why) = check(&bytes) {
        bail!("{} {why}", program.display());
    }
    let manifest = fs::read(project.root.join(MANIFEST))?;
    let archive = project.out.join("mini.cpio");
    let new = archive.with_extension(format!("new{}", std::process::id()));
    fs::write(
        &new,
        build::packed_with(project, &manifest, &[(NAME, &bytes)])?,
    )?;
    fs::rename(&new, &archive)?;
    Ok(archive)
}

/// Whether it is a program that `mini` can load.
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
    fn what_is_no_static_program_is_refused() {
        assert!(check(b"#!/bin/sh\n").is_err_and(|why| why.contains("no program")));
        // This test itself is linked dynamically.
        let own = std::env::current_exe().expect("there is a program");
        let bytes = fs::read(own).expect("it can be read");
        assert!(check(&bytes).is_err_and(|why| why.contains("dynamically")));
    }
}
