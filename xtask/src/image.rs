//! `cargo xtask image`: kernel, domains, disk and a script that boots them, in one file, for
//! somebody without the sources. The file is a tar archive of a folder, with checksums in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use machine::debian;
use machine::qemu::Machine;
use trefoil_gate::project::Project;
use trefoil_gate::{build, setup, tool};

/// Where it goes.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The file to make
    #[arg(value_name = "OUT.tar")]
    pub out: PathBuf,
    /// The disk, made by `cargo xtask debian`; without it, one of the default packages
    #[arg(long, value_name = "IMG")]
    pub disk: Option<PathBuf>,
}

/// The folder in the archive, and the files in it.
const FOLDER: &str = "trefoil";
const KERNEL: &str = "kernel";
const ARCHIVE: &str = "domains.cpio";
const DISK: &str = "disk.img";
const SCRIPT: &str = "run.sh";
const SUMS: &str = "SHA256SUMS";

/// The command.
///
/// # Errors
/// If something cannot be built or written, or the disk has no shell.
pub fn image(project: &Project, options: &Options) -> Result<()> {
    setup::machine()?;
    let disk = match &options.disk {
        Some(disk) => {
            machine::programs::expect_shell(disk)?;
            disk.clone()
        }
        None => debian::default(project)?,
    };
    let built = build::build(project, Some(&project.root.join("images/linux.toml")))?;
    let place = project.out.join(format!("image-{}", std::process::id()));
    let folder = place.join(FOLDER);
    fs::create_dir_all(&folder)?;
    fs::copy(&built.kernel, folder.join(KERNEL))?;
    fs::copy(&built.archive, folder.join(ARCHIVE))?;
    let mut copied = Command::new("cp");
    copied.arg("--sparse=always").arg(disk);
    tool::output(copied.arg(folder.join(DISK)))?;
    fs::write(folder.join(SCRIPT), script())?;
    let mut summed = Command::new(tool::need("sha256sum", "coreutils")?);
    summed.current_dir(&folder);
    let sums = tool::output(summed.args([KERNEL, ARCHIVE, DISK, SCRIPT]))?;
    fs::write(folder.join(SUMS), sums)?;
    let packed = pack(&place, &options.out);
    fs::remove_dir_all(place)?;
    packed?;
    println!("{}", options.out.display());
    Ok(())
}

fn pack(place: &Path, out: &Path) -> Result<()> {
    // Under another name, so that an interrupted run leaves no half an image.
    let new = out.with_extension(format!("new{}", std::process::id()));
    let mut tar = Command::new(tool::need("tar", "tar")?);
    tar.args(["--create", "--sparse", "--owner=0", "--group=0", "--file"]);
    let made = tool::output(tar.arg(&new).arg("--directory").arg(place).arg(FOLDER));
    if made.is_err() {
        let _ = fs::remove_file(&new);
    }
    made?;
    fs::rename(&new, out).with_context(|| format!("cannot make {}", out.display()))
}

/// The script: one line of QEMU, as `run` has it, with this folder's files.
fn script() -> String {
    let mut machine = Machine::new(Path::new(KERNEL), Path::new("."));
    (machine.archive, machine.disk) = (Some(ARCHIVE.into()), Some(DISK.into()));
    (machine.memory, machine.interactive) = ("1G".into(), true);
    let words = machine.portable();
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    format!(
        "#!/bin/sh\n\
         # Boots Trefoil with Debian's programs in QEMU, in this terminal: `poweroff` leaves, and\n\
         # Ctrl-] x at once. `sha256sum --check {SUMS}` compares what was unpacked; after a boot the\n\
         # disk has changed. KVM is used where it is there: `KVM=0 sh {SCRIPT}` does without.\n\
         cd \"$(dirname \"$0\")\" || exit\n\
         command -v qemu-system-x86_64 >/dev/null || {{\n    \
             echo 'qemu-system-x86_64 is missing (Debian: apt install qemu-system-x86)' >&2\n    \
             exit 1\n\
         }}\n\
         accelerator='-accel tcg -cpu max'\n\
         if [ \"${{KVM-1}}\" = 1 ] && [ -r /dev/kvm ] && [ -w /dev/kvm ]; then\n    \
             accelerator='-accel kvm -cpu host'\n\
         fi\n\
         exec qemu-system-x86_64 $accelerator {}\n",
        words.join(" ")
    )
}

/// A word as the shell has to be given it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,=:".contains(&byte);
    match word.bytes().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_names_the_files_beside_it_and_chooses_the_processor_itself() {
        let script = script();
        let line = script.lines().last().expect("it has lines");
        for part in ["-kernel kernel ", "-initrd domains.cpio ", "file=disk.img,"] {
            assert!(line.contains(part), "{line}");
        }
        assert_eq!(
            line.matches("-accel").count() + line.matches("-cpu").count(),
            0
        );
        assert!(!line.contains("-bios") && !line.contains("/tmp"), "{line}");
        assert_eq!(script.matches("-accel tcg").count(), 1);
        let checked = Command::new("sh").args(["-n", "-c", &script]).status();
        assert!(checked.expect("there is a shell").success());
    }

    #[test]
    fn words_of_the_shell_stay_words() {
        assert_eq!(quoted("a,b=c"), "a,b=c");
        assert_eq!(quoted("a b'c"), "'a b'\\''c'");
    }
}
