//! `storms --linux`: Debian's own programs work on a disk of Debian's packages while the disk's
//! driver, the file system and the file service crash in turn.
//!
//! A run is one boot. At the same time, all from one shell: `md5sum --check` of the files of all
//! packages; `tar` of a tree and its comparison; `sort` of 30 MB; `find | xargs sha256sum` with
//! four processes at a time; and a loop that forks 2,000 times. What is right, the host says by its
//! own programs, from what was put on the image; afterwards `e2fsck -fn` is content.
//!
//! At each strike the personality notes how many calls of programs are under way at the file
//! service. A run in which that were fewer than [`LEAST`] in all says nothing, and does not count.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use machine::image::{Image, Node};
use machine::qemu::{Ended, Machine, exec_word};
use machine::{debian, disk, manifests};
use serde_json::json;
use trefoil_gate::build::{self, Built};
use trefoil_gate::project::Project;
use trefoil_gate::tool;
use workload::Random;

use super::{Options, Ran};
use crate::campaign::{Outcome, Record};

/// What is struck, in turn.
const STRUCK: [&str; 3] = ["virtio-blk", "ext2", "vfs"];
/// Calls that are under way at the strikes of a run that counts, at the least.
const LEAST: u64 = 10;
/// Bytes of the file that is sorted.
const SORTED: usize = 30 << 20;
/// Processes that the loop makes.
const FORKS: u64 = 2000;
/// The tree of which sums are made.
const TREE: &str = "usr/bin";
/// How long a system may take for all of it.
const LIMIT: Duration = Duration::from_secs(1200);
/// What the personality writes to the log at a strike, around the number.
const MARK: [&str; 2] = [" is struck with ", " calls under way"];

/// Carries the campaign out.
///
/// # Errors
/// If that is not possible. Runs that went wrong are no error.
pub(super) fn campaign(project: &Project, options: &Options) -> Result<Record> {
    let plan = &options.plan;
    let mut record = Record::new(project, "storms-linux", plan)?;
    let scene = Scene::new(project, options, record.scratch.clone())?;
    let (mut next, mut tried) = (plan.first, 0);
    while next < plan.numbers().end && tried < 2 * plan.runs && !record.is_late() {
        let image = scene.folder.join("image");
        let (strikes, outcome) = scene.run(plan.first + tried, &image)?;
        tried += 1;
        let flight: u64 = strikes.iter().sum();
        let how = match &outcome {
            Err(_) => "wrong",
            Ok(()) if flight < LEAST => "right, and does not count",
            Ok(()) => "right",
        };
        let (count, seconds) = (strikes.len(), record.seconds());
        tool::step(format_args!(
            "run {next}: {how}; {count} strikes, {flight} calls under way at them; {seconds} s"
        ));
        if outcome.is_err() || flight >= LEAST {
            let details = json!({ "strikes": strikes, "under_way": flight });
            record.add(next, "debian", details, &outcome, &[&image])?;
            next += 1;
        }
    }
    fs::remove_dir_all(&scene.folder)?;
    Ok(record)
}

/// What all runs share.
struct Scene<'a> {
    options: &'a Options,
    built: Built,
    folder: PathBuf,
    /// A disk of Debian's packages with the files of the work.
    disk: PathBuf,
    /// What the work has to print.
    right: String,
}

impl<'a> Scene<'a> {
    fn new(project: &Project, options: &'a Options, folder: PathBuf) -> Result<Self> {
        let manifest = project.root.join("images/linux.toml");
        let built = build::build(project, Some(&manifest))?;
        let text = fs::read_to_string(&manifest)?;
        let text = manifests::with_limits(&text, &STRUCK, "restarts = 100000")?;
        let archive = folder.join("archive.cpio");
        fs::write(&archive, build::packed(project, text.as_bytes())?)?;
        let disk = folder.join("debian.img");
        copy(&debian::default(project)?, &disk)?;
        let sums = sums(&disk, &folder)?;
        let lines = lines(options.plan.seed);
        fs::write(folder.join("lines"), &lines)?;
        fs::write(folder.join("work.sh"), script(options.every))?;
        let name = folder.display();
        disk::change(
            &disk,
            &format!("write \"{name}/lines\" lines\nwrite \"{name}/work.sh\" work.sh\n"),
        )?;
        let mut sorted: Vec<&str> = lines.split_inclusive('\n').collect();
        sorted.sort_unstable();
        let right = [
            "md5sum 0".into(),
            "tar 0".into(),
            format!("sort {}", sum_of(sorted.concat().as_bytes(), &folder)?),
            format!("sha256sum {}", sum_of(sums.as_bytes(), &folder)?),
            format!("forks {}", FORKS * (FORKS - 1) / 2),
            "done".into(),
        ];
        Ok(Scene {
            options,
            built: Built { archive, ..built },
            folder,
            disk,
            right: right.join("\n") + "\n",
        })
    }

    /// One boot: the calls that were under way at each strike, and whether all was right.
    fn run(&self, number: u64, image: &Path) -> Result<(Vec<u64>, Outcome)> {
        copy(&self.disk, image)?;
        let mut machine = Machine::new(&self.built.kernel, &self.folder);
        machine.archive = Some(self.built.archive.clone());
        machine.disk = Some(image.to_path_buf());
        (machine.memory, machine.processors) = ("1G".into(), self.options.smp);
        let first = number % STRUCK.len() as u64;
        let line = exec_word(&format!("sh /work.sh {first}"));
        machine.words.extend([line, "panic=off".into()]);
        let Ran {
            printed,
            ended,
            errors,
            log,
            stacks,
        } = super::run(&machine, LIMIT)?;
        let strikes = log.lines().filter_map(under_way).collect();
        let is_right = matches!(ended, Some(Ended::Status(0)))
            && printed == self.right
            && errors.is_empty()
            && !log.contains("are lost");
        let outcome = match is_right {
            true => clean(image),
            false => {
                let lines: Vec<_> = log.lines().collect();
                let end = lines[lines.len().saturating_sub(15)..].join("\n");
                let right = &self.right;
                Err(format!(
                    "boot {number}: {ended:?}; {printed:?} in place of {right:?}; {errors}\nlog:\n{end}\n{stacks}"
                ))
            }
        };
        Ok((strikes, outcome))
    }
}

fn clean(image: &Path) -> Outcome {
    match disk::complaints(image) {
        Ok(None) => Ok(()),
        Ok(Some(text)) => Err(format!("e2fsck -fn says: {text}")),
        Err(error) => Err(format!("{error:#}")),
    }
}

/// The number of a line of the log that tells of a strike.
fn under_way(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(MARK[0])?;
    rest.strip_suffix(MARK[1])?.parse().ok()
}

/// What the shell does. The jobs' output goes to files, so that it comes in order.
fn script(every: f64) -> String {
    let [driver, files, service] = STRUCK;
    format!(
        "export LC_ALL=C; first=$1; cd /; mkdir /out\n\
         (cat /var/lib/dpkg/info/*.md5sums | md5sum --quiet --check; echo md5sum $?) >/out/1 2>&1 & a=$!\n\
         (tar cf /out/tar usr/share && tar df /out/tar; echo tar $?) >/out/2 2>&1 & b=$!\n\
         (sort /lines >/out/sorted; set -- $(sha256sum /out/sorted); echo sort $1) >/out/3 2>&1 & c=$!\n\
         (find {TREE} -type f -print0 | xargs -0 -n 20 -P 4 sha256sum | sort >/out/sums; \
           set -- $(sha256sum /out/sums); echo sha256sum $1) >/out/4 2>&1 & d=$!\n\
         (i=0; s=0; while [ $i -lt {FORKS} ]; do s=$((s + $(echo $i))); i=$((i + 1)); done; echo forks $s) >/out/5 2>&1 & e=$!\n\
         case $first in 0) order='{driver} {files} {service}';; 1) order='{files} {service} {driver}';; \
           *) order='{service} {driver} {files}';; esac\n\
         (while [ ! -e /out/done ]; do for n in $order; do sleep {every}; \
           until echo $n >/sys/kernel/trefoil/strike; do sleep 0.05; done; done; done) 2>/dev/null & f=$!\n\
         wait $a $b $c $d $e\n\
         touch /out/done; kill $f 2>/dev/null; wait $f 2>/dev/null\n\
         cat /out/[1-5]; sync; echo done\n"
    )
}

/// 30 MB of lines.
fn lines(seed: u64) -> String {
    let mut random = Random::new(seed, 1);
    let mut lines = String::with_capacity(SORTED);
    while lines.len() < SORTED {
        let (number, more) = (random.below(100_000_000), random.draw());
        lines += &format!("{number:08} {more:016x}{more:016x}{number:x}\n");
    }
    lines
}

/// The sums of the files of the tree, as `sha256sum | sort` tells them. The host's program makes
/// them; the files get names of our own there.
fn sums(disk: &Path, folder: &Path) -> Result<String> {
    let place = folder.join("sums");
    fs::create_dir_all(&place)?;
    let mut names = Vec::new();
    for (path, node) in Image::open(disk)?.tree(TREE)? {
        if let Node::File(content) = node {
            fs::write(place.join(names.len().to_string()), content)?;
            names.push(path);
        }
    }
    ensure!(!names.is_empty(), "{TREE} has no files");
    let mut command = Command::new(tool::need("sha256sum", "coreutils")?);
    command.current_dir(&place);
    command.args((0..names.len()).map(|number| number.to_string()));
    let told = tool::output(&mut command)?;
    let mut lines = Vec::new();
    for (line, path) in told.lines().zip(&names) {
        let sum = line.split(' ').next().context("it tells a sum")?;
        lines.push(format!("{sum}  {TREE}/{}\n", path.display()));
    }
    fs::remove_dir_all(place)?;
    lines.sort_unstable();
    Ok(lines.concat())
}

/// The SHA-256 of some bytes, by the host's program.
fn sum_of(bytes: &[u8], folder: &Path) -> Result<String> {
    let file = folder.join("summed");
    File::create(&file)?.write_all(bytes)?;
    let told = tool::output(Command::new("sha256sum").arg(&file))?;
    match told.split(' ').next() {
        Some(sum) if sum.len() == 64 => Ok(sum.into()),
        _ => bail!("sha256sum says {told:?}"),
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut command = Command::new("cp");
    command.arg("--sparse=always").arg(from).arg(to);
    tool::output(&mut command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_of_strikes() {
        let line = "[    1.5] linux: ext2 is struck with 12 calls under way";
        assert_eq!(under_way(line), Some(12));
        assert_eq!(under_way("[    1.5] ext2: domain 8 crashed in x"), None);
    }

    #[test]
    fn lines_are_as_many_as_are_sorted_and_differ_by_seed() {
        let one = lines(1);
        assert!((SORTED..SORTED + 100).contains(&one.len()));
        assert_ne!(one, lines(2));
    }
}
