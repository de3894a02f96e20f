//! What the benchmarks run beside us: Debian's Linux kernel with a busybox shell.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use trefoil_gate::archive::Archive;
use trefoil_gate::project::Project;
use trefoil_gate::{build, tool};

/// What the shell of the peer prints when it waits for a line.
pub const PROMPT: &str = "# ";

const KERNEL_PACKAGE: &str = "linux-image-cloud-amd64";
const INIT: &str = "#!/bin/busybox sh\nexec /bin/busybox sh </dev/console >/dev/console 2>&1\n";
const INIT_BEGIN: &str = "#!/bin/busybox sh\nbb=/bin/busybox\n$bb mount -t devtmpfs dev /dev\n";

/// The kernel's modules for a virtio disk, in the order in which they can be loaded. One that is
/// missing is built in.
const MODULES: [&str; 6] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    DISK_MODULE,
];
/// The driver of virtio disks.
const DISK_MODULE: &str = "virtio_blk";

/// A kernel and its initial disk.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The kernel.
    pub kernel: PathBuf,
    /// The archive with its files.
    pub archive: PathBuf,
    /// The shell and its tools, linked statically.
    busybox: PathBuf,
    /// The folder with [`MODULES`].
    modules: PathBuf,
    /// Programs of this machine that its initial disks have too, with the libraries that they are
    /// linked with.
    along: Vec<PathBuf>,
}

/// Debian's kernel for virtual machines and a busybox shell; fetched from Debian the first time.
///
/// # Errors
/// If the packages cannot be fetched or unpacked.
pub fn debian(project: &Project) -> Result<Peer> {
    let folder = project.out.join("peers");
    let peer = Peer {
        kernel: folder.join("vmlinuz"),
        archive: folder.join("busybox.cpio"),
        busybox: folder.join("busybox"),
        modules: folder.join("modules"),
        along: Vec::new(),
    };
    if peer.kernel.exists() && peer.archive.exists() && peer.modules.exists() {
        return Ok(peer);
    }
    fs::create_dir_all(&folder)?;
    tool::timed("fetching Debian's kernel and busybox", || {
        unpack(&folder, &real_package(KERNEL_PACKAGE)?)?;
        unpack(&folder, "busybox-static")
    })?;
    let kernels = fs::read_dir(folder.join("unpacked/boot"))?
        .flatten()
        .map(|entry| entry.path());
    let kernel = kernels
        .into_iter()
        .find(|path| path.display().to_string().contains("/vmlinuz-"));
    let busybox = ["bin/busybox", "usr/bin/busybox"].map(|path| folder.join("unpacked").join(path));
    let busybox = busybox
        .iter()
        .find(|path| path.exists())
        .context("the package has no busybox")?;
    fs::write(&peer.archive, initial_disk(&fs::read(busybox)?))?;
    fs::copy(busybox, &peer.busybox)?;
    fs::copy(kernel.context("the package has no kernel")?, &peer.kernel)?;
    keep_modules(&folder.join("unpacked/lib/modules"), &peer.modules)?;
    fs::remove_dir_all(folder.join("unpacked"))?;
    Ok(peer)
}

fn initial_disk(busybox: &[u8]) -> Vec<u8> {
    let mut archive = root(busybox);
    archive.add_program("init", INIT.as_bytes());
    archive.finish()
}

fn root(busybox: &[u8]) -> Archive {
    let mut archive = Archive::default();
    archive.add_folder("dev");
    archive.add_folder("bin");
    archive.add_device("dev/console", 5, 1);
    archive.add_program("bin/busybox", busybox);
    archive
}

/// Copies [`MODULES`] from the unpacked package into the folder `to`.
fn keep_modules(unpacked: &Path, to: &Path) -> Result<()> {
    let all = build::files_below(unpacked)?;
    fs::create_dir_all(to)?;
    for module in MODULES.map(|name| format!("{name}.ko")) {
        let file = all
            .iter()
            .find(|path| path.file_name().is_some_and(|name| *name == *module));
        if let Some(file) = file {
            fs::copy(file, to.join(module))?;
        }
    }
    Ok(())
}

impl Peer {
    /// An initial disk whose first program loads the drivers, mounts the virtio disk as `kind` of
    /// file system on `/disk`, runs `program` there, prints `end`, and stops the machine.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn disk_with(
        &self,
        program: &[u8],
        option: &str,
        kind: &str,
        end: &str,
    ) -> Result<Vec<u8>> {
        let script = format!(
            "$bb mkdir /disk && $bb mount -t {kind} /dev/vda /disk && cd /disk && /program {option}\n\
             cd /\n$bb umount /disk"
        );
        self.drivers_with(program, "", &script, end)
    }

    /// As [`script_with`](Self::script_with), after the drivers were loaded, that of the disk with
    /// `parameters`.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn drivers_with(
        &self,
        program: &[u8],
        parameters: &str,
        script: &str,
        end: &str,
    ) -> Result<Vec<u8>> {
        let mut archive = self.with(program)?;
        archive.add_folder("modules");
        let mut init = String::from(INIT_BEGIN);
        for name in MODULES {
            let path = self.modules.join(format!("{name}.ko"));
            let its = match name {
                DISK_MODULE => parameters,
                _ => "",
            };
            if path.exists() {
                archive.add(&format!("modules/{name}.ko"), &fs::read(path)?);
                init += &format!("$bb insmod /modules/{name}.ko {its}\n");
            }
        }
        init += &format!("{script}\necho {end}\n$bb poweroff -f\n");
        archive.add_program("init", init.as_bytes());
        Ok(archive.finish())
    }

    /// An initial disk whose first program runs the lines of `script`, where `/program` is
    /// `program` and `$bb` is busybox, prints `end`, and stops the machine.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn script_with(&self, program: &[u8], script: &str, end: &str) -> Result<Vec<u8>> {
        let mut archive = self.with(program)?;
        let init = format!("{INIT_BEGIN}{script}\necho {end}\n$bb poweroff -f\n");
        archive.add_program("init", init.as_bytes());
        Ok(archive.finish())
    }

    /// Has initial disks take along a program of this machine, at its path, with the libraries that
    /// it is linked with.
    ///
    /// # Errors
    /// If it cannot be told what it is linked with.
    pub fn take_along(&mut self, program: &Path) -> Result<()> {
        let told = tool::output(Command::new("ldd").arg(program))?;
        self.along.push(program.into());
        self.along.extend(libraries(&told));
        Ok(())
    }

    /// The shell, its tools, and `program`.
    fn with(&self, program: &[u8]) -> Result<Archive> {
        let mut archive = root(&fs::read(&self.busybox)?);
        archive.add_program("program", program);
        let inside = |path: &'_ Path| {
            path.display()
                .to_string()
                .trim_start_matches('/')
                .to_string()
        };
        let folders = self.along.iter().flat_map(|file| file.ancestors().skip(1));
        let folders = folders.map(inside).filter(|folder| !folder.is_empty());
        // A folder comes before what is in it.
        for folder in folders.collect::<BTreeSet<_>>() {
            archive.add_folder(&folder);
        }
        for file in &self.along {
            archive.add_program(&inside(file), &fs::read(file)?);
        }
        Ok(archive)
    }
}

/// The files that `ldd` tells of: what follows an arrow, and the loader, which stands alone.
fn libraries(told: &str) -> impl Iterator<Item = PathBuf> {
    let paths = told.lines().filter_map(|line| {
        let line = line.split_once("=> ").map_or(line, |(_, path)| path);
        line.trim()
            .split(' ')
            .next()
            .filter(|path| path.starts_with('/'))
    });
    paths.map(PathBuf::from)
}

/// The package that the metapackage `name` stands for at present.
fn real_package(name: &str) -> Result<String> {
    let text = tool::output(Command::new("apt-cache").args(["depends", name]))?;
    let depends = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "));
    match depends
        .into_iter()
        .find(|package| package.starts_with("linux-image-"))
    {
        Some(package) => Ok(package.to_string()),
        None => bail!("apt-cache does not know what {name} stands for; run `apt-get update` first"),
    }
}

/// Fetches the package and unpacks it into the folder `unpacked`.
fn unpack(folder: &Path, package: &str) -> Result<()> {
    tool::output(
        Command::new("apt-get")
            .args(["-q", "download", package])
            .current_dir(folder),
    )
    .with_context(|| format!("cannot fetch {package}; `apt-get update` may help"))?;
    for file in fs::read_dir(folder)?.flatten().map(|entry| entry.path()) {
        if file.extension().is_some_and(|extension| extension == "deb") {
            tool::output(
                Command::new("dpkg")
                    .arg("-x")
                    .arg(&file)
                    .arg(folder.join("unpacked")),
            )?;
            fs::remove_file(file)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_with_a_path() {
        let told = "\tlinux-vdso.so.1 (0x00007fff)\n\
            \tlibaio.so.1 => /lib/x86_64-linux-gnu/libaio.so.1 (0x00007f0a)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f0b)\n";
        let found: Vec<_> = libraries(told).collect();
        let expected = [
            "/lib/x86_64-linux-gnu/libaio.so.1",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
    }
}
