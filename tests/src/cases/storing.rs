//! What is written to files lies in pages of the file system's shadow until it is stored: over
//! crashes, where the device refuses it, and where there is hardly room. All files are written so
//! here, small ones, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use machine::disk;
use machine::qemu::{Event, Machine};

use super::guide;
use super::limits::STRAIN;
use super::mapping::block_of;
use super::recovery::{expect_no_restart, expect_restarts};
use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("stored-pages-outlive-the-file-system", crashes),
    case("stored-pages-that-are-refused-are-told-of-once", refused),
    case(
        "stored-pages-that-are-refused-are-told-of-to-who-wants-data",
        refused_data,
    ),
    case("stored-data-alone-takes-no-commit", data_alone),
    case("stored-pages-find-room-or-the-writer-is-told", room),
    case("stored-holes-come-with-what-is-behind-them", hole),
];

/// A machine with `disk` where all writes go into pages, of which 2 MiB are kept.
pub(super) fn machine(bench: &Bench<'_>, disk: &Path) -> Result<Machine> {
    let usual = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let shadow = "[domain.vfs]\n";
    ensure!(usual.contains(shadow), "no shadow in the manifest");
    let options = format!("{shadow}options = \"small=0 pages=2M\"\n");
    let mut machine = bench.machine_by(&usual.replace(shadow, &options))?;
    machine.disk = Some(disk.to_path_buf());
    Ok(machine)
}

/// A disk with blocks of which a page has four, and a file on it.
fn small(bench: &Bench<'_>, size: &str, content: &[u8]) -> Result<PathBuf> {
    bench.small_disk(size, &["-b", "1024"], |root| {
        Ok(fs::write(root.join("big"), content)?)
    })
}

/// What was acknowledged is there after crashes of the file system that come at once behind it,
/// whether it was synced or not: whole files, parts of them, ends, and what they are called.
fn crashes(bench: &Bench<'_>) -> Result<()> {
    let big = disk::noise(5 << 20, 11);
    let disk = small(bench, "24M", &big)?;
    let mut machine = machine(bench, &disk)?;
    machine.processors = 2;
    let line = format!(
        "cp /big /copy & sleep 0.3; crash ext2; sleep 0.3; crash virtio-blk; wait; cmp /big /copy && echo same; \
         dd if=/big of=/copy bs=1000 count=30 skip=7 seek=100 conv=notrunc status=none; mv /copy /moved; crash ext2; \
         {STRAIN} cut /moved 3000001; {STRAIN} write /moved 4000000 behind; crash ext2; stat /moved | grep -c 4000006; \
         seq 30000 > /new; rm /big; cat /new | wc -l; sync; crash ext2; cat /moved | wc -c; domains -q"
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?;
    ensure!(
        answer.stdout.starts_with("same\n1\n30000\n4000006\n"),
        "{}\n{}",
        answer.stdout,
        answer.log
    );
    expect_restarts(&answer.stdout, "ext2", 4)?;
    expect_no_restart(&answer.stdout, "vfs")?;
    let mut right = big.clone();
    right[100_000..130_000].copy_from_slice(&big[7000..37_000]);
    right.truncate(3_000_001);
    right.resize(4_000_000, 0);
    right.extend(b"behind");
    ensure!(
        bench.host_read(&disk, "/moved")? == right,
        "/moved is another"
    );
    let lines: String = (1..=30_000).map(|line| format!("{line}\n")).collect();
    ensure!(
        bench.host_read(&disk, "/new")? == lines.as_bytes(),
        "/new is another"
    );
    bench.expect_clean(&disk)
}

/// The device refuses to write one sector: the next sync says so, and none after it; all else of
/// the file is written.
fn refused(bench: &Bench<'_>) -> Result<()> {
    refused_to(bench, "sync")
}

/// As [`refused`], for who wants the content alone on the disk.
fn refused_data(bench: &Bench<'_>) -> Result<()> {
    refused_to(bench, "sync -d")
}

fn refused_to(bench: &Bench<'_>, sync: &str) -> Result<()> {
    let content = disk::noise(200 << 10, 3);
    let disk = small(bench, "8M", &content)?;
    let (block_size, block) = block_of(&disk, "/big", 100 * 1024)?;
    let sector = block * block_size / 512;
    let rules = bench.folder.join("rules");
    let rule = format!(
        "[inject-error]\nevent = \"none\"\niotype = \"write\"\nerrno = \"5\"\nonce = \"off\"\nsector = \"{sector}\"\n"
    );
    fs::write(&rules, rule)?;
    let mut machine = machine(bench, &bench.disk()?)?;
    (machine.more_disks, machine.disk_faults) = (vec![disk.clone()], Some(rules));
    let line = format!(
        "mkdir /m && mount vdb /m && tr a-z A-Z < /m/big | dd of=/m/big conv=notrunc bs=4k status=none; \
         seq 9000 > /m/other; sleep 3; {sync} /m/other && echo other; \
         {sync} /m/big && echo silent; {sync} /m/big && echo once; sync && echo silent; sync && echo all"
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?;
    let answer = answer
        .prints("other\nonce\nall\n")?
        .logs("content is lost")?;
    let told = answer.stderr.matches("Input/output error").count();
    ensure!(told == 2, "{told} errors: {}", answer.stderr);
    let upper: Vec<u8> = content.iter().map(u8::to_ascii_uppercase).collect();
    let left = bench.host_read(&disk, "/big")?;
    // The page with the sector: what was there before, or the new one around it.
    let page = 100 * 1024 / 4096 * 4096..100 * 1024 / 4096 * 4096 + 4096;
    for at in (0..upper.len()).filter(|at| !page.contains(at)) {
        ensure!(left[at] == upper[at], "another byte at {at}");
    }
    ensure!(left != upper, "the sector was written");
    bench.expect_clean(&disk)
}

/// Bytes are written over others of a file, in pages and the old way, and brought to the disk each
/// time: with the times of the file, which takes a commit each time, and without, which takes the
/// bytes alone, but for the commit that comes by itself each second. What is written is there.
fn data_alone(bench: &Bench<'_>) -> Result<()> {
    const TIMES: u64 = 40;
    let text = fs::read_to_string(bench.site.project.root.join(guide::GUIDE))?;
    let shadow = "[domain.vfs]\n";
    let manifest = guide::manifest(bench, &text)?;
    let options = format!("{shadow}options = \"small=4000\"\n");
    let manifest = manifest.replace(shadow, &options);
    let disk = bench.small_disk("24M", &["-b", "4096", "-j", "-J", "size=4"], |root| {
        fs::write(root.join("small"), disk::noise(3 << 10, 17))?;
        Ok(fs::write(root.join("big"), disk::noise(1 << 20, 16))?)
    })?;
    let mut machine = bench.machine_by(&manifest)?;
    machine.disk = Some(disk.clone());
    // The time of a file is set in steps of 4 ms: within one there is no other to be stored.
    let round = |file: &str, conv: &str| {
        let dd = "dd if=/bytes bs=512 count=1 seek=3 status=none";
        let pause = if conv == "fsync" { "sleep 0.005; " } else { "" };
        format!(
            "/boot/testing/tally; for i in $(seq {TIMES}); \
             do {dd} of={file} conv=notrunc,{conv}; {pause}done; "
        )
    };
    let line = format!(
        "head -c 512 /boot/bin/sh > /bytes; cat /big /small > /dev/null; sync; {}{}{}{}/boot/testing/tally",
        round("/big", "fsync"),
        round("/big", "fdatasync"),
        round("/small", "fsync"),
        round("/small", "fdatasync"),
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?.silently()?;
    let counts: Vec<u64> = answer.stdout.lines().filter_map(written).collect();
    let [first, whole, data, whole_small, data_small] = counts[..] else {
        bail!("not five counts: {}", answer.stdout);
    };
    let sectors = [
        whole - first,
        data - whole,
        whole_small - data,
        data_small - whole_small,
    ];
    // A block of content each time, or three more of the journal with it.
    let (least, most) = (TIMES * 4 * 8, TIMES * 28);
    ensure!(
        sectors[0] >= least && sectors[2] >= least && sectors[1] <= most && sectors[3] <= most,
        "{sectors:?} sectors"
    );
    let bytes = bench.host_read(&disk, "/bytes")?;
    for file in ["/big", "/small"] {
        let found = bench.host_read(&disk, file)?;
        ensure!(found[3 * 512..4 * 512] == bytes, "{file} is another");
    }
    bench.expect_clean(&disk)
}

/// The sectors written in what `tally` prints.
fn written(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(" sectors read, ")?;
    rest.split(' ').next()?.parse().ok()
}

/// Who writes to a disk that becomes full is told, and has what he was told that he has; what is
/// removed before it is stored leaves room at once.
fn room(bench: &Bench<'_>) -> Result<()> {
    let content = disk::noise(3 << 20, 5);
    let disk = small(bench, "12M", &content)?;
    let machine = machine(bench, &disk)?;
    let line = "for i in 1 2 3 4 5 6 7 8; do cp /big /one && cp /big /two && rm /one && rm /two || echo failed; done; \
                cp /big /kept; cat /big /big /big /big > /full; sync; crash ext2; cmp /big /kept && echo same; \
                stat /full | head -n 2; df / | tail -n 1; rm /full; cp /big /again && cmp /big /again && echo again; sync";
    let answer = bench.exec_on(machine, line)?;
    let answer = answer.complains("No space left on device")?;
    ensure!(
        answer.stdout.starts_with("same\n") && answer.stdout.ends_with("again\n"),
        "{}\n{}",
        answer.stdout,
        answer.stderr
    );
    let full = bench.host_read(&disk, "/again")?;
    ensure!(full == content && bench.host_read(&disk, "/kept")? == content);
    bench.expect_clean(&disk)
}

/// A file is written to behind its end, and another one synced, or the file system commits by
/// itself before the bytes are stored. After a power cut the first has its old length or its new
/// one, never that of the hole alone.
fn hole(bench: &Bench<'_>) -> Result<()> {
    const HOLE: &str = "echo behind | dd of=/a bs=1000 seek=500 conv=notrunc status=none";
    cut_behind(bench, &format!("{HOLE}; sync /b"))?;
    cut_behind(
        bench,
        &format!("sleep 1.5; mkdir /d; sleep 0.3; {HOLE}; sleep 0.8"),
    )
}

/// Cuts the power after `work`, which has written behind the end of a file.
fn cut_behind(bench: &Bench<'_>, work: &str) -> Result<()> {
    let disk = bench.small_disk("24M", &["-j", "-J", "size=4"], |_| Ok(()))?;
    let line = format!("seq 9000 > /a; echo b > /b; sync; {work}; echo now; sleep 100");
    let mut guest = bench.begin(machine(bench, &disk)?, &line)?;
    let (deadline, mut said) = (Instant::now() + LIMIT, String::new());
    while !said.contains("now") {
        match guest.receive(deadline) {
            Event::Bytes(bytes) => said += &String::from_utf8_lossy(&bytes),
            _ => bail!("it says no more: {said}\n{}", guest.log()),
        }
    }
    guest.kill();
    while let Event::Bytes(_) = guest.receive(deadline) {}
    let mended = Command::new("e2fsck").arg("-fy").arg(&disk).output()?;
    ensure!(matches!(mended.status.code(), Some(0 | 1)), "{mended:?}");
    let old: String = (1..=9000).map(|line| format!("{line}\n")).collect();
    let found = bench.host_read(&disk, "/a")?.len();
    ensure!(
        [old.len(), 500_007].contains(&found),
        "/a has {found} bytes"
    );
    bench.expect_clean(&disk)
}
