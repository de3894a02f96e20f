//! A disk with Debian's own programs, made of its packages by Debian's own tools.
//!
//! apt resolves and downloads, with lists, cache and an empty status of its own, so that neither
//! the host's packages count nor its state is touched. `debian/disk.sh` unpacks and makes the file
//! system. What was downloaded is kept, so the same packages need no network again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use trefoil_gate::project::Project;
use trefoil_gate::{setup, tool};

/// The packages of a disk unless others are named: what a shell with its usual companions needs.
/// Those that every Debian has stand in the second line.
pub const DEFAULT_PACKAGES: [&str; 25] = [
    "bash",
    "coreutils",
    "dash",
    "diffutils",
    "findutils",
    "gawk",
    "grep",
    "gzip",
    "less",
    "nano",
    "procps",
    "sed",
    "tar",
    "util-linux",
    "xz-utils",
    "perl-base",
    "base-files",
    "base-passwd",
    "bsdutils",
    "debianutils",
    "hostname",
    "libc-bin",
    "ncurses-base",
    "ncurses-bin",
    "sysvinit-utils",
];
/// The size of a disk unless another is said. The file is sparse.
pub const DEFAULT_SIZE: &str = "1G";
/// The release that the recorded outputs of the tests come from.
const RELEASE: &str = "bookworm";
const SCRIPT: &str = include_str!("debian/disk.sh");

/// The disk of the default packages; made if there is none of these packages and this script.
///
/// # Errors
/// As [`make`].
pub fn default(project: &Project) -> Result<PathBuf> {
    let disk = project.out.join("debian.img");
    let mark = project.out.join("debian.stamp");
    let own = format!("{}\n{SCRIPT}", DEFAULT_PACKAGES.join(" "));
    // Of several that want it at once, the first one makes it.
    let _place = claim(project, "default.lock")?;
    if disk.exists() && fs::read_to_string(&mark).unwrap_or_default() == own {
        return Ok(disk);
    }
    let new = project.out.join("debian.made");
    make(project, &new, &owned(&DEFAULT_PACKAGES), DEFAULT_SIZE)?;
    if disk.exists() {
        // It may have files of its user.
        let old = project.out.join("debian-before.img");
        fs::rename(&disk, &old)?;
        tool::step(format_args!(
            "the disk before, which had other packages or settings, is {}",
            old.display()
        ));
    }
    fs::rename(new, &disk)?;
    fs::write(mark, own)?;
    Ok(disk)
}

/// Makes the ext3 image `disk` of `size` (as mke2fs writes it) with `packages` and all that they
/// depend on. An image that is there already is replaced when the new one is whole.
///
/// # Errors
/// If a package is not to be had, a tool of the host is missing, or the files do not fit.
pub fn make(project: &Project, disk: &Path, packages: &[String], size: &str) -> Result<()> {
    if let Some(wrong) = packages.iter().find(|name| !is_package_name(name)) {
        bail!("{wrong:?} is no name of a package");
    }
    ensure!(
        is_size(size),
        "{size:?} is no size: write 800M or 2G, for example"
    );
    let host = Host::look()?;
    // Two that share lists and cache would meet in the middle.
    let _place = claim(project, "lock")?;
    let folder = folder(project);
    let files = tool::timed("getting Debian's packages", || {
        Cache::new(&folder)?.get(packages)
    })?;
    let list: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    fs::write(folder.join("packages"), list.join("\n") + "\n")?;
    let text = format!("making {} of {} packages", disk.display(), files.len());
    tool::timed(&text, || host.make_disk(&folder, disk, size))
}

fn folder(project: &Project) -> PathBuf {
    project.out.join("debian")
}

/// Waits until nobody else has the place of this name, and takes it for as long as the result
/// lives.
fn claim(project: &Project, name: &str) -> Result<File> {
    fs::create_dir_all(folder(project))?;
    let place = File::create(folder(project).join(name))?;
    let claimed = place.lock();
    claimed.context("cannot claim the folder of packages")?;
    Ok(place)
}

/// `names` as the caller of [`make`] needs them.
pub fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The rules of Debian's policy, section 5.6.1.
fn is_package_name(name: &str) -> bool {
    let is_start = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() >= 2
        && name.len() <= 100
        && name.bytes().next().is_some_and(is_start)
        && name
            .bytes()
            .all(|byte| is_start(byte) || b"+-.".contains(&byte))
}

fn is_size(size: &str) -> bool {
    let number = size.strip_suffix(['K', 'M', 'G']).unwrap_or_default();
    number.len() <= 6 && number.parse::<u32>().is_ok_and(|number| number > 0)
}

/// What of the host is used.
struct Host {
    is_root: bool,
}

impl Host {
    fn look() -> Result<Self> {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let field = |name: &str| {
            let line = release.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim_matches('"').to_string()
        };
        ensure!(
            field("ID=") == "debian" && tool::find("apt-get").is_some(),
            "Debian's packages are got by its apt, and this host is {}",
            match field("PRETTY_NAME=") {
                name if name.is_empty() => "of another kind".into(),
                name => name,
            }
        );
        let codename = field("VERSION_CODENAME=");
        if codename != RELEASE {
            eprintln!(
                "note: this host is Debian {codename}, and so will be the disk; tested is {RELEASE}"
            );
        }
        setup::machine()?;
        let id = tool::output(Command::new(tool::need("id", "coreutils")?).arg("-u"))?;
        let is_root = id.trim() == "0";
        if !is_root {
            tool::need("fakeroot", "fakeroot")?;
        }
        Ok(Host { is_root })
    }

    fn make_disk(&self, folder: &Path, disk: &Path, size: &str) -> Result<()> {
        let script = folder.join("disk.sh");
        fs::write(&script, SCRIPT)?;
        // Made under another name, so that an interrupted run leaves no half an image.
        let new = disk.with_extension(format!("new{}", std::process::id()));
        let mut command = match self.is_root {
            true => Command::new("sh"),
            false => Command::new(tool::need("fakeroot", "fakeroot")?),
        };
        if !self.is_root {
            command.args(["--", "sh"]);
        }
        command.arg(&script).arg(folder).arg(&new).arg(size);
        // ldconfig and mke2fs are not in the path of everybody.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
        let made = tool::run(command.stdin(Stdio::null()));
        if made.is_err() {
            let _ = fs::remove_file(&new);
        }
        made.with_context(|| format!("no disk of {size} could be made; is it large enough?"))?;
        fs::rename(&new, disk).with_context(|| format!("cannot make {}", disk.display()))
    }
}

/// apt with lists and archives of its own.
struct Cache {
    folder: PathBuf,
}

impl Cache {
    fn new(folder: &Path) -> Result<Self> {
        for part in ["lists/partial", "cache/archives/partial", "none/partial"] {
            fs::create_dir_all(folder.join(part))?;
        }
        fs::write(folder.join("status"), "")?;
        let folder = folder.to_path_buf();
        Ok(Cache { folder })
    }

    /// The files of `packages` and of what they depend on, all of them there and whole.
    fn get(&self, packages: &[String]) -> Result<Vec<PathBuf>> {
        let lists = fs::read_dir(self.folder.join("lists"))?;
        let has_lists = lists.flatten().any(|file| {
            let name = file.file_name();
            name.to_string_lossy().contains("_Packages")
        });
        if !has_lists {
            self.update()?;
        }
        match self.download(packages) {
            // Lists grow old: a package that they name may have made room for a newer one.
            Err(error) if has_lists => {
                tool::step("the packages' lists may be old: getting new ones");
                self.update().with_context(|| format!("{error:#}"))?;
                self.download(packages)
            }
            result => result,
        }
    }

    fn update(&self) -> Result<()> {
        let updated = tool::output(self.apt().arg("update"));
        updated
            .map(|_| ())
            .context("Debian's lists of packages are not to be had")
    }

    fn download(&self, packages: &[String]) -> Result<Vec<PathBuf>> {
        let wanted = self.wanted(packages)?;
        let archives = self.folder.join("cache/archives");
        let is_there = |(name, length): &(String, u64)| {
            fs::metadata(archives.join(name)).is_ok_and(|file| file.len() == *length)
        };
        if !wanted.iter().all(is_there) {
            let mut apt = self.apt();
            apt.args(["--yes", "--download-only", "install"])
                .args(packages);
            tool::output(&mut apt).context("not all packages are to be had")?;
        }
        if let Some((name, _)) = wanted.iter().find(|file| !is_there(file)) {
            bail!("apt did not bring {name}");
        }
        Ok(wanted.iter().map(|(name, _)| archives.join(name)).collect())
    }

    /// Names and lengths of all files, also of those that are there.
    fn wanted(&self, packages: &[String]) -> Result<Vec<(String, u64)>> {
        let mut apt = self.apt();
        // As if nothing had been downloaded: else what is there is left out.
        apt.arg("-o").arg(format!(
            "Dir::Cache::archives={}",
            self.folder.join("none").display()
        ));
        apt.args(["--yes", "--print-uris", "install"])
            .args(packages);
        let text = tool::output(&mut apt).context("not all packages are known")?;
        let files: Option<Vec<_>> = text
            .lines()
            .filter(|line| line.starts_with('\''))
            .map(wanted_file)
            .collect();
        let files =
            files.with_context(|| format!("apt's list is in a form that is not known:\n{text}"))?;
        ensure!(!files.is_empty(), "apt names no file for these packages");
        Ok(files)
    }

    fn apt(&self) -> Command {
        let mut apt = Command::new("apt-get");
        let place = |name: &str| self.folder.join(name).display().to_string();
        let options = [
            ("Dir::State::lists", place("lists")),
            ("Dir::State::status", place("status")),
            ("Dir::State::extended_states", place("extended_states")),
            ("Dir::Cache", place("cache")),
            ("APT::Architecture", "amd64".into()),
            ("APT::Architectures", "amd64".into()),
            ("APT::Install-Recommends", "false".into()),
            ("APT::Sandbox::User", String::new()),
        ];
        apt.arg("-q")
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive");
        for (name, value) in options {
            apt.arg("-o").arg(format!("{name}={value}"));
        }
        apt
    }
}

/// A line `'address' name length hash`. The name becomes one of a file below our folder.
fn wanted_file(line: &str) -> Option<(String, u64)> {
    let (_, rest) = line.strip_prefix('\'')?.split_once('\'')?;
    let mut words = rest.split_whitespace();
    let (name, length) = (words.next()?, words.next()?.parse().ok()?);
    let is_plain = name.ends_with(".deb") && !name.contains('/') && !name.starts_with('.');
    is_plain.then(|| (name.to_string(), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_packages_and_sizes_are_checked() {
        assert!(
            ["bash", "libstdc++6", "gcc-12-base", "perl5.36"]
                .into_iter()
                .all(is_package_name)
        );
        let wrong = ["", "a", "-o", "Bash", "a b", "x;rm", "../x", "é"];
        assert!(!wrong.into_iter().any(is_package_name));
        assert!(["1G", "800M", "204800K"].into_iter().all(is_size));
        assert!(
            !["", "G", "0M", "1T", "-1G", "1.5G", "9999999K"]
                .into_iter()
                .any(is_size)
        );
    }

    #[test]
    fn a_line_of_apt_names_a_file_that_lies_in_our_folder() {
        let line = "'http://x/pool/b.deb' bash_5.2.15-2%2b13_amd64.deb 1491028 SHA256:ab";
        let file = ("bash_5.2.15-2%2b13_amd64.deb".to_string(), 1_491_028);
        assert_eq!(wanted_file(line), Some(file));
        for line in [
            "",
            "'x",
            "'x' a.deb",
            "'x' a.deb b",
            "'x' ../a.deb 5",
            "'x' .deb 5",
            "'x' a 5",
        ] {
            assert_eq!(wanted_file(line), None, "{line}");
        }
    }
}
