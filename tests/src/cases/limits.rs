//! Limits: many processes, open files, arguments, names; a full disk; no memory; a device that
//! fails.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use machine::disk;
use machine::qemu::Machine;
use trefoil_gate::tool;

use super::recovery::{expect_no_restart, with_limits};
use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("limits-100000-names-in-a-directory", large_directory),
    case("limits-1000-processes", processes),
    case("limits-10000-files-and-arguments", files_and_arguments),
    case("limits-names-and-paths", names),
    case("limits-files-over-4-GiB", large_files),
    case("limits-disk-filled-and-emptied", full_disk),
    case("limits-memory-eaten", memory),
    case("limits-of-a-job-hold-for-its-children", job),
    case("limits-caches-give-way", caches),
    case("limits-pages-of-files-give-way", pages),
    case("limits-pipes", pipes),
    case("limits-pipes-of-one-program", many_pipes),
    case("limits-hostile-environments", environments),
    case("limits-hostile-descriptors", descriptors),
    case("limits-hostile-many-files-in-tmp", many_files),
    case("limits-calls-without-memory", calls_without_memory),
    case("limits-read-errors-of-the-device", read_errors),
    case("limits-write-errors-of-the-device", write_errors),
];

/// Where the program is that goes to the limits.
pub(super) const STRAIN: &str = "/boot/testing/strain";

/// A machine with the standard disk, and an empty one beside it, which is the second result.
fn beside(
    bench: &Bench<'_>,
    size: &str,
    options: &[&str],
) -> Result<(Machine, std::path::PathBuf)> {
    let second = bench.small_disk(size, options, |_| Ok(()))?;
    let mut machine = bench.machine_with(&bench.disk()?);
    machine.more_disks = vec![second.clone()];
    Ok((machine, second))
}

fn large_directory(bench: &Bench<'_>) -> Result<()> {
    let (machine, image) = beside(bench, "64M", &["-b", "1024", "-N", "110000"])?;
    let line = format!(
        "mkdir /m && mount vdb /m && mkdir /m/d && {STRAIN} make /m/d 100000 && ls /m/d | tail -n 1 && \
         cat '/m/d/file 77777' && umount /m && mount vdb /m && {STRAIN} clear /m/d && rmdir /m/d && umount /m"
    );
    bench
        .exec_within(LIMIT * 3, machine, &line)?
        .status(0)?
        .prints("100000 listed\nfile 99999\n100000 removed\n")?;
    bench.expect_clean(&image)
}

fn processes(bench: &Bench<'_>) -> Result<()> {
    let mut machine = bench.machine_with(&bench.disk()?);
    machine.memory = "512M".into();
    let line = "for i in $(seq 1000); do sleep 500 & done; ps | grep -c sleep; echo here | cat";
    let answer = bench.exec_within(LIMIT * 2, machine, line)?.status(0)?;
    answer.silently()?.prints("1000\nhere\n")?;
    // In little memory: as many as fit, an exact error, and all of it comes back.
    let line = "grep MemFree /proc/meminfo; all=; for i in $(seq 400); do sleep 5000 & all=\"$all $!\"; done; kill $all; wait; sleep 1; \
                grep MemFree /proc/meminfo; echo here | cat";
    let mut machine = bench.machine_with(&bench.disk()?);
    machine.memory = "96M".into();
    let answer = bench.exec_within(LIMIT * 2, machine, line)?;
    let answer = answer.status(0)?.complains("Cannot allocate memory")?;
    ensure!(answer.stdout.ends_with("here\n"), "{}", answer.stdout);
    expect_memory_back(&answer.stdout)
}

/// The figures of the lines about free memory in `text`, in KiB.
fn free_memory(text: &str) -> Vec<i64> {
    let lines = text.lines().filter(|line| line.starts_with("MemFree:"));
    lines
        .filter_map(|line| line.split_whitespace().nth(1)?.parse().ok())
        .collect()
}

/// The first and the last line about free memory in `text` differ by little.
fn expect_memory_back(text: &str) -> Result<()> {
    let free = free_memory(text);
    let (first, last) = (
        free.first().context("no line")?,
        free.last().context("no line")?,
    );
    // The kernel's own tables have grown, and the personality's; and each domain that was busy has
    // up to 252 KiB in its magazines. So much is 4 to 6 MB, and was 12.6 once on a busy host.
    ensure!(
        first - last < 16_384,
        "{} kB did not come back",
        first - last
    );
    Ok(())
}

fn files_and_arguments(bench: &Bench<'_>) -> Result<()> {
    let line = format!(
        "grep MemFree /proc/meminfo; {STRAIN} open 10000 /text/a.txt; {STRAIN} open 20000 /text/a.txt; {STRAIN} open 10 /text/b.txt; \
         /bin/echo $(seq 1 10000) | wc -w; grep MemFree /proc/meminfo"
    );
    let answer = bench.exec(&bench.disk()?, &line)?.status(0)?.silently()?;
    expect_memory_back(&answer.stdout)?;
    answer
        .shows("10000 open, 64 bytes read\n16381 open, 64 bytes read: Too many open files\n10 open, 64 bytes read\n10000\n")
        .map(drop)
}

fn names(bench: &Bench<'_>) -> Result<()> {
    let expected = "name of 255: made\nname of 256: File name too long\npath of 4095: made\npath of 4096: File name too long\n";
    let disk = bench.disk()?;
    let line = format!(
        "mkdir /n /tmp/n && {STRAIN} names /n && {STRAIN} names /tmp/n && rm -r /tmp/n && ls /tmp"
    );
    bench
        .exec(&disk, &line)?
        .status(0)?
        .prints(&format!("{expected}{expected}"))?;
    bench.expect_clean(&disk)?;
    bench
        .exec(&disk, "rm -r /n && ls / | grep -c n")?
        .status(0)?;
    bench.expect_clean(&disk)
}

/// A sparse file of more than 4 GiB, written and read back, cut, and as the host sees it; every
/// block size.
fn large_files(bench: &Bench<'_>) -> Result<()> {
    for size in ["1024", "2048", "4096"] {
        let (machine, image) = beside(bench, "16M", &["-b", size])?;
        let line = format!(
            "mkdir /m && mount vdb /m && {STRAIN} write /m/f 5368709120 end && {STRAIN} write /m/g 9000000000 x && \
             {STRAIN} read /m/f 5368709120 9 && {STRAIN} cut /m/g 4294967297 && ls -l /m/g | grep -c 4294967297 && \
             {STRAIN} room /m && {STRAIN} write /m/f 99999999999999999 x; umount /m"
        );
        let answer = bench.exec_on(machine, &line)?.status(0)?;
        let answer = answer.complains("File too large").context(size)?;
        ensure!(
            answer.stdout.starts_with("end1\n"),
            "{size}: {}",
            answer.stdout
        );
        bench.expect_clean(&image).context(size)?;
        ensure!(
            debugfs(&image, "stat /f")?.contains("Size: 5368709123"),
            "{size}"
        );
        ensure!(
            debugfs(&image, "features")?.contains("large_file"),
            "{size}"
        );
        fs::remove_file(image)?;
    }
    Ok(())
}

fn debugfs(image: &Path, request: &str) -> Result<String> {
    let debugfs = tool::need("debugfs", "e2fsprogs")?;
    tool::output(Command::new(debugfs).args(["-R", request]).arg(image))
}

fn full_disk(bench: &Bench<'_>) -> Result<()> {
    for options in [
        &["-b", "1024"][..],
        &["-b", "4096"],
        &["-j", "-J", "size=1", "-b", "1024"],
    ] {
        let (machine, image) = beside(bench, "8M", options)?;
        let line = format!(
            "mkdir /m && mount vdb /m && {STRAIN} room /m && {STRAIN} fill /m/full && {STRAIN} room /m; {STRAIN} write /m/y 0 x; \
             echo x > /m/z || mkdir /m/d; rm -r /m/y /m/z /m/d; rm /m/full && {STRAIN} room /m && {STRAIN} write /m/y 0 fits && cat /m/y && umount /m"
        );
        let answer = bench.exec_on(machine, &line)?.status(0)?;
        let answer = answer.complains("No space left on device")?;
        let lines: Vec<_> = answer.stdout.lines().collect();
        let [before, error, full, after, fits] = lines[..] else {
            anyhow::bail!("{options:?}: {}", answer.stdout);
        };
        ensure!(
            before == after,
            "{options:?}: {before} before, {after} after"
        );
        ensure!(full.starts_with("0 blocks"), "{options:?}: {full}");
        ensure!((error, fits) == ("No space left on device", "fits"));
        bench
            .expect_clean(&image)
            .with_context(|| format!("{options:?}"))?;
        fs::remove_file(image)?;
    }
    Ok(())
}

/// Who takes all memory gets an error or dies of it; nobody else does.
fn memory(bench: &Bench<'_>) -> Result<()> {
    let eaters = format!("{STRAIN} eat & ").repeat(6);
    let bursts = format!("{STRAIN} burst & ").repeat(6);
    let line = format!(
        "echo kept > /tmp/kept; {STRAIN} eat; grep MemFree /proc/meminfo; {eaters} wait; {bursts} wait; sleep 1; \
         grep MemFree /proc/meminfo; cat /tmp/kept; cp /text/a.txt /copy && cmp /copy /text/a.txt && echo same; grep -c . /proc/domains"
    );
    let disk = bench.disk()?;
    let answer = bench.exec(&disk, &line)?.status(0)?.complains("crashed")?;
    expect_memory_back(&answer.stdout)?;
    let answer = answer.shows("kept\nsame\n")?;
    for domain in ["rv6", "ext2", "vfs", "init", "ramfs", "console"] {
        let died = answer.log.contains(&format!("] {domain}: domain"));
        ensure!(!died, "{domain} crashed:\n{}", answer.log);
    }
    let named = answer.log.contains("at an allocation that cannot fail");
    ensure!(named && !answer.log.contains("alloc.rs"), "{}", answer.log);
    bench.expect_clean(&disk)
}

/// A job in the background whose children each take memory gets as much as one program may have.
/// Another job has its own, and programs start as ever; when the job has ended, all of it is back.
fn job(bench: &Bench<'_>) -> Result<()> {
    let free = "grep MemFree /proc/meminfo";
    let hold = format!("{STRAIN} hold 12 8 & ").repeat(8);
    let line = format!(
        "{free}; sh -c '{hold} wait' & sleep 1; ls / | grep -c big; {STRAIN} hold 30 0; domains | grep -c strain; wait; sleep 1; {free}"
    );
    let disk = bench.disk()?;
    let answer = bench.exec(&disk, &line)?.status(0)?;
    // A quarter of 256 MiB, with the images of the programs.
    let held = answer.stdout.matches("12 MiB held").count();
    ensure!((1..=5).contains(&held), "{held} held:\n{}", answer.stdout);
    let answer = answer.shows("30 MiB held\n")?;
    // Who starts late may not even get the memory to start with.
    let refused = answer.stderr.matches("hold: ").count();
    let late = answer.stderr.matches("strain: Cannot allocate memory");
    let refused = refused + late.count();
    ensure!(
        held + refused == 8,
        "{refused} of them were refused:\n{}",
        answer.stderr
    );
    expect_memory_back(&answer.stdout)?;
    bench.expect_clean(&disk)
}

/// What a cache holds is there for programs that need it.
fn caches(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_with(&disk);
    machine.memory = "144M".into();
    let free = "grep MemFree /proc/meminfo";
    let hold = format!("{STRAIN} hold 28 2 & ").repeat(3);
    let line = format!(
        "{free}; : > /sparse; {STRAIN} cut /sparse 64000000; wc -c < /sparse; cat /sparse | wc -c; {free}; \
         {hold} wait; cat /sparse | wc -c; cmp /text/a.txt /text/a.txt && echo same"
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?.silently()?;
    let held = answer.stdout.matches("28 MiB held").count();
    ensure!(held == 3, "{}", answer.stdout);
    // Otherwise the programs would not have needed what was cached.
    let left = free_memory(&answer.stdout).pop().context("no figure")?;
    ensure!(
        left < 3 * (28 << 10),
        "too little was cached:\n{}",
        answer.stdout
    );
    answer.shows("64000000\nsame\n")?;
    bench.expect_clean(&disk)
}

/// As [`caches`], of pages of files that were written on two volumes: both give, and what is read
/// afterwards is right.
fn pages(bench: &Bench<'_>) -> Result<()> {
    let usual = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let shadow = "[domain.vfs]\n";
    ensure!(usual.contains(shadow), "no shadow in the manifest");
    let options = format!("{shadow}options = \"pages=64M\"\n");
    let (mut machine, second) = beside(bench, "64M", &["-b", "4096"])?;
    let by = bench.machine_by(
        &usual
            .replace(shadow, &options)
            .replace("cache=40%", "cache=2M"),
    )?;
    machine.archive = by.archive;
    machine.memory = "160M".into();
    let free = "grep MemFree /proc/meminfo";
    let hold = format!("{STRAIN} hold 28 2 & ").repeat(3);
    let line = format!(
        "mkdir /m; mount vdb /m; {free}; head -c 30000000 /big > /one; head -c 25000000 /big > /m/two; sync; {free}; \
         {hold} wait; {free}; head -c 30000000 /big | cmp - /one && head -c 25000000 /big | cmp - /m/two && echo same; umount /m"
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?;
    let held = answer.stdout.matches("28 MiB held").count();
    let free = free_memory(&answer.stdout);
    let [_, before, after] = free[..] else {
        bail!("{}", answer.stdout);
    };
    // Otherwise the programs would not have needed it.
    ensure!(
        held == 3 && before < 3 * (28 << 10) && after > before,
        "{}\n{}",
        answer.stdout,
        answer.log
    );
    answer.shows("same\n")?;
    bench.expect_clean(&second)
}

fn pipes(bench: &Bench<'_>) -> Result<()> {
    let line = "seq 1 100000 | sh -c 'sleep 1; wc -l'; seq 1 10000000 | head -n 2; yes | sh -c 'read x; echo $x'; \
                seq 1 100000 | true; echo $?; seq 1 3 | cat | cat | cat | cat | cat | wc -l";
    bench
        .exec(&bench.disk()?, line)?
        .status(0)?
        .prints("100000\n1\n2\ny\n0\n3\n")
        .map(drop)
}

/// A program's pipes are held by the personality, on that program's account alone.
fn many_pipes(bench: &Bench<'_>) -> Result<()> {
    let line = format!(
        "grep MemFree /proc/meminfo; {STRAIN} pipes 4000 30000 0; {STRAIN} pipes 4000 30000 3 & sleep 1; \
         echo here | cat; ls /text | wc -l; wait; grep MemFree /proc/meminfo; domains -q"
    );
    let answer = bench.exec(&bench.disk()?, &line)?.status(0)?.silently()?;
    expect_memory_back(&answer.stdout)?;
    let refused = answer
        .stdout
        .matches("many pipes: Cannot allocate memory")
        .count();
    ensure!(refused == 2, "{}", answer.stdout);
    expect_no_restart(&answer.stdout, "rv6")?;
    answer.shows("here\n").map(drop)
}

/// Runs `offence` as a job in the background that complains of `error`, while others work. Nothing
/// crashes, and the memory is back after `mend`.
fn offend(bench: &Bench<'_>, offence: &str, error: &str, mend: &str) -> Result<String> {
    let free = "grep MemFree /proc/meminfo";
    let line = format!(
        "{free}; sh -c '{offence}' > /said 2> /complaint & \
         for i in 1 2 3 4 5; do echo here | cat; ls /text | wc -l; done; wait; head -n 3 /said; grep -c '{error}' /complaint; \
         rm /said /complaint; {mend}; sleep 1; {free}; domains -q"
    );
    let disk = bench.disk()?;
    let answer = bench.exec_within(LIMIT * 2, bench.machine_with(&disk), &line)?;
    let answer = answer.status(0)?.silently()?;
    expect_memory_back(&answer.stdout)?;
    for domain in [
        "rv6",
        "vfs",
        "ext2",
        "ramfs",
        "block",
        "virtio-blk",
        "console",
    ] {
        expect_no_restart(&answer.stdout, domain)?;
    }
    let served = answer.stdout.matches("here\n").count();
    ensure!(served == 5, "{}", answer.stdout);
    bench.expect_clean(&disk)?;
    Ok(answer.stdout)
}

/// Fails unless what [`offend`] shows has a line with a number of complaints above 0 right behind
/// `said`.
fn expect_complaints(shown: &str, said: &str) -> Result<()> {
    let (_, rest) = shown.split_once(said).with_context(|| shown.to_string())?;
    let count = rest
        .lines()
        .next()
        .and_then(|line| line.parse::<u32>().ok());
    ensure!(count.is_some_and(|count| count > 0), "{shown}");
    Ok(())
}

/// Each child has a megabyte of environment, or of arguments; the personality holds a few.
fn environments(bench: &Bench<'_>) -> Result<()> {
    let offence = "X=$(seq 1 150000); export X; for i in $(seq 30); do sleep 4 & done; echo made; wait; \
                   /bin/echo $(seq 1 500000) | wc -c; unset X; /bin/echo alive";
    let shown = offend(bench, offence, "Cannot allocate memory", ":")?;
    ensure!(shown.contains("made\n"), "{shown}");
    expect_complaints(&shown, "alive\n")
}

/// Children that each open all files that they can have: the job's account ends that.
fn descriptors(bench: &Bench<'_>) -> Result<()> {
    let open = format!("{STRAIN} open 16000 /text/a.txt & ").repeat(6);
    let offence = format!(
        "{{ {open} wait; }} > /tmp/opened; grep memory /tmp/opened >&2; rm /tmp/opened; echo opened"
    );
    let shown = offend(bench, &offence, "Cannot allocate memory", ":")?;
    expect_complaints(&shown, "opened\n")
}

/// More files than `/tmp` has room for, with and without content.
fn many_files(bench: &Bench<'_>) -> Result<()> {
    let offence = format!(
        "mkdir /tmp/many /tmp/full; {STRAIN} make /tmp/many 1000000; {STRAIN} fill /tmp/full/it; echo filled"
    );
    let mend = format!("{STRAIN} clear /tmp/many; rm -r /tmp/many /tmp/full");
    let shown = offend(bench, &offence, "No space left", &mend)?;
    ensure!(shown.contains("filled"), "{shown}");
    Ok(())
}

/// Nothing but errors comes of any system call when all memory is taken, and all of them work when
/// it is back.
fn calls_without_memory(bench: &Bench<'_>) -> Result<()> {
    let machine = greedy(bench, &bench.disk()?)?;
    let line = format!("{STRAIN} calls; echo here | cat; domains -q");
    let answer = bench.exec_on(machine, &line)?.status(0)?.silently()?;
    for domain in ["rv6", "vfs", "ext2", "ramfs", "block", "virtio-blk"] {
        expect_no_restart(&answer.stdout, domain)?;
    }
    let expected = "31 calls, some refused\nhere\n";
    ensure!(answer.stdout.starts_with(expected), "{}", answer.stdout);
    Ok(())
}

/// A machine with this disk where one program may take all memory.
pub(super) fn greedy(bench: &Bench<'_>, disk: &std::path::Path) -> Result<Machine> {
    let manifest = with_limits(bench, &[], "")?;
    let rv6 = "[domain.rv6]\n";
    ensure!(manifest.contains(rv6), "no personality");
    let manifest = manifest.replace(rv6, &format!("{rv6}options = \"pages 1000000\"\n"));
    let grants = "\n[program.strain]\nservices = [\"monitor\", \"control\"]\n";
    let mut machine = bench.machine_by(&format!("{manifest}{grants}"))?;
    machine.disk = Some(disk.into());
    Ok(machine)
}

/// A machine whose second disk fails by `rules`, and the disk. `/data` on it has 64 KiB, `/other` a
/// line.
fn failing(
    bench: &Bench<'_>,
    rules: impl Fn(u64) -> String,
) -> Result<(Machine, std::path::PathBuf)> {
    let image = bench.small_disk("8M", &["-b", "1024"], |root| {
        fs::write(root.join("data"), disk::noise(64 << 10, 4))?;
        Ok(fs::write(root.join("other"), "other\n")?)
    })?;
    let first = debugfs(&image, "blocks /data")?;
    let block: u64 = first
        .split_whitespace()
        .next()
        .context("no blocks")?
        .parse()?;
    let file = bench.folder.join("rules");
    fs::write(&file, rules(block * 2))?;
    let mut machine = bench.machine_with(&bench.disk()?);
    machine.more_disks = vec![image.clone()];
    machine.disk_faults = Some(file);
    Ok((machine, image))
}

fn rule(kind: &str, sector: Option<u64>) -> String {
    let sector = sector.map_or(String::new(), |sector| format!("sector = \"{sector}\"\n"));
    format!(
        "[inject-error]\nevent = \"none\"\niotype = \"{kind}\"\nerrno = \"5\"\nonce = \"off\"\n{sector}"
    )
}

fn read_errors(bench: &Bench<'_>) -> Result<()> {
    let (machine, image) = failing(bench, |sector| rule("read", Some(sector)))?;
    let line = "mkdir /m && mount vdb /m && cat /m/data | wc -c; cat /m/other; cp /m/other /m/copy && cat /m/copy; cat /text/b.txt | wc -l; \
                umount /m && echo ended";
    let answer = bench.exec_on(machine, line)?.status(0)?;
    let answer = answer.complains("/m/data: Input/output error")?;
    ensure!(
        answer.stdout == "0\nother\nother\n7\nended\n",
        "{}",
        answer.stdout
    );
    bench.expect_clean(&image)
}

fn write_errors(bench: &Bench<'_>) -> Result<()> {
    // One sector that cannot be written.
    let (machine, image) = failing(bench, |sector| rule("write", Some(sector)))?;
    let line = format!(
        "mkdir /m && mount vdb /m && {STRAIN} write /m/data 0 lost; {STRAIN} write /m/other 0 new; cat /m/other; rm /m/data; sync; \
         cat /text/b.txt | wc -l; echo on"
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?;
    let answer = answer.complains("/m/data: Input/output error")?;
    ensure!(answer.stdout.ends_with("7\non\n"), "{}", answer.stdout);
    bench.expect_clean(&image)?;
    // None can be written at all: reading goes on.
    let (machine, image) = failing(bench, |_| rule("write", None))?;
    let before = fs::read(&image)?;
    let line = format!(
        "mkdir /m && mount vdb /m && {STRAIN} write /m/new 0 lost; cat /m/other; umount /m; cat /text/b.txt | wc -l; echo on"
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?;
    let answer = answer.complains("Input/output error")?;
    ensure!(answer.stdout == "other\n7\non\n", "{}", answer.stdout);
    ensure!(fs::read(&image)? == before, "something was written");
    Ok(())
}
