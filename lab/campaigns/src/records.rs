//! What Debian's kernel answers to the scripts in `tests/linux`, and how both systems run them.
//!
//! A record is what a script prints and its status, with Debian's kernel and the programs of that
//! disk from which `run --linux` boots. Each is made twice, in two machines, the second of which
//! runs the scripts in the opposite order: what differs then depends on more than the kernel's
//! answers, and is refused.
//!
//! Scripts that differ here lie in the folder `not-yet` there, with their records, and its README
//! says what differs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use machine::qemu::Machine;
use machine::session::{Session, plain};
use machine::{debian, disk, image};
use trefoil_gate::project::Project;
use trefoil_gate::tool;

use crate::peer;

/// The folder of scripts and records.
const FOLDER: &str = "tests/linux";
/// Where in it those stand that differ here.
const NOT_YET: &str = "not-yet";
/// The file in it with the versions of kernel and packages.
const VERSIONS: &str = "versions.txt";
const DRIVER: &str = include_str!("records/driver.sh");
/// The line that has the driver run all scripts.
pub const LINE: &str = "sh /linux/driver";
/// Seconds that one script may take, on a host that has much other work.
const SECONDS: u32 = 300;
/// How long a machine may take for all scripts.
pub const LIMIT: Duration = Duration::from_secs(1800);
/// What the peer prints at its end.
const END: &str = "records-ended";
/// How the peer gets at the disk.
const MOUNT: &str = "$bb hostname trefoil; $bb mkdir /disk && $bb mount -t ext3 /dev/vda /disk && \
    $bb mount -t proc proc /disk/proc && $bb mount -t sysfs sys /disk/sys && \
    $bb mount -t devtmpfs dev /disk/dev && $bb ln -s /proc/self/fd /disk/dev/fd\n\
    for n in 0:stdin 1:stdout 2:stderr; do \
    $bb ln -s /proc/self/fd/${n%:*} /disk/dev/${n#*:}; done\n";
/// How it has the driver run.
const RUN: &str = "$bb chroot /disk /bin/sh /linux/driver";
const UNMOUNT: &str = "$bb umount /disk/dev /disk/sys /disk/proc /disk";

/// Which scripts.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Names of scripts; all if none is named. Kernel and packages must be those of the others
    names: Vec<String>,
}

/// A script and where its record belongs.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its name, without an ending.
    pub name: String,
    /// Its file.
    pub source: PathBuf,
    /// Whether it is known to differ here.
    pub is_awaited: bool,
}

impl Script {
    /// The file of its record.
    pub fn record(&self) -> PathBuf {
        self.source.with_extension("out")
    }
}

/// What came of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// All that it printed, and a last line with its status.
    pub text: String,
}

/// All scripts, in the order of their names.
///
/// # Errors
/// If the folder cannot be read, or two scripts have one name.
pub fn scripts(project: &Project) -> Result<Vec<Script>> {
    let mut found = BTreeMap::new();
    for (folder, is_awaited) in [
        (FOLDER.to_string(), false),
        (format!("{FOLDER}/{NOT_YET}"), true),
    ] {
        let folder = project.root.join(folder);
        if !folder.exists() {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let source = entry?.path();
            if source.extension().is_none_or(|ending| ending != "sh") {
                continue;
            }
            let name = source.file_stem().context("a file has a name")?;
            let name = name.to_string_lossy().into_owned();
            let script = Script {
                name: name.clone(),
                source,
                is_awaited,
            };
            let other = found.insert(name, script);
            ensure!(other.is_none(), "two scripts have one name: {other:?}");
        }
    }
    Ok(found.into_values().collect())
}

/// Puts the scripts and the driver, which runs them in this order, on a disk. `folder` is for
/// intermediate files.
///
/// # Errors
/// If the disk has no room or cannot be changed.
pub fn install(disk: &Path, scripts: &[Script], folder: &Path) -> Result<()> {
    let list: String = scripts.iter().map(|it| format!("{}\n", it.name)).collect();
    let mut changes = String::from("mkdir linux\ncd linux\n");
    for (name, text) in [
        ("driver", DRIVER),
        ("list", &list),
        ("limit", &SECONDS.to_string()),
    ] {
        let file = folder.join(name);
        fs::write(&file, text)?;
        changes += &format!("write \"{}\" {name}\n", file.display());
    }
    for script in scripts {
        changes += &format!("write \"{}\" {}.sh\n", script.source.display(), script.name);
    }
    disk::change(disk, &changes)
}

/// What came of each script that ended, from all that a machine printed.
pub fn outcomes(screen: &str, scripts: &[Script]) -> BTreeMap<String, Outcome> {
    let screen = plain(screen.as_bytes());
    let mut rest = screen.as_str();
    let mut all = BTreeMap::new();
    for Script { name, .. } in scripts {
        let (begin, end) = (
            format!("== begin {name}\n"),
            format!("== {name} ends with "),
        );
        let parts = rest.split_once(&begin).and_then(|(_, behind)| {
            let (printed, behind) = behind.split_once(&end)?;
            let (status, behind) = behind.split_once('\n')?;
            Some((printed, status, behind))
        });
        let Some((printed, status, behind)) = parts else {
            break;
        };
        let text = format!("{printed}== ends with {status}\n");
        all.insert(name.clone(), Outcome { text });
        rest = behind;
    }
    all
}

/// Where two texts differ first: the number of the line, from 1, and that line of both.
pub fn first_difference(ours: &str, theirs: &str) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let (mut own, mut other) = (ours.split('\n'), theirs.split('\n'));
    for number in 1.. {
        match (own.next(), other.next()) {
            (None, None) => break,
            (one, two) if one == two => {}
            (one, two) => {
                let shown =
                    |line: Option<&str>| line.map_or("its end".into(), |it| format!("{it:?}"));
                return Some(format!(
                    "line {number}: {} in place of {}",
                    shown(one),
                    shown(two)
                ));
            }
        }
    }
    None
}

/// The versions of kernel and packages that the records were made with, one to a line.
///
/// # Errors
/// If there is no such file.
pub fn recorded_versions(project: &Project) -> Result<String> {
    let file = project.root.join(FOLDER).join(VERSIONS);
    fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// What differs here in each script of the folder `not-yet`, by the table of its README.
///
/// # Errors
/// If there are such scripts and no such file.
pub fn differences(project: &Project) -> Result<BTreeMap<String, String>> {
    let folder = project.root.join(FOLDER).join(NOT_YET);
    if !folder.exists() {
        return Ok(BTreeMap::new());
    }
    let file = folder.join("README.md");
    let text = fs::read_to_string(&file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(rows(&text))
}

/// The first two columns of a table, but for its head.
fn rows(text: &str) -> BTreeMap<String, String> {
    let rows = text.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
        let how = rest.trim_end().trim_end_matches('|').trim();
        Some((name.trim_matches(['`', ' ']).to_string(), how.to_string()))
    });
    rows.filter(|(name, _)| name != "script" && !name.starts_with("---"))
        .collect()
}

/// The packages on a disk, `NAME VERSION` to a line.
///
/// # Errors
/// If they cannot be read.
pub fn packages(disk: &Path, folder: &Path) -> Result<String> {
    let status = image::file_by_host(disk, "/var/lib/dpkg/status", folder)?;
    let status = String::from_utf8_lossy(&status).into_owned();
    let mut lines = Vec::new();
    let mut name = "";
    for line in status.lines() {
        if let Some(package) = line.strip_prefix("Package: ") {
            name = package;
        } else if let Some(version) = line.strip_prefix("Version: ") {
            lines.push(format!("{name} {version}\n"));
        }
    }
    lines.sort();
    Ok(lines.concat())
}

/// `cargo xtask record`: makes records again, all or those that are named; the result is the exit
/// status.
///
/// # Errors
/// If Debian's kernel or packages cannot be had, if they are others than those of the records that
/// stay, or if a machine does not come to its end.
pub fn record(project: &Project, options: &Options) -> Result<i32> {
    let folder = project.out.join("records");
    fs::create_dir_all(&folder)?;
    let mut scripts = chosen(scripts(project)?, &options.names)?;
    let (first, kernel, packages) = recorded(project, &folder, &scripts)?;
    let versions = format!("{kernel}\n{packages}");
    ensure!(
        options.names.is_empty() || recorded_versions(project)? == versions,
        "the other records are of another kernel or other packages: name no scripts"
    );
    scripts.reverse();
    let (second, _, _) = recorded(project, &folder, &scripts)?;
    scripts.reverse();
    let mut refused = 0;
    for script in &scripts {
        let (one, two) = (&first[&script.name].text, &second[&script.name].text);
        refused += u32::from(!kept(&script.name, &script.record(), [one, two])?);
    }
    fs::write(project.root.join(FOLDER).join(VERSIONS), versions)?;
    println!("{} recorded, {refused} of them refused", scripts.len());
    Ok(i32::from(refused > 0))
}

/// Keeps what was printed if it was the same both times.
fn kept(name: &str, record: &Path, [one, two]: [&String; 2]) -> Result<bool> {
    if let Some(difference) = first_difference(one, two) {
        eprintln!("{name} differs from one run to the other, {difference}");
        return Ok(false);
    }
    fs::write(record, one)?;
    Ok(true)
}

/// Those of the scripts that are named; all if none is.
fn chosen(scripts: Vec<Script>, names: &[String]) -> Result<Vec<Script>> {
    let unknown = names
        .iter()
        .find(|name| scripts.iter().all(|script| script.name != **name));
    ensure!(unknown.is_none(), "there is no script {unknown:?}");
    let is_wanted = |script: &Script| names.is_empty() || names.contains(&script.name);
    Ok(scripts.into_iter().filter(is_wanted).collect())
}

/// What came of the scripts with Debian's kernel, its version, and the packages.
fn recorded(
    project: &Project,
    folder: &Path,
    scripts: &[Script],
) -> Result<(BTreeMap<String, Outcome>, String, String)> {
    let (machine, disk) = peer_machine(project, folder, RUN)?;
    let packages = packages(&disk, folder)?;
    install(&disk, scripts, folder)?;
    let text = format!("running {} scripts with Debian's kernel", scripts.len());
    let screen = tool::timed(&text, || {
        let mut session = Session::start(&machine, false)?;
        session.end(LIMIT)?;
        Ok(session.screen())
    })?;
    fs::remove_file(disk)?;
    fs::write(folder.join("screen"), &screen)?;
    let kernel = screen
        .lines()
        .find_map(|line| line.strip_prefix("== kernel "));
    let kernel = kernel.context("Debian's kernel did not run the driver")?;
    let found = outcomes(&screen, scripts);
    if let Some(script) = scripts.iter().find(|it| !found.contains_key(&it.name)) {
        bail!(
            "the script {} did not end with Debian's kernel",
            script.name
        );
    }
    Ok((found, format!("Linux {kernel}"), packages))
}

/// Debian's kernel with a copy of the disk in `/disk`, where it does what `script` says; and the
/// copy.
fn peer_machine(project: &Project, folder: &Path, script: &str) -> Result<(Machine, PathBuf)> {
    let disk = folder.join("disk.img");
    let mut copied = Command::new("cp");
    copied.arg("--sparse=always").arg(debian::default(project)?);
    tool::output(copied.arg(&disk))?;
    let peer = peer::debian(project)?;
    let archive = folder.join("peer.cpio");
    let script = format!("{MOUNT}{script}\n{UNMOUNT}");
    fs::write(&archive, peer.drivers_with(&[], "", &script, END)?)?;
    let mut machine = Machine::new(&peer.kernel, folder);
    machine.archive = Some(archive);
    machine.disk = Some(disk.clone());
    machine.memory = "1G".into();
    let words = [
        "console=ttyS0",
        "quiet",
        "loglevel=1",
        "panic=-1",
        "tsc=reliable",
        // On a busy host it panics where the timer seems not to tick.
        "no_timer_check",
    ];
    machine.words = words.map(String::from).to_vec();
    Ok((machine, disk))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(name: &str) -> Script {
        Script {
            name: name.into(),
            source: PathBuf::from(format!("{name}.sh")),
            is_awaited: false,
        }
    }

    #[test]
    fn outcomes_stand_between_marks() {
        let screen = "== kernel x\r\n== begin a\r\nline\r\nrest== a ends with 3\r\n\
            == begin b\r\n== b ends with 0\r\n== all\r\n";
        let scripts = [script("a"), script("b")];
        let found = outcomes(screen, &scripts);
        assert_eq!(found["a"].text, "line\nrest== ends with 3\n");
        assert_eq!(found["b"].text, "== ends with 0\n");
        let found = outcomes(&screen.replace("== b ends", ""), &scripts);
        let names: Vec<_> = found.keys().collect();
        assert_eq!(names, ["a"]);
    }

    #[test]
    fn scripts_are_chosen_by_name() {
        let all = || vec![script("a"), script("b")];
        let chosen = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_string()).collect();
            let found = chosen(all(), &names).ok()?;
            Some(found.iter().map(|it| it.name.as_str()).collect::<String>())
        };
        assert_eq!(chosen(&[]).as_deref(), Some("ab"));
        assert_eq!(chosen(&["b"]).as_deref(), Some("b"));
        assert_eq!(chosen(&["c"]), None);
    }

    #[test]
    fn a_table_says_what_differs() {
        let text = "# x\n\n| script | what differs |\n| --- | --- |\n| `a` | no b |\n| c |  |\n";
        let found = rows(text);
        let pairs: Vec<_> = found
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(pairs, [("a", "no b"), ("c", "")]);
    }

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        let differs = |one, two| first_difference(one, two).expect("they differ");
        assert_eq!(
            differs("a\nb\n", "a\nc\n"),
            "line 2: \"b\" in place of \"c\""
        );
        assert_eq!(differs("a\n", "a\nc"), "line 2: \"\" in place of \"c\"");
        assert_eq!(differs("a", "a\n"), "line 2: its end in place of \"\"");
    }
}
