//! The file system crashes behind its shadow, and nobody notices.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use lab::storms::strikes;
use machine::disk;
use machine::image::{self, Node};
use machine::qemu::Machine;

use super::recovery::{MANY_RESTARTS, with_limits};
use super::{Case, case, unnamed};
use crate::bench::{Answer, Bench, host_sum};

pub(super) const CASES: &[Case] = &[
    case("shadow-crashes-under-cp-on-ext2", copies_on_ext2),
    case("shadow-crashes-under-cp-on-ext3", copies_on_ext3),
    case(
        "shadow-crashes-with-the-driver-under-cp",
        copies_with_driver,
    ),
    case("shadow-crashes-on-4-processors", copies_on_four),
    case("shadow-crashes-under-reads", reads),
    case("shadow-crashes-under-changes-of-names", names),
    case("shadow-keeps-a-removed-file-that-is-open", removed_file),
    case("shadow-gives-up-when-crashes-do-not-end", gives_up),
];

/// Files of the tree that is copied.
const FILES: usize = 300;

/// Options of mke2fs for a file system with a journal, that is ext3.
pub(super) const JOURNAL: &[&str] = &["-j", "-J", "size=4"];

/// The manifest with the shadow. `patient`: as many restarts as it takes; otherwise the usual
/// number, however slowly the crashes come.
fn machine(bench: &Bench<'_>, image: &Path, patient: bool) -> Result<Machine> {
    let limits = if patient {
        MANY_RESTARTS
    } else {
        "window_s = 3600"
    };
    let mut machine = bench.machine_by(&with_limits(bench, &["ext2", "virtio-blk"], limits)?)?;
    machine.disk = Some(image.to_path_buf());
    Ok(machine)
}

/// Random numbers (xorshift) below a limit.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// About 3 MB in 30 directories.
pub(super) fn fill(root: &Path) -> Result<()> {
    let mut random = Random(0x7ef011);
    for number in 0..FILES {
        let folder = root.join(format!("tree/d{}/e{}", number % 6, number % 30));
        fs::create_dir_all(&folder)?;
        let length = [0, 100, 3000, 9000, 20_000, 30_000][random.below(6) as usize];
        fs::write(
            folder.join(format!("file{number}")),
            disk::noise(length, number as u64),
        )?;
    }
    Ok(())
}

/// Pauses and crashes, as a shell does them.
fn crashes(seed: u64, count: u32, with_driver: bool) -> String {
    let mut random = Random(seed * 0x9e37_79b9 + 1);
    let mut line = String::new();
    for _ in 0..count {
        line += &format!("sleep 0.{:02}; ", 2 + random.below(35));
        line += &strikes::strike(
            ["crash", "crash", "kill-domain"][random.below(3) as usize],
            "ext2",
        );
        if with_driver && random.below(2) == 0 {
            line += &strikes::strike("crash", "virtio-blk");
        }
    }
    line
}

/// Fails if the folder `/copy` of the disk is not as `/tree`, by the host's tools.
pub(super) fn compare(bench: &Bench<'_>, image: &Path) -> Result<()> {
    let [tree, copy] = ["tree", "copy"].map(|name| image::by_host(image, name, &bench.folder));
    let (tree, copy) = (tree?, copy?);
    let paths: BTreeSet<_> = tree.keys().chain(copy.keys()).collect();
    let different: Vec<_> = paths
        .into_iter()
        .filter(|path| tree.get(*path) != copy.get(*path))
        .collect();
    ensure!(different.is_empty(), "the copy is not right: {different:?}");
    let files = copy.values().filter(|node| matches!(node, Node::File(_)));
    let count = files.count();
    ensure!(
        count == FILES,
        "{count} files in the copy, expected {FILES}"
    );
    Ok(())
}

fn no_loss(answer: &Answer) -> Result<()> {
    ensure!(
        !answer.log.contains("are lost"),
        "changes were lost:\n{}",
        answer.log
    );
    Ok(())
}

/// Copies the tree with these crashes under it, once for each seed.
fn copies(
    bench: &Bench<'_>,
    options: &[&str],
    seeds: &[u64],
    with_driver: bool,
    processors: u32,
) -> Result<()> {
    for &seed in seeds {
        let image = bench.small_disk("64M", options, fill)?;
        let mut machine = machine(bench, &image, true)?;
        machine.processors = processors;
        let line = format!(
            "cp -r /tree /copy & {} wait; sync",
            crashes(seed, 8, with_driver)
        );
        let about = || format!("seed {seed}: {line}");
        let answer = bench
            .exec_on(machine, &line)?
            .status(0)
            .with_context(about)?;
        no_loss(&answer.silently().with_context(about)?).with_context(about)?;
        compare(bench, &image).with_context(about)?;
        bench.expect_clean(&image).with_context(about)?;
        fs::remove_file(image)?;
    }
    Ok(())
}

fn copies_on_ext2(bench: &Bench<'_>) -> Result<()> {
    copies(bench, &[], &[1, 2, 3], false, 1)
}

fn copies_on_ext3(bench: &Bench<'_>) -> Result<()> {
    copies(bench, JOURNAL, &[4, 5, 6], false, 1)
}

fn copies_with_driver(bench: &Bench<'_>) -> Result<()> {
    copies(bench, JOURNAL, &[7, 8, 9], true, 1)
}

fn copies_on_four(bench: &Bench<'_>) -> Result<()> {
    copies(bench, JOURNAL, &[10, 11], true, 4)
}

fn reads(bench: &Bench<'_>) -> Result<()> {
    let image = bench.disk()?;
    let line = "sha256sum /big & for i in 1 2; do sleep 0.2; crash ext2; ls / > /dev/null; done; sleep 0.2; kill-domain ext2; wait; wc -l < /text/a.txt";
    let answer = bench.exec_on(machine(bench, &image, true)?, line)?;
    let answer = answer.status(0)?.silently()?.shows("5000\n")?;
    let sum = host_sum(&bench.site.root.join("big"))?;
    answer.shows(&format!("{sum}  /big\n"))?;
    bench.expect_clean(&image)
}

/// Work without a `sync` in it, so that everything stands in the log only, with a crash in every
/// round.
fn names(bench: &Bench<'_>) -> Result<()> {
    let image = bench.small_disk("32M", JOURNAL, |root| {
        Ok(fs::write(root.join("keep"), "kept\n")?)
    })?;
    let line = "mkdir /w; for i in $(seq 1 20); do mkdir /w/a$i /w/a$i/b; crash ext2; mv /w/a$i /w/c$i; crash ext2; mkdir /w/a$i; rm -r /w/a$i; done; \
        mkdir /s; mv /keep /s/old; crash ext2; echo new > /keep; mv /s/old /keep2; crash ext2; rm -r /s; crash ext2; cat /keep /keep2; ls /w | wc -l";
    let answer = bench.exec_on(machine(bench, &image, true)?, line)?;
    let answer = answer.status(0)?.silently()?.prints("new\nkept\n20\n")?;
    no_loss(&answer)?;
    bench.expect_clean(&image)?;
    ensure!(
        bench.host_read(&image, "/keep2")? == b"kept\n",
        "/keep2 is damaged"
    );
    Ok(())
}

/// Its last name is removed, then the file system crashes, twice; who has it open reads on.
fn removed_file(bench: &Bench<'_>) -> Result<()> {
    let image = bench.disk()?;
    let line = "{ echo > /open; sleep 1; sha256sum; } < /big > /sum & until [ -e /open ]; do sleep 0.02; done; \
        rm /big; crash ext2; ls -a / | grep -c trefoil; sleep 0.2; crash ext2; wait; ls / | grep -c big; cat /sum";
    let answer = bench
        .exec_on(machine(bench, &image, true)?, line)?
        .silently()?;
    let sum = host_sum(&bench.site.root.join("big"))?;
    ensure!(
        answer.stdout.starts_with("0\n0\n"),
        "a name is seen that should not be: {:?}",
        answer.stdout
    );
    answer.shows(&sum)?;
    bench.expect_clean(&image)?;
    unnamed::expect_none(&image)
}

/// The restart budget of the default manifest: an error, not a hang.
fn gives_up(bench: &Bench<'_>) -> Result<()> {
    let image = bench.disk()?;
    let line = "for i in $(seq 10); do /boot/bin/crash ext2; echo $i > /round; done; cat /text/a.txt; echo status $?";
    let answer = bench.exec_on(machine(bench, &image, false)?, line)?;
    answer.shows("status 1\n")?.complains("round")?;
    Ok(())
}
