//! Files, paths and users of Linux programs: what is printed is compared with records of Linux, and
//! these with the host, where the tests run as root.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use trefoil_gate::tool;

use super::linux::{compiled, debian_disk, machine, put};
use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case(
        "linux-files-are-whose-they-are-and-where-they-are",
        recorded,
    ),
    case(
        "linux-files-keep-what-was-written-while-all-below-crashes",
        crashes,
    ),
];

/// Programs that print what rights and paths come to, in a folder.
const PROGRAMS: [&str; 2] = ["rights", "paths"];

/// A program of the peers, on the disk.
fn install(bench: &Bench<'_>, disk: &Path, name: &str) -> Result<()> {
    let program = compiled(bench, &format!("linux-files/{name}.c"))?;
    put(bench, disk, name, &std::fs::read(&program)?, "0100755")
}

/// What a program prints on Linux, by its record.
fn record(bench: &Bench<'_>, name: &str) -> Result<String> {
    let file = format!("lab/peers/linux-files/{name}.txt");
    let file = bench.site.project.root.join(file);
    std::fs::read_to_string(&file).with_context(|| format!("no record {}", file.display()))
}

/// Fails at the first line that is another.
fn compare(name: &str, seen: &str, right: &str) -> Result<()> {
    for (seen, right) in seen.lines().zip(right.lines()) {
        ensure!(seen == right, "{name} says {seen:?} in place of {right:?}");
    }
    ensure!(seen == right, "{name} prints more, or less:\n{seen}");
    Ok(())
}

/// The host's root is asked, too: so the records are Linux's.
fn ask_host(bench: &Bench<'_>, name: &str) -> Result<()> {
    let program = compiled(bench, &format!("linux-files/{name}.c"))?;
    let folder = std::env::temp_dir().join(format!("trefoil-{name}-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let asked = tool::output(Command::new(&program).arg(&folder));
    std::fs::remove_dir_all(&folder)?;
    compare(
        &format!("the host's {name}"),
        &asked?,
        &record(bench, name)?,
    )
}

fn recorded(bench: &Bench<'_>) -> Result<()> {
    let user = tool::output(Command::new("id").arg("-u"))?;
    let disk = debian_disk(bench)?;
    for name in PROGRAMS {
        if user.trim() == "0" {
            ask_host(bench, name)?;
        }
        install(bench, &disk, name)?;
    }
    let line = "for x in rights paths; do mkdir -m 755 /tmp/$x; echo \"== $x\"; /$x /tmp/$x; done";
    let answer = bench.exec_on(machine(bench, &disk)?, line)?.status(0)?;
    let mut right = String::new();
    for name in PROGRAMS {
        right += &format!("== {name}\n{}", record(bench, name)?);
    }
    compare("it", &answer.stdout, &right)?;
    bench.expect_clean(&disk)
}

/// Writers and one who cuts, while driver, file system and file service are struck in turn, twice
/// at least.
const UNDER_CRASHES: &str = "(turns=0; while [ ! -e /tmp/done ]; do \
    for x in virtio-blk ext2 vfs; do trefoil crash $x >/dev/null; sleep 0.1; done; \
    turns=$((turns + 1)); if [ $turns = 2 ]; then touch /tmp/struck; fi; done) & \
    n=0; while [ $n -lt 3 ] || [ ! -e /tmp/struck ]; do n=$((n + 1)); /writers /tmp/w$n 20; done | \
    sort -u; touch /tmp/done; wait; grep -c 'asked to crash' /sys/kernel/trefoil/log >&2";

fn crashes(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    install(bench, &disk, "writers")?;
    let mut machine = machine(bench, &disk)?;
    machine.processors = 2;
    let answer = bench.exec_within(4 * LIMIT, machine, UNDER_CRASHES)?;
    let answer = answer.status(0)?;
    let struck = answer.stderr.trim().parse::<u32>();
    let struck = struck.with_context(|| format!("it complains: {}", answer.stderr))?;
    ensure!(struck >= 6, "only {struck} crashes");
    answer.prints("0 wrong\n20 20\n")?;
    bench.expect_clean(&disk)
}
